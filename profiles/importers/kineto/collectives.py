"""The collectives that ran, with size and ranks: NCCL / RCCL kernels with the metadata of PyTorch.

The metadata stands on the kernel, or on the ``record_param_comms`` call that launched it.  Sizes become full logical
tensors: all_gather and gather by their output, all others by their input elements times the bytes of ``dtype``.  The
name of the kernel tells neither algorithm nor protocol (one generic kernel serves several), so neither is stored; its
grid is the number of channels.
Source: pytorch/pytorch torch/csrc/distributed/c10d/ParamCommsUtils.hpp, ProcessGroupNCCL.cpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.importers.kineto.events import Arguments
from profiles.importing.kernel_names import collective_operation
from profiles.importing.torch_dtypes import torch_dtype, torch_element_bytes
from profiles.observations.records import CollectiveOperation

_KERNEL = re.compile(r"nccl|rccl|oneccl|hccl", re.IGNORECASE)
_OPERATIONS: dict[str, CollectiveOperation] = {
    "allreduce": "all_reduce",
    "allreducecoalesced": "all_reduce",
    "allreducesparse": "all_reduce",
    "allgather": "all_gather",
    "allgatherbase": "all_gather",
    "allgathercoalesced": "all_gather",
    "allgatherintotensorcoalesced": "all_gather",
    "allgatherintotensor": "all_gather",
    "allgatherinto": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescatterbase": "reduce_scatter",
    "reducescattercoalesced": "reduce_scatter",
    "reducescattertensorcoalesced": "reduce_scatter",
    "reducescattertensor": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "alltoallbase": "all_to_all",
    "alltoallsingle": "all_to_all",
    "send": "send_recv",
    "recv": "send_recv",
    "isend": "send_recv",
    "irecv": "send_recv",
    "broadcast": "broadcast",
    "broadcastoop": "broadcast",
    "reduce": "reduce",
    "reduceoop": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
}
_RANK_LIST = re.compile(r"\s*\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)?\s*\]\s*")


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A process group: its ranks where they are listed, else its name."""

    ranks: tuple[int, ...]
    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One collective on one rank; times in ns on the rank's own clock."""

    operation: CollectiveOperation
    size_bytes: int
    dtype: str
    group: GroupKey
    uneven: bool
    sequence: int | None
    peers: tuple[int, int] | None
    num_channels: int | None
    start_ns: int
    end_ns: int
    row: int
    called: str


def is_collective(name: str, arguments: Arguments | None) -> bool:
    """Whether a kernel moves data between ranks."""
    return (arguments is not None and isinstance(arguments.collective, str)) or bool(_KERNEL.search(name))


def collective_call(
    name: str, arguments: Arguments | None, launcher: Arguments | None, times_ns: tuple[int, int], row: int
) -> CollectiveCall | str:
    """The collective that a kernel carries out, or in words why it cannot be told."""
    first = arguments if arguments is not None and isinstance(arguments.collective, str) else launcher
    if first is None or not isinstance(first.collective, str):
        return "collective kernels without size (recorded by a torch before 2.3 or without its communication metadata)"
    called = first.collective
    operation = _OPERATIONS.get(re.sub(r"[^a-z]", "", called.casefold().removeprefix("nccl:")))
    if operation is None:
        operation = _named(called)
    if operation is None:
        return f"communication calls that are no collective ({called[:40]})"
    size = _size(first, operation)
    if isinstance(size, str):
        return size
    group = _group(first)
    sequences = (first.sequence, launcher.sequence if launcher is not None else None)
    return CollectiveCall(
        operation=operation,
        size_bytes=size,
        dtype=torch_dtype(first.dtype),
        group=group,
        uneven=_is_uneven(first.in_split),
        sequence=next((each for each in map(_whole, sequences) if each is not None), None),
        peers=_peers(first) if operation == "send_recv" else None,
        num_channels=_channels(arguments),
        start_ns=times_ns[0],
        end_ns=times_ns[1],
        row=row,
        called=called[:40],
    )


def _named(called: str) -> CollectiveOperation | None:
    found = collective_operation(called)
    return next((each for each in _OPERATIONS.values() if each == found), None)


def _size(arguments: Arguments, operation: str) -> int | str:
    if operation == "barrier":
        return 0
    element = torch_element_bytes(arguments.dtype)
    if element is None:
        return f"collectives of unknown element type ({str(arguments.dtype)[:24]})"
    sent, received = _whole(arguments.in_elements), _whole(arguments.out_elements)
    elements = received if operation in ("all_gather", "gather") else sent
    if operation == "send_recv":
        elements = max((each for each in (sent, received) if each is not None), default=None)
    if operation == "scatter":
        elements = sent or received
    if elements is None:
        return "collectives without a number of elements"
    if elements == 0:
        return "collectives of size 0"
    size = elements * element
    return size if size < 2**62 else "collectives of an impossible size"


def _group(arguments: Arguments) -> GroupKey:
    ranks = rank_list(arguments.group_ranks)
    size = _whole(arguments.group_size) or len(ranks) or None
    if ranks and size is not None and len(ranks) != size:
        ranks = ()
    name = str(arguments.group_name)[:80] if arguments.group_name is not None else ""
    return GroupKey(ranks, "" if ranks else name, size)


def rank_list(value: object) -> tuple[int, ...]:
    """Ranks in ``"[0, 1]"`` or a JSON list; empty for a shortened or absent list."""
    if isinstance(value, str) and len(value) < 2_000_000 and (found := _RANK_LIST.fullmatch(value)):
        return tuple(int(each) for each in found.group(1).split(",")) if found.group(1) else ()
    if isinstance(value, list) and all(isinstance(each, int) and 0 <= each < 10**9 for each in value):
        return tuple(value)
    return ()


def _is_uneven(value: object) -> bool:
    splits = rank_list(value)
    return len(set(splits)) > 1


def _peers(arguments: Arguments) -> tuple[int, int] | None:
    source, target = _whole(arguments.source_rank), _whole(arguments.target_rank)
    return (source, target) if source is not None and target is not None else None


def _channels(arguments: Arguments | None) -> int | None:
    grid = arguments.grid if arguments is not None else None
    if isinstance(grid, list) and grid and isinstance(grid[0], int) and 0 < grid[0] <= 256:
        return int(grid[0])
    return None


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value):
        return int(value)
    return value if isinstance(value, int) and 0 <= value < 2**62 else None
