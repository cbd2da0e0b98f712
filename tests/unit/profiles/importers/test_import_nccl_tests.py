"""Every nccl-tests / rccl-tests text is read as its tool meant it, in all its versions."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_tests import FORMAT
from tests.importing import SHARED_SAMPLES, read, sample
from tests.nccl_text import AG_ROW, AR_ROW, NEW_HEADER, SETTINGS, codes, only, rank_lines, text_of

GOLDEN = SHARED_SAMPLES / "GOLDEN_nccl_rccl_tests.tsv"


def golden_rows() -> list[dict[str, str]]:
    if not GOLDEN.exists():
        return []
    with GOLDEN.open() as stream:
        return [row for row in csv.DictReader(stream, delimiter="\t") if row["rows"] != "0"]


@pytest.mark.parametrize("expected", golden_rows(), ids=lambda row: str(row["file"]))
def test_every_golden_figure_is_reproduced(expected: dict[str, str]) -> None:
    imported = read(FORMAT, sample(expected["file"]))
    facts = imported.facts
    observed = [each for batch in imported.batches for each in batch.collectives]
    assert not imported.bad_rows
    assert facts["num_rows_read"] == int(expected["rows"])
    assert len(observed) == 2 * (int(expected["rows"]) - imported.skipped.get("size 0", 0))
    assert facts["first_size_bytes"] == int(expected["first_size"])
    assert facts["last_size_bytes"] == int(expected["last_size"])
    assert facts["max_bus_bandwidth_out_of_place_bytes_per_s"] == float(expected["max_busbw_oop_gb_s"]) * 1e9
    assert facts["max_bus_bandwidth_in_place_bytes_per_s"] == float(expected["max_busbw_ip_gb_s"]) * 1e9
    assert facts["min_time_out_of_place_s"] == float(expected["min_time_us_oop"] + "e-6")
    declared, inferred = expected["ranks_declared"], expected["ranks_inferred_from_busbw_ratio"]
    assert facts.get("run_1_ranks_declared") == (None if declared == "None" else int(declared))
    if inferred.startswith("ratio"):
        assert facts["run_1_bandwidth_ratio"] == pytest.approx(float(inferred.split()[1]), abs=5e-4)
        assert "run_1_ranks_inferred" not in facts
    elif inferred:
        assert facts["run_1_ranks_inferred"] == int(float(inferred.split()[0]))
        assert {each.group_size for each in observed} == {int(float(inferred.split()[0]))}
    elif declared != "None":
        assert {each.group_size for each in observed} == {int(declared)}


def test_superbench_all_to_all_of_2_10_with_its_blank_redop() -> None:
    imported = read(FORMAT, sample("nccl-tests/superbench_nccl_alltoall.log"))
    found = only(imported)
    assert imported.skipped == {"size 0": 5}
    assert len(found) == 2 * 29
    first, last = found[0], found[-1]
    assert (first.operation, first.size_bytes, first.row, first.in_place) == ("all_to_all", 32, 21, False)
    assert first.timing is not None
    assert first.timing.time_s == 89.00e-6
    assert (first.timing.statistic, first.timing.num_samples) == ("mean", 20)
    assert (first.group_size, first.num_nodes, first.devices_per_node, first.stride) == (8, 1, 8, 1)
    assert (first.concurrent_groups, first.launch, first.dtype, first.reduction) == (1, "back_to_back", "fp32", "")
    assert first.num_wrong is None
    assert first.ok
    assert last.timing is not None
    assert (last.size_bytes, last.timing.time_s, last.in_place) == (8589934592, 0.033234, True)
    environment = imported.batches[0].environment
    assert environment.device_reported == "A100-SXM4-40GB"
    assert environment.device == "a100-sxm4-40gb"
    assert (environment.num_devices, environment.communication_library) == (8, "nccl")
    assert codes(imported) == ["operation-inferred"]


def test_superbench_reduce_keeps_its_root_and_reduction() -> None:
    found = only(read(FORMAT, sample("nccl-tests/superbench_nccl_reduce.log")))
    assert {(each.operation, each.root, each.reduction) for each in found} == {("reduce", 0, "sum")}


def test_three_repetitions_with_separators_are_three_runs_of_one_environment() -> None:
    imported = read(FORMAT, sample("nccl-tests/ebpf_5090_2rank_socket_allgather_v2.18.0.txt"))
    found = only(imported)
    assert imported.facts["num_runs"] == 3
    assert imported.tool_version == "2.18.0"
    assert [
        each.timing.time_s for each in found if each.size_bytes == 1 << 20 and not each.in_place and each.timing
    ] == [
        2189.16e-6,
        4468.53e-6,
        2188.98e-6,
    ]
    assert imported.batches[0].environment.communication_library_version == "2.29.7"
    assert imported.batches[0].environment.num_devices == 1
    assert codes(imported) == ["shared-devices"] * 3
    assert {each.timing.num_samples for each in found if each.timing} == {50}


def test_the_tool_names_the_collective_better_than_the_file_does() -> None:
    found = only(read(FORMAT, sample("nccl-tests/ebpf_5090_allreduce_v2.18.0.txt")))
    assert {each.operation for each in found} == {"broadcast"}
    assert {each.root for each in found} == {0}


def test_two_nodes_are_counted_and_their_names_forgotten() -> None:
    imported = read(FORMAT, sample("nccl-tests/oci_h100_16gpu_allreduce.txt"))
    environment = imported.batches[0].environment
    assert (environment.num_nodes, environment.devices_per_node, environment.num_devices) == (2, 8, 16)
    assert environment.device == "h100-sxm5-80gb"
    assert (environment.communication_library_version, environment.runtime_version) == ("2.23.4", "CUDA 12.6")
    assert "ord01" not in repr(imported)


def test_settings_and_command_line_of_a_documented_run() -> None:
    imported = read(FORMAT, sample("nccl-tests/cscs_gh200_8gpu_cxi_allreduce_v2.17.1.txt"))
    found = only(imported)
    assert imported.facts["run_1_switches"] == "-b 8 -e 128M -f 2"
    assert imported.facts["run_1_operation_from"] == "test program"
    assert (found[0].num_nodes, found[0].devices_per_node, found[0].group_size) == (2, 4, 8)
    assert found[0].timing is not None
    assert found[0].timing.num_samples == 20
    assert imported.batches[0].environment.device_reported == "NVIDIA GH200 120GB"
    assert "nid005471" not in repr(imported)


# ---- versions and dialects, written out -------------------------------------------------------------------------


def test_2017_text_has_milliseconds_and_no_units(tmp_path: Path) -> None:
    imported = text_of(
        tmp_path,
        "# NCCL version 2.1.2 compiled with CUDA 9.0\n"
        "nThread 1 nGpus 8 minBytes 8388608 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
        "# Using devices\n"
        "#   Rank  0 on       node1 device  0 [0x1a] Tesla V100-SXM2-16GB\n"
        "#   Rank  1 on       node1 device  1 [0x1b] Tesla V100-SXM2-16GB\n"
        "#   Rank  2 on       node1 device  2 [0x1c] Tesla V100-SXM2-16GB\n"
        "#   Rank  3 on       node1 device  3 [0x1d] Tesla V100-SXM2-16GB\n\n"
        "#                                                 out-of-place                    in-place\n"
        "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
        "     8388608       2097152   float     sum    0.245  34.24  51.36    2e-07    0.240  34.95  52.43    2e-07\n",
    )
    found = only(imported)
    assert [each.timing.time_s for each in found if each.timing] == [0.245e-3, 0.240e-3]
    assert found[0].detail == {"largest_difference": 2e-07}
    assert found[0].ok
    assert found[0].num_wrong is None
    assert (found[0].operation, found[0].group_size, found[0].reduction) == ("all_reduce", 4, "sum")
    assert imported.batches[0].environment.communication_library_version == "2.1.2"
    assert imported.batches[0].environment.runtime_version == "CUDA 9.0"


def test_missing_unit_line_is_settled_by_the_bandwidths(tmp_path: Path) -> None:
    header = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    row = "134217728 33554432 float sum -1 0.5928 226.39 396.19 0 0.5921 226.69 396.71 0\n"
    imported = text_of(tmp_path, header + row)
    timing = only(imported)[0].timing
    assert timing is not None
    assert timing.time_s == 0.5928e-3
    assert "unit-inferred" in codes(imported)
    assert imported.facts["min_time_out_of_place_s"] == 0.5928e-3


def test_printed_unit_that_contradicts_the_bandwidths_is_flagged_not_guessed(tmp_path: Path) -> None:
    row = "134217728 33554432 float sum -1 0.5928 226.39 396.19 0 0.5921 226.69 396.71 0\n"
    imported = text_of(tmp_path, NEW_HEADER + row)
    assert "bandwidth-differs" in codes(imported)


def test_2_4_broadcast_has_a_root_and_no_redop(tmp_path: Path) -> None:
    imported = text_of(
        tmp_path,
        "#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
        "  1073741824     268435456   float       2   4736.0  226.72  226.72  0e+00   4757.9  225.68  225.68  0e+00\n",
        "broadcast.log",
    )
    found = only(imported)
    assert (found[0].operation, found[0].root, found[0].reduction) == ("broadcast", 2, "")
    assert found[0].group_size is None
    assert "group-size-unknown" in codes(imported)


def test_old_all_gather_and_all_to_all_differ_by_their_redop_column(tmp_path: Path) -> None:
    units = "#        (B)    (elements)    (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n"
    blocks = "33508  256.36  224.31    N/A    33234  258.47  226.16    N/A\n"
    old_ag = "# size count type time algbw busbw error time algbw busbw error\n" + units
    old_a2a = "# size count type redop time algbw busbw error time algbw busbw error\n" + units
    row = "8589934592     268435456   float " + blocks
    assert {each.operation for each in only(text_of(tmp_path, old_ag + row))} == {"all_gather"}
    assert {each.operation for each in only(text_of(tmp_path, old_a2a + row))} == {"all_to_all"}


def test_the_factor_decides_what_it_can_and_no_more(tmp_path: Path) -> None:
    assert {each.operation for each in only(text_of(tmp_path, NEW_HEADER + AR_ROW))} == {"all_reduce"}
    reduce_scatter = AG_ROW.replace("none", " sum")
    assert {each.operation for each in only(text_of(tmp_path, NEW_HEADER + reduce_scatter))} == {"reduce_scatter"}
    with pytest.raises(DocumentInvalid, match="which collective") as refused:
        text_of(tmp_path, NEW_HEADER + AG_ROW)
    assert "--set operation=" in str(refused.value.hint)
    given = text_of(tmp_path, NEW_HEADER + AG_ROW, operation="all_to_all")
    assert {each.operation for each in only(given)} == {"all_to_all"}
    assert {each.group_size for each in only(given)} == {8}
    with pytest.raises(DocumentInvalid, match="no collective"):
        text_of(tmp_path, NEW_HEADER + AG_ROW, operation="all_the_things")


def test_a_file_name_that_contradicts_the_table_is_not_believed(tmp_path: Path) -> None:
    found = only(text_of(tmp_path, NEW_HEADER + AR_ROW, "all_gather_results.txt"))
    assert {each.operation for each in found} == {"all_reduce"}


def test_command_lines_name_the_collective_and_the_launch_mode(tmp_path: Path) -> None:
    content = (
        "user@login:~$ mpirun -np 8 -H 10.0.0.1 ./build/all_gather_perf -b 128M -e 128M -z 1 -a 3 -R 1 -g 1 | tee x\n"
        + SETTINGS
        + "# Blocking Enabled: wait for completion and barrier after each collective \n"
        + NEW_HEADER
        + AG_ROW
    )
    imported = text_of(tmp_path, content)
    first = only(imported)[0]
    assert (first.operation, first.launch) == ("all_gather", "blocking")
    assert first.detail == {"over_ranks": "max", "buffer_registration": 1}
    assert imported.facts["run_1_switches"] == "-b 128M -e 128M -z 1 -a 3 -R 1 -g 1"
    assert "10.0.0.1" not in repr(imported)


def test_graph_launches_multiply_the_samples(tmp_path: Path) -> None:
    content = SETTINGS.replace("graph: 0", "graph: 10").replace("agg iters: 1", "agg iters: 4") + NEW_HEADER + AR_ROW
    first = only(text_of(tmp_path, content))[0]
    assert first.launch == "graph"
    assert first.timing is not None
    assert first.timing.num_samples == 20 * 4 * 10
    assert first.detail == {"aggregated_operations": 4}


def test_per_iteration_columns_and_time_stamps_of_2_19(tmp_path: Path) -> None:
    imported = text_of(
        tmp_path,
        "# nccl-tests version 2.19.7 nccl-headers=23007 nccl-library=23007\n"
        "# Collective test starting: all_reduce_perf\n"
        + SETTINGS.replace("graph: 0", "graph: 0 unalign: 0")
        + "#  size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv%"
        " time algbw busbw #wrong i_min i_max i_p99 i_cv%           timestamp\n"
        "#  (B) (elements)   (us) (GB/s) (GB/s)  (us) (us) (us) (%)"
        " (us) (GB/s) (GB/s)  (us) (us) (us) (%) %Y-%m-%d %H:%M:%S\n"
        " 134217728 67108864 bfloat16 sum -1 592.8 226.39 396.19 0 590.1 610.0 609.5 1.25"
        " 592.1 226.69 396.71 0 590.0 600.0 599.0 0.50  2026-03-01 10:11:12\n",
    )
    first, second = only(imported)
    assert first.timing is not None
    assert second.timing is not None
    assert (first.timing.time_s, first.timing.min_s, first.timing.max_s) == (592.8e-6, 590.1e-6, 610.0e-6)
    assert first.detail == {"p99_s": 609.5e-6, "variation_percent": 1.25}
    assert (second.timing.time_s, second.timing.max_s, second.in_place) == (592.1e-6, 600.0e-6, True)
    assert first.dtype == "bf16"
    assert imported.batches[0].environment.communication_library_version == "2.30.7"


def test_rccl_tests_with_algorithm_protocol_and_channels(tmp_path: Path) -> None:
    imported = text_of(
        tmp_path,
        "# Collective test starting: all_reduce_perf\n"
        + SETTINGS
        + "#\nrccl-tests: Version develop:6405c76\n# Using devices\n"
        + rank_lines(8, 8, name="AMD Instinct MI300X")
        + "RCCL version : 2.27.7-develop:29e1567\nHIP version  : 7.0.51831-a3e329ad8\n"
        "ROCm version : 7.0.1.0-42-9428210\nHostname     : secret-host-0\n"
        + NEW_HEADER.replace("#wrong\n", "#wrong   algo  proto nchannels\n", 1)
        + AR_ROW.rstrip()
        + "   RING  LL128  56\n",
    )
    first = only(imported)[0]
    assert (first.algorithm, first.protocol, first.num_channels) == ("RING", "LL128", 56)
    assert first.timing is not None
    assert first.timing.time_s == 592.8e-6
    environment = imported.batches[0].environment
    assert (imported.tool, imported.tool_version) == ("rccl-tests", "develop:6405c76")
    assert (environment.communication_library, environment.communication_library_version) == ("rccl", "2.27.7")
    assert (environment.runtime_version, environment.device) == ("ROCm 7.0.1.0", "mi300x")
    assert "secret" not in repr(imported)


def test_old_rccl_text_repeats_its_cycles(tmp_path: Path) -> None:
    small = (
        AR_ROW.replace("134217728      33554432", " 67108864      16777216")
        .replace("592.8", "296.4")
        .replace("592.1", "296.0")
    )
    imported = text_of(tmp_path, SETTINGS + rank_lines(8, 8) + NEW_HEADER + (small + AR_ROW) * 3)
    assert imported.facts["num_runs"] == 3
    assert len(only(imported)) == 12
    assert {each.group_size for each in only(imported)} == {8}


def test_all_dtypes_in_one_table_are_one_run(tmp_path: Path) -> None:
    half = AR_ROW.replace("134217728      33554432     float", " 67108864      33554432      half")
    half = half.replace("592.8", "296.4").replace("592.1", "296.0")
    imported = text_of(tmp_path, SETTINGS + rank_lines(8, 8) + NEW_HEADER + AR_ROW + half)
    assert imported.facts["num_runs"] == 1
    assert [each.dtype for each in only(imported)] == ["fp32", "fp32", "fp16", "fp16"]


def test_split_groups_run_at_once(tmp_path: Path) -> None:
    content = (
        "# Collective test starting: all_reduce_perf\n"
        + SETTINGS
        + rank_lines(16, 8, 8)
        + NEW_HEADER
        + "   134217728      33554432     float     sum      -1"
        "   5928.0   22.64   22.64      0   5921.0   22.67   22.67      0\n"
    )
    imported = text_of(tmp_path, content)
    first = only(imported)[0]
    assert (first.group_size, first.num_nodes, first.devices_per_node) == (2, 2, 1)
    assert (first.stride, first.concurrent_groups) == (8, 8)
    environment = imported.batches[0].environment
    assert (environment.num_devices, environment.num_nodes, environment.devices_per_node) == (16, 2, 8)
    assert not imported.flags


def test_declared_ranks_that_contradict_the_bandwidths(tmp_path: Path) -> None:
    content = "# Collective test starting: all_reduce_perf\n" + SETTINGS + rank_lines(12, 4) + NEW_HEADER + AR_ROW
    imported = text_of(tmp_path, content)
    assert codes(imported) == ["rank-mismatch"]
    assert "12 ranks" in imported.flags[0].what
    assert "belong to 8" in imported.flags[0].what
    assert {(each.group_size, each.num_nodes) for each in only(imported)} == {(8, None)}
    assert (imported.facts["run_1_ranks_declared"], imported.facts["run_1_ranks_inferred"]) == (12, 8)


def test_an_elided_device_list_declares_its_last_rank(tmp_path: Path) -> None:
    lines = rank_lines(144, 4).splitlines(keepends=True)
    content = "# Collective test starting: all_reduce_perf\n" + SETTINGS + lines[0] + "...\n" + lines[-1] + NEW_HEADER
    # 128 ranks: 2 x 127 / 128 = 1.984375
    row = " 17179869184 4294967296 float sum -1 37600.2 456.91 906.68 0 37601.0 456.90 906.66 0\n"
    imported = text_of(tmp_path, content + row)
    assert imported.facts["run_1_ranks_declared"] == 144
    assert imported.facts["run_1_ranks_inferred"] == 128
    assert codes(imported) == ["rank-mismatch"]
