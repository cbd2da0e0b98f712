"""HCCL rank tables (Ascend ``hccl.json``, ``rank_table.json``) 1.0, 1.2, 2.0, and the Atlas 950 topology file.

Recognised by JSON keys: ``server_list`` with devices (1.0: A2 and A3 servers; 1.2: ``super_pod_list`` besides),
``rank_list`` with ``level_list`` (2.0: Atlas 350 / 850 / 950), ``peer_list`` with ``edge_list`` (topology of one
server), and ``group_list`` (before 1.0). Published tables hold ``//`` comments; ids are text in 1.x and numbers in
2.0. Servers are numbered in file order; ranks keep theirs. A ``device_ip`` is one RoCE NIC of that device. A super
pod is one HCCS / UB domain. In 2.0, ranks of one layer-0 instance share a server until a ``local_id`` comes again.
Source: hicann/hccl docs, cluster_info_config; Ascend/mind-cluster hccl.json description.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.json_comments import strip_json_comments
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.switch_tree import irregularities
from profiles.safe_json import load_json_text
from profiles.text_limits import MAX_DOCUMENT_BYTES
from profiles.topology import DevicePair, NetworkTier, Nic, NodeTopology, Topology

_SERVERS = re.compile(r'"server_list"\s*:')
_DEVICES = re.compile(r'"(?:rank_id|device_id|super_pod_list)"\s*:')
_RANKS = re.compile(r'"rank_list"\s*:')
_LEVELS = re.compile(r'"(?:level_list|local_id)"\s*:')
_PEERS = re.compile(r'"(?:peer_list|edge_list)"\s*:')
_GROUPS = re.compile(r'"group_list"\s*:')
_INSTANCES = re.compile(r'"instance_list"\s*:')


def _matches(head: Head) -> bool:
    """One of the four shapes; the text begins as a JSON object (comments aside)."""
    text = strip_json_comments(head.text[:65536]).lstrip()
    if not text.startswith("{"):
        return False
    shapes = ((_SERVERS, _DEVICES), (_RANKS, _LEVELS), (_PEERS, _PEERS), (_GROUPS, _INSTANCES))
    return any(first.search(text) and second.search(text) for first, second in shapes) and '"traceEvents"' not in text


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    data = load_json_text(strip_json_comments(file.text(MAX_DOCUMENT_BYTES)), file.where)
    if not isinstance(data, dict):
        raise DocumentInvalid("it is no JSON object", where=file.where, hint="give the rank table itself")
    imported = Imported(tool="hccl", tool_version=str(data.get("version", ""))[:20])
    status = str(data.get("status", "completed"))
    if status != "completed":
        imported.flag("not-completed", f"the table says that its status is '{status[:40]}'")
    if isinstance(data.get("server_list"), list):
        imported.topology = _servers(data, file.where, imported)
    elif isinstance(data.get("rank_list"), list):
        imported.topology = _ranks(data, file.where, imported)
    elif isinstance(data.get("peer_list"), list):
        imported.topology = _peers(data, file.where, imported, options)
    elif isinstance(data.get("group_list"), list):
        imported.topology = _servers(_from_groups(data), file.where, imported)
    else:
        raise DocumentInvalid(
            "there is no server_list, rank_list or peer_list", where=file.where, hint="give a rank table of HCCL"
        )
    return imported


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    """An id as a number: 1.x writes text, 2.0 numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 2**31 else None
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 10 else None


def _known(value: Any) -> int:
    """An id, or -1 where there is none: no NPU has it."""
    found = _whole(value)
    return -1 if found is None else found


def _from_groups(data: dict[str, Any]) -> dict[str, Any]:
    """The oldest form as a 1.0 table: instances of a group carry server, rank and devices."""
    servers: dict[str, list[dict[str, Any]]] = {}
    for group in _dicts(data.get("group_list")):
        for instance in _dicts(group.get("instance_list")):
            for device in _dicts(instance.get("devices")):
                entry = {**device, "rank_id": instance.get("rank_id")}
                servers.setdefault(str(instance.get("server_id")), []).append(entry)
    return {**data, "server_list": [{"server_id": name, "device": found} for name, found in servers.items()]}


def _servers(data: dict[str, Any], where: str, imported: Imported) -> Topology:
    """1.0 and 1.2: servers with devices, perhaps in super pods."""
    numbers: dict[str, int] = {}
    devices: list[int] = []
    addresses: list[int] = []
    ranks: dict[int, tuple[int, int]] = {}
    for index, server in enumerate(_dicts(data["server_list"])):
        entries = _dicts(server.get("device") or server.get("device_list"))
        name = str(server.get("server_id", index))
        if not entries or name in numbers:
            what = "the server lists no device" if not entries else "the server stands here a second time"
            imported.bad(f"/server_list/{index}", what, "each server once, with its devices")
            continue
        node = numbers.setdefault(name, len(numbers))
        devices.append(len(entries))
        addresses.append(len({str(entry["device_ip"]) for entry in entries if entry.get("device_ip")}))
        for position, entry in enumerate(entries):
            pointer = f"/server_list/{index}/device/{position}"
            _take_rank(entry, node, position, pointer, ranks, imported)
    if not devices:
        raise DocumentInvalid("no server lists a device", where=where, hint="is the rank table complete?")
    declared = _whole(data.get("server_count"))
    if declared is not None and declared != len(_dicts(data["server_list"])):
        imported.flag("server-count", f"server_count is {declared}, {len(devices)} servers are listed")
    return _topology(devices, addresses, ranks, _super_pods(data, numbers, devices, imported), imported)


def _take_rank(
    entry: dict[str, Any],
    node: int,
    position: int,
    pointer: str,
    ranks: dict[int, tuple[int, int]],
    imported: Imported,
) -> None:
    # NPUs count from 0 on each node here: device_id may be a physical number of a shared server.
    if "rank_id" not in entry:
        return
    rank = _whole(entry["rank_id"])
    if rank is None or rank in ranks:
        what = f"rank_id is '{str(entry['rank_id'])[:20]}'" if rank is None else f"rank {rank} appears twice"
        imported.bad(pointer, what, "rank_id is unique and counts from 0")
        return
    ranks[rank] = (node, position)


def _super_pods(
    data: dict[str, Any], numbers: dict[str, int], devices: list[int], imported: Imported
) -> tuple[list[NetworkTier], int | None, list[str]]:
    groups: list[tuple[int, ...]] = []
    for index, pod in enumerate(_dicts(data.get("super_pod_list"))):
        named = [str(server.get("server_id")) for server in _dicts(pod.get("server_list"))]
        unknown = [name for name in named if name not in numbers]
        if unknown:
            what = f"{len(unknown)} servers of the super pod are not in server_list"
            imported.bad(f"/super_pod_list/{index}", what, "server_id must be the same in both lists")
        group = tuple(sorted({numbers[name] for name in named if name in numbers}))
        if group:
            groups.append(group)
    if not groups:
        return [], None, []
    sizes = {sum(devices[node] for node in group) for group in groups}
    tier = NetworkTier(name="superpod", groups=tuple(groups), kind="scale_up")
    domain = sizes.pop() if len(sizes) == 1 else None
    return [tier], domain, irregularities("superpod", tuple(groups), len(devices))


def _topology(
    devices: list[int],
    addresses: list[int],
    ranks: dict[int, tuple[int, int]],
    above: tuple[list[NetworkTier], int | None, list[str]],
    imported: Imported,
) -> Topology:
    tiers, domain, irregular = above
    order = [ranks[rank] for rank in sorted(ranks)]
    if ranks and (min(ranks) != 0 or max(ranks) != len(ranks) - 1):
        imported.flag("rank-gaps", f"{len(ranks)} ranks are numbered {min(ranks)} to {max(ranks)}")
    if len(set(devices)) > 1:
        irregular = [*irregular, f"servers hold {min(devices)} to {max(devices)} devices"]
    usual = Counter(devices).most_common(1)[0][0]
    num_nics = min((count for count, held in zip(addresses, devices, strict=True) if held == usual), default=0)
    return Topology(
        num_nodes=len(devices),
        node=NodeTopology(num_devices=usual, nics=tuple(Nic(index=index, kind="roce") for index in range(num_nics))),
        devices_of_node=tuple(devices),
        tiers=tuple(tiers),
        scale_up_domain_size=domain,
        rank_order=tuple(order),
        irregular=tuple(irregular),
    )


def _ranks(data: dict[str, Any], where: str, imported: Imported) -> Topology:
    """2.0: every rank with its network instances, layer by layer."""
    ranks: dict[int, tuple[int, int]] = {}
    nodes: dict[tuple[str, int], int] = {}
    devices: dict[int, int] = {}
    seen: Counter[tuple[str, Any]] = Counter()
    layers: dict[int, dict[str, set[int]]] = {}
    for index, entry in enumerate(_dicts(data["rank_list"])):
        levels = {_whole(level.get("net_layer")): level for level in _dicts(entry.get("level_list"))}
        instance = str(levels.get(0, {}).get("net_instance_id", ""))
        local = entry.get("local_id", entry.get("device_id"))
        times = seen[(instance, local)]
        seen[(instance, local)] += 1
        node = nodes.setdefault((instance, times), len(nodes))
        position = devices.get(node, 0)
        devices[node] = position + 1
        _take_rank(entry, node, position, f"/rank_list/{index}", ranks, imported)
        for layer, level in levels.items():
            if layer is not None:
                layers.setdefault(layer, {}).setdefault(str(level.get("net_instance_id")), set()).add(node)
    if not devices:
        raise DocumentInvalid("rank_list is empty", where=where, hint="is the rank table complete?")
    declared = _whole(data.get("rank_count"))
    if declared is not None and declared != len(_dicts(data["rank_list"])):
        imported.flag("rank-count", f"rank_count is {declared}, {len(ranks)} ranks are listed")
    tiers: list[NetworkTier] = []
    irregular: list[str] = []
    for layer in sorted(layers):
        groups = tuple(sorted(tuple(sorted(group)) for group in layers[layer].values()))
        if len(nodes) > 1 and (layer > 0 or len(groups) < len(nodes)):
            tiers.append(NetworkTier(name=f"layer-{layer}", groups=groups, kind="scale_up" if layer == 0 else "switch"))
            irregular += irregularities(f"layer-{layer}", groups, len(nodes))
    counts = [devices[node] for node in sorted(devices)]
    return _topology(counts, [0] * len(counts), ranks, (tiers, None, irregular), imported)


def _peers(data: dict[str, Any], where: str, imported: Imported, options: ReadOptions) -> Topology:
    """Topology file of one Atlas 950 server: NPUs and the edges between them or to the network."""
    ids = [found for peer in _dicts(data["peer_list"]) if (found := _whole(peer.get("local_id"))) is not None]
    if not ids or len(set(ids)) != len(ids) or len(ids) > 1024:
        raise DocumentInvalid("peer_list has no unique local_ids", where=where, hint="is the file complete?")
    position = {local: index for index, local in enumerate(sorted(ids))}
    links: Counter[tuple[int, int]] = Counter()
    to_network: Counter[int] = Counter()
    for index, edge in enumerate(_dicts(data.get("edge_list"))):
        first, second = (position.get(_known(edge.get(end))) for end in ("local_a", "local_b"))
        ports = edge.get("local_a_ports")
        count = len(ports) if isinstance(ports, list) and ports else 1
        if "local_b" in edge and first is not None and second is not None and first != second:
            links[(min(first, second), max(first, second))] += count
        elif "local_b" not in edge and first is not None:
            to_network[first] += count
        else:
            imported.bad(f"/edge_list/{index}", "the edge names no two NPUs of peer_list", "check local_a and local_b")
    pairs = tuple(
        DevicePair(first=first, second=second, link="ub", num_links=count, reported=f"UB{count}")
        for (first, second), count in sorted(links.items())
    )
    if to_network:
        imported.facts["network_ports_per_device"] = min(to_network.values())
    node = NodeTopology(
        num_devices=len(ids),
        device_reported=options.given.get("device", ""),
        pairs=pairs,
        switched=False if pairs else None,
    )
    return Topology(node=node, devices_of_node=(len(ids),))


FORMAT = Format(name="hccl-rank-table", title="HCCL rank table 1.0, 1.2, 2.0 (Ascend)", matches=_matches, read=_read)
