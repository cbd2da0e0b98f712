"""The places of GPUs and NICs in NCCL's XML: one entry each, with its way up through the PCIe bridges.

``<system><cpu numaid host_hash><pci busid class link_speed link_width>...<gpu/>|<nic><net/></nic>``.  A dump of a fused
multi-node NVLink domain holds several hosts, told apart by ``host_hash``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profiles.topology import LinkType

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_SPEED = re.compile(r"\s*(\d{1,3}(?:\.\d{1,3})?)\s*GT/s")
_GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
_NIC_CLASSES = ("0x0200", "0x0207", "0x0280")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something hangs: host and CPU by number, PCI elements from the outermost bridge to its own."""

    host: int
    cpu: int
    numa: int | None
    path: tuple[Element, ...]

    def link_to(self, other: Place) -> LinkType:
        """What stands between two places, in nvidia-smi's words (PIX, PXB, PHB, SYS)."""
        if self.host != other.host or self.cpu != other.cpu:
            return "system"
        shared = 0
        for mine, theirs in zip(self.path, other.path, strict=False):
            if mine is not theirs:
                break
            shared += 1
        if shared == 0:
            return "pcie_host"
        return "pcie_switch" if max(len(self.path), len(other.path)) - shared <= 1 else "pcie_bridges"


@dataclass(slots=True)
class PciTree:
    """Everything found, in file order.  ``anonymous``: leaf PCI elements that do not say what they are."""

    gpus: list[tuple[Place, Element, Element | None]] = field(default_factory=list)
    nets: list[tuple[Place, Element]] = field(default_factory=list)
    nic_functions: list[tuple[Place, Element]] = field(default_factory=list)
    gpu_functions: list[tuple[Place, Element]] = field(default_factory=list)
    cpus: list[Element] = field(default_factory=list)
    num_hosts: int = 0
    anonymous: int = 0


def walk(root: Element) -> PciTree:
    """Visit the whole tree without recursion: depth is the file's choice."""
    tree = PciTree()
    hosts: dict[str, int] = {}
    cpus = root.findall("cpu") or [root]
    for number, cpu in enumerate(cpus):
        host = hosts.setdefault(cpu.get("host_hash", ""), len(hosts))
        tree.cpus.append(cpu)
        stack: list[tuple[Element, Place]] = [(cpu, Place(host, number, _whole(cpu.get("numaid")), ()))]
        while stack:
            element, place = stack.pop()
            for child in element:
                _visit(tree, child, place, stack)
    tree.num_hosts = len(hosts)
    _restore_file_order(tree, root)
    return tree


def _visit(tree: PciTree, child: Element, place: Place, stack: list[tuple[Element, Place]]) -> None:
    if child.tag == "pci":
        inside = Place(place.host, place.cpu, place.numa, (*place.path, child))
        for gpu in child.findall("gpu"):
            tree.gpus.append((inside, gpu, child))
        if child.find("pci") is None:
            _leaf(tree, child, inside)
        if len(inside.path) < 64:
            stack.append((child, inside))
    elif child.tag == "nic":
        for net in child.findall("net"):
            tree.nets.append((place, net))


def _leaf(tree: PciTree, element: Element, place: Place) -> None:
    kind = (element.get("class") or "").lower()[:6]
    if kind in _GPU_CLASSES:
        tree.gpu_functions.append((place, element))
    elif kind in _NIC_CLASSES:
        tree.nic_functions.append((place, element))
    elif not kind and element.find("gpu") is None and element.find("nic") is None:
        tree.anonymous += 1


def _restore_file_order(tree: PciTree, root: Element) -> None:
    order = {id(element): index for index, element in enumerate(root.iter())}
    tree.gpus.sort(key=lambda each: order[id(each[1])])
    tree.nets.sort(key=lambda each: order[id(each[1])])
    tree.nic_functions.sort(key=lambda each: order[id(each[1])])
    tree.gpu_functions.sort(key=lambda each: order[id(each[1])])


def pcie_bytes_per_s(element: Element) -> float | None:
    """One-way rate of a PCIe link after line coding: lanes x GT/s x 8/10 (to 5 GT/s), 128/130 (to 32), else 1.

    Source: PCI Express Base Specification, encodings of generations 1-2, 3-5 and 6.
    """
    match = _SPEED.match(element.get("link_speed") or "")
    width = _whole(element.get("link_width"))
    if not match or not width or width < 0 or width > 64:
        return None
    transfers = float(match.group(1)) * 1e9
    coding = 0.8 if transfers <= 5e9 else 128 / 130 if transfers <= 32e9 else 1.0
    return transfers * width * coding / 8 or None


def host_link_bytes_per_s(place: Place) -> tuple[float | None, bool]:
    """One-way rate between a device and its host: the slowest link on the way, and whether a bridge was left out.

    Bridges that report less than 8 GT/s above a device of 16 GT/s or more are left out: virtual bridges and firmware
    report 2.5 or 5 GT/s that no traffic is limited by.
    """
    rates = [pcie_bytes_per_s(element) for element in place.path]
    own = rates[-1] if rates else None
    if own is None:
        return None, False
    believed = [
        rate for rate, element in zip(rates, place.path, strict=True) if rate and not _implausible(element, own)
    ]
    left_out = any(
        rate is not None and _implausible(element, own) for rate, element in zip(rates, place.path, strict=True)
    )
    return min(believed, default=own), left_out


def _implausible(element: Element, own: float) -> bool:
    match = _SPEED.match(element.get("link_speed") or "")
    return bool(match) and float(match.group(1)) < 8 and own > 15e9 if match else False


def _whole(text: str | None) -> int | None:
    """A small whole number; None where it is missing, negative or no number."""
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 100_000 else None
