# ruff: noqa: E501  documents stand as the tool writes them
"""XProf: times of operations, steps and all-reduces of a pod; what has no time or no known size is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.xprof_op_profile import FORMAT
from tests.importing import read, read_anyway, sample, written


def _tree(*metrics: dict[str, Any]) -> str:
    leaves = [
        {"name": f"%fusion.{index}", "metrics": each, "xla": {"op": "fusion", "expression": "%fusion = bf16[8,8] fusion(%a)", "category": "convolution fusion"}, "children": [{"name": "%dot", "xla": {"op": "dot"}}]}
        for index, each in enumerate(metrics)
    ]  # fmt: skip
    return json.dumps(
        {
            "byCategory": {
                "name": "byCategory",
                "metrics": {"time": 1},
                "children": [{"name": "c", "category": {}, "children": leaves}],
            }
        }
    )


def test_a_profile_of_shares_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="3 operations have only shares"):
        read(FORMAT, sample("jax/profile_demo.op_profile.json"))


def test_times_of_operations(tmp_path: Path) -> None:
    text = _tree(
        {"time": 0.5, "rawTime": 8e6, "occurrences": 4},
        {"rawTime": 1e6, "avgTimeUs": 0.25, "occurrences": 4},
        {"time": 0.1},
    )
    found = read(FORMAT, written(tmp_path, "op_profile.json", text), given={"device": "tpu-v5p"})
    first, second = found.batches[0].operators
    assert first.timing is not None
    assert second.timing is not None
    assert (first.operator, first.name, first.timing.time_s, first.timing.num_samples) == (
        "matmul",
        "fusion.0",
        2e-6,
        4,
    )
    assert first.timing.statistic == "mean"
    assert second.timing.time_s == 0.25e-6


def test_what_todays_xprof_writes(tmp_path: Path) -> None:
    """Fields of plugin/xprof/protobuf/op_profile.proto: device type, idle time, cut lists, picoseconds."""
    times = {"rawTime": 8e6, "rawFlops": 1e9, "bandwidthUtils": [0.1], "occurrences": 4, "avgTimePs": 2e6}
    document = json.loads(_tree(times, {"avg_time_ps": 3e6}, {"rawTime": 0, "occurrences": 0, "avgTimePs": 0}))
    root = document["byCategory"]
    root["children"][0]["numChildren"] = 200
    root["children"].append({"name": "IDLE", "metrics": times, "xla": {"category": "IDLE"}})
    document["deviceType"] = "TPU v5 lite"
    found = read(FORMAT, written(tmp_path, "op_profile.json", json.dumps(document)))
    (batch,) = found.batches
    assert [each.timing and each.timing.time_s for each in batch.operators] == [2e-6, 3e-6]
    assert batch.environment.device_reported == "TPU v5 lite"
    assert found.skipped == {"idle time": 1, "operations that never ran": 1}
    assert [flag.code for flag in found.flags] == ["tree-cut"]


@pytest.mark.parametrize(
    "metrics",
    [
        {"rawTime": 5},
        {"rawTime": -5, "occurrences": 1},
        {"rawTime": "x", "occurrences": 1},
        {"rawTime": 0, "occurrences": 2},
    ],
)
def test_broken_operations(tmp_path: Path, metrics: dict[str, Any]) -> None:
    found = read(FORMAT, written(tmp_path, "a.json", _tree(metrics, {"rawTime": 5.0, "occurrences": 1})))
    assert len(found.batches[0].operators) == 1
    assert [row.where for row in found.bad_rows] == ["#/children/0/children/0"]


def test_real_pod_viewer() -> None:
    found = read(FORMAT, sample("jax/profile_demo.pod_viewer.json"))
    assert found.bad_rows == []
    (batch,) = found.batches
    assert (batch.environment.device_reported, batch.environment.num_devices, batch.environment.num_nodes) == (
        "TPU v3",
        32,
        4,
    )
    assert len(batch.iterations) == 64, "two steps on 32 cores"
    first = batch.iterations[0]
    assert first.timing is not None
    assert (first.iteration, first.detail["core"]) == (221, "1")
    assert first.timing.time_s == pytest.approx(0.39753937142899999)
    assert first.detail["all_reduce_s"] == pytest.approx(13662.288572e-6)
    reduces = [each for each in batch.collectives if each.operation == "all_reduce"]
    assert len(reduces) == 16
    assert reduces[0].timing is not None
    assert (reduces[0].size_bytes, reduces[0].group_size, reduces[0].timing.num_samples) == (30661632, None, 32)
    assert reduces[0].timing.time_s == pytest.approx(10811.507589281251e-6)
    sends = [each for each in batch.collectives if each.operation == "send_recv"]
    assert (len(sends), sends[0].size_bytes, sends[0].detail["target_core"]) == (8, 2764800, 7)
    assert "njsw1" not in repr(found)


def test_tracelens_collectives_are_refused_with_the_reason() -> None:
    with pytest.raises(DocumentInvalid, match="shard or of the full tensor"):
        read(FORMAT, sample("jax/tracelens_all_gather_collective_mockup_df.csv"))


def test_hostile_documents(tmp_path: Path) -> None:
    whole = _tree({"rawTime": 5.0, "occurrences": 1})
    texts = [whole[:kept] for kept in range(1, len(whole), 37)]
    deep = '{"byCategory": ' + '{"children": [' * 5000 + "]}" * 5000 + "}"
    texts += [
        deep,
        '{"byCategory": 5}',
        '{"podStatsSequence": []}',
        '{"podStatsSequence": {"podStatsMap": [7, {"allReduceOpDb": [1]}]}}',
    ]
    for text in texts:
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "a.json", text)])
