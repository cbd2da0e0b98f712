"""The merge of traces of several ranks: times of collectives by groups, sequence numbers and clocks."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Literal

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.kineto import FORMAT
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.records import CollectiveObservation
from tests.importing import read, read_anyway, written
from tests.kineto_trace import KinetoTrace


def merged(folder: Path, *traces: KinetoTrace) -> Imported:
    return read(FORMAT, *[written(folder, f"rank{trace.rank}.json", trace.text()) for trace in traces])


def collectives(imported: Imported) -> list[CollectiveObservation]:
    return [each for batch in imported.batches for each in batch.collectives]


def two_ranks(skew: float = 0.0, sequence: bool = False, num_devices: int = 2) -> list[KinetoTrace]:
    """Rank 1 comes 400 us late each time; both end together 100 us later."""
    traces = []
    for rank in range(2):
        trace = KinetoTrace(rank=rank, world_size=2, num_devices=num_devices)
        for number in range(3):
            start = 1000.0 * number + 400 * rank
            args = {"Seq": number + 1} if sequence else {}
            trace.collective("allreduce", start + skew * rank, 500 - 400 * rank + number, (1024, 1024), args)
        traces.append(trace)
    return traces


def test_the_time_is_from_the_last_start_to_the_last_end(tmp_path: Path) -> None:
    (found,) = collectives(imported := merged(tmp_path, *two_ranks()))
    assert found.timing is not None
    assert found.timing.num_samples == 3
    # 100, 101 and 102 us: not the 500 us that rank 0 spent, most of it waiting.
    assert found.timing.time_s == pytest.approx(101e-6)
    assert (found.size_bytes, found.dtype, found.group_size) == (2048, "bf16", 2)
    assert (found.num_nodes, found.devices_per_node, found.stride, found.num_channels) == (1, 2, 1, 24)
    assert found.detail == {"method": "ranks-merged"}
    assert {flag.code for flag in imported.flags} >= {"ranks-merged"}


def test_clocks_that_disagree_give_the_shortest_duration(tmp_path: Path) -> None:
    (found,) = collectives(merged(tmp_path, *two_ranks(skew=5000.0)))
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(101e-6)
    assert found.detail == {"method": "clocks-differ"}


def test_one_rank_alone_is_an_upper_bound(tmp_path: Path) -> None:
    (found,) = collectives(imported := merged(tmp_path, two_ranks()[0]))
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(501e-6)
    assert "waiting-included" in {flag.code for flag in imported.flags}


def test_a_missing_rank_makes_it_an_upper_bound(tmp_path: Path) -> None:
    traces = two_ranks()
    for trace in traces:
        trace.world_size = 4
        for event in trace.events:
            event["args"].update({"Group size": 4, "Process Group Ranks": "[0, 1, 2, 3]"})
    (found,) = collectives(imported := merged(tmp_path, *traces))
    assert found.detail == {"method": "ranks-missing"}
    assert "ranks-missing" in {flag.code for flag in imported.flags}


def test_sequence_numbers_match_windows_that_differ(tmp_path: Path) -> None:
    traces = two_ranks(sequence=True)
    del traces[1].events[0]
    found = {str(each.detail["method"]): each for each in collectives(merged(tmp_path, *traces))}
    assert found["ranks-merged"].timing is not None
    assert found["ranks-merged"].timing.num_samples == 2
    assert found["waiting-included"].timing is not None
    assert found["waiting-included"].timing.num_samples == 1


def test_windows_that_differ_are_not_matched_by_counting(tmp_path: Path) -> None:
    traces = two_ranks()
    del traces[1].events[0]
    imported = merged(tmp_path, *traces)
    assert {each.detail["method"] for each in collectives(imported)} == {"waiting-included"}
    assert "unmatched-collectives" in {flag.code for flag in imported.flags}


def test_sizes_follow_one_convention(tmp_path: Path) -> None:
    trace = KinetoTrace(rank=0, world_size=8, num_devices=4)
    trace.collective("_allgather_base", 0, 10, (1000, 8000))
    trace.collective("_reduce_scatter_base", 20, 10, (8000, 1000))
    trace.collective("all_to_allv", 40, 10, (4000, 4000), args={"In split size": "[1000, 3000]"})
    trace.collective("send", 60, 10, (500, 500), args={"Src Rank": 0, "Dst Rank": 1})
    trace.collective("gather", 75, 4, (100, 800))
    trace.collective("wait", 80, 10, (500, 500))
    trace.collective("allreduce", 90, 10, (500, 500), {"dtype": "Quaternion"})
    imported = merged(tmp_path, trace)
    found = {each.operation: each for each in collectives(imported)}
    assert {name: each.size_bytes for name, each in found.items()} == {
        "all_gather": 16000, "reduce_scatter": 16000, "all_to_all": 8000, "send_recv": 1000, "gather": 1600,
    }  # fmt: skip
    assert found["all_to_all"].detail["uneven"] is True
    assert found["send_recv"].group_size == 2
    # Eight ranks, four devices seen by each: two nodes of four.
    assert (found["all_gather"].num_nodes, found["all_gather"].devices_per_node) == (2, 4)
    assert sum(imported.skipped.values()) == 2


def test_the_metadata_may_stand_on_the_call_only(tmp_path: Path) -> None:
    trace = KinetoTrace(world_size=2)
    known = {
        "Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64, "Group size": 2, "dtype": "Float",
        "Process Group Ranks": "[0, 1]",
    }  # fmt: skip
    call = trace.call("record_param_comms", 0, 10, args=known)
    trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20, 5, call)
    trace.kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", 30, 5, None)
    imported = merged(tmp_path, trace)
    (found,) = collectives(imported)
    assert (found.size_bytes, found.stride) == (256, 1)
    assert [count for reason, count in imported.skipped.items() if "without size" in reason] == [1]


def test_operators_of_all_ranks_are_one_observation(tmp_path: Path) -> None:
    traces = two_ranks()
    for trace in traces:
        call = trace.call("aten::mm", 5000, 10, args={"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]})
        trace.kernel("gemm", 5010, 3 + trace.rank, call)
    imported = merged(tmp_path, *traces)
    (matmul,) = [each for batch in imported.batches for each in batch.operators]
    assert matmul.timing is not None
    assert matmul.timing.num_samples == 2
    assert matmul.timing.time_s == pytest.approx(3.5e-6)


def test_use_of_the_device_is_told(tmp_path: Path) -> None:
    trace = KinetoTrace(world_size=2)
    trace.collective("allreduce", 0, 100, (64, 64))
    trace.kernel("gemm", 50, 100, None)
    trace.kernel("gemm", 190, 10, None)
    imported = merged(tmp_path, trace)
    # Span 200; busy [0, 150] and [190, 200]; half of the collective under the first product.
    assert imported.facts["gpu_busy_fraction"] == pytest.approx(0.8)
    assert imported.facts["communication_fraction"] == pytest.approx(0.5)
    assert imported.facts["overlap_fraction"] == pytest.approx(0.5)
    assert "host-bound" in {flag.code for flag in imported.flags}


def _archive(folder: Path, members: dict[str, bytes], mode: Literal["w", "w:gz"] = "w:gz") -> SourceFile:
    path = folder / ("traces.tar.gz" if mode == "w:gz" else "traces.tar")
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return SourceFile(path)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_ranks_in_one_archive_are_merged(tmp_path: Path, mode: Literal["w", "w:gz"]) -> None:
    first, second = (trace.text().encode() for trace in two_ranks())
    members = {"run/rank0.json": first, "run/rank1.json.gz": gzip.compress(second), "run/notes.txt": b"nothing"}
    imported = read(FORMAT, _archive(tmp_path, members, mode))
    (found,) = collectives(imported)
    assert found.timing is not None
    assert found.timing.time_s == pytest.approx(101e-6)
    assert imported.facts["num_traces"] == 2


def test_archives_of_anything_else_are_not_recognised(tmp_path: Path) -> None:
    for number, members in enumerate(({"notes.txt": b"{}"}, {"a.json": b'{"a": 1}'}, {"a.json.gz": b"\x1f\x8bbroken"})):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert not FORMAT.matches(_archive(folder, members).head())


def test_a_cut_member_is_refused(tmp_path: Path) -> None:
    content = gzip.compress(two_ranks()[0].text().encode())
    with pytest.raises(DocumentInvalid, match=r"breaks off|damaged"):
        read_anyway(FORMAT, [_archive(tmp_path, {"rank0.json.gz": content[: len(content) // 2]})])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_and_wide_characters(tmp_path: Path, encoding: str) -> None:
    file = written(tmp_path, "rank0.json", two_ranks()[0].text().encode(encoding))
    assert len(collectives(read(FORMAT, file))) == 1
