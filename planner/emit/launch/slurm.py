"""How does Slurm start the job?  ``job.sbatch``: one task a node, each running ``launch.sh`` with its node id.

Task distribution stays ``block``: another one deals ranks across nodes in turn and breaks the placement.  Site
settings (partition, account, time) are left to the command line or to the marked lines.
"""

from __future__ import annotations

from planner.emit.launch import torchrun
from planner.emit.launch.spec import LaunchFiles, LaunchSpec

JOB_SCRIPT = "job.sbatch"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.sbatch`` and the ``launch.sh`` that it runs on each node."""
    files = {JOB_SCRIPT: job_script(spec), torchrun.LAUNCH_SCRIPT: torchrun.launch_script(spec)}
    return LaunchFiles(files, f"sbatch {JOB_SCRIPT}", frozenset({torchrun.LAUNCH_SCRIPT}))


def job_script(spec: LaunchSpec) -> str:
    """The batch script: header, rendezvous address, one ``srun``."""
    port = 20000 + sum(map(ord, spec.job_name)) % 10000
    return f"""#!/usr/bin/env bash
#SBATCH --job-name={spec.job_name}
#SBATCH --nodes={spec.num_nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={spec.devices_per_node}
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --distribution=block
#SBATCH --output=%x-%j.log
# Yours to set, here or on the sbatch command line:
##SBATCH --partition=
##SBATCH --account=
##SBATCH --time=
##SBATCH --switches=1@10:00
set -euo pipefail

# sbatch copies this file away, so the plan's directory is where sbatch was called, unless PLAN_DIR says otherwise.
PLAN_DIR=${{PLAN_DIR:-$SLURM_SUBMIT_DIR}}
if [ ! -f "$PLAN_DIR/{torchrun.LAUNCH_SCRIPT}" ]; then
  echo "no {torchrun.LAUNCH_SCRIPT} in $PLAN_DIR: call sbatch inside the plan's directory, or set PLAN_DIR" >&2
  exit 2
fi

mapfile -t HOSTS < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export PLAN_DIR
export MASTER_ADDR=${{HOSTS[0]}}
export MASTER_PORT=${{MASTER_PORT:-{port}}}

srun --kill-on-bad-exit=1 --distribution=block --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\
  bash -c 'NODE_RANK=$SLURM_NODEID exec bash "$PLAN_DIR/{torchrun.LAUNCH_SCRIPT}"'
"""
