"""Records of executed plans are no history: those of two schedules are repeated, with the same losses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.executed_plans.execution import executed
from benchmarks.executed_plans.published import chosen
from benchmarks.executed_plans.record import ran, read_record
from tests.warm_ranks.python import warm_python

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")


@pytest.fixture(scope="module")
def warm_ranks() -> Iterator[None]:
    """Ranks are forked from an interpreter that has imported torch and the trainer."""
    with warm_python(("torch.distributed.run", "planner.backends.native.trainer.train"), {}):
        yield


@pytest.mark.usefixtures("warm_ranks")
@pytest.mark.parametrize("place", range(len(chosen("native"))))
def test_a_record_of_the_native_trainer_is_repeated(place: int) -> None:
    candidate = chosen("native")[place]
    recorded = next(plan for plan in ran(read_record("native")) if plan["id"] == candidate.name)
    again = executed(candidate.name, candidate.plan)
    assert again["verdict"] == "ran", again
    assert again["values"] == recorded["values"]
    assert again["losses"] == pytest.approx(recorded["losses"], rel=1e-5)
