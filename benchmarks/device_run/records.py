"""What a part of a device run writes: one JSON object a line, on disk before the next case begins."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LARGEST_ERROR = 400


@dataclass(slots=True)
class Recorder:
    """The lines of one part.  ``ends_at_s``: on ``time.monotonic``'s clock; no case begins after it."""

    path: Path
    part: str
    ends_at_s: float
    rows: list[dict[str, Any]] = field(default_factory=list)

    def expired(self) -> bool:
        """Whether the part's time is spent."""
        return time.monotonic() > self.ends_at_s

    def left_s(self) -> float:
        """Seconds that are left."""
        return max(self.ends_at_s - time.monotonic(), 0.0)

    def write(self, row: dict[str, Any]) -> None:
        """Keep one line."""
        line = {"part": self.part, **row}
        self.rows.append(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def case(self, facts: dict[str, Any], run: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """Run one case and keep its result, its error, or that no time was left; what was measured, or None."""
        if self.expired():
            self.write({**facts, "ok": False, "error": "no time was left"})
            return None
        began_s = time.monotonic()
        found: dict[str, Any] | None = None
        try:
            found = run()
            row = {**facts, **found, "ok": True}
        except Exception as error:
            row = {**facts, "ok": False, "error": error_line(error), "out_of_memory": is_out_of_memory(error)}
        row["case_s"] = round(time.monotonic() - began_s, 2)
        self.write(row)
        print(short_line(row), file=sys.stderr, flush=True)
        return found


def error_line(error: BaseException) -> str:
    """Kind and text of an error on one line, shortened."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:LARGEST_ERROR]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device had too little memory."""
    return "outofmemory" in type(error).__name__.casefold() or "out of memory" in str(error).casefold()


def short_line(row: dict[str, Any]) -> str:
    """One line for a person."""
    name = str(row.get("id", row.get("name", "")))
    if not row.get("ok"):
        return f"{name:56} {row.get('error', '')[:90]}"
    parts = [f"{name:56}"]
    if (seconds := row.get("step_time_s")) is not None:
        parts.append(f"{seconds * 1e3:9.2f} ms")
    if (seconds := row.get("host_s")) is not None:
        parts.append(f"host {seconds * 1e3:8.2f} ms")
    if (count := row.get("num_kernels")) is not None:
        parts.append(f"{count:6} kernels")
    if (size := row.get("peak_allocated_bytes")) is not None:
        parts.append(f"{size / 2**30:6.2f} GiB")
    return " ".join(parts)
