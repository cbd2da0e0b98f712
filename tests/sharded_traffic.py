"""What one step of a sharding plan sends: every resharding of the runtime with its collectives.

The runtime moves tensors with one function, ``placed``; it is watched where operators, gradients, updates, changed
buffers and the loss call it.  What goes through c10d outside of it is left over in ``unexplained``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from planner.backends.native.trainer.operator_sharding import operator_run, sharded_step
from planner.backends.native.trainer.operator_sharding.placements import placed, words_of
from planner.shard.placement import layout_of
from planner.shard.redistribution import redistribution_steps
from planner.shard.sharding_plan import ShardingPlan
from tests.recorded_collectives import RecordedCollectives

Record = dict[str, Any]
WATCHED = {"operators": operator_run, "step": sharded_step}


class StepTraffic:
    """Records of every resharding: ``operators`` (their inputs), ``step`` (results, then updates), in order."""

    def __init__(self, plan: ShardingPlan, mesh: DeviceMesh) -> None:
        self.recorder = RecordedCollectives()
        self.axes = {
            tuple(dist.get_process_group_ranks(mesh.get_group(number))): axis.name
            for number, axis in enumerate(plan.mesh)
            if axis.size > 1
        }
        self.records: dict[str, list[Record]] = {name: [] for name in WATCHED}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While a step runs."""
        try:
            for name, module in WATCHED.items():
                setattr(module, "placed", self._watcher(self.records[name]))  # noqa: B010  # a module's own name
            with self.recorder:
                yield
        finally:
            for module in WATCHED.values():
                setattr(module, "placed", placed)  # noqa: B010

    def written(self) -> Record:
        """All of it as plain data."""
        explained = sum(len(record["calls"]) for records in self.records.values() for record in records)
        return {**self.records, "unexplained": len(self.recorder.calls) - explained}

    def _watcher(self, records: list[Record]) -> Any:
        def watched(tensor: DTensor, words: Sequence[str]) -> DTensor:
            before = len(self.recorder.calls)
            moved = placed(tensor, words)
            calls = [
                [call.operation, self.axes[call.ranks], call.payload_bytes] for call in self.recorder.calls[before:]
            ]
            size = tensor.numel() * tensor.element_size()
            records.append({"held": words_of(tensor), "needed": list(words), "size_bytes": size, "calls": calls})
            return moved

        return watched


def expected_calls(record: Record, plan: ShardingPlan) -> list[list[Any]] | None:
    """Operation, axis and payload (the larger side) of each collective that the plan prices; None = not priced.

    On gloo DTensor's all-to-all is a gather and a cut.
    """
    sizes, names = tuple(axis.size for axis in plan.mesh), [axis.name for axis in plan.mesh]
    steps = redistribution_steps(layout_of(record["held"]), layout_of(record["needed"]), sizes)
    if steps is None:
        return None
    calls: list[list[Any]] = []
    for step in steps:
        local_bytes = record["size_bytes"] // step.parts
        if step.kind in ("all_gather", "all_to_all"):
            calls.append(["all_gather", names[step.axis], local_bytes * sizes[step.axis]])
        elif step.kind != "slice":
            calls.append([step.kind, names[step.axis], local_bytes])
    return calls
