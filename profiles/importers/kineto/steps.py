"""Time and memory of each training step, from ``ProfilerStep#N`` and the like.

The first step of a trace is left out: it carries the start of the profiler.  A trace of one step keeps it, with a flag.
Memory: the largest "Total Allocated" and "Total Reserved" of a device among the ``[memory]`` events inside the step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from profiles.importers.kineto.events import Arguments

_STEP = re.compile(r"^(?:ProfilerStep|(?:train(?:ing)?[_ ]?)?(?:step|iteration|iter))\s*[#:_ ]\s*(\d{1,12})$", re.I)
_HOST = 0  # c10::DeviceType CPU


@dataclass(slots=True)
class Step:
    """One step on one rank."""

    number: int
    start_ns: int
    end_ns: int
    row: int
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None


@dataclass(slots=True)
class Steps:
    """Steps and memory readings of one rank."""

    found: list[Step] = field(default_factory=list)
    _memory: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, name: str, start_ns: int, end_ns: int, row: int) -> None:
        """Take an annotation if it is a step."""
        match = _STEP.match(name)
        if match and end_ns > start_ns:
            self.found.append(Step(int(match.group(1)), start_ns, end_ns, row))

    def add_memory(self, arguments: Arguments | None, time_ns: int) -> None:
        """Take a reading of the device allocator."""
        if arguments is None or arguments.device_type == _HOST or not isinstance(arguments.device_type, int):
            return
        allocated, reserved = arguments.total_allocated, arguments.total_reserved
        if isinstance(allocated, int) and isinstance(reserved, int) and 0 <= allocated < 2**62 and reserved < 2**62:
            self._memory.append((time_ns, allocated, max(reserved, 0)))

    def finish(self) -> list[Step]:
        """Steps in order, each once, with their memory."""
        self.found.sort(key=lambda each: (each.start_ns, each.row))
        seen: set[int] = set()
        steps = [each for each in self.found if not (each.number in seen or seen.add(each.number))]  # type: ignore[func-returns-value]
        self._memory.sort()
        position = 0
        for step in steps:
            while position < len(self._memory) and self._memory[position][0] < step.start_ns:
                position += 1
            while position < len(self._memory) and self._memory[position][0] <= step.end_ns:
                _, allocated, reserved = self._memory[position]
                step.peak_allocated_bytes = max(step.peak_allocated_bytes or 0, allocated)
                step.peak_reserved_bytes = max(step.peak_reserved_bytes or 0, reserved)
                position += 1
        return steps
