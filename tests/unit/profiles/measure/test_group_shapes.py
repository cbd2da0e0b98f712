"""Groups of ranks: every mesh axis is found, every rank is in one group, and placements are what they are called."""

from __future__ import annotations

import pytest

from profiles.measure.collective_calls import num_elements, skewed_splits
from profiles.measure.collective_case import collective_cases
from profiles.measure.collective_plan import FULL_SIZES, CollectivePlan
from profiles.measure.group_shapes import GroupShape, group_shapes


def by_size_and_stride(world_size: int, devices_per_node: int) -> dict[tuple[int, int], GroupShape]:
    return {(shape.size, shape.stride): shape for shape in group_shapes(world_size, devices_per_node)}


def test_four_ranks_on_two_nodes_have_three_shapes() -> None:
    shapes = by_size_and_stride(4, 2)
    assert {key: shape.placement for key, shape in shapes.items()} == {
        (2, 1): "contiguous",
        (2, 2): "one_per_node",
        (4, 1): "several_per_node",
    }
    assert shapes[2, 2].groups() == [(0, 2), (1, 3)]
    assert shapes[2, 1].groups() == [(0, 1), (2, 3)]
    assert shapes[4, 1].groups() == [(0, 1, 2, 3)]


def test_one_node_of_eight_has_contiguous_and_strided_groups() -> None:
    shapes = by_size_and_stride(8, 8)
    assert set(shapes) == {(2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (2, 4)}
    assert shapes[2, 4].placement == "strided"
    assert shapes[4, 2].groups() == [(0, 2, 4, 6), (1, 3, 5, 7)]


def test_two_ranks_on_each_of_four_nodes() -> None:
    shape = by_size_and_stride(32, 8)[8, 4]
    assert (shape.placement, shape.ranks_per_node, shape.num_nodes) == ("several_per_node", 2, 4)
    assert shape.groups()[1] == (1, 5, 9, 13, 17, 21, 25, 29)


@pytest.mark.parametrize(("world_size", "devices_per_node"), [(4, 2), (12, 4), (16, 8), (64, 8), (24, 6)])
def test_every_shape_parts_the_world(world_size: int, devices_per_node: int) -> None:
    shapes = group_shapes(world_size, devices_per_node)
    assert shapes
    for shape in shapes:
        groups = shape.groups()
        assert sorted(rank for group in groups for rank in group) == list(range(world_size))
        assert len(groups) == shape.num_siblings
        assert 0 in groups[0]
        nodes = {rank // devices_per_node for rank in groups[-1]}
        assert (len(nodes), len(groups[-1]) // len(nodes)) == (shape.num_nodes, shape.ranks_per_node)


def test_groups_that_lie_unevenly_on_nodes_are_left_out() -> None:
    # Three neighbours of twelve ranks on nodes of four: (0 1 2) in one node, (3 4 5) over two.
    assert (3, 1) not in by_size_and_stride(12, 4)


def test_the_most_telling_shapes_come_first() -> None:
    first = [(shape.size, shape.stride) for shape in group_shapes(32, 8)[:3]]
    assert set(first) == {(32, 1), (8, 1), (4, 8)}


def test_sizes_of_the_full_plan() -> None:
    assert (FULL_SIZES[0], FULL_SIZES[-1], len(FULL_SIZES)) == (1 << 10, 1 << 30, 15)
    ordered = CollectivePlan().ordered_sizes()
    assert ordered[:4] == [1 << 10, 1 << 18, 1 << 22, 1 << 26]
    assert sorted(ordered) == list(FULL_SIZES)


def test_pairs_only_send_in_groups_of_two() -> None:
    shapes = by_size_and_stride(4, 2)
    plan = CollectivePlan(sizes=(1024,))
    assert {case.operation for case in collective_cases(plan, shapes[4, 1])} == {
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "broadcast",
    }
    pairs = [case for case in collective_cases(plan, shapes[2, 2]) if case.operation == "send_recv"]
    assert {(case.variant, case.siblings, case.launch) for case in pairs} == {
        ("one_way", False, "back_to_back"),
        ("one_way", True, "back_to_back"),
        ("one_way", False, "blocking"),
        ("both_ways", False, "back_to_back"),
        ("both_ways", True, "back_to_back"),
        ("both_ways", False, "blocking"),
    }


def test_elements_are_a_multiple_of_the_group_and_never_fewer_bytes() -> None:
    assert num_elements(1024, "bf16", 4) == 512
    assert num_elements(1024, "bf16", 3) == 513
    assert num_elements(1, "fp32", 8) == 8


@pytest.mark.parametrize(("total", "group_size"), [(512, 4), (7, 7), (1 << 20, 6)])
def test_skewed_splits_send_everything_and_fall(total: int, group_size: int) -> None:
    splits = skewed_splits(total, group_size)
    assert sum(splits) == total
    assert splits[0] == max(splits) > splits[-1]
