"""What did the program itself print?  Log lines without what launchers, terminals and documents put around them.

Removed from the front: ANSI escapes, ``[1,0]<stdout>:`` (mpirun --tag-output), ``0: `` (srun --label), ``node12: ``
(pdsh and clush), ``[pod/name/container] `` (kubectl --prefix), ISO time stamps, and common indentation (documents).
A carriage return overwrites what stands before it, as on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from profiles.importing.source_file import SourceFile

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_PREFIXES = (
    re.compile(r"\s*\[(?P<world>\d+),(?P<rank>\d+)\](?:\[[^\]]*\])?<(?:stdout|stderr|stddiag)>:\s?"),
    re.compile(r"\s*(?P<rank>\d{1,6}): ?(?=\D|\s|\d)"),
    re.compile(r"\s*\[pod/[^\]]+\] ?"),
    re.compile(r"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? +"),
    # A host name has at most 253 characters (RFC 1035); the bound keeps a hostile line from costing its square.
    re.compile(r"(?=[A-Za-z][\w.-]{0,252}: [ #\d])(?=[^\d:]{0,252}\d)(?P<host>[\w.-]{1,253}): "),
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: its number from 1, the rank or task that its prefix names (None = no prefix), and the text itself."""

    number: int
    text: str
    rank: int | None = None


def log_lines(file: SourceFile) -> Iterator[LogLine]:
    """Lines of a log, cleaned; blank lines included so that block structure survives."""
    for number, raw in file.lines():
        yield clean_line(number, raw)


def clean_line(number: int, raw: str) -> LogLine:
    """Remove escapes and launcher prefixes from one line."""
    text = _ANSI.sub("", raw).rstrip()
    if "\r" in text:
        text = text.rsplit("\r", 1)[-1]
    rank: int | None = None
    for _ in range(3):
        match = next((found for pattern in _PREFIXES if (found := pattern.match(text))), None)
        if match is None:
            break
        named = match.groupdict().get("rank")
        rank = int(named) if named is not None else rank
        text = text[match.end() :]
    return LogLine(number, text, rank)
