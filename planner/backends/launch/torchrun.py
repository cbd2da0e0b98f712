"""The start of the script on one node by torchrun: ``launch.sh``, the same on every node but for NODE_RANK.

Rendezvous is static (``--master-addr --node-rank``): with the c10d back-end torchrun ignores ``--node-rank`` and ranks
the nodes by sorting host names as text, ``n10`` before ``n2``, which would undo the placement that the plan assumes
(torch 2.13, torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:833).

A process that drives its whole node (JAX) needs no torchrun, and its machines may have no torch: the script is started
directly.
Where hosts are named, ``hosts.txt`` is the table of node ranks.  A node finds itself in it by its own name; in pods,
which know their address only at run time, ``order_nodes.py`` exchanges names for ranks first.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from planner.backends.launch.spec import HOSTS_FILE, LaunchFiles, LaunchSpec, order_note
from planner.errors import DocumentInvalid

LAUNCH_SCRIPT = "launch.sh"
ORDER_SCRIPT = "order_nodes.py"
_SIZE = re.compile(r"^(NUM_NODES|DEVICES_PER_NODE)=(\d+)$", re.MULTILINE)


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``launch.sh`` and the words that start it."""
    last = spec.num_nodes - 1
    if spec.num_nodes == 1:
        command = f"bash {LAUNCH_SCRIPT}"
    elif spec.hosts:
        command = f"bash {LAUNCH_SCRIPT}    # on each of the {spec.num_nodes} hosts of {HOSTS_FILE}"
    else:
        command = f"MASTER_ADDR=<host of node 0> NODE_RANK=<0..{last}, this node> bash {LAUNCH_SCRIPT}"
    files = {LAUNCH_SCRIPT: launch_script(spec, _table(spec)), **spec.hosts_text()}
    notes = order_note(spec, "NODE_RANK follows the fabric: neighbours in NODE_RANK are neighbours on the network")
    return LaunchFiles(files, command, frozenset({LAUNCH_SCRIPT}), notes)


def order_script() -> str:
    """The text of ``order_nodes.py``, the same for all plans."""
    return (Path(__file__).parent / f"{ORDER_SCRIPT}.txt").read_text(encoding="utf-8")


def launch_script(spec: LaunchSpec, order: str = "") -> str:
    """Bash that exports the environment and replaces itself by torchrun.  ``order``: lines that find NODE_RANK."""
    single = "" if spec.num_nodes > 1 else "MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}\nNODE_RANK=${NODE_RANK:-0}\n"
    started = _direct_start(spec) if spec.process_drives_node else _torchrun_start(spec)
    return f"""#!/usr/bin/env bash
# Starts the ranks of one node.  Run it once on every node; NODE_RANK is 0 .. {spec.num_nodes - 1}, in the fabric's
# order (neighbours in NODE_RANK should be neighbours on the network).
set -euo pipefail
cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")"

{sizes(spec)}
{single}{order}NODE_RANK=${{1:-${{NODE_RANK:?set NODE_RANK, or give the rank of this node as the first argument}}}}
MASTER_ADDR=${{MASTER_ADDR:?set MASTER_ADDR to the host name of node 0}}
MASTER_PORT=${{MASTER_PORT:-29500}}

{exports(spec)}

{started}"""


def _words(spec: LaunchSpec) -> list[str]:
    return [shlex.quote(word) for word in (f"./{spec.script}", *spec.arguments)]


def _direct_start(spec: LaunchSpec) -> str:
    """One process for the node, told what a rank is told."""
    words = ["python", *_words(spec)] if spec.script.endswith(".py") else _words(spec)
    return f"""export MASTER_ADDR MASTER_PORT
export RANK="$NODE_RANK" LOCAL_RANK=0 WORLD_SIZE="$NUM_NODES"
exec {" ".join(words)}
"""


def _torchrun_start(spec: LaunchSpec) -> str:
    """One process for each device of the node."""
    words = _words(spec) if spec.script.endswith(".py") else ["--no-python", *_words(spec)]
    return f"""exec torchrun \\
  --nnodes="$NUM_NODES" \\
  --nproc-per-node="$DEVICES_PER_NODE" \\
  --node-rank="$NODE_RANK" \\
  --master-addr="$MASTER_ADDR" \\
  --master-port="$MASTER_PORT" \\
  {" ".join(words)}
"""


def sizes(spec: LaunchSpec) -> str:
    """The two lines of every ``launch.sh`` that say how many ranks it starts."""
    return f"NUM_NODES={spec.num_nodes}\nDEVICES_PER_NODE={spec.devices_per_node}"


def exports(spec: LaunchSpec) -> str:
    """The variables that every rank must see, as ``export`` lines."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(spec.environment.items()))


def meeting_lines(spec: LaunchSpec) -> str:
    """In pods: NODE_RANK and MASTER_ADDR by the name of the machine that each pod landed on."""
    if not spec.hosts:
        return ""
    return f"""# The pod's index says where to meet; the machine under it (NODE_NAME) says which rank it gets.
order=$("${{PYTHON:-python3}}" {ORDER_SCRIPT} --hosts {HOSTS_FILE} --name "$NODE_NAME" --index "$NODE_RANK" \\
  --meet "$MASTER_ADDR" --port "$((${{MASTER_PORT:-29500}} + 1))")
read -r NODE_RANK MASTER_ADDR <<< "$order"
"""


def _table(spec: LaunchSpec) -> str:
    """On machines: the line of this host in ``hosts.txt`` is NODE_RANK, the first line is MASTER_ADDR."""
    if not spec.hosts:
        return ""
    return f"""# {HOSTS_FILE}: line 1 is node rank 0.  A NODE_RANK that is set wins.
mapfile -t HOSTS < {HOSTS_FILE}
here=$(hostname)
for rank in "${{!HOSTS[@]}}"; do
  if [ "${{HOSTS[rank]%%.*}}" = "${{here%%.*}}" ]; then NODE_RANK=${{NODE_RANK:-$rank}}; fi
done
MASTER_ADDR=${{MASTER_ADDR:-${{HOSTS[0]}}}}
"""


def read_world_size(text: str, where: str = LAUNCH_SCRIPT) -> int:
    """Ranks that a ``launch.sh`` starts.  Raises DocumentInvalid when it does not say."""
    return read_size(text, "NUM_NODES", where) * read_size(text, "DEVICES_PER_NODE", where)


def read_size(text: str, name: str, where: str = LAUNCH_SCRIPT) -> int:
    """NUM_NODES or DEVICES_PER_NODE of a ``launch.sh``.  Raises DocumentInvalid when it does not say."""
    found = {name: int(value) for name, value in _SIZE.findall(text)}
    if name not in found:
        raise DocumentInvalid(
            "the launch script does not say how many ranks it starts",
            where=where,
            hint="restore the lines NUM_NODES=... and DEVICES_PER_NODE=..., or emit the plan again",
        )
    return found[name]
