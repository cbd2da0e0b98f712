from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from planner.backends.launch.ascendjob import JOB_FILE, RANK_TABLE_TEMPLATE, launch_files, super_pod_block
from planner.backends.launch.launchers import launch_files as launch_files_of
from planner.backends.launch.spec import LaunchSpec, launch_spec
from planner.backends.launch.torchrun import read_world_size
from planner.errors import BackEndRefused
from planner.strategy.strategy import Strategy
from profiles.importers.hccl_rank_table import FORMAT
from profiles.topology import Topology
from tests.importing import read, written
from tests.mindspeed_plans import ascend_cluster
from tests.plan_factory import make_plan
from tests.validators import SharedWorkers

A2 = LaunchSpec("Qwen3-30B_ab12", 4, 8, "train.sh", architecture="ascend910b", scale_up_domain=8)
A3 = LaunchSpec("deepseek-v3-ab12", 6, 16, "train.sh", architecture="ascend910c", scale_up_domain=48)
ONE = replace(A2, num_nodes=1)


def manifest(spec: LaunchSpec) -> Any:
    return YAML(typ="safe", pure=True).load(launch_files(spec).files[JOB_FILE])


def pods(spec: LaunchSpec) -> list[dict[str, Any]]:
    """The pod template of every replica type, as a v1 Pod."""
    replicas = manifest(spec)["spec"]["replicaSpecs"].values()
    return [{"apiVersion": "v1", "kind": "Pod", **replica["template"]} for replica in replicas]


# The schema of the fields that are used (Ascend/mind-cluster component/ascend-operator/build/ascend-operator.yaml and
# Kubernetes' v1 Pod): a key that is not here is a misspelt one.
JOB_KEYS = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "metadata": {"name", "labels", "annotations"},
    "spec": {"schedulerName", "runPolicy", "successPolicy", "replicaSpecs"},
    "spec.runPolicy": {"schedulingPolicy"},
    "spec.runPolicy.schedulingPolicy": {"minAvailable", "queue"},
    "spec.replicaSpecs": {"Master", "Worker"},
}


@pytest.mark.parametrize("spec", [A2, A3, ONE], ids=["a2", "a3", "one node"])
def test_the_manifest_has_known_keys_only(spec: LaunchSpec) -> None:
    job = manifest(spec)
    for path, keys in JOB_KEYS.items():
        part = job
        for name in filter(None, path.split(".")):
            part = part[name]
        assert set(part) <= keys, path
    for replica in job["spec"]["replicaSpecs"].values():
        assert set(replica) == {"replicas", "restartPolicy", "template"}
        assert replica["restartPolicy"] in {"Always", "OnFailure", "Never", "ExitCode"}


@pytest.mark.parametrize("spec", [A2, A3, ONE], ids=["a2", "a3", "one node"])
def test_pods_are_pods(spec: LaunchSpec, shared_workers: SharedWorkers) -> None:
    made = launch_files(spec).files
    request = {"manifests": {JOB_FILE: made[JOB_FILE]}, "kubernetes": "1.33", "most_devices": {}}
    worker = shared_workers.worker("kubernetes-validate")
    verdict = worker.ask(request)
    assert verdict.accepted, verdict.message
    broken = {**request, "manifests": {JOB_FILE: made[JOB_FILE].replace("containers:", "kontainers:")}}
    assert not worker.ask(broken).accepted


def test_every_node_is_a_pod_and_all_start_together() -> None:
    job = manifest(A2)
    assert (job["apiVersion"], job["kind"]) == ("mindxdl.gitee.com/v1", "AscendJob")
    assert job["metadata"]["name"] == "qwen3-30b-ab12"
    assert job["metadata"]["labels"] == {"framework": "pytorch", "ring-controller.atlas": "ascend-910b"}
    replicas = job["spec"]["replicaSpecs"]
    assert {role: part["replicas"] for role, part in replicas.items()} == {"Master": 1, "Worker": 3}
    assert job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] == 4
    assert job["spec"]["schedulerName"] == "volcano"


def test_a_single_node_has_no_workers() -> None:
    assert list(manifest(ONE)["spec"]["replicaSpecs"]) == ["Master"]


@pytest.mark.parametrize("spec", [A2, A3], ids=["a2", "a3"])
def test_pods_ask_for_the_npus_of_a_node_under_the_names_that_the_operator_wants(spec: LaunchSpec) -> None:
    for pod in pods(spec):
        (container,) = pod["spec"]["containers"]
        assert container["name"] == "ascend"
        assert container["ports"] == [{"name": "ascendjob-port", "containerPort": 2222}]
        wanted = {"huawei.com/Ascend910": spec.devices_per_node}
        assert container["resources"] == {"limits": wanted, "requests": wanted}
        (rule,) = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (expression,) = rule["labelSelector"]["matchExpressions"]
        assert expression["values"] == [manifest(spec)["metadata"]["name"]]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}


@pytest.mark.parametrize(
    ("spec", "annotations"),
    [
        (A2, {"huawei.com/schedule_policy": "chip8-node8"}),
        (replace(A2, devices_per_node=16), {"huawei.com/schedule_policy": "chip8-node16"}),
        (replace(A2, num_nodes=1, devices_per_node=4), {}),
        (A3, {"sp-block": "48", "huawei.com/schedule_policy": "chip2-node16-sp"}),
        (replace(A3, num_nodes=5), {"sp-block": "16", "huawei.com/schedule_policy": "chip2-node16-sp"}),
    ],
)
def test_annotations_follow_the_server(spec: LaunchSpec, annotations: dict[str, str]) -> None:
    assert manifest(spec)["metadata"]["annotations"] == annotations


@pytest.mark.parametrize(
    ("num_nodes", "domain", "block"),
    [(48, 768, 768), (96, 768, 768), (6, 48, 48), (4, 48, 32), (1, 768, 16), (7, 48, 16)],
)
def test_a_logical_super_pod_is_whole_nodes_inside_one_domain(num_nodes: int, domain: int, block: int) -> None:
    spec = replace(A3, num_nodes=num_nodes, scale_up_domain=domain)
    assert super_pod_block(spec) == block
    assert spec.world_size % block == 0


@pytest.mark.parametrize("architecture", ["hopper", "ascend950"])
def test_other_devices_are_refused(architecture: str) -> None:
    with pytest.raises(BackEndRefused, match=architecture):
        launch_files_of(replace(A2, architecture=architecture), "ascendjob")


def test_the_pod_runs_the_node_script_with_the_rank_that_the_operator_sets(tmp_path: Path) -> None:
    files = launch_files(A2).files
    (container,) = pods(A2)[0]["spec"]["containers"]
    assert container["command"][:2] == ["/bin/bash", "-c"]
    (tmp_path / "launch.sh").write_text(files["launch.sh"])
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/sh\necho "$@"\n')
    torchrun.chmod(0o755)
    command = container["command"][2].replace("cd /plan", f"cd {tmp_path}")
    done = subprocess.run(
        ["bash", "-c", command],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "RANK": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "2222"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert {"--nnodes=4", "--nproc-per-node=8", "--node-rank=2", "--master-addr=10.0.0.1"} <= set(words)
    assert read_world_size(files["launch.sh"]) == 32


def topology(spec: LaunchSpec, tmp_path: Path) -> Topology:
    """What the importer of rank tables reads out of the template, filled in."""
    text = launch_files(spec).files[RANK_TABLE_TEMPLATE].replace('"template"', '"completed"')
    imported = read(FORMAT, written(tmp_path, "ranktable.json", text))
    assert imported.topology is not None
    assert not imported.flags
    assert not imported.bad_rows
    return imported.topology


def test_the_rank_table_reads_back_as_the_plans_nodes(tmp_path: Path) -> None:
    found = topology(A2, tmp_path)
    assert found.num_nodes == 4
    assert found.devices_of_node == (8, 8, 8, 8)
    assert found.rank_order == tuple((rank // 8, rank % 8) for rank in range(32))
    assert found.tiers == ()
    assert found.irregular == ()


def test_super_pods_read_back_as_one_domain_each(tmp_path: Path) -> None:
    found = topology(A3, tmp_path)
    assert found.rank_order == tuple((rank // 16, rank % 16) for rank in range(96))
    (tier,) = found.tiers
    assert tier.groups == ((0, 1, 2), (3, 4, 5))
    assert found.scale_up_domain_size == 48


def test_the_template_is_not_taken_for_a_table() -> None:
    table = json.loads(launch_files(A3).files[RANK_TABLE_TEMPLATE])
    assert table["status"] == "template"
    assert table["version"] == "1.2"
    devices = [device for server in table["server_list"] for device in server["device"]]
    assert [device["rank_id"] for device in devices] == [str(rank) for rank in range(96)]
    assert len({device["device_ip"] for device in devices}) == 96
    assert json.loads(launch_files(A2).files[RANK_TABLE_TEMPLATE])["version"] == "1.0"


def test_a_plan_tells_the_launcher_its_devices() -> None:
    plan = make_plan(Strategy(dp_shard=16), cluster=ascend_cluster(16, "ascend910c"))
    spec = launch_spec(plan, "train.sh", {})
    assert (spec.architecture, spec.scale_up_domain) == ("ascend910c", 8)
