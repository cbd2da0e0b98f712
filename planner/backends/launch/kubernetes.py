"""The job on Kubernetes: ``job.yaml``, a JobSet of one Indexed Job, a pod a node, rank = completion index.

Facts: jobset.x-k8s.io/v1alpha2, whose annotation is ExclusiveKey of kubernetes-sigs/jobset
api/jobset/v1alpha2/jobset_types.go at 0336a8fd and whose fields are those of the models of kubeflow-trainer-api 2.3.0;
pods are called ``<jobset>-<job>-0-<index>`` and resolve below the service ``<jobset>`` (so Kubeflow Trainer calls them,
pkg/runtime/framework/plugins/torch/torch.go at 06b555d6); JOB_COMPLETION_INDEX is in every pod of an Indexed Job
(batch/v1).  Pods are not started again: a run that resumes needs a checkpoint, which is the training script's.
"""

from __future__ import annotations

from typing import Any

from planner.backends.launch import pods
from planner.backends.launch.spec import LaunchFiles, LaunchSpec

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_ASSUMED = "completion index, which follows no network; --topology-label keeps the job in one domain"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.yaml``, the ConfigMap, and ``launch.sh`` for the pods.  Raises BackEndRefused."""
    return pods.job_files(spec, jobset(spec), "A JobSet: one pod a node.", _ASSUMED)


def jobset(spec: LaunchSpec) -> dict[str, Any]:
    """The JobSet object."""
    name = pods.object_name(spec)
    variables = pods.environment(spec, {"MASTER_ADDR": f"{name}-node-0-0.{name}", "MASTER_PORT": str(pods.MASTER_PORT)})
    template = pods.pod_template(spec, pods.command(spec, "NODE_RANK=$JOB_COMPLETION_INDEX"), variables, topology=False)
    label = spec.settings.topology_label
    job = {
        "parallelism": spec.num_nodes,
        "completions": spec.num_nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template,
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": pods.metadata(spec, {_EXCLUSIVE: label} if label else None),
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}],
        },
    }
