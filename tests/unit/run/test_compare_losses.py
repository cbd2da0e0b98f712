from __future__ import annotations

import math

import pytest

from planner.backends.folders.tiny_run import StepLosses, compared, worst


def test_the_worst_step_counts() -> None:
    steps = compared([2.0, 4.0], [2.0, 5.0])
    assert [step.relative_difference for step in steps] == [0.0, pytest.approx(0.2)]
    assert worst(steps) == pytest.approx(0.2)


@pytest.mark.parametrize(("loss", "reference"), [(math.nan, 1.0), (1.0, math.nan), (math.inf, 1.0), (1.0, 0.0)])
def test_a_loss_that_is_no_number_never_agrees(loss: float, reference: float) -> None:
    assert StepLosses(loss, reference).relative_difference == math.inf


def test_missing_steps_are_not_overlooked() -> None:
    with pytest.raises(ValueError, match=r"longer|shorter"):
        compared([1.0, 2.0, 3.0][:1], [1.0, 2.0])
