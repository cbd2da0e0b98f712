"""``--sample FRAMESxHEIGHTxWIDTH``: the tokens of one picture or video of a diffusion transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.errors import DocumentInvalid

if TYPE_CHECKING:
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
