"""``NCCL_DEBUG=INFO`` logs (NCCL and RCCL), alone or inside srun, mpirun and training logs.

Recognised by ``host:pid:tid [device] NCCL INFO`` lines; asked last, since such lines are mixed into every other log.
It gives version, network and NICs, GPUDirect RDMA, channels, where each rank sits, and NCCL's own choices
(``AllReduce: N Bytes -> Algo RING proto SIMPLE``, by name or by number) as facts; the nodes as a topology; and, when
rows of BigScience's torch all_reduce bench stand between the lines, their times as observations. Source: NVIDIA/nccl
src/init.cc, src/graph, src/transport, src/enqueue.cc.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid
from profiles.importers.nccl_debug.bench_rows import BenchRows, observations
from profiles.importers.nccl_debug.log import DebugLog
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.log_lines import log_lines
from profiles.importing.reported_device import mentioned_device
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.environment import Environment
from profiles.topology import Nic, NodeTopology, Topology

_LINE = re.compile(r"(?<!\S)\S{1,255}?:\d{1,10}:\d{1,10} \[\d{1,4}\] NCCL (?:INFO|WARN) ")
_KINDS = {"IB": "ib", "ROCE": "roce", "EFA": "efa"}


def _matches(head: Head) -> bool:
    """A line that NCCL itself printed."""
    return bool(_LINE.search(head.text))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    log, rows = DebugLog(), BenchRows()
    other: list[str] = []
    for line in log_lines(file):
        if log.take(line.text):
            continue
        # ``0:`` alone on a line is the bench's own heading, though it looks like the prefix of a blank line.
        rows.take(line.number, line.text if line.text or line.rank is None else f"{line.rank}:")
        if len(other) < 100_000 and ("GPU" in line.text or "NVIDIA" in line.text):
            other.append(line.text[:300])
    if not log.num_lines:
        raise DocumentInvalid("no line of it is NCCL's", where=file.where, hint="record the run with NCCL_DEBUG=INFO")
    imported = Imported(tool=log.library, tool_version=log.version)
    world = max(log.place_of_rank, default=0)
    places = log.place_of_rank.get(world, {})
    num_nodes = _num_nodes(log, world, places)
    _facts(log, world, imported)
    imported.topology = _topology(log, places, num_nodes)
    device = options.given.get("device") or mentioned_device(other)
    found = observations(rows, imported, num_nodes=num_nodes, size_given=options.given.get("size_bytes"))
    if found:
        environment = _environment(log, device, world, num_nodes)
        imported.batches.append(Batch(environment, collectives=found))
    if not found and imported.topology is None and not log.choices:
        raise DocumentInvalid(
            "NCCL's lines name no communicator and no choice",
            where=file.where,
            hint="record the start of the run too: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,TUNING",
        )
    return imported


def _num_nodes(log: DebugLog, world: int, places: dict[int, tuple[int, int]]) -> int | None:
    """Nodes of the largest communicator: as NCCL says, else by the hosts whose ranks are all seen."""
    said = Counter({nodes: count for (ranks, nodes, _), count in log.shapes.items() if ranks == world})
    if said:
        return said.most_common(1)[0][0]
    hosts = {host for host, _ in places.values()}
    return len(hosts) if hosts and len(places) == world else None


def _facts(log: DebugLog, world: int, imported: Imported) -> None:
    facts = imported.facts
    facts["num_nccl_lines"] = log.num_lines
    if world:
        facts["num_ranks"] = world
    if log.networks:
        facts["network"] = log.networks.most_common(1)[0][0]
    if log.channels:
        facts["num_channels"] = log.channels.most_common(1)[0][0]
    if log.nvls_channels:
        facts["num_nvls_channels"] = log.nvls_channels
    if log.nvls is not None:
        facts["nvls_available"] = log.nvls
    if log.gdr:
        facts["gpu_direct_rdma"] = not log.gdr[False]
    for path, count in sorted(log.paths.items()):
        facts[f"connections_{path}"] = count
    for name, value in sorted(log.settings.items()):
        if not re.search(r"IFNAME|HCA|ADDR|HOST|COMM_ID|FILE|PATH", name):
            facts[name] = value
    if log.topology_file:
        facts["topology_file_used"] = True
    for (operation, size), (algorithm, protocol, channels) in sorted(log.choices.items()):
        chosen = f"{algorithm}/{protocol}" + (f"/{channels}" if channels else "")
        facts[f"choice_{operation}_{size}"] = chosen
    if log.warnings:
        imported.flag("nccl-warnings", f"NCCL printed {log.warnings} warnings")


def _topology(log: DebugLog, places: dict[int, tuple[int, int]], num_nodes: int | None) -> Topology | None:
    nics = log.nic_lists.most_common(1)[0][0] if log.nic_lists else ()
    direct = None if not log.gdr else not log.gdr[False]
    found = tuple(
        Nic(index=index, kind=_KINDS.get(kind.upper(), ""), direct=direct) for index, (_, kind) in enumerate(nics)
    )
    if not places:
        return Topology(nics=found) if found else None
    hosts: dict[int, int] = {}
    order: list[tuple[int, int]] = []
    for rank in sorted(places):
        host, device = places[rank]
        order.append((hosts.setdefault(host, len(hosts)), device))
    devices = Counter(host for host, _ in order)
    counts = tuple(devices[host] for host in range(len(hosts)))
    complete = num_nodes is not None and len(hosts) == num_nodes
    usual = Counter(counts).most_common(1)[0][0]
    return Topology(
        num_nodes=num_nodes,
        node=NodeTopology(num_devices=usual) if complete else None,
        nics=found,
        devices_of_node=counts if complete else (),
        rank_order=tuple(order) if complete else (),
        irregular=("nodes hold different numbers of ranks",) if len(set(counts)) > 1 else (),
    )


def _environment(log: DebugLog, device: str, world: int, num_nodes: int | None) -> Environment:
    per_node = world // num_nodes if world and num_nodes and world % num_nodes == 0 else None
    return Environment(
        device=catalogue_device(device) or "" if device else "",
        device_reported=device,
        num_devices=world or None,
        num_nodes=num_nodes,
        devices_per_node=per_node,
        runtime_version=log.runtime,
        framework="torch",
        communication_library=log.library,
        communication_library_version=log.version,
        transport=log.networks.most_common(1)[0][0] if log.networks else "",
    )


FORMAT = Format(name="nccl-debug", title="NCCL_DEBUG=INFO log", matches=_matches, read=_read)
