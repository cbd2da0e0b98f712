"""Ranks and nodes of a run: declared by the device list, and implied by the bandwidths.

The tool computes its bus bandwidth from the communicator that really ran; a device list may have been cut, merged or
taken from another run.  Where the two contradict each other the bandwidths win if they leave one count, otherwise the
device list does; either way the flag ``rank-mismatch`` names both.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from profiles.importers.nccl_tests.header import Rank
from profiles.importers.nccl_tests.operation import Evidence
from profiles.importers.nccl_tests.runs import Run
from profiles.importing.environments import given_whole
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.launch_command import Launched
from profiles.importing.ranks_of_bandwidth import RanksFound, ranks_found

_DEVICES = re.compile(r"(?:^|\s)(?:-g\s*|--ngpus[= ])(\d{1,3})(?=\s|$)")
_THREADS = re.compile(r"(?:^|\s)(?:-t\s*|--nthreads[= ])(\d{1,3})(?=\s|$)")
_COUNTS_PER_RANK = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")


@dataclass(frozen=True, slots=True)
class Listed:
    """The device list of a run: the group of rank 0, whose bandwidths are printed."""

    declared: int
    members: tuple[Rank, ...]
    num_groups: int
    complete: bool
    num_devices: int
    num_ranks: int
    """Of all groups together."""

    @property
    def num_nodes(self) -> int | None:
        """Hosts of the group; None where lines of the list are missing."""
        return len({rank.host for rank in self.members}) if self.complete else None

    @property
    def devices_per_node(self) -> int | None:
        """Ranks of the group on each host where all hosts have the same number."""
        counts = set(Counter(rank.host for rank in self.members).values())
        return counts.pop() if self.complete and len(counts) == 1 else None

    @property
    def stride(self) -> int | None:
        """Distance of neighbouring ranks where it is the same everywhere."""
        numbers = sorted(rank.rank for rank in self.members)
        steps = {after - before for before, after in pairwise(numbers)}
        return steps.pop() if self.complete and len(steps) == 1 else None


@dataclass(frozen=True, slots=True)
class Group:
    """The group that a run's rows belong to; None = unknown."""

    size: int | None
    num_nodes: int | None = None
    devices_per_node: int | None = None
    stride: int | None = None
    concurrent_groups: int | None = None
    declared: int | None = None
    inferred: int | None = None


def listed(run: Run) -> Listed | None:
    """The device list of a run; None if it has none."""
    by_rank = {rank.rank: rank for rank in run.ranks}
    if not by_rank:
        return None
    groups = {rank.group for rank in by_rank.values()}
    first = by_rank[min(by_rank)]
    members = tuple(rank for rank in by_rank.values() if rank.group == first.group)
    total = max(by_rank) + 1
    complete = len(by_rank) == total
    declared = len(members) if complete or len(groups) > 1 else total
    places = {(rank.host, rank.device, rank.address) for rank in by_rank.values()}
    return Listed(declared, members, len(groups), complete, len(places), len(by_rank))


def group_of(
    run: Run, operation: str, evidence: Evidence, devices: Listed | None, options: ReadOptions, imported: Imported
) -> Group:
    """The group of a run, with the flags that belong to it."""
    declared = devices.declared if devices else None
    found = ranks_found(operation, evidence.ratio) if evidence.agrees else None
    parts = evidence.parts if operation in _COUNTS_PER_RANK and (evidence.parts or 0) > 1 else None
    inferred = _inferred(found, parts, declared, devices)
    stated = declared if declared is not None else given_whole(options, "group_size")
    if stated is None and inferred is None and run.launch is not None:
        stated = _launched_ranks(run, run.launch)
    elif stated is None and inferred is None:
        stated = _ranks_of_one_process(run)
    size = inferred if inferred is not None else stated
    if size is None:
        imported.flag(
            "group-size-unknown",
            "neither a device list nor the bandwidths tell the number of ranks; give it with --set group_size=",
            run.first_line,
        )
    elif stated is not None and _contradicts(stated, found, parts):
        imported.flag("rank-mismatch", _mismatch(stated, inferred, found, declared is not None), run.first_line)
    if not evidence.agrees:
        what = "the rows do not share one ratio of bus to algorithm bandwidth"
        imported.flag("ratio-inconsistent", what, run.first_line)
    nodes, per_node, stride = _placement(run, size, devices, options)
    concurrent = devices.num_groups if devices else None
    return Group(size, nodes, per_node, stride, concurrent, declared, inferred)


def _inferred(found: RanksFound | None, parts: int | None, declared: int | None, devices: Listed | None) -> int | None:
    """The rank count that the table itself implies, where it is certain."""
    if parts is not None and (found is None or found.allows(parts)):
        return parts
    if found is None:
        return None
    if found.count is not None:
        return found.count
    if found.most is None or declared is None or found.allows(declared):
        return None
    # Several counts remain and the declared one is none of them: whole nodes leave one at best.
    per_node = devices.devices_per_node if devices else None
    whole = [n for n in range(found.least, min(found.most, found.least + 10_000) + 1) if per_node and n % per_node == 0]
    return whole[0] if len(whole) == 1 and (per_node or 0) > 1 else None


def _contradicts(stated: int, found: RanksFound | None, parts: int | None) -> bool:
    if found is not None:
        return not found.allows(stated)
    return parts is not None and parts != stated


def _mismatch(stated: int, inferred: int | None, found: RanksFound | None, in_list: bool) -> str:
    who = "the device list names" if in_list else "given or launched were"
    if inferred is not None:
        return f"{who} {stated} ranks, the bandwidths belong to {inferred}; {inferred} is used"
    span = f"{found.least} to {found.most if found.most is not None else 'any number'}" if found else "another number"
    return f"{who} {stated} ranks, the bandwidths allow {span}; {stated} is used"


def _placement(
    run: Run, size: int | None, devices: Listed | None, options: ReadOptions
) -> tuple[int | None, int | None, int | None]:
    """Nodes, ranks per node and stride of the group."""
    nodes = per_node = stride = None
    if devices is not None and devices.complete and size == len(devices.members):
        nodes, per_node, stride = devices.num_nodes, devices.devices_per_node, devices.stride
    elif devices is None and run.launch is not None and size is not None:
        nodes, per_node = _launched_nodes(run, run.launch, size)
    nodes = nodes if nodes is not None else given_whole(options, "num_nodes")
    per_node = per_node if per_node is not None else given_whole(options, "devices_per_node")
    if size is not None:
        if nodes is None and per_node is not None and size % per_node == 0:
            nodes = size // per_node
        elif per_node is None and nodes is not None and size % nodes == 0 and devices is None:
            per_node = size // nodes
    return nodes, per_node, stride


def _per_process(run: Run) -> int:
    return max(1, run.switches.get("num_threads", 1)) * max(1, run.switches.get("num_gpus_per_thread", 1))


def _launched_ranks(run: Run, launch: Launched) -> int | None:
    known = "num_threads" in run.switches
    return launch.num_ranks * _per_process(run) if launch.num_ranks is not None and known else None


def _ranks_of_one_process(run: Run) -> int | None:
    """Devices of a program that was started by itself (``all_reduce_perf -g 8``, ``-t 2 -g 4``)."""
    devices = _DEVICES.search(run.written_switches)
    threads = _THREADS.search(run.written_switches)
    return int(devices.group(1)) * int(threads.group(1) if threads else 1) if devices else None


def _launched_nodes(run: Run, launch: Launched, size: int) -> tuple[int | None, int | None]:
    """Nodes and ranks per node of the launch command where they make up the group."""
    if launch.num_nodes is None or launch.ranks_per_node is None:
        return None, None
    per_node = launch.ranks_per_node * _per_process(run)
    return (launch.num_nodes, per_node) if launch.num_nodes * per_node == size else (None, None)
