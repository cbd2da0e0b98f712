# ruff: noqa: E501  instructions stand as XLA prints them
"""Chrome traces of XLA: the same run as its xplane, TPU and GPU processes, broken events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.xla_trace import FORMAT
from profiles.importers.xla_xplane import FORMAT as XPLANE
from tests.importing import read, read_anyway, sample, written


def _named(pid: int, process: str, threads: dict[int, str]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}]
    return events + [
        {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for tid, name in threads.items()
    ]


def _event(pid: int, tid: int, name: str, dur: Any, **arguments: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": 1.0, "dur": dur, "name": name, "args": arguments}


def _text(*events: Any) -> str:
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": list(events)})


def test_the_recorded_trace_agrees_with_its_xplane() -> None:
    trace, plane = read(FORMAT, sample("jax/cpu_mlp.trace.json.gz")), read(XPLANE, sample("jax/cpu_mlp.xplane.pb"))
    times = {each.name: each.timing for each in trace.batches[0].operators}
    others = {each.name: each.timing for each in plane.batches[0].operators}
    assert set(times) == set(others)
    for name, timing in times.items():
        other = others[name]
        assert timing is not None
        assert other is not None
        assert timing.time_s == pytest.approx(other.time_s, rel=1e-9)
        assert timing.num_samples == other.num_samples == 5


def test_tpu_process(tmp_path: Path) -> None:
    text = _text(
        *_named(3, "/device:TPU:1", {1: "XLA Ops", 2: "Steps", 3: "XLA Modules"}),
        _event(3, 1, "fusion.7", 5.0, hlo_category="convolution fusion", long_name="%fusion.7 = bf16[8,8]{1,0} fusion(%a)", device_duration_ps="4000000", bytes_accessed="77", model_flops="99"),
        _event(3, 1, "all-reduce.1", 9.0, hlo_category="all-reduce", long_name="%all-reduce.1 = f32[256]{0} all-reduce(%x), replica_groups=[1,8]<=[8]"),
        _event(3, 2, "4", 60.0),
        _event(3, 3, "jit_step(123)", 50.0),
        _event(9, 9, "elsewhere", 1.0),
    )  # fmt: skip
    (batch,) = read(FORMAT, written(tmp_path, "a.trace.json", text)).batches
    product, module = batch.operators
    assert product.timing is not None
    assert (product.operator, product.timing.time_s) == ("matmul", 4e-6), "the exact duration is preferred"
    assert (product.detail["flops"], product.detail["accessed_bytes"]) == (99, 77)
    assert module.name == "jit_step"
    (reduce,) = batch.collectives
    assert (reduce.size_bytes, reduce.group_size) == (1024, 8)
    assert batch.iterations[0].timing is not None
    assert (batch.iterations[0].iteration, batch.iterations[0].timing.time_s) == (4, 60e-6)


def test_gpu_process(tmp_path: Path) -> None:
    text = _text(
        *_named(1, "/device:GPU:0", {14: "Stream #14(Compute,MemcpyD2H)", 15: "XLA Ops"}),
        _event(1, 14, "nvjet_tst", 7.0, hlo_op="gemm.1", hlo_module="jit_f"),
        _event(1, 14, "MemcpyD2H", 1.0, memcpy_details="kind_src:device kind_dst:pinned size:5000 dest:0 async:1"),
        _event(1, 15, "gemm.1", 7.0),
    )
    (batch,) = read(FORMAT, written(tmp_path, "a.trace.json", text)).batches
    assert [(each.operator, each.name) for each in batch.operators] == [("matmul", "nvjet_tst")]
    assert batch.links[0].bandwidth_bytes_per_s == pytest.approx(5e9)
    assert batch.environment.num_devices == 1


@pytest.mark.parametrize("duration", [-1, None, "x", 1e300])
def test_broken_events_are_bad_rows(tmp_path: Path, duration: object) -> None:
    text = _text(
        *_named(3, "/device:TPU:0", {1: "XLA Ops"}),
        _event(3, 1, "a", duration),
        _event(3, 1, "b", 2.0),
        7,
        None,
        {"ph": "X"},
    )
    found = read(FORMAT, written(tmp_path, "a.trace.json", text))
    assert [row.where for row in found.bad_rows] == ["#/traceEvents/2"]
    assert [each.name for each in found.batches[0].operators] == ["b"]


def test_hostile_documents(tmp_path: Path) -> None:
    for text in ("{}", '{"traceEvents": 5}', '{"traceEvents": [', _text(), _text(*_named(1, "/device:TPU:0", {}))):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "a.json", text)])
