"""How long each stage of the pipeline computes for one micro-batch: measured around torch's own calls of a chunk.

Waiting for other stages is not in it, so the slowest stage is the one that sets the pace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

from planner.backends.native.trainer.mesh import Meshes

CALLS = ("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk")
"""What torch's schedules call on a stage (torch 2.13.0 distributed/pipelining/stage.py)."""


class StageClock:
    """Seconds that the chunks of this rank compute: device time, or the process's processor time without devices.

    Processor time, because ranks that share a machine take turns on its cores.
    """

    def __init__(self, stages: Sequence[Any], device: torch.device) -> None:
        self.device = device
        self._processor_s = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        for stage in stages:
            for name in CALLS:
                setattr(stage, name, self._timed(getattr(stage, name)))

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def timed(*words: Any, **named: Any) -> Any:
            if self.device.type == "cuda":
                begin, end = _event(), _event()
                begin.record()
                made = call(*words, **named)
                end.record()
                self._events.append((begin, end))
                return made
            start_s = time.process_time()
            made = call(*words, **named)
            self._processor_s += time.process_time() - start_s
            return made

        return timed

    def _taken_s(self) -> float:
        """Seconds since it was asked last; the device has finished."""
        taken_s: float = self._processor_s + sum(begin.elapsed_time(end) for begin, end in self._events) / 1e3
        self._processor_s, self._events = 0.0, []
        return taken_s

    def microbatch_s(self, meshes: Meshes) -> tuple[float, ...]:
        """Seconds of a micro-batch of the last step, slowest rank of each stage; nothing without a pipeline."""
        strategy = meshes.strategy
        if strategy.pp == 1:
            return ()
        stages = torch.zeros(strategy.pp, dtype=torch.float64, device=self.device)
        stages[meshes.here.pp] = self._taken_s() / strategy.num_microbatches
        dist.all_reduce(stages, dist.ReduceOp.MAX)
        return tuple(stages.tolist())


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
