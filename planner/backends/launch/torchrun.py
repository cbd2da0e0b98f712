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

from planner.backends.launch.node_groups import NodeGroup
from planner.backends.launch.spec import HOSTS_FILE, LaunchFiles, LaunchSpec, order_note
from planner.errors import DocumentInvalid

LAUNCH_SCRIPT = "launch.sh"
ORDER_SCRIPT = "order_nodes.py"
_KINDS = re.compile(r"^KIND_(NODES|DEVICES)=\(([\d ]+)\)$", re.MULTILINE)
_SIZE = re.compile(r"^(NUM_NODES|DEVICES_PER_NODE)=(\d+)$", re.MULTILINE)


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``launch.sh`` and the words that start it."""
    last = spec.num_nodes - 1
    if spec.groups and not spec.hosts:
        command = "\n".join(_start_of_kind(each) for each in spec.groups)
    elif spec.num_nodes == 1:
        command = f"bash {LAUNCH_SCRIPT}"
    elif spec.hosts:
        command = f"bash {LAUNCH_SCRIPT}    # on each of the {spec.num_nodes} hosts of {HOSTS_FILE}"
    else:
        command = f"MASTER_ADDR=<host of node 0> NODE_RANK=<0..{last}, this node> bash {LAUNCH_SCRIPT}"
    files = {LAUNCH_SCRIPT: launch_script(spec, _table(spec)), **spec.hosts_text()}
    notes = order_note(spec, "NODE_RANK follows the fabric: neighbours in NODE_RANK are neighbours on the network")
    return LaunchFiles(files, command, frozenset({LAUNCH_SCRIPT}), notes)


def _start_of_kind(group: NodeGroup) -> str:
    """The words that start the nodes of one kind."""
    several = group.num_nodes > 1
    rank = f"<{group.node_ranks.replace(' ', '')}, this node>" if several else f"{group.first_node}"
    where = f"on each of the {group.num_nodes} nodes" if several else "on the node"
    return f"MASTER_ADDR=<host of node 0> NODE_RANK={rank} bash {LAUNCH_SCRIPT}    # {where} of {group.pool}"


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
{_kinds(spec)}
{exports(spec)}

{started}"""


def _kinds(spec: LaunchSpec) -> str:
    """Lines that find this node's devices among several kinds of nodes."""
    if not spec.groups:
        return ""
    told = "\n".join(f"#   {each.words}" for each in spec.groups)
    return f"""
# Kinds of nodes, in the order of node ranks:
{told}
before=0
for kind in "${{!KIND_NODES[@]}}"; do
  if [ "$NODE_RANK" -ge "$before" ]; then DEVICES_PER_NODE=${{KIND_DEVICES[kind]}}; fi
  before=$((before + KIND_NODES[kind]))
done
"""


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
    """The two lines of every ``launch.sh`` that say how many ranks it starts; three where the nodes differ."""
    if spec.groups:
        nodes = " ".join(str(each.num_nodes) for each in spec.groups)
        devices = " ".join(str(each.devices_per_node) for each in spec.groups)
        return f"NUM_NODES={spec.num_nodes}\nKIND_NODES=({nodes})\nKIND_DEVICES=({devices})"
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
    kinds = node_kinds(text)
    if kinds:
        return sum(nodes * devices for nodes, devices in kinds)
    return read_size(text, "NUM_NODES", where) * read_size(text, "DEVICES_PER_NODE", where)


def node_kinds(text: str) -> tuple[tuple[int, int], ...]:
    """(nodes, devices of each) of every kind of nodes of a ``launch.sh``; nothing where all nodes are equal."""
    found = {name: [int(each) for each in values.split()] for name, values in _KINDS.findall(text)}
    return tuple(zip(found.get("NODES", ()), found.get("DEVICES", ()), strict=False))


def read_size(text: str, name: str, where: str = LAUNCH_SCRIPT) -> int:
    """NUM_NODES or DEVICES_PER_NODE of a ``launch.sh``; of unequal nodes the most devices.

    Raises DocumentInvalid when it does not say.
    """
    found = {name: int(value) for name, value in _SIZE.findall(text)}
    kinds = node_kinds(text)
    if kinds:
        found["DEVICES_PER_NODE"] = max(devices for _, devices in kinds)
    if name not in found:
        raise DocumentInvalid(
            "the launch script does not say how many ranks it starts",
            where=where,
            hint="restore the lines NUM_NODES=... and DEVICES_PER_NODE=..., or emit the plan again",
        )
    return found[name]
