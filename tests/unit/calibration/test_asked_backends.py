"""A calibration corrects back-ends of the physics under which it was fitted, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.backends.registry import backend, backends, with_files
from planner.errors import Conflict
from planner.evidence.calibration.asked_backends import backends_for_calibration, corrected_physics, first_not_corrected
from planner.evidence.calibration.document import Calibration
from planner.evidence.calibration.fitting_problem import fitting_calibration
from planner.evidence.calibration.folder import read_calibration
from planner.question.factors import Factors
from planner.question.problem import ANY, UNRESTRICTED, Constraints
from profiles.catalogue import load_cluster

OLD = Path(__file__).parents[2] / "golden" / "documents" / "calibrations" / "tuned.json"
"""As the last release whose back-ends had no physics of their own stored it."""
H100 = load_cluster("dgx-h100", 8).pools[0].device


def calibration(traits: str) -> Calibration:
    return Calibration(framework="ours", device=H100.name, traits=traits, factors=Factors(compute=1.1), software="0")


@pytest.mark.parametrize("traits", sorted({each.releases[0].physics.name for each in backends().values()}))
def test_any_becomes_what_has_that_physics(traits: str) -> None:
    fitted = calibration(traits)
    found = backends_for_calibration((ANY,), fitted)
    assert Constraints(backends=found).backends == found, "a question can say so"
    assert {backend(name).releases[0].physics.name for name in found} <= set(corrected_physics(fitted))
    files = {each.name for each in with_files() if each.releases[0].physics.name in corrected_physics(fitted)}
    assert set(found) == files or not files
    assert first_not_corrected(found, fitted) is None


def test_a_release_that_is_not_the_default_is_named() -> None:
    assert "megatron==2.5" in backends_for_calibration((ANY,), calibration("megatron-2021"))


def test_names_stay_and_the_first_that_differs_is_told() -> None:
    fitted = calibration(backend("native").releases[0].physics.name)
    assert backends_for_calibration(("native", "nanotron"), fitted) == ("native", "nanotron")
    assert first_not_corrected(("native",), fitted) is None
    assert first_not_corrected(("native", "nanotron"), fitted) == backend("nanotron").releases[0].physics.name
    with pytest.raises(Conflict, match="back-end has nanotron") as refused:
        fitting_calibration(fitted, H100, None, ("native", "nanotron"))
    assert refused.value.hint == "add --backend native"


def test_what_a_problem_carries_narrows_nothing() -> None:
    assert fitting_calibration(calibration("native").applied(), H100, None, (ANY,))[1] == (ANY,)


def test_physics_that_nothing_has_are_refused() -> None:
    unknown = calibration("of-a-fork")
    assert backends_for_calibration((ANY,), unknown) == (ANY,)
    with pytest.raises(Conflict, match="which no back-end has") as refused:
        fitting_calibration(unknown, H100, None, (ANY,))
    assert "calibrate again" in (refused.value.hint or "")


def test_an_old_calibration_of_tuned_corrects_what_runs_megatron_core() -> None:
    old = read_calibration(OLD)
    assert old.traits == "tuned"
    _, names = fitting_calibration(old, H100, None, (ANY,))
    assert names == ("megatron", "megatron-bridge")
    assert fitting_calibration(old, H100, None, (UNRESTRICTED,))[1] == (UNRESTRICTED,)
    with pytest.raises(Conflict) as refused:
        fitting_calibration(old, H100, None, ("torchtitan",))
    assert refused.value.hint == "add --backend megatron,megatron-bridge"
    with pytest.raises(Conflict):
        fitting_calibration(old, H100, None, ("megatron==2.5",))
