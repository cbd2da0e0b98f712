"""``--sample FRAMESxHEIGHTxWIDTH``: the tokens of one picture or video of a diffusion transformer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.cli.workload_flags import WorkloadFlags
    from planner.model.spec import ModelSpec

_FORM = "give frames, height and width in pixels, such as 81x480x832; 1x1024x1024 for a picture"


def sample_tokens(model: ModelSpec, text: str, text_tokens: int | None = None) -> int:
    """``sequence_length`` of such a sample, with ``text_tokens`` of text (None: as many as the pipeline pads to).

    Raises DocumentInvalid.
    """
    if model.denoiser is None:
        what = f"{model.name} reads tokens: only a diffusion transformer has samples of pixels"
        raise DocumentInvalid(what, where="--sample", hint="use --sequence-length")
    words = text.lower().split("x")
    if len(words) != 3 or not all(word.isdecimal() and len(word) < 7 for word in words):
        raise DocumentInvalid(f"{text[:40]!r} is no sample", where="--sample", hint=_FORM)
    frames, height, width = map(int, words)
    return model.denoiser.sample_tokens(frames, height, width, text_tokens)


def counted(work: WorkloadFlags, model: ModelSpec) -> WorkloadFlags:
    """The flags with the sequence that a sample makes.  Raises DocumentInvalid."""
    if work.sample is None:
        return work
    if work.sequence_length is not None:
        raise DocumentInvalid("a sample has one length", where="--sample --sequence-length", hint="drop one of the two")
    return replace(work, sequence_length=sample_tokens(model, work.sample, work.source_length), sample=None)
