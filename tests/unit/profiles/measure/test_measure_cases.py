"""Grids, cases and blocks: what is listed, in which order, and what is left out before anything runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("torch", reason="measuring needs the extra meshwright[torch]")

from profiles.errors import DocumentInvalid, NotFound
from profiles.measure.case import WantedShape
from profiles.measure.case_list import blocks_of, cases_of
from profiles.measure.device import MeasuredDevice, open_device
from profiles.measure.grid import MATMUL_SITES, ROW_ROUNDS, generic_grid, with_rows
from profiles.measure.grouped_matmul import rows_of_groups
from profiles.measure.matmul import matmul_cases
from profiles.measure.operators import KINDS, check_kinds
from profiles.measure.plan import MeasurePlan


@pytest.fixture(scope="module")
def cpu() -> MeasuredDevice:
    return open_device("cpu", flush_bytes=0)


ROWS = sorted(m for rows in ROW_ROUNDS for m in rows)


def test_the_full_grid_has_25_sites_and_rows_to_32768() -> None:
    rows = ROWS
    assert len(set(MATMUL_SITES)) == 25
    assert {
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        384,
        512,
        768,
        1024,
        1536,
        2048,
        3072,
        4096,
        6144,
        8192,
        16384,
        32768,
    } == set(rows)
    assert max(high / low for low, high in pairwise(rows)) <= 2
    grid = generic_grid("full", host=False)
    matmuls = {(shape.sizes["m"], shape.sizes["n"], shape.sizes["k"]) for shape in grid if shape.operator == "matmul"}
    assert matmuls == {(m, n, k) for m in rows for n, k in MATMUL_SITES}
    assert {shape.operator for shape in grid} == set(KINDS)


def test_the_grid_runs_from_coarse_to_fine() -> None:
    values = [shape.value for shape in generic_grid("full", host=False)]
    assert values == sorted(values)
    assert values[0] == 1


def test_a_models_sites_also_get_the_grids_rows() -> None:
    own = [WantedShape("matmul", "up", {"m": 4096, "n": 1000, "k": 500})]
    shapes = with_rows(own, "full")
    assert shapes[0] is own[0]
    assert sorted(shape.sizes["m"] for shape in shapes) == ROWS
    assert all((shape.sizes["n"], shape.sizes["k"], shape.name) == (1000, 500, "up") for shape in shapes)
    assert with_rows(own, "none") == own


def test_a_matmul_has_three_phases_of_one_shape() -> None:
    cases = matmul_cases(WantedShape("matmul", "up", {"m": 8, "n": 16, "k": 32}), "bf16")
    assert [(case.phase, case.detail["layout"]) for case in cases] == [
        ("forward", "TN"),
        ("dgrad", "NN"),
        ("wgrad", "NT"),
    ]
    assert {case.memory_bytes for case in cases} == {2 * (8 * 32 + 16 * 32 + 8 * 16)}


def test_fp8_is_one_failure_a_phase_and_the_rest_is_counted(cpu: MeasuredDevice) -> None:
    found = cases_of(MeasurePlan(grid="small", dtypes=("fp8",), only=("matmul",)), cpu)
    assert [case.phase for case, _ in found.impossible] == ["forward", "dgrad", "wgrad"]
    assert found.cases == []
    assert found.left_out == {"matmul: fp8 is not supported by this device": 9 * 3 - 3}


def test_what_does_not_fit_into_memory_is_left_out(cpu: MeasuredDevice) -> None:
    huge = WantedShape("matmul", "huge", {"m": 1 << 20, "n": 1 << 20, "k": 1 << 20})
    found = cases_of(MeasurePlan(shapes=(huge,), grid="none"), cpu)
    assert found.cases == []
    assert found.left_out == {"matmul: larger than the free memory allows": 3}


def test_a_models_shapes_come_before_the_grid(cpu: MeasuredDevice) -> None:
    own = WantedShape("norm", "rms_norm", {"num_tokens": 7, "hidden_size": 9})
    cases = cases_of(MeasurePlan(shapes=(own,), grid="small"), cpu).cases
    assert [case.shape for case in cases[:2]] == [own.sizes] * 2
    assert len({repr(case.identity()) for case in cases}) == len(cases)


def test_blocks_respect_count_and_memory() -> None:
    cases = matmul_cases(WantedShape("matmul", "up", {"m": 8, "n": 16, "k": 32}), "bf16") * 3
    assert [len(block) for block in blocks_of(cases, 4, 1e9)] == [4, 4, 1]
    assert [len(block) for block in blocks_of(cases, 4, 2.5 * cases[0].memory_bytes)] == [2, 2, 2, 2, 1]
    assert [len(block) for block in blocks_of(cases, 4, 1.0)] == [1] * 9


@pytest.mark.parametrize(("groups", "mean"), [(4, 64), (8, 1), (64, 100), (1, 5)])
def test_skewed_routing_keeps_the_rows(groups: int, mean: int) -> None:
    rows = rows_of_groups("power_law", groups, mean)
    assert sum(rows) == groups * mean
    assert min(rows) >= 1
    assert rows[0] == max(rows)
    assert rows_of_groups("balanced", groups, mean) == [mean] * groups


def test_shapes_and_plans_are_checked() -> None:
    with pytest.raises(ValueError, match="m = 0"):
        WantedShape("matmul", "up", {"m": 0})
    with pytest.raises(ValueError, match="wide"):
        WantedShape("matmul", "up", {"wide": 3})
    with pytest.raises(DocumentInvalid, match="int4"):
        MeasurePlan(dtypes=("int4",))
    for budget_s in (0.0, float("nan"), float("inf")):
        with pytest.raises(DocumentInvalid, match="no time"):
            MeasurePlan(time_budget_s=budget_s)
    with pytest.raises(NotFound) as unknown:
        check_kinds(("atention",), "--only")
    assert unknown.value.hint == "did you mean 'attention'?"
