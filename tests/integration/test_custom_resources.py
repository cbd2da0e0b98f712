"""Our schemas of custom resources: what the projects' definitions allow is taken, and what they do not is not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from planner.backends.checking.launchers.kubernetes_validate import KUBERNETES_RELEASE
from planner.backends.checking.validator import Verdict
from planner.backends.checking.worker import Worker
from tests.validators import SharedWorkers

POD: dict[str, Any] = {"spec": {"containers": [{"name": "ascend", "image": "example.com/x:1"}]}}
REPLICA = {"replicas": 1, "restartPolicy": "Never", "template": POD}


def resource(api: str, kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x-1", **metadata}, "spec": spec}


RAY = resource(
    "ray.io/v1",
    "RayJob",
    {
        "entrypoint": "python x.py",
        "submissionMode": "SidecarMode",
        "activeDeadlineSeconds": 60,
        "submitterPodTemplate": POD,
        "deletionStrategy": {
            "deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED", "ttlSeconds": 5}}]
        },
        "rayClusterSpec": {
            "rayVersion": "2.60.0",
            "authOptions": {"mode": "token"},
            "autoscalerOptions": {"version": "v2", "upscalingMode": "Default"},
            "headGroupSpec": {"rayStartParams": {"num-gpus": "0"}, "template": POD, "labels": {"a": "b"}},
            "workerGroupSpecs": [
                {"groupName": "node", "replicas": 2, "rayStartParams": {}, "template": POD, "resources": {"GPU": "8"}}
            ],
        },
    },
)
VOLCANO = resource(
    "batch.volcano.sh/v1alpha1",
    "Job",
    {
        "minAvailable": 4,
        "queue": "default",
        "maxRetry": 3,
        "minSuccess": 4,
        "networkTopology": {"mode": "soft", "highestTierName": "spine"},
        "volumes": [{"mountPath": "/data", "volumeClaimName": "data"}],
        "policies": [{"events": ["PodFailed", "Unknown"], "action": "RestartJob", "timeout": "10s"}],
        "tasks": [
            {
                "name": "node",
                "replicas": 4,
                "template": POD,
                "policies": [{"exitCode": 3, "action": "CompleteJob"}],
                "dependsOn": {"name": ["first"], "iteration": "all"},
                "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
            }
        ],
    },
)
MPI = resource(
    "kubeflow.org/v2beta1",
    "MPIJob",
    {
        "slotsPerWorker": 8,
        "runLauncherAsWorker": True,
        "mpiImplementation": "MPICH",
        "runPolicy": {
            "cleanPodPolicy": "All",
            "suspend": True,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "schedulingPolicy": {"minAvailable": 3, "minResources": {"cpu": "8"}},
        },
        "mpiReplicaSpecs": {"Launcher": REPLICA, "Worker": {**REPLICA, "replicas": 2, "restartPolicy": "OnFailure"}},
    },
)
ASCEND = resource(
    "mindxdl.gitee.com/v1",
    "AscendJob",
    {
        "schedulerName": "volcano",
        "successPolicy": "AllWorkers",
        "runPolicy": {"backoffLimit": 3, "schedulingPolicy": {"minAvailable": 2, "queue": "default"}},
        "replicaSpecs": {"Master": REPLICA, "Worker": {**REPLICA, "restartPolicy": "ExitCode"}},
    },
    labels={"framework": "pytorch"},
)


@pytest.fixture(scope="module")
def worker(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("kubernetes-validate")


def asked(worker: Worker, value: dict[str, Any]) -> Verdict:
    request = {"manifests": {"job.yaml": json.dumps(value)}, "kubernetes": KUBERNETES_RELEASE, "most_devices": {}}
    return worker.ask(request)


def changed(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    """A copy with one place set, or without it where ``new`` is None."""
    made = copy.deepcopy(value)
    *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    part: Any = made
    for name in way:
        part = part[name]
    if new is None:
        del part[last]
    else:
        part[last] = new
    return made


@pytest.mark.parametrize("value", [RAY, VOLCANO, MPI, ASCEND], ids=lambda value: str(value["kind"]))
def test_more_than_we_write_is_taken(worker: Worker, value: dict[str, Any]) -> None:
    verdict = asked(worker, value)
    assert verdict.accepted, verdict


ELSEWHERE: tuple[tuple[dict[str, Any], str, Any], ...] = (
    (RAY, "spec/rayClusterSpec/workerGroupSpecs/0/minReplicas", 2),
    (RAY, "spec/submissionMode", "HTTPMode"),
    (VOLCANO, "spec/policies/0/action", "RestartPod"),
    (VOLCANO, "spec/networkTopology", {"highestTierAllowed": 0}),
    (MPI, "spec/mpiReplicaSpecs/Worker", None),
    (ASCEND, "spec/replicaSpecs/Worker", None),
)


@pytest.mark.parametrize(("value", "path", "new"), ELSEWHERE, ids=lambda value: value if isinstance(value, str) else "")
def test_other_settings_are_taken(worker: Worker, value: dict[str, Any], path: str, new: Any) -> None:
    verdict = asked(worker, changed(value, path, new))
    assert verdict.accepted, verdict


REFUSED: tuple[tuple[dict[str, Any], str, Any], ...] = (
    (RAY, "metadata/name", "x" * 48),
    (RAY, "spec/rayClusterSpec", None),
    (RAY, "spec/entrypoint", None),
    (RAY, "spec/submissionMode", "K8SJobMode"),
    (RAY, "spec/managedBy", "me"),
    (RAY, "spec/activeDeadlineSeconds", 0),
    (RAY, "spec/schedule", "* * * * *"),
    (RAY, "spec/deletionStrategy/onSuccess", {"policy": "DeleteSelf"}),
    (RAY, "spec/submitterPodTemplate/spec/containers/0/imgae", "x"),
    (RAY, "spec/rayClusterSpec/headGroupSpec/rayStartParams", None),
    (RAY, "spec/rayClusterSpec/headGroupSpec/rayStartParams/num-gpus", 0),
    (RAY, "spec/rayClusterSpec/headGroupSpec/resources", {"GPU": "0"}),
    (RAY, "spec/rayClusterSpec/workerGroupSpecs/0/rayStartParams/labels", "a=b"),
    (RAY, "spec/rayClusterSpec/workerGroupSpecs/0/scaleStrategy", {"workers": []}),
    (VOLCANO, "spec/policies/0/events", ["JobUnknown"]),
    (VOLCANO, "spec/policies/0/events", ["PodRunning"]),
    (VOLCANO, "spec/policies/0/action", "SyncJob"),
    (VOLCANO, "spec/policies/0/exitCode", 1),
    (VOLCANO, "spec/policies/0/action", None),
    (VOLCANO, "spec/tasks/0/policies/0/exitCode", 0),
    (VOLCANO, "spec/tasks/0/name", "Node"),
    (VOLCANO, "spec/tasks/0/partitionPolicy/partitionSize", None),
    (VOLCANO, "spec/networkTopology/highestTierAllowed", 1),
    (VOLCANO, "spec/volumes/0/volumeClaimName", None),
    (VOLCANO, "spec/plugins", {"sshd": []}),
    (VOLCANO, "spec/plugins", {"svc": "--disable-network-policy"}),
    (VOLCANO, "spec/minSuccess", 0),
    (MPI, "spec/mpiReplicaSpecs/Launcher", None),
    (MPI, "spec/mpiReplicaSpecs/Launcher/replicas", 2),
    (MPI, "spec/mpiReplicaSpecs/Worker/replicas", 0),
    (MPI, "spec/mpiReplicaSpecs/Worker/restartPolicy", "ExitCode"),
    (MPI, "spec/waitForWorkers", True),
    (MPI, "spec/runPolicy/managedBy", "me"),
    (ASCEND, "metadata/labels", None),
    (ASCEND, "metadata/labels/framework", "jax"),
    (ASCEND, "spec/replicaSpecs/Master", None),
    (ASCEND, "spec/replicaSpecs/Master/replicas", 2),
    (ASCEND, "spec/replicaSpecs/Chief", REPLICA),
    (ASCEND, "spec/replicaSpecs/Worker/template/spec/containers/0/name", "train"),
    (ASCEND, "spec/replicaSpecs/Worker/template/spec/containers/0/image", None),
    (ASCEND, "spec/successPolicy", "Master"),
    (ASCEND, "spec/runPolicy/suspend", True),
)


@pytest.mark.parametrize(("value", "path", "new"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_no_definition_has_is_refused(worker: Worker, value: dict[str, Any], path: str, new: Any) -> None:
    verdict = asked(worker, changed(value, path, new))
    assert not verdict.accepted
    assert verdict.stage in ("envelope", "pod")
