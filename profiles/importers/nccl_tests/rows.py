"""One row of an nccl-tests table: read from the right, because the columns on the left vary.

    size count type [redop] [root] | time algbw busbw err | time algbw busbw err [extra ...]

A row with one block is out-of-place or in-place by the column under which it is printed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from profiles.importers.nccl_tests.columns import Columns
from profiles.importing.dtype_names import element_bytes
from profiles.importing.number_cells import finite_number, shown
from profiles.importing.ranks_of_bandwidth import RatioBounds, ratio_bounds

_START = re.compile(r"[\s>|]*(-?\d{1,19}\s[\s|]*-?\d{1,19}\s[\s|]*[A-Za-z]\w*)(?=[\s|]|$)")
_STAMP = re.compile(r"\s\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$")
_TUNED = re.compile(r"\s([A-Za-z][A-Za-z_]*\d*)\s+([A-Za-z][A-Za-z_]*\d*)\s+(\d{1,4})\s*$")
_WORD = re.compile(r"[A-Za-z]\w*")
_TYPE = re.compile(r"[\s|](?:u?int(?:8|32|64)|half|float|double|bfloat16|char|int|f8e\dm\d|fp8_e\dm\d)[\s|]")
_ROOT = re.compile(r"-?\d{1,9}")


class RowInvalid(ValueError):
    """A line that is a row of the table but cannot be used."""


@dataclass(frozen=True, slots=True)
class Block:
    """One measurement: out-of-place or in-place.  Bandwidths as printed."""

    time: float
    algbw: float
    busbw: float
    error: str
    bounds: RatioBounds | None
    per_iteration: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One size.  ``time`` of its blocks is in the table's own unit."""

    line: int
    size: int
    count: int
    dtype: str
    redop: str
    root: int | None
    out_of_place: Block | None
    in_place: Block | None
    extras: dict[str, str] = field(default_factory=dict)
    iterations: int | None = None
    """Of this row, where the report says it row by row."""

    @property
    def blocks(self) -> list[Block]:
        """The measurements that are there."""
        return [block for block in (self.out_of_place, self.in_place) if block is not None]

    @property
    def parts(self) -> int | None:
        """Size over counted elements: ranks for collectives that count per rank, 1 for the others; None = unknown."""
        element = element_bytes(self.dtype)
        if not element or self.count <= 0 or self.size % (self.count * element):
            return None
        return self.size // (self.count * element)


def looks_like_row(text: str) -> bool:
    """Whether a line is meant as a row: size, count and a known number format, also where one of them is spoilt."""
    if not _TYPE.search(text):
        return False
    words = text.replace("|", " ").lstrip("> ").split()
    if len(words) < 6:
        return False
    if element_bytes(words[2]) is not None and words[2] != "int":
        return words[0].lstrip("-").isdigit() or words[1].lstrip("-").isdigit()
    return element_bytes(words[1]) is not None and words[0].isdigit() and words[-1][0].isdigit()


def starts_row(text: str) -> list[str] | None:
    """Size, count, type (redop, root) of a line that holds the left half of a row, whatever follows; else None.

    The tool prints the left half first and the measurements when they are there: other processes may write between.
    """
    match = _START.match(text)
    if match is None:
        return None
    words = match.group(1).replace("|", " ").split()
    if element_bytes(words[2]) is None:
        return None
    rest = text[match.end() :].split()
    if rest and _WORD.fullmatch(rest[0]) and rest[0] in ("sum", "prod", "max", "min", "avg", "mulsum", "none"):
        words.append(rest.pop(0))
    if rest and (root := re.match(r"-?\d{1,9}(?=\D|$)", rest[0])) and "." not in rest[0]:
        words.append(root.group())
    return words


def parse_row(line: int, text: str, columns: Columns) -> Row | None:
    """The row in a line; None for a line that is none.  Raises RowInvalid for a row that is damaged."""
    if not (_START.match(text) or looks_like_row(text)):
        return None
    known = looks_like_row(text)
    words = text.replace("|", " ").lstrip("> ").split()
    words, extras = _without_extras(text, words, columns)
    try:
        return _row(line, text, words, extras, columns)
    except RowInvalid:
        if known:
            raise
        return None


def _row(line: int, text: str, words: list[str], extras: dict[str, str], columns: Columns) -> Row:
    width = len(columns.block)
    for num_blocks in (2, 1) if columns.num_blocks == 2 else (1,):
        left, right = words[3 : len(words) - width * num_blocks], words[len(words) - width * num_blocks :]
        if len(words) < 3 + width * num_blocks or not _left_fits(left, columns):
            continue
        size, count = _natural(words[0], "size"), _natural(words[1], "count")
        blocks = [_block(right[index * width :][:width], columns) for index in range(num_blocks)]
        first, second = (blocks[0], blocks[1]) if num_blocks == 2 else _placed(text, blocks[0], columns)
        element = element_bytes(words[2])
        if element and size < count * element:
            raise RowInvalid(f"{count} elements of {words[2]} do not fit into {size} bytes")
        redop = next((word for word in left if _WORD.fullmatch(word)), "")
        root = next((int(word) for word in left if _ROOT.fullmatch(word)), None)
        return Row(line, size, count, words[2], redop, root, first, second, extras)
    expected = 3 + columns.has_redop + columns.has_root + width * columns.num_blocks
    cut = ": was the line cut off?" if len(words) < expected else ""
    raise RowInvalid(f"{len(words)} columns where the header has {expected}{cut}")


def _without_extras(text: str, words: list[str], columns: Columns) -> tuple[list[str], dict[str, str]]:
    """Split off what follows the measurements: a time stamp, or the algorithm, protocol and channels."""
    if _STAMP.search(text):
        return words[:-2], {"timestamp": " ".join(words[-2:])}
    tuned = _TUNED.search(text)
    if tuned and not columns.extras:
        return words[:-3], {"algo": tuned.group(1), "proto": tuned.group(2), "nchannels": tuned.group(3)}
    names = columns.extras
    if names and len(words) >= 3 + columns.num_extra_words + len(columns.block) * columns.num_blocks:
        cells = words[-len(names) :]
        return words[: -len(names)], dict(zip(names, cells, strict=True))
    return words, {}


def _left_fits(left: list[str], columns: Columns) -> bool:
    """Whether the words between type and times are a redop and a root; old versions leave a blank redop."""
    kinds = ["redop" if _WORD.fullmatch(word) else "root" if _ROOT.fullmatch(word) else "?" for word in left]
    if columns.has_root:
        return kinds in (["redop", "root"] if columns.has_redop else ["root"], ["root"])
    return kinds in ([], ["redop"])


def _placed(text: str, block: Block, columns: Columns) -> tuple[Block | None, Block | None]:
    """Which of the two measurements is the only one of a row?  The one under whose heading it stands."""
    if columns.num_blocks == 2 and len(columns.time_ends) == 2:
        last_word_end = len(text.rstrip())
        if last_word_end > columns.time_ends[1]:
            return None, block
        return block, None
    return (None, block) if columns.only_in_place else (block, None)


def _block(words: list[str], columns: Columns) -> Block:
    named = dict(zip(columns.block, words, strict=True))
    time = _number(named[columns.block[0]], "time")
    algbw, busbw = _number(named["algbw"], "algbw"), _number(named["busbw"], "busbw")
    error = next((named[name] for name in ("#wrong", "wrong", "error", "res", "delta") if name in named), "N/A")
    if error != "N/A":
        wrong = _number(error, "the count of wrong elements" if columns.counts_wrong else "error", allow_nan=True)
        if columns.counts_wrong and (not math.isfinite(wrong) or wrong != int(wrong)):
            raise RowInvalid(f"{shown(error)} is not a count of wrong elements")
    spread = {
        name.rstrip("%"): _number(named[name], name)
        for name in ("i_min", "i_max", "i_p99", "i_cv%", "cv%")
        if name in named
    }
    return Block(time, algbw, busbw, error, ratio_bounds(named["algbw"], named["busbw"]), spread)


def _natural(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RowInvalid(f"{name} is {shown(text)}, not a whole number from 0")
    return int(text)


def _number(text: str, name: str, *, allow_nan: bool = False) -> float:
    if allow_nan and text.casefold().lstrip("-") in ("nan", "inf"):
        return math.nan
    try:
        value = finite_number(text)
    except ValueError as error:
        raise RowInvalid(f"{name}: {error}") from None
    if value < 0:
        raise RowInvalid(f"{name} is {shown(text)}; it cannot be negative")
    return value
