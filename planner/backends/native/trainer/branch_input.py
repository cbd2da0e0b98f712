"""What the backward pass of a branch keeps of its input: with ``kept_input``, the sharded part or nothing.

The matrices that read a normed, gathered input would each keep it whole.  Two savings, both by handing autograd a
ticket and making the tensor again when the ticket is redeemed:

* sequence parallelism keeps the sequence-split part and gathers again (arXiv 2205.05198, section 4.2.2), which is
  what the planner's memory model says;
* recompute of ``norm`` keeps nothing: norm (and gather) run again from the residual stream, kept by the norm itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate

Again = Callable[[], Tensor]
"""Makes this rank's part of a branch's input once more."""


class Entry(Protocol):
    """Brings this rank's part of a branch's input into the form that the branch's matrices read."""

    gathers: bool

    def __call__(self, hidden: Tensor) -> Tensor:
        """[batch, local tokens, hidden] -> the matrices' input."""
        ...


class PlainEntry:
    """Without tensor parallelism: as it is."""

    gathers = False

    def __call__(self, hidden: Tensor) -> Tensor:
        """The same tensor."""
        return hidden


class TensorEntry:
    """With tensor parallelism: whole sequence on every rank; backward reduces once for all matrices."""

    def __init__(self, mesh: DeviceMesh, stream: Placement) -> None:
        self.mesh = mesh
        self.stream = stream
        self.gathers = stream.is_shard()

    def __call__(self, hidden: Tensor) -> Tensor:
        """Gather over tp where the residual stream is split over tokens."""
        split = DTensor.from_local(hidden, self.mesh, (self.stream,), run_check=False)
        return split.redistribute(placements=(Replicate(),))


@contextmanager
def kept_input(entry: Entry, hidden: Tensor, again: Again | None, *, checkpointed: bool) -> Iterator[Tensor]:
    """The branch's input for the matrices called inside the block, none of which keeps it.

    ``again`` makes ``hidden`` once more; None = ``hidden`` itself stays.  ``checkpointed``: the whole branch runs again
    anyway and keeps nothing, and a ticket would hold on to what the checkpoint frees.
    """
    value = entry(hidden)
    if checkpointed or (again is None and not entry.gathers):
        yield value
        return
    make = again or _returning(hidden.detach())
    cell = _Cell(lambda: _local(entry(make())))
    address, size = _local(value).untyped_storage().data_ptr(), _local(value).numel()

    def pack(tensor: Tensor) -> Any:
        local = _local(tensor)
        if local.numel() != size or local.untyped_storage().data_ptr() != address:
            return tensor
        return cell.ticket(tensor)

    def redeem(packed: Any) -> Tensor:
        return packed.redeem() if isinstance(packed, _Ticket) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, redeem):
        yield value


class _Cell:
    """One value with several tickets; made at the first of them, dropped at the last."""

    def __init__(self, make: Again) -> None:
        self.make = make
        self.tickets = 0
        self.redeemed = 0
        self.value: Tensor | None = None

    def ticket(self, tensor: Tensor) -> _Ticket:
        self.tickets += 1
        mesh = tensor.device_mesh if isinstance(tensor, DTensor) else None
        return _Ticket(self, _local(tensor).shape, mesh)

    def read(self) -> Tensor:
        if self.value is None:
            with torch.no_grad():
                self.value = self.make()
        value = self.value
        self.redeemed += 1
        if self.redeemed % self.tickets == 0:
            # Zero-bubble schedules pass twice, so the count starts over instead of ending.
            self.value = None
        return value


@dataclass(slots=True)
class _Ticket:
    """What autograd keeps in place of one view of the value."""

    cell: _Cell
    shape: torch.Size
    mesh: DeviceMesh | None

    def redeem(self) -> Tensor:
        local = self.cell.read().reshape(self.shape)
        if self.mesh is None:
            return local
        return DTensor.from_local(local, self.mesh, (Replicate(),), run_check=False)


def _returning(tensor: Tensor) -> Again:
    return lambda: tensor


def _local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
