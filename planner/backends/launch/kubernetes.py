"""The job on Kubernetes: ``job.yaml``, a JobSet of one Indexed Job, a pod a node, rank = completion index.

Over several kinds of nodes the JobSet has one replicated job a kind, each with its own devices and a node selector
(``meshwright/pool``, a label that the site gives its nodes); its node ranks begin behind those of the jobs before it.

Facts: jobset.x-k8s.io/v1alpha2, whose annotation is ExclusiveKey of kubernetes-sigs/jobset
api/jobset/v1alpha2/jobset_types.go at 0336a8fd and whose fields are those of the models of kubeflow-trainer-api 2.3.0;
pods are called ``<jobset>-<job>-0-<index>`` and resolve below the service ``<jobset>`` (so Kubeflow Trainer calls them,
pkg/runtime/framework/plugins/torch/torch.go at 06b555d6); JOB_COMPLETION_INDEX is in every pod of an Indexed Job
(batch/v1).  Pods are not started again: a run that resumes needs a checkpoint, which is the training script's.
"""

from __future__ import annotations

from typing import Any

from planner.backends.launch import pods
from planner.backends.launch.node_groups import NODE_LABEL, NodeGroup
from planner.backends.launch.spec import LaunchFiles, LaunchSpec

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_JOB = "node"
_ASSUMED = "completion index, which follows no network; --topology-label keeps the job in one domain"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.yaml``, the ConfigMap, and ``launch.sh`` for the pods.  Raises BackEndRefused."""
    labelled = dict.fromkeys(
        f"Label the nodes of each kind: kubectl label node NODE {NODE_LABEL}={each.pool}    # {each.device}"
        for each in spec.groups
    )
    return pods.job_files(spec, jobset(spec), "A JobSet: one pod a node.", _ASSUMED, *labelled)


def jobset(spec: LaunchSpec) -> dict[str, Any]:
    """The JobSet object."""
    first = spec.groups[0].name if spec.groups else _JOB
    jobs = [_replicated(spec.of_group(each), first, each) for each in spec.groups] or [_replicated(spec, first)]
    label = spec.settings.topology_label
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": pods.metadata(spec, {_EXCLUSIVE: label} if label else None),
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "failurePolicy": {"maxRestarts": 0},
            "replicatedJobs": jobs,
        },
    }


def _replicated(spec: LaunchSpec, first: str, group: NodeGroup | None = None) -> dict[str, Any]:
    """The pods of equal nodes; ``first``: the job that has node rank 0."""
    name = pods.object_name(spec)
    meet = {"MASTER_ADDR": f"{name}-{first}-0-0.{name}", "MASTER_PORT": str(pods.MASTER_PORT)}
    before = group.first_node if group else 0
    rank = f"NODE_RANK=$(({before} + JOB_COMPLETION_INDEX))" if before else "NODE_RANK=$JOB_COMPLETION_INDEX"
    variables = pods.environment(spec, meet)
    template = pods.pod_template(spec, pods.command(spec, rank), variables, topology=False)
    if group is not None:
        template["spec"]["nodeSelector"] = {NODE_LABEL: group.pool}
    job = {
        "parallelism": spec.num_nodes,
        "completions": spec.num_nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": template,
    }
    return {"name": group.name if group else _JOB, "replicas": 1, "template": {"spec": job}}
