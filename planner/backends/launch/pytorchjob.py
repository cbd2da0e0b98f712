"""The job under the Kubeflow training operator (v1): ``job.yaml``, a PyTorchJob, a pod a node.

The operator gives every pod MASTER_ADDR, MASTER_PORT and RANK, the rank of the *pod*: the master is 0, worker i is i +
1 (kubeflow/training-operator pkg/controller.v1/pytorch/envvar.go at 1417bbc3, setPodEnv; the file of release 1.9, now a
branch of kubeflow/trainer, was not seen).  The container must be called ``pytorch``; the other fields are those of the
models of kubeflow-training 1.9.4.
"""

from __future__ import annotations

from typing import Any

from planner.backends.launch import pods
from planner.backends.launch.spec import LaunchFiles, LaunchSpec

_ASSUMED = "replica index, which follows no network; --topology-label keeps the job in one domain"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.yaml``, the ConfigMap, and ``launch.sh`` for the pods.  Raises BackEndRefused."""
    return pods.job_files(spec, pytorchjob(spec), "A PyTorchJob: one pod a node.", _ASSUMED)


def pytorchjob(spec: LaunchSpec) -> dict[str, Any]:
    """The PyTorchJob object; a job of one node has no workers."""
    # The operator's RANK would reach the ranks' parents only: torchrun sets RANK anew for each rank.
    words = pods.command(spec, "NODE_RANK=$RANK")
    template = pods.pod_template(spec, words, pods.environment(spec, {}), container="pytorch", restart=None)
    replicas = {"Master": 1, "Worker": spec.num_nodes - 1}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": pods.metadata(spec),
        "spec": {
            "nprocPerNode": str(spec.devices_per_node),
            "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 0},
            "pytorchReplicaSpecs": {
                role: {"replicas": count, "restartPolicy": "Never", "template": template}
                for role, count in replicas.items()
                if count
            },
        },
    }
