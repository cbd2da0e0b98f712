"""Speeds of copies between host and devices: memory copies by direction and size.

Direction: ``HtoD``, ``DtoH``, ``DtoD``, ``PtoP`` in the name (CUDA), or ``CopyHostToDevice`` (ROCm).  Each becomes a
``copy`` operator and a link observation; the bandwidth is bytes over the median time of copies of that size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profiles.importers.kineto.events import Arguments
from profiles.importing.duration_statistics import Durations
from profiles.observations.records import LinkKind, LinkObservation, OperatorObservation

_DIRECTIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("HtoD", re.compile(r"htod|hosttodevice|host -> device", re.IGNORECASE)),
    ("DtoH", re.compile(r"dtoh|devicetohost|device -> host", re.IGNORECASE)),
    ("PtoP", re.compile(r"ptop|peertopeer|peer -> peer", re.IGNORECASE)),
    ("DtoD", re.compile(r"dtod|devicetodevice|device -> device", re.IGNORECASE)),
)
_KINDS: dict[str, LinkKind] = {
    "HtoD": "host_to_device",
    "DtoH": "device_to_host",
    "DtoD": "device_memory",
    "PtoP": "device_to_device",
}
_MEMORY = re.compile(r"\((\w+) -> (\w+)\)")


@dataclass(frozen=True, slots=True)
class CopyKey:
    """Copies of one size between two ends."""

    direction: str
    num_bytes: int
    source: str
    target: str
    memory: str


@dataclass(slots=True)
class Copies:
    """Durations in ns by kind of copy."""

    durations: dict[CopyKey, Durations] = field(default_factory=dict)
    rows: dict[CopyKey, int] = field(default_factory=dict)

    def add(self, name: str, arguments: Arguments | None, device: int | None, duration_ns: int, row: int) -> str | None:
        """Take one copy on a device; the reason in words where it cannot be used."""
        direction = next((found for found, pattern in _DIRECTIONS if pattern.search(name)), None)
        if direction is None:
            return "copies of unknown direction"
        size = arguments.num_bytes if arguments is not None else None
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 2**62:
            return "copies without a size"
        if duration_ns <= 0:
            return "copies that took no time"
        ends = _ends(direction, arguments, device)
        memory = _MEMORY.search(name)
        key = CopyKey(direction, size, *ends, " to ".join(memory.groups()).casefold() if memory else "")
        if key not in self.durations:
            self.durations[key] = Durations()
            self.rows[key] = row
        self.durations[key].add(duration_ns)
        return None

    def merge(self, other: Copies) -> None:
        """Take in all copies of another collection."""
        for key, durations in other.durations.items():
            self.durations.setdefault(key, Durations()).extend(durations)
            self.rows.setdefault(key, other.rows[key])

    def operators(self) -> list[OperatorObservation]:
        """One ``copy`` operator for each kind and size."""
        result = []
        for key, durations in self.durations.items():
            detail = {"memory": key.memory} if key.memory else {}
            result.append(
                OperatorObservation(
                    "copy",
                    f"Memcpy {key.direction}",
                    durations.timing(1e9),
                    shape={"num_bytes": key.num_bytes},
                    detail={**detail, "source": key.source, "target": key.target},
                    row=self.rows[key],
                )
            )
        return result

    def links(self) -> list[LinkObservation]:
        """One link observation for each kind and size whose ends are known."""
        result = []
        for key, durations in self.durations.items():
            timing = durations.timing(1e9)
            if "?" in key.source + key.target:
                continue
            result.append(
                LinkObservation(
                    _KINDS[key.direction],
                    key.source,
                    key.target,
                    direction="one_way",
                    size_bytes=key.num_bytes,
                    bandwidth_bytes_per_s=key.num_bytes / timing.time_s,
                    statistic=timing.statistic,
                    num_samples=timing.num_samples,
                    method="memcpy in situ",
                    detail={"memory": key.memory} if key.memory else {},
                    row=self.rows[key],
                )
            )
        return result


def _ends(direction: str, arguments: Arguments | None, device: int | None) -> tuple[str, str]:
    own = _device(device)
    if direction == "HtoD":
        return "host:0", own
    if direction == "DtoH":
        return own, "host:0"
    if direction == "DtoD":
        return own, own
    if arguments is None:
        return "device:?", "device:?"
    return _device(arguments.from_device), _device(arguments.to_device)


def _device(value: object) -> str:
    return f"device:{value}" if isinstance(value, int) and 0 <= value < 4096 else "device:?"
