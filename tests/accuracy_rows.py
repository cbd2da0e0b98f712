"""Rows of measured runs for tests: a plain Llama-like run of 8 H100, and CSV text of changed copies of it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from planner.evidence.runs.truth import COLUMNS, TruthRow, read_truth

SHARED = Path(__file__).parents[1].parent / "shared" / "ground_truth"

PLAIN = {
    "id": "run",
    "source": "github:someone/somewhere:table.md",
    "model": "llama3.1-8b",
    "params_b": "8.03",
    "layers": "32",
    "hidden": "4096",
    "ffn_hidden": "14336",
    "heads": "32",
    "kv_heads": "8",
    "vocab": "128256",
    "device": "H100-SXM-80GB",
    "num_devices": "16",
    "inter_node_link": "8x400G IB",
    "seq_len": "8192",
    "gbs": "32",
    "mbs": "1",
    "tp": "2",
    "pp": "2",
    "precision": "bf16",
    "step_time_s": "2.5",
    "recompute": "none",
}


def csv_text(*changes: dict[str, str]) -> str:
    """A CSV with one row for each change of the plain run; ids count up where not given."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for index, change in enumerate(changes or ({},)):
        writer.writerow({**dict.fromkeys(COLUMNS, ""), **PLAIN, "id": f"run-{index}", **change})
    return out.getvalue()


def rows_of(*changes: dict[str, str]) -> list[TruthRow]:
    """The same, read."""
    return read_truth(csv_text(*changes), "truth.csv")
