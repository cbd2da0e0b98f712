"""Placements on the axes of a mesh: small integers inside, words in documents.

    code     word            each rank of the axis holds
    0        replicate       the whole tensor
    d + 1    shard:d         an equal, contiguous part of dim d
    -1       partial:sum     a term of the sum          (-2 avg, -3 max, -4 min)

A *layout* is one code per mesh axis, outermost first.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import DocumentInvalid

Code = int
Layout = tuple[int, ...]

REPLICATE = 0
PARTIAL_KINDS = ("sum", "avg", "max", "min")


def shard(dim: int) -> Code:
    """The code of a tensor sharded on ``dim``."""
    return dim + 1


def is_shard(code: Code) -> bool:
    """Whether ranks of the axis hold parts of a dim."""
    return code > 0


def is_partial(code: Code) -> bool:
    """Whether ranks of the axis hold terms that are still to be reduced."""
    return code < 0


def word_of(code: Code) -> str:
    """``shard:1``, ``partial:sum`` or ``replicate``."""
    if code > 0:
        return f"shard:{code - 1}"
    return f"partial:{PARTIAL_KINDS[-code - 1]}" if code < 0 else "replicate"


def code_of(word: str) -> Code:
    """The code of a word.  Raises DocumentInvalid."""
    kind, _, rest = word.partition(":")
    if word == "replicate":
        return REPLICATE
    if kind == "shard" and rest.isdigit():
        return shard(int(rest))
    if kind == "partial" and rest in PARTIAL_KINDS:
        return -1 - PARTIAL_KINDS.index(rest)
    raise DocumentInvalid(
        f"{word!r} is no placement", where="placements", hint="write replicate, shard:DIM or partial:sum|avg|max|min"
    )


def words_of(layout: Layout) -> tuple[str, ...]:
    """A layout in words."""
    return tuple(word_of(code) for code in layout)


def layout_of(words: Sequence[str]) -> Layout:
    """Words as a layout."""
    return tuple(code_of(word) for word in words)


def short(layout: Layout) -> str:
    """A layout in brief: ``S0 R`` or ``S1 P``, as in the tables that people read."""
    return " ".join(f"S{code - 1}" if code > 0 else "P" if code < 0 else "R" for code in layout)
