"""A pod of the job: one node's devices, shared memory, the plan's files, and where it may land.

Files reach the pods in a ConfigMap, whose data is limited to 1 MiB (Kubernetes documentation, ConfigMaps), or in a
volume that the user fills (``--files-claim``).  A ConfigMap is read-only, so it is copied to a scratch volume.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.backends.launch import torchrun
from planner.backends.launch.manifest_text import manifest_text
from planner.backends.launch.settings import IMAGE_PLACEHOLDER
from planner.backends.launch.spec import LaunchFiles, LaunchSpec, order_note
from planner.errors import BackEndRefused
from profiles.device import Vendor

MANIFEST = "job.yaml"
PLAN_DIR = "/plan"
FILES_DIR = "/plan-files"
FILES_MANIFEST = "files.yaml"
MASTER_PORT = 29500
CONFIG_MAP_LIMIT_BYTES = 2**20
RESOURCES: dict[Vendor, str] = {
    "NVIDIA": "nvidia.com/gpu",
    "AMD": "amd.com/gpu",
    "Intel": "gpu.intel.com/i915",
    "Huawei": "huawei.com/Ascend910",
    "Google": "google.com/tpu",
    "AWS": "aws.amazon.com/neuron",
}
"""Extended resource of each vendor's device plugin."""
_JOB_LABEL = "meshwright/job"
_PLAN_ANNOTATION = "meshwright/plan-id"
"""A label may have 63 letters, and an id has 64."""
_LONGEST_NAME = 40
"""Controllers append ``-node-0-0`` and the like, and the sum must stay a label of 63 letters."""


def object_name(spec: LaunchSpec) -> str:
    """The job's name as a DNS label; the plan's id stays whole."""
    stem, _, plan_id = spec.job_name.rpartition("-")
    stem = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "plan"
    stem = stem if stem[0].isalpha() else f"m-{stem}"
    plan_id = re.sub(r"[^a-z0-9]+", "", plan_id.lower())
    return f"{stem[: _LONGEST_NAME - 1 - len(plan_id)].rstrip('-')}-{plan_id}"


def metadata(spec: LaunchSpec, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Name, namespace (where one is chosen) and annotations of the job object."""
    made: dict[str, Any] = {"name": object_name(spec)}
    if spec.settings.namespace:
        made["namespace"] = spec.settings.namespace
    told = ({_PLAN_ANNOTATION: spec.plan_id} if spec.plan_id else {}) | dict(annotations or {})
    if told:
        made["annotations"] = told
    return made


def labels(spec: LaunchSpec) -> dict[str, str]:
    """The label by which pods of one job know each other."""
    return {_JOB_LABEL: object_name(spec)}


def image(spec: LaunchSpec) -> str:
    """The user's image, or a placeholder that cannot be pulled."""
    return spec.settings.image or IMAGE_PLACEHOLDER


def device_resource(spec: LaunchSpec) -> str:
    """Extended resource of the devices.  Raises BackEndRefused for a vendor without a known device plugin."""
    if spec.vendor not in RESOURCES:
        hint = f"known vendors: {', '.join(RESOURCES)}"
        raise BackEndRefused(f"no Kubernetes device plugin is known for {spec.vendor}", where="--launcher", hint=hint)
    return RESOURCES[spec.vendor]


def resources(spec: LaunchSpec) -> dict[str, Any]:
    """One node's devices; extended resources need equal requests and limits."""
    count = str(spec.devices_per_node)
    return {"requests": {device_resource(spec): count}, "limits": {device_resource(spec): count}}


def security(spec: LaunchSpec) -> dict[str, Any]:
    """RDMA pins memory, which needs IPC_LOCK; nothing otherwise."""
    return {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if spec.rdma else {}


def volumes(spec: LaunchSpec, paths: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Shared memory of the node, the plan's files (``paths``, or those of a torchrun pod), and a place to write."""
    shared = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}
    if spec.settings.files_claim:
        return [shared, {"name": "plan", "persistentVolumeClaim": {"claimName": spec.settings.files_claim}}]
    items = [{"key": _key(path), "path": path} for path in sorted(pod_files(spec) if paths is None else paths)]
    files = {"name": "plan-files", "configMap": {"name": object_name(spec), "defaultMode": 0o755, "items": items}}
    return [shared, files, {"name": "plan", "emptyDir": {}}]


def mounts(spec: LaunchSpec) -> list[dict[str, Any]]:
    """Where the volumes are seen."""
    made = [{"name": "shared-memory", "mountPath": "/dev/shm"}, {"name": "plan", "mountPath": PLAN_DIR}]
    if not spec.settings.files_claim:
        made.append({"name": "plan-files", "mountPath": FILES_DIR})
    return made


def node_name_variable() -> dict[str, Any]:
    """NODE_NAME, the machine under the pod."""
    return {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def environment(spec: LaunchSpec, values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Variables of the container; those of the plan are exported by ``launch.sh`` and so reach every rank."""
    made: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in values.items()]
    return [*made, node_name_variable()] if spec.hosts else made


def command(spec: LaunchSpec, assignments: str, start: str = f"exec bash {torchrun.LAUNCH_SCRIPT}") -> list[str]:
    """``bash -c``: files to the scratch volume, then the node's script with its rank."""
    copy = "" if spec.settings.files_claim else f"cp -rL {FILES_DIR}/. {PLAN_DIR} && "
    words = f"{assignments} " if assignments else ""
    return ["bash", "-c", f"{copy}cd {PLAN_DIR} && {words}{start}"]


def affinity(spec: LaunchSpec, *, topology: bool = True) -> dict[str, Any]:
    """One pod a node; on the named hosts; with ``topology`` inside one domain of the label.  Empty for one node."""
    if spec.num_nodes == 1 and not spec.hosts:
        return {}
    term = {"labelSelector": {"matchLabels": labels(spec)}}
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    made: dict[str, Any] = {"podAntiAffinity": {rule: [{**term, "topologyKey": "kubernetes.io/hostname"}]}}
    if spec.hosts:
        wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(spec.hosts)}
        made["nodeAffinity"] = {rule: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    if topology and spec.settings.topology_label:
        made["podAffinity"] = {rule: [{**term, "topologyKey": spec.settings.topology_label}]}
    return {"affinity": made}


def pod_template(
    spec: LaunchSpec,
    words: list[str],
    variables: list[dict[str, Any]],
    *,
    container: str = "train",
    restart: str | None = "Never",
    topology: bool = True,
    paths: Sequence[str] | None = None,
) -> dict[str, Any]:
    """A PodTemplateSpec that runs ``words`` with one node's devices."""
    pod: dict[str, Any] = {"restartPolicy": restart} if restart else {}
    pod |= affinity(spec, topology=topology)
    pod["containers"] = [
        {
            "name": container,
            "image": image(spec),
            "command": words,
            **({"env": variables} if variables else {}),
            "resources": resources(spec),
            **security(spec),
            "volumeMounts": mounts(spec),
        }
    ]
    pod["volumes"] = volumes(spec, paths)
    return {"metadata": {"labels": labels(spec)}, "spec": pod}


def node_files(spec: LaunchSpec) -> dict[str, str]:
    """``launch.sh`` for pods, and what it needs to put named hosts in order."""
    files = {torchrun.LAUNCH_SCRIPT: torchrun.launch_script(spec, torchrun.meeting_lines(spec)), **spec.hosts_text()}
    return {**files, torchrun.ORDER_SCRIPT: torchrun.order_script()} if spec.hosts else files


def pod_files(spec: LaunchSpec) -> dict[str, str]:
    """All that a pod needs: the back-end's files and the launcher's."""
    return {**spec.files, **node_files(spec)}


def job_files(spec: LaunchSpec, job: Mapping[str, Any], head: str, assumed: str, *notes: str) -> LaunchFiles:
    """``job.yaml`` with ``job``, the ConfigMap, and ``launch.sh`` for the pods.  Raises BackEndRefused.

    ``head`` says what the object is, ``assumed`` in which order the pods stand without named hosts.
    """
    files = node_files(spec)
    manifests = {MANIFEST: job_manifest(spec, job, head), **files_manifest(spec, pod_files(spec))}
    told = (*notes, *pod_notes(spec, MANIFEST, assumed))
    executables = frozenset({torchrun.LAUNCH_SCRIPT})
    return LaunchFiles({**files, **manifests}, apply_command(spec, MANIFEST), executables, told)


def job_manifest(spec: LaunchSpec, job: Mapping[str, Any], head: str) -> str:
    """The text of a job object; where ranks talk over NICs, with lines to uncomment for them.

    The NICs are a resource that the cluster's device plugin names, or the host's own network; without either NCCL falls
    back to TCP.
    """
    text = manifest_text(job, head=head)
    if not spec.rdma:
        return text
    nics = ("# SITE: NICs, as your RDMA device plugin names them, in requests and limits", '# rdma/hca: "1"')
    network = (
        "# SITE: the host's network, where the pod's own does not have the NICs",
        "# hostNetwork: true",
        "# dnsPolicy: ClusterFirstWithHostNet",
        "# SITE: variables of the network (NCCL_IB_HCA, NCCL_SOCKET_IFNAME): emit with --env NAME=VALUE",
    )
    device, lines = f"{device_resource(spec)}:", []
    for line in text.splitlines():
        word = line.lstrip()
        before = network if word == "containers:" else ()
        after = nics if word.startswith(device) else ()
        indent = line[: len(line) - len(word)]
        lines += [*(indent + each for each in before), line, *(indent + each for each in after)]
    return "\n".join(lines) + "\n"


def files_manifest(spec: LaunchSpec, files: Mapping[str, str]) -> dict[str, str]:
    """``files.yaml``, a ConfigMap of the files; nothing where a volume holds them.

    Raises BackEndRefused when they are larger than a ConfigMap may be.
    """
    if spec.settings.files_claim:
        return {}
    size = sum(len(_key(path)) + len(text.encode()) for path, text in files.items())
    if size > CONFIG_MAP_LIMIT_BYTES:
        raise BackEndRefused(
            f"the files are {size} bytes and a ConfigMap holds {CONFIG_MAP_LIMIT_BYTES}",
            where="--launcher",
            hint="copy the folder to a volume and give its claim with --files-claim NAME",
        )
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(spec),
        "immutable": True,
        "data": {_key(path): text for path, text in sorted(files.items())},
    }
    head = "The files beside this one, as the pods get them.  Emit again after a change of the plan."
    return {FILES_MANIFEST: manifest_text(made, head=head)}


def apply_command(spec: LaunchSpec, manifest: str) -> str:
    """Words that create the objects.  Server-side: else kubectl keeps a copy in an annotation, at most 256 KiB."""
    files = "" if spec.settings.files_claim else f"-f {FILES_MANIFEST} "
    return f"kubectl apply --server-side {files}-f {manifest}"


def pod_notes(spec: LaunchSpec, manifest: str, assumed: str) -> tuple[str, ...]:
    """What a person must set or know, the same for all kinds of jobs."""
    notes = []
    if not spec.settings.image:
        notes.append(f"Set the image in {manifest} (the line marked YOURS), or emit with --image.")
    if not spec.settings.namespace:
        notes.append("The objects go to kubectl's current namespace; --namespace writes one into them.")
    if spec.settings.files_claim:
        notes.append(f"Copy this folder to the root of the volume of claim {spec.settings.files_claim} first.")
    notes.append("Data and checkpoints need volumes of your own in the pod template, or an image that has them.")
    if spec.rdma:
        notes.append(f"NICs, host network and variables of the network have places marked SITE in {manifest}.")
    if spec.vendor == "Google":
        notes.append("TPU pods also need cloud.google.com/gke-tpu-accelerator and -topology node selectors.")
    return (*notes, *order_note(spec, assumed))


def _key(path: str) -> str:
    """A ConfigMap key for a path: letters, digits, '-', '_' and '.' only."""
    return re.sub(r"[^A-Za-z0-9._-]", "__", path)
