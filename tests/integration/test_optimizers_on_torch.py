"""Optimizers keep what the table says: counted on the optimizers themselves after a step."""

from __future__ import annotations

from typing import Any

import pytest

from planner.question.optimizers import OPTIMIZERS

torch = pytest.importorskip("torch")
MATRICES = ((512, 256), (1024, 256), (256, 1024))
VECTORS = (1024, 256, 256)
STEP_BYTES = 4
"""Every parameter's counter of steps."""


def weights() -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    shapes = (*MATRICES, *((size,) for size in VECTORS))
    found = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    for each in found:
        each.grad = torch.randn(each.shape, generator=generator)
    return found


def kept_bytes(optimizer: Any) -> int:
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    return sum(value.numel() * value.element_size() for value in states)


def test_adafactor() -> None:
    kind = OPTIMIZERS["adafactor"]
    by_hand = sum(4 * (rows + columns) for rows, columns in MATRICES) + kind.vector_bytes * sum(VECTORS)
    counters = STEP_BYTES * (len(MATRICES) + len(VECTORS))
    assert kind.factored
    assert kept_bytes(torch.optim.Adafactor(weights())) == by_hand + counters


def test_adam() -> None:
    elements = sum(rows * columns for rows, columns in MATRICES) + sum(VECTORS)
    counters = STEP_BYTES * (len(MATRICES) + len(VECTORS))
    assert kept_bytes(torch.optim.AdamW(weights())) == OPTIMIZERS["adam"].matrix_bytes * elements + counters


def test_muon_takes_matrices_alone() -> None:
    elements = sum(rows * columns for rows, columns in MATRICES)
    matrices = [each for each in weights() if each.ndim == 2]
    assert kept_bytes(torch.optim.Muon(matrices)) == OPTIMIZERS["muon"].matrix_bytes * elements
    with pytest.raises(ValueError, match="2D"):
        torch.optim.Muon(weights())


def test_torchs_adafactor_takes_no_sharded_weights() -> None:
    """The reason of Accelerate's rule A11: when this passes, the rule can go."""
    dtensor = pytest.importorskip("torch.distributed.tensor")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        weight = torch.nn.Parameter(dtensor.distribute_tensor(torch.randn(8, 4), mesh, [dtensor.Shard(0)]))
        weight.grad = dtensor.distribute_tensor(torch.randn(8, 4), mesh, [dtensor.Shard(0)])
        with pytest.raises(RuntimeError, match="in-place"):
            torch.optim.Adafactor([weight], foreach=False).step()
    finally:
        torch.distributed.destroy_process_group()
