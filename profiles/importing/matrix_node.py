"""The node that one link matrix describes: pairs of devices, NICs with their nearest devices, NUMA nodes."""

from __future__ import annotations

import re
from collections.abc import Callable

from profiles.importing.imported import Imported
from profiles.importing.link_matrix import LinkMatrix
from profiles.importing.numa_affinity import numa_of_row
from profiles.topology import DevicePair, LinkType, Nic, NodeTopology

PCI_LINKS: dict[str, LinkType] = {
    "PIX": "pcie_switch",
    "PXB": "pcie_bridges",
    "PHB": "pcie_host",
    "SOC": "system",
    "NODE": "numa",
    "SYS": "system",
}
"""PCIe distances by the words of nvidia-smi, which the other vendors' tools took over; SOC is SYS of old drivers."""
_NEARNESS: tuple[LinkType, ...] = ("pcie_switch", "pcie_bridges", "pcie_host", "numa", "system")
_NIC_KINDS = (
    (re.compile(r"roce|_bond_"), "roce"),
    (re.compile(r"rdmap|efa"), "efa"),
    (re.compile(r"hsn|cxi"), "slingshot"),
    (re.compile(r"^ib|hfi|opa"), "ib"),
    (re.compile(r"^eth|^en[ops]|^bond"), "ethernet"),
)


def nic_kind(name: str) -> str:
    """ib, roce, efa, slingshot or ethernet where the NIC's name tells; empty where it does not (mlx5_0)."""
    return next((kind for pattern, kind in _NIC_KINDS if pattern.search(name)), "")


def node_of_matrix(
    matrix: LinkMatrix,
    is_device: Callable[[str], bool],
    link_of: Callable[[str], tuple[LinkType, int | None]],
    imported: Imported,
    *,
    nic_names: dict[str, str] | None = None,
    device_reported: str = "",
) -> NodeTopology:
    """The node of one matrix; rows that are missing or contradict each other are reported as bad."""
    devices = [label for label in matrix.columns if is_device(label)]
    others = [label for label in matrix.columns if not is_device(label)]
    for line, what in matrix.short_rows:
        imported.bad(line, what, "copy the whole matrix")
    pairs = _pairs(matrix, devices, link_of, imported)
    numa = tuple(
        next((numa_of_row(row.rest, matrix.affinity_columns) for row in matrix.rows if row.label == label), None)
        for label in devices
    )
    known = {node for node in numa if node is not None}
    return NodeTopology(
        num_devices=len(devices),
        device_reported=device_reported,
        pairs=tuple(pairs),
        nics=tuple(_nic(matrix, index, label, devices, link_of, nic_names or {}) for index, label in enumerate(others)),
        numa_node_of_device=numa if known else (),
        num_numa_nodes=len(known) if known and None not in numa else None,
        switched=is_switched(pairs, len(devices)),
    )


def is_switched(pairs: list[DevicePair], num_devices: int) -> bool | None:
    """Whether NVLinks go through switches: every pair shows all links of a device, not a share of them.

    A device of a direct mesh divides its links (V100 6, A100 12, Hopper and Blackwell 18) between its neighbours;
    behind a switch each pair shows the full count.  None for two devices, where both look alike, and without NVLink.
    """
    counts = [pair.num_links or 0 for pair in pairs if pair.link == "nvlink"]
    if not counts:
        return None
    if num_devices < 3 or len(counts) < num_devices * (num_devices - 1) // 2:
        return None if num_devices < 3 else False
    return min(counts) >= 12 or sum(counts) * 2 // num_devices > 18


def _pairs(
    matrix: LinkMatrix,
    devices: list[str],
    link_of: Callable[[str], tuple[LinkType, int | None]],
    imported: Imported,
) -> list[DevicePair]:
    cells = {row.label: dict(zip(matrix.columns, row.cells, strict=True)) for row in matrix.rows}
    pairs: list[DevicePair] = []
    missing = 0
    for first, label in enumerate(devices):
        for second in range(first + 1, len(devices)):
            forward = cells.get(label, {}).get(devices[second])
            backward = cells.get(devices[second], {}).get(label)
            if forward is None and backward is None:
                missing += 1
                continue
            if forward is not None and backward is not None and forward != backward:
                what = f"{label} and {devices[second]} are joined by {forward} in one row and {backward} in the other"
                imported.bad(matrix.line, what, "a link has one kind; copy the matrix again")
                continue
            reported = forward or backward or ""
            link, count = link_of(reported)
            pairs.append(DevicePair(first=first, second=second, link=link, num_links=count, reported=reported))
    if missing:
        rows = sum(1 for label in devices if label in cells)
        what = f"only {rows} of {len(devices)} device rows are here: {missing} pairs are unknown"
        imported.bad(matrix.line, what, "copy the whole matrix")
    return pairs


def _nic(
    matrix: LinkMatrix,
    index: int,
    label: str,
    devices: list[str],
    link_of: Callable[[str], tuple[LinkType, int | None]],
    names: dict[str, str],
) -> Nic:
    links: dict[int, LinkType] = {}
    for number, device in enumerate(devices):
        cell = matrix.cell(device, label) or matrix.cell(label, device)
        if cell is not None:
            links[number] = link_of(cell)[0]
    best = next((kind for kind in _NEARNESS if kind in links.values()), None)
    near = tuple(number for number, kind in sorted(links.items()) if kind == best) if best != "system" else ()
    return Nic(index=index, kind=nic_kind(names.get(label, label)), nearest_devices=near, link=best)
