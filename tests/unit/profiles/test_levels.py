"""Network tiers of pools of every shape, and what sub-groups of a mesh or torus get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from profiles.catalogue import load_cluster
from profiles.cluster import FabricLevel, Pool
from profiles.errors import DocumentInvalid
from profiles.levels import NetworkLevel, group_bandwidth_bytes_per_s, network_levels
from profiles.torus import is_box, torus_links, torus_slice


def pool_of(name: str, num_devices: int | None = None, **update: Any) -> Pool:
    return load_cluster(name, num_devices).pools[0].model_copy(update=update)


def tiers(levels: tuple[NetworkLevel, ...]) -> list[tuple[str, int, float]]:
    return [(level.name, level.devices_per_group, level.bandwidth_bytes_per_s / 1e9) for level in levels]


def levels_of(name: str, num_devices: int) -> tuple[NetworkLevel, ...]:
    cluster = load_cluster(name, num_devices)
    return network_levels(cluster.pools[0], cluster.fabric)


def test_whole_nodes_behind_leaf_and_spine() -> None:
    assert tiers(levels_of("dgx-h100", 1024)) == [("scale_up", 8, 450), ("leaf", 256, 50), ("spine", 1024, 50)]


def test_domain_larger_than_a_node() -> None:
    assert tiers(levels_of("gb200-nvl72", 144)) == [("scale_up", 72, 900), ("leaf", 144, 50)]
    assert tiers(levels_of("gb200-nvl72", 64)) == [("scale_up", 64, 900)]


def test_domain_smaller_than_its_node_goes_through_the_host() -> None:
    assert tiers(levels_of("h100-pcie-8", 16)) == [("scale_up", 2, 300), ("node", 8, 63), ("leaf", 16, 25)]


def test_no_scale_up_network_at_all() -> None:
    pool = pool_of("l40s-8", 16)
    pool = pool.model_copy(update={"scale_up": pool.scale_up.model_copy(update={"kind": "none", "domain_size": 1})})
    assert tiers(network_levels(pool)) == [("node", 8, 31), ("nic", 16, 12.5)]


def test_a_single_device_crosses_nothing() -> None:
    assert levels_of("dgx-h100", 1) == ()


def test_part_of_a_node_is_one_level() -> None:
    assert tiers(levels_of("dgx-h100", 4)) == [("scale_up", 4, 450)]
    assert tiers(levels_of("mi300x-8", 4)) == [("scale_up", 4, 192)]


def test_beyond_the_last_tier_its_oversubscription_counts() -> None:
    fabric = (
        FabricLevel(name="leaf", num_nodes=2, oversubscription=2),
        FabricLevel(name="spine", num_nodes=4, oversubscription=4, latency_s=1e-6),
    )
    levels = network_levels(pool_of("dgx-h100", 64), fabric)
    assert tiers(levels)[1:] == [("leaf", 16, 50), ("spine", 32, 25), ("nic", 64, 6.25)]
    assert [level.latency_s for level in levels[1:]] == sorted(level.latency_s for level in levels[1:])


def test_a_pair_drives_all_nics_of_its_device() -> None:
    level = levels_of("aws-p5", 16)[-1]
    assert level.pair_bandwidth_bytes_per_s == level.bandwidth_bytes_per_s == 50e9
    shared = levels_of("aws-p4d", 16)[-1]
    assert shared.bandwidth_bytes_per_s == 6.25e9
    assert shared.pair_bandwidth_bytes_per_s == 12.5e9


def test_nodes_without_nics_are_refused() -> None:
    with pytest.raises(DocumentInvalid, match="no NICs"):
        network_levels(pool_of("dgx-h100", 16, nics_per_node=0))


def test_a_mesh_group_has_one_link_to_each_other_member() -> None:
    level = levels_of("mi300x-8", 8)[0]
    got = group_bandwidth_bytes_per_s(level, np.array([1, 2, 4, 8]), 1)
    assert got.tolist() == [64e9, 64e9, 192e9, 448e9]


def test_a_switch_group_has_the_full_rate() -> None:
    level = levels_of("dgx-h100", 8)[0]
    assert group_bandwidth_bytes_per_s(level, np.array([2, 8]), np.array([1, 4])).tolist() == [450e9, 450e9]
    assert float(group_bandwidth_bytes_per_s(level, 2)) == 450e9


@pytest.mark.parametrize(
    ("size", "stride", "links"),
    [
        (4, 1, 2),  # a ring along the innermost axis
        (4, 4, 2),  # a ring along the middle axis
        (4, 16, 2),  # a ring along the outer axis
        (16, 1, 4),  # a plane: two rings
        (64, 1, 6),  # everything
        (2, 1, 1),  # a pair of neighbours
        (2, 2, 1),  # opposite on a ring of four: two links of half a share each
        (8, 8, 3),  # every second row of a plane (half shares) and a full outer ring
        (1, 1, 1),  # alone: one link, so that callers may divide
    ],
)
def test_a_torus_group_gets_the_rings_it_occupies(size: int, stride: int, links: float) -> None:
    assert float(torus_links((4, 4, 4), size, stride)) == links


def test_a_torus_level_is_as_wide_as_its_slice() -> None:
    (whole,) = levels_of("tpu-v5p", 64)
    assert whole.torus_shape == (4, 4, 4)
    assert whole.bandwidth_bytes_per_s == 540e9
    assert float(group_bandwidth_bytes_per_s(whole, 4, 1)) == 180e9
    (small,) = levels_of("tpu-v5p", 8)
    assert small.torus_shape == (2, 2, 2)
    assert small.bandwidth_bytes_per_s == 270e9


def test_group_bandwidth_never_exceeds_the_level_and_grows_with_the_group() -> None:
    for name, num_devices in (("tpu-v5p", 512), ("trn2", 16), ("mi300x-8", 8), ("dgx-h100", 8)):
        level = levels_of(name, num_devices)[0]
        sizes = np.array([2**k for k in range(int(np.log2(num_devices)) + 1)])
        rates = group_bandwidth_bytes_per_s(level, sizes, 1)
        assert (np.diff(rates) >= 0).all(), name
        assert rates[-1] == level.bandwidth_bytes_per_s
        assert (rates > 0).all()


def test_slices_are_the_most_cubic_boxes() -> None:
    shape = (16, 20, 28)
    assert [torus_slice(shape, n) for n in (8, 64, 128, 512)] == [(2, 2, 2), (4, 4, 4), (4, 4, 8), (8, 8, 8)]
    assert is_box(shape, 8960)
    assert not is_box(shape, 29)
    assert torus_slice(shape, 29) == (1, 1, 29)
