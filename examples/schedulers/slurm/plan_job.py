"""Ask the planning service how many nodes a Slurm job is worth, and how it runs on those it got.

    plan_job.py nodes  QUESTION.json --nodes 1-16 [--least-efficiency 0.8 | --fewest]
    plan_job.py launch QUESTION.json --out DIR

``nodes`` answers before the job is queued (``job_submit.lua`` and ``submit.sh`` call it): one number on stdout.
``launch`` answers inside the allocation (``train.sbatch`` calls it): the launch files for exactly these nodes.
QUESTION.json is the body of POST /v1/plans without ``devices``.  The service is $MESHWRIGHT_SERVER, the key
$MESHWRIGHT_API_KEY.  Exit codes are those of ``meshwright``: 5 = it fits on none of these nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from api.client import Client
from planner.answers.throughput.choice import fewest_devices, most_devices
from planner.errors import DocumentInvalid, MeshwrightError, NoFeasiblePlan

SAME_FOR_A_CURVE = ("model", "cluster", "workload", "constraints", "profile")
MOST_COUNTS = 64


def main(words: list[str] | None = None) -> int:
    """Run one command; one clear error and its exit code where that fails."""
    asked = parser().parse_args(words)
    try:
        with Client(asked.server or os.environ.get("MESHWRIGHT_SERVER", "")) as client:
            print(asked.run(client, asked))
    except MeshwrightError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = found.add_subparsers(required=True)
    nodes = commands.add_parser("nodes", help="how many nodes the job is worth")
    nodes.add_argument("--nodes", default="1-16", help="from-to, or a list: 1,2,4,8")
    nodes.add_argument("--least-efficiency", type=float, default=0.8, help="of the best tokens/s a device")
    nodes.add_argument("--fewest", action="store_true", help="the fewest nodes that keep the question's target")
    nodes.add_argument("--budget", type=float, default=5.0, help="seconds for the answer")
    nodes.set_defaults(run=choose_nodes)
    launch = commands.add_parser("launch", help="launch files for the nodes of this allocation")
    launch.add_argument("--out", type=Path, required=True)
    launch.add_argument("--nodes", type=int, default=int(os.environ.get("SLURM_JOB_NUM_NODES", "0")))
    launch.add_argument("--job", default=os.environ.get("SLURM_JOB_ID", ""))
    launch.add_argument("--restart", type=int, default=int(os.environ.get("SLURM_RESTART_COUNT", "0")))
    launch.set_defaults(run=launch_files)
    for command in (nodes, launch):
        command.add_argument("question", type=Path)
        command.add_argument("--devices-per-node", type=int, default=8)
        command.add_argument("--server", help="default: $MESHWRIGHT_SERVER")
    return found


def choose_nodes(client: Client, asked: argparse.Namespace) -> str:
    """The number of nodes to ask Slurm for.  Raises NoFeasiblePlan."""
    counts = [nodes * asked.devices_per_node for nodes in node_counts(asked.nodes)]
    question = read_question(asked.question)
    curve = client.throughput(
        {
            **{name: question[name] for name in SAME_FOR_A_CURVE if name in question},
            "device_counts": counts,
            "budget_s": asked.budget,
        }
    )
    chosen = fewest_devices(curve) if asked.fewest else most_devices(curve, asked.least_efficiency)
    if chosen is None:
        reasons = sorted({point.reason for point in curve.points if point.reason})
        raise NoFeasiblePlan(
            f"no number of nodes in {asked.nodes} will do: {'; '.join(reasons) or 'the target is missed'}",
            binding="nodes",
            relaxations=("offer more nodes", "give more time with --budget"),
        )
    return f"{chosen.num_devices // asked.devices_per_node}"


def launch_files(client: Client, asked: argparse.Namespace) -> str:
    """The plan for the allocation, under the job's own id, and its launch files in a folder; the plan's id."""
    if asked.nodes < 1 or not asked.job:
        raise DocumentInvalid(
            "which job, on how many nodes?", where="--job --nodes", hint="run this inside an allocation, or give both"
        )
    question = {**read_question(asked.question), "devices": asked.nodes * asked.devices_per_node}
    # A requeued job may have other nodes: another start is another request.
    plan = client.put_request(f"slurm-{asked.job}-{asked.restart}", question)
    client.write_emission(plan.plan_id, asked.out, launcher="slurm")
    return plan.plan_id


def node_counts(text: str) -> list[int]:
    """``1-16`` or ``1,2,4`` as numbers.  Raises DocumentInvalid."""
    span = re.fullmatch(r"([1-9]\d{0,5})-([1-9]\d{0,5})", text)
    if span:
        counts = list(range(int(span[1]), int(span[2]) + 1))
    elif re.fullmatch(r"[1-9]\d{0,5}(,[1-9]\d{0,5})*", text):
        counts = [int(part) for part in text.split(",")]
    else:
        counts = []
    if not 0 < len(counts) <= MOST_COUNTS:
        raise DocumentInvalid(
            f"{text!r} is no list of 1 to {MOST_COUNTS} node counts", where="--nodes", hint="write 1-16 or 1,2,4,8"
        )
    return counts


def read_question(path: Path) -> dict[str, Any]:
    """The question of a file.  Raises DocumentInvalid."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DocumentInvalid(f"the question cannot be read: {error}", where=str(path)) from None
    if not isinstance(found, dict):
        raise DocumentInvalid("the question is no object", where=str(path), hint="see examples/schedulers/slurm")
    return found


if __name__ == "__main__":
    sys.exit(main())
