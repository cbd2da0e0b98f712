"""What a Chakra graph says: the real graphs, graphs written byte by byte, and broken archives."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.chakra import FORMAT
from tests.chakra_graph import metadata, node, number, text, varint
from tests.importing import read, read_anyway, sample, written


def archive(*members: tuple[str, bytes], link: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        if link:
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(entry)
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def graph() -> bytes:
    """A product with its gradients (their node was cut out of the graph), and an all-reduce."""
    types = "['Tensor(c10::BFloat16)', 'Tensor(c10::BFloat16)']"
    return b"".join(
        [
            metadata(),
            node(10, "aten::mm(0)", host=True, tid=1, shapes="[[12, 8], [8, 20]]", types=types),
            node(11, "sm90_xmma_gemm", duration_us=7, parent=10, tid=7),
            node(12, "splitKreduce", duration_us=2, parent=10, tid=7),
            node(
                20, "aten::_log_softmax_backward_data", host=True, tid=2, shapes="[[12, 20]]", types="['Tensor(float)']"
            ),
            node(31, "aten::mm(0)", host=True, parent=30, tid=2, shapes="[[12, 20], [20, 8]]", types=types),
            node(32, "gemm_d", duration_us=5, parent=31, tid=7),
            node(33, "aten::mm(0)", host=True, parent=30, tid=2, shapes="[[20, 12], [12, 8]]", types=types),
            node(34, "gemm_w", duration_us=4, parent=33, tid=7),
            node(40, "ncclDevKernel_AllReduce", 7, 90, comm_type=0, comm_size=4096, tid=8),
            node(41, "ncclDevKernel_AllReduce", 7, 110, comm_type=0, comm_size=4096, tid=8),
            node(42, "ncclDevKernel_AllGather", 7, 60, comm_type=2, comm_size=1024, tid=8),
            node(43, "ncclDevKernel_SendRecv", 5, 30, comm_size=512, tid=8),
        ]
    )


def test_sizes_and_times_of_the_real_graph() -> None:
    imported = read(FORMAT, sample("chakra/chakra_feeder_tests_trace.tar.gz"))
    (batch,) = imported.batches
    assert imported.facts["num_nodes"] == 3664
    assert imported.tool_version == "1.0.1"
    found = {(each.operation, each.size_bytes, each.timing.time_s) for each in batch.collectives if each.timing}
    # comm_size and duration_micros of the seven device nodes of type COMM_COLL_NODE.
    assert found == {
        ("broadcast", 212480, 28e-6), ("broadcast", 424, 5e-6), ("all_reduce", 8196000, 5572e-6),
        ("all_reduce", 31502336, 9093e-6), ("all_reduce", 26255360, 8512e-6), ("all_reduce", 26550272, 8178e-6),
        ("all_reduce", 9724160, 5327e-6),
    }  # fmt: skip
    matmuls = {each.phase: each for each in batch.operators if each.operator == "matmul"}
    assert matmuls["dgrad"].shape == {"m": 32, "n": 2048, "k": 1000}
    assert matmuls["wgrad"].shape == {"m": 1000, "n": 2048, "k": 32}
    assert matmuls["dgrad"].timing is not None
    assert matmuls["dgrad"].timing.time_s == pytest.approx(60e-6)
    assert {flag.code for flag in imported.flags} == {"whole-microseconds", "waiting-included", "group-unknown"}


def test_the_real_json_form_tells_kernels_by_name() -> None:
    imported = read(FORMAT, sample("chakra/chakra_json_trace.tar.gz"))
    (batch,) = imported.batches
    assert {each.operator for each in batch.operators} == {"kernel"}
    assert sum(imported.skipped.values()) == 8
    assert batch.collectives == []


@pytest.mark.parametrize("rank", range(4))
def test_graphs_for_a_simulator_hold_no_times(rank: int) -> None:
    with pytest.raises(DocumentInvalid, match="no time of an operator or collective"):
        read(FORMAT, sample(f"chakra/astrasim_all_gather_4npus_1MB.{rank}.et"))


def test_kernels_join_their_operator_and_gradients_their_order(tmp_path: Path) -> None:
    (batch,) = read(FORMAT, written(tmp_path, "trace.et", graph())).batches
    found = {each.phase: each for each in batch.operators}
    assert {phase: each.shape for phase, each in found.items()} == {
        "forward": {"m": 12, "n": 20, "k": 8},
        "dgrad": {"m": 12, "n": 8, "k": 20},
        "wgrad": {"m": 20, "n": 8, "k": 12},
    }
    assert found["forward"].timing is not None
    assert found["forward"].timing.time_s == pytest.approx(9e-6)
    assert found["forward"].dtype == "bf16"


def test_all_gather_needs_the_group_size(tmp_path: Path) -> None:
    file = written(tmp_path, "trace.et", graph())
    alone = read(FORMAT, file)
    assert {each.operation for each in alone.batches[0].collectives} == {"all_reduce", "send_recv"}
    assert [count for reason, count in alone.skipped.items() if "all_gather" in reason] == [1]
    given = read(FORMAT, file, given={"group_size": "8"})
    found = {each.operation: each for each in given.batches[0].collectives}
    assert found["all_gather"].size_bytes == 8 * 1024
    assert found["all_reduce"].group_size == 8
    assert found["all_reduce"].timing is not None
    assert found["all_reduce"].timing.time_s == pytest.approx(100e-6)
    assert found["send_recv"].group_size == 2


def test_the_json_form_reads_communication(tmp_path: Path) -> None:
    nodes = [
        {"Id": 1, "Name": "gemm", "NodeType": 4, "runtime": 12, "is_cpu_op": False, "ctrlDeps": []},
        {"Id": 2, "Name": "ar", "NodeType": 7, "runtime": 30, "is_cpu_op": False, "comm_type": 0, "comm_size": 64},
        {"Id": "x", "Name": "broken", "NodeType": 4},
    ]
    imported = read(FORMAT, written(tmp_path, "chakra.json", json.dumps({"workload_graph": nodes})))
    (batch,) = imported.batches
    assert [(each.operation, each.size_bytes) for each in batch.collectives] == [("all_reduce", 64)]
    assert [each.where for each in imported.bad_rows] == ["workload_graph/2"]


def test_archives_are_read_member_by_member(tmp_path: Path) -> None:
    content = archive(("run/._rank.0.et", b"junk"), ("run/rank.0.et", graph()), ("run/rank.1.et", graph()))
    (batch,) = read(FORMAT, written(tmp_path, "run.tgz", content)).batches
    forward = next(each for each in batch.operators if each.phase == "forward")
    assert forward.timing is not None
    assert forward.timing.num_samples == 2


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (archive(("rank.0.et", graph()), link="evil"), "links"),
        (archive(("rank.0.et", graph()), ("../../rank.1.et", graph())), "outside"),
        (archive(("/rank.0.et", graph())), "outside"),
        (gzip.compress(gzip.decompress(archive(("rank.0.et", graph())))[:900]), "damaged|breaks off|no time"),
    ],
)
def test_dangerous_archives_are_refused(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        read_anyway(FORMAT, [written(tmp_path, "run.tgz", content)])


def test_a_truncated_graph_is_refused_with_the_byte(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="breaks off at byte") as caught:
        read_anyway(FORMAT, [written(tmp_path, "trace.et", graph()[:-5])])
    assert "byte" in str(caught.value.where)


def test_every_cut_of_a_graph_gives_a_clear_error_or_its_beginning(tmp_path: Path) -> None:
    whole = graph()
    for length in range(0, len(whole), 11):
        try:
            read_anyway(FORMAT, [written(tmp_path, "trace.et", whole[:length])])
        except DocumentInvalid as error:
            assert error.hint  # noqa: PT017


@pytest.mark.parametrize(
    "content",
    [
        metadata() + varint(1 << 62) + b"x",
        metadata() + b"\xff" * 30,
        metadata() + node(1, "a", duration_us=(1 << 64) - 1),
        metadata() + varint(6) + number(9, 1) + b"\x0b\x0b\x0b\x0b",
        metadata() + node(1, "a", parent=2, host=True) + node(2, "b", parent=1, host=True),
        b"\x00",
    ],
)
def test_hostile_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "trace.et", content)])


def test_circles_and_deep_chains_end(tmp_path: Path) -> None:
    circle = [node(1, "aten::a", parent=2, host=True), node(2, "aten::b", parent=1, host=True)]
    chain = [node(each, "aten::c", parent=each + 1, host=True) for each in range(10, 5000)]
    kernels = [node(9000, "k1", duration_us=3, parent=1), node(9001, "k2", duration_us=3, parent=10)]
    (batch,) = read(FORMAT, written(tmp_path, "trace.et", b"".join([metadata(), *circle, *chain, *kernels]))).batches
    assert sum(each.timing.num_samples or 0 for each in batch.operators if each.timing) == 2


def test_other_binary_files_are_not_taken(tmp_path: Path) -> None:
    for content in (b"SQLite format 3\0" + bytes(4096), text(1, "/device:TPU:0"), b"\x1f\x8b", b"", bytes(4096)):
        file = written(tmp_path, "other.bin", content if content != b"\x1f\x8b" else gzip.compress(b"plain text"))
        assert not FORMAT.matches(file.head())
