"""NVLink, xGMI or PCIe links of the GPUs of one host: from ``<nvlink target count tclass>`` and ``<xgmi>``.

A target of class 0x0680 (bridge) is an NVSwitch: all links of the GPU end there, so every pair shares the full count.
A target that is another GPU is a direct link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from profiles.importers.nccl_topo_xml.pci_tree import Place
from profiles.topology import DevicePair, LinkType

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_SWITCH_CLASS = "0x0680"
_REPORTED: dict[LinkType, str] = {
    "pcie_switch": "PIX", "pcie_bridges": "PXB", "pcie_host": "PHB", "system": "SYS",
}  # fmt: skip


@dataclass(slots=True)
class FastLinks:
    """Links of the GPUs of one host by index: direct ones by pair, those to switches by GPU."""

    direct: dict[tuple[int, int], int] = field(default_factory=dict)
    to_switch: dict[int, int] = field(default_factory=dict)
    kind: LinkType = "nvlink"
    unknown_targets: int = 0
    own_targets: int = 0
    broken: list[str] = field(default_factory=list)


def fast_links(gpus: list[tuple[Place, Element, Element | None]]) -> FastLinks:
    """All NVLink and xGMI links that the GPUs list."""
    index_of = {_busid(pci): index for index, (_, _, pci) in reversed(list(enumerate(gpus)))}
    links = FastLinks()
    for index, (_, gpu, _) in enumerate(gpus):
        for element in gpu:
            if element.tag not in ("nvlink", "xgmi"):
                continue
            count = _count(element.get("count"))
            if count is None:
                links.broken.append(f"GPU {index} has a link whose count is '{(element.get('count') or '')[:20]}'")
                continue
            if element.tag == "xgmi":
                links.kind = "xgmi"
            target = index_of.get((element.get("target") or "").lower())
            if target is not None and target != index:
                pair = (min(index, target), max(index, target))
                links.direct[pair] = max(links.direct.get(pair, 0), count)
            elif (element.get("tclass") or "").lower().startswith(_SWITCH_CLASS):
                links.to_switch[index] = links.to_switch.get(index, 0) + count
            elif target is not None:
                links.own_targets += 1
            else:
                links.unknown_targets += 1
    return links


def pairs_of(places: list[Place], links: FastLinks) -> tuple[DevicePair, ...]:
    """One entry for each pair of devices of a host."""
    pairs: list[DevicePair] = []
    for first in range(len(places)):
        for second in range(first + 1, len(places)):
            count = links.direct.get((first, second))
            if count is None and first in links.to_switch and second in links.to_switch:
                count = min(links.to_switch[first], links.to_switch[second])
            if count:
                word = "XGMI" if links.kind == "xgmi" else "NV"
                pair = DevicePair(
                    first=first, second=second, link=links.kind, num_links=count, reported=f"{word}{count}"
                )
            else:
                distance = places[first].link_to(places[second])
                pair = DevicePair(first=first, second=second, link=distance, reported=_REPORTED.get(distance, ""))
            pairs.append(pair)
    return tuple(pairs)


def _busid(pci: Element | None) -> str:
    return (pci.get("busid") or "").lower() if pci is not None else ""


def _count(text: str | None) -> int | None:
    try:
        count = int(text or "")
    except ValueError:
        return None
    return count if 0 < count < 1000 else None
