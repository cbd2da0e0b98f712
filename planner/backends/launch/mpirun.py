"""The job under Open MPI: ``launch.sh``, one mpirun for all ranks; ``rank.sh`` gives each its variables.

``--map-by ppr:N:node`` fills the nodes in the order of the host file, ranks contiguous on each (Open MPI 4.1.4, read
from ``--display-map``).  MPI only starts the processes: they talk by their own means, over MASTER_ADDR.
"""

from __future__ import annotations

import shlex

from planner.backends.launch.spec import LaunchFiles, LaunchSpec, order_note
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, exports, sizes

HOST_FILE = "hostfile"
RANK_SCRIPT = "rank.sh"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``launch.sh``, ``rank.sh`` and, for named hosts, ``hostfile``."""
    files = {LAUNCH_SCRIPT: launch_script(spec), RANK_SCRIPT: rank_script(spec)}
    if spec.hosts:
        files[HOST_FILE] = "".join(f"{host} slots={spec.processes_per_node}\n" for host in spec.hosts)
    given = "" if spec.hosts or spec.num_nodes == 1 else "HOSTFILE=<file, the host of node rank 0 first> "
    notes = order_note(spec, "the order of the lines in HOSTFILE")
    if spec.hosts:
        notes = (f"Node rank r runs on line r+1 of {HOST_FILE} (given with --hosts).",)
    if spec.num_nodes > 1:
        notes = ("This directory has the same path on every host (a shared file system), and ssh reaches them.", *notes)
    return LaunchFiles(files, f"{given}bash {LAUNCH_SCRIPT}", frozenset({LAUNCH_SCRIPT, RANK_SCRIPT}), notes)


def launch_script(spec: LaunchSpec, *, host_file: bool = False) -> str:
    """Bash that checks the host file and replaces itself by mpirun.  ``host_file``: one is given even for one node."""
    alone = spec.num_nodes == 1 and not spec.hosts and not host_file
    names = ("PATH", "MASTER_ADDR", "MASTER_PORT", *sorted(spec.environment))
    variables = " ".join(f"-x {name}" for name in names)
    return f"""#!/usr/bin/env bash
# Starts all ranks.  Run it once, on a host that reaches the others.
#
#   HOSTFILE     hosts in the fabric's order, one "name slots={spec.processes_per_node}" a line
#   MASTER_ADDR  (default: the first of them)
#   MPIRUN       (default: mpirun), an Open MPI of release 4.1 or newer
set -euo pipefail
cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")"

{sizes(spec)}
{_hosts(spec, alone=alone)}export MASTER_ADDR MASTER_PORT=${{MASTER_PORT:-29500}}

{exports(spec)}

exec "${{MPIRUN:-mpirun}}" \\
  -np {spec.num_nodes * spec.processes_per_node} \\
  {_host_flag(spec, alone=alone)} \\
  --map-by ppr:{spec.processes_per_node}:node \\
  --bind-to none \\
  {variables} \\
  bash {RANK_SCRIPT}
"""


def rank_script(spec: LaunchSpec) -> str:
    """Bash that every rank runs: Open MPI's names for ranks to those that training scripts read."""
    words = [shlex.quote(word) for word in (f"./{spec.script}", *spec.arguments)]
    if spec.script.endswith(".py"):
        words = ['"${PYTHON:-python}"', "-u", *words]
    return f"""#!/usr/bin/env bash
# mpirun runs this once for each rank.
set -euo pipefail
cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")"
export RANK=$OMPI_COMM_WORLD_RANK
export LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK
export WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
export LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE
export NODE_RANK=$((RANK / LOCAL_WORLD_SIZE))
exec {" ".join(words)}
"""


def _host_flag(spec: LaunchSpec, *, alone: bool) -> str:
    return f"--host localhost:{spec.processes_per_node}" if alone else '--hostfile "$HOSTFILE"'


def _hosts(spec: LaunchSpec, *, alone: bool) -> str:
    if alone:
        return "MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}\n"
    # No quotes: bash would take them apart inside ${...:?...}.
    words = "set HOSTFILE to a file of the hosts in fabric order, lines like: name slots=N"
    default = f":-{HOST_FILE}" if spec.hosts else f":?{words}"
    return f"""HOSTFILE=${{HOSTFILE{default}}}
mapfile -t HOSTS < <(sed -E 's/#.*//; s/^[[:space:]]+//; s/[[:space:]].*//; /^$/d' "$HOSTFILE")
if [ "${{#HOSTS[@]}}" -lt "$NUM_NODES" ]; then
  echo "$HOSTFILE names ${{#HOSTS[@]}} hosts, and the plan needs $NUM_NODES" >&2
  exit 2
fi
MASTER_ADDR=${{MASTER_ADDR:-${{HOSTS[0]}}}}
"""
