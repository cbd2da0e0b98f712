"""Which machine did a measured run use?  A catalogue cluster, with the NICs that the row states.

The device's name picks node and device; ``inter_node_link`` ("8x400G IB", "1600 Gbps RoCE per node", "EFA") picks the
NICs where it states them; the number of devices scales the cluster, parts of one node included.  A size that a source
leaves open ("A100") is taken as the larger part, which matters to whether a run fits and to memory bandwidth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from planner.accuracy.truth import TruthRow
from planner.accuracy.unmapped import RowUnmapped
from planner.errors import DocumentInvalid
from profiles.catalogue import load_cluster, load_device
from profiles.cluster import Cluster, Pool, ScaleUp
from profiles.scaling import scale_cluster

GIGABIT_BYTES_PER_S = 1e9 / 8
RACK, SEGMENT = 72, 64


@dataclass(frozen=True, slots=True)
class Machine:
    """A catalogue cluster, and what differs from it: another device, another node size, another NVLink rate."""

    cluster: str
    device: str = ""
    devices_per_node: int = 0
    scale_up_bytes_per_s: float = 0.0
    scale_up_kind: str = ""
    memory_bytes: int = 0


MACHINES: tuple[tuple[str, Machine], ...] = (
    (r"gb300", Machine("gb200-nvl72", "gb300")),
    (r"gb200", Machine("gb200-nvl72")),
    (r"b300", Machine("dgx-b200", "b300-sxm-288gb")),
    (r"b200", Machine("dgx-b200")),
    (r"gh200", Machine("dgx-h100", "gh200-96gb", 4)),
    (r"h200", Machine("dgx-h200")),
    (r"h800", Machine("dgx-h800")),
    (r"h20\b", Machine("dgx-h100", "h20-96gb")),
    (r"h100.*pcie", Machine("h100-pcie-8")),
    (r"h100.*96gb", Machine("dgx-h100", "h100-sxm5-80gb", memory_bytes=102_047_612_928)),
    (r"h100", Machine("dgx-h100")),
    (r"a800", Machine("dgx-a100-80g", "a800-sxm4-80gb", 0, 200e9)),
    (r"a100.*pcie", Machine("dgx-a100-80g", "a100-pcie-80gb")),
    (r"a100.*40", Machine("dgx-a100-40g")),
    (r"a100", Machine("dgx-a100-80g")),
    (r"v100.*16gb", Machine("dgx-a100-40g", "v100-sxm2-32gb", 4, 150e9, "mesh", 16 * 2**30)),
    (r"v100", Machine("dgx-a100-40g", "v100-sxm2-32gb", 4, 150e9, "mesh")),
    (r"l40s", Machine("l40s-8")),
    (r"mi355", Machine("mi355x-8")),
    (r"mi325", Machine("mi325x-8")),
    (r"mi300", Machine("mi300x-8")),
    (r"mi250x?", Machine("mi300x-8", "mi250x-gcd")),
    (r"910c", Machine("ascend-910c")),
    (r"910b|910-?b", Machine("ascend-910b-8")),
    (r"tpu[-_ ]?v5p", Machine("tpu-v5p")),
    (r"trn2|trainium2", Machine("trn2")),
)
"""First match wins.  V100: four GPUs a node, six NVLink2 links of 25 GB/s each way (Jean Zay, DGX-1 class boards);
H100 of 96 GB: 95.04 GiB as torchtitan's
performance page prints it; A800: NVLink cut to 400 GB/s both ways; GH200: four superchips a node on NVLink4."""

CLOUD_NODES: tuple[tuple[str, str, str], ...] = (
    (r"h100", r"efa|aws", "aws-p5"),
    (r"h200", r"efa|aws", "aws-p5en"),
    (r"a100.*40", r"efa|aws", "aws-p4d"),
    (r"a100", r"efa|aws", "aws-p4de"),
    (r"h100", r"tcpxo", "gcp-a3-mega"),
    (r"h100", r"tcpx\b", "gcp-a3-high"),
    (r"h100", r"azure", "azure-nd-h100-v5"),
    (r"h100", r"oci|oracle", "oci-h100"),
)
SIMPLE_NICS = re.compile(r"(?P<count>\d+)\s*x\s*(?P<rate>\d+)\s*G", re.IGNORECASE)
PER_DEVICE = re.compile(
    r"(?P<rate>\d+(\.\d+)?)\s*(?P<unit>[GT])b(ps|it/s|/s).*per (gpu|device|npu|chip)", re.IGNORECASE
)
PER_NODE = re.compile(r"(?P<rate>\d+(\.\d+)?)\s*(?P<unit>[GT])b(ps|it/s|/s)", re.IGNORECASE)


def cluster_of_row(row: TruthRow, num_devices: int) -> Cluster:
    """The cluster of a row.  Raises RowUnmapped."""
    return _cluster(row.device.lower(), row.inter_node_link.lower(), num_devices)


@cache
def _cluster(device: str, link: str, num_devices: int) -> Cluster:
    machine = next((machine for pattern, machine in MACHINES if re.search(pattern, device)), None)
    if machine is None:
        raise RowUnmapped(f"no catalogue cluster has the device {device!r}")
    cloud = next((name for part, net, name in CLOUD_NODES if re.search(part, device) and re.search(net, link)), None)
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
    if machine.device:
        device = load_device(machine.device)
        stated = {"memory_bytes": machine.memory_bytes} if machine.memory_bytes else {}
        update["device"] = device.model_copy(update=stated)
    if machine.devices_per_node:
        update["devices_per_node"] = machine.devices_per_node
        update["nics_per_node"] = max(1, pool.nics_per_node * machine.devices_per_node // pool.devices_per_node)
        scale_up = scale_up.model_copy(update={"domain_size": machine.devices_per_node})
    update["scale_up"] = _with_rate(scale_up, machine)
    return pool.model_copy(update=update)


def _with_rate(scale_up: ScaleUp, machine: Machine) -> ScaleUp:
    if not machine.scale_up_bytes_per_s:
        return scale_up
    update: dict[str, object] = {"bandwidth_bytes_per_s": machine.scale_up_bytes_per_s}
    if machine.scale_up_kind:
        update |= {"kind": machine.scale_up_kind, "in_network_reduction": False}
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
