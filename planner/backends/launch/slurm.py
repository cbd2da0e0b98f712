"""The job under Slurm: ``job.sbatch``, one task a node, each running ``launch.sh`` with its node id.

Over several kinds of nodes it is a heterogeneous job with a component a kind (``#SBATCH hetjob``), and one step over
all of them (``srun --het-group``); Slurm gives each component's nodes in SLURM_JOB_NODELIST_HET_GROUP_<n> (Slurm's
page on heterogeneous jobs, 22.05).

Task distribution stays ``block``: another one deals ranks across nodes in turn and breaks the placement.  With named
hosts it is ``arbitrary``: task i runs on line i of ``$SLURM_HOSTFILE`` (srun(1), Slurm 22.05), and each task verifies
that.  Site settings (partition, account, time, container) are left to the command line or to the marked lines.
The one task of a node starts all its ranks, so ``srun`` may not bind it to a core (``--cpu-bind``, srun(1)).
"""

from __future__ import annotations

from planner.backends.launch import torchrun
from planner.backends.launch.spec import HOSTS_FILE, LaunchFiles, LaunchSpec, order_note
from planner.errors import BackEndRefused
from profiles.device import Vendor

JOB_SCRIPT = "job.sbatch"
GRES: dict[Vendor, str] = {"Huawei": "npu", "AWS": "neuron"}
"""Generic resources of vendors that have no --gpus; the name is the site's (gres.conf), these are the usual ones."""


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.sbatch`` and the ``launch.sh`` that it runs on each node.

    Raises BackEndRefused for the two ways of placing nodes together.
    """
    if spec.hosts and spec.settings.switches:
        raise BackEndRefused(
            "--hosts already fixes the nodes, so --switches has nothing to choose",
            where="--switches",
            hint="give one of the two",
        )
    files = {JOB_SCRIPT: job_script(spec), torchrun.LAUNCH_SCRIPT: torchrun.launch_script(spec), **spec.hosts_text()}
    notes = order_note(
        spec,
        "Slurm's node order, which is the topology's with TopologyPlugin=topology/tree and by name without it;"
        " --switches keeps the job together",
    )
    if spec.groups:
        notes += (
            f"Name the partition, or a --constraint, of each kind of nodes in {JOB_SCRIPT}: Slurm takes any else.",
        )
    if spec.vendor in GRES:
        notes += (f"The devices are asked for as --gres={GRES[spec.vendor]}: the name in your gres.conf may differ.",)
    return LaunchFiles(files, f"sbatch {JOB_SCRIPT}", frozenset({torchrun.LAUNCH_SCRIPT}), notes)


def job_script(spec: LaunchSpec) -> str:
    """The batch script: header, rendezvous address, one ``srun``."""
    port = 20000 + sum(map(ord, spec.job_name)) % 10000
    parts = [spec.of_group(each) for each in spec.groups] or [spec]
    heads = [f"# {each.words[0].upper()}{each.words[1:]}.\n" for each in spec.groups] or [""]
    wanted = "#SBATCH hetjob\n".join(
        head + _component(part, named=index == 0) for index, (head, part) in enumerate(zip(heads, parts, strict=True))
    )
    return f"""#!/usr/bin/env bash
{wanted}set -euo pipefail

# sbatch copies this file away, so the plan's directory is where sbatch was called, unless PLAN_DIR says otherwise.
PLAN_DIR=${{PLAN_DIR:-$SLURM_SUBMIT_DIR}}
if [ ! -f "$PLAN_DIR/{torchrun.LAUNCH_SCRIPT}" ]; then
  echo "no {torchrun.LAUNCH_SCRIPT} in $PLAN_DIR: call sbatch inside the plan's directory, or set PLAN_DIR" >&2
  exit 2
fi

{_start(spec)}export PLAN_DIR
export MASTER_ADDR=${{HOSTS[0]}}
export MASTER_PORT=${{MASTER_PORT:-{port}}}

# Yours: more words for srun, here or in the environment, for example a container (pyxis) and another binding:
#   SRUN_ARGS="--container-image=IMAGE --container-mounts=$PLAN_DIR:$PLAN_DIR --cpu-bind=verbose,none"
read -r -a SRUN_WORDS <<< "${{SRUN_ARGS:-}}"

{_step(spec)}"""


def _component(spec: LaunchSpec, *, named: bool) -> str:
    """What the job, or one part of a heterogeneous job, asks for; the first part names the job and its log."""
    name, log = f"#SBATCH --job-name={spec.job_name}\n", f"#SBATCH --output=%x-%j.log\n{_comment(spec)}"
    return f"""{name if named else ""}#SBATCH --nodes={spec.num_nodes}
#SBATCH --ntasks-per-node=1
{_devices(spec)}#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --distribution=block
{log if named else ""}{_place(spec)}# Yours to set, here or on the sbatch command line:
##SBATCH --partition=
##SBATCH --account=
##SBATCH --time=
{_switches(spec)}"""


def _comment(spec: LaunchSpec) -> str:
    """The whole id of the plan, which ``squeue -o %k`` and ``scontrol show job`` show."""
    return f'#SBATCH --comment="meshwright plan {spec.plan_id}"\n' if spec.plan_id else ""


def _devices(spec: LaunchSpec) -> str:
    if spec.vendor in GRES:
        return f"#SBATCH --gres={GRES[spec.vendor]}:{spec.devices_per_node}\n"
    # The chips of a TPU host are not counted by Slurm: a whole node (--exclusive) has them all.
    return "" if spec.vendor == "Google" else f"#SBATCH --gpus-per-node={spec.devices_per_node}\n"


def _place(spec: LaunchSpec) -> str:
    return f"#SBATCH --nodelist={','.join(spec.hosts)}\n" if spec.hosts else ""


def _switches(spec: LaunchSpec) -> str:
    if spec.settings.switches:
        return f"#SBATCH --switches={spec.settings.switches}\n"
    return "" if spec.hosts else "##SBATCH --switches=1@10:00\n"


def _start(spec: LaunchSpec) -> str:
    if spec.groups:
        return _nodes_of_parts(spec)
    if spec.hosts:
        return f"""export SLURM_HOSTFILE="$PLAN_DIR/{HOSTS_FILE}"
mapfile -t HOSTS < "$SLURM_HOSTFILE"
"""
    return 'mapfile -t HOSTS < <(scontrol show hostnames "$SLURM_JOB_NODELIST")\n'


def _nodes_of_parts(spec: LaunchSpec) -> str:
    """The hosts of all parts of a heterogeneous job, in the order of node ranks."""
    if spec.hosts:
        found = f'mapfile -t HOSTS < "$PLAN_DIR/{HOSTS_FILE}"'
    else:
        found = """HOSTS=()
for ((part = 0; part < SLURM_HET_SIZE; part++)); do
  nodes=SLURM_JOB_NODELIST_HET_GROUP_$part
  mapfile -t -O "${#HOSTS[@]}" HOSTS < <(scontrol show hostnames "${!nodes}")
done"""
    return f'{found}\nexport NODES="${{HOSTS[*]}}"\n'


def _step_of_parts(spec: LaunchSpec) -> str:
    """One step over all parts; a node finds its rank by its name, so no numbering of tasks over parts matters."""
    return f"""srun --het-group=0-{len(spec.groups) - 1} --kill-on-bad-exit=1 --cpu-bind=none --ntasks-per-node=1 \\
  ${{SRUN_WORDS[@]+"${{SRUN_WORDS[@]}}"}} bash -c '
  rank=0
  for node in $NODES; do
    if [ "$node" = "$SLURMD_NODENAME" ]; then NODE_RANK=$rank exec bash "$PLAN_DIR/{torchrun.LAUNCH_SCRIPT}"; fi
    rank=$((rank + 1))
  done
  echo "$SLURMD_NODENAME is none of the nodes of this job: $NODES" >&2
  exit 3'
"""


def _step(spec: LaunchSpec) -> str:
    if spec.groups:
        return _step_of_parts(spec)
    if spec.hosts:
        return f"""srun --kill-on-bad-exit=1 --cpu-bind=none --distribution=arbitrary --ntasks={spec.num_nodes} \\
  ${{SRUN_WORDS[@]+"${{SRUN_WORDS[@]}}"}} bash -c '
  wanted=$(sed -n "$((SLURM_PROCID + 1))p" "$SLURM_HOSTFILE")
  if [ "$wanted" != "$SLURMD_NODENAME" ]; then
    echo "task $SLURM_PROCID is on $SLURMD_NODENAME, not on $wanted: ranks would be out of order" >&2
    exit 3
  fi
  NODE_RANK=$SLURM_PROCID exec bash "$PLAN_DIR/{torchrun.LAUNCH_SCRIPT}"'
"""
    return f"""srun --kill-on-bad-exit=1 --cpu-bind=none --distribution=block --ntasks="$SLURM_JOB_NUM_NODES" \\
  --ntasks-per-node=1 ${{SRUN_WORDS[@]+"${{SRUN_WORDS[@]}}"}} \\
  bash -c 'NODE_RANK=$SLURM_NODEID exec bash "$PLAN_DIR/{torchrun.LAUNCH_SCRIPT}"'
"""
