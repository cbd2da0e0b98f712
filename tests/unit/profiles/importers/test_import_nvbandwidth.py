"""nvbandwidth: the arrow is the way of the data, GB is 10^9, sums only where the matrix says Total."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nvbandwidth import FORMAT
from profiles.importing.imported import Imported
from tests.attributes import of
from tests.importing import read, sample, written


def text(folder: Path, content: str) -> Imported:
    return read(FORMAT, written(folder, "nvb.txt", content))


def document(**root: Any) -> str:
    return json.dumps({"nvbandwidth": {"version": "v0.8", "Driver Version": "570.86", **root}})


def case(name: str, description: str, matrix: list[Any]) -> dict[str, Any]:
    return {"name": name, "status": "Passed", "bandwidth_description": description, "bandwidth_matrix": matrix}


def test_real_device_to_device_matrix() -> None:
    imported = read(FORMAT, sample("p2p/nvbandwidth_readme_d2d_8gpu.txt"))
    links = imported.batches[0].links
    assert len(links) == 56
    # Row 0, column 1 of "GPU(row) <- GPU(column)": 276.07 GB/s from device 1 to device 0.
    assert of(links[0], "source", "target", "bandwidth_bytes_per_s") == [
        "device:1",
        "device:0",
        pytest.approx(276.07e9),
    ]
    assert of(links[0], "kind", "direction", "row") == ["device_to_device", "one_way", 4]
    assert links[0].detail["test"] == "device_to_device_memcpy_write_ce"
    assert imported.skipped == {"diagonal not measured": 8}


def test_real_full_run() -> None:
    imported = read(FORMAT, sample("p2p/superbench_nvbandwidth_results.log"))
    environment, links = imported.batches[0].environment, imported.batches[0].links
    assert of(environment, "device_reported", "num_devices") == ["NVIDIA GH200 480GB", 1]
    assert of(environment, "driver_version", "runtime_version") == ["550.54.15", "CUDA 12.4"]
    assert imported.tool_version == "v0.6"
    assert len(links) == 21
    assert of(links[1], "kind", "source", "target") == ["host_to_device", "host:0", "device:1"]
    assert links[1].bandwidth_bytes_per_s == pytest.approx(269.33e9)
    latency = links[-1]
    assert of(latency, "latency_s", "bandwidth_bytes_per_s") == [pytest.approx(772.58e-9), None]
    assert imported.skipped == {"sum of a matrix": 15, "test waived": 17}
    assert not imported.flags
    both = next(link for link in links if link.detail["test"] == "host_to_device_bidirectional_memcpy_ce")
    assert of(both, "direction", "detail.[opposite_copy_running]") == ["one_way", True]


def test_total_matrices_are_sums_of_both_directions(tmp_path: Path) -> None:
    imported = text(
        tmp_path,
        "Running device_to_device_bidirectional_memcpy_read_ce.\n"
        "memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)\n           0         1\n"
        " 0       N/A    390.00\n 1    391.00       N/A\n\n"
        "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)\n           0         1\n"
        " 0       N/A    785.81\n 1    785.83       N/A\n\n"
        "SUM device_to_device_bidirectional_memcpy_read_ce_total 1571.64\n",
    )
    links = imported.batches[0].links
    assert [of(link, "direction", "detail.[part]") for link in links] == [
        ["one_way", "Read1"], ["one_way", "Read1"], ["both_ways", "Total"], ["both_ways", "Total"],
    ]  # fmt: skip
    assert links[2].bandwidth_bytes_per_s == pytest.approx(785.81e9)
    assert not imported.flags


def test_all_to_one_local_copy_and_latency(tmp_path: Path) -> None:
    imported = text(
        tmp_path,
        "Running all_to_one_write_ce.\nmemcpy CE All Gpus -> GPU(column) total bandwidth (GB/s)\n"
        "          0         1\n0    177.69    177.63\n\nRunning device_local_copy.\n"
        "memcpy local GPU(column) bandwidth (GB/s)\n           0\n 0   1519.07\n\n"
        "Running device_to_device_latency_sm.\nDevice to Device Latency SM GPU(row) <-> GPU(column) (ns)\n"
        "           0         1\n 0       N/A    650.00\n 1    651.00       N/A\n",
    )
    links = imported.batches[0].links
    assert of(links[0], "source", "target", "kind") == ["device:all", "device:0", "device_to_device"]
    assert of(links[2], "source", "kind", "bandwidth_bytes_per_s") == ["device:0", "device_memory", 1519.07e9]
    assert of(links[3], "source", "target", "latency_s") == ["device:0", "device:1", pytest.approx(650e-9)]


def test_unreachable_peers_are_failures(tmp_path: Path) -> None:
    content = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 N/A N/A\n 1 50.0 N/A\n"
    links = text(tmp_path, content).batches[0].links
    assert [of(link, "source", "target", "ok") for link in links] == [
        ["device:0", "device:1", False], ["device:1", "device:0", True],
    ]  # fmt: skip
    assert links[0].error


def test_json(tmp_path: Path) -> None:
    content = document(
        **{"CUDA Runtime Version": 12080, "GPU Device list": ["0: NVIDIA H100 80GB HBM3 (00000000:04:00)", "1: x"]},
        bufferSize=512, testSamples=5, useMean=False,
        testcases=[
            case("device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
                 [["N/A", "370.13"], [371.5, "N/A"]]),
            {"name": "multinode_device_to_device_memcpy_read_ce", "status": "Waived"},
            {"name": "host_to_device_memcpy_ce", "status": "Error"},
        ],
    )  # fmt: skip
    imported = read(FORMAT, written(tmp_path, "nvb.json", content))
    environment, links = imported.batches[0].environment, imported.batches[0].links
    assert of(environment, "device", "num_devices", "runtime_version") == ["h100-sxm5-80gb", 2, "CUDA 12.8"]
    assert [of(link, "source", "target", "bandwidth_bytes_per_s") for link in links] == [
        ["device:0", "device:1", pytest.approx(370.13e9)], ["device:1", "device:0", pytest.approx(371.5e9)],
    ]  # fmt: skip
    assert of(links[0], "size_bytes", "statistic", "num_samples", "row") == [512 << 20, "median", 5, 0]
    assert imported.skipped == {"test waived": 1, "diagonal not measured": 2}
    assert [flag.code for flag in imported.flags] == ["test-failed"]


def test_host_names_of_multinode_runs_are_only_counted(tmp_path: Path) -> None:
    imported = text(
        tmp_path,
        "Process 0 (secret-a): device 0: NVIDIA GB200 (00000008:01:00)\n"
        "Process 1 (secret-b): device 0: NVIDIA GB200 (00000008:01:00)\n"
        "Running multinode_device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
        " 0 1\n 0 N/A 397.0\n 1 397.1 N/A\n",
    )
    assert of(imported.batches[0].environment, "device", "num_devices", "num_nodes") == ["gb200", 2, 2]
    assert "secret" not in repr(imported)


def test_a_sum_that_does_not_fit_is_flagged(tmp_path: Path) -> None:
    content = (
        "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 50.0 51.0\n\n"
    )
    assert not text(tmp_path, content + "SUM host_to_device_memcpy_ce 101.00\n").flags
    flags = text(tmp_path, content + "SUM host_to_device_memcpy_ce 202.00\n").flags
    assert [flag.code for flag in flags] == ["sum-mismatch"]


@pytest.mark.parametrize("row", ["1 50.0", "1 50.0 51.0 52.0", "1 50.0 nan", "1 -50.0 51.0", "1 5x0.0 51.0"])
def test_broken_rows(tmp_path: Path, row: str) -> None:
    imported = text(tmp_path, f"memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 50.0 51.0\n {row}\n")
    assert imported.bad_rows[0].where == "line 4"
    assert len(imported.batches[0].links) in (2, 3)


@pytest.mark.parametrize(
    "content",
    [
        document(),
        document(testcases=[]),
        document(testcases=["x"]),
        document(testcases=[case("a", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", ["2", ["3", "4"]])]),
        document(testcases=[case("a", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", [["3", "4"]])])[:-4],
        '{"nvbandwidth": [1]}',
        '{"nvbandwidth": {"testcases": {"a": NaN}}}',
    ],
)  # fmt: skip
def test_broken_json_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(DocumentInvalid):
        read(FORMAT, written(tmp_path, "nvb.json", content))


def test_a_description_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no matrix"):
        text(tmp_path, "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n")
