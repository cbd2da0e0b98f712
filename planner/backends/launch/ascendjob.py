"""The job on Kubernetes by MindCluster: an ``AscendJob``, one pod a node, each running ``launch.sh``.

The Ascend operator numbers the pods (``RANK``: 0 is the master, workers follow in order) and sets ``MASTER_ADDR`` and
``MASTER_PORT``; it also writes the rank table of the NPUs that the pods really got.  Volcano places the pods; on a
SuperPod ``sp-block`` asks for blocks of NPUs inside one HCCS domain.  Where the placement is fixed by hand instead,
``ranktable.template.json`` is the table to fill and to name in RANK_TABLE_FILE.

Fields: Ascend/mind-cluster component/ascend-operator/pkg/api/v1/ascendjob_types.go at 7934f67c and what
pkg/controllers/v1/ascendjob_validate.go at 36f7c088 demands (container ``ascend``, label ``framework``, one master);
the port name and the values of ``huawei.com/schedule_policy`` are constants of its ascend-common.  Read in
documentation only: ``sp-block``, ``ring-controller.atlas``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.backends.launch import torchrun
from planner.backends.launch.rank_table import rank_table
from planner.backends.launch.settings import IMAGE_PLACEHOLDER
from planner.backends.launch.spec import LaunchFiles, LaunchSpec
from planner.errors import BackEndRefused

JOB_FILE = "ascendjob.yaml"
RANK_TABLE_TEMPLATE = "ranktable.template.json"
RESOURCE = "huawei.com/Ascend910"
_NOT_DNS = re.compile(r"[^a-z0-9-]+")
_PORT = 2222
_VOLUMES = """\
              volumeMounts:
                - name: plan
                  mountPath: /plan
                - name: ascend-driver
                  mountPath: /usr/local/Ascend/driver
                - name: ascend-add-ons
                  mountPath: /usr/local/Ascend/add-ons
                - name: dshm
                  mountPath: /dev/shm
                - name: localtime
                  mountPath: /etc/localtime
          volumes:
            - name: plan
              hostPath:
                path: /shared/plan  # yours: this directory, on storage that every node mounts
            - name: ascend-driver
              hostPath:
                path: /usr/local/Ascend/driver
            - name: ascend-add-ons
              hostPath:
                path: /usr/local/Ascend/add-ons
            - name: dshm
              emptyDir:
                medium: Memory
            - name: localtime
              hostPath:
                path: /etc/localtime
"""
"""The end of a pod template: mounts of the container, then the volumes."""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """What MindCluster calls a server of one generation."""

    label: str
    """``ring-controller.atlas``."""
    super_pod: bool
    """Whether several servers share one HCCS domain; ``sp-block`` is mandatory then."""


NODE_KINDS = {
    "ascend910a": NodeKind("ascend-910", super_pod=False),
    "ascend910b": NodeKind("ascend-910b", super_pod=False),
    "ascend910c": NodeKind("ascend-910b", super_pod=True),
}
"""By architecture; MindCluster labels Atlas A3 like A2."""
_SCHEDULE_POLICIES = {("ascend910b", 8): "chip8-node8", ("ascend910b", 16): "chip8-node16"}
_SUPER_POD_POLICIES = {8: "chip2-node8-sp", 16: "chip2-node16-sp"}


def launch_files(spec: LaunchSpec) -> LaunchFiles:
    """Write the AscendJob, the rank table's template, and the ``launch.sh`` that every pod runs.

    Raises BackEndRefused for devices that MindCluster's ``huawei.com/Ascend910`` does not stand for, or named hosts.
    """
    kind = node_kind(spec)
    if spec.hosts:
        raise BackEndRefused(
            "the Ascend operator numbers the pods itself, whatever machines they are on",
            where="--hosts",
            hint=f"leave the order to Volcano, or fix every NPU by hand in {RANK_TABLE_TEMPLATE}",
        )
    files = {
        JOB_FILE: job(spec, kind),
        RANK_TABLE_TEMPLATE: rank_table(spec.num_nodes, spec.devices_per_node, _nodes_per_super_pod(spec, kind)),
        torchrun.LAUNCH_SCRIPT: torchrun.launch_script(spec),
    }
    return LaunchFiles(files, f"kubectl apply -f {JOB_FILE}", frozenset({torchrun.LAUNCH_SCRIPT}))


def node_kind(spec: LaunchSpec) -> NodeKind:
    """Labels of the devices; those of Atlas A2 where the spec does not tell.  Raises BackEndRefused."""
    found = NODE_KINDS.get(spec.architecture or "ascend910b")
    if found is None:
        raise BackEndRefused(
            f"an AscendJob asks for {RESOURCE}, and the cluster has {spec.architecture!r}",
            where="--launcher ascendjob",
            hint=f"it is for {', '.join(NODE_KINDS)}; choose another launcher",
        )
    return found


def super_pod_block(spec: LaunchSpec) -> int:
    """NPUs of a logical SuperPod: whole nodes, within one HCCS domain, dividing the job; the largest such number."""
    domain = max(spec.scale_up_domain, spec.devices_per_node)
    whole = (
        nodes * spec.devices_per_node
        for nodes in range(spec.num_nodes, 0, -1)
        if spec.num_nodes % nodes == 0 and nodes * spec.devices_per_node <= domain
    )
    return next(whole, spec.devices_per_node)


def _nodes_per_super_pod(spec: LaunchSpec, kind: NodeKind) -> int | None:
    return super_pod_block(spec) // spec.devices_per_node if kind.super_pod else None


def job(spec: LaunchSpec, kind: NodeKind) -> str:
    """The manifest.  What only the site knows is marked as yours."""
    name = _NOT_DNS.sub("-", spec.job_name.lower())[:50].strip("-") or "job"
    workers = spec.num_nodes - 1
    replicas = _replica("Master", 1, name, spec, kind)
    if workers:
        replicas += _replica("Worker", workers, name, spec, kind)
    namespace = f"\n  namespace: {spec.settings.namespace}" if spec.settings.namespace else ""
    annotations = "".join(f"\n    {key}: {value}" for key, value in _annotations(spec, kind).items())
    return f"""# Needs MindCluster (Ascend operator, Volcano).  Yours, where it says so: image, paths, queue.
# To fix the placement: fill {RANK_TABLE_TEMPLATE}, set its status to completed, name it in RANK_TABLE_FILE.
apiVersion: mindxdl.gitee.com/v1
kind: AscendJob
metadata:
  name: {name}{namespace}
  labels:
    framework: pytorch
    ring-controller.atlas: {kind.label}
  annotations:{annotations or " {}"}
spec:
  schedulerName: volcano
  runPolicy:
    schedulingPolicy:
      minAvailable: {spec.num_nodes}
      queue: default  # yours
  successPolicy: AllWorkers
  replicaSpecs:
{replicas}"""


def _annotations(spec: LaunchSpec, kind: NodeKind) -> dict[str, str]:
    if kind.super_pod:
        found = {"sp-block": f'"{super_pod_block(spec)}"'}
        policy = _SUPER_POD_POLICIES.get(spec.devices_per_node)
    else:
        found = {}
        policy = _SCHEDULE_POLICIES.get((spec.architecture, spec.devices_per_node))
    return found | ({"huawei.com/schedule_policy": policy} if policy else {})


def _replica(role: str, replicas: int, name: str, spec: LaunchSpec, kind: NodeKind) -> str:
    """One replica type; pods of one job never share a node."""
    return f"""    {role}:
      replicas: {replicas}
      restartPolicy: Never
      template:
        metadata:
          labels:
            ring-controller.atlas: {kind.label}
        spec:
          automountServiceAccountToken: false
          affinity:
            podAntiAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                - labelSelector:
                    matchExpressions:
                      - key: job-name
                        operator: In
                        values:
                          - {name}
                  topologyKey: kubernetes.io/hostname
          containers:
            - name: ascend  # MindCluster looks for this name
              image: {spec.settings.image or IMAGE_PLACEHOLDER}  # yours, or --image
              command:
                - /bin/bash
                - -c
                - cd /plan && NODE_RANK="${{RANK:-0}}" exec bash {torchrun.LAUNCH_SCRIPT}
              env:
                - name: XDL_IP
                  valueFrom:
                    fieldRef:
                      fieldPath: status.hostIP
                - name: ASCEND_VISIBLE_DEVICES
                  valueFrom:
                    fieldRef:
                      fieldPath: metadata.annotations['{RESOURCE}']
                - name: MEGATRON_PATH
                  value: /workspace/Megatron-LM  # yours, inside the image
              ports:
                - name: ascendjob-port  # MindCluster looks for this name
                  containerPort: {_PORT}
              resources:
                limits:
                  {RESOURCE}: {spec.devices_per_node}
                requests:
                  {RESOURCE}: {spec.devices_per_node}
{_VOLUMES}"""
