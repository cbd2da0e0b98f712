"""The job under Kubeflow Trainer: ``job.yaml``, a TrainJob on the runtime ``torch-distributed``.

The runtime gives every pod PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT; the webhook refuses a TrainJob that sets
one of torchrun's PET_ variables itself (kubeflow/trainer pkg/runtime/framework/plugins/torch/torch.go at 06b555d6,
EnforceMLPolicy and Validate).  Volumes and placement are ``runtimePatches``, which replaced podTemplateOverrides in 2.2
(its CHANGELOG.md, v2.2.0, #3309); fields are those of the models of kubeflow-trainer-api 2.3.0.
"""

from __future__ import annotations

from typing import Any

from planner.backends.launch import pods
from planner.backends.launch.spec import LaunchFiles, LaunchSpec

RUNTIME = "torch-distributed"
_STEP = "node"
"""Replicated job and container (kubeflow/trainer manifests/base/runtimes/torch_distributed.yaml at 0c78efb0)."""
_ASSIGNMENTS = "NODE_RANK=$PET_NODE_RANK MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=$PET_MASTER_PORT"
_ASSUMED = "the index that the runtime gives, which follows no network; --topology-label keeps the job in one domain"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.yaml``, the ConfigMap, and ``launch.sh`` for the pods.  Raises BackEndRefused."""
    needed = f"Kubeflow Trainer 2.2 or newer with the ClusterTrainingRuntime {RUNTIME} is installed."
    return pods.job_files(spec, trainjob(spec), "A TrainJob of Kubeflow Trainer 2.2 or newer.", _ASSUMED, needed)


def trainjob(spec: LaunchSpec) -> dict[str, Any]:
    """The TrainJob object."""
    trainer: dict[str, Any] = {
        "image": pods.image(spec),
        "numNodes": spec.num_nodes,
        "numProcPerNode": spec.devices_per_node,
        "command": pods.command(spec, _ASSIGNMENTS),
        "resourcesPerNode": pods.resources(spec),
    }
    if spec.hosts:
        trainer["env"] = [pods.node_name_variable()]
    container = {"name": _STEP, **pods.security(spec), "volumeMounts": pods.mounts(spec)}
    pod = {
        "metadata": {"labels": pods.labels(spec)},
        "spec": {**pods.affinity(spec), "containers": [container], "volumes": pods.volumes(spec)},
    }
    patched = {"name": _STEP, "template": {"spec": {"template": pod}}}
    patch = {
        "manager": "meshwright/launch",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patched]}}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": pods.metadata(spec),
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": RUNTIME},
            "trainer": trainer,
            "runtimePatches": [patch],
        },
    }
