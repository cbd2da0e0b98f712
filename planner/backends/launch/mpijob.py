"""The job under the MPI operator: ``job.yaml``, an MPIJob (v2beta1), a launcher and a worker pod a node.

The operator writes /etc/mpi/hostfile, workers by index, and gives the launcher the keys of the workers' sshd
(kubeflow/mpi-operator pkg/controller/mpi_job_controller.go: configMountPath, sshVolumeItems).  ``mpiImplementation``
and ``launcherCreationPolicy`` are fields of pkg/apis/kubeflow/v2beta1/types.go.  The launcher runs the same
``launch.sh`` as without Kubernetes.
"""

from __future__ import annotations

from typing import Any

from planner.backends.launch import mpirun, pods
from planner.backends.launch.spec import LaunchFiles, LaunchSpec
from planner.backends.launch.torchrun import LAUNCH_SCRIPT
from planner.errors import BackEndRefused

HOST_FILE = "/etc/mpi/hostfile"
_HEAD = "An MPIJob: a launcher, one worker a node."
_ASSUMED = "worker index, which follows no network; --topology-label keeps the job in one domain"


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write ``job.yaml``, the ConfigMap, ``launch.sh`` and ``rank.sh``.  Raises BackEndRefused."""
    if spec.hosts:
        raise BackEndRefused(
            "the MPI operator orders the workers by their index, whatever machines they are on",
            where="--hosts",
            hint="use --launcher kubernetes, trainjob, pytorchjob or volcano, which put named hosts in order",
        )
    scripts = {mpirun.RANK_SCRIPT: mpirun.rank_script(spec), LAUNCH_SCRIPT: _launch_script(spec)}
    files = {**spec.files, **scripts}
    manifests = {pods.MANIFEST: pods.job_manifest(spec, mpijob(spec, sorted(files)), _HEAD)}
    notes = (
        "The image has Open MPI and sshd; sshd must be able to start as the image's user.",
        *pods.pod_notes(spec, pods.MANIFEST, _ASSUMED),
    )
    made = {**scripts, **manifests, **pods.files_manifest(spec, files)}
    return LaunchFiles(made, pods.apply_command(spec, pods.MANIFEST), frozenset(scripts), notes)


def mpijob(spec: LaunchSpec, paths: list[str]) -> dict[str, Any]:
    """The MPIJob object; ``paths`` are the files of the ConfigMap."""
    start = "mkdir -p /run/sshd && exec /usr/sbin/sshd -De"
    worker = pods.pod_template(spec, pods.command(spec, "", start), [], container="worker", restart=None, paths=paths)
    assignments = f"HOSTFILE={HOST_FILE}"
    root = [{"name": f"OMPI_ALLOW_RUN_AS_ROOT{suffix}", "value": "1"} for suffix in ("", "_CONFIRM")]
    words = pods.command(spec, assignments)
    launcher = pods.pod_template(spec, words, root, container="launcher", restart=None, paths=paths)
    # The launcher has no rank: it needs no devices, and may share a node with a worker.
    container = launcher["spec"]["containers"][0]
    for key in ("resources", "securityContext"):
        container.pop(key, None)
    launcher["spec"].pop("affinity", None)
    launcher.pop("metadata")
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": pods.metadata(spec),
        "spec": {
            "slotsPerWorker": spec.processes_per_node,
            "mpiImplementation": "OpenMPI",
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
                "Worker": {"replicas": spec.num_nodes, "restartPolicy": "Never", "template": worker},
            },
        },
    }


def _launch_script(spec: LaunchSpec) -> str:
    """As for mpirun, but always over the operator's host file, one node or many."""
    return mpirun.launch_script(spec, host_file=True)
