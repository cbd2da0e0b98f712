"""Log lines of the program itself, without what launchers, terminals and documents put around them.

Removed from the front: ANSI escapes (also those whose escape character a copy has lost), ``[1,0]<stdout>:`` (mpirun
--tag-output), ``0: `` (srun --label), ``node12: `` (pdsh and clush), ``[rank0]:`` and ``[default0]:`` (torch),
``[pod/name/container] `` (kubectl --prefix), ``name-1  | `` (docker compose), time stamps (ISO, of the day, syslog),
``> `` (quotations).  A name of any form counts as a host where it stands before nearly all lines (``pdsh`` over
several nodes: their lines are then told apart like those of ranks).
A carriage return overwrites what stands before it, as on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profiles.importing.source_file import SourceFile

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LOST_ANSI = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m(?!\])")
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_IN_BRACKETS = (
    re.compile(r"\[(?:[\w.-]{1,200}@)?(?P<world>\d+),(?P<rank>\d+)\](?:\[[^\]]*\])?<(?:stdout|stderr|stddiag)>:\s?"),
    re.compile(r"\[(?:rank|default)(?P<rank>\d{1,6})\]: ?"),
    re.compile(r"\[pod/[^\]]+\] ?"),
    re.compile(rf"\[\d{{4}}-\d\d-\d\d[T ]{_TIME}(?:Z|[+-]\d\d:?\d\d)?\]:?(?: |$)"),
)
_NUMERIC = (
    re.compile(r"(?P<rank>\d{1,6}):(?!\d\d:\d\d) ?"),
    re.compile(rf"\d{{4}}-\d\d-\d\d[T ]{_TIME}(?:Z|[+-]\d\d:?\d\d)?\]?:?(?: |$)"),
    re.compile(rf"{_TIME}(?: |$)"),
)
_NAMED = (
    # A host name has at most 253 characters (RFC 1035); the bound keeps a hostile line from costing its square.
    re.compile(r"(?=[A-Za-z][\w.-]{0,252}:(?: [ #\d]|$))(?=[^\d:]{0,252}\d)(?P<host>[\w.-]{1,253}):(?: |$)"),
    re.compile(r"[a-z][\w.-]{0,200}[-_]\d{1,4} +\|(?: |$)"),
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,253} [\w./-]{1,100}(?:\[\d+\])?:(?: |$)"),
)
_QUOTED = (re.compile(r">(?: |$)"),)
_MOST_PREFIXES = 4
_HOST = re.compile(r"([A-Za-z][\w.-]{0,252}):(?: |$)")
_LINES_ASKED = 400
_LEAST_SHARE = 0.9
_LINES_OF_A_HOST = 4


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: its number from 1, the rank or task that its prefix names (None = no prefix), and the text itself."""

    number: int
    text: str
    rank: int | None = None


def log_lines(file: SourceFile) -> Iterator[LogLine]:
    """Lines of a log, cleaned; blank lines included so that block structure survives."""
    yield from clean_lines(list(file.lines()))


def cleaned_text(text: str) -> str:
    """A text as ``log_lines`` reads it, for the recognition of formats: every line cleaned."""
    return "\n".join(line.text for line in clean_lines(list(enumerate(text.splitlines(), start=1))))


def clean_lines(lines: Sequence[tuple[int, str]]) -> Iterator[LogLine]:
    """Numbered lines, cleaned; hosts before nearly all of them are removed and numbered like ranks."""
    hosts = _hosts(lines)
    for number, raw in lines:
        match = _HOST.match(raw) if hosts else None
        if match is None or match.group(1) not in hosts:
            yield clean_line(number, raw)
        else:
            line = clean_line(number, raw[match.end() :])
            yield line if line.rank is not None else LogLine(number, line.text, hosts[match.group(1)])


def _hosts(lines: Sequence[tuple[int, str]]) -> dict[str, int]:
    """The names that a tool such as pdsh puts before its lines, numbered; empty where it did not."""
    found: dict[str, int] = {}
    asked = with_host = 0
    for _, raw in lines:
        if not raw.strip():
            continue
        asked += 1
        if match := _HOST.match(raw):
            with_host += 1
            found.setdefault(match.group(1), len(found))
        if asked == _LINES_ASKED or with_host < asked * _LEAST_SHARE - 10:
            break
    if with_host < _LEAST_SHARE * asked or with_host < _LINES_OF_A_HOST * max(1, len(found)):
        return {}
    return found


def clean_line(number: int, raw: str) -> LogLine:
    """Remove escapes and launcher prefixes from one line."""
    text = raw.replace("\xa0", " ") if "\xa0" in raw else raw
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "m" in text and "[" in text:
        text = _LOST_ANSI.sub("", text)
    text = text.rstrip()
    if "\r" in text:
        text = text.rsplit("\r", 1)[-1]
    rank: int | None = None
    for _ in range(_MOST_PREFIXES):
        match = _prefix(text)
        if match is None:
            break
        named = match.groupdict().get("rank")
        rank = int(named) if named is not None else rank
        text = text[match.end() :]
    return LogLine(number, text, rank)


def _prefix(text: str) -> re.Match[str] | None:
    """The prefix that a line begins with, whichever launcher wrote it."""
    start = 0
    while start < len(text) and text[start].isspace():
        start += 1
    first = text[start : start + 1]
    if first == "[":
        patterns: tuple[re.Pattern[str], ...] = _IN_BRACKETS
    elif first.isdigit():
        patterns = _NUMERIC
    elif first.isalpha():
        # Indented words belong to the program: hosts and daemons stand at the beginning of a line.
        patterns = _NAMED if start == 0 else ()
    else:
        patterns = _QUOTED if first == ">" else ()
    return next((found for pattern in patterns if (found := pattern.match(text, start))), None)
