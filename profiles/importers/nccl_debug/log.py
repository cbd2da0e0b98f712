"""The lines of an ``NCCL_DEBUG=INFO`` log: hosts, ranks, versions, networks, channels, choices.

A line is ``[time] host:pid:tid [device] NCCL INFO message``; srun labels and other programs' output stand around.
Host names are used to tell nodes apart and never leave this module.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_LINE = re.compile(r"(?<!\S)(\S{1,255}?):(\d{1,10}):(\d{1,10}) \[(\d{1,4})\] NCCL (INFO|WARN) (.*)")
_VERSION = re.compile(r"\b(NCCL|RCCL) version (\d[\w.]*)(?:\+(cuda|hip)([\d.]+))?", re.IGNORECASE)
_DRIVER = re.compile(r"cudaDriverVersion (\d{4,6})\b")
_COMM = re.compile(r"comm (0x[0-9a-f]+) rank (\d{1,7}) nranks (\d{1,7}) cudaDev (\d{1,4}) .*Init COMPLETE")
_SHAPE = re.compile(r"rank (\d{1,7}) nRanks (\d{1,7}) nNodes (\d{1,7}) localRanks (\d{1,5}) localRank (\d{1,5})")
_NETWORK = re.compile(r"Using network (.{1,40}?)\s*$")
_IB = re.compile(r"NET/(?:IB|IBext\w*)\s*: Using (.*)")
_NIC = re.compile(r"\[(\d{1,3})\]([\w.-]{1,32})(?::(\d))?(?:/(\w{1,12}))?")
_EFA = re.compile(r"NET/OFI .*?Selected [Pp]rovider is (\w+).*?\(found (\d{1,4}) nics\)")
_CHANNELS = re.compile(
    r"(\d{1,4}) coll channels(?:, (\d{1,4}) collnet channels)?(?:, (\d{1,4}) nvls channels)?, (\d{1,4}) p2p channels"
)
_RING = re.compile(r"Channel (\d{1,4})/(\d{1,4}) :\s+(\d[\d\s]*)$")
_VIA = re.compile(r" via (P2P|SHM|NET|COLLNET)(?:/([\w-]+))?(\S*)")
_GDR = re.compile(r"GPU Direct RDMA (Enabled|Disabled)", re.IGNORECASE)
_NVLS = re.compile(r"NVLS multicast support is (not )?available")
_CHOICE = re.compile(
    r"(?:(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AlltoAll|SendRecv)\w*: )?(\d{1,18}) Bytes -> "
    r"Algo (\w+) proto (\w+)(?: time [\d.]+)?(?: channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})?",
    re.IGNORECASE,
)
_SETTING = re.compile(r"\b((?:NCCL|RCCL)_[A-Z0-9_]{2,60}) set by environment to (.{1,80}?)\.?\s*$")
_TOPOLOGY_FILE = re.compile(r"NCCL_TOPO_FILE set by environment|Loading topology file", re.IGNORECASE)

_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter", "broadcast": "broadcast",
    "reduce": "reduce", "alltoall": "all_to_all", "sendrecv": "send_recv", "": "any",
}  # fmt: skip
MAX_CHOICES = 2000
_LONGEST = 4096
"""Longer lines are cut: what is read stands at the front; lists of trees go on for thousands of characters."""


@dataclass(slots=True)
class DebugLog:
    """Everything that was recognised."""

    num_lines: int = 0
    library: str = "nccl"
    version: str = ""
    runtime: str = ""
    hosts: dict[str, int] = field(default_factory=dict)
    place_of_rank: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    shapes: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    networks: Counter[str] = field(default_factory=Counter)
    nic_lists: Counter[tuple[tuple[str, str], ...]] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    nvls_channels: int = 0
    rings: dict[int, set[int]] = field(default_factory=dict)
    paths: Counter[str] = field(default_factory=Counter)
    gdr: Counter[bool] = field(default_factory=Counter)
    nvls: bool | None = None
    choices: dict[tuple[str, int], tuple[str, str, int | None]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    topology_file: bool = False
    warnings: int = 0

    def take(self, text: str) -> bool:
        """One line; whether it is one of NCCL's."""
        text = text[:_LONGEST]
        if "NCCL" not in text and "RCCL" not in text:
            return False
        version = _VERSION.search(text)
        if version:
            self.library = version.group(1).lower()
            self.version = version.group(2)
            if version.group(3):
                self.runtime = ("CUDA " if version.group(3).lower() == "cuda" else "ROCm ") + version.group(4)
        line = _LINE.search(text)
        if not line:
            return bool(version)
        self.num_lines += 1
        host = self.hosts.setdefault(line.group(1), len(self.hosts))
        if line.group(5) == "WARN":
            self.warnings += 1
            return True
        self._message(line.group(6), host)
        return True

    def _message(self, text: str, host: int) -> None:
        if (comm := _COMM.search(text)) is not None:
            ranks = self.place_of_rank.setdefault(int(comm.group(3)), {})
            ranks.setdefault(int(comm.group(2)), (host, int(comm.group(4))))
        elif (shape := _SHAPE.search(text)) is not None:
            self.shapes[(int(shape.group(2)), int(shape.group(3)), int(shape.group(4)))] += 1
            ranks = self.place_of_rank.setdefault(int(shape.group(2)), {})
            ranks.setdefault(int(shape.group(1)), (host, int(shape.group(5))))
        elif (via := _VIA.search(text)) is not None:
            self._path(via)
        elif (channels := _CHANNELS.search(text)) is not None:
            self.channels[int(channels.group(1))] += 1
            self.nvls_channels = max(self.nvls_channels, int(channels.group(3) or 0))
        elif (ring := _RING.search(text)) is not None:
            self.rings.setdefault(len(ring.group(3).split()), set()).add(int(ring.group(1)))
        elif (choice := _CHOICE.search(text)) is not None:
            self._choose(choice)
        else:
            self._setup(text)

    def _path(self, via: re.Match[str]) -> None:
        kind = via.group(1) if via.group(1) != "NET" else f"NET/{via.group(2) or ''}".rstrip("/")
        self.paths[kind] += 1
        if via.group(1) == "NET":
            self.gdr["GDRDMA" in via.group(3)] += 1

    def _choose(self, choice: re.Match[str]) -> None:
        if len(self.choices) >= MAX_CHOICES:
            return
        algorithm, protocol = choice.group(3).upper(), choice.group(4).upper()
        if algorithm.isdigit():
            algorithm = _ALGORITHMS[int(algorithm)] if len(algorithm) < 3 and int(algorithm) < len(_ALGORITHMS) else ""
        if protocol.isdigit():
            protocol = _PROTOCOLS[int(protocol)] if len(protocol) < 3 and int(protocol) < len(_PROTOCOLS) else ""
        low, high = choice.group(5), choice.group(6)
        num_channels = int(high) - int(low) + 1 if low and high and len(high) < 6 else None
        operation = _OPERATIONS[(choice.group(1) or "").casefold()]
        self.choices[(operation, int(choice.group(2)))] = (algorithm, protocol, num_channels)

    def _setup(self, text: str) -> None:
        if (network := _NETWORK.search(text)) is not None:
            self.networks[network.group(1)] += 1
        elif (adapters := _IB.search(text)) is not None:
            found = tuple((nic.group(2), nic.group(4) or "") for nic in _NIC.finditer(adapters.group(1).split(";")[0]))
            self.nic_lists[found] += 1
        elif (efa := _EFA.search(text)) is not None:
            self.nic_lists[tuple((efa.group(1), "EFA") for _ in range(int(efa.group(2))))] += 1
        elif (driver := _DRIVER.search(text)) is not None and not self.runtime:
            number = int(driver.group(1))
            self.runtime = f"CUDA {number // 1000}.{number % 1000 // 10}"
        elif (gdr := _GDR.search(text)) is not None:
            self.gdr[gdr.group(1).casefold() == "enabled"] += 1
        elif (nvls := _NVLS.search(text)) is not None:
            self.nvls = not nvls.group(1)
        elif (setting := _SETTING.search(text)) is not None and len(self.settings) < 100:
            self.settings[setting.group(1)] = setting.group(2)
        if _TOPOLOGY_FILE.search(text):
            self.topology_file = True
