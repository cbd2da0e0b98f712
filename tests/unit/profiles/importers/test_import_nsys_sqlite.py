"""Nsight Systems exports: kernels by name and NVTX range, copies, devices, and databases that mean harm."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nsys_sqlite import FORMAT
from profiles.importers.nsys_sqlite.ranges import plain_label
from profiles.importing.foreign_database import Database
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.records import OperatorObservation
from tests.importing import read, read_anyway, sample, written

REAL = "nsys/nsysai_mfu_2gpu_before.sqlite"
_PROCESS = 1 << 48 | 100 << 24
_THREAD = _PROCESS | 7


def _database(path: Path, *statements: str) -> SourceFile:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return SourceFile(path)


_STRINGS = (
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)",
    "INSERT INTO StringIds VALUES (1, 'ampere_sgemm_128x64_nn'), (2, 'layer forward'), (3, 'softmax_warp_forward')",
)
_KERNELS = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER)"
)


def _kernel(start: int, end: int, correlation: int, name: int = 1, device: int = 0, process: int = _PROCESS) -> str:
    return (
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {end}, {device}, 7, {correlation}, {process}, "
        f"{name}, {name})"
    )


_RUNTIME = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER)"
)


def _launch(start: int, correlation: int, thread: int = _THREAD) -> str:
    return f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({start}, {start + 1}, {thread}, {correlation}, 9)"


_NVTX = (
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, "
    "globalTid INTEGER)"
)


def _range(start: int, end: int | str, text: str, kind: int = 59, thread: int = _THREAD) -> str:
    value = f"NULL, {text}" if text.isdigit() else f"'{text}', NULL"
    return f"INSERT INTO NVTX_EVENTS VALUES ({start}, {end}, {kind}, {value}, {thread})"


def _operators(imported: Imported) -> list[OperatorObservation]:
    return [each for batch in imported.batches for each in batch.operators]


def test_a_real_report_of_two_devices() -> None:
    found = read(FORMAT, sample(REAL))
    assert (found.tool, found.tool_version) == ("nsys", "2026.2.1.210")
    assert found.bad_rows == []
    (batch,) = found.batches
    environment = batch.environment
    assert (environment.num_devices, environment.driver_version) == (2, "580.95.05")
    assert (environment.device, environment.device_reported) == ("", "")
    assert environment.captured_at == "2026-05-26T07:58:50"
    assert {flag.code for flag in found.flags} == {"waiting-included", "device-unknown"}

    counts: dict[str, int] = {}
    for each in batch.operators:
        counts[each.operator] = counts.get(each.operator, 0) + (each.timing.num_samples or 0 if each.timing else 0)
    assert sum(counts.values()) == 4010, "every kernel of the report is counted once"
    assert counts["attention"] == 68
    assert counts["collective"] == 66
    assert counts["matmul"] == 235 + 34 + 68
    assert counts["norm"] == 102

    (attention,) = [
        each for each in batch.operators
        if each.operator == "attention" and each.detail.get("nvtx_range") == "flash_attn::_flash_attn_forward"
    ]  # fmt: skip
    assert attention.timing is not None
    assert attention.timing.num_samples == 66
    assert attention.timing.max_s == 7867915e-9
    assert attention.shape == {}
    assert attention.phase == "forward"
    sends = [each for each in batch.operators if each.operator == "collective"]
    assert {each.detail["operation"] for each in sends} == {"send_recv"}


def test_real_copies_have_a_bandwidth_for_each_size() -> None:
    (batch,) = read(FORMAT, sample(REAL)).batches
    assert len(batch.links) == 2 + 14 + 2
    (large,) = [each for each in batch.links if each.size_bytes == 95846400 and each.source == "device:0"]
    assert (large.kind, large.target, large.num_samples) == ("device_memory", "device:0", 17)
    assert large.bandwidth_bytes_per_s == pytest.approx(95846400 / 64.32e-6)
    upload = next(each for each in batch.links if each.kind == "host_to_device")
    assert (upload.source, upload.target, upload.size_bytes) == ("host:0", "device:0", 8)
    assert upload.detail["source_memory"] == "pageable"


def test_no_host_or_user_leaves_the_report() -> None:
    found = read(FORMAT, sample(REAL))
    text = repr(found)
    for secret in ("modal", "ta-01KSHMNARCWAQ00A0543TVYVJR", "GPU-672a921d", "/root"):
        assert secret not in text


def test_kernels_belong_to_the_innermost_open_range_of_their_launch(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _RUNTIME, _NVTX,
        _kernel(1000, 1100, 1), _kernel(2000, 2300, 2), _kernel(3000, 3010, 3, name=3), _kernel(4000, 4007, 4),
        _launch(15, 1), _launch(25, 2), _launch(35, 3), _launch(95, 4),
        _range(10, 90, "2"), _range(12, 20, "aten::mm, op_id = 5, sizes = [[8, 4], [4, 2]]"),
        _range(22, 28, "aten::mm, op_id = 6, sizes = [[8, 4], [4, 2]]"), _range(11, 80, "other kind", kind=60),
        _range(0, 100, "another thread", thread=_THREAD + 1),
    )  # fmt: skip
    found = {(each.name, each.detail.get("nvtx_range")): each for each in _operators(read(FORMAT, file))}
    matmul = found["ampere_sgemm_128x64_nn", "aten::mm"]
    assert matmul.timing is not None
    assert (matmul.timing.time_s, matmul.timing.num_samples) == (200e-9, 2)
    assert matmul.detail["input_sizes"] == "[[8, 4], [4, 2]]"
    assert matmul.phase == "forward", "the enclosing range says so"
    assert found["softmax_warp_forward", "layer forward"].operator == "softmax"
    assert found["ampere_sgemm_128x64_nn", None].phase == "unknown", "after all ranges have ended"
    assert len(found) == 3


def test_correlation_ids_count_per_process(tmp_path: Path) -> None:
    other = 1 << 48 | 200 << 24
    file = _database(
        tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _RUNTIME, _NVTX,
        _kernel(100, 110, 1), _kernel(100, 150, 1, process=other),
        _launch(5, 1), _launch(5, 1, thread=other | 9),
        _range(0, 50, "mine"), _range(0, 50, "theirs", thread=other | 9),
    )  # fmt: skip
    found = {each.detail["nvtx_range"]: each.timing for each in _operators(read(FORMAT, file))}
    assert {label: timing.time_s for label, timing in found.items() if timing} == {"mine": 10e-9, "theirs": 50e-9}


def test_devices_of_two_kinds_are_two_batches(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _kernel(0, 10, 1), _kernel(0, 30, 2, device=1),
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT)",
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3'), (1, 'NVIDIA L40S')",
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)",
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 100), (0, 1, 100)",
    )  # fmt: skip
    times = {
        batch.environment.device: batch.operators[0].timing.time_s
        for batch in read(FORMAT, file).batches
        if batch.operators[0].timing
    }
    assert times == {"l40s": 10e-9, "h100-sxm5-80gb": 30e-9}, "CUDA's device 0 is the second GPU here"


def test_early_schema_names_devices_elsewhere(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "a.sqlite", *_STRINGS,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, shortName INTEGER)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 2000, 0, 1)",
        "CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INTEGER, name TEXT)",
        "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (0, 'A100-SXM4-80GB')",
    )  # fmt: skip
    (batch,) = read(FORMAT, file).batches
    assert batch.environment.device == "a100-sxm4-80gb"
    assert batch.operators[0].timing is not None
    assert (batch.operators[0].timing.time_s, batch.operators[0].timing.statistic) == (2e-6, "single")


def test_the_user_names_the_device(tmp_path: Path) -> None:
    file = _database(tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _kernel(0, 10, 1))
    found = read(FORMAT, file, given={"device": "h200-sxm-141gb"})
    assert found.batches[0].environment.device == "h200-sxm-141gb"
    assert all(flag.code != "device-unknown" for flag in found.flags)


def test_copies_between_devices_and_of_unified_memory(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "a.sqlite",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, bytes INTEGER, "
        "copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, dstDeviceId INTEGER)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1000, 0, 4000, 10, 2, 2, 0, 3), "
        "(0, 1000, 0, 8000, 12, 4, 0, NULL, NULL), "
        "(0, 9, 0, 0, 1, 0, 2, NULL, NULL), (0, 9, 0, 5, 4, 3, 0, NULL, NULL)",
    )
    found = read(FORMAT, file)
    peer, unified = found.batches[0].links
    assert (peer.kind, unified.kind) == ("device_to_device", "device_to_host")
    assert (peer.source, peer.target, peer.bandwidth_bytes_per_s) == ("device:0", "device:3", 4e9)
    assert (unified.target, unified.detail["unified"], unified.bandwidth_bytes_per_s) == ("host:0", True, 8e9)
    assert sum(found.skipped.values()) == 2


def test_broken_rows_are_reported_and_left_out(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _kernel(0, 10, 1), _kernel(20, 10, 2), _kernel(0, 10, 3, name=77),
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('x', 'y', 'z', 0, 4, 0, 1, 1)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0.5, 9e999, NULL, 0, 5, 0, 1, 1)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 5, 0, 0, 6, 0, 3, 3)",
    )  # fmt: skip
    found = read(FORMAT, file)
    assert [each.name for each in _operators(found)] == ["ampere_sgemm_128x64_nn"]
    assert _operators(found)[0].timing is not None
    reasons = " ".join(row.what for row in found.bad_rows)
    assert "2 kernels end before" in reasons
    assert "name id" in reasons
    assert "time is zero" in reasons


def test_graphs_as_a_whole_are_told(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _kernel(0, 10, 1),
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER)",
    )  # fmt: skip
    assert "graphs-as-a-whole" in {flag.code for flag in read(FORMAT, file).flags}


@pytest.mark.parametrize("kept", [0.02, 0.1, 0.5, 0.9])
def test_a_truncated_report_is_refused(tmp_path: Path, kept: float) -> None:
    whole = sample(REAL).path.read_bytes()
    file = written(tmp_path, "cut.sqlite", whole[: int(len(whole) * kept)])
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [file])


def test_overwritten_pages_never_escape_as_another_error(tmp_path: Path) -> None:
    whole = bytearray(sample(REAL).path.read_bytes())
    for at in range(5000, len(whole), 40_960):
        whole[at : at + 64] = bytes((at * 7 + i) % 256 for i in range(64))
    file = written(tmp_path, "damaged.sqlite", bytes(whole))
    try:
        found = read_anyway(FORMAT, [file])
    except DocumentInvalid:
        return
    assert found.num_observations > 0


def test_files_that_are_no_report(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="cannot be read"):
        read_anyway(FORMAT, [written(tmp_path, "text.sqlite", "hello" * 1000)])
    with pytest.raises(DocumentInvalid, match="nothing to import"):
        read_anyway(FORMAT, [_database(tmp_path / "empty.sqlite", *_STRINGS)])
    packed = gzip.compress(_database(tmp_path / "b.sqlite", *_STRINGS, _KERNELS).path.read_bytes())
    with pytest.raises(DocumentInvalid, match="compressed"):
        read_anyway(FORMAT, [written(tmp_path, "c.sqlite.gz", packed)])
    nvprof = _database(tmp_path / "d.sqlite", "CREATE TABLE StringTable (x)", "CREATE TABLE CUPTI_ACTIVITY_KIND_X (x)")
    with pytest.raises(DocumentInvalid, match="nvprof"):
        read(FORMAT, nvprof)


def test_views_are_not_read(tmp_path: Path) -> None:
    file = _database(
        tmp_path / "view.sqlite",
        *_STRINGS,
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(start) AS "
        "(SELECT 1 UNION ALL SELECT start + 1 FROM r) SELECT start, start + 1 AS end, 1 AS demangledName FROM r",
    )
    with pytest.raises(DocumentInvalid, match="nothing to import"):
        read_anyway(FORMAT, [file])


def test_reading_ends_at_the_deadline(tmp_path: Path) -> None:
    file = _database(tmp_path / "a.sqlite", *_STRINGS)
    endless = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"
    with Database(file, deadline_s=0.2) as database, pytest.raises(DocumentInvalid, match="too long"):
        database.value(endless)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aten::to, op_id = 990347", ("aten::to", "")),
        ("aten::detach_, seq = 45328, op_id = 990724", ("aten::detach_", "")),
        ("aten::mm, op_id = 7, sizes = [[8, 4], [4, 2]], input_op_ids = [(1,0)]", ("aten::mm", "[[8, 4], [4, 2]]")),
        ("iteration 12", ("iteration #", "")),
        ("ProfilerStep#7", ("ProfilerStep##", "")),
        ("layer 3", ("layer 3", "")),
    ],
)
def test_labels_lose_their_serial_numbers(text: str, expected: tuple[str, str]) -> None:
    assert plain_label(text) == expected


def test_a_damaged_schema_is_refused_whatever_its_bytes(tmp_path: Path) -> None:
    whole = _database(tmp_path / "a.sqlite", *_STRINGS, _KERNELS, _kernel(0, 10, 1)).path.read_bytes()
    broken = whole.replace(b"CREATE TABLE StringIds", b"CREATE T\x97BLE StringIds")
    with pytest.raises(DocumentInvalid, match="cannot be read"):
        read_anyway(FORMAT, [written(tmp_path, "b.sqlite", broken)])


def test_rows_may_be_left_unread(tmp_path: Path) -> None:
    with Database(_database(tmp_path / "a.sqlite", *_STRINGS)) as database:
        rows = database.rows("SELECT id FROM StringIds")
        assert next(rows) == (1,)
    rows.close()  # type: ignore[attr-defined]
