"""What a plan of an encoder-decoder, or of a denoiser, assumes about the second sequence."""

from __future__ import annotations

from planner.model.denoiser import DenoiserSpec
from planner.model.flops import source_tokens
from planner.question.problem import Problem, Workload


def source_notes(problem: Problem) -> tuple[str, ...]:
    """How many tokens the encoder reads, and why that many; nothing for a model without one."""
    model, workload = problem.model, problem.workload
    if model.denoiser is not None:
        return _of_denoiser(model.denoiser, workload)
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


def _of_denoiser(denoiser: DenoiserSpec, workload: Workload) -> tuple[str, ...]:
    tokens = workload.source_length or denoiser.text_tokens
    why = "as the workload's source_length says" if workload.source_length else "as its pipeline takes"
    where = "counted in the sequence" if denoiser.text_in_sequence else "beside the sequence"
    return (
        f"a sample has {tokens:,} text tokens, {why}, {where}",
        "latents and text states are made beforehand: neither VAE nor text encoder runs or stands on these devices",
    )
