"""Plan for the nodes that a Ray cluster has free, and reserve them with a placement group.

    plan_and_place.py QUESTION.json --out DIR             reserve, write the launch files, start the emitted driver
    plan_and_place.py QUESTION.json --out DIR --reserve   reserve, write, and stop there

The plan is that of the most nodes whose tokens a second a device stay above 80 % of the best.  The service is
$MESHWRIGHT_SERVER, the key $MESHWRIGHT_API_KEY; the cluster is Ray's ($RAY_ADDRESS, else one on this machine).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from api.client import Client
from planner.answers.throughput.choice import most_devices
from planner.errors import DocumentInvalid, MeshwrightError, NoFeasiblePlan

SAME_FOR_A_CURVE = ("model", "cluster", "workload", "constraints", "profile")
MOST_COUNTS = 64


def whole_nodes(resource: str) -> tuple[int, int]:
    """How many nodes of one size the cluster has, and their devices: the size that gives most devices in all."""
    sizes = Counter(int(node["Resources"].get(resource, 0)) for node in ray.nodes() if node["Alive"])
    del sizes[0]
    if not sizes:
        raise DocumentInvalid(
            f"no node of this Ray cluster has {resource}", where="--resource", hint="start nodes with --num-gpus"
        )
    per_node, nodes = max(sizes.items(), key=lambda item: (item[0] * item[1], item[0]))
    return nodes, per_node


def chosen_nodes(client: Client, question: dict[str, Any], nodes: int, per_node: int, budget_s: float) -> int:
    """How many of the nodes the job is worth.  Raises NoFeasiblePlan."""
    counts = list(range(1, min(nodes, MOST_COUNTS) + 1))
    curve = client.throughput(
        {
            **{name: question[name] for name in SAME_FOR_A_CURVE if name in question},
            "device_counts": [count * per_node for count in counts],
            "budget_s": budget_s,
        }
    )
    chosen = most_devices(curve)
    if chosen is None:
        raise NoFeasiblePlan(
            f"the job fits on none of 1 to {nodes} nodes of {per_node}", binding="nodes", relaxations=("add nodes",)
        )
    return chosen.num_devices // per_node


def reserved(nodes: int, per_node: int, resource: str, wait_s: float) -> PlacementGroup:
    """Whole nodes, each for itself.  Raises NoFeasiblePlan where they are not free in time."""
    bundles = [{"CPU": 1, resource: per_node} for _ in range(nodes)]
    group = placement_group(bundles, strategy="STRICT_SPREAD" if nodes > 1 else "STRICT_PACK", name="meshwright")
    if not group.wait(wait_s):
        remove_placement_group(group)
        raise NoFeasiblePlan(
            f"{nodes} nodes with {per_node} free {resource} were not found in {wait_s:g} s",
            binding="free nodes",
            relaxations=("wait longer with --wait",),
        )
    return group


def run(client: Client, asked: argparse.Namespace) -> int:
    """Choose, reserve, plan, write; then the emitted driver takes over."""
    question = json.loads(asked.question.read_text(encoding="utf-8"))
    nodes, per_node = whole_nodes(asked.resource)
    wanted = chosen_nodes(client, question, nodes, per_node, asked.budget)
    group = reserved(wanted, per_node, asked.resource, asked.wait)
    try:
        plan = client.plan({**question, "devices": wanted * per_node})
        client.write_emission(plan.plan_id, asked.out, launcher="ray")
        said = {
            "plan_id": plan.plan_id,
            "nodes": wanted,
            "devices_per_node": per_node,
            "step_time_s": plan.step_time_s,
            "bundles": group.bundle_specs,
        }
        print(json.dumps(said), flush=True)
    finally:
        # The emitted driver reserves the same nodes for itself.
        remove_placement_group(group)
    if asked.reserve:
        return 0
    ray.shutdown()
    return subprocess.run([sys.executable, "ray_driver.py"], cwd=asked.out, check=False).returncode


def main() -> int:
    """One job; one clear error and its exit code where that fails."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("question", type=Path)
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--resource", default="GPU")
    words.add_argument("--budget", type=float, default=5.0, help="seconds for the choice of nodes")
    words.add_argument("--wait", type=float, default=600.0, help="seconds to wait for free nodes")
    words.add_argument("--reserve", action="store_true", help="start nothing")
    asked = words.parse_args()
    try:
        with Client(os.environ.get("MESHWRIGHT_SERVER", "")) as client:
            ray.init(log_to_driver=True)
            return run(client, asked)
    except MeshwrightError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main())
