"""Calibrations are stored once, found by id, refused when damaged or out of range; ids change only with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from planner.errors import DocumentInvalid, NotFound
from planner.evidence.calibration.document import Calibration
from planner.evidence.calibration.folder import (
    calibration_text,
    find_calibration,
    keep,
    read_calibration,
    stored_calibrations,
)
from planner.predict.cost.hardware import hardware_of
from planner.predict.uncertainty import Z, step_interval_s, step_sigma
from planner.question.factors import NEUTRAL, Factors
from planner.question.problem import Problem
from profiles.catalogue import load_cluster
from tests.calibrated_problems import applied
from tests.search_problems import random_problem


def some(compute: float = 1.25, created_at: str = "") -> Calibration:
    return Calibration(
        framework="megatron-lm",
        device="h100-sxm5-80gb",
        factors=Factors(compute=compute),
        software="0.1.0",
        created_at=created_at,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compute", 0.39),
        ("compute", 4.01),
        ("communication", float("nan")),
        ("host_overhead_s", -1e-9),
        ("host_overhead_s", 0.26),
        ("fixed_bytes", -900_000_001),
        ("fragmentation", 3.5),
    ],
)
def test_factors_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Factors.model_validate({name: value})


def test_a_file_with_a_factor_out_of_range_is_refused_with_its_place(tmp_path: Path) -> None:
    data = json.loads(calibration_text(some()))
    data["factors"]["compute"] = 40
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DocumentInvalid) as caught:
        read_calibration(path)
    assert "/factors/compute" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"framework": "x"}', '{"a": NaN}', "null"])
def test_damaged_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(DocumentInvalid):
        read_calibration(path)


def test_a_stored_calibration_is_found_by_its_beginning_and_never_overwritten(tmp_path: Path) -> None:
    first = some(created_at="2026-01-01T00:00:00+00:00")
    path, new = keep(first, tmp_path / "calibrations")
    assert new
    again, new = keep(some(created_at="2027-01-01T00:00:00+00:00"), tmp_path / "calibrations")
    assert (again, new) == (path, False)
    assert find_calibration(first.calibration_id[:10], path.parent) == first
    keep(some(1.5, "2026-06-01T00:00:00+00:00"), path.parent)
    assert [each.factors.compute for each in stored_calibrations(path.parent)] == [1.25, 1.5]


@pytest.mark.parametrize("prefix", ["", "*", "../x", "ffffffff", "zz"])
def test_what_is_not_stored_is_not_found(tmp_path: Path, prefix: str) -> None:
    keep(some(), tmp_path)
    with pytest.raises(NotFound):
        find_calibration(prefix, tmp_path)


def test_a_problem_without_a_calibration_keeps_its_id() -> None:
    problem = random_problem(3)
    data = problem.model_dump(mode="json")
    assert "calibration" not in data
    assert Problem.model_validate(data) == problem
    with_one = problem.model_copy(
        update={"calibration": applied(Factors(compute=1.5), problem.cluster.pools[0].device.name)}
    )
    assert with_one.problem_id != problem.problem_id
    assert Problem.model_validate(with_one.model_dump(mode="json")) == with_one


def test_a_calibration_of_another_device_is_refused() -> None:
    cluster = load_cluster("dgx-h100", 8)
    with pytest.raises(DocumentInvalid, match="a100"):
        hardware_of(cluster, "bf16", None, applied(Factors(compute=1.5), "a100-sxm4-80gb"))
    device = cluster.pools[0].device.name
    assert hardware_of(cluster, "bf16", None, applied(Factors(compute=1.5), device)).factors.compute == 1.5
    assert hardware_of(cluster, "bf16").factors == NEUTRAL


def test_only_changed_factors_are_named() -> None:
    assert Factors().changed() == {}
    assert Factors(compute=1.5, fixed_bytes=7).changed() == {"compute": 1.5, "fixed_bytes": 7}


def test_the_left_out_spread_replaces_the_prior_of_a_framework() -> None:
    breakdown = {"compute": 8.0, "tp": 1.0, "pp_bubble": 1.0}
    tight, wide = (step_sigma(breakdown, None, sigma) for sigma in (0.02, 0.4))
    assert tight < step_sigma(breakdown) < wide
    low, high = step_interval_s(breakdown, None, 0.1)
    sigma = step_sigma(breakdown, None, 0.1)
    assert high / 10.0 == pytest.approx(10.0 / low) == pytest.approx(2.718281828 ** (Z * sigma))
    measured = {"compute": 0.0, "network": 0.0}
    assert step_sigma({"compute": 10.0}, measured, 0.07) == pytest.approx(0.07)
