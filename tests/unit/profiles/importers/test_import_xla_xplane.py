# ruff: noqa: E501  instructions stand as XLA prints them
"""XSpace protobufs: a recorded one, TPU and GPU planes written field by field, and damaged bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.xla_xplane import FORMAT
from profiles.importing.protobuf_wire import WireError, fields
from tests.importing import read, read_anyway, sample, written

RECORDED = "jax/cpu_mlp.xplane.pb"


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _plane(
    name: str, lines: dict[str, list[bytes]], kinds: dict[int, bytes], stats: list[bytes] | None = None
) -> bytes:
    names = {
        1: "hlo_category",
        2: "flops",
        3: "bytes_accessed",
        4: "hlo_op",
        5: "hlo_module",
        6: "memcpy_details",
        7: "device_type_string",
        8: "the_op",
    }
    body = _field(1, 3) + _field(2, name)
    for line, events in lines.items():
        body += _field(
            3, _field(1, 9) + _field(2, line) + _field(3, 5) + b"".join(_field(4, event) for event in events)
        )
    for key, kind in kinds.items():
        body += _field(4, _field(1, key) + _field(2, _field(1, key) + kind))
    for key, text in names.items():
        body += _field(5, _field(1, key) + _field(2, _field(1, key) + _field(2, text)))
    return _field(1, body + b"".join(_field(6, stat) for stat in stats or []))


def _event(kind: int, duration_ps: int, *stats: bytes) -> bytes:
    return _field(1, kind) + _field(2, 77) + _field(3, duration_ps) + b"".join(_field(4, stat) for stat in stats)


def _stat(name: int, number: int, value: int | float | str) -> bytes:
    return _field(1, name) + _field(number, value)


TPU_KINDS = {
    1: _field(2, "%fusion.7 = bf16[128,512]{1,0:T(8,128)} fusion(bf16[128,256] %a), kind=kOutput") + _field(4, "fusion.7")
    + _field(5, _stat(1, 5, "convolution fusion")) + _field(5, _stat(2, 3, 33554432)) + _field(5, _stat(3, 4, 1000)),
    2: _field(2, "%all-reduce.1 = bf16[1024]{0} all-reduce(bf16[1024] %x), replica_groups={{0,1,2,3}}") + _field(4, "all-reduce.1")
    + _field(5, _stat(1, 5, "all-reduce")),
    3: _field(2, "jit_step(1234)"),
    4: _field(2, "12"),
    5: _field(2, "%while.3 = (s32[]) while((s32[]) %t), body=%b") + _field(4, "while.3") + _field(5, _stat(1, 5, "while")),
}  # fmt: skip


def _tpu(name: str = "/device:TPU:0") -> bytes:
    lines = {
        "XLA Ops": [_event(1, 4000), _event(1, 6000), _event(2, 9000), _event(5, 99000), _field(1, 1) + _field(5, 3)],
        "XLA Modules": [_event(3, 50000)],
        "Steps": [_event(4, 60000)],
        "Framework Ops": [_event(1, 5)],
    }
    return _plane(name, lines, TPU_KINDS, [_stat(7, 5, "TPU v5p")])


def test_a_recorded_run_on_the_cpu() -> None:
    found = read(FORMAT, sample(RECORDED))
    (batch,) = found.batches
    assert (batch.environment.framework, batch.environment.framework_version) == ("jax", "0.10.2")
    times = {each.name: each.timing for each in batch.operators}
    assert set(times) == {"ynn_fusion.1", "ynn_fusion", "broadcast_divide_fusion", "broadcast_multiply_fusion"}
    # As jax.profiler.ProfileData reads the same file: 467536, 562364, 701392, 3865948, 5567761 ns.
    first = times["ynn_fusion.1"]
    assert first is not None
    assert (first.num_samples, first.min_s, first.time_s, first.max_s) == (5, 467536e-9, 701392e-9, 5567761e-9)
    assert all(each.detail["module"] == "jit_f" for each in batch.operators)
    assert "host-operations" in {flag.code for flag in found.flags}


def test_a_file_that_was_converted_to_text_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="converted to text"):
        read(FORMAT, sample("jax/tpu_inference_2.xplane.pb"))


def test_tpu_operations_modules_and_steps(tmp_path: Path) -> None:
    found = read(FORMAT, written(tmp_path, "a.xplane.pb", _tpu() + _tpu("/device:TPU:1") + _field(4, "secret-host")))
    (batch,) = found.batches
    assert (batch.environment.device, batch.environment.num_devices) == ("tpu-v5p", 2)
    product, module = batch.operators
    assert product.timing is not None
    assert (product.operator, product.name, product.dtype) == ("matmul", "fusion.7", "bf16")
    assert (product.timing.time_s, product.timing.num_samples) == (5e-9, 4)
    assert (product.detail["flops"], product.detail["accessed_bytes"]) == (33554432, 1000)
    assert module.timing is not None
    assert (module.operator, module.name, module.timing.num_samples) == ("module", "jit_step", 2)
    (reduce,) = batch.collectives
    assert (reduce.operation, reduce.size_bytes, reduce.group_size, reduce.launch) == ("all_reduce", 2048, 4, "in_situ")
    assert [(each.iteration, each.detail["device"]) for each in batch.iterations] == [(12, 0), (12, 1)]
    assert batch.iterations[0].timing is not None
    assert batch.iterations[0].timing.time_s == 60e-9
    assert found.skipped == {
        "instructions that contain others": 2,
        "aggregated events, which have no duration of their own": 2,
    }
    assert "secret-host" not in repr(found)


def test_gpu_streams_and_copies(tmp_path: Path) -> None:
    kinds = {1: _field(2, "nvjet_tst_192x192_64x4"), 2: _field(2, "MemcpyH2D"), 3: _field(2, "MemcpyD2D")}
    lines = {
        "Stream #20(Compute)": [
            _event(1, 7000, _stat(4, 7, 8), _stat(5, 5, "jit_f(9)")),
            _event(2, 1000, _stat(6, 5, "kind_src:pinned kind_dst:device size:4000 dest:0 async:1")),
            _event(3, 1000, _stat(6, 5, "no size")),
        ],
        "XLA Ops": [_event(1, 7000)],
    }
    found = read(
        FORMAT,
        written(tmp_path, "a.xplane.pb", _plane("/device:GPU:3", lines, kinds)),
        given={"device": "h200-sxm-141gb"},
    )
    (batch,) = found.batches
    (kernel,) = batch.operators
    assert kernel.timing is not None
    assert (kernel.operator, kernel.timing.time_s, kernel.timing.num_samples) == ("matmul", 7e-9, 1)
    assert kernel.detail == {"module": "jit_f", "hlo_op": "the_op"}
    (upload,) = batch.links
    assert (upload.kind, upload.target) == ("host_to_device", "device:3")
    assert upload.bandwidth_bytes_per_s == pytest.approx(4e12)


def test_negative_durations_are_bad(tmp_path: Path) -> None:
    plane = _plane("/device:TPU:0", {"XLA Ops": [_event(1, -5), _event(1, 5)]}, TPU_KINDS)
    found = read(FORMAT, written(tmp_path, "a.xplane.pb", plane))
    assert len(found.bad_rows) == 1
    assert found.num_observations == 1


def test_damaged_bytes_never_escape(tmp_path: Path) -> None:
    whole = sample(RECORDED).read_bytes()
    for kept in range(1, len(whole), 611):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "cut.pb", whole[:kept])])
    for at in range(0, len(whole), 487):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        try:
            read_anyway(FORMAT, [written(tmp_path, "changed.pb", bytes(changed))])
        except DocumentInvalid:
            continue


@pytest.mark.parametrize("raw", [b"\x0a\xff\xff\xff\xff\x7f", b"\x0b", b"\x00", b"\x08" + b"\xff" * 12, b"\x09abc"])
def test_wire_errors(raw: bytes) -> None:
    with pytest.raises(WireError, match=r"byte [01]"):
        list(fields(memoryview(raw)))
