"""The machine of a measured run: a catalogue cluster, with the NICs that the row states.

The device's name picks node and device; ``inter_node_link`` ("8x400G IB", "1600 Gbps RoCE per node", "EFA") picks the
NICs where it states them; the number of devices scales the cluster, parts of one node included.  A size that a source
leaves open ("A100") is taken as the larger part, which matters to whether a run fits and to memory bandwidth.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache

from planner.errors import DocumentInvalid
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from profiles.catalogue import load_cluster, load_device
from profiles.cluster import Cluster, Pool, ScaleUp
from profiles.device import Device
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
    memory_bytes_per_s: float = 0.0
    power_fraction: float = 1.0
    """Power limit over the catalogue device's; rates follow its square root (clock and voltage fall together)."""
    parts: int = 1
    """Ranks that one catalogue device counts as: two NeuronCores a Trainium1 chip."""
    nics_per_node: int = 0
    nic_bytes_per_s: float = 0.0
    torus_shape: tuple[int, ...] = ()


MACHINES: tuple[tuple[str, Machine], ...] = (
    (r"gb300", Machine("gb200-nvl72", "gb300")),
    (r"gb200", Machine("gb200-nvl72")),
    (r"b300", Machine("dgx-b200", "b300-sxm-288gb")),
    (r"b200", Machine("dgx-b200")),
    (r"gh200", Machine("dgx-h100", "gh200-96gb", 4)),
    (r"h200", Machine("dgx-h200")),
    (r"h800", Machine("dgx-h800")),
    (r"h20\b", Machine("dgx-h100", "h20-96gb")),
    (
        r"h100.*hbm2e.*500w",
        Machine("dgx-h100", memory_bytes=102_047_612_928, memory_bytes_per_s=2.4e12, power_fraction=500 / 700),
    ),
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
    (r"rtx.?3090", Machine("l40s-8", "rtx-3090")),
    (r"rtx.?4090", Machine("l40s-8", "rtx-4090")),
    (r"rtx.?a5000", Machine("l40s-8", "rtx-a5000")),
    (r"rtx.?6000.?ada", Machine("l40s-8", "rtx-6000-ada")),
    (r"rtx.?a6000", Machine("l40s-8", "rtx-a6000")),
    (r"\ba40\b", Machine("l40s-8", "a40")),
    (r"\ba10g\b", Machine("aws-g5")),
    (r"\bl4\b", Machine("l40s-8", "l4")),
    (r"gaudi-?\s?2", Machine("dgx-a100-80g", "gaudi2", 8, 262.5e9, "mesh", nics_per_node=24, nic_bytes_per_s=12.5e9)),
    (r"gaudi-?\s?3", Machine("dgx-a100-80g", "gaudi3", 8, 525e9, "mesh", nics_per_node=24, nic_bytes_per_s=25e9)),
    (r"mi355", Machine("mi355x-8")),
    (r"mi325", Machine("mi325x-8")),
    (r"mi300", Machine("mi300x-8")),
    (r"mi250x?", Machine("mi300x-8", "mi250x-gcd")),
    (r"910c", Machine("ascend-910c")),
    (r"910b|910-?b", Machine("ascend-910b-8")),
    (r"tpu[-_ ]?v5p", Machine("tpu-v5p")),
    (r"tpu[-_ ]?v6e|trillium", Machine("tpu-v5p", "tpu-v6e", 4, 360e9, nic_bytes_per_s=25e9, torus_shape=(16, 16))),
    (r"tpu[-_ ]?v5[-_ ]?(e|lite)", Machine("tpu-v5p", "tpu-v5e", 4, 180e9, torus_shape=(16, 16))),
    (r"tpu[-_ ]?v4", Machine("tpu-v5p", "tpu-v4", 4, 270e9, torus_shape=(12, 16, 16))),
    (r"tpu[-_ ]?v3", Machine("tpu-v5p", "tpu-v3", 4, 280e9, torus_shape=(32, 32))),
    (r"tpu[-_ ]?v?7x|ironwood", Machine("tpu-7x")),
    (r"trn2|trainium2", Machine("trn2")),
    (r"trn1n", Machine("trn2", "trainium1", 32, 96e9, "switch", parts=2, nics_per_node=16, nic_bytes_per_s=12.5e9)),
    (
        r"trn1|trainium1?\b|neuroncore",
        Machine("trn2", "trainium1", 32, 96e9, "switch", parts=2, nics_per_node=8, nic_bytes_per_s=12.5e9),
    ),
    (r"mi210|mi100", Machine("mi300x-8", "mi250x-gcd", 4, 150e9, "mesh")),
)
"""First match wins.  V100: four GPUs a node, six NVLink2 links of 25 GB/s each way (Jean Zay, DGX-1 class boards);
A800: NVLink cut to 400 GB/s both ways; GH200: four superchips a node on NVLink4.  The H100 with 96 GB of HBM2e:
95.04 GiB as torchtitan's performance page prints it, six stacks where the PCIe card has five at 2.0 TB/s.  TPU v4 and
v3: six and four links of 45 and 70 GB/s; v5e and v6e: four of 45 and 90 GB/s on a 16 x 16 torus (jax-ml/scaling-book,
tpus.md).  trn1.32xlarge: 16 chips of two NeuronCores on a 2D torus of 384 GB/s a chip both ways, taken as a switch with
half of it for each core; eight 100 Gbit/s EFA ports, trn1n 16 (awsdocs-neuron, trn1-arch).  MI210 and MI100 are taken
as one GCD of an MI250X.  Gaudi: 21 Ethernet ports of 100 (200) Gbit/s to the other seven,
three out of the node.  Consumer and workstation cards: the PCIe server of the L40S.
Links of TPUs other than v5p, of trn1 and of Gaudi were not re-read."""

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
