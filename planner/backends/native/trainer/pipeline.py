"""Runs the chunks of one rank as a pipeline: torch's stages and schedules, cut where the plan says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.pipelining.stage import _PipelineStageBase

from planner.backends.native.trainer.data_parallel import prepare_backward
from planner.backends.native.trainer.loss import TokenLoss
from planner.backends.native.trainer.model import DecoderChunk
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import Strategy

SINGLE: dict[ScheduleName, type[PipelineScheduleSingle]] = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
SEVERAL: dict[ScheduleName, type[PipelineScheduleMulti]] = {
    "interleaved": ScheduleInterleaved1F1B,
    "zbv": ScheduleZBVZeroBubble,
    "dualpipev": ScheduleDualPipeV,
    "looped_bfs": ScheduleLoopedBFS,
    "interleaved_zb": ScheduleInterleavedZeroBubble,
    "zb_h1": ScheduleInterleavedZeroBubble,
}
"""torch's classes that take one chunk, and a list of chunks.  ZB-H1 is InterleavedZeroBubble over a list of one."""


class StepRunner(Protocol):
    """Forward and backward of all micro-batches of one step."""

    stages: Sequence[_PipelineStageBase]
    """torch's stages of this rank; none without a pipeline."""

    def step(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """[num_microbatches * micro_batch, local tokens] twice -> this rank's mean loss; 0 where it has no head."""
        ...


class SequentialRunner:
    """Without a pipeline: one micro-batch after the other, gradients accumulated."""

    def __init__(self, chunk: Any, loss: TokenLoss, strategy: Strategy) -> None:
        self.chunk = chunk
        self.loss = loss
        self.strategy = strategy
        self.stages: Sequence[_PipelineStageBase] = ()

    def step(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of the local samples."""
        total = torch.zeros((), device=tokens.device)
        parts = zip(
            tokens.chunk(self.strategy.num_microbatches), targets.chunk(self.strategy.num_microbatches), strict=True
        )
        for index, (inputs, wanted) in enumerate(parts):
            last = index == self.strategy.num_microbatches - 1
            prepare_backward([self.chunk], self.strategy.zero_stage, last=last)
            loss = self.loss(self.chunk(inputs), wanted)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total


class PipelineRunner:
    """One torch schedule over the chunks of this rank.

    torch reduces gradients once, after the last micro-batch; the loss is already divided by ``num_microbatches``.
    """

    def __init__(self, schedule: PipelineScheduleSingle | PipelineScheduleMulti, device: torch.device) -> None:
        self.schedule = schedule
        self.device = device
        stages = schedule._stages if isinstance(schedule, PipelineScheduleMulti) else [schedule._stage]
        self.stages: Sequence[_PipelineStageBase] = stages
        self.first = any(stage.is_first for stage in stages)
        self.last = any(stage.is_last for stage in stages)

    def step(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean loss of the local samples on the rank with the head, 0 elsewhere."""
        inputs = (tokens,) if self.first else ()
        losses: list[Tensor] = []
        if self.last:
            # Without return_outputs=False the schedule keeps the logits of every micro-batch.
            self.schedule.step(*inputs, target=targets, losses=losses, return_outputs=False)
        else:
            self.schedule.step(*inputs, return_outputs=False)
        return torch.stack(losses).sum().detach() if losses else torch.zeros((), device=self.device)


def hidden_shape(strategy: Strategy, sequence_length: int, hidden_size: int) -> tuple[int, int, int]:
    """What travels between stages: [micro-batch, tokens of this rank, hidden]."""
    split = strategy.cp * (strategy.tp if strategy.sp else 1)
    return strategy.micro_batch_size, sequence_length // split, hidden_size


def build_pipeline(
    chunks: Sequence[tuple[int, DecoderChunk]],
    strategy: Strategy,
    loss: TokenLoss,
    *,
    hidden: tuple[int, int, int],
    dtype: torch.dtype,
    device: torch.device,
    group: dist.ProcessGroup,
) -> PipelineRunner:
    """Make stages of (chunk index, module) pairs and the plan's schedule over them."""
    inner = torch.empty(hidden, dtype=dtype, device="meta", requires_grad=True)
    tokens = torch.empty((hidden[0], 1), dtype=torch.long, device="meta")
    stages: list[_PipelineStageBase] = []
    for index, module in chunks:
        last = index == strategy.num_chunks - 1
        stages.append(
            PipelineStage(
                module,
                index,
                strategy.num_chunks,
                device,
                # Given on purpose: without shapes torch runs an extra forward and backward to find them.
                input_args=tokens if index == 0 else inner,
                output_args=torch.empty((), device="meta", requires_grad=True) if last else inner,
                group=group,
            )
        )
    options: dict[str, Any] = {"loss_fn": loss, "scale_grads": False}
    schedule: PipelineScheduleSingle | PipelineScheduleMulti
    if strategy.schedule in SINGLE:
        schedule = SINGLE[strategy.schedule](stages[0], strategy.num_microbatches, **options)
    else:
        schedule = SEVERAL[strategy.schedule](stages, strategy.num_microbatches, **options)
    return PipelineRunner(schedule, device)
