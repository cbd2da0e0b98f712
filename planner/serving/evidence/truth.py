"""Measured serving points: rows of a CSV of published runs.

Columns are those of the ground-truth README.  A blank cell means that the source does not say.  Cells of disaggregated
rows hold two values, ``P4/D8``.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass

from planner.errors import DocumentInvalid

COLUMNS = (
    "id",
    "source",
    "model",
    "device",
    "num_devices",
    "tp",
    "pp",
    "ep",
    "attention_dp",
    "isl",
    "osl",
    "precision",
    "engine",
    "engine_version",
    "scenario",
    "batch_or_concurrency",
    "request_rate",
    "tokens_per_s_total",
    "ttft_ms",
    "tpot_ms",
    "notes",
)
_POOLS = re.compile(r"^P(?P<prefill>[^/]*)/D(?P<decode>.*)$")


@dataclass(frozen=True, slots=True)
class ServingRow:
    """One measured point, as the file has it."""

    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        """A cell, without blanks around it."""
        return self.cells[column]

    @property
    def id(self) -> str:
        """The row's name."""
        return self.cells["id"]

    def number(self, column: str) -> float | None:
        """A cell that is one positive finite number; none otherwise."""
        try:
            value = float(self.cells[column])
        except ValueError:
            return None
        return value if math.isfinite(value) and value > 0 else None

    def whole(self, column: str, pool: str = "") -> int | None:
        """A cell that is one whole number, of a pool (``prefill``, ``decode``) where the cell has two."""
        text = self.cells[column]
        found = _POOLS.match(text)
        if found:
            text = found[pool or "decode"]
        return int(float(text)) if re.fullmatch(r"\d+(\.0)?", text) else None


def is_serving_truth(text: str) -> bool:
    """Whether a CSV has the columns of measured serving points."""
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    return {"ttft_ms", "tpot_ms", "isl", "osl"} <= {name.strip() for name in first.split(",")}


def read_serving_truth(text: str, where: str) -> list[ServingRow]:
    """Read rows; raises DocumentInvalid where columns are missing or ids repeat."""
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise DocumentInvalid(
            f"columns are missing: {', '.join(missing)}", where=where, hint="see docs/how-to/judge-accuracy.md"
        )
    rows = [ServingRow({name: (row.get(name) or "").strip() for name in COLUMNS}) for row in reader]
    seen: set[str] = set()
    twice = [row.id for row in rows if row.id in seen or seen.add(row.id)]  # type: ignore[func-returns-value]
    if twice:
        raise DocumentInvalid(
            f"rows share ids: {', '.join(twice[:5])}", where=where, hint="give each row an id of its own"
        )
    return rows
