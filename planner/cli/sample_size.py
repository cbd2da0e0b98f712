"""``--sample FRAMESxHEIGHTxWIDTH``: the tokens of one picture or video of a diffusion transformer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.cli.workload_flags import WorkloadFlags
    from planner.model.spec import ModelSpec


def sample_tokens(model: ModelSpec, text: str, text_tokens: int | None = None) -> int:
    """``sequence_length`` of such a sample, with ``text_tokens`` of text (None: as many as the pipeline pads to).

    Raises DocumentInvalid.
    """
    from pydantic import TypeAdapter, ValidationError

    from planner.question.sample import FORM, Sample

    if model.denoiser is None:
        what = f"{model.name} reads tokens: only a diffusion transformer has samples of pixels"
        raise DocumentInvalid(what, where="--sample", hint="use --sequence-length")
    try:
        sides: tuple[int, int, int] = TypeAdapter(Sample).validate_python(text)
    except ValidationError as error:
        raise DocumentInvalid(f"{text[:40]!r} is no sample", where="--sample", hint=FORM) from error
    return model.denoiser.sample_tokens(*sides, text_tokens)


def counted(work: WorkloadFlags, model: ModelSpec) -> WorkloadFlags:
    """The flags with the sequence that a sample makes, where none is said.  Raises DocumentInvalid."""
    if work.sample is None or work.sequence_length is not None:
        return work
    return replace(work, sequence_length=sample_tokens(model, work.sample, work.source_length))
