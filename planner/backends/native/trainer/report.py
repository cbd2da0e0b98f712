"""The report of a step: loss, gradient norm, time, rate and peak memory, one JSON line a step."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.distributed as dist

from planner.backends.native.trainer.mesh import Meshes


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step, the same on every rank."""

    step: int
    loss: float
    gradient_norm: float
    step_time_s: float
    tokens_per_s: float
    peak_memory_bytes: tuple[int, ...] = ()
    """Worst rank of each pipeline stage."""
    memory_kind: Literal["device_allocated", "process_resident"] = "process_resident"
    stage_microbatch_s: tuple[float, ...] = ()
    """Computing of each pipeline stage for a micro-batch, both passes, waiting left out; see ``StageClock``."""

    def json_line(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


def write_record(path: Path, ranks: Sequence[StepRecord], single_process: Sequence[StepRecord]) -> None:
    """Write the steps of both runs as one JSON object."""
    both = {"ranks": [asdict(each) for each in ranks], "single_process": [asdict(each) for each in single_process]}
    path.write_text(json.dumps(both), encoding="utf-8")


class Stopwatch:
    """Elapsed wall time of the last ``measure`` block, device work included."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.elapsed_s = 0.0

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Time a block."""
        self._wait()
        start_s = time.perf_counter()
        yield
        self._wait()
        self.elapsed_s = time.perf_counter() - start_s

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def peak_memory_by_stage(meshes: Meshes, device: torch.device) -> tuple[int, ...]:
    """Bytes allocated at most on a device (resident in the process, without devices), worst rank of each stage."""
    if device.type == "cuda":
        here = torch.cuda.max_memory_allocated(device)
    else:
        here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    stages = torch.zeros(meshes.strategy.pp, dtype=torch.int64, device=device)
    stages[meshes.here.pp] = here
    dist.all_reduce(stages, dist.ReduceOp.MAX)
    return tuple(stages.tolist())
