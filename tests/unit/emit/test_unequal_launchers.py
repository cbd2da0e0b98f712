"""Launch files of a plan over unequal devices: each kind of nodes gets its ranks, its devices and its place."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import LAUNCHERS, UNEQUAL_NODES
from planner.backends.launch.node_groups import NODE_LABEL, node_groups
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.torchrun import node_kinds, read_world_size
from planner.errors import BackEndRefused
from planner.plan.plan import Plan
from planner.search.pools.launchable import launchable_plan
from profiles.cluster import Cluster
from tests.unequal_devices import devices, plan_of, question

HOSTS = LaunchSettings(hosts=("s2", "s1", "f1"), image="example.com/x:1")


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Two nodes of two slow devices, and a node of three fast ones."""
    clusters = devices("slow", 2, 2.0, nodes=2), devices("fast", 3, 1.0)
    found = plan_of(question(*clusters, layers=12, pp=7, micro_batch_size=1))
    runnable = launchable_plan(found)
    assert sorted((pool.name, pool.num_nodes, pool.devices_per_node) for pool in runnable.problem.cluster.pools) == [
        ("fast", 1, 3),
        ("slow", 2, 2),
    ]
    return runnable


def files(plan: Plan, launcher: LauncherName, settings: LaunchSettings | None = None) -> dict[str, str]:
    return dict(emit_plan(plan, launcher, settings or LaunchSettings()).files)


def kinds(plan: Plan) -> list[tuple[int, int]]:
    return [(pool.num_nodes, pool.devices_per_node) for pool in plan.problem.cluster.pools]


def ran(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    here = {"PATH": f"{folder}:{os.environ['PATH']}", **variables}
    return subprocess.run(words, env=here, cwd=folder, capture_output=True, text=True, check=False)


def laid_out(folder: Path, made: dict[str, str], programs: dict[str, str]) -> None:
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, body in programs.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)


def test_every_node_starts_the_ranks_of_its_kind(plan: Plan, tmp_path: Path) -> None:
    made = files(plan, "torchrun")
    assert node_kinds(made["launch.sh"]) == tuple(kinds(plan))
    assert read_world_size(made["launch.sh"]) == 7
    laid_out(tmp_path, made, {"torchrun": 'echo "$@"'})
    started = [ran(["bash", "launch.sh", str(rank)], tmp_path, MASTER_ADDR="n0").stdout for rank in range(3)]
    expected = [devices for nodes, devices in kinds(plan) for _ in range(nodes)]
    for rank, (said, count) in enumerate(zip(started, expected, strict=True)):
        assert f"--nnodes=3 --nproc-per-node={count} --node-rank={rank} " in said


def test_the_command_and_the_notes_say_which_node_ranks_each_kind_has(plan: Plan) -> None:
    made = emit_plan(plan, "torchrun")
    lines = made.launch_command.splitlines()
    assert len(lines) == 2
    for line, group in zip(lines, node_groups(plan.problem.cluster), strict=True):
        assert f"of {group.pool}" in line
    assert any("2 nodes of slow with 2 x slow" in note for note in made.launch_notes)
    assert "Node rank" in made.files["PLAN.md"]


@pytest.mark.parametrize("launcher", sorted(UNEQUAL_NODES))
@pytest.mark.parametrize("settings", [LaunchSettings(image="example.com/x:1"), HOSTS])
def test_what_is_written_is_read_back_and_unchanged(
    plan: Plan, launcher: LauncherName, settings: LaunchSettings, tmp_path: Path
) -> None:
    folder = write_emission(emit_plan(plan, launcher, settings), tmp_path / "out")
    assert check_directory(folder) == []
    edited = folder / "launch.sh"
    edited.write_text(edited.read_text(encoding="utf-8").replace("KIND_DEVICES=(", "KIND_DEVICES=(1"), encoding="utf-8")
    assert check_directory(folder) != []


def test_launchers_of_equal_nodes_refuse_and_name_those_that_do_not(plan: Plan) -> None:
    for launcher in set(LAUNCHERS) - UNEQUAL_NODES - {"ascendjob"}:
        with pytest.raises(BackEndRefused, match="2 kinds") as found:
            emit_plan(plan, launcher)
        assert "kubernetes" in (found.value.hint or "")


def components(script: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in script.splitlines():
        if line == "#SBATCH hetjob":
            parts.append([])
        elif line.startswith("#SBATCH --"):
            parts[-1].append(line.removeprefix("#SBATCH --"))
    return parts


def test_slurm_asks_for_a_component_of_each_kind(plan: Plan) -> None:
    parts = components(files(plan, "slurm")["job.sbatch"])
    assert len(parts) == 2
    for part, (nodes, count) in zip(parts, kinds(plan), strict=True):
        assert {f"nodes={nodes}", f"gpus-per-node={count}", "ntasks-per-node=1", "exclusive"} <= set(part)
    assert any(line.startswith("job-name=") for line in parts[0])
    named = components(files(plan, "slurm", HOSTS)["job.sbatch"])
    first = kinds(plan)[0][0]
    assert f"nodelist={','.join(HOSTS.hosts[:first])}" in named[0]
    assert f"nodelist={','.join(HOSTS.hosts[first:])}" in named[1]


def test_slurms_nodes_find_their_rank_over_all_components(plan: Plan, tmp_path: Path) -> None:
    programs = {
        # Lists of a component come as it is asked for.
        "scontrol": 'case "$3" in first) printf "n3\\nn9\\n" ;; *) printf "m1\\n" ;; esac',
        "torchrun": 'echo "$MASTER_ADDR $@"',
        "srun": 'while [ "${1#--}" != "$1" ]; do echo "$1"; shift; done\n'
        'for node in m1 n9 n3 other; do SLURMD_NODENAME=$node "$@"; echo "$node: $?"; done',
    }
    laid_out(tmp_path, files(plan, "slurm"), programs)
    lists = {
        "SLURM_HET_SIZE": "2",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "first",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "second",
    }
    done = ran(["bash", "job.sbatch"], tmp_path, SLURM_SUBMIT_DIR=str(tmp_path), **lists)
    assert done.returncode == 0, done.stderr
    assert "--het-group=0-1" in done.stdout.split()
    counts = [devices for nodes, devices in kinds(plan) for _ in range(nodes)]
    for rank, count in enumerate(counts):
        assert f"n3 --nnodes=3 --nproc-per-node={count} --node-rank={rank} " in done.stdout
    assert "other: 3" in done.stdout
    assert "none of the nodes of this job: n3 n9 m1" in done.stderr


def manifest(text: str) -> dict[str, Any]:
    return dict(YAML(typ="safe", pure=True).load(text))


def test_the_jobset_has_a_replicated_job_of_each_kind(plan: Plan) -> None:
    job = manifest(files(plan, "kubernetes", LaunchSettings(image="example.com/x:1"))["job.yaml"])
    jobs = job["spec"]["replicatedJobs"]
    assert [each["name"] for each in jobs] == [pool.name for pool in plan.problem.cluster.pools]
    before = 0
    for each, (nodes, count) in zip(jobs, kinds(plan), strict=True):
        spec = each["template"]["spec"]
        pod = spec["template"]["spec"]
        assert (spec["parallelism"], spec["completions"]) == (nodes, nodes)
        assert pod["nodeSelector"] == {NODE_LABEL: each["name"]}
        assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": str(count)}
        words = pod["containers"][0]["command"][-1]
        rank = subprocess.run(
            ["bash", "-c", words[words.index("NODE_RANK=") :].replace("exec bash launch.sh", "printenv NODE_RANK")],
            env={"JOB_COMPLETION_INDEX": "1", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert int(rank) == before + 1
        [master] = [one["value"] for one in pod["containers"][0]["env"] if one["name"] == "MASTER_ADDR"]
        assert master.startswith(f"{job['metadata']['name']}-{jobs[0]['name']}-0-0.")
        before += nodes


def test_ray_reserves_bundles_by_the_resource_of_each_kind(plan: Plan, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    from planner.backends.checking.launchers.ray_worker import entrypoint, load, placement

    made = files(plan, "ray", LaunchSettings(image="example.com/x:1"))
    job = json.loads(made["launch.json"])
    driver = load("unequal_ray_driver", made["ray_driver.py"], str(tmp_path))
    assert placement(driver, job) == {"bundles": 3, "devices": 7}, ray.__version__
    names = [pool.name for pool in plan.problem.cluster.pools for _ in range(pool.num_nodes)]
    counts = [devices for nodes, devices in kinds(plan) for _ in range(nodes)]
    assert driver.bundles(job, []) == [
        {"CPU": 1, "GPU": count, f"pool-{name}": 0.001} for name, count in zip(names, counts, strict=True)
    ]
    places = [{"host": host, "machine": "", "address": ""} for host in ("n10", "n2", "n1")]
    nodes = [count for count, _ in kinds(plan)]
    order = driver.order(places, [], nodes)
    assert sorted(order[: nodes[0]]) == list(range(nodes[0])), "nodes of the first kind have the first ranks"
    workers = manifest(made["rayjob.yaml"])["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    for group, (count, _) in zip(workers, kinds(plan), strict=True):
        assert group["replicas"] == count
        said = json.loads(json.loads(group["rayStartParams"]["resources"]))
        assert said == {f"pool-{group['groupName']}": 1}
        assert group["template"]["spec"]["nodeSelector"] == {NODE_LABEL: group["groupName"]}
    assert entrypoint(made["rayjob.yaml"], "ray_driver.py") == ""


def test_a_node_of_which_a_part_is_used_is_a_kind_of_its_own() -> None:
    clusters = devices("slow", 2, 2.0, nodes=2), devices("fast", 4, 1.0)
    found = launchable_plan(plan_of(question(*clusters, layers=12, pp=7, micro_batch_size=1)))
    assert sorted(kinds(found)) == [(1, 1), (1, 2), (1, 4)]
    spec = components(files(found, "slurm")["job.sbatch"])
    assert len(spec) == 3
    [whole, part] = [group for group in node_groups(found.problem.cluster) if group.pool == "slow"]
    assert (part.devices_per_node, part.first_node) == (1, whole.first_node + 1)


def test_names_of_kinds_are_labels_and_unlike() -> None:
    pools = [devices(name, 2, 1.0).pools[0] for name in ("DGX A100 80 GB (rack 1)", "dgx-a100-80-gb-rack-2", "8xL40S")]
    named = [pool.model_copy(update={"name": pool.device.name}) for pool in pools]
    cluster = Cluster(name="three", pools=(*named, named[0].model_copy(update={"devices_per_node": 1})))
    groups = node_groups(cluster)
    assert len({group.name for group in groups}) == 4
    assert groups[0].pool == groups[3].pool
    assert all(len(group.name) <= 15 and group.name[0].isalpha() for group in groups)
    assert [group.first_node for group in groups] == [0, 1, 2, 3]
