"""HCCL operations and links: transit times, ranks merged, matrices of pairs, broken entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.msprof_communication import FORMAT
from tests.importing import read, read_anyway, sample, written

REAL = "ascend/msprof_cluster_communication.json"


def _operation(transit_ms: Any, hccs_mb: Any = 0.0, hccs_ms: Any = 0.0) -> dict[str, Any]:
    link = {"Transit Size(MB)": hccs_mb, "Transit Time(ms)": hccs_ms, "Bandwidth(GB/s)": 0, "Size Distribution": {}}
    return {
        "Communication Time Info": {"Elapse Time(ms)": 99.0, "Transit Time(ms)": transit_ms, "Wait Time(ms)": 90.0},
        "Communication Bandwidth Info": {"HCCS": link, "SDMA": link, "RDMA": {**link, "Transit Size(MB)": 0}},
    }


def test_real_cluster_file() -> None:
    found = read(FORMAT, sample(REAL))
    assert found.bad_rows == []
    (batch,) = found.batches
    (broadcast,) = batch.operators
    assert (broadcast.operator, broadcast.name) == ("collective", "hcom_broadcast")
    assert broadcast.timing is not None
    # Rank 1 is the slower one (0.0163 against 0.0081 ms); elapsed were 121.7 ms with waiting.
    assert broadcast.timing.time_s == pytest.approx(0.01630984375e-3, rel=1e-9)
    assert broadcast.detail["operation"] == "broadcast"
    assert broadcast.detail["transit_bytes"] == 103808 + 30400
    assert broadcast.detail["num_ranks_seen"] == 2
    assert found.skipped == {"operations without a transit time on any rank": 1}
    links = {(link.method, link.size_bytes): link for link in batch.links}
    assert set(links) == {
        ("HCCS", 63936), ("PCIE", 21376), ("HCCS", 103808), ("PCIE", 30400), ("HCCS", 56), ("HCCS", 184),
    }  # fmt: skip
    # The file itself prints 2.7012 and 1.8639 GB/s.
    assert links["HCCS", 63936].bandwidth_bytes_per_s == pytest.approx(2.7012e9, rel=1e-4)
    assert links["PCIE", 30400].bandwidth_bytes_per_s == pytest.approx(1.8639e9, rel=1e-4)
    assert "transit-time" in {flag.code for flag in found.flags}


def test_one_rank_with_equal_operations(tmp_path: Path) -> None:
    operations = {f"hcom_allReduce__293_{number}_1@55": _operation(2.0 + number, 8.0, 1.0) for number in range(3)}
    document = {
        "step1": {
            "collective": {**operations, "Total Op Info": _operation(9)},
            "p2p": {"hcom_send__1_0_1@5": _operation(1.0, 4.0, 0.5)},
        }
    }
    found = read(FORMAT, written(tmp_path, "communication.json", json.dumps(document)))
    reduce, send = found.batches[0].operators
    assert reduce.timing is not None
    assert (reduce.name, reduce.timing.time_s, reduce.timing.num_samples) == ("hcom_allReduce", 3e-3, 3)
    assert (send.detail["operation"], send.detail["transit_bytes"]) == ("send_recv", 4_000_000)
    links = {link.size_bytes: link for link in found.batches[0].links}
    assert links[8_000_000].bandwidth_bytes_per_s == pytest.approx(8e9)
    assert links[8_000_000].num_samples == 3
    assert found.skipped == {"totals over all operations": 1}


def test_matrix_of_pairs(tmp_path: Path) -> None:
    def pair(transport: str, time_ms: float, size_mb: float) -> dict[str, Any]:
        return {
            "Transport Type": transport,
            "Transit Time(ms)": time_ms,
            "Transit Size(MB)": size_mb,
            "Op Name": "x",
            "Bandwidth(GB/s)": 1,
        }

    document = {
        "step5": {
            "collective": {
                "allreduce-top1@58": {
                    "0-0": pair("LOCAL", 0.0685, 45.39),
                    "0-1": pair("HCCS", 0.289, 5.67),
                    "0->24": pair("RDMA", 0.545, 10.29),
                    "0-2": pair("HCCS", 0, 0),
                }
            }
        }
    }
    found = read(FORMAT, written(tmp_path, "communication_matrix.json", json.dumps(document)))
    near, far = found.batches[0].links
    assert (near.kind, near.source, near.target) == ("device_to_device", "device:0", "device:1")
    assert near.bandwidth_bytes_per_s == pytest.approx(5.67e6 / 0.289e-3)
    assert (far.kind, far.target) == ("network", "device:24")
    assert sum(found.skipped.values()) == 2


@pytest.mark.parametrize("value", [-1, "3", None, True, 1e300, [1]])
def test_broken_times_are_bad_rows(tmp_path: Path, value: object) -> None:
    document = {
        "step": {
            "collective": {"hcom_allReduce__1_1_1@5": _operation(value), "hcom_allGather__1_2_1@5": _operation(1.0)}
        }
    }
    found = read(FORMAT, written(tmp_path, "communication.json", json.dumps(document)))
    assert [each.name for each in found.batches[0].operators] == ["hcom_allGather"]
    assert [row.where for row in found.bad_rows] == ["#/step/collective/hcom_allReduce__1_1_1@5"]


def test_hostile_documents(tmp_path: Path) -> None:
    whole = sample(REAL).text()
    for kept in range(1, len(whole), 397):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "cut.json", whole[:kept])])
    for text in ("", "[]", "{}", '{"a": 1}', '{"a": NaN}', "{" * 5000, '{"a":' * 3000 + "1" + "}" * 3000):
        with pytest.raises(DocumentInvalid):
            read_anyway(FORMAT, [written(tmp_path, "bad.json", text)])
