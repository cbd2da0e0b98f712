"""Shifts the clock of a running process: libfaketime (Debian: faketime), told by a file, while it runs.

Only the wall clock jumps, as when somebody sets it: the kernel's monotonic clock never does, and nobody sleeps for
longer or shorter.  libfaketime 0.9.10 breaks Python's sleep; ``tests/shifted_sleep`` says how, and repairs it.
"""

from __future__ import annotations

import os
from pathlib import Path

LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1")
REPOSITORY = Path(__file__).parents[1]
SLEEP = REPOSITORY / "tests" / "shifted_sleep"


def faketime_library() -> Path | None:
    """The library to load first; None where it is not installed."""
    found = [path for pattern in LIBRARIES for path in Path("/").glob(pattern.removeprefix("/"))]
    return min(found, default=None)


class ShiftedClock:
    """The wall clock of every process that is started with ``environment``."""

    def __init__(self, library: Path, folder: Path) -> None:
        self._file = folder / "clock"
        self.shift(0)
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "PYTHONPATH": os.pathsep.join((str(SLEEP), str(REPOSITORY))),
        }

    def shift(self, seconds: int) -> None:
        """So many seconds before (-) or after (+) the true time, from now on."""
        # Renamed into place: a reader in between must not find half a number.
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.replace(self._file)
