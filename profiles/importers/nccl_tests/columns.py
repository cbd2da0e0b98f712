"""The columns of an nccl-tests table, from its header, which every version since 2.0 prints.

    #  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong

Known changes: 2.0 to 2.12 leave ``redop`` / ``root`` out where the collective has none and call the last column of a
block ``error`` (largest difference, a float) instead of ``#wrong`` (a count); releases of 2017 and 2018 print
``bytes N type op time algbw busbw res`` with the time in milliseconds and no line of units; ``-I`` (2.19) adds
``i_min i_max i_p99 i_cv%`` and ``#bitdiff`` to each block; ``-C`` prints ``cputime``; a time stamp or rccl's
``algo proto nchannels`` may follow.  Source: NVIDIA/nccl-tests src/common.cu, src/util.cu; ROCm/rccl-tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TIMES = ("time", "cputime")
_CHECKS = ("#wrong", "wrong", "error", "res", "delta", "#bitdiff")
_SPREAD = ("i_min", "i_max", "i_p99", "i_cv%", "cv%")
_IN_BLOCK = frozenset(("algbw", "busbw", *_CHECKS, *_SPREAD))
_UNIT_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_UNIT = re.compile(r"\((s|ms|us|ns)\)")


@dataclass(frozen=True, slots=True)
class Columns:
    """The layout of one table.  ``block`` names the columns of the out-of-place part, and of the in-place part."""

    block: tuple[str, ...] = ("time", "algbw", "busbw", "#wrong")
    num_blocks: int = 2
    extras: tuple[str, ...] = ()
    has_redop: bool = True
    has_root: bool = True
    unit_s: float = 1e-6
    unit_printed: bool = False
    time_ends: tuple[int, ...] = ()
    """Where the word ``time`` of each block ends in the header line: numbers are right-aligned under it."""
    only_in_place: bool = False

    @property
    def cpu_time(self) -> bool:
        """Whether the times are those of the launching processor, not of the collective."""
        return self.block[0] == "cputime"

    @property
    def counts_wrong(self) -> bool:
        """Whether the last column of a block counts wrong elements (otherwise: the largest difference)."""
        return any(name in ("#wrong", "wrong") for name in self.block)

    @property
    def num_extra_words(self) -> int:
        """Words after the blocks: a time stamp is two of them."""
        return sum(2 if name == "timestamp" else 1 for name in self.extras)


UNKNOWN = Columns()
"""The layout since 2.13, for rows whose header was cut away."""


def columns_of_header(text: str) -> Columns | None:
    """The layout that a header line declares; None for any other line."""
    plain = text.replace("|", " ")
    if "algbw" not in plain or "busbw" not in plain:
        return None
    matches = list(re.finditer(r"[^\s#]+|#\w+", plain))
    words = [match.group() for match in matches]
    starts = [index for index, word in enumerate(words) if word in _TIMES]
    if not starts or len(starts) > 2 or not _begins_with(words, starts[0]):
        return None
    left = words[: starts[0]]
    block = _block(words, starts[0])
    last = _block(words, starts[-1])
    if block[1:3] != ("algbw", "busbw") or len(block) != len(last):
        return None
    early = "bytes" in left
    return Columns(
        block=block,
        num_blocks=len(starts),
        extras=tuple(words[starts[-1] + len(last) :]),
        has_redop="redop" in left or "op" in left,
        has_root="root" in left,
        unit_s=1e-3 if early else 1e-6,
        time_ends=tuple(matches[index].end() for index in starts),
    )


def unit_of_line(text: str) -> float | None:
    """Seconds of one unit of time in the line of units under the header; None for any other line."""
    if not re.match(r"[\s>|#]*\(B\)\s", text) or "B/s)" not in text:
        return None
    match = _UNIT.search(text)
    return _UNIT_S[match.group(1)] if match else None


def _begins_with(words: list[str], until: int) -> bool:
    left = words[:until]
    for first, second in (("size", "count"), ("bytes", "N")):
        if first in left and second in left and "type" in left:
            return left.index(first) < left.index(second) < left.index("type")
    return False


def _block(words: list[str], start: int) -> tuple[str, ...]:
    end = start + 1
    while end < len(words) and words[end] in _IN_BLOCK:
        end += 1
    return tuple(words[start:end])
