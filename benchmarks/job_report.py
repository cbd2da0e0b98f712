"""Writes the figures of the job benchmarks, with the machine, to ``benchmarks/results/<date>-<name>.json``."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_facts

RESULTS = Path(__file__).parent / "results"


def write_report(name: str, figures: list[dict[str, Any]]) -> None:
    """Append a run to the day's file."""
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y-%m-%d}-{name}.json"
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    runs.append({"measured_at": now.isoformat(timespec="seconds"), "machine": machine_facts(-1), "figures": figures})
    path.write_text(json.dumps({"runs": runs}, indent=2) + "\n", encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)
