from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._redistribute import _gen_transform_infos_non_cached
from torch.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

from planner.predict.cost.hardware import hardware_of
from planner.shard.mesh_shapes import MeshShape, factorisations, read_mesh
from planner.shard.redistribution import NEVER, RedistributionTimes, path_keys, redistribution_steps
from profiles.catalogue import load_cluster
from solver.selection.problem import FORBIDDEN

SIZES = [(4,), (2, 4), (2, 2, 3)]


def layouts(axes: int, dims: int = 2) -> list[tuple[int, ...]]:
    return list(itertools.product(range(-1, dims + 1), repeat=axes))


def placement(code: int) -> Placement:
    return Shard(code - 1) if code > 0 else Partial() if code < 0 else Replicate()


@pytest.mark.parametrize("sizes", SIZES)
def test_steps_are_those_of_dtensor(sizes: tuple[int, ...]) -> None:
    mesh = DeviceMesh("cpu", torch.arange(math.prod(sizes)).view(sizes), _init_backend=False, _rank=0)
    shape = torch.Size([math.prod(sizes) ** 2] * 2)
    meta = TensorMeta(shape, (shape[1], 1), torch.float32)
    for held, needed in itertools.product(layouts(len(sizes)), repeat=2):
        steps = redistribution_steps(held, needed, sizes)
        if any(code < 0 and code != held[axis] for axis, code in enumerate(needed)):
            assert steps is None
            continue
        if steps is None:
            # A partial sum that has to be undone and made again is never worth it.
            continue
        specs = [
            DTensorSpec(mesh, tuple(placement(code) for code in each), tensor_meta=meta) for each in (held, needed)
        ]
        wanted = _gen_transform_infos_non_cached(specs[0], specs[1])
        found = [(step.axis, placement(step.before[step.axis]), placement(step.after[step.axis])) for step in steps]
        assert found == [(each.mesh_dim, *each.src_dst_placements) for each in wanted], (held, needed)


@pytest.mark.parametrize("sizes", SIZES)
def test_all_pairs_at_once_are_the_same_steps(sizes: tuple[int, ...]) -> None:
    codes = layouts(len(sizes))
    table = np.array(codes, dtype=np.int8)
    keys = path_keys(table, table, sizes)
    for (first, held), (second, needed) in itertools.product(enumerate(codes), repeat=2):
        steps = redistribution_steps(held, needed, sizes)
        found = [int(key) for key in keys[first, second] if key]
        if steps is None:
            assert found == [NEVER]
        else:
            assert len(found) == sum(step.kind != "slice" for step in steps)


def test_times_follow_the_collectives() -> None:
    mesh = MeshShape((2, 8))
    hardware = hardware_of(load_cluster("dgx-h100", 16), "bf16")
    times = RedistributionTimes(mesh, hardware)
    size = 2**30
    inner, outer = times.time_ps(size, (0, 1), (0, 0)), times.time_ps(size, (1, 0), (0, 0))
    wanted = hardware.collective_s("all_gather", np.array([size]), np.array([8]), np.array([1]))[0]
    assert inner == round(wanted * 1e12)
    assert inner < outer, "the inner axis has the fast links"
    assert times.time_ps(size, (0, 0), (1, 2)) == 0
    assert times.time_ps(size, (0, -1), (0, 0)) > times.time_ps(size, (0, -1), (0, 1)) > 0
    assert times.time_ps(size, (0, 0), (0, -1)) >= FORBIDDEN


def test_factorisations_are_all_of_them() -> None:
    found = {shape.sizes for shape in factorisations(12)}
    wanted = {
        sizes for axes in (1, 2, 3) for sizes in itertools.product(range(2, 13), repeat=axes) if math.prod(sizes) == 12
    }
    assert found == wanted
    assert read_mesh("1x8").sizes == (8,)
