"""The output of hccl_demo is read in the unit that its bandwidths show, with the right ranks.

The benchmark blocks are real (published in vLLM guides for Gaudi); no table with real figures is public: those here
follow the program's printing code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.gaudi_hccl_demo import FORMAT
from tests.importing import read, read_anyway, sample, written

COMMAND = (
    "HCCL_COMM_ID=127.0.0.1:5555 python3 run_hccl_demo.py --nranks 8 --test all_reduce --ranks_per_node 8 # gaudi2\n"
)
BENCHMARK = """\
####################################################################################################
[BENCHMARK] hcclAllReduce(src!=dst, data_size=33554432, count=8388608, dtype=float, iterations=1000)
[BENCHMARK]     NW Bandwidth   : 258.209121 GB/s
[BENCHMARK]     Algo Bandwidth : 147.548069 GB/s
####################################################################################################
"""


def table(unit: str = "ms", scale: float = 1.0, collective: str = "all_reduce", factor: float = 1.75) -> str:
    rows = "".join(
        f"{size:<14}{size // 4:<14}{'float':<14}{'sum':<14}{time_ms * scale:<14.6f}"
        f"{size / time_ms / 1e6:<14.6f}{size / time_ms / 1e6 * factor:<14.6f}\n"
        for size, time_ms in ((1 << 20, 0.05), (1 << 25, 0.25))
    )
    return (
        f"[SUMMARY REPORT]\n(src!=dst, collective={collective}, iterations=100)\n\n"
        "size          count         type          redop         time          algo_bw       nw_bw\n"
        f"(B)           (elements)                                ({unit})          (GB/s)        (GB/s)\n{rows}"
    )


def test_a_real_benchmark_block(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", COMMAND + BENCHMARK))
    (batch,) = imported.batches
    (only,) = batch.collectives
    assert only.timing is not None
    assert (only.operation, only.size_bytes, only.group_size) == ("all_reduce", 33554432, 8)
    assert only.timing.time_s == pytest.approx(33554432 / 147.548069e9)
    assert (only.timing.num_samples, only.dtype, only.reduction) == (1000, "fp32", "sum")
    assert only.detail == {"time_from": "algorithm bandwidth"}
    assert (only.num_nodes, only.devices_per_node) == (1, 8)
    assert (batch.environment.device, batch.environment.communication_library) == ("gaudi2", "hccl")


def test_size_from_count_and_two_servers(tmp_path: Path) -> None:
    block = BENCHMARK.replace("src!=dst, data_size=33554432, ", "src!=dst, ").replace("258.209121", "205.899352")
    block = block.replace("147.548069", "109.812988")
    content = COMMAND.replace("--nranks 8", "--nranks 16") + block
    (only,) = read(FORMAT, written(tmp_path, "log.txt", content)).batches[0].collectives
    assert (only.size_bytes, only.group_size, only.num_nodes) == (33554432, 16, 2)


@pytest.mark.parametrize(("unit", "scale", "corrected"), [("ms", 1.0, False), ("us", 1000.0, False), ("us", 1.0, True)])
def test_the_bandwidths_settle_the_unit(tmp_path: Path, unit: str, scale: float, corrected: bool) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", table(unit, scale)))
    times = [each.timing.time_s for each in imported.batches[0].collectives if each.timing]
    assert times == pytest.approx([0.05e-3, 0.25e-3])
    assert [flag.code for flag in imported.flags] == (["unit-corrected"] if corrected else [])
    assert {each.group_size for each in imported.batches[0].collectives} == {8}


def test_all_gather_counts_one_part(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", table(collective="all_gather", factor=7.0)))
    assert [(each.size_bytes, each.group_size) for each in imported.batches[0].collectives] == [
        (8 << 20, 8),
        (8 << 25, 8),
    ]
    whole = read(FORMAT, written(tmp_path, "log.txt", table(collective="all_gather", factor=0.875)))
    assert [(each.size_bytes, each.group_size) for each in whole.batches[0].collectives] == [(1 << 20, 8), (1 << 25, 8)]


def test_placeholders_are_no_results() -> None:
    with pytest.raises(DocumentInvalid, match="placeholders"):
        read(FORMAT, sample("ascend/gaudi_hccl_demo_format_NO_VALUES.txt"))


def test_one_bandwidth_alone_is_refused(tmp_path: Path) -> None:
    old = (
        "[BENCHMARK] hcclAllReduce(src!=dst, count=8388608, dtype=fp32, iterations=10)\n"
        "[BENCHMARK]     Bandwidth     : 25 MB/s\n"
    )
    with pytest.raises(DocumentInvalid, match="bandwidth alone"):
        read(FORMAT, written(tmp_path, "log.txt", old))


@pytest.mark.parametrize(
    "bad",
    [
        "1048576 262144 float sum nan 20.9 36.7",
        "1048576 262144 float sum 0.05 20.9",
        "1048576 262144 float sum 0.05 36.7 20.9",
    ],
)
def test_bad_rows(tmp_path: Path, bad: str) -> None:
    imported = read(FORMAT, written(tmp_path, "log.txt", table() + bad + "\n"))
    assert len(imported.batches[0].collectives) == 2
    assert [each.where for each in imported.bad_rows] == ["line 8"]


def test_cut_files(tmp_path: Path) -> None:
    content = COMMAND + BENCHMARK + table()
    for cut in range(0, len(content), 9):
        try:
            imported = read_anyway(FORMAT, [written(tmp_path, "log", content[:cut])])
        except DocumentInvalid:
            continue
        assert imported.num_observations


@pytest.mark.parametrize("number", ["1e-320", "1e300", "0", "9" * 30])
def test_extreme_numbers_are_bad_rows(tmp_path: Path, number: str) -> None:
    for column in (4, 5, 6):
        words = ["1048576", "262144", "float", "sum", "0.05", "20.97152", "36.70016"]
        words[column] = number
        imported = read(FORMAT, written(tmp_path, "log.txt", table() + " ".join(words) + "\n"))
        assert imported.num_observations == 2
        assert [bad.where for bad in imported.bad_rows] == ["line 8"]
