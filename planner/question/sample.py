"""One sample of a diffusion transformer: frames, height and width in pixels, written ``81x480x832`` or as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from profiles.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.model.spec import ModelSpec
    from planner.question.problem import Workload

FORM = "give frames, height and width in pixels, such as 81x480x832; 1x1024x1024 for a picture"
_LONGEST = 1_000_000
_Side = Annotated[int, Field(gt=0, lt=_LONGEST)]


def _read(value: Any) -> Any:
    """The three numbers of a text; everything else as it is."""
    if not isinstance(value, str):
        return value
    words = value.lower().split("x")
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() and len(word) < 7 for word in words):
        raise ValueError(f"{value[:40]!r} is no sample: {FORM}")
    return tuple(map(int, words))


Sample = Annotated[tuple[_Side, _Side, _Side], BeforeValidator(_read)]
"""Frames, height, width."""


def sample_text(sample: tuple[int, int, int]) -> str:
    """As people write it."""
    return "x".join(map(str, sample))


def of_a_sample(model: ModelSpec, workload: Workload) -> str | None:
    """What does not fit between the sample of a workload and its model or its length, with its JSON pointer."""
    sample = workload.sample
    if sample is None:
        return None
    if model.denoiser is None:
        return f"/workload/sample: {model.name} reads tokens; only a diffusion transformer has samples of pixels"
    try:
        tokens = model.denoiser.sample_tokens(*sample, workload.source_length)
    except DocumentInvalid as error:
        return f"/workload/sample: {error.what} ({error.where}): {error.hint}"
    if tokens != workload.sequence_length:
        said = f"a sample of {sample_text(sample)} makes {tokens:,} tokens, not {workload.sequence_length:,}"
        return f"/workload/sequence_length: {said}"
    return None
