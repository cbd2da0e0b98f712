"""What a plan of an encoder-decoder assumes about the encoder's sequence."""

from __future__ import annotations

from planner.model.flops import source_tokens
from planner.question.problem import Problem


def source_notes(problem: Problem) -> tuple[str, ...]:
    """How many tokens the encoder reads, and why that many; nothing for a model without one."""
    model, workload = problem.model, problem.workload
    if model.encoder is None:
        return ()
    tokens = source_tokens(model, workload.sequence_length, workload.source_length)
    if model.encoder.sequence_length is not None:
        why = "as this model always does"
    elif workload.source_length is not None:
        why = "as the workload's source_length says"
    else:
        why = "as many as the decoder (the workload says no source_length)"
    return (
        f"the encoder reads {tokens:,} tokens a sample, {why}; tokens per second are the decoder's",
        "the encoder and the decoder run one after the other on every device: neither is a pipeline stage of its own",
    )
