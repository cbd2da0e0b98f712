"""The NVTX ranges around a kernel's launch: a sweep over the ranges of each thread, in order of time.

Push/pop ranges of one thread nest, so the stack at the moment of the launch names them all; the innermost labels the
kernel, and any of them may say whether it is forward or backward.  Start/end ranges do not nest and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from profiles.importing.foreign_database import Database
from profiles.importing.redaction import Redactor
from profiles.observations.records import Phase

NVTX = "NVTX_EVENTS"
_PUSH_POP = (59, 70)
_MAX_DEPTH = 512
_LONGEST = 200
_REMEMBERED = 8192
"""Texts whose label is kept: most ranges repeat; with serial numbers in them none does."""
_SERIAL = re.compile(r",? ?\b(?:op_id|seq|input_op_ids|trace_id) ?= ?(?:\d+|\[[^=]*\])")
_SIZES = re.compile(r",? ?\bsizes ?= ?(\[.*\])")
_COUNTER = re.compile(r"(?i)\b(\w*(?:step|iter|iteration|batch|epoch))(s?[ _:#=]*)\d+")
_BACKWARD = re.compile(r"(?i)backward|\bbwd\b|_bwd\b")
_FORWARD = re.compile(r"(?i)forward|\bfwd\b|_fwd\b")
_STEP = re.compile(r"(?i)optimizer")


@dataclass(frozen=True, slots=True)
class RangeLabel:
    """A range without what makes every instance unique; ``sizes`` are the input shapes that emit_nvtx may print."""

    label: str
    sizes: str
    phase: Phase


@dataclass(slots=True)
class _Open:
    end: float
    text: str
    label: RangeLabel | None = None


class RangeSweep:
    """Answers ``at(thread, time)`` for launches that come ordered by thread and time."""

    def __init__(self, database: Database, redactor: Redactor) -> None:
        self._rows = _ordered_ranges(database)
        self._ahead = next(self._rows, None)
        self._thread: int | None = None
        self._stack: list[_Open] = []
        self._labels: dict[str, RangeLabel] = {}
        self._redactor = redactor

    def at(self, thread: int, time_ns: int) -> RangeLabel | None:
        """The innermost range of ``thread`` that is open at ``time_ns``; None outside all ranges."""
        if thread != self._thread:
            self._stack.clear()
            self._thread = thread
        while self._ahead is not None and (self._ahead[0], self._ahead[1]) <= (thread, time_ns):
            owner, start, end, text = self._ahead
            if owner == thread:
                self._close(start)
                if len(self._stack) < _MAX_DEPTH:
                    self._stack.append(_Open(end, text))
            self._ahead = next(self._rows, None)
        self._close(time_ns)
        return self._label() if self._stack else None

    def _close(self, time_ns: int) -> None:
        while self._stack and self._stack[-1].end < time_ns:
            self._stack.pop()

    def _label(self) -> RangeLabel:
        top = self._stack[-1]
        # What encloses a range does not change while it is open.
        if top.label is None:
            top.label = self._found_label(top.text)
        return top.label

    def _found_label(self, innermost: str) -> RangeLabel:
        found = (_phase(each.text) for each in reversed(self._stack))
        phase: Phase = next((each for each in found if each != "unknown"), "unknown")
        label, sizes = plain_label(innermost)
        key = f"{label}\0{sizes}\0{phase}"
        if key not in self._labels:
            self._labels[key] = RangeLabel(self._redactor.clean(label), sizes, phase)
        return self._labels[key]


@lru_cache(maxsize=_REMEMBERED)
def plain_label(text: str) -> tuple[str, str]:
    """(Label without serial numbers, input sizes) of a range text.

    ``aten::mm, op_id = 7, sizes = [[8, 4], [4, 2]]`` is (``aten::mm``, ``[[8, 4], [4, 2]]``);
    ``step 12`` is ``step #``.
    """
    sizes = _SIZES.search(text)
    kept = sizes.group(1) if sizes else ""
    plain = _SERIAL.sub("", text)
    plain = _SIZES.sub("", plain)
    kept = _SERIAL.sub("", kept)
    return _COUNTER.sub(r"\1\2#", plain).strip(" ,")[:_LONGEST], kept[:_LONGEST]


@lru_cache(maxsize=_REMEMBERED)
def _phase(text: str) -> Phase:
    if _BACKWARD.search(text):
        return "backward"
    if _STEP.search(text):
        return "step"
    return "forward" if _FORWARD.search(text) else "unknown"


def _ordered_ranges(database: Database) -> Iterator[tuple[int, int, float, str]]:
    """(thread, start, end, text) of push/pop ranges, by thread and start; outer ranges first."""
    if not database.has(NVTX, "start", "end", "text", "globalTid"):
        return
    text = "substr(n.text, 1, 2000)"
    join = ""
    if database.has(NVTX, "textId") and database.has("StringIds", "id", "value"):
        text = "substr(coalesce(n.text, s.value), 1, 2000)"
        join = "LEFT JOIN StringIds s ON s.id = n.textId"
    kinds = f"n.eventType IN {_PUSH_POP} AND" if database.has(NVTX, "eventType") else ""
    query = (
        f"SELECT n.globalTid, n.start, n.end, {text} FROM {NVTX} n {join} WHERE {kinds} "
        "typeof(n.globalTid) = 'integer' AND typeof(n.start) = 'integer' "
        "ORDER BY n.globalTid, n.start, n.end DESC"
    )
    for thread, start, end, label in database.rows(query):
        # A range that was never closed lasts to the end of the recording.
        until = float("inf") if end is None else end
        if isinstance(label, str) and isinstance(until, (int, float)):
            yield thread, start, until, label
