"""The reference losses: the whole model in one process, without any parallel machinery, for comparison."""

from __future__ import annotations

import torch
from torch import nn

from planner.backends.native.trainer.attention import whole_sequence_attention
from planner.backends.native.trainer.data import check_tokens, token_source
from planner.backends.native.trainer.initialize import initialize
from planner.backends.native.trainer.loss import TokenLoss
from planner.backends.native.trainer.model import on_meta, whole_model
from planner.backends.native.trainer.optimizer import build_optimizer
from planner.backends.native.trainer.report import StepRecord, Stopwatch
from planner.backends.native.trainer.settings import TrainSettings
from planner.plan.plan import Plan


def reference_records(plan: Plan, settings: TrainSettings, device: torch.device) -> list[StepRecord]:
    """Train the plan's model on the plan's samples in plain fp32 torch; the device must hold all of it."""
    model, workload = plan.problem.model, plan.problem.workload
    length, batch = workload.sequence_length, plan.chosen().global_batch_size
    chunk = on_meta(model, whole_model(model))
    chunk.to_empty(device=device)
    chunk.tie()
    initialize(chunk, device, settings.seed)
    chunk.place(torch.arange(length, device=device), whole_sequence_attention)
    optimizer = build_optimizer([chunk], settings)
    source = token_source(settings.data, length, model.vocab_size, settings.seed)
    loss_of = TokenLoss(model.vocab_size, batch)
    watch, records = Stopwatch(device), []
    for step in range(settings.steps):
        first = step * batch
        samples = check_tokens(source.samples(range(first, first + batch)), batch, length, model.vocab_size).to(device)
        total = 0.0
        with watch.measure():
            for sample in torch.split(samples, 1):
                loss = loss_of(chunk(sample[:, :-1]), sample[:, 1:])
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.item()
            limit = settings.clip_gradient_norm or float("inf")
            norm = nn.utils.clip_grad_norm_(chunk.parameters(), limit).item()
            optimizer.step()
            optimizer.zero_grad()
        records.append(StepRecord(step, total, norm, watch.elapsed_s, batch * length / watch.elapsed_s))
    return records


def worst_differences(records: list[StepRecord], expected: list[StepRecord]) -> tuple[float, float]:
    """Largest relative differences, of the loss and of the gradient norm, over all steps."""
    pairs = list(zip(records, expected, strict=True))
    loss = max(abs(record.loss - other.loss) / abs(other.loss) for record, other in pairs)
    norm = max(abs(record.gradient_norm - other.gradient_norm) / abs(other.gradient_norm) for record, other in pairs)
    return loss, norm
