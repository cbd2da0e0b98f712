"""``--sample FRAMESxHEIGHTxWIDTH``: the tokens of one picture or video of a diffusion transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.model.spec import ModelSpec


def sample_tokens(model: ModelSpec, text: object, text_tokens: int | None = None) -> int:
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
        raise DocumentInvalid(f"{str(text)[:40]!r} is no sample", where="--sample", hint=FORM) from error
    return model.denoiser.sample_tokens(*sides, text_tokens)
