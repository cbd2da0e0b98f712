"""Kubernetes objects of the launchers: sizes, devices, files, places to set, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.emission.emission import PLAN_JSON
from planner.backends.folders.emit import demand_pair, emit_plan
from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import LAUNCHERS, launch_files
from planner.backends.launch.manifest_text import manifest_text
from planner.backends.launch.pods import CONFIG_MAP_LIMIT_BYTES, RESOURCES, object_name
from planner.backends.launch.settings import IMAGE_PLACEHOLDER, LaunchSettings
from planner.backends.launch.spec import LaunchSpec
from planner.backends.registry import backend, with_files
from planner.errors import BackEndRefused
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan

SPEC = LaunchSpec(
    job_name="Llama_3.1-70B-1234abcd",
    num_nodes=4,
    devices_per_node=8,
    script="train.sh",
    environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    rdma=True,
    files={"train.sh": "echo on\n", "conf/deep.json": '{"a": "yes"}\n', PLAN_JSON: "{}\n"},
)
POD_LAUNCHERS: tuple[LauncherName, ...] = ("kubernetes", "trainjob", "pytorchjob", "volcano", "mpijob", "ray")
ORDERED: tuple[LauncherName, ...] = ("kubernetes", "trainjob", "pytorchjob", "volcano")


def read_yaml(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def job_text(spec: LaunchSpec, launcher: LauncherName) -> str:
    files = launch_files(spec, launcher).files
    return files["rayjob.yaml" if launcher == "ray" else "job.yaml"]


def find(value: Any, key: str) -> list[Any]:
    """Every value of a key, anywhere."""
    if isinstance(value, dict):
        return [each for name, item in value.items() for each in ([item] if name == key else []) + find(item, key)]
    return [each for item in value for each in find(item, key)] if isinstance(value, list) else []


@pytest.mark.parametrize("launcher", POD_LAUNCHERS)
@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD", "Huawei", "AWS"])
def test_devices_are_those_of_one_node_and_vendor(launcher: LauncherName, vendor: str) -> None:
    spec = replace(SPEC, vendor=vendor)  # type: ignore[arg-type]
    limits = find(read_yaml(job_text(spec, launcher)), "limits")
    assert limits
    assert all(each == {RESOURCES[spec.vendor]: "8"} for each in limits)


@pytest.mark.parametrize("launcher", POD_LAUNCHERS)
def test_there_is_one_place_to_set_the_image(launcher: LauncherName) -> None:
    text = job_text(SPEC, launcher)
    assert text.count(IMAGE_PLACEHOLDER) == 1
    assert text.count("YOURS") == 1
    mine = text.replace(IMAGE_PLACEHOLDER, "example.com/x:1")
    assert set(find(read_yaml(mine), "image")) == {"example.com/x:1"}
    given = job_text(replace(SPEC, settings=LaunchSettings(image="example.com/y:2", namespace="team")), launcher)
    assert set(find(read_yaml(given), "image")) == {"example.com/y:2"}
    assert read_yaml(given)["metadata"]["namespace"] == "team"


@pytest.mark.parametrize("launcher", POD_LAUNCHERS)
def test_files_reach_the_pods_byte_for_byte(launcher: LauncherName) -> None:
    made = launch_files(SPEC, launcher)
    config = read_yaml(made.files["files.yaml"])
    volumes = [volume for each in find(read_yaml(job_text(SPEC, launcher)), "volumes") for volume in each]
    items = [item for volume in volumes for item in volume.get("configMap", {}).get("items", [])]
    held = {item["path"]: config["data"][item["key"]] for item in items}
    everything = {**SPEC.files, **made.files}
    assert {*SPEC.files, "launch.sh"} <= set(held)
    assert all(held[path] == everything[path] for path in held)


@pytest.mark.parametrize("launcher", POD_LAUNCHERS)
def test_shared_memory_and_locked_memory(launcher: LauncherName) -> None:
    value = read_yaml(job_text(SPEC, launcher))
    assert {"medium": "Memory"} in find(value, "emptyDir")
    assert ["IPC_LOCK"] in find(value, "add")
    assert find(read_yaml(job_text(replace(SPEC, rdma=False), launcher)), "add") == []


def test_large_files_need_a_volume() -> None:
    big = replace(SPEC, files={**SPEC.files, "big": "x" * CONFIG_MAP_LIMIT_BYTES})
    for launcher in POD_LAUNCHERS:
        with pytest.raises(BackEndRefused, match="a ConfigMap holds 1048576") as caught:
            launch_files(big, launcher)
        assert "--files-claim" in str(caught.value.hint)
        made = launch_files(replace(big, settings=LaunchSettings(files_claim="plans")), launcher)
        assert "files.yaml" not in made.files
        assert {"claimName": "plans"} in find(
            read_yaml(job_text(replace(big, settings=LaunchSettings(files_claim="plans")), launcher)),
            "persistentVolumeClaim",
        )


@pytest.mark.parametrize("launcher", ORDERED)
def test_named_hosts_are_where_pods_may_land_and_in_order(launcher: LauncherName) -> None:
    spec = replace(SPEC, settings=LaunchSettings(hosts=("n2", "n10", "n1", "n3", "n9")))
    made = launch_files(spec, launcher)
    assert made.files["hosts.txt"].split() == ["n2", "n10", "n1", "n3"]
    assert find(read_yaml(made.files["job.yaml"]), "values") == [["n2", "n10", "n1", "n3"]] * (
        2 if launcher == "pytorchjob" else 1
    )
    assert "order_nodes.py --hosts hosts.txt" in made.files["launch.sh"]
    assert "NODE_NAME" in made.files["job.yaml"]
    assert "order_nodes.py" not in launch_files(SPEC, launcher).files


def test_the_topology_label_keeps_pods_together() -> None:
    spec = replace(SPEC, settings=LaunchSettings(topology_label="example.com/rack", network_tier=2))
    jobset = read_yaml(job_text(spec, "kubernetes"))
    assert jobset["metadata"]["annotations"] == {"alpha.jobset.sigs.k8s.io/exclusive-topology": "example.com/rack"}
    for launcher in ("trainjob", "pytorchjob", "volcano"):
        assert "example.com/rack" in find(read_yaml(job_text(spec, launcher)), "topologyKey")
    volcano = read_yaml(job_text(spec, "volcano"))
    assert volcano["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}


def test_no_manifest_claims_what_its_operator_does_not_keep() -> None:
    # Volcano's webhook turns 0 into 3; KubeRay has the backoff limit of a job since 1.2.
    assert find(read_yaml(job_text(SPEC, "volcano")), "maxRetry") == []
    assert job_text(SPEC, "ray").startswith("# A RayJob of KubeRay 1.2 or newer.")


def test_a_trainjob_sets_no_variable_that_the_runtime_owns() -> None:
    spec = replace(SPEC, settings=LaunchSettings(hosts=("a", "b", "c", "d")))
    names = [each["name"] for each in read_yaml(job_text(spec, "trainjob"))["spec"]["trainer"]["env"]]
    assert names == ["NODE_NAME"]


def test_the_operator_cannot_order_workers() -> None:
    with pytest.raises(BackEndRefused, match="orders the workers by their index"):
        launch_files(replace(SPEC, settings=LaunchSettings(hosts=("a", "b", "c", "d"))), "mpijob")


@pytest.mark.parametrize("name", ["A_b.c-12345678", "1x-abcdef01", "é-abcdef01", "x" * 200 + "-abcdef01"])
def test_names_are_labels_that_keep_the_plan(name: str) -> None:
    made = object_name(replace(SPEC, job_name=name))
    assert made.endswith(name.rpartition("-")[2])
    assert len(made) <= 40
    assert made[0].isalpha()
    assert made.replace("-", "").isalnum()
    assert made == made.lower()


@pytest.mark.parametrize(
    "text", ["on", "1e3", "0x10", "a: b", " lead\nx", "tab\t\n", "\n", "x\r\ny\n", "a\n\n", "#c\n- d", "é\u2028\n"]
)
def test_text_survives_yaml(text: str) -> None:
    assert read_yaml(manifest_text({"data": {"k": text}}))["data"]["k"] == text


def test_ray_train_needs_devices_that_it_shares() -> None:
    with pytest.raises(BackEndRefused, match="only for NVIDIA"):
        launch_files(replace(SPEC, vendor="Huawei"), "ray-train")
    with pytest.raises(BackEndRefused, match="Google"):
        launch_files(replace(SPEC, vendor="Google"), "ray")
    job = json.loads(launch_files(replace(SPEC, vendor="Huawei"), "ray").files["launch.json"])
    assert (job["resource"], job["num_nodes"], job["devices_per_node"]) == ("NPU", 4, 8)


def test_pairs_without_sense_are_refused_with_a_way_out() -> None:
    pairs = [(each, *pair) for each in with_files() for pair in each.not_started_by.items()]
    assert pairs
    for refusing, launcher, (reason, _) in pairs:
        with pytest.raises(BackEndRefused) as caught:
            demand_pair(refusing, launcher)
        assert reason in str(caught.value)
        assert caught.value.hint
    demand_pair(backend("megatron"), "kubernetes")


def test_every_launcher_says_where_named_hosts_stand() -> None:
    plan = make_plan(Strategy(tp=2, dp_shard=8), cluster=make_cluster(16), backend="native")
    for launcher in LAUNCHERS:
        if launcher in ("mpijob", "ascendjob"):  # they number the pods themselves, and refuse named hosts
            continue
        made = emit_plan(plan, launcher, LaunchSettings(hosts=("n2", "n10")))
        placed = made.files.get("hosts.txt") or made.files.get("hostfile") or made.files["launch.json"]
        assert placed.index("n2") < placed.index("n10")
        assert any("Node rank r runs on line" in note for note in made.launch_notes)
        assert all(note in made.files["PLAN.md"] for note in made.launch_notes)


@pytest.mark.parametrize("launcher", POD_LAUNCHERS)
def test_nics_and_host_network_are_lines_to_uncomment(launcher: LauncherName) -> None:
    text = job_text(SPEC, launcher)
    assert find(read_yaml(text), "hostNetwork") == []
    mine = re.sub(r"# (rdma/hca|hostNetwork|dnsPolicy):", r"\1:", text)
    value = read_yaml(mine)
    pods_with_devices = len(find(read_yaml(text), "limits"))
    assert find(value, "limits") == [{"nvidia.com/gpu": "8", "rdma/hca": "1"}] * pods_with_devices
    assert find(value, "requests") == find(value, "limits")
    assert set(find(value, "hostNetwork")) == {True}
    assert set(find(value, "dnsPolicy")) == {"ClusterFirstWithHostNet"}
    assert "SITE" not in job_text(replace(SPEC, rdma=False), launcher)


@pytest.mark.parametrize("launcher", POD_LAUNCHERS)
def test_the_job_object_says_the_whole_id_of_the_plan(launcher: LauncherName) -> None:
    spec = replace(SPEC, plan_id="0123456789abcdef" * 4, settings=LaunchSettings(topology_label="example.com/rack"))
    told = read_yaml(job_text(spec, launcher))["metadata"]["annotations"]
    assert told["meshwright/plan-id"] == spec.plan_id
    assert ("alpha.jobset.sigs.k8s.io/exclusive-topology" in told) is (launcher == "kubernetes")
    assert "meshwright/plan-id" not in job_text(SPEC, launcher)
