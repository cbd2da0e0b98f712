"""The machine of a measured run: a catalogue cluster, with the NICs that the row states.

The device's name picks node and device; ``inter_node_link`` ("8x400G IB", "1600 Gbps RoCE per node", "EFA") picks the
NICs where it states them; the number of devices scales the cluster, parts of one node included.  A size that a source
leaves open ("A100") is taken as the larger part, which matters to whether a run fits and to memory bandwidth.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import cache

from planner.errors import DocumentInvalid
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from profiles.catalogue import load_cluster, load_device
from profiles.cluster import Cluster, Pool, ScaleUp
from profiles.device import Device
from profiles.scaling import scale_cluster
from profiles.shipped_tables import shipped_table

GIGABIT_BYTES_PER_S = 1e9 / 8
RACK, SEGMENT = 72, 64
_FILE = ("planner.evidence.runs", "machines.toml")


@dataclass(frozen=True, slots=True)
class Machine:
    """A catalogue cluster, and what differs from it: another device, another node size, another NVLink rate."""

    cluster: str
    device: str = ""
    devices_per_node: int = 0
    scale_up_bytes_per_s: float = 0.0
    scale_up_kind: str = ""
    memory_bytes: int = 0
    memory_bytes_per_s: float = 0.0
    power_fraction: float = 1.0
    """Power limit over the catalogue device's; rates follow its square root (clock and voltage fall together)."""
    parts: int = 1
    """Ranks that one catalogue device counts as: two NeuronCores a Trainium1 chip."""
    nics_per_node: int = 0
    nic_bytes_per_s: float = 0.0
    torus_shape: tuple[int, ...] = ()


NODE_SIZE = re.compile(r"\b(?P<count>\d+) GPUs?\b", re.IGNORECASE)
"""What ``intra_node_link`` says of the node, for devices that come in nodes of several sizes."""
PCIE_LANES = re.compile(r"\bx(\d+)\b", re.IGNORECASE)
PCIE_GENERATION = re.compile(r"PCIe ?(\d)\b", re.IGNORECASE)
PCIE_LANE_BYTES_PER_S = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9}
"""One way, after the encoding of 128 in 130 bits (PCI-SIG)."""
USUAL_PCIE = 4
SIMPLE_NICS = re.compile(r"(?P<count>\d+)\s*x\s*(?P<rate>\d+)\s*G", re.IGNORECASE)
PER_DEVICE = re.compile(
    r"(?P<rate>\d+(\.\d+)?)\s*(?P<unit>[GT])b(ps|it/s|/s).*per (gpu|device|npu|chip)", re.IGNORECASE
)
PER_NODE = re.compile(r"(?P<rate>\d+(\.\d+)?)\s*(?P<unit>[GT])b(ps|it/s|/s)", re.IGNORECASE)


@cache
def machines() -> tuple[tuple[str, Machine], ...]:
    """Pattern of a device's name and the machine that it means; the first match wins (``machines.toml``)."""
    rows = [dict(row) for row in shipped_table(*_FILE)["machines"]]
    return tuple(
        (row.pop("pattern"), Machine(**{**row, "torus_shape": tuple(row.get("torus_shape", ()))})) for row in rows
    )


def cluster_of_row(row: TruthRow, num_devices: int) -> Cluster:
    """The cluster of a row.  Raises RowUnmapped."""
    stated = NODE_SIZE.search(row.intra_node_link)
    node = int(stated["count"]) if stated else 0
    return _cluster(row.device.lower(), row.inter_node_link.lower(), node, _slot_bytes_per_s(row), num_devices)


def _slot_bytes_per_s(row: TruthRow) -> float:
    """Rate of the narrowest PCIe slot that a row names, through the host's memory, which halves it; 0 = none named."""
    lanes = [int(count) for count in PCIE_LANES.findall(row.intra_node_link)]
    if not lanes:
        return 0.0
    generation = PCIE_GENERATION.search(row.intra_node_link)
    each = PCIE_LANE_BYTES_PER_S[int(generation[1]) if generation else USUAL_PCIE]
    return min(lanes) * each / 2.0


@cache
def _cluster(device: str, link: str, node: int, slot_bytes_per_s: float, num_devices: int) -> Cluster:
    machine = next((machine for pattern, machine in machines() if re.search(pattern, device)), None)
    if machine is None:
        raise RowUnmapped(f"no catalogue cluster has the device {device!r}")
    clouds = shipped_table(*_FILE)["cloud_nodes"]
    own = (each for each in clouds if re.search(each["device"], device) and re.search(each["network"], link))
    cloud = next((str(found["cluster"]) for found in own), None)
    if node and machine.devices_per_node and not machine.torus_shape:
        machine = replace(machine, devices_per_node=node)
    if slot_bytes_per_s:
        machine = replace(machine, scale_up_bytes_per_s=slot_bytes_per_s)
    base = load_cluster(cloud or machine.cluster)
    pool = _with_nics(_with_device(base.pools[0], machine), "" if cloud else link)
    pool = _whole_segments(pool, num_devices)
    try:
        return scale_cluster(base.model_copy(update={"pools": (pool,)}), num_devices)
    except DocumentInvalid:
        raise RowUnmapped(f"the catalogue's {base.name} cannot have that number of devices") from None


def _whole_segments(pool: Pool, num_devices: int) -> Pool:
    """Jobs of several NVL72 racks take 64 devices of each (16 trays), so that power-of-two groups stay inside."""
    if pool.scale_up.domain_size != RACK or num_devices <= RACK or num_devices % SEGMENT:
        return pool
    scale_up = pool.scale_up.model_copy(update={"domain_size": SEGMENT})
    return pool.model_copy(update={"scale_up": scale_up, "num_nodes": SEGMENT // pool.devices_per_node})


def _with_device(pool: Pool, machine: Machine) -> Pool:
    update: dict[str, object] = {}
    scale_up = pool.scale_up
    update["device"] = _device(load_device(machine.device) if machine.device else pool.device, machine)
    if machine.devices_per_node:
        update["devices_per_node"] = machine.devices_per_node
        update["nics_per_node"] = max(1, pool.nics_per_node * machine.devices_per_node // pool.devices_per_node)
        scale_up = scale_up.model_copy(update={"domain_size": machine.devices_per_node})
    if machine.nics_per_node:
        update["nics_per_node"] = machine.nics_per_node
    if machine.nic_bytes_per_s:
        update["nic_bandwidth_bytes_per_s"] = machine.nic_bytes_per_s
    update["scale_up"] = _with_rate(scale_up, machine)
    return pool.model_copy(update=update)


def _device(device: Device, machine: Machine) -> Device:
    rate = machine.power_fraction**0.5 / machine.parts
    memory = machine.memory_bytes or device.memory_bytes // machine.parts
    bandwidth = machine.memory_bytes_per_s or device.memory_bandwidth_bytes_per_s / machine.parts
    peaks = {name: peak * rate for name, peak in device.peak_flops_per_s.items()}
    changed = {"memory_bytes": memory, "memory_bandwidth_bytes_per_s": bandwidth, "peak_flops_per_s": peaks}
    return device.model_copy(update=changed)


def _with_rate(scale_up: ScaleUp, machine: Machine) -> ScaleUp:
    if not machine.scale_up_bytes_per_s:
        return scale_up
    update: dict[str, object] = {"bandwidth_bytes_per_s": machine.scale_up_bytes_per_s}
    if machine.scale_up_kind:
        update |= {"kind": machine.scale_up_kind, "in_network_reduction": False, "torus_shape": None}
    if machine.torus_shape:
        update |= {"torus_shape": machine.torus_shape, "domain_size": math.prod(machine.torus_shape)}
    return scale_up.model_copy(update=update)


def _with_nics(pool: Pool, link: str) -> Pool:
    simple, own, node = SIMPLE_NICS.search(link), PER_DEVICE.search(link), PER_NODE.search(link)
    if simple:
        count, rate = int(simple["count"]), float(simple["rate"])
    elif own:
        count, rate = pool.devices_per_node, _gigabits(own["rate"], own["unit"])
    elif node:
        count, rate = pool.nics_per_node, _gigabits(node["rate"], node["unit"]) / pool.nics_per_node
    else:
        return pool
    return pool.model_copy(update={"nics_per_node": count, "nic_bandwidth_bytes_per_s": rate * GIGABIT_BYTES_PER_S})


def _gigabits(rate: str, unit: str) -> float:
    return float(rate) * (1000.0 if unit.lower() == "t" else 1.0)
