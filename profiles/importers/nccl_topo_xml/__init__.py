"""NCCL / RCCL topology XML (``NCCL_TOPO_DUMP_FILE``, or a cloud's ``NCCL_TOPO_FILE``): one node, or a fused NVL domain.

Recognised by ``<system version="...">`` with ``<cpu>`` or ``<pci>`` below. ``net speed`` is Mbit/s; PCIe
``link_speed`` is per lane (``16 GT/s``, ``32.0 GT/s PCIe``); ``c2c bw`` is MB/s a link (NVLink-C2C to the CPU).
Cloud-provided files list PCI functions only (class 0x0302 = GPU, 0x0200 and 0x0207 = NIC), or GPUs without links and
PCI ids: NVLinks (of the former PCIe rates too) are left to NCCL, so links between GPUs are not taken from them; files
without classes are refused. Socket NICs repeat under every CPU and are counted once.
Source: NVIDIA/nccl src/graph/xml.cc, topo.cc; ROCm/rccl tools/topo_expl/models.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_topo_xml.device_ids import device_name
from profiles.importers.nccl_topo_xml.links import FastLinks, fast_links, pairs_of
from profiles.importers.nccl_topo_xml.pci_tree import PciTree, Place, host_link_bytes_per_s, walk
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.matrix_node import is_switched, nic_kind
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.xml_text import parse_xml
from profiles.topology import LinkType, Nic, NodeTopology, Topology

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_DEVICES = 576
_ROOT = re.compile(r"<system[\s>]")
_INSIDE = re.compile(r"<(?:cpu|pci|gpu)[\s>]")
_NEARNESS: tuple[LinkType, ...] = ("pcie_switch", "pcie_bridges", "pcie_host", "numa", "system")
_Gpu = tuple[Place, "Element", "Element | None"]


def _matches(head: Head) -> bool:
    """A ``<system>`` element that holds CPUs or PCI devices."""
    text = head.text.lstrip()
    root = _ROOT.search(text) if text.startswith("<") else None
    return root is not None and bool(_INSIDE.search(text, root.end()))


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    root = parse_xml(file)
    if root.tag != "system":
        raise DocumentInvalid(f"the root is <{root.tag[:40]}>, not <system>", where=file.where, hint="give NCCL's XML")
    tree = walk(root)
    gpus: list[_Gpu] = list(tree.gpus) or [(place, element, element) for place, element in tree.gpu_functions]
    if not gpus:
        raise DocumentInvalid(
            _why_empty(tree),
            where=file.where,
            hint="NCCL fills such files in at run time: dump the result with NCCL_TOPO_DUMP_FILE and import that",
        )
    imported = Imported(tool="nccl", facts={"xml_version": (root.get("version") or "")[:20]})
    hosts = sorted({place.host for place, _, _ in gpus})
    by_host = [[gpu for gpu in gpus if gpu[0].host == host] for host in hosts]
    if max(map(len, by_host)) > MAX_DEVICES:
        raise DocumentInvalid(f"one host has more than {MAX_DEVICES} GPUs", where=file.where, hint="check the file")
    if not tree.gpus:
        what = "a configured file: it lists PCI devices only; NVLinks, NIC rates and PCIe rates are not taken from it"
        imported.flag("links-omitted", what)
    elif not _is_dump(gpus):
        what = "a configured file: it shows no link between GPUs and no PCI ids of them; NCCL finds the NVLinks itself"
        imported.flag("links-omitted", what)
    nodes = [_node(tree, host, members, imported, options) for host, members in zip(hosts, by_host, strict=True)]
    node = Counter(nodes).most_common(1)[0][0]
    if len(set(nodes)) > 1:
        imported.flag("nodes-differ", f"{len(nodes)} hosts show {len(set(nodes))} kinds of node; the commonest is kept")
    imported.topology = Topology(
        num_nodes=len(hosts) if len(hosts) > 1 else None,
        node=node,
        devices_of_node=tuple(len(members) for members in by_host),
        scale_up_domain_size=len(gpus) if len(hosts) > 1 and node.switched else None,
    )
    return imported


def _why_empty(tree: PciTree) -> str:
    if tree.anonymous:
        return f"{tree.anonymous} PCI devices are listed without a class: GPUs and NICs cannot be told apart"
    nics = len(tree.nets) + len(tree.nic_functions)
    return f"no GPU is listed ({nics} NICs are)" if nics else "neither a GPU nor a NIC is listed"


def _node(tree: PciTree, host: int, gpus: list[_Gpu], imported: Imported, options: ReadOptions) -> NodeTopology:
    places = [place for place, _, _ in gpus]
    links = fast_links(gpus)
    _report(links, imported)
    # That a configured file shows no NVLink does not mean that there is none.
    pairs = pairs_of(places, links) if tree.gpus and _is_dump(gpus) else ()
    numa = tuple(place.numa for place in places)
    known = {node for node in numa if node is not None}
    if links.to_switch:
        switched: bool | None = True
    elif links.kind == "xgmi":
        switched = False
    else:
        switched = is_switched(list(pairs), len(gpus))
    return NodeTopology(
        num_devices=len(gpus),
        device_reported=options.given.get("device") or _device(gpus),
        pairs=pairs,
        nics=tuple(_nics(tree, host, places, imported)),
        numa_node_of_device=numa if known else (),
        num_numa_nodes=len({cpu.get("numaid") for cpu in tree.cpus}) or None,
        switched=switched,
        host_link_bandwidth_bytes_per_s=_host_link(gpus, imported) if tree.gpus else None,
        cpu=_cpu(tree),
    )


def _is_dump(gpus: list[_Gpu]) -> bool:
    """Whether NCCL wrote the file: a dump lists links of its GPUs, or at least their PCI ids."""
    return any(len(gpu) or (pci is not None and pci.get("vendor")) for _, gpu, pci in gpus)


def _report(links: FastLinks, imported: Imported) -> None:
    for what in links.broken:
        imported.bad("/system", what, "dump the XML again")
    if links.own_targets:
        imported.flag("own-link-target", f"{links.own_targets} links end at the GPU that lists them; they are left out")
    if links.unknown_targets:
        what = f"{links.unknown_targets} links end at devices that the file does not show; they are left out"
        imported.flag("unknown-link-target", what)


def _device(gpus: list[_Gpu]) -> str:
    names = {device_name(pci.get("vendor") or "", pci.get("device") or "") for _, _, pci in gpus if pci is not None}
    return next(iter(names)) if len(names) == 1 else ""


def _host_link(gpus: list[_Gpu], imported: Imported) -> float | None:
    """NVLink-C2C where a GPU has it, else PCIe; the slowest of the devices."""
    rates: list[float] = []
    left_out = 0
    for place, gpu, _ in gpus:
        rate, ignored = host_link_bytes_per_s(place)
        left_out += ignored
        coherent = gpu.find("c2c")
        c2c = _rate(coherent.get("bw"), coherent.get("count")) if coherent is not None else None
        if (best := c2c or rate) is not None:
            rates.append(best)
    if left_out:
        what = f"PCIe bridges above {left_out} GPUs report less than 8 GT/s; the GPUs' own link rates are taken"
        imported.flag("slow-bridge", what)
    return min(rates, default=None)


def _rate(megabytes: str | None, count: str | None) -> float | None:
    try:
        rate = int(megabytes or "") * 1e6 * int(count or "1")
    except (ValueError, OverflowError):
        return None
    return rate if 0 < rate < 1e14 else None


def _nics(tree: PciTree, host: int, gpus: list[Place], imported: Imported) -> list[Nic]:
    """``<net>`` entries if there are any, else PCI functions of a NIC's class."""
    nics: list[Nic] = []
    seen: set[tuple[str, ...]] = set()
    for place, net in tree.nets:
        key = tuple(net.get(name) or "" for name in ("name", "dev", "port", "guid"))
        if place.host != host or key in seen:
            continue
        seen.add(key)
        nics.append(_nic(len(nics), place, gpus, net, imported))
    if not tree.nets:
        for place, _ in tree.nic_functions:
            if place.host == host:
                nics.append(_nic(len(nics), place, gpus, None, imported))
    return nics


def _nic(index: int, place: Place, gpus: list[Place], net: Element | None, imported: Imported) -> Nic:
    distances = {number: place.link_to(gpu) for number, gpu in enumerate(gpus)}
    best = next((kind for kind in _NEARNESS if kind in distances.values()), None)
    speed = _speed(net.get("speed"), imported) if net is not None else None
    direct = {"1": True, "0": False}.get(net.get("gdr") or "") if net is not None else None
    near = tuple(number for number, kind in distances.items() if kind == best) if best != "system" else ()
    return Nic(
        index=index,
        bandwidth_bytes_per_s=speed,
        kind=_kind(place, net),
        numa_node=place.numa,
        nearest_devices=near,
        link=best,
        direct=direct,
    )


def _speed(text: str | None, imported: Imported) -> float | None:
    """Mbit/s to bytes a second; 0 and -1 mean that the driver did not say."""
    try:
        megabits = int(text or "")
    except ValueError:
        megabits = -1 if not text else 0
        if text:
            imported.bad("/system", f"a net has the speed '{text[:20]}'", "speed is a whole number of Mbit/s")
    return megabits * 1e6 / 8 if 0 < megabits <= 10_000_000 else None


def _kind(place: Place, net: Element | None) -> str:
    element = place.path[-1] if place.path else None
    vendor = (element.get("vendor") or "").lower() if element is not None else ""
    kind = (element.get("class") or "").lower()[:6] if element is not None else ""
    name = (net.get("name") or "") if net is not None else ""
    if vendor == "0x1d0f":
        return "efa"
    if kind == "0x0207":
        return "ib"
    told = nic_kind(name)
    if told:
        return told
    if kind == "0x0200" and net is not None and (net.get("guid") or "0x0") != "0x0":
        return "roce"
    return "ethernet" if net is not None and (net.get("guid") or "") == "0x0" else ""


def _cpu(tree: PciTree) -> str:
    kinds = {" ".join(filter(None, (cpu.get("vendor"), cpu.get("arch"))))[:60] for cpu in tree.cpus}
    return next(iter(kinds)) if len(kinds) == 1 else ""


FORMAT = Format(name="nccl-topo-xml", title="NCCL / RCCL topology XML", matches=_matches, read=_read)
