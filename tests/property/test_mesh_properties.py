"""The closed forms of the mesh against the groups written out."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.strategy.mesh import Axis, Mesh, build_mesh
from planner.strategy.strategy import AxisOrder, Strategy
from profiles.catalogue import load_cluster
from profiles.cluster import Cluster, FabricLevel

AXES: tuple[Axis, ...] = get_args(Axis)
BASE = load_cluster("dgx-h100", 8)
degree = st.sampled_from([1, 1, 2, 3, 4])


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    tp, cp, pp = draw(degree), draw(degree), draw(st.sampled_from([1, 2, 3]))
    dp_shard, dp_replicate = draw(degree), draw(st.sampled_from([1, 2, 3]))
    stage = tp * cp * dp_shard * dp_replicate
    etp = draw(st.sampled_from([each for each in (1, tp) if stage % each == 0]))
    ep = draw(st.sampled_from([each for each in range(1, 17) if (stage // etp) % each == 0]))
    strategy = Strategy(
        tp=tp, cp=cp, pp=pp, dp_shard=dp_shard, dp_replicate=dp_replicate, ep=ep, etp=etp,
        axis_order=draw(st.sampled_from(get_args(AxisOrder))),
    )  # fmt: skip
    return build_mesh(strategy, draw(clusters(strategy.world_size)))


@st.composite
def clusters(draw: st.DrawFn, world_size: int) -> Cluster:
    per_node = draw(st.sampled_from([1, 2, 4, 6, 8]))
    spare = draw(st.integers(0, 3))
    nodes = -(-world_size // per_node) + spare
    nodes_of_domain = draw(st.sampled_from([1, 1, 2, 9]))
    domain = per_node * nodes_of_domain
    leaf = nodes_of_domain * draw(st.integers(1, 5))
    pool = BASE.pools[0]
    update: dict[str, Any] = {
        "num_nodes": nodes,
        "devices_per_node": per_node,
        "scale_up": pool.scale_up.model_copy(update={"domain_size": domain}),
    }
    fabric = (FabricLevel(name="leaf", num_nodes=leaf), FabricLevel(name="spine", num_nodes=leaf * 3))
    return BASE.model_copy(update={"pools": (pool.model_copy(update=update),), "fabric": fabric})


@settings(max_examples=40, deadline=None)
@given(meshes())
def test_the_groups_of_every_axis_partition_the_ranks(mesh: Mesh) -> None:
    for axis in AXES:
        groups = mesh.groups(axis)
        assert sorted(rank for group in groups for rank in group) == list(range(mesh.world_size))
        assert {len(group) for group in groups} == {mesh.pattern(axis).size}


@settings(max_examples=40, deadline=None)
@given(meshes())
def test_degrees_multiply_to_the_world(mesh: Mesh) -> None:
    for axes in (("tp", "cp", "dp_shard", "dp_replicate", "pp"), ("etp", "ep", "edp_shard", "edp_replicate", "pp")):
        world = 1
        for axis in axes:
            world *= mesh.pattern(axis).size
        assert world == mesh.world_size == mesh.strategy.world_size


@settings(max_examples=40, deadline=None)
@given(meshes())
def test_regular_groups_are_what_size_and_stride_of_the_pattern_say(mesh: Mesh) -> None:
    for axis in AXES:
        pattern = mesh.pattern(axis)
        if pattern.is_regular:
            size, stride = pattern.size, pattern.stride
            for group in mesh.groups(axis):
                assert group == tuple(range(group[0], group[0] + size * stride, stride))


@settings(max_examples=100, deadline=None)
@given(meshes())
def test_the_level_is_that_of_the_worst_group_written_out(mesh: Mesh) -> None:
    for axis in AXES:
        worst: int | None = None
        for group in mesh.groups(axis):
            if len(group) > 1:
                inside = (
                    group[0] // level.devices_per_group == group[-1] // level.devices_per_group for level in mesh.levels
                )
                worst = max(-1 if worst is None else worst, next(index for index, ok in enumerate(inside) if ok))
        assert mesh.level_index(axis) == worst, axis


@settings(max_examples=40, deadline=None)
@given(meshes())
def test_members_in_a_domain_never_exceed_the_fullest_one_and_are_exact_where_aligned(mesh: Mesh) -> None:
    domain = mesh.levels[0].devices_per_group if mesh.levels and mesh.levels[0].name == "scale_up" else None
    block = domain or mesh.pool.devices_per_node
    for axis in AXES:
        counts = set()
        for group in mesh.groups(axis):
            blocks = [rank // block for rank in group]
            counts |= {blocks.count(each) for each in blocks}
        predicted = mesh.members_per_domain(axis)
        assert predicted <= max(counts)
        if all(block % stride == 0 and block % (size * stride) == 0 for size, stride in mesh.pattern(axis).factors):
            assert counts == {predicted}


@settings(max_examples=40, deadline=None)
@given(meshes())
def test_coordinates_number_the_ranks_once(mesh: Mesh) -> None:
    for grid in (mesh.dense, mesh.expert):
        seen = {tuple(grid.coordinates(rank).items()) for rank in range(mesh.world_size)}
        assert len(seen) == mesh.world_size
        assert all(grid.rank(dict(place)) < mesh.world_size for place in seen)
