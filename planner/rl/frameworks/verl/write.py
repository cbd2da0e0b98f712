"""A folder for verl: the launch line, a Slurm job that starts Ray, a RayJob for Kubernetes, and what was planned."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from planner.backends.emission.write import KIND, SCHEMA_VERSION, file_digests
from planner.rl.deployment import RlDeployment
from planner.rl.frameworks.verl.launch import RELEASE, VerlLaunch, launch_of
from planner.rl.frameworks.verl.overrides import words_of
from planner.rl.problem import RlProblem
from planner.version import __version__

SCRIPT, SLURM, KUBERNETES, DEPLOYMENT = "run.sh", "job.sbatch", "rayjob.yaml", "rl-deployment.json"
IMAGE = "verlai/verl:vllm"
"""A name to replace: verl publishes an image for each combination of engine and trainer."""
_VARIABLES = {"TRAIN_FILES": "parquet files of prompts", "VAL_FILES": "parquet files of prompts to validate on"}


@dataclass(frozen=True, slots=True)
class VerlFolder:
    """Files by their paths, which of them are executed, and what the manifest says."""

    files: Mapping[str, str]
    executables: frozenset[str]
    manifest: Mapping[str, Any]


def verl_folder(problem: RlProblem, deployment: RlDeployment, model_path: str) -> VerlFolder:
    """The folder of a deployment.  Raises DocumentInvalid with what verl cannot say."""
    launch = launch_of(problem, deployment, model_path)
    node = problem.cluster.pools[0].devices_per_node
    files = {
        SCRIPT: script(launch),
        SLURM: slurm_job(launch, node),
        KUBERNETES: ray_job(launch, node),
        DEPLOYMENT: json.dumps(deployment.model_dump(mode="json"), indent=2) + "\n",
    }
    executables = frozenset({SCRIPT})
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "framework": "verl",
        "release": RELEASE,
        "versions": {"meshwright": __version__, "verl": RELEASE},
        "launch_command": f"bash {SCRIPT}",
        "devices": deployment.num_devices,
        "files": file_digests(files, executables),
    }
    return VerlFolder(files, executables, manifest)


def script(launch: VerlLaunch) -> str:
    """The launch line; Ray is there already, or starts on this node alone."""
    lines = [
        "#!/bin/bash",
        f"# verl {RELEASE}: {launch.placement}, {launch.synchrony.replace('_', ' ')}. Further overrides may follow.",
        "set -euo pipefail",
        *(f': "${{{name}:?set {name}: {words}}}"' for name, words in _VARIABLES.items()),
        "exec python3 -m verl.trainer.main_ppo \\",
        *(f"  {_quoted(word)} \\" for word in words_of(launch)),
        '  "$@"',
    ]
    return "\n".join(lines) + "\n"


def words_of_script(text: str) -> list[str]:
    """The overrides of a launch line that ``script`` wrote."""
    _, _, after = text.partition("verl.trainer.main_ppo")
    words = shlex.split(after.replace("\\\n", " "))
    return [word for word in words if "=" in word]


def slurm_job(launch: VerlLaunch, node: int) -> str:
    """Ray on every node of the allocation, and the launch line on the first."""
    nodes, each = _machines(launch, node)
    return f"""#!/bin/bash
#SBATCH --job-name=verl
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={each}
#SBATCH --exclusive
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=${{nodes[0]}}
port=6379
srun --nodes=1 --ntasks=1 --nodelist="$head" \\
  ray start --head --port=$port --num-gpus={each} --block &
sleep 20
for node in "${{nodes[@]:1}}"; do
  srun --nodes=1 --ntasks=1 --nodelist="$node" \\
    ray start --address="$head:$port" --num-gpus={each} --block &
done
sleep 20
export RAY_ADDRESS="$head:$port"
srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" bash {SCRIPT} "$@"
"""


def ray_job(launch: VerlLaunch, node: int) -> str:
    """A RayJob of KubeRay: nodes of the trainer and, where split, of the engines are one group of workers."""
    nodes, each = _machines(launch, node)
    container = {"image": IMAGE, "resources": {"limits": {"nvidia.com/gpu": each}}}
    head = {"image": IMAGE, "resources": {"limits": {"cpu": "8", "memory": "32Gi"}}}
    # The line is run in a container of its own, which has none of these variables: their values are said.
    line = "python3 -m verl.trainer.main_ppo " + " ".join(shlex.quote(_with_values(word)) for word in words_of(launch))
    document = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "verl"},
        "spec": {
            "entrypoint": line,
            "shutdownAfterJobFinishes": True,
            "submissionMode": "K8sJobMode",
            "rayClusterSpec": {
                "headGroupSpec": {
                    "rayStartParams": {"num-gpus": "0"},
                    "template": {"spec": {"containers": [{"name": "head", **head}]}},
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "devices",
                        "replicas": nodes,
                        "minReplicas": nodes,
                        "maxReplicas": nodes,
                        "rayStartParams": {},
                        "template": {"spec": {"containers": [{"name": "worker", **container}]}},
                    }
                ],
            },
        },
    }
    return str(yaml.safe_dump(document, sort_keys=False))


def _machines(launch: VerlLaunch, node: int) -> tuple[int, int]:
    """Nodes to ask for, and devices of each: two sides that one node of ``node`` devices holds are on one."""
    nodes = launch.trainer_nodes + launch.rollout_nodes
    trainer, engines = launch.trainer_devices_per_node, launch.rollout_devices_per_node
    together = trainer + engines
    return (1, together) if nodes == 2 and launch.rollout_nodes and together <= node else (nodes, max(trainer, engines))


def _with_values(word: str) -> str:
    for name in _VARIABLES:
        word = word.replace(f"${name}", f"/data/{name.lower()}.parquet")
    return word


def _quoted(word: str) -> str:
    """A word for the shell; a variable of the shell stays one."""
    return f'"{word}"' if "$" in word else shlex.quote(word)
