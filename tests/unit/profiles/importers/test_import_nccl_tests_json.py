"""The JSON report of nccl-tests is read like its text, without the environment that it leaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_tests_json import FORMAT
from profiles.importing.imported import Imported
from tests.importing import read, read_anyway, written


def place(time_us: float, size: int = 1 << 27, ranks: int = 8, **more: Any) -> dict[str, Any]:
    algorithm = size / time_us / 1e3
    return {"time": time_us, "alg_bw": round(algorithm, 6), "bus_bw": round(algorithm * 2 * (ranks - 1) / ranks, 6)} | {
        "nwrong": 0.0,
        **more,
    }


def report(**changes: Any) -> dict[str, Any]:
    devices = [
        {
            "rank": rank,
            "group": 0,
            "pid": 100 + rank,
            "hostname": f"secret-{rank // 4}",
            "device": rank % 4,
            "device_hex": f"0000:0{rank}:00",
            "device_info": "NVIDIA H100 80GB HBM3",
        }
        for rank in range(8)
    ]
    result = {
        "size": 1 << 27,
        "count": 1 << 25,
        "type": "float",
        "redop": "sum",
        "root": "    -1",
        "out_of_place": place(592.8),
        "out_of_place_per_iter": {
            "min_us": 590.0, "max_us": 600.0, "avg_us": 592.8, "p50_us": 592.0, "p95_us": 599.0, "p99_us": 600.0,
            "stdev_us": 2.5, "cv_pct": 0.4, "times_us": [590.0, 600.0],
        },
        "in_place": place(592.1),
        "actual_iterations": 50,
        "experiment_name": "AllReduce",
        "tuning": {"implementation": "Coll", "algo": "NVLS", "proto": "SIMPLE", "#channels": 16},
    }  # fmt: skip
    return {
        "version": 3,
        "start_time": "2026-03-01 10:11:12",
        "args": ["/home/bob/build/all_reduce_perf", "-b", "128M", "-e", "128M", "-a", "3", "-J", "out.json"],
        "env": ["HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz", "HOSTNAME=secret-0"],
        "nccl_version": 22903,
        "config": {
            "nthreads": 1, "ngpus": 1, "minimum_bytes": 1 << 27, "maximum_bytes": 1 << 27, "warmup_iters": 1,
            "iterations": 20, "aggregated_iterations": 1, "validation": 1, "graph": 0,
            "blocking_collectives": "false", "parallel_init": "false", "devices": devices,
        },
        "results": [result],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "end_time": "2026-03-01 10:12:12",
    } | changes  # fmt: skip


def imported_from(tmp_path: Path, document: Any, **given: str) -> Imported:
    return read(FORMAT, written(tmp_path, "out.json", json.dumps(document)), given=given)


def test_a_report_of_2_19(tmp_path: Path) -> None:
    imported = imported_from(tmp_path, report())
    first, second = imported.batches[0].collectives
    assert first.timing is not None
    assert second.timing is not None
    assert (first.operation, first.size_bytes, first.group_size, first.in_place) == ("all_reduce", 1 << 27, 8, False)
    assert (first.timing.time_s, first.timing.min_s, first.timing.std_s) == (592.8e-6, 590e-6, 2.5e-6)
    assert (first.timing.statistic, first.timing.num_samples, first.launch) == ("mean", 50, "back_to_back")
    assert first.detail == {
        "over_ranks": "max",
        "p50_s": 592e-6,
        "p95_s": 599e-6,
        "p99_s": 600e-6,
        "variation_percent": 0.4,
    }
    assert (first.algorithm, first.protocol, first.num_channels) == ("NVLS", "SIMPLE", 16)
    assert (second.timing.time_s, second.in_place, second.row) == (592.1e-6, True, 0)
    assert (first.num_nodes, first.devices_per_node, first.num_wrong) == (2, 4, 0)
    environment = imported.batches[0].environment
    assert environment.communication_library_version == "2.29.3"
    assert (environment.device, environment.captured_at) == ("h100-sxm5-80gb", "2026-03-01T10:11:12")
    assert imported.facts["switches"] == "-b 128M -e 128M -a 3 -J out.json"
    for leaked in ("hf_", "TOKEN", "secret", "bob"):
        assert leaked not in repr(imported)


def test_a_process_with_eight_gpus_lists_only_its_first(tmp_path: Path) -> None:
    document = report()
    document["config"]["ngpus"] = 8
    document["config"]["devices"] = document["config"]["devices"][:1]
    imported = imported_from(tmp_path, document)
    first = imported.batches[0].collectives[0]
    assert (first.group_size, first.num_nodes, first.devices_per_node) == (8, 1, 8)
    assert imported.batches[0].environment.num_devices == 8
    assert not imported.flags


def test_graph_blocking_unchecked_and_in_place_only(tmp_path: Path) -> None:
    document = report()
    document["config"]["graph"] = 5
    document["results"][0]["in_place"]["nwrong"] = None
    document["results"][0]["out_of_place"] = None
    (only,) = imported_from(tmp_path, document).batches[0].collectives
    assert (only.launch, only.in_place, only.num_wrong) == ("graph", True, None)
    assert only.timing is not None
    assert only.timing.num_samples == 250
    document["config"]["blocking_collectives"] = "true"
    assert imported_from(tmp_path, document).batches[0].collectives[0].launch == "blocking"


def test_processor_times_are_refused(tmp_path: Path) -> None:
    document = report()
    for name in ("out_of_place", "in_place"):
        document["results"][0][name]["cpu_time"] = document["results"][0][name].pop("time")
    with pytest.raises(DocumentInvalid, match="processor times"):
        imported_from(tmp_path, document)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"size": "much"}, "not a number"),
        ({"size": True}, "not a"),
        ({"out_of_place": place(592.8) | {"time": "nan"}}, "time"),
        ({"out_of_place": place(592.8) | {"time": -1}}, "negative"),
        ({"out_of_place": 7}, "no object"),
        ({"out_of_place": None, "in_place": None}, "neither"),
    ],
)
def test_bad_results_are_reported_by_their_index(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    document = report()
    document["results"].append(document["results"][0] | change)
    imported = imported_from(tmp_path, document)
    assert len(imported.batches[0].collectives) == 2
    assert [bad.where for bad in imported.bad_rows] == ["/results/1"]
    assert reason in imported.bad_rows[0].what


def test_rccl_records(tmp_path: Path) -> None:
    def record(in_place: int, time_us: float, **changes: Any) -> dict[str, Any]:
        found = place(time_us)
        return {
            "numCycle": 0, "name": "AllReduce", "nodes": 2, "ranks": 8, "ranksPerNode": 4, "gpusPerRank": 1,
            "size": 1 << 27, "type": "float", "redop": "sum", "inPlace": in_place, "time": time_us,
            "algBw": found["alg_bw"], "busBw": found["bus_bw"], "wrong": "0",
        } | changes  # fmt: skip

    records = [record(0, 592.8), record(1, 592.1), record(0, 592.8, wrong="3"), record(1, -1.0), "no record"]
    imported = imported_from(tmp_path, records)
    found = imported.batches[0].collectives
    assert [(each.in_place, each.num_wrong, each.ok) for each in found] == [
        (False, 0, True),
        (True, 0, True),
        (False, 3, False),
    ]
    assert {(each.group_size, each.num_nodes, each.devices_per_node, each.launch) for each in found} == {
        (8, 2, 4, "unknown")
    }
    assert imported.tool == "rccl-tests"
    assert imported.batches[0].environment.communication_library == "rccl"
    assert sorted(bad.where for bad in imported.bad_rows) == ["/3", "/4"]


def test_broken_reports_are_refused(tmp_path: Path) -> None:
    text = json.dumps(report())
    for cut in range(0, len(text) - 1, 97):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "out.json", text[:cut])])
    for hostile in ("[]", "{}", "3", '{"results": []}', '{"results": [[]]}', '{"nccl_version": 1, "results": [{}]}'):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "out.json", hostile)])


def test_a_trace_that_names_its_nccl_version_does_not_match(tmp_path: Path) -> None:
    trace = {"distributedInfo": {"nccl_version": "2.19.3"}, "traceEvents": [{"args": {"results": 1}}]}
    assert not FORMAT.matches(written(tmp_path, "trace.json", json.dumps(trace)).head())
