"""Every catalogue file loads fast, is what its name says, and gives a source for every number."""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from profiles.catalogue import builtin_clusters, builtin_devices, load_cluster, load_device
from profiles.device import Provenance
from profiles.levels import network_levels

SHARED = Path(__file__).parents[2].parent / "shared"
PROMISED_CLUSTERS = {
    "dgx-a100-80g", "dgx-h100", "dgx-h200", "dgx-b200", "gb200-nvl72", "mi300x-8", "ascend-910b-8", "ascend-910c",
    "tpu-v5p", "trn2",
}  # fmt: skip


def numbers(value: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of all numbers; list positions are left out."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, f"{path}.{key}" if path else key)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from numbers(each, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def source_of(path: str, provenance: dict[str, Provenance]) -> Provenance | None:
    """The entry for a path, for the nearest enclosing part, or the default."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in provenance:
            return provenance[".".join(parts[:length])]
    return provenance.get("default")


@pytest.mark.parametrize("name", builtin_devices())
def test_device(name: str) -> None:
    device = load_device(name)
    assert device.name == name
    data = device.model_dump(exclude={"provenance", "schema_version"}, exclude_none=True)
    for path in numbers(data):
        source = source_of(path, device.provenance)
        assert source is not None, path
        assert source.source.strip(), path
    assert set(device.provenance) <= {"default", *data}, "provenance names a field that is not there"
    assert device.provenance["memory_bytes"].note, "say whether the driver's bytes were observed"
    peaks = device.peak_flops_per_s
    assert peaks.get("fp8", 1e18) >= max(peaks.get("bf16", 0), peaks.get("fp16", 0)), "a sparse figure?"


@pytest.mark.parametrize("name", builtin_clusters())
def test_cluster(name: str) -> None:
    cluster = load_cluster(name)
    assert cluster.name == name
    pool = cluster.pools[0]
    data = pool.model_dump(exclude={"device"}, exclude_none=True)
    known = {part for path in numbers(data) for part in (path, path.split(".")[0])} | {"default", "fabric"}
    known |= {f"fabric.{field}" for field in ("num_nodes", "oversubscription", "latency_s")}
    if pool.nic_transport is not None:
        assert cluster.provenance["nic_transport"].source.strip(), "a transport has a source of its own"
        known.add("nic_transport")
    assert set(cluster.provenance) <= known, "provenance names a number that is not there"
    for path in [*numbers(data), *numbers({"fabric": [tier.model_dump() for tier in cluster.fabric]})]:
        source = source_of(path, cluster.provenance)
        assert source is not None, path
        assert source.source.strip(), path


@pytest.mark.parametrize("name", builtin_clusters())
@pytest.mark.parametrize("domains", [1, 2, 64])
def test_levels_of_every_cluster_are_sane(name: str, domains: int) -> None:
    pool = load_cluster(name).pools[0]
    cluster = load_cluster(name, max(pool.scale_up.domain_size, pool.devices_per_node) * domains)
    levels = network_levels(cluster.pools[0], cluster.fabric)
    assert levels[-1].devices_per_group == cluster.num_devices
    sizes = [level.devices_per_group for level in levels]
    assert sizes == sorted(set(sizes))
    for inner, outer in pairwise(levels):
        # The outermost tier is cut to the pool; all others hold whole groups of the tier below.
        assert outer.devices_per_group % inner.devices_per_group == 0 or outer is levels[-1]
        assert outer.bandwidth_bytes_per_s <= inner.bandwidth_bytes_per_s
        assert outer.latency_s >= inner.latency_s
    for level in levels:
        assert level.bandwidth_bytes_per_s > 0
        assert level.pair_bandwidth_bytes_per_s > 0


def test_the_promised_clusters_exist() -> None:
    assert set(builtin_clusters()) >= PROMISED_CLUSTERS


def test_loading_one_cluster_is_fast() -> None:
    load_cluster("dgx-h100")
    times_s = []
    for _ in range(5):
        started = time.process_time()
        load_cluster("dgx-h100", 64)
        times_s.append(time.process_time() - started)
    assert statistics.median(times_s) < 0.1, "the aim is 30 ms; the slack is for slow machines"


TORCH_READS = {"A100-SXM4-80GB": 81_153 * 2**20}
"""Memory that torch reports where the table has the label alone (decision 0067: four public logs)."""


def test_devices_agree_with_the_reference_table() -> None:
    path = SHARED / "reference" / "hardware.csv"
    if not path.exists():
        pytest.skip("the reference table lies outside the repository")
    with path.open(encoding="utf-8") as file:
        rows = {row["device"]: row for row in csv.DictReader(file)}
    names = {
        "H100-SXM5-80GB": "h100-sxm5-80gb",
        "A100-SXM4-80GB": "a100-sxm4-80gb",
        "MI300X": "mi300x",
        "TPU v5p": "tpu-v5p",
    }
    for label, name in names.items():
        row, device = rows[label], load_device(name)
        assert device.peak_flops_per_s["bf16"] == float(row["bf16"]) * 1e12
        assert device.memory_bandwidth_bytes_per_s == pytest.approx(float(row["mem_tb_s"]) * 1e12)
        observed = row["mem_bytes_observed"]
        usable = TORCH_READS.get(label) or int(row["mem_gb_label"]) * 2**30
        assert device.memory_bytes == (int(observed) if observed else usable)


def test_planner_devices_are_what_torch_sees() -> None:
    assert load_device("mi250x-gcd").peak_flops_per_s["bf16"] == 191.5e12
    assert load_device("ascend-910c-die").memory_bytes == 64 * 2**30
    assert load_cluster("ascend-910c").pools[0].devices_per_node == 16
