"""The initial values: a function of parameter name and seed alone, whatever the layout.

The full tensor is drawn from a generator seeded by the name, then this rank keeps its part; experts are drawn one by
one, so that a rank draws only those it holds.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Shard

from planner.backends.native.trainer.mixture import Experts
from planner.backends.native.trainer.model import DecoderChunk

WEIGHT_STD = 0.02


def initialize(chunk: DecoderChunk, device: torch.device, seed: int) -> None:
    """Fill every parameter of a chunk whose memory exists (``to_empty``) but holds nothing yet."""
    experts = {name: module for name, module in chunk.named_modules() if isinstance(module, Experts)}
    with torch.no_grad():
        for name, parameter in chunk.named_parameters():
            owner, _, leaf = name.rpartition(".")
            shape = parameter.shape
            if owner in experts:
                full = _expert_values(name, shape, experts[owner].first_expert, device, seed)
            elif leaf == "bias":
                full = torch.zeros(shape, device=device)
            elif len(shape) == 1:
                full = torch.ones(shape, device=device)
            else:
                full = _table_values(chunk, name, shape, device, seed)
            target = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            target.copy_(local_part(full, parameter))


def local_part(full: Tensor, parameter: Tensor | nn.Parameter) -> Tensor:
    """Cut this rank's part out of the full tensor of a sharded parameter.

    FSDP cuts what tensor parallelism left, and its axes come first in the mesh, so the axes are taken last to first.
    """
    if not isinstance(parameter, DTensor):
        return full
    mesh = parameter.device_mesh
    for axis in reversed(range(mesh.ndim)):
        placement = parameter.placements[axis]
        # torch's strided shard (FSDP over tp on one dim) is no subclass of Shard in every release.
        dim = getattr(placement, "dim", None) if not placement.is_replicate() else None
        if isinstance(placement, Shard) or dim is not None:
            parts = full.chunk(mesh.size(axis), dim=dim or 0)
            index = mesh.get_local_rank(axis)
            full = parts[index] if index < len(parts) else full.narrow(dim or 0, 0, 0)
    return full


def _table_values(chunk: DecoderChunk, name: str, shape: torch.Size, device: torch.device, seed: int) -> Tensor:
    """Normal values; rows that only pad a table to a multiple of tp are zero."""
    rows = shape[0]
    if name in ("embedding.weight", "head.weight"):
        rows = chunk.model.vocab_size
    elif name == "position_embedding.weight":
        rows = chunk.model.learned_positions
    values = _normal(name, torch.Size((rows, *shape[1:])), device, seed)
    if rows == shape[0]:
        return values
    return torch.cat((values, values.new_zeros(shape[0] - rows, *shape[1:])))


def _expert_values(name: str, shape: torch.Size, first: int, device: torch.device, seed: int) -> Tensor:
    return torch.stack([_normal(f"{name}[{first + index}]", shape[1:], device, seed) for index in range(shape[0])])


def _normal(name: str, shape: torch.Size, device: torch.device, seed: int) -> Tensor:
    generator = torch.Generator(device=device)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator.manual_seed(int.from_bytes(digest[:7], "big"))
    return WEIGHT_STD * torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
