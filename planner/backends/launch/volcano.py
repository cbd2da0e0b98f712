"""The job under Volcano: ``job.yaml``, one task of a pod a node, all or none (gang).

Plugins: ``svc`` lets pod ``<job>-<task>-<i>`` resolve below ``<job>`` (volcano-sh/volcano
pkg/controllers/job/plugins/svc/svc.go at 32ae0dcb), ``env`` gives VC_TASK_INDEX (env/const.go at ee0841e5).
``networkTopology`` keeps the job below a tier of HyperNodes (apis batch/v1alpha1/job.go at 233ca8bd).

No policy starts the job again, so ``maxRetry`` says nothing; Volcano's webhook would turn a 0 into 3 anyway
(pkg/webhooks/admission/jobs/mutate/mutate_job.go at 08812f68, patchDefaultMaxRetry).
"""

from __future__ import annotations

from typing import Any

from planner.backends.launch import pods
from planner.backends.launch.spec import LaunchFiles, LaunchSpec

_TASK = "node"
_ASSUMED = "task index, which follows no network; --network-tier keeps the job below one tier of HyperNodes"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.yaml``, the ConfigMap, and ``launch.sh`` for the pods.  Raises BackEndRefused."""
    return pods.job_files(spec, volcano_job(spec), "A Volcano Job: one pod a node, all or none.", _ASSUMED)


def volcano_job(spec: LaunchSpec) -> dict[str, Any]:
    """The Volcano Job object."""
    name = pods.object_name(spec)
    variables = pods.environment(
        spec, {"MASTER_ADDR": f"{name}-{_TASK}-0.{name}", "MASTER_PORT": str(pods.MASTER_PORT)}
    )
    template = pods.pod_template(spec, pods.command(spec, "NODE_RANK=$VC_TASK_INDEX"), variables)
    tier = spec.settings.network_tier
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": pods.metadata(spec),
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": spec.num_nodes,
            "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
            **({"networkTopology": {"mode": "hard", "highestTierAllowed": tier}} if tier else {}),
            "policies": [
                {"event": "PodFailed", "action": "AbortJob"},
                {"event": "PodEvicted", "action": "AbortJob"},
                {"event": "TaskCompleted", "action": "CompleteJob"},
            ],
            "tasks": [{"name": _TASK, "replicas": spec.num_nodes, "template": template}],
        },
    }
