"""A calibration corrects back-ends of the physics under which it was fitted, and no other."""

from __future__ import annotations

import pytest

from planner.backends.registry import backend, backends, with_files
from planner.calibration.asked_backends import backends_for_calibration, physics_to_fit
from planner.calibration.document import Calibration
from planner.factors import Factors
from planner.problem import ANY, Constraints


def calibration(traits: str) -> Calibration:
    return Calibration(framework="ours", device="h100", traits=traits, factors=Factors(compute=1.1), software="0")


@pytest.mark.parametrize("traits", sorted({each.releases[0].physics.name for each in backends().values()}))
def test_any_becomes_what_has_that_physics(traits: str) -> None:
    found = backends_for_calibration((ANY,), calibration(traits))
    assert Constraints(backends=found).backends == found, "a question can say so"
    assert {backend(name).releases[0].physics.name for name in found} == {traits}
    files = {each.name for each in with_files() if each.releases[0].physics.name == traits}
    assert set(found) == files or not files
    assert physics_to_fit(found, calibration(traits)) == traits


def test_a_release_that_is_not_the_default_is_named() -> None:
    assert "megatron==2.5" in backends_for_calibration((ANY,), calibration("megatron-2021"))


def test_names_stay_and_the_first_that_differs_is_told() -> None:
    fitted = calibration(backend("native").releases[0].physics.name)
    assert backends_for_calibration(("native", "nanotron"), fitted) == ("native", "nanotron")
    assert physics_to_fit(("native",), fitted) == fitted.traits
    assert physics_to_fit(("native", "nanotron"), fitted) == backend("nanotron").releases[0].physics.name


def test_what_a_problem_carries_narrows_nothing() -> None:
    assert backends_for_calibration((ANY,), calibration("native").applied()) == (ANY,)


def test_physics_that_nothing_has_leaves_any() -> None:
    unknown = calibration("of-a-fork")
    assert backends_for_calibration((ANY,), unknown) == (ANY,)
    assert physics_to_fit((ANY,), unknown) != unknown.traits
