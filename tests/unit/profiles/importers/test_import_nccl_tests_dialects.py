"""nccl-tests text is read through prefixes, mixtures and damage, and so are the dialects of its relatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_tests import FORMAT
from tests.importing import read_anyway, sample, written
from tests.nccl_text import AG_ROW, AR_ROW, NEW_HEADER, SETTINGS, codes, only, rank_lines, text_of


def test_srun_labels_ansi_and_indentation_are_removed(tmp_path: Path) -> None:
    content = (
        "```text\n"
        + "".join(f"    \x1b[32m0: {line}\x1b[0m\n" for line in (NEW_HEADER + "...\n" + AR_ROW).splitlines())
        + "1: NCCL INFO Using network AWS Libfabric\n```\n"
    )
    imported = text_of(tmp_path, content)
    assert len(only(imported)) == 2
    assert imported.batches[0].environment.transport == "AWS Libfabric"


def test_a_markdown_table_is_a_table(tmp_path: Path) -> None:
    content = (
        "| size | count | type | redop | root | time | algbw | busbw | #wrong | time | algbw | busbw | #wrong |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        "| 134217728 | 33554432 | float | sum | -1 | 592.8 | 226.39 | 396.19 | 0 | 592.1 | 226.69 | 396.71 | 0 |\n"
    )
    assert [each.size_bytes for each in only(text_of(tmp_path, content))] == [134217728, 134217728]


def test_a_row_that_other_output_interrupts_is_put_together(tmp_path: Path) -> None:
    left, right = AR_ROW[:52], AR_ROW[52:]
    content = (
        "# Collective test starting: all_reduce_perf\n"
        + NEW_HEADER
        + left
        + "node7:99:99 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1\nnode7:99:99 [1] NCCL INFO comm 0x55 rank 1 nranks 8\n"
        + right
        + AR_ROW
    )
    imported = text_of(tmp_path, content)
    assert not imported.bad_rows
    assert [each.timing.time_s for each in only(imported) if each.timing] == [592.8e-6, 592.1e-6] * 2


def test_tables_of_several_processes_are_told_apart_by_their_prefix(tmp_path: Path) -> None:
    def tagged(rank: int, content: str) -> list[str]:
        return [f"[1,{rank}]<stdout>:{line}\n" for line in content.splitlines()]

    table = SETTINGS + rank_lines(1, 1) + NEW_HEADER + AR_ROW.replace("396.19", "  0.00").replace("396.71", "  0.00")
    both = zip(tagged(0, table), tagged(1, table), strict=True)
    imported = text_of(tmp_path, "".join(line for pair in both for line in pair), "all_reduce.log")
    assert imported.facts["num_runs"] == 2
    assert {each.group_size for each in only(imported)} == {1}
    assert not imported.bad_rows


def test_one_block_rows_belong_to_the_heading_above_them(tmp_path: Path) -> None:
    row = AR_ROW.rstrip("\n")
    in_place_only = row[:52] + " " * 32 + row[84:] + "\n"
    found = only(text_of(tmp_path, NEW_HEADER + in_place_only))
    assert [(each.in_place, each.timing.time_s) for each in found if each.timing] == [(True, 592.1e-6)]
    out_of_place_only = row[:84] + "\n"
    found = only(text_of(tmp_path, NEW_HEADER + out_of_place_only))
    assert [(each.in_place, each.timing.time_s) for each in found if each.timing] == [(False, 592.8e-6)]


def test_several_collectives_in_one_log(tmp_path: Path) -> None:
    ranks = rank_lines(8, 8)
    content = "".join(
        f"# Collective test starting: {name}_perf\n{SETTINGS}{ranks}{NEW_HEADER}{row}# Out of bounds values : 0 OK\n"
        for name, row in (("all_reduce", AR_ROW), ("all_gather", AG_ROW), ("alltoall", AG_ROW))
    )
    found = only(text_of(tmp_path, content))
    assert [each.operation for each in found[::2]] == ["all_reduce", "all_gather", "all_to_all"]


def test_wrong_results_are_data(tmp_path: Path) -> None:
    row = AR_ROW.replace("396.19      0", "396.19  1e+03")
    imported = text_of(tmp_path, NEW_HEADER + row + "# Out of bounds values : 1 FAILED\n")
    first, second = only(imported)
    assert (first.ok, first.num_wrong, first.error) == (False, 1000, "1000 wrong elements")
    assert first.timing is not None
    assert second.ok
    assert second.num_wrong == 0
    assert "out-of-bounds" in codes(imported)


def test_processor_times_are_not_collective_times(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="processor times"):
        text_of(tmp_path, NEW_HEADER.replace(" time", "cputime") + AR_ROW)


def test_launch_command_tells_the_nodes_where_no_device_is_listed(tmp_path: Path) -> None:
    content = "$ mpirun -np 8 -N 4 ./all_reduce_perf -b 8 -e 8 -g 1\n" + NEW_HEADER + AR_ROW
    first = only(text_of(tmp_path, content))[0]
    assert (first.group_size, first.num_nodes, first.devices_per_node) == (8, 2, 4)


def test_the_user_fills_what_the_file_leaves_out(tmp_path: Path) -> None:
    imported = text_of(tmp_path, NEW_HEADER + AR_ROW, num_nodes="2", device="h100-sxm5-80gb")
    first = only(imported)[0]
    assert (first.num_nodes, first.devices_per_node) == (2, 4)
    assert imported.batches[0].environment.device == "h100-sxm5-80gb"
    mismatch = text_of(tmp_path, NEW_HEADER + AR_ROW, group_size="16")
    assert "rank-mismatch" in codes(mismatch)
    assert only(mismatch)[0].group_size == 8


# ---- damage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (AR_ROW.replace("592.8", "59x.8"), "59x.8"),
        (AR_ROW.replace("592.8", "nan"), "nan"),
        (AR_ROW.replace("592.8", "-592.8"), "negative"),
        (AR_ROW.replace("592.8", "1e999"), "too large"),
        (AR_ROW.replace("592.8", "0.00"), "no time"),
        (AR_ROW.replace("396.71      0", "396.71"), "columns"),
        (AR_ROW.replace("592.8  226.39", "226.39  592.8"), "other rows"),
        (AR_ROW.replace("592.8  226.39  396.19", "396.2  226.39  592.80"), "mixed up"),
        (AR_ROW.replace("134217728      33554432", "33554432     134217728"), "do not fit"),
        (AR_ROW.replace("134217728", "-34217728"), "whole number"),
        (AR_ROW.replace("134217728", "1342x7728"), "whole number"),
        (AR_ROW.replace("396.71      0", "396.71    0.5"), "count of wrong"),
        (AR_ROW[:62] + "\n", "columns"),
        (AR_ROW[:45] + "\n", "breaks off"),
    ],
)
def test_damaged_rows_are_reported_with_their_line_and_never_stored(tmp_path: Path, damaged: str, reason: str) -> None:
    imported = text_of(
        tmp_path, "# Collective test starting: all_reduce_perf\n" + NEW_HEADER + AR_ROW + damaged + AR_ROW
    )
    assert len(only(imported)) in (4, 5), "the good rows are kept"
    assert [bad.where for bad in imported.bad_rows] == ["line 6"]
    assert reason in imported.bad_rows[0].what


@pytest.mark.parametrize(
    "content", ["", "\n\n", "# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n", NEW_HEADER, "\0\0\0", "8 2 float"]
)
def test_files_without_a_row_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "all_reduce.txt", content)])


def test_any_cut_or_shuffled_log_is_refused_or_read(tmp_path: Path) -> None:
    lines = sample("nccl-tests/superbench_nccl_allreduce.log").text().splitlines(keepends=True)
    whole = "".join(lines)
    variants = [whole[: len(whole) * part // 17] for part in range(17)]
    variants += ["".join(lines[start::3]) for start in range(3)] + ["".join(reversed(lines))]
    variants += ["".join(" ".join(reversed(line.split())) + "\n" for line in lines)]
    for content in variants:
        try:
            imported = read_anyway(FORMAT, [written(tmp_path, "nccl_allreduce.log", content)])
        except DocumentInvalid:
            continue
        assert imported.num_observations > 0


@pytest.mark.parametrize(
    "line", [" " * 300_000 + "x (B", "1" * 300_000 + "x", "8 " * 100_000, "| " * 100_000, "Rank " * 50_000]
)
def test_long_hostile_lines_take_little_time(tmp_path: Path, line: str) -> None:
    begun = AR_ROW[:52] + "node1:1:1 [0] NCCL INFO x\n"
    content = "# Collective test starting: all_reduce_perf\n" + NEW_HEADER + AR_ROW + begun + line + "\n" + AR_ROW
    assert len(only(text_of(tmp_path, content))) == 4


def test_other_texts_do_not_match(tmp_path: Path) -> None:
    for content in (
        "size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)\n",
        "size count type redop time algo_bw nw_bw\n",
        "run all_reduce_perf and look at algbw and busbw\n",
    ):
        assert not FORMAT.matches(written(tmp_path, "x", content).head())


def test_twenty_thousand_rows_take_little_time(tmp_path: Path) -> None:
    content = "# Collective test starting: all_reduce_perf\n" + NEW_HEADER + AR_ROW * 20_000
    assert len(only(text_of(tmp_path, content))) == 40_000


OLD_HEADER = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


@pytest.mark.parametrize("ranks", [2, 8])
def test_oldest_all_gather_prints_the_bus_bandwidth_twice(tmp_path: Path, ranks: int) -> None:
    rows = "".join(
        f"  {size}  {size // 4 // ranks}  float  {time_us:.1f}  {bus:.2f}  {bus:.2f}  0e+00  {time_us:.1f}  {bus:.2f}"
        f"  {bus:.2f}  0e+00\n"
        for size, time_us in ((8_388_608, 300.0), (134_217_728, 4000.0), (1_073_741_824, 31_000.0))
        for bus in (size / time_us / 1e3 * (ranks - 1) / ranks,)
    )
    imported = text_of(tmp_path, OLD_HEADER + rows)
    found = only(imported)
    assert {(each.operation, each.group_size) for each in found} == {("all_gather", ranks)}
    assert {flag.code for flag in imported.flags} == {"operation-inferred"}
    listed = rank_lines(ranks, ranks)
    named = text_of(tmp_path, "===begin all_gather_perf test===\n" + listed + OLD_HEADER + rows)
    assert {(each.operation, each.group_size) for each in only(named)} == {("all_gather", ranks)}
    assert named.flags == []


def test_a_broadcast_of_that_time_is_no_all_gather(tmp_path: Path) -> None:
    header = OLD_HEADER.replace("type     time", "type    root     time")
    row = "  134217728  33554432  float  0  91250  1.47  1.47  0e+00  91248  1.47  1.47  0e+00\n"
    imported = text_of(tmp_path, rank_lines(2, 2) + header + row, "broadcast.log")
    assert {each.operation for each in only(imported)} == {"broadcast"}


def test_settings_with_colons_are_those_of_rccl_tests(tmp_path: Path) -> None:
    settings = (
        "# nThreads: 1 nGpus: 2 nRanks: 1 minBytes: 8 maxBytes: 134217728 step: 2(factor) "
        "warmupIters: 7 iters: 30 validation: 1\n"
    )
    imported = text_of(tmp_path, settings + NEW_HEADER + AR_ROW)
    assert imported.tool == "rccl-tests"
    assert imported.facts["run_1_warmup_iterations"] == 7
    assert {each.timing.num_samples for each in only(imported) if each.timing} == {30}


def test_a_program_started_by_itself_says_its_devices(tmp_path: Path) -> None:
    row = AR_ROW.replace("396.19", "226.39").replace("396.71", "226.69")
    alone = text_of(tmp_path, "./build/sendrecv_perf -b 128M -e 1G -f 2 -g 8\n" + NEW_HEADER + row)
    assert {(each.operation, each.group_size) for each in only(alone)} == {("send_recv", 8)}
    launched = text_of(tmp_path, "mpirun -np 16 ./build/sendrecv_perf -b 128M -g 1\n" + SETTINGS + NEW_HEADER + row)
    assert {each.group_size for each in only(launched)} == {16}
