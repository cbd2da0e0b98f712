"""Our orders equal, action by action, those that PyTorch's own schedule objects run.

The schedules are built without processes on torch's fake process group.  Mapping: torch FORWARD / FULL_BACKWARD /
BACKWARD_INPUT / BACKWARD_WEIGHT are our F / B / I / W; OVERLAP_F_B is its sub-actions, forward first; idle slots,
gradient reductions and communication are left out.  ZB-H1 is torch's InterleavedZeroBubble with one chunk a rank.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from planner.predict.schedule.action import Action, Kind, Order
from planner.predict.schedule.orders import build_order
from planner.strategy.schedules import V_SCHEDULES, ScheduleName, chunk_stages

torch = pytest.importorskip("torch")

TORCH_NAMES: dict[str, str] = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "zb_h1": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
    "looped_bfs": "LoopedBFS",
    "interleaved_zb": "InterleavedZeroBubble",
}
GROUPED: tuple[ScheduleName, ...] = ("interleaved", "interleaved_zb")
SINGLE = frozenset({"gpipe", "1f1b"})


@contextmanager
def fake_group(world_size: int) -> Iterator[None]:
    """A process group that needs no processes."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world_size)
        try:
            yield
        finally:
            dist.destroy_process_group()


def torch_order(schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int) -> Order:
    """Compute actions a rank of torch's schedule object."""
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import get_schedule_class

    mine = [
        chunk for chunk, rank in enumerate(chunk_stages(num_stages, vpp, v_placed=schedule in V_SCHEDULES)) if rank == 0
    ]
    with fake_group(num_stages):
        stages = [PipelineStage(torch.nn.Linear(1, 1), c, num_stages * vpp, torch.device("cpu")) for c in mine]
        built: Any = get_schedule_class(TORCH_NAMES[schedule])(
            stages[0] if schedule in SINGLE else stages,
            n_microbatches=num_microbatches,
            loss_fn=lambda output, target: output,
        )
        raw = built._get_pipeline_order() if schedule in SINGLE else built.pipeline_order
    return tuple(tuple(flatten(raw[rank])) for rank in range(num_stages))


def flatten(actions: list[Any]) -> Iterator[Action]:
    """Ours for torch's; idle slots and anything that is not compute vanish."""
    kinds = {kind.value: kind for kind in Kind}
    for action in actions:
        if action is None:
            continue
        if action.sub_actions:
            yield from flatten(list(action.sub_actions))
        elif action.computation_type.value in kinds:
            yield Action(kinds[action.computation_type.value], action.stage_index, action.microbatch_index)


CASES: list[tuple[ScheduleName, int, int, int, int]] = (
    [("gpipe", p, 1, m, 0) for p in (1, 2, 4, 8) for m in (1, 3, 8)]
    + [("zb_h1", p, 1, m, 0) for p in (2, 4, 8) for m in (p, 2 * p, 5 * p)]
    + [("zbv", p, 2, m, 0) for p in (1, 2, 3, 4, 8) for m in (1, p, 2 * p - 1, 2 * p, 3 * p + 1, 5 * p)]
    + [("dualpipev", p, 2, m, 0) for p in (1, 2, 3, 4, 8) for m in (2 * p, 2 * p + 1, 3 * p, 5 * p + 1)]
    + [("looped_bfs", p, v, m, 0) for p in (2, 4, 8) for v in (2, 3, 4) for m in (1, p, 2 * p + 1)]
    + [(name, p, v, m, p) for name in GROUPED for p in (2, 4, 8) for v in (2, 3, 4) for m in (p, 2 * p, 4 * p)]
    + [(name, *sizes) for name in GROUPED for sizes in ((4, 2, 10, 5), (4, 3, 15, 5), (3, 2, 4, 4))]
)


@pytest.mark.parametrize(("schedule", "num_stages", "vpp", "num_microbatches", "group"), CASES)
def test_order_equals_torch(
    schedule: ScheduleName, num_stages: int, vpp: int, num_microbatches: int, group: int
) -> None:
    # torch has no group argument: it takes m // (m // p) micro-batches a group, and the cases say so.
    assert build_order(schedule, num_stages, vpp, num_microbatches, group) == torch_order(
        schedule, num_stages, vpp, num_microbatches
    )


@pytest.mark.parametrize(("num_stages", "num_microbatches"), [(2, 2), (2, 7), (4, 4), (4, 9), (8, 8), (8, 32)])
def test_1f1b_equals_torch(num_stages: int, num_microbatches: int) -> None:
    """Equal but for one slip of torch 2.13: where a rank has no warm-up its listing starts forwards at micro-batch 1.

    ``Schedule1F1B._get_pipeline_order`` is a listing only; what it runs (``_step_microbatches``) starts at 0.
    """
    ours = build_order("1f1b", num_stages, 1, num_microbatches)
    theirs = torch_order("1f1b", num_stages, 1, num_microbatches)
    assert ours[:-1] == theirs[:-1]
    shifted = tuple(
        Action(a.kind, a.chunk, a.microbatch - 1) if a.kind is Kind.FORWARD and theirs[-1][0].microbatch == 1 else a
        for a in theirs[-1]
    )
    assert ours[-1] == shifted
