"""Agreement between the ranks of one torchrun launch: maxima, decisions of rank 0, barriers.

One process a device; the back-end is the device's own (nccl, hccl, xccl), gloo on the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.measure.device import BackendKind, MeasuredDevice, import_torch, open_device
from profiles.measure.group_shapes import GroupShape

COMMUNICATION_BACKENDS: dict[BackendKind, str] = {
    "cuda": "nccl",
    "rocm": "nccl",
    "npu": "hccl",
    "xpu": "xccl",
    "cpu": "gloo",
}
TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class RankGroup:
    """The group of one shape that this process belongs to; ``first``: it is the group of rank 0."""

    handle: Any
    members: tuple[int, ...]
    place: int
    first: bool


@dataclass(slots=True)
class Ranks:
    """This process among all; ``devices_per_node`` consecutive ranks share a node."""

    device: MeasuredDevice
    rank: int
    world_size: int
    devices_per_node: int
    communication: Any
    """``torch.distributed``."""

    @property
    def backend(self) -> str:
        """nccl, hccl, xccl or gloo."""
        return str(self.communication.get_backend())

    def maxima(self, values: Sequence[float]) -> list[float]:
        """Element by element, the largest of all ranks: a collective is done when its last rank is."""
        return self._reduced(values, self.communication.ReduceOp.MAX)

    def decided(self, value: float) -> float:
        """Rank 0's number, on every rank."""
        # A sum in which only rank 0 has a part: broadcast needs no second path through the back-end.
        return self._reduced([value if self.rank == 0 else 0.0], self.communication.ReduceOp.SUM)[0]

    def barrier(self) -> None:
        """Wait for all ranks and for all submitted work."""
        self.device.synchronize()
        self.communication.barrier()
        self.device.synchronize()

    @contextmanager
    def grouped(self, shape: GroupShape) -> Iterator[RankGroup]:
        """This rank's group of a shape; every rank makes all of them in the same order, as the back-ends ask for."""
        groups = shape.groups()
        handles = [self.communication.new_group(list(members)) for members in groups]
        mine = next(number for number, members in enumerate(groups) if self.rank in members)
        members = groups[mine]
        yield RankGroup(handles[mine], members, members.index(self.rank), mine == 0)
        self.barrier()
        self.communication.destroy_process_group(handles[mine])

    def _reduced(self, values: Sequence[float], reduction: Any) -> list[float]:
        torch = import_torch()
        # Single precision: not every accelerator reduces doubles.
        numbers = torch.tensor(list(values), dtype=torch.float32, device=self.device.device)
        self.communication.all_reduce(numbers, op=reduction)
        found: list[float] = numbers.tolist()
        return found


def launched_by_torchrun(environment: Mapping[str, str] | None = None) -> bool:
    """Whether this process is one of several."""
    variables = os.environ if environment is None else environment
    return variables.get("WORLD_SIZE", "1") not in ("", "0", "1") and "RANK" in variables


def quiet_rank(environment: Mapping[str, str] | None = None) -> bool:
    """Whether another rank speaks for this one."""
    variables = os.environ if environment is None else environment
    return launched_by_torchrun(variables) and variables["RANK"] != "0"


@contextmanager
def all_ranks(backend: str = "auto", devices_per_node: int | None = None, flush_bytes: int = 0) -> Iterator[Ranks]:
    """The ranks of this launch.  Raises DocumentInvalid outside torchrun and for an impossible node size.

    A process group that exists already is used and left; else one is made from torchrun's environment and destroyed.
    """
    torch = import_torch()
    communication = torch.distributed
    if not communication.is_available():
        raise DocumentInvalid(
            "this torch is built without torch.distributed", where="profile measure", hint="install the usual torch"
        )
    own = not communication.is_initialized()
    if own and not launched_by_torchrun():
        raise DocumentInvalid(
            "collectives need several processes",
            where="--only",
            hint="torchrun --nproc-per-node 8 $(command -v meshwright) profile measure --only collectives,overlap",
        )
    device = open_device(backend, int(os.environ.get("LOCAL_RANK", "0")), flush_bytes=flush_bytes)
    if own:
        bound = {} if device.is_host else {"device_id": device.device}
        communication.init_process_group(
            COMMUNICATION_BACKENDS[device.kind], timeout=timedelta(seconds=TIMEOUT_S), **bound
        )
    try:
        yield _ranks(device, communication, devices_per_node)
    finally:
        if own:
            communication.destroy_process_group()


def _ranks(device: MeasuredDevice, communication: Any, devices_per_node: int | None) -> Ranks:
    world_size = communication.get_world_size()
    local = devices_per_node or int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    if local < 1 or world_size % local:
        raise DocumentInvalid(
            f"{world_size} ranks are not nodes of {local}",
            where="--devices-per-node",
            hint="start the same number of processes on every node",
        )
    return Ranks(device, communication.get_rank(), world_size, local, communication)
