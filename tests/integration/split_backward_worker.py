"""Two steps of one of torch's pipeline schedules over tiny layers, compiled in place as torchtitan does, or eager.

torchrun --nproc-per-node=2 split_backward_worker.py SCHEDULE eager|compiled
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class

NUM_MICROBATCHES = 4
IN_A_V = ("ZBVZeroBubble", "DualPipeV")


class Layer(torch.nn.Module):
    """A residual MLP, in a class of its own: the compiler skips torch's containers."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """One branch beside the residual."""
        out: torch.Tensor = given + self.down(torch.nn.functional.silu(self.up(given)))
        return out


def _stage(index: int, num_stages: int, *, compiled: bool) -> PipelineStage:
    layer = Layer()
    if compiled:
        # As torchtitan 0.3.0 distributed/compile.py:70; this backend needs no C++ compiler.
        layer.compile(backend="aot_eager", fullgraph=True)
    return PipelineStage(layer, index, num_stages, torch.device("cpu"))


def main(name: str, compiled: bool) -> None:
    """Raises what the schedule raises."""
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    indices = (rank, 2 * world - 1 - rank) if name in IN_A_V else (rank, rank + world)
    stages = [_stage(index, 2 * world, compiled=compiled) for index in indices]

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return ((output - target) ** 2).mean()

    schedule: Any = get_schedule_class(name)
    pipeline = schedule(stages, NUM_MICROBATCHES, loss_fn=loss)
    tokens = torch.randn(2 * NUM_MICROBATCHES, 16)
    for _ in range(2):
        inputs = (tokens,) if 0 in indices else ()
        targets = {"target": tokens} if 2 * world - 1 in indices else {}
        pipeline.step(*inputs, **targets)
    dist.destroy_process_group()
    print("trained")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "compiled")
