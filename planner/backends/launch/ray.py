"""The job under Ray: ``ray_driver.py`` on any Ray cluster; ``rayjob.yaml`` makes one of KubeRay for it.

The driver reserves whole nodes by a placement group (one bundle a node), puts them in order, and runs ``launch.sh`` on
each.  It sends the files itself, so nodes need no shared file system.  Over several kinds of nodes a bundle also asks
for a resource that only nodes of its kind have.

``backoffLimit`` of a RayJob came with KubeRay 1.2 (release notes, ray-project/kuberay#2192); fields:
ray-project/kuberay ray-operator/apis/ray/v1/rayjob_types.go and raycluster_types.go.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.backends.launch import pods, torchrun
from planner.backends.launch.node_groups import NODE_LABEL, NodeGroup
from planner.backends.launch.spec import LaunchFiles, LaunchSpec, order_note
from planner.errors import BackEndRefused
from profiles.device import Vendor

DRIVER = "ray_driver.py"
JOB_FILE = "launch.json"
MANIFEST = "rayjob.yaml"
RESOURCES: dict[Vendor, str] = {
    "NVIDIA": "GPU",
    "AMD": "GPU",
    "Intel": "GPU",
    "Huawei": "NPU",
    "AWS": "neuron_cores",
}
"""What Ray calls the devices (ray 2.60.0, ray/_private/accelerators/*.py get_resource_name)."""
_ASSUMED = "the nodes' names in natural order, n2 before n10"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write the driver, ``launch.json``, ``launch.sh``, ``rayjob.yaml`` and its ConfigMap.  Raises BackEndRefused."""
    own = {
        DRIVER: script_text(DRIVER),
        JOB_FILE: job_text(spec, [*spec.files, torchrun.LAUNCH_SCRIPT]),
        torchrun.LAUNCH_SCRIPT: torchrun.launch_script(spec),
    }
    files = {**spec.files, **own}
    notes = [
        f"On Kubernetes with KubeRay: {pods.apply_command(spec, MANIFEST)} instead; its image has Ray, too.",
        "Nodes of the Ray cluster need torch and the training software.",
        *dict.fromkeys(
            f"Nodes of {each.pool} join the Ray cluster with --resources='{_resources(each)}' ({MANIFEST} says it)."
            for each in spec.groups
        ),
        *order_note(spec, _ASSUMED),
    ]
    if not spec.settings.image:
        notes.append(f"Set the image in {MANIFEST} (the line marked YOURS), or emit with --image.")
    manifests = {MANIFEST: pods.job_manifest(spec, ray_job(spec, sorted(files)), "A RayJob of KubeRay 1.2 or newer.")}
    manifests |= pods.files_manifest(spec, files)
    executables = frozenset({torchrun.LAUNCH_SCRIPT})
    return LaunchFiles({**own, **manifests}, submit_command(DRIVER), executables, tuple(notes))


def submit_command(script: str) -> str:
    """Words that run a driver on the Ray cluster of ``$RAY_ADDRESS``."""
    return f"ray job submit --working-dir . -- python {script}"


def script_text(name: str) -> str:
    """The text of a script that is the same for all plans."""
    return (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")


def device_name(spec: LaunchSpec) -> str:
    """Ray's name of the devices.  Raises BackEndRefused where Ray does not hand them out one by one."""
    if spec.vendor not in RESOURCES:
        hint = f"devices that it hands out: {', '.join(RESOURCES)}"
        message = f"Ray does not hand out the devices of {spec.vendor} one by one"
        raise BackEndRefused(message, where="--launcher ray", hint=hint)
    return RESOURCES[spec.vendor]


def job_text(spec: LaunchSpec, files: list[str]) -> str:
    """``launch.json``: what the drivers read."""
    data = {
        "name": spec.job_name,
        "num_nodes": spec.num_nodes,
        "devices_per_node": spec.devices_per_node,
        **(
            {"kinds": [[each.num_nodes, each.devices_per_node, each.ray_resource] for each in spec.groups]}
            if spec.groups
            else {}
        ),
        "resource": device_name(spec),
        "script": spec.script,
        "arguments": list(spec.arguments),
        "environment": dict(sorted(spec.environment.items())),
        "hosts": list(spec.hosts),
        "files": sorted(files),
    }
    return json.dumps(data, indent=1) + "\n"


def ray_job(spec: LaunchSpec, paths: list[str]) -> dict[str, Any]:
    """The RayJob object: a head without devices that holds the files, and a worker a node."""
    head = pods.pod_template(spec, [], [], container="head", restart=None, paths=paths)
    head.pop("metadata")
    head["spec"].pop("affinity", None)
    for key in ("resources", "securityContext", "command"):
        head["spec"]["containers"][0].pop(key, None)
    folder = pods.PLAN_DIR if spec.settings.files_claim else pods.FILES_DIR
    workers = [_workers(spec.of_group(each), each) for each in spec.groups] or [_workers(spec)]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": pods.metadata(spec),
        "spec": {
            "entrypoint": f"python {folder}/{DRIVER}",
            "shutdownAfterJobFinishes": True,
            "backoffLimit": 0,
            "rayClusterSpec": {
                # Nothing but the driver runs on the head.
                "headGroupSpec": {"rayStartParams": {"num-gpus": "0"}, "template": head},
                "workerGroupSpecs": workers,
            },
        },
    }


def _workers(spec: LaunchSpec, group: NodeGroup | None = None) -> dict[str, Any]:
    """The workers on equal nodes."""
    worker = pods.pod_template(spec, [], pods.environment(spec, {}), container="worker", restart=None, paths=[])
    container = worker["spec"]["containers"][0]
    container.pop("command")  # KubeRay writes `ray start` itself
    worker["spec"]["volumes"] = [each for each in worker["spec"]["volumes"] if each["name"] == "shared-memory"]
    container["volumeMounts"] = [each for each in container["volumeMounts"] if each["name"] == "shared-memory"]
    if group is not None:
        worker["spec"]["nodeSelector"] = {NODE_LABEL: group.pool}
    return {
        "groupName": group.name if group else "node",
        "replicas": spec.num_nodes,
        "minReplicas": spec.num_nodes,
        "maxReplicas": spec.num_nodes,
        # KubeRay hands the words to a shell, so the JSON is quoted once more.
        "rayStartParams": {"resources": json.dumps(_resources(group))} if group else {},
        "template": worker,
    }


def _resources(group: NodeGroup) -> str:
    """What a Ray node of a kind says that it has."""
    return json.dumps({group.ray_resource: 1})
