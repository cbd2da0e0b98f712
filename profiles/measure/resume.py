"""The journal with which a killed run goes on: append-only, finished cases, one JSON line each.

    {"case": <hash of case and environment>, "observation": {...}}

A rerun skips the cases that the journal holds for the same environment.  The last line may be torn by the kill: it is
cut off.  A torn line in the middle cannot come from us and is refused.
"""

from __future__ import annotations

import json
import os
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from profiles.document import canonical_json
from profiles.errors import DocumentInvalid, NotFound


class Journal:
    """Finished cases by key; ``path`` None = kept in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        """Open or create the file.  Raises DocumentInvalid for a file that is no journal, NotFound for no folder."""
        self.path = path
        self.finished: dict[str, Any] = {}
        self._file: TextIOWrapper | None = None
        if path is not None:
            self._open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, key: str, observation: Any) -> None:
        """Keep a finished case; it survives a kill as soon as this returns."""
        self.finished[key] = observation
        if self._file is not None:
            self._file.write(canonical_json({"case": key, "observation": observation}) + "\n")
            self._file.flush()

    def settle(self) -> None:
        """Force the lines to disk, so that they survive a power cut too."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Settle and close."""
        if self._file is not None:
            self.settle()
            self._file.close()
            self._file = None

    def _open(self, path: Path) -> None:
        try:
            raw = path.read_bytes() if path.exists() else b""
            whole = raw.rfind(b"\n") + 1
            self._load(raw[:whole], path)
            if whole < len(raw):
                with path.open("r+b") as file:
                    file.truncate(whole)
            self._file = path.open("a", encoding="utf-8")
        except FileNotFoundError:
            raise NotFound("the journal's folder does not exist", where=str(path), hint="create it first") from None

    def _load(self, raw: bytes, path: Path) -> None:
        for number, line in enumerate(raw.splitlines(), start=1):
            try:
                entry = json.loads(line)
                self.finished[str(entry["case"])] = entry["observation"]
            except (ValueError, KeyError, TypeError):
                raise DocumentInvalid(
                    "this line is not an entry of a measuring journal",
                    where=f"{path}:{number}",
                    hint="give another --journal file, or remove the line",
                ) from None
