"""Groups, placement and network tiers against orders that were printed by the back-ends themselves."""

from __future__ import annotations

import pytest

from planner.errors import DocumentInvalid
from planner.strategy.mesh import Place, build_mesh
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.cluster import Cluster


@pytest.fixture(scope="module")
def h100() -> Cluster:
    return load_cluster("dgx-h100", 1024)


def test_megatron_dense_groups_at_16_ranks(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=2, cp=2, pp=2, dp_shard=2), h100)
    assert mesh.groups("tp")[0] == (0, 1)
    assert mesh.groups("cp")[0] == (0, 2)
    assert mesh.groups("dp")[0] == (0, 4)
    assert mesh.groups("pp")[0] == (0, 8)
    assert mesh.groups("dp_cp")[0] == (0, 2, 4, 6)


def test_megatron_expert_groups_are_consecutive_ranks_whatever_tp_is(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=2, pp=2, dp_shard=4, ep=4), h100)
    assert mesh.groups("ep")[0] == (0, 1, 2, 3)
    assert mesh.groups("edp")[0] == (0, 4)
    large = build_mesh(Strategy(tp=8, pp=8, dp_shard=16, ep=64), h100)
    assert large.groups("ep")[0] == tuple(range(64))


def test_pipeline_inside_data_order(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=2, pp=2, dp_shard=4, axis_order="tp-cp-ep-pp-dp"), h100)
    assert mesh.groups("pp")[0] == (0, 2)
    assert mesh.groups("dp")[0] == (0, 4, 8, 12)


def test_joint_axes_with_a_gap_keep_their_whole_pattern(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=2, cp=2, pp=2, dp_shard=2, axis_order="tp-cp-ep-pp-dp"), h100)
    pattern = mesh.pattern("dp_cp")
    assert pattern.factors == ((2, 2), (2, 8))
    assert not pattern.is_regular
    assert mesh.groups("dp_cp")[0] == (0, 2, 8, 10)


def test_hybrid_sharding_keeps_shards_close(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=2, dp_shard=4, dp_replicate=2), h100)
    assert mesh.groups("dp_shard")[0] == (0, 2, 4, 6)
    assert mesh.groups("dp_replicate")[0] == (0, 8)


def test_levels_of_a_usual_layout(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=8, pp=4, dp_shard=32), h100)
    names = {axis: level.name for axis in ("tp", "dp", "pp") if (level := mesh.level(axis))}
    assert names == {"tp": "scale_up", "dp": "leaf", "pp": "spine"}
    assert mesh.level("cp") is None


def test_a_group_that_does_not_divide_the_domain_leaves_it(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=6, dp_shard=4), load_cluster("dgx-h100", 24))
    level = mesh.level("tp")
    assert level is not None
    assert level.name == "leaf"


def test_nic_sharing_counts_sibling_groups() -> None:
    strategy = Strategy(tp=8, dp_shard=4)
    rails = {
        name: build_mesh(strategy, load_cluster(name, 32)).groups_per_nic("dp") for name in ("dgx-h100", "aws-p4d")
    }
    assert rails == {"dgx-h100": 1.0, "aws-p4d": 2.0}
    one_group = build_mesh(Strategy(dp_shard=32), load_cluster("dgx-h100", 32))
    assert one_group.groups_per_nic("dp") == 1 / 8
    assert one_group.members_per_domain("dp") == 8
    assert build_mesh(strategy, load_cluster("dgx-h100", 32)).groups_per_nic("tp") == 0


def test_domains_may_span_nodes() -> None:
    mesh = build_mesh(Strategy(tp=8, dp_shard=9), load_cluster("gb200-nvl72"))
    for axis in ("tp", "dp"):
        level = mesh.level(axis)
        assert level is not None
        assert level.name == "scale_up"
    assert mesh.place(71) == Place(node=17, device=3)


def test_domains_may_be_smaller_than_a_node() -> None:
    mesh = build_mesh(Strategy(tp=2, dp_shard=4), load_cluster("h100-pcie-8"))
    assert [level.name for axis in ("tp", "dp") if (level := mesh.level(axis))] == ["scale_up", "node"]


def test_place_and_coordinates_agree(h100: Cluster) -> None:
    mesh = build_mesh(Strategy(tp=4, cp=2, pp=2, dp_shard=4), h100)
    assert mesh.place(13) == Place(node=1, device=5)
    assert {name: mesh.coordinates(13)[name] for name in ("tp", "cp", "dp_shard", "pp")} == {
        "tp": 1, "cp": 1, "dp_shard": 1, "pp": 0,
    }  # fmt: skip
    assert mesh.dense.rank(mesh.dense.coordinates(13)) == 13


def test_unused_devices_are_allowed(h100: Cluster) -> None:
    assert build_mesh(Strategy(tp=2), h100).world_size == 2


@pytest.mark.parametrize(
    ("strategy", "what"),
    [
        (Strategy(tp=2048), "needs 2048 devices"),
        (Strategy(tp=2, dp_shard=3, ep=4), "does not divide"),
    ],
)
def test_impossible_meshes_say_why(h100: Cluster, strategy: Strategy, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what) as caught:
        build_mesh(strategy, h100)
    assert caught.value.hint
    assert caught.value.where


def test_a_rank_outside_the_world_is_refused(h100: Cluster) -> None:
    with pytest.raises(DocumentInvalid, match="no rank 16"):
        build_mesh(Strategy(tp=16), h100).place(16)


def test_mixed_pools_are_refused(h100: Cluster) -> None:
    pool = h100.pools[0]
    mixed = h100.model_copy(update={"pools": (pool, pool.model_copy(update={"name": "second"}))})
    with pytest.raises(DocumentInvalid, match="2 pools"):
        build_mesh(Strategy(), mixed)


def test_closed_forms_do_not_walk_the_world() -> None:
    mesh = build_mesh(Strategy(tp=8, pp=16, dp_shard=781), load_cluster("dgx-h100", 8 * 16 * 781))
    pattern = mesh.pattern("pp")
    assert (pattern.size, pattern.stride) == (16, 8 * 781)
    level = mesh.level("pp")
    assert level is not None
    assert level.name == "nic"
