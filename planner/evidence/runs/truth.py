"""The measured runs: rows of a CSV of published runs, checked cell by cell.

Columns are those of the ground-truth README, and ``OPTIONAL_COLUMNS``.  A blank cell means that the source does not
say.  Other columns are ignored.  A missing column or a repeated id is an error that lists every finding at once.  A row
with an unreadable cell, or without a name, model or device, keeps its place with its ``defect`` and is never predicted;
a file of nothing but such rows is an error.
"""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass
from typing import Any

from planner.errors import DocumentInvalid

TEXT_COLUMNS = (
    "id",
    "source",
    "model",
    "device",
    "intra_node_link",
    "inter_node_link",
    "zero_or_fsdp",
    "recompute",
    "precision",
    "notes",
)
WHOLE_COLUMNS = (
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "vocab",
    "experts",
    "topk",
    "num_devices",
    "nodes",
    "seq_len",
    "gbs",
    "mbs",
    "tp",
    "sp",
    "cp",
    "pp",
    "vpp",
    "ep",
    "dp",
    "from_memory",
)
OPTIONAL_COLUMNS = ("framework", "framework_version")
"""Columns that a file may have: whose runs these are, for calibration."""
SOFTWARE_COLUMNS = (
    "library",
    "training",
    "quantization",
    "task",
    "compiled",
    "attention",
    "kernels",
    "loss",
    "launches",
    "states",
    "residual",
    "step_in_backward",
    "offload",
    "memory_figure",
)
"""Further columns that a file may have: facts of its software (``planner.evidence.runs.software``)."""
REAL_COLUMNS = ("params_b", "tokens_per_s_per_device", "tflops_per_device", "mfu_pct", "step_time_s", "peak_mem_gib")
COLUMNS = (*TEXT_COLUMNS, *WHOLE_COLUMNS, *REAL_COLUMNS)
MAY_BE_ZERO = frozenset({"sp", "from_memory", "experts", "topk"})
LARGEST = 10**15
SHOWN_FINDINGS = 12
CONTRADICTION = re.compile(r"FLAG(?:\[(?P<letter>[A-Z]):|\s)(?P<text>[^\];]*)")
HARMLESS_FLAG = re.compile(r"world size not in the repository")
OUT_OF_MEMORY = re.compile(r"(^|[;=\s])OOM\b|out of memory", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TruthRow:
    """One measured run; None or "" where the source is silent.  Units as in the column names."""

    line: int
    id: str
    source: str
    model: str
    device: str
    intra_node_link: str
    inter_node_link: str
    zero_or_fsdp: str
    recompute: str
    precision: str
    notes: str
    layers: int | None
    hidden: int | None
    ffn_hidden: int | None
    heads: int | None
    kv_heads: int | None
    vocab: int | None
    experts: int | None
    topk: int | None
    num_devices: int | None
    nodes: int | None
    seq_len: int | None
    gbs: int | None
    mbs: int | None
    tp: int | None
    sp: int | None
    cp: int | None
    pp: int | None
    vpp: int | None
    ep: int | None
    dp: int | None
    from_memory: int | None
    params_b: float | None
    tokens_per_s_per_device: float | None
    tflops_per_device: float | None
    mfu_pct: float | None
    step_time_s: float | None
    peak_mem_gib: float | None
    framework: str = ""
    framework_version: str = ""
    software: tuple[tuple[str, str], ...] = ()
    """Facts of its software that the file has columns for, without blank ones."""
    converted_step_s: float | None = None
    """Step time that a stated rate of FLOPs means (``planner.evidence.runs.stated_rate``)."""
    defect: str = ""
    """Why the row cannot be read; its unreadable cells are None."""

    @property
    def out_of_memory(self) -> bool:
        """Did the run die of memory?  The notes say so and nothing was measured."""
        nothing = self.step_time_s is None and self.tokens_per_s_per_device is None
        return nothing and OUT_OF_MEMORY.search(self.notes) is not None

    @property
    def sequence_length(self) -> int | None:
        """Tokens of a sample: stated, or what rate, step time, devices and batch leave, near a multiple of 512."""
        if self.seq_len is not None:
            return self.seq_len
        known = (self.tokens_per_s_per_device, self.num_devices, self.step_time_s, self.gbs)
        if any(value is None for value in known):
            return None
        tokens = float(self.tokens_per_s_per_device or 0) * float(self.num_devices or 0) * float(self.step_time_s or 0)
        length = tokens / float(self.gbs or 1)
        nearest = 512 * round(length / 512)
        return nearest if nearest and abs(length / nearest - 1.0) < 0.005 else None

    @property
    def measured_step_s(self) -> float | None:
        """Seconds of an optimizer step: stated, tokens of the batch over the token rate, or converted from a rate."""
        if self.step_time_s is not None:
            return self.step_time_s
        if None in (self.gbs, self.sequence_length, self.num_devices, self.tokens_per_s_per_device):
            return self.converted_step_s
        tokens = float(self.gbs or 0) * float(self.sequence_length or 0)
        return tokens / (float(self.tokens_per_s_per_device or 1.0) * float(self.num_devices or 1))

    @property
    def measured_peak_bytes(self) -> float | None:
        """Peak memory as the source defines it."""
        return None if self.peak_mem_gib is None else self.peak_mem_gib * 2.0**30

    @property
    def contradiction(self) -> str:
        """Why the row cannot be read, or contradicts itself in a number that we use; "" when neither.

        Letter D marks a utilisation column that disagrees with the token rate: we read the token rate only.
        """
        if self.defect:
            return self.defect
        for match in CONTRADICTION.finditer(self.notes):
            if match["letter"] != "D" and not HARMLESS_FLAG.search(match["text"]):
                return "the row contradicts itself (flagged in its notes)"
        return "the row was written from memory" if self.from_memory else ""


def read_truth(text: str, where: str) -> list[TruthRow]:
    """Parse the CSV.  Raises DocumentInvalid for missing columns, repeated ids, or no readable row."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise DocumentInvalid(
            f"not a CSV file: {error}",
            where=f"{where}:{reader.line_num}",
            hint="quote cells that hold commas or quotes",
        ) from None
    if not lines:
        raise DocumentInvalid("the file is empty", where=where, hint="give a CSV with a header and rows")
    header = [cell.strip() for cell in lines[0][1]]
    _check_header(header, where)
    if len(lines) == 1:
        raise DocumentInvalid("the file has a header and no rows", where=where, hint="add measured runs")
    rows = [_row(number, cells, header) for number, cells in lines[1:]]
    findings = _repeated_ids(rows)
    if not findings and all(row.defect for row in rows):
        findings = [f"line {row.line}: {row.defect}" for row in rows]
    if findings:
        more = f"; and {len(findings) - SHOWN_FINDINGS} more" if len(findings) > SHOWN_FINDINGS else ""
        raise DocumentInvalid(
            "; ".join(findings[:SHOWN_FINDINGS]) + more,
            where=where,
            hint="correct these cells; leave unknown ones blank",
        )
    return rows


def _check_header(header: list[str], where: str) -> None:
    missing = [name for name in COLUMNS if name not in header]
    twice = sorted({name for name in header if name in COLUMNS and header.count(name) > 1})
    if missing or twice:
        parts = [f"missing columns: {', '.join(missing)}"] if missing else []
        parts += [f"repeated columns: {', '.join(twice)}"] if twice else []
        raise DocumentInvalid("; ".join(parts), where=f"{where}:1", hint=f"the header must name {', '.join(COLUMNS)}")


def _row(number: int, cells: list[str], header: list[str]) -> TruthRow:
    """One row; cells that cannot be read are None, and ``defect`` says so."""
    defects: list[str] = []
    if len(cells) != len(header):
        defects.append(f"{len(cells)} cells under {len(header)} columns")
        # Which cell belongs to which column is unknown: only the name is kept, for the report.
        cells = [cells[0] if name == "id" and header[0] == "id" else "" for name in header]
    words = dict(zip(header, (cell.strip() for cell in cells), strict=True))
    values: dict[str, Any] = {name: words[name] for name in TEXT_COLUMNS}
    values |= {name: words.get(name, "") for name in OPTIONAL_COLUMNS}
    values["software"] = tuple((name, words[name]) for name in SOFTWARE_COLUMNS if words.get(name))
    if not defects:
        defects += [f"{name} is blank" for name in ("id", "source", "model", "device") if not values[name]]
    values |= {name: _whole(words[name], name, defects) for name in WHOLE_COLUMNS}
    values |= {name: _real(words[name], name, defects) for name in REAL_COLUMNS}
    values["id"] = values["id"] or f"line {number}"
    return TruthRow(line=number, **values, defect=", ".join(defects))


def _real(text: str, name: str, defects: list[str]) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        defects.append(f"{name} = {text[:40]!r} is not a number")
        return None
    low_enough = value >= 0 if name in MAY_BE_ZERO else value > 0
    if not (math.isfinite(value) and low_enough and value <= LARGEST):
        defects.append(f"{name} = {text[:40]} is out of range")
        return None
    return value


def _whole(text: str, name: str, defects: list[str]) -> int | None:
    value = _real(text, name, defects)
    if value is None:
        return None
    if not value.is_integer():
        defects.append(f"{name} = {text[:40]} is not a whole number")
        return None
    return int(value)


def _repeated_ids(rows: list[TruthRow]) -> list[str]:
    findings = []
    seen: dict[str, int] = {}
    for row in rows:
        if row.id in seen:
            findings.append(f"line {row.line}: id {row.id[:80]!r} was used on line {seen[row.id]}")
        seen[row.id] = row.line
    return findings
