"""Measured profiles of a device run as they are shipped: ``python -m benchmarks.device_run.bundle FILE... --out DIR``.

An observation whose tenth percentile lies under ``STEADY`` of its median is left out: its samples disagree by more than
a change of the clock explains (on one H100 under a power cap such medians reached 1.5 times the peak rate).  What is
left out is counted in ``skipped`` of the document.  Nothing else changes; the JSON is packed with gzip, whose header
carries no time, so that the same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

STEADY = 0.7


def steady(observation: dict[str, Any]) -> bool:
    """Whether the samples of one operator agree; an observation without samples does."""
    timing = observation.get("timing") or {}
    tenth = timing.get("p10_s")
    return tenth is None or tenth >= STEADY * timing["time_s"]


def bundled(document: dict[str, Any]) -> dict[str, Any]:
    """The document without unsteady operators, whose number by operator ``skipped`` tells."""
    skipped = dict(document["skipped"])
    batches = []
    for batch in document["batches"]:
        operators = batch.get("operators", [])
        for each in operators:
            if not steady(each):
                reason = f"{each['operator']}: the tenth percentile lies under {STEADY} of the median"
                skipped[reason] = skipped.get(reason, 0) + 1
        batches.append(batch | {"operators": [each for each in operators if steady(each)]})
    return document | {"skipped": skipped, "batches": batches}


def main() -> None:
    """Write ``DIR/NAME.json.gz`` for every file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_run.bundle")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for file in asked.files:
        document = bundled(json.loads(file.read_text(encoding="utf-8")))
        text = json.dumps(document, separators=(", ", ": "))
        packed = gzip.compress(text.encode(), compresslevel=9, mtime=0)
        (asked.out / f"{file.name}.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
