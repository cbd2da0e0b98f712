"""The Inspector's records and metrics are read with full sizes, over all ranks, without a name of a host.

No file of a real job is public: the records follow the plug-in's README (two of them are its own examples).
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_inspector import FORMAT
from tests.importing import read, read_anyway, written


def record(rank: int = 0, sn: int = 1, time_us: float = 200, **perf: Any) -> dict[str, Any]:
    values = {
        "coll": "AllReduce",
        "coll_sn": sn,
        "coll_msg_size_bytes": 1048576,
        "coll_exec_time_us": time_us,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 1048576 / time_us / 1e3 if time_us else 0.0,
        "coll_algo": "RING",
        "coll_proto": "LL",
    } | perf
    return {
        "header": {"id": "0xabc", "comm_name": "DP Group 0", "rank": rank, "n_ranks": 2, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.2", "hostname": "secret-host", "pid": 7},
        "coll_perf": values,
    }


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


def test_the_last_rank_shows_the_communication(tmp_path: Path) -> None:
    first = written(tmp_path, "a.log", lines(record(0, 1, 200), record(0, 2, 500), record(0, 3, 210)))
    second = written(tmp_path, "b.log", lines(record(1, 1, 900), record(1, 2, 190), record(1, 3, 205)))
    imported = read(FORMAT, first, second)
    (only,) = imported.batches[0].collectives
    assert only.timing is not None
    assert (only.operation, only.size_bytes, only.group_size, only.launch) == ("all_reduce", 1048576, 2, "in_situ")
    assert (only.timing.time_s, only.timing.statistic, only.timing.num_samples) == (200e-6, "median", 3)
    assert (only.algorithm, only.protocol, only.num_nodes, only.devices_per_node) == ("RING", "LL", 1, 2)
    assert only.detail == {"ranks_seen": 2, "timing_source": "kernel_gpu"}
    assert not imported.flags
    assert imported.tool_version == "v4.2"
    assert "secret" not in repr(imported)
    assert "DP Group" not in repr(imported)


def test_one_rank_alone_includes_waiting(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "a.log.gz", gzip.compress(lines(record()).encode())))
    assert [flag.code for flag in imported.flags] == ["waiting-included"]


def test_the_examples_of_the_plug_in_are_parts_of_one_rank(tmp_path: Path) -> None:
    """README: 65536 bytes in 110 us are 19.065018 GB/s on 32 ranks, so the input is 32 times that."""
    perf: dict[str, Any] = {
        "coll": "ReduceScatter",
        "coll_msg_size_bytes": 65536,
        "coll_exec_time_us": 110,
        "coll_algobw_gbs": 19.065018,
        "coll_busbw_gbs": 18.469236,
    }
    example = record(31, 129, **perf)
    example["header"] |= {"n_ranks": 32, "nnodes": 4}
    (only,) = read(FORMAT, written(tmp_path, "a.log", lines(example))).batches[0].collectives
    assert (only.operation, only.size_bytes, only.group_size) == ("reduce_scatter", 65536 * 32, 32)
    assert (only.num_nodes, only.devices_per_node) == (4, 8)


def test_header_once_for_many_records_and_pretty_printing(tmp_path: Path) -> None:
    head = record()
    del head["coll_perf"]
    head["dump_stats"] = {"coll_records": 2}
    bodies = [{"coll_perf": record(sn=sn)["coll_perf"]} for sn in (1, 2)]
    for content in (
        lines(head, *bodies),
        "".join(json.dumps(each, indent=2) + "\n" for each in (head, *bodies)),
    ):
        (only,) = read(FORMAT, written(tmp_path, "a.jsonl", content)).batches[0].collectives
        assert only.timing is not None
        assert (only.timing.num_samples, only.group_size) == (2, 2)


def test_all_to_all_and_sends(tmp_path: Path) -> None:
    whole = record(sn=1, coll="AlltoAll")
    part = record(sn=2, coll="AlltoAll", coll_algobw_gbs=2 * 1048576 / 200 / 1e3)
    send = record()
    del send["coll_perf"]
    send["p2p_perf"] = {"p2p": "Send", "p2p_sn": 8, "p2p_peer": 1, "p2p_msg_size_bytes": 524288, "p2p_exec_time_us": 50}
    imported = read(FORMAT, written(tmp_path, "a.log", lines(whole, part, send)))
    found = imported.batches[0].collectives
    assert [(each.operation, each.size_bytes, each.group_size) for each in found] == [
        ("all_to_all", 1048576, 2),
        ("all_to_all", 2097152, 2),
        ("send_recv", 524288, 2),
    ]
    assert found[2].detail == {"variant": "send", "ranks_seen": 1}


@pytest.mark.parametrize(
    "bad",
    [
        lines(record(coll="Dance")),
        lines(record(coll_exec_time_us=-1)),
        lines(record(coll_exec_time_us="fast")),
        lines(record(coll_msg_size_bytes=1.5)),
        lines(record(coll_algobw_gbs=500.0)),
        lines(record())[:-20] + "\n}\n",
        lines(record()).replace("200", "NaN"),
        "[1, 2]}\n",
    ],
)
def test_bad_records(tmp_path: Path, bad: str) -> None:
    imported = read(FORMAT, written(tmp_path, "a.log", lines(record()) + bad))
    assert imported.num_observations == 1
    assert len(imported.bad_rows) == 1
    assert imported.bad_rows[0].where == "line 2"


def test_records_that_measure_nothing_are_left_out(tmp_path: Path) -> None:
    alone = record()
    alone["header"]["n_ranks"] = 1
    imported = read(FORMAT, written(tmp_path, "a.log", lines(record(), record(time_us=0), alone)))
    assert sum(imported.skipped.values()) == 2
    with pytest.raises(DocumentInvalid):
        read(FORMAT, written(tmp_path, "b.log", lines(alone)))


LABELS = (
    'version="v5.1",slurm_job_id="1670760",node="secret-node",gpu="GPU0",comm_name="DP Group 0",n_nodes="1",nranks="4",'
)
METRICS = (
    f'nccl_bus_bandwidth_gbs{{{LABELS}collective="AllReduce",message_size="4-5GB",algo_proto="Ring_ll"}} 678.263\n'
    f'nccl_collective_exec_time_microseconds{{{LABELS}collective="AllReduce",message_size="4-5GB",algo_proto="Ring_ll"}}'
    " 9498.47\n"
    f'nccl_p2p_bus_bandwidth_gbs{{{LABELS}p2p_operation="Send",message_size="512-513MB"}} 464.9\n'
    f'nccl_p2p_exec_time_microseconds{{{LABELS}p2p_operation="Send",message_size="512-513MB"}} 1154.87\n'
)


def test_metrics_of_the_readme(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "m.prom", METRICS))
    reduce, send = imported.batches[0].collectives
    assert reduce.timing is not None
    assert (reduce.operation, reduce.group_size, reduce.num_nodes) == ("all_reduce", 4, 1)
    assert reduce.size_bytes == pytest.approx(1 << 32, rel=1e-4), "4 GiB lie in the range 4-5 GB"
    assert (reduce.timing.time_s, reduce.timing.statistic) == (9498.47 * 1e-6, "mean")
    assert (reduce.algorithm, reduce.protocol, reduce.detail["size_range"]) == ("Ring", "ll", "4-5GB")
    assert (send.operation, send.group_size) == ("send_recv", 2)
    assert 512e6 <= send.size_bytes <= 513e6
    assert [flag.code for flag in imported.flags] == ["size-from-bucket"]
    assert "secret" not in repr(imported)
    assert "1670760" not in repr(imported)


def test_metrics_with_percentiles_and_exact_sizes(tmp_path: Path) -> None:
    labels = LABELS + 'collective="AllGather",message_size_bytes="1048576",algo_proto="NVLS_TREE_SIMPLE"'
    content = "".join(
        f"nccl_{name}{{{labels}}} {value}\n"
        for name, value in (
            ("bus_bandwidth_gbs", 4 * 1048576 / 100e-6 / 1e9 * 0.75),
            ("collective_count", 10),
            ("collective_exec_time_sum_microseconds", 1000),
            ("collective_exec_time_p50_microseconds", 95),
            ("collective_exec_time_min_microseconds", 80),
            ("collective_exec_time_p99_microseconds", 150),
            ("collective_exec_time_max_microseconds", 160),
        )
    )
    (only,) = read(FORMAT, written(tmp_path, "m.prom", "# HELP x\n" + content)).batches[0].collectives
    assert only.timing is not None
    assert (only.size_bytes, only.group_size) == (4 << 20, 4)
    assert (only.timing.time_s, only.timing.statistic, only.timing.num_samples) == (95 * 1e-6, "median", 10)
    assert (only.timing.min_s, only.timing.max_s) == (80 * 1e-6, 160 * 1e-6)
    assert (only.algorithm, only.protocol) == ("NVLS_TREE", "SIMPLE")


def test_bad_metrics(tmp_path: Path) -> None:
    bad = METRICS.replace('nranks="4"', 'nranks="many"').replace("4-5GB", "5-6GB")
    imported = read(FORMAT, written(tmp_path, "m.prom", METRICS + bad))
    assert imported.num_observations == 2
    assert len(imported.bad_rows) == 2


def test_cut_files(tmp_path: Path) -> None:
    for content in (lines(record(), record(1)), METRICS):
        for cut in range(0, len(content), 17):
            try:
                imported = read_anyway(FORMAT, [written(tmp_path, "log", content[:cut])])
            except DocumentInvalid:
                continue
            assert imported.num_observations
