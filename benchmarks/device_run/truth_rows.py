"""The measured steps in the columns of a truth file, which ``meshwright accuracy`` reads."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COLUMNS = (
    "id", "source", "model", "params_b", "layers", "hidden", "ffn_hidden", "heads", "kv_heads", "vocab", "experts",
    "topk", "device", "num_devices", "nodes", "intra_node_link", "inter_node_link", "seq_len", "gbs", "mbs", "tp", "sp",
    "cp", "pp", "vpp", "ep", "dp", "zero_or_fsdp", "recompute", "precision", "tokens_per_s_per_device",
    "tflops_per_device", "mfu_pct", "step_time_s", "peak_mem_gib", "notes", "from_memory",
)  # fmt: skip
ONE_DEVICE = {"num_devices": 1, "nodes": 1, "tp": 1, "sp": 0, "cp": 1, "pp": 1, "vpp": 1, "ep": 1, "dp": 1}


def truth_row(row: dict[str, Any], device: str, source: str) -> dict[str, Any]:
    """One measured step as a row: time of steps that run on, peak of what torch allocated."""
    seconds = row["running_step_time_s"]
    found = {name: row.get(name) for name in COLUMNS} | ONE_DEVICE
    found |= {"source": source, "device": device, "zero_or_fsdp": row.get("zero_or_fsdp") or "none"}
    found |= {"step_time_s": round(seconds, 6), "from_memory": 0}
    found["tokens_per_s_per_device"] = round(row["gbs"] * row["seq_len"] / seconds, 3)
    if (peak := row.get("peak_allocated_bytes")) is not None:
        found["peak_mem_gib"] = round(peak / 2**30, 3)
    found["notes"] = notes(row)
    return found


def notes(row: dict[str, Any]) -> str:
    """Software in words, then the other times and memory readings."""
    software = "; ".join(f"{name}: {value}" for name, value in row.get("software", {}).items() if value)
    parts = [f"pretraining; random tokens; {software}"]
    for name in ("step_time_s", "host_s", "host_cpu_s", "kernel_s"):
        if row.get(name) is not None:
            parts.append(f"{name} {row[name]:.6f}")
    if row.get("num_kernels") is not None:
        parts.append(f"{row['num_kernels']} kernels")
    for name in ("peak_reserved_bytes", "device_used_bytes"):
        if row.get(name) is not None:
            parts.append(f"{name} {row[name]}")
    return "; ".join(parts)


def write_truth(lines: Path, target: Path, device: str, source: str) -> int:
    """Write the file from the lines of a run; the number of rows."""
    rows = [row for row in read_lines(lines) if row.get("ok") and "running_step_time_s" in row and "seq_len" in row]
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(truth_row(row, device, source) for row in rows)
    return len(rows)


def read_lines(path: Path) -> Iterable[dict[str, Any]]:
    """All whole lines of a run; a torn last line is left out."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
