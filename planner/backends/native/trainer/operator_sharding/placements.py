"""A plan's placement words in DTensor's terms: ``replicate``, ``shard:DIM``, ``partial:REDUCTION``.

A tensor has one word for each mesh axis, outermost axis first.  Where two axes shard the same dimension the outer axis
cuts first, which is DTensor's own order.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor.placement_types import _MaskPartial

from planner.errors import DocumentInvalid

Words = Sequence[str]


def placement_of(word: str) -> Placement:
    """One word as DTensor's placement.  Raises DocumentInvalid for a word that is none."""
    kind, _, detail = word.partition(":")
    if word == "replicate":
        return Replicate()
    if kind == "shard" and detail.isdigit():
        return Shard(int(detail))
    if kind == "partial" and detail:
        return Partial(detail)
    raise DocumentInvalid(
        f"{word!r} is not a placement", hint="write replicate, shard:DIM or partial:sum, one word for each mesh axis"
    )


def placements_of(words: Words) -> tuple[Placement, ...]:
    """The words of a tensor, one a mesh axis."""
    return tuple(map(placement_of, words))


def word_of(placement: Placement) -> str:
    """DTensor's placement as the plan writes it; what the plan has no word for keeps DTensor's."""
    # Subclasses (strided shards) mean something else, so that the exact class decides.
    if type(placement) is Shard:
        return f"shard:{placement.dim}"
    if isinstance(placement, Partial):
        return f"partial:{placement.reduce_op}"
    return "replicate" if isinstance(placement, Replicate) else repr(placement)


def words_of(tensor: DTensor) -> tuple[str, ...]:
    """How the tensor is placed, in the plan's words."""
    return tuple(map(word_of, tensor.placements))


def from_whole(whole: Tensor, mesh: DeviceMesh, words: Words) -> DTensor:
    """The tensor that every rank holds whole, cut as the words say; nothing is sent."""
    return placed(as_placed(whole, mesh, ("replicate",) * mesh.ndim, whole), words)


def as_placed(local: Tensor, mesh: DeviceMesh, words: Words, whole: Tensor) -> DTensor:
    """What a rank holds, declared to be its part of a tensor of ``whole``'s shape and strides."""
    return _wrapped(local, mesh, placements_of(words), whole.shape, whole.stride())


def placed(tensor: DTensor, words: Words) -> DTensor:
    """The tensor at the placements of ``words``, with the collectives that this takes."""
    held, wanted = words_of(tensor), tuple(words)
    if held == wanted:
        return tensor
    # Terms are made of the whole; there is no shorter way from shards, or from terms of another kind.
    new_terms = [now.startswith("partial") and was != now for was, now in zip(held, wanted, strict=True)]
    reduced = ["replicate" if made else word for made, word in zip(new_terms, wanted, strict=True)]
    moved = tensor.redistribute(tensor.device_mesh, placements_of(reduced))
    return _with_terms(moved, wanted) if any(new_terms) else moved


def _with_terms(tensor: DTensor, words: Words) -> DTensor:
    """Replicated axes made partial: of a sum the first rank of the axis keeps all, of other reductions every rank."""
    local = tensor.to_local()
    mesh = tensor.device_mesh
    for axis, (placement, word) in enumerate(zip(tensor.placements, words, strict=True)):
        if word == "partial:sum" and placement.is_replicate() and mesh.get_local_rank(axis) > 0:
            local = torch.zeros_like(local)
    return as_placed(local, mesh, words, tensor)


def with_plain_strides(tensor: DTensor) -> DTensor:
    """The same values in row-major memory, in part and as a whole: what a view needs.

    A traced view may rely on strides that its input had in one process; shards that came from elsewhere have their own.
    """
    local = tensor.to_local()
    if local.is_contiguous() and tensor.is_contiguous():
        return tensor
    row_major = torch.empty(tensor.shape, device="meta").stride()
    return _wrapped(local.contiguous(), tensor.device_mesh, tensor.placements, tensor.shape, row_major)


def with_mask_applied(tensor: DTensor) -> DTensor:
    """A plain partial tensor in place of the masked one that a lookup in a sharded table gives.

    Rows that belong to other ranks hold what index 0 has until the mask zeroes them; DTensor keeps the mask beside the
    tensor until it is reduced, where no later operator of a graph would know of it.
    """
    if not any(isinstance(placement, _MaskPartial) for placement in tensor.placements):
        return tensor
    local = tensor.to_local().clone()
    plain: list[Placement] = []
    for placement in tensor.placements:
        if isinstance(placement, _MaskPartial):
            placement.mask_buffer.apply_mask(local)  # type: ignore[no-untyped-call]
            placement.mask_buffer.release_mask()  # type: ignore[no-untyped-call]
            plain.append(Partial(placement.reduce_op))
        else:
            plain.append(placement)
    return _wrapped(local, tensor.device_mesh, plain, tensor.shape, tensor.stride())


def _wrapped(
    local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], shape: torch.Size, stride: tuple[int, ...]
) -> DTensor:
    with torch.no_grad():
        return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=stride)
