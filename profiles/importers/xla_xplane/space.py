"""The content of an XSpace: planes with names and statistics; lines and events only when asked for.

XSpace  1 planes                       XPlane  2 name  3 lines  4 event metadata  5 stat metadata  6 stats
XLine   2 name  4 events  11 display   XEvent  1 metadata  2 offset  3 duration ps  4 stats  5 occurrences
XStat   1 metadata  2 double  3 uint64  4 int64  5 text  6 bytes  7 reference to a name
XEventMetadata  1 id  2 name  4 display name  5 stats           XStatMetadata  1 id  2 name
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from profiles.importing.protobuf_wire import Value, WireError, double, fields, signed, text

Stat = str | int | float
_DEVICE = re.compile(r"/device:(TPU|GPU):(\d{1,6})")
_MAX_PLANES = 10_000
_MAX_METADATA = 5_000_000
_LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Described:
    """What events of one kind have in common: name, the name that people see, statistics."""

    name: str
    display_name: str
    stats: dict[str, Stat]


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its kind, duration (None = an aggregate), own statistics."""

    kind: int
    duration_ps: int | None
    stats: tuple[memoryview, ...]


@dataclass(slots=True)
class Line:
    """One line of a plane."""

    name: str
    _message: memoryview

    def events(self) -> Iterator[Event]:
        """Its events.  Raises WireError."""
        for number, _, value in fields(self._message):
            if number == 4:
                yield _event(value)


@dataclass(slots=True)
class Plane:
    """One device or host."""

    name: str
    lines: list[Line] = field(default_factory=list)
    kinds: dict[int, memoryview] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: dict[str, Stat] = field(default_factory=dict)

    @property
    def device(self) -> tuple[str, int] | None:
        """(TPU or GPU, number); None for hosts and special planes."""
        match = _DEVICE.fullmatch(self.name)
        return (match.group(1), int(match.group(2))) if match else None

    def described(self, kind: int) -> Described:
        """What a kind of event is; an unknown kind has no name.  Raises WireError."""
        message = self.kinds.get(kind)
        name = display = ""
        stats: list[memoryview] = []
        for number, _, value in fields(message) if message is not None else ():
            if number == 2:
                name = text(value, _LONGEST_TEXT)
            elif number == 4:
                display = text(value, _LONGEST_TEXT)
            elif number == 5 and isinstance(value, memoryview):
                stats.append(value)
        return Described(name, display, self.named(stats))

    def named(self, stats: list[memoryview] | tuple[memoryview, ...]) -> dict[str, Stat]:
        """Statistics by name.  Raises WireError."""
        found: dict[str, Stat] = {}
        for message in stats:
            name, value = self._stat(message)
            if name and value is not None:
                found[name] = value
        return found

    def _stat(self, message: memoryview) -> tuple[str, Stat | None]:
        name = ""
        found: Stat | None = None
        for number, _, value in fields(message):
            if number == 1:
                name = self.stat_names.get(signed(value), "")
            elif number == 2:
                found = double(value)
            elif number in (3, 4):
                found = signed(value)
            elif number == 5:
                found = text(value, _LONGEST_TEXT)
            elif number == 7:
                found = self.stat_names.get(signed(value), "")
        return name, found


def planes_of(message: memoryview) -> list[Plane]:
    """All planes.  Raises WireError."""
    found: list[Plane] = []
    for number, _, value in fields(message):
        if number == 1:
            if len(found) >= _MAX_PLANES:
                raise WireError(f"more than {_MAX_PLANES:,} planes")
            found.append(_plane(_message(value)))
    return found


def _plane(message: memoryview) -> Plane:
    plane = Plane("")
    stats: list[memoryview] = []
    for number, _, value in fields(message):
        if number == 2:
            plane.name = text(value, 200)
        elif number == 3:
            plane.lines.append(_line(_message(value)))
        elif number == 4:
            key, entry = _entry(_message(value))
            plane.kinds[key] = entry
        elif number == 5:
            key, entry = _entry(_message(value))
            plane.stat_names[key] = next((text(each) for at, _, each in fields(entry) if at == 2), "")
        elif number == 6:
            stats.append(_message(value))
        if len(plane.kinds) > _MAX_METADATA or len(plane.stat_names) > _MAX_METADATA:
            raise WireError(f"more than {_MAX_METADATA:,} names in one plane")
    plane.stats = plane.named(stats)
    return plane


def _line(message: memoryview) -> Line:
    name = display = ""
    for number, _, value in fields(message):
        if number == 2:
            name = text(value, 200)
        elif number == 11:
            display = text(value, 200)
    return Line(name or display, message)


def _entry(message: memoryview) -> tuple[int, memoryview]:
    """Key and value of a map entry; both may be left out where they are zero or empty."""
    key, value = 0, memoryview(b"")
    for number, _, found in fields(message):
        if number == 1:
            key = signed(found)
        elif number == 2:
            value = _message(found)
    return key, value


def _event(value: Value) -> Event:
    kind, duration_ps, aggregate = 0, 0, False
    stats: list[memoryview] = []
    for number, _, found in fields(_message(value)):
        if number == 1:
            kind = signed(found)
        elif number == 3:
            duration_ps = signed(found)
        elif number == 4:
            stats.append(_message(found))
        elif number == 5:
            aggregate = True
    return Event(kind, None if aggregate else duration_ps, tuple(stats))


def _message(value: Value) -> memoryview:
    if not isinstance(value, memoryview):
        raise WireError("a number where a message is expected")
    return value
