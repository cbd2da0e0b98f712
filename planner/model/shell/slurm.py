"""The variables that Slurm sets for a script, from its ``#SBATCH`` lines (sbatch(1), Slurm 22.05)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.model.shell.scope import Value, unknown

_DIRECTIVE = re.compile(r"^#SBATCH\s+(--?[A-Za-z-]+)[=\s]*([^\s#]*)", re.MULTILINE)
_SHORT = {"-N": "nodes", "-n": "ntasks", "-c": "cpus-per-task", "-G": "gpus", "-J": "job-name"}
_SINGLE = {
    "SLURM_NNODES": "nodes",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_JOB_NAME": "job-name",
}


def slurm_directives(text: str) -> dict[str, str]:
    """Long names of the options and their values."""
    return {_SHORT.get(match[1], match[1].lstrip("-")): match[2] for match in _DIRECTIVE.finditer(text)}


def slurm_variables(text: str, given: Mapping[str, str]) -> dict[str, Value]:
    """Variables of the job; none for a script without directives.  ``given`` number of nodes wins."""
    said = slurm_directives(text)
    if not said:
        return {}
    values: dict[str, Value] = {name: said[option] for name, option in _SINGLE.items() if said.get(option)}
    nodes = given.get("SLURM_NNODES", said.get("nodes", ""))
    each = said.get("ntasks-per-node", "1")
    total = said.get("ntasks") or (str(int(nodes) * int(each)) if nodes.isdecimal() and each.isdecimal() else "")
    if total:
        values |= {"SLURM_NTASKS": total, "SLURM_NPROCS": total}
    if devices := devices_a_node(said):
        values |= {"SLURM_GPUS_ON_NODE": str(devices), "SLURM_GPUS_PER_NODE": str(devices)}
    names = ("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_SUBMIT_DIR")
    return {name: unknown(f"${name}") for name in names} | values


def devices_a_node(said: Mapping[str, str]) -> int | None:
    """Devices of each node, as ``--gpus-per-node`` or ``--gres`` say."""
    text = said.get("gpus-per-node") or (said["gres"] if "gpu" in said.get("gres", "") else "")
    last = text.rsplit(":", 1)[-1]
    return int(last) if last.isdecimal() and len(last) < 4 else None


def devices_of_job(text: str, given: Mapping[str, str]) -> int | None:
    """Nodes times devices a node, or tasks a node where no devices are named; None where they are not said."""
    said = slurm_directives(text)
    nodes = given.get("SLURM_NNODES", said.get("nodes", ""))
    each = devices_a_node(said)
    if each is None and said.get("ntasks-per-node", "").isdecimal():
        each = int(said["ntasks-per-node"])
    return int(nodes) * each if nodes.isdecimal() and each and len(nodes) < 8 else None
