"""sbatch: checks that a Slurm controller with the plan's nodes would start the batch script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.backends.checking.debian import unpack
from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.slurm import GRES, JOB_SCRIPT
from planner.backends.launch.spec import HOSTS_FILE
from planner.backends.rules.foreign_names import foreign_names
from profiles.cluster import Cluster

SLURM_VERSION = "22.05.8"
_PACKAGES = foreign_names("""
    slurmctld slurm-client slurm-wlm-basic-plugins libdbus-1-3 libhwloc15 libjson-c5 liblua5.1-0 liblz4-1 libmunge2
    libnuma1 libreadline8 libyaml-0-2
""")
_MOST_NODES = 4096


def request(folder: EmittedFolder) -> Request:
    """The script, and the plan's cluster: its nodes by kind, what each has, and which share a switch."""
    cluster = folder.plan().problem.cluster
    hosts = folder.files.get(HOSTS_FILE, "").split()
    vendor = cluster.pools[0].device.vendor
    total = min(max(sum(each.num_nodes for each in cluster.pools), len(hosts)), _MOST_NODES)
    names = hosts + [f"node{index:04d}" for index in range(total - len(hosts))]
    gres = "" if vendor == "Google" else GRES.get(vendor, "gpu")
    return {
        "script": folder.files[JOB_SCRIPT],
        "cluster": {"kinds": _kinds(cluster, names), "gres": gres, "topology": _topology(cluster, names)},
    }


def _kinds(cluster: Cluster, names: list[str]) -> list[dict[str, Any]]:
    """Names of the nodes of every pool, in its order, and devices of each; the last one has those that are left."""
    kinds, start = [], 0
    for index, pool in enumerate(cluster.pools):
        stop = len(names) if index == len(cluster.pools) - 1 else start + pool.num_nodes
        kinds.append({"nodes": ",".join(names[start:stop]), "devices_per_node": pool.devices_per_node})
        start = stop
    return kinds


def _topology(cluster: Cluster, names: list[str]) -> str:
    """Leaf switches of the innermost fabric level below one spine."""
    size = min(cluster.fabric[0].num_nodes if cluster.fabric else len(names), len(names))
    leaves = [names[start : start + size] for start in range(0, len(names), size)]
    lines = [f"SwitchName=leaf{index} Nodes={','.join(each)}\n" for index, each in enumerate(leaves)]
    return "".join(lines) + (f"SwitchName=spine Switches=leaf[0-{len(leaves) - 1}]\n" if len(leaves) > 1 else "")


def _install(folder: Path, version: str) -> None:
    unpack(folder, _PACKAGES, version, "sbatch")


VALIDATOR = Validator(
    name="sbatch",
    default_version=SLURM_VERSION,
    worker=Path(__file__).with_name("sbatch_worker.py"),
    applies=lambda folder: JOB_SCRIPT in folder.files,
    request=request,
    install=_install,
)
