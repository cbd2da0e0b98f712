"""Clusters by name and by file: scaling, impossible numbers, and every consistency check with its repair."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from profiles.catalogue import load_cluster, load_device, read_cluster
from profiles.errors import DocumentInvalid, NotFound
from profiles.validation import FindingsInvalid

OWN: dict[str, Any] = {
    "name": "own",
    "pools": [
        {
            "device": "h100-sxm5-80gb",
            "num_nodes": 4,
            "devices_per_node": 8,
            "scale_up": {"kind": "switch", "domain_size": 8, "bandwidth_bytes_per_s": "450 GB/s", "latency_s": "2 us"},
            "nics_per_node": 8,
            "nic_bandwidth_bytes_per_s": "400 Gbit/s",
            "host": {"memory_bytes": "2 TiB", "link_bandwidth_bytes_per_s": "60 GB/s"},
        }
    ],
    "fabric": [{"name": "leaf", "num_nodes": 2}, {"name": "spine", "num_nodes": 4}],
}


def own(**changes: Any) -> dict[str, Any]:
    """The sound cluster with values replaced; keys are paths below the first pool, or /fabric/..., joined by __."""
    data = copy.deepcopy(OWN)
    for path, value in changes.items():
        parts = path.split("__")
        place: Any = data if parts[0] in data else data["pools"][0]
        for part in parts[:-1]:
            place = place[int(part) if part.isdigit() else part]
        place[parts[-1]] = value
    return data


def test_a_sound_cluster_is_read() -> None:
    cluster = read_cluster(own(), "own.yaml")
    assert cluster.num_devices == 32
    assert cluster.pools[0].device == load_device("h100-sxm5-80gb")


MESH = {"kind": "mesh", "domain_size": 8, "bandwidth_bytes_per_s": 448e9, "latency_s": 2e-6}
TORUS = {"kind": "torus", "domain_size": 8, "bandwidth_bytes_per_s": 400e9, "latency_s": 2e-6}
INCONSISTENT: list[tuple[dict[str, Any], str, str, str]] = [
    ({"scale_up__domain_size": 12}, "/pools/0/scale_up/domain_size", "does not fit nodes of 8", "whole nodes"),
    ({"scale_up__bandwidth_bytes_per_s": "900 GB/s"}, "/pools/0/scale_up/bandwidth_bytes_per_s", "both", "450 GB/s"),
    ({"scale_up__bandwidth_bytes_per_s": 450}, "/pools/0/scale_up/bandwidth_bytes_per_s", "too slow", "450 GB/s"),
    ({"scale_up__pair_bandwidth_bytes_per_s": 500e9}, "/pools/0/scale_up/pair_bandwidth_bytes_per_s",
     "in all", "one-way"),
    ({"scale_up": MESH}, "/pools/0/scale_up/pair_bandwidth_bytes_per_s", "a mesh needs", "64.0 GB/s"),
    ({"scale_up": {**MESH, "pair_bandwidth_bytes_per_s": 128e9}}, "/pools/0/scale_up/pair_bandwidth_bytes_per_s",
     "7 links", "domain_size - 1"),
    ({"scale_up": TORUS}, "/pools/0/scale_up/torus_shape", "needs its shape", "product is 8"),
    ({"scale_up": {**TORUS, "torus_shape": [2, 2]}}, "/pools/0/scale_up/torus_shape", "2 x 2 is not 8", "product"),
    ({"scale_up__torus_shape": [2, 4]}, "/pools/0/scale_up/torus_shape", "no torus shape", "kind: torus"),
    ({"nics_per_node": 0}, "/pools/0/nics_per_node", "no NIC", "nics_per_node"),
    ({"nic_bandwidth_bytes_per_s": 400e9}, "/pools/0/nic_bandwidth_bytes_per_s", "too fast for one NIC", "400 Gbit/s"),
    ({"nic_bandwidth_bytes_per_s": 400}, "/pools/0/nic_bandwidth_bytes_per_s", "too slow", "400 Gbit/s"),
    ({"nic_bandwidth_bytes_per_s": 0}, "/pools/0/nic_bandwidth_bytes_per_s", "too slow", "Gbit/s"),
    ({"nic_latency_s": 5}, "/pools/0/nic_latency_s", "too long", "5 us"),
    ({"host__memory_bytes": 2048}, "/pools/0/host/memory_bytes", "too little", "2048 GiB"),
    ({"host__link_bandwidth_bytes_per_s": 63}, "/pools/0/host/link_bandwidth_bytes_per_s", "too slow", "63 GB/s"),
    ({"fabric__1__num_nodes": 2}, "/fabric/1/num_nodes", "no more than leaf", "each larger"),
    ({"fabric__1__num_nodes": 5}, "/fabric/1/num_nodes", "do not hold whole groups of 2", "multiple of 2"),
    ({"fabric__1__name": "leaf"}, "/fabric/1/name", "two tiers", "own name"),
    ({"fabric__0__latency_s": 1}, "/fabric/0/latency_s", "too long", "1 us"),
    ({"scale_up__domain_size": 24, "num_nodes": 6}, "/fabric/1/num_nodes", "splits scale-up domains", "multiple of 24"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "pointer", "what", "hint"), INCONSISTENT, ids=[row[2] for row in INCONSISTENT])
def test_inconsistencies_say_where_what_and_how_to_repair(
    changes: dict[str, Any], pointer: str, what: str, hint: str
) -> None:
    with pytest.raises(FindingsInvalid) as caught:
        read_cluster(own(**changes), "own.yaml")
    (finding,) = [each for each in caught.value.findings if each.pointer == pointer]
    assert what in finding.what
    assert hint in finding.hint


DEVICE: dict[str, Any] = {
    "name": "x", "vendor": "other", "architecture": "x", "memory_bytes": "80 GiB",
    "memory_bandwidth_bytes_per_s": "3 TB/s", "peak_flops_per_s": {"bf16": "900 TFLOP/s"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "pointer", "what", "hint"),
    [
        ({"memory_bytes": 80}, "memory_bytes", "80 bytes is too little", "'80 GiB'"),
        ({"memory_bytes": 81920}, "memory_bytes", "too little", "'81920 MiB'"),
        ({"memory_bytes": 80 * 2**40}, "memory_bytes", "too much", "bytes"),
        ({"memory_bandwidth_bytes_per_s": 3350}, "memory_bandwidth_bytes_per_s", "too slow", "3350 GB/s"),
        ({"peak_flops_per_s": {"bf16": 989}}, "peak_flops_per_s/bf16", "too little", "989 TFLOP/s"),
        ({"peak_flops_per_s": {"fp8": 1e15}}, "peak_flops_per_s", "no peak rate", "dense"),
        ({"peak_flops_per_s": {"bf16": 1e15, "bfloat16": 1e15}}, "peak_flops_per_s/bfloat16", "unknown dtype", "bf16"),
        ({"achievable_matmul_fraction": {"bf16": 80}}, "achievable_matmul_fraction/bf16", "not a fraction", "/ peak"),
        ({"achievable_matmul_fraction": {"fp8": 0.5}}, "achievable_matmul_fraction/fp8", "no peak for fp8", "add fp8"),
    ],
)
def test_implausible_devices(changes: dict[str, Any], pointer: str, what: str, hint: str) -> None:
    with pytest.raises(FindingsInvalid) as caught:
        read_cluster(own(device={**DEVICE, **changes}), "own.yaml")
    (finding,) = [each for each in caught.value.findings if each.pointer == f"/pools/0/device/{pointer}"]
    assert what in finding.what
    assert hint in finding.hint


def test_declared_bandwidth_is_trusted() -> None:
    data = own(scale_up__bandwidth_bytes_per_s="900 GB/s")
    data["provenance"] = {"scale_up.bandwidth_bytes_per_s": {"confidence": "D", "source": "what if NVLink doubled"}}
    assert read_cluster(data, "own.yaml").pools[0].scale_up.bandwidth_bytes_per_s == 900e9


def test_several_inconsistencies_come_at_once() -> None:
    with pytest.raises(FindingsInvalid) as caught:
        read_cluster(own(nics_per_node=0, scale_up__domain_size=3, host__memory_bytes=2048), "own.yaml")
    assert len(caught.value.findings) >= 3


def test_unknown_names_get_the_nearest_one() -> None:
    with pytest.raises(NotFound, match="no cluster 'dgx-h1oo'") as caught:
        load_cluster("dgx-h1oo")
    assert caught.value.hint == "did you mean 'dgx-h100'?"
    with pytest.raises(NotFound) as caught:
        read_cluster(own(device="h100-sxm5-80g"), "own.yaml")
    assert caught.value.where == "own.yaml#/pools/0/device"
    assert caught.value.hint == "did you mean 'h100-sxm5-80gb'?"
    with pytest.raises(NotFound):
        load_device("../clusters/dgx-h100")


def test_a_path_is_read_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "name: own\npools:\n- " + "\n  ".join(
        [
            "device: mi300x",
            "num_nodes: 2",
            "devices_per_node: 8",
            "scale_up: {kind: mesh, domain_size: 8, bandwidth_bytes_per_s: 448 GB/s,",
            "  pair_bandwidth_bytes_per_s: 64 GB/s, latency_s: 2 us}",
            "nics_per_node: 8",
            "nic_bandwidth_bytes_per_s: 400 Gbit/s",
            "host: {memory_bytes: 2 TiB, link_bandwidth_bytes_per_s: 63 GB/s}",
        ]
    )
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
    assert load_cluster(str(tmp_path / "own.yaml"), 64).num_devices == 64
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dgx").write_text(text, encoding="utf-8")
    with pytest.raises(NotFound) as caught:
        load_cluster("dgx")
    assert caught.value.hint == "a file of that name exists: write ./dgx"
    assert load_cluster("./dgx").num_devices == 16


@pytest.mark.parametrize(
    ("name", "devices", "shape"),
    [("dgx-h100", 64, (8, 8)), ("dgx-h100", 4, (1, 4)), ("gb200-nvl72", 64, (16, 4)), ("ascend-910c", 8, (1, 8))],
)
def test_scaled(name: str, devices: int, shape: tuple[int, int]) -> None:
    pool = load_cluster(name, devices).pools[0]
    assert (pool.num_nodes, pool.devices_per_node) == shape


def test_part_of_a_node_takes_its_share() -> None:
    whole, part = load_cluster("dgx-h100").pools[0], load_cluster("dgx-h100", 2).pools[0]
    assert part.nics_per_node == 2
    assert part.host.memory_bytes == whole.host.memory_bytes // 4
    assert part.scale_up.domain_size == 2


@pytest.mark.parametrize(
    ("name", "devices", "hint"),
    [
        ("dgx-h100", 12, "use --devices 8 or 16"),
        ("dgx-h100", 0, "ask for at least 1"),
        ("dgx-h100", -8, "ask for at least 1"),
        ("gb200-nvl72", 71, "use --devices 68 or 72"),
        ("tpu-v5p", 116, "use --devices 112 or 120"),
        ("trn2", 7, "use --devices 6 or 8"),
    ],
)
def test_impossible_numbers_name_the_nearest_valid_ones(name: str, devices: int, hint: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        load_cluster(name, devices)
    assert caught.value.where == "--devices"
    assert caught.value.hint == hint
    for number in [int(word) for word in hint.split() if word.isdigit() and "devices" in hint]:
        assert load_cluster(name, number).num_devices == number


def test_mixed_clusters_cannot_be_scaled_by_one_number(tmp_path: Path) -> None:
    data = own()
    data["pools"].append({**data["pools"][0], "name": "second", "device": "a100-sxm4-80gb"})
    data["pools"][1]["scale_up"] = {**data["pools"][0]["scale_up"], "bandwidth_bytes_per_s": "300 GB/s"}
    cluster = read_cluster(data, "own.yaml")
    assert cluster.num_devices == 64
    from profiles.scaling import scale_cluster

    with pytest.raises(DocumentInvalid, match="one number cannot scale") as caught:
        scale_cluster(cluster, 128)
    assert "num_nodes of each pool" in str(caught.value.hint)


def test_what_show_prints_can_be_read_back() -> None:
    shown = {"num_devices": 32, **read_cluster(own(), "own.yaml").model_dump(mode="json")}
    assert read_cluster(shown, "own.yaml") == read_cluster(own(), "own.yaml")
    with pytest.raises(DocumentInvalid, match="num_devices is 33, but the pools hold 32"):
        read_cluster({**shown, "num_devices": 33}, "own.yaml")
