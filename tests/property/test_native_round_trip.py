"""Every plan of the native trainer's space is one that its file says and gives back."""

from __future__ import annotations

import pytest

from tests.drawn_from_space import drawn_plans, question
from tests.round_trip import assert_comes_back


@pytest.mark.parametrize(
    ("model", "devices"), [("llama-3.1-8b", 1), ("llama-3.1-8b", 16), ("mixtral-8x7b", 32), ("llama-3.1-70b", 64)]
)
def test_every_plan_of_the_space_is_written_and_comes_back(model: str, devices: int) -> None:
    problem = question(model, "dgx-h200", devices, samples_a_device=6)
    plans = list(drawn_plans(problem, "native", wanted=12))
    for plan in plans:
        assert_comes_back(plan)
        s = plan.chosen()
        # What the trainer does not overlap is not priced as overlapped.
        assert not s.overlap_tp
        assert not s.overlap_ep
        assert s.pp == 1 or not s.overlap_grad_reduce
    assert len(plans) >= 6 or devices == 1
