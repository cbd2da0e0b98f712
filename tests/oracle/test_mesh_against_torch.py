"""Our groups against PyTorch's own ``DeviceMesh``, built on the fake process group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planner.strategy.mesh import build_mesh
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster

torch = pytest.importorskip("torch")


@pytest.fixture
def world_of_48() -> Iterator[int]:
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=48)
    yield 48
    dist.destroy_process_group()


def test_native_order_is_the_row_major_device_mesh(world_of_48: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    strategy = Strategy(tp=2, cp=2, dp_shard=2, dp_replicate=3, pp=2)
    names = ("pp", "dp_replicate", "dp_shard", "cp", "tp")
    theirs = init_device_mesh("cpu", (2, 3, 2, 2, 2), mesh_dim_names=names)
    ours = build_mesh(strategy, load_cluster("dgx-h100", world_of_48))
    here = theirs.get_coordinate()
    assert here is not None
    for dim, axis in enumerate(names):
        rows = theirs.mesh.movedim(dim, -1).reshape(-1, theirs.size(dim)).tolist()
        assert ours.groups(axis) == sorted(tuple(row) for row in rows), axis  # type: ignore[arg-type]
        assert ours.dense.coordinates(0)[axis] == here[dim]
        # PyTorch's sub-mesh of rank 0 is the first group.
        assert tuple(theirs[axis].mesh.tolist()) == ours.groups(axis)[0]  # type: ignore[arg-type]


def test_native_expert_order_is_the_row_major_sparse_mesh(world_of_48: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    strategy = Strategy(tp=2, dp_shard=4, dp_replicate=3, pp=2, ep=4)
    names = ("pp", "dp_replicate", "efsdp", "ep")
    theirs = init_device_mesh("cpu", (2, 3, 2, 4), mesh_dim_names=names)
    ours = build_mesh(strategy, load_cluster("dgx-h100", world_of_48))
    for name, axis in (("ep", "ep"), ("efsdp", "edp_shard"), ("dp_replicate", "edp_replicate"), ("pp", "pp")):
        dim = names.index(name)
        rows = theirs.mesh.movedim(dim, -1).reshape(-1, theirs.size(dim)).tolist()
        assert ours.groups(axis) == sorted(tuple(row) for row in rows), axis  # type: ignore[arg-type]
