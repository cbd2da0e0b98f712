# ruff: noqa: E501  documents stand as the tool writes them
"""rocprofv3 JSON: kernels joined with their symbols, copies with their bytes, damaged documents."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.rocprof_json import FORMAT
from tests.importing import read, read_anyway, sample, written

REAL = "rocprof/tracelens_908_results.json.gz"


def _process(**changes: Any) -> dict[str, Any]:
    agents = [
        {"id": {"handle": 1}, "type": 1, "name": "EPYC", "product_name": "EPYC", "logical_node_type_id": 0},
        {"id": {"handle": 7}, "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "logical_node_type_id": 0},
        {"id": {"handle": 8}, "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X", "logical_node_type_id": 1},
    ]  # fmt: skip
    symbols = [{"kernel_id": 3, "formatted_kernel_name": "attn_fwd", "kernel_name": "attn_fwd.kd"}]
    process = {
        "metadata": {"node": {"hostname": "secret-host"}, "command": ["/home/me/train.py"]},
        "agents": agents,
        "kernel_symbols": symbols,
        "buffer_records": {"kernel_dispatch": [_kernel(10, 30), _kernel(40, 50, agent=8)], "memory_copy": []},
    }
    return {**process, **changes}


def _kernel(start: int, end: int, kernel: int = 3, agent: int = 7) -> dict[str, Any]:
    size = {"x": 64, "y": 2, "z": 1}
    info = {"agent_id": {"handle": agent}, "kernel_id": kernel, "grid_size": size, "workgroup_size": size}
    return {"start_timestamp": start, "end_timestamp": end, "dispatch_info": info}


def _copy(source: int, target: int, size: int | None, duration: int = 100) -> dict[str, Any]:
    copy = {
        "start_timestamp": 0,
        "end_timestamp": duration,
        "src_agent_id": {"handle": source},
        "dst_agent_id": {"handle": target},
    }
    return copy if size is None else {**copy, "bytes": size}


def _text(*processes: dict[str, Any]) -> str:
    return json.dumps({"rocprofiler-sdk-tool": list(processes)})


def test_real_training_run() -> None:
    found = read(FORMAT, sample(REAL))
    assert found.bad_rows == []
    (batch,) = found.batches
    assert (batch.environment.device_reported, batch.environment.num_devices) == ("AMD Instinct MI350X", 1)
    counts: dict[str, int] = {}
    for each in batch.operators:
        counts[each.operator] = counts.get(each.operator, 0) + (each.timing.num_samples or 0 if each.timing else 0)
    assert sum(counts.values()) == 43915, "every dispatch is counted once"
    assert counts["attention"] == 800, "400 attn_fwd and 400 bwd_kernel_fuse"
    assert counts["collective"] == 1310
    assert min(each.timing.min_s or each.timing.time_s for each in batch.operators if each.timing) == 560e-9
    text = repr(found)
    assert "smci350" not in text
    assert "train.py" not in text


def test_kernels_and_devices(tmp_path: Path) -> None:
    (batch,) = read(FORMAT, written(tmp_path, "a.json", _text(_process()))).batches
    assert (batch.environment.device, batch.environment.num_devices) == ("mi300x", 2)
    (attention,) = batch.operators
    assert attention.timing is not None
    assert (attention.name, attention.timing.time_s, attention.timing.num_samples) == ("attn_fwd", 15e-9, 2)
    assert attention.detail == {"grid": "64 2 1", "block": "64 2 1"}


def test_copies_have_ends_and_bandwidths(tmp_path: Path) -> None:
    copies = [_copy(1, 7, 1000), _copy(7, 8, 500, 50), _copy(8, 8, 10), _copy(1, 7, None), _copy(99, 7, 10)]
    process = _process(buffer_records={"kernel_dispatch": [_kernel(0, 5)], "memory_copy": copies})
    found = read(FORMAT, written(tmp_path, "a.json", _text(process)))
    up, across, inside = found.batches[0].links
    assert (up.kind, up.source, up.target, up.bandwidth_bytes_per_s) == ("host_to_device", "host:0", "device:0", 1e10)
    assert (across.kind, across.target, across.bandwidth_bytes_per_s) == ("device_to_device", "device:1", 1e10)
    assert inside.kind == "device_memory"
    assert found.skipped == {"copies without bytes, time or ends": 2}


def test_broken_dispatches_are_reported(tmp_path: Path) -> None:
    records = {"kernel_dispatch": [_kernel(0, 5), _kernel(9, 5), _kernel(0, 5, kernel=77)], "memory_copy": []}
    found = read(
        FORMAT, written(tmp_path, "a.json.gz", gzip.compress(_text(_process(buffer_records=records)).encode()))
    )
    assert found.batches[0].operators[0].timing is not None
    assert found.batches[0].operators[0].timing.num_samples == 1
    assert found.bad_rows[0].what.startswith("2 dispatches")


def test_hostile_documents(tmp_path: Path) -> None:
    whole = _text(_process())
    for kept in range(30, len(whole), 53):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "cut.json", whole[:kept])])
    empty = _process(buffer_records={"kernel_dispatch": [], "memory_copy": []})
    for text in (_text(), _text(empty), "[]", "", '{"rocprofiler-sdk-tool": 5}', whole.replace("64", "NaN")):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "bad.json", text)])
    truncated = gzip.compress(whole.encode())[:-20]
    with pytest.raises(DocumentInvalid, match="damaged"):
        read_anyway(FORMAT, [written(tmp_path, "cut.json.gz", truncated)])
