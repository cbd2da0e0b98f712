"""Plain launch lines: one start script a role, for every node of an instance, and a Slurm job that starts them all.

``serve-<role>.sh`` reads HEAD_ADDRESS (first node of the instance), NODE_RANK (node in the instance), PORT and
CUDA_VISIBLE_DEVICES.  ``placement.json`` says which instance takes which nodes, devices and ports.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import HEAD, OWN, PORT, RANK, SIDE, Engine, InstanceCommand
from planner.serving.layout import Deployment
from planner.serving.platforms.platform import Files, Given, Platform, ReadGroup, Written

JOB, PLACEMENT = "job.sbatch", "placement.json"
_FIRST_PORT, _PORTS = 8000, 100
_PLACES = (HEAD, RANK, PORT, OWN, SIDE)
_ARRAY = re.compile(r"^WORDS=\(\n(.*?)^\)$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one instance runs; ``devices``: of each of its nodes."""

    role: str
    first_node: int
    num_nodes: int
    devices: tuple[int, ...]
    port: int


def places(deployment: Deployment, devices_per_node: int) -> list[_Place]:
    """Instances in turn: those of several nodes take whole ones, small ones share a node while it has room."""
    found: list[_Place] = []
    node, used = 0, 0
    for group in deployment.groups:
        wanted = group.layout.num_devices
        for _ in range(group.num_instances):
            if used and used + wanted > devices_per_node:
                node, used = node + 1, 0
            port = _FIRST_PORT + _PORTS * sum(each.first_node == node for each in found)
            if wanted > devices_per_node:
                nodes = -(-wanted // devices_per_node)
                found.append(_Place(group.role, node, nodes, tuple(range(devices_per_node)), port))
                node += nodes
            else:
                found.append(_Place(group.role, node, 1, tuple(range(used, used + wanted)), port))
                used += wanted
    return found


def _quoted(word: str) -> str:
    return f'"{word}"' if any(place in word for place in _PLACES) else shlex.quote(word)


def _script(role: str, command: InstanceCommand) -> str:
    lines: list[str] = []
    for word in command.words:
        fresh = not lines or word.startswith("--")
        lines = [*lines, f"  {_quoted(word)}"] if fresh else [*lines[:-1], f"{lines[-1]} {_quoted(word)}"]
    exports = "".join(f'export {name}="{value}"\n' for name, value in command.environment.items())
    more = " ".join(map(_quoted, command.further_nodes))
    further = f'if [ "$NODE_RANK" != 0 ]; then WORDS+=({more}); fi\n' if more and command.num_nodes > 1 else ""
    every = f"every one of its {command.num_nodes} nodes runs this" if command.num_nodes > 1 else "one node"
    array = "\n".join(lines)
    return f"""#!/usr/bin/env bash
# One {role} instance: {every}.
set -euo pipefail
: "${{HEAD_ADDRESS:=127.0.0.1}}" "${{NODE_RANK:=0}}" "${{PORT:={_FIRST_PORT}}}"
: "${{OWN_ADDRESS:=$HEAD_ADDRESS}}" "${{SIDE_PORT:=$((PORT + 1000))}}"
cd "$(dirname "$0")"
{exports}WORDS=(
{array}
)
{further}exec "${{WORDS[@]}}"
"""


def _job(given: Given, found: list[_Place], tasks: dict[str, int]) -> str:
    nodes = max(place.first_node + place.num_nodes for place in found)
    starts = "\n".join(
        f"start {place.role} {place.port} {','.join(map(str, place.devices))}"
        f" {place.first_node} {place.num_nodes} {tasks[place.role]}"
        for place in found
    )
    return f"""#!/usr/bin/env bash
#SBATCH --job-name={given.name}
#SBATCH --nodes={nodes}
#SBATCH --gpus-per-node={given.devices_per_node}
#SBATCH --exclusive
set -euo pipefail
cd "${{PLAN_DIR:-$SLURM_SUBMIT_DIR}}"
mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")

# start ROLE PORT DEVICES FIRST_NODE NODES TASKS_A_NODE
start() {{
  local hosts
  hosts=$(IFS=,; echo "${{NODES[*]:$4:$5}}")
  HEAD_ADDRESS=${{NODES[$4]}} PORT=$2 CUDA_VISIBLE_DEVICES=$3 \\
    srun --overlap --nodes="$5" --ntasks-per-node="$6" --nodelist="$hosts" --export=ALL --cpu-bind=none \\
    bash -c 'export NODE_RANK=$SLURM_NODEID OWN_ADDRESS=$(hostname); exec bash serve-'"$1"'.sh' &
}}
{starts}
wait
"""


def write(given: Given) -> Written:
    """Start scripts, the placement and the Slurm job."""
    found = places(given.deployment, given.devices_per_node)
    files: Files = {}
    tasks: dict[str, int] = {}
    for group in given.deployment.groups:
        command = given.command(group)
        files |= {f"serve-{group.role}.sh": _script(group.role, command), **command.files}
        tasks[group.role] = command.tasks_per_node
    shown = [{name: getattr(place, name) for name in _Place.__slots__} for place in found]
    files[PLACEMENT] = json.dumps(shown, indent=1) + "\n"
    files[JOB] = _job(given, found, tasks)
    notes = []
    if given.deployment.disaggregated:
        notes.append("A router sends each request to a prefill and then to a decode instance: start the engine's own.")
    elif len(found) > 1:
        notes.append(f"Put a load balancer in front of the {len(found)} instances; {PLACEMENT} has their ports.")
    executables = frozenset(name for name in files if name.endswith(".sh"))
    return Written(files, f"sbatch {JOB}", executables, tuple(notes))


def read(files: Files, engine: Engine) -> tuple[ReadGroup, ...]:
    """One group a start script, with as many instances as the placement has."""
    try:
        counted: list[dict[str, Any]] = json.loads(files[PLACEMENT])
        roles = list(dict.fromkeys(str(place["role"]) for place in counted))
    except (KeyError, TypeError, ValueError) as error:
        raise DocumentInvalid(f"{PLACEMENT} is not there or is no placement", where=PLACEMENT) from error
    found = []
    for role in roles:
        script = files.get(f"serve-{role}.sh", "")
        array = _ARRAY.search(script)
        if array is None:
            raise DocumentInvalid(f"serve-{role}.sh has no WORDS=( ... )", where=f"serve-{role}.sh")
        number = sum(place["role"] == role for place in counted)
        found.append(ReadGroup(number, engine.read_words(shlex.split(array.group(1)), files)))
    return tuple(found)


PLATFORM = Platform("plain", "launch lines and Slurm", "", ("vllm", "sglang", "tensorrt-llm"), write, read)
