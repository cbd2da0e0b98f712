"""OSU Micro-Benchmarks: sizes of one rank, MB of 10^6, many dialects."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.osu import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

ALLREDUCE = "# OSU MPI Allreduce Latency Test v7.1\n# Size  Avg Latency(us)\n"


def test_device_buffers_over_the_network() -> None:
    imported = read(FORMAT, sample("osu/cscs_openmpi_osu_bw_cuda_DD_v7.5.txt"))
    links = imported.batches[0].links
    assert (imported.tool_version, len(links)) == ("7.5", 23)
    last = links[-1]
    # 23989.54 MB/s of 10^6 bytes = 23.98954e9 bytes a second.
    assert of(last, "size_bytes", "bandwidth_bytes_per_s", "row") == [4194304, pytest.approx(23_989_540_000), 27]
    assert (last.kind, last.source, last.target, last.direction) == ("network", "node:0", "node:1", "one_way")
    assert last.detail["send_buffer"] == "device"
    assert imported.batches[0].environment.num_nodes == 2
    assert not imported.flags


def test_both_ranks_on_one_node_measure_the_device_link() -> None:
    links = read(FORMAT, sample("osu/cscs_mpich_osu_bw_cuda_v7.5.txt")).batches[0].links
    assert {link.kind for link in links} == {"device_to_device"}
    assert links[-1].bandwidth_bytes_per_s == pytest.approx(115_214_940_000)


def test_alltoall_prints_the_piece_for_one_peer() -> None:
    imported = read(FORMAT, sample("osu/cscs_openmpi_osu_alltoall_host_v7.5.txt"))
    collectives = imported.batches[0].collectives
    last = collectives[-1]
    # srun -N2 --ntasks-per-node=4: 8 ranks; 1,048,576 bytes for each of 8 peers.
    assert (len(collectives), last.group_size, last.num_nodes, last.devices_per_node) == (21, 8, 2, 4)
    assert (last.operation, last.size_bytes, last.dtype) == ("all_to_all", 8_388_608, "int8")
    assert of(last, "timing.time_s") == [pytest.approx(519.85e-6)]


def test_full_columns_give_spread_and_iterations() -> None:
    imported = read(FORMAT, sample("osu/nwtnni_allreduce-cdls_osu-allreduce-ignore.txt"), given={"group_size": "64"})
    first, last = imported.batches[0].collectives[0], imported.batches[0].collectives[-1]
    assert of(first, "size_bytes", "timing.time_s", "timing.num_samples") == [4, pytest.approx(0.02213349), 1000]
    assert of(last, "timing.min_s", "timing.max_s") == [pytest.approx(572.78e-6), pytest.approx(903.25e-6)]
    assert of(last, "timing.statistic", "timing.num_samples", "group_size") == ["mean", 100, 64]
    assert of(last, "launch", "dtype") == ["blocking", "fp32"]
    assert len(imported.batches[0].collectives) == 19


def test_unknown_ranks_are_flagged_where_the_size_does_not_need_them() -> None:
    imported = read(FORMAT, sample("osu/nwtnni_allreduce-p_osu-allreduce-recursive-doubling.txt"))
    assert imported.batches[0].collectives[0].group_size is None
    assert [flag.code for flag in imported.flags] == ["group-size-unknown"]


@pytest.mark.parametrize(
    ("title", "operation", "size"),
    [
        ("Allgather Latency Test", "all_gather", 4096),
        ("Allgatherv Latency Test", "all_gather", 4096),
        ("Reduce_scatter Latency Test", "reduce_scatter", 1024),
        ("Broadcast Latency Test", "broadcast", 1024),
        ("Gather Latency Test", "gather", 4096),
        ("Scatter Persistent Latency Test", "scatter", 4096),
        ("Reduce Latency Test", "reduce", 1024),
        ("All-to-Allv Personalized Exchange Latency Test", "all_to_all", 4096),
    ],
)
def test_sizes_become_the_full_tensor(tmp_path: Path, title: str, operation: str, size: int) -> None:
    text = f"mpirun -np 4 ./osu\n# OSU MPI {title} v5.9\n# Size       Avg Latency(us)\n1024   10.00\n"
    row = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].collectives[0]
    assert (row.operation, row.size_bytes, row.group_size) == (operation, size, 4)


def test_non_blocking_takes_the_pure_communication_time(tmp_path: Path) -> None:
    text = (
        "# OSU MPI Non-blocking All-to-All Latency Test v5.6.3\n"
        "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
        "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
        "4                       9.98              5.87              4.93             16.62\n"
    )
    row = read(FORMAT, written(tmp_path, "a.txt", text), given={"group_size": "2"}).batches[0].collectives[0]
    assert of(row, "timing.time_s", "size_bytes", "detail.[overlap_percent]") == [pytest.approx(4.93e-6), 8, 16.62]
    assert of(row, "launch", "detail.[overall_s]") == ["unknown", pytest.approx(9.98e-6)]


def test_non_blocking_with_full_columns(tmp_path: Path) -> None:
    text = (
        "# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.5\n# Datatype: MPI_INT.\n"
        "# Size   Overall(us)   Compute(us)   Coll. Init(us)   MPI_Test(us)   MPI_Wait(us)   Pure Comm.(us)"
        "   Min Comm.(us)   Max Comm.(us)   Overlap(%)\n8  20.00 10.00 1.00 0.00 2.00 9.00 8.00 11.00 50.00\n"
    )
    row = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].collectives[0]
    assert of(row, "timing.time_s", "timing.min_s", "timing.max_s") == [9e-6, 8e-6, 11e-6]
    assert of(row, "dtype", "detail.[accelerator]") == ["int32", "cuda"]


def test_bidirectional_message_rate_latency_and_barrier_in_one_file(tmp_path: Path) -> None:
    text = (
        "srun -N2 -n2 osu_bibw H H\n# OSU MPI Bi-Directional Bandwidth Test v5.6.2\n"
        "# Size      Bandwidth (MB/s)\n1  9.60\n"
        "srun -N2 -n8 osu_mbw_mr\n# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.3\n"
        "# [ pairs: 4 ] [ window size: 64 ]\n# Size       MB/s        Messages/s\n1024  2068.14  2019668.41\n"
        "srun -N2 -n2 osu_latency\n# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0   1.20\n8   1.25\n"
        "srun -N2 -n16 osu_barrier\n# OSU MPI Barrier Latency Test v5.9\n# Avg Latency(us)\n   12.50\n"
    )
    imported = read(FORMAT, written(tmp_path, "all.txt", text))
    links = [link for batch in imported.batches for link in batch.links]
    rows = [row for batch in imported.batches for row in batch.collectives]
    assert of(links[0], "direction", "bandwidth_bytes_per_s") == ["both_ways", pytest.approx(9.6e6)]
    assert links[0].detail["send_buffer"] == "host"
    assert (links[1].detail["pairs"], links[1].detail["window_size"]) == (4, 64)
    # 2,019,668.41 messages of 1,024 bytes = 2,068.14e6 bytes a second: MB is 10^6.
    assert links[1].bandwidth_bytes_per_s == pytest.approx(2_019_668.41 * 1024, rel=1e-5)
    assert [(row.operation, row.size_bytes, row.group_size) for row in rows] == [
        ("send_recv", 8, 2),
        ("barrier", 0, 16),
    ]
    assert imported.skipped == {"size 0": 1}


def test_pairs_of_ranks_at_once(tmp_path: Path) -> None:
    text = "srun -N2 -n8 osu_multi_lat\n# OSU MPI Multi Latency Test v5.9\n# Size          Latency (us)\n8   1.25\n"
    row = read(FORMAT, written(tmp_path, "a.txt", text)).batches[0].collectives[0]
    assert of(row, "operation", "group_size", "concurrent_groups", "num_nodes") == ["send_recv", 2, 4, 2]


def test_nccl_library_prefixes_and_failed_validation(tmp_path: Path) -> None:
    text = (
        "[1,0]<stdout>:# OSU NCCL-CUDA Allreduce Latency Test v7.4\n[1,0]<stdout>:# Datatype: ncclFloat.\n"
        "[1,0]<stdout>:# Size       Avg Latency(us)        Validation\n[1,0]<stdout>:4  20.10  Pass\n"
        "[1,0]<stdout>:8  20.20  Fail\n"
    )
    imported = read(FORMAT, written(tmp_path, "a.txt", text))
    good, failed = imported.batches[0].collectives
    assert imported.batches[0].environment.communication_library == "nccl"
    assert of(good, "ok", "error") == [True, ""]
    assert of(failed, "ok", "error", "timing.time_s") == [False, "validation failed", pytest.approx(20.2e-6)]


def test_messages_between_rows_are_passed_over(tmp_path: Path) -> None:
    text = (
        ALLREDUCE
        + "4  10.0\n[1701292112.8] [a670n1:162239:0] ucp_worker.c:1855 UCX INFO x\n2 warnings were hidden\n8 11.0\n"
    )
    imported = read(FORMAT, written(tmp_path, "a.txt", text))
    assert [row.size_bytes for row in imported.batches[0].collectives] == [4, 8]
    assert not imported.bad_rows


@pytest.mark.parametrize("row", ["16  nan", "16  -3.0", "16  1.0  2.0", "16", "1x6  3.0", "-4  3.0"])
def test_broken_rows_are_reported_and_not_stored(tmp_path: Path, row: str) -> None:
    imported = read(FORMAT, written(tmp_path, "a.txt", ALLREDUCE + "4  10.0\n" + row + "\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 4"]
    assert len(imported.batches[0].collectives) == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("# OSU MPI Allgather Latency Test v7.1\n# Size  Avg Latency(us)\n4 10.0\n", "group_size"),
        (ALLREDUCE, "end"),
        ("# OSU MPI Bandwidth Test v7.1\n# Size   Bandwidth (GiB/s)\n4 10.0\n", "units"),
        (ALLREDUCE + "4  nan\n", "line"),
    ],
)
def test_nothing_usable_is_refused_with_the_reason(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        read_anyway(FORMAT, [written(tmp_path, "a.txt", text)])
    assert hint in str(refused.value)


def test_a_page_that_mentions_the_tool_does_not_match(tmp_path: Path) -> None:
    text = "The OSU MPI Bandwidth Test measures bandwidth.\n# osu notes\n"
    assert not FORMAT.matches(written(tmp_path, "a.md", text).head())
