"""The job under Ray Train: ``ray_train.py``, a TorchTrainer whose workers each become one rank.

Ray Train sorts workers by node and then by device, but the order of the nodes is its own choice (ray 2.60.0,
ray/train/v2/_internal/execution/worker_group/worker_group.py:1140), so the script orders the nodes itself.
"""

from __future__ import annotations

from planner.backends.launch.ray import JOB_FILE, job_text, script_text, submit_command
from planner.backends.launch.spec import LaunchFiles, LaunchSpec, order_note
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, sizes
from planner.errors import BackEndRefused

DRIVER = "ray_train.py"
_ASSUMED = "the nodes' names in natural order, n2 before n10"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write the trainer's script, ``launch.json`` and ``launch.sh``.

    Raises BackEndRefused for devices that Ray Train does not share among the workers of a node.
    """
    if spec.vendor != "NVIDIA":
        # ray 2.60.0, ray/train/v2/_internal/callbacks/accelerators.py:30-50
        raise BackEndRefused(
            "Ray Train shows all devices of a node to each of its workers only for NVIDIA, so LOCAL_RANK would name no"
            f" device of {spec.vendor}",
            where="--launcher ray-train",
            hint="use --launcher ray, which runs a whole node in one actor",
        )
    files = {
        DRIVER: script_text(DRIVER),
        JOB_FILE: job_text(spec, list(spec.files)),
        LAUNCH_SCRIPT: _launch_script(spec),
    }
    notes = ("Nodes of the Ray cluster need Ray Train, torch and the training software.", *order_note(spec, _ASSUMED))
    return LaunchFiles(files, submit_command(DRIVER), frozenset({LAUNCH_SCRIPT}), notes)


def _launch_script(spec: LaunchSpec) -> str:
    return f"""#!/usr/bin/env bash
# Starts all ranks on the Ray cluster of $RAY_ADDRESS; run it once, where that is reached.
set -euo pipefail
cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")"

{sizes(spec)}
echo "$NUM_NODES nodes of $DEVICES_PER_NODE devices"
exec {submit_command(DRIVER)}
"""
