"""How does torchrun start the script on one node?  ``launch.sh``, the same on every node but for NODE_RANK.

Rendezvous is static (``--master-addr --node-rank``): with the c10d back-end torchrun ignores ``--node-rank`` and ranks
the nodes by sorting host names as text, ``n10`` before ``n2``, which would undo the placement that the plan assumes
(torch 2.13, torch/distributed/elastic/rendezvous/dynamic_rendezvous.py:833).
"""

from __future__ import annotations

import re
import shlex

from planner.emit.launch.spec import LaunchFiles, LaunchSpec
from planner.errors import DocumentInvalid

LAUNCH_SCRIPT = "launch.sh"
_SIZE = re.compile(r"^(NUM_NODES|DEVICES_PER_NODE)=(\d+)$", re.MULTILINE)


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``launch.sh`` and the words that start it."""
    if spec.num_nodes == 1:
        command = f"bash {LAUNCH_SCRIPT}"
    else:
        last = spec.num_nodes - 1
        command = f"MASTER_ADDR=<host of node 0> NODE_RANK=<0..{last}, this node> bash {LAUNCH_SCRIPT}"
    return LaunchFiles({LAUNCH_SCRIPT: launch_script(spec)}, command, frozenset({LAUNCH_SCRIPT}))


def launch_script(spec: LaunchSpec) -> str:
    """Bash that exports the environment and replaces itself by torchrun."""
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in sorted(spec.environment.items()))
    single = "" if spec.num_nodes > 1 else "MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}\nNODE_RANK=${NODE_RANK:-0}\n"
    words = [shlex.quote(word) for word in (f"./{spec.script}", *spec.arguments)]
    if not spec.script.endswith(".py"):
        words.insert(0, "--no-python")
    return f"""#!/usr/bin/env bash
# Starts the ranks of one node.  Run it once on every node; NODE_RANK is 0 .. {spec.num_nodes - 1}, in the fabric's
# order (neighbours in NODE_RANK should be neighbours on the network).
set -euo pipefail
cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")"

NUM_NODES={spec.num_nodes}
DEVICES_PER_NODE={spec.devices_per_node}
{single}NODE_RANK=${{1:-${{NODE_RANK:?set NODE_RANK, or give the rank of this node as the first argument}}}}
MASTER_ADDR=${{MASTER_ADDR:?set MASTER_ADDR to the host name of node 0}}
MASTER_PORT=${{MASTER_PORT:-29500}}

{exports}

exec torchrun \\
  --nnodes="$NUM_NODES" \\
  --nproc-per-node="$DEVICES_PER_NODE" \\
  --node-rank="$NODE_RANK" \\
  --master-addr="$MASTER_ADDR" \\
  --master-port="$MASTER_PORT" \\
  {" ".join(words)}
"""


def read_world_size(text: str, where: str = LAUNCH_SCRIPT) -> int:
    """Ranks that a ``launch.sh`` starts.  Raises DocumentInvalid when it does not say."""
    sizes = {name: int(value) for name, value in _SIZE.findall(text)}
    if set(sizes) != {"NUM_NODES", "DEVICES_PER_NODE"}:
        raise DocumentInvalid(
            "the launch script does not say how many ranks it starts",
            where=where,
            hint="restore the lines NUM_NODES=... and DEVICES_PER_NODE=..., or emit the plan again",
        )
    return sizes["NUM_NODES"] * sizes["DEVICES_PER_NODE"]
