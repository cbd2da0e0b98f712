"""Launch files against the launchers' own validators: all are taken, and broken ones are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.backends.checking.emitted import EmittedFolder, read_folder
from planner.backends.checking.worker import Worker
from planner.backends.emission.layout import layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.catalogue import validator, validators
from planner.backends.folders.emit import emit_for, emit_plan
from planner.backends.folders.report import Checker
from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import LAUNCHERS
from planner.backends.launch.settings import LaunchSettings
from planner.backends.registry import files_of, software
from planner.errors import BackEndRefused
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan
from tests.plan_strategies import plans
from tests.validators import worker_or_skip

ASKED = {
    "torchrun": ("torchrun",),
    "slurm": ("torchrun", "sbatch"),
    "kubernetes": ("torchrun", "kubernetes-validate", "kubeflow-trainer-api"),
    "trainjob": ("torchrun", "kubernetes-validate", "kubeflow-trainer-api"),
    "pytorchjob": ("torchrun", "kubernetes-validate", "kubeflow-training"),
    "volcano": ("torchrun", "kubernetes-validate"),
    "mpirun": ("mpirun",),
    "mpijob": ("mpirun", "kubernetes-validate"),
    "ray": ("torchrun", "kubernetes-validate", "ray"),
    "ray-train": ("ray",),
}
LAUNCHER_VALIDATORS = (
    "torchrun",
    "sbatch",
    "mpirun",
    "kubernetes-validate",
    "kubeflow-trainer-api",
    "kubeflow-training",
)
HOSTS = LaunchSettings(hosts=("n2", "n10", "n3", "n4"), image="example.com/x:1", namespace="team")
PLACED = LaunchSettings(files_claim="plans", network_tier=2, topology_label="example.com/rack", switches=1)


def sixteen(backend: str) -> Plan:
    # Launchers do not look at overlap; DeepSpeed overlaps nothing under ZeRO-1.
    overlaps = backend != "deepspeed"
    strategy = Strategy(tp=2, dp_shard=8, overlap_grad_reduce=overlaps, overlap_param_gather=overlaps)
    return make_plan(strategy, cluster=make_cluster(16), backend=backend)


def folder_of(tmp_path: Path, launcher: LauncherName, settings: LaunchSettings = LaunchSettings()) -> EmittedFolder:  # noqa: B008
    emission = emit_plan(sixteen("native"), launcher, settings)
    return read_folder(write_emission(emission, tmp_path / "out"))


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    """All validators, warm from one back-end to the next."""
    for names in ASKED.values():
        for name in names:
            worker_or_skip(name).close()
    with Checker() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "places"),
    [("native", (LaunchSettings(), HOSTS, PLACED)), ("megatron", (HOSTS,)), ("deepspeed", (LaunchSettings(),))],
)
def test_every_launcher_of_every_back_end_is_taken(
    checker: Checker, tmp_path: Path, backend: str, places: tuple[LaunchSettings, ...]
) -> None:
    for number, (launcher, names) in enumerate(ASKED.items()):
        for number_of_place, place in enumerate(places):
            try:
                emission = emit_plan(sixteen(backend), launcher, place)  # type: ignore[arg-type]
            except BackEndRefused:
                assert (launcher, place) == ("mpijob", HOSTS)
                continue
            folder = read_folder(write_emission(emission, tmp_path / f"{number}-{number_of_place}"))
            report = checker.check(folder)
            assert set(names) <= {verdict.validator for verdict in report.verdicts}, (launcher, report.not_asked)
            assert report.ok, (launcher, place, report.findings, report.verdicts)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans(), launcher=st.sampled_from(sorted(LAUNCHERS)), backend=st.sampled_from(["native", "megatron"]))
def test_random_plans_are_taken_and_read_back(
    workers: dict[str, Worker],
    tmp_path_factory: pytest.TempPathFactory,
    plan: Plan,
    launcher: LauncherName,
    backend: str,
) -> None:
    try:
        emission = emit_for(software(backend), plan, launcher)
    except BackEndRefused:
        return
    strategy, layout = files_of(software(backend)).read(emission.files)
    assert strategy == emission.plan.chosen()
    assert layout == layout_of(emission.plan)
    folder = read_folder(write_emission(emission, tmp_path_factory.mktemp("random") / "out"))
    for name, worker in workers.items():
        if validator(name).applies(folder):
            verdict = worker.ask(validator(name).request(folder))
            assert verdict.accepted, (launcher, verdict)


@pytest.fixture(scope="module")
def workers() -> Iterator[dict[str, Worker]]:
    """Warm workers for all but Ray, which is slow to import."""
    made = {name: worker_or_skip(name) for name in LAUNCHER_VALIDATORS}
    yield made
    for worker in made.values():
        worker.close()


BROKEN: tuple[tuple[str, LauncherName, str, str, str, str], ...] = (
    ("kubernetes-validate", "kubernetes", "job.yaml", "resources:", "resource:", "resource"),
    ("kubernetes-validate", "kubernetes", "job.yaml", 'gpu: "8"', 'gpu: "16"', "a node has 8"),
    ("kubernetes-validate", "kubernetes", "files.yaml", "data:", "dat:", "dat"),
    ("kubernetes-validate", "volcano", "job.yaml", "minAvailable: 2", "minAvailable: two", "minAvailable"),
    ("kubernetes-validate", "volcano", "job.yaml", "schedulerName", "schedulername", "schedulername"),
    ("kubernetes-validate", "volcano", "job.yaml", "event: PodFailed", "event: JobUnknown", "policies"),
    ("kubernetes-validate", "volcano", "job.yaml", "action: CompleteJob", "action: SyncJob", "policies"),
    ("kubernetes-validate", "mpijob", "job.yaml", "restartPolicy: Never", "restartPolicy: ExitCode", "ExitCode"),
    ("kubernetes-validate", "ray", "rayjob.yaml", "backoffLimit: 0", "backOffLimit: 0", "backOffLimit"),
    ("kubernetes-validate", "mpijob", "job.yaml", "slotsPerWorker: 8", 'slotsPerWorker: "8"', "slotsPerWorker"),
    ("kubernetes-validate", "ray", "rayjob.yaml", "minReplicas", "minReplica", "minReplica"),
    ("kubernetes-validate", "ray", "rayjob.yaml", "medium: Memory", "medium: [Memory]", "medium"),
    ("kubernetes-validate", "trainjob", "job.yaml", "kind: TrainJob", "kind: [", "ParserError"),
    ("kubeflow-trainer-api", "kubernetes", "job.yaml", "replicas: 1", "replicas: one", "replicas"),
    ("kubeflow-trainer-api", "kubernetes", "job.yaml", "failurePolicy", "failurepolicy", "failurepolicy is not known"),
    ("kubeflow-trainer-api", "trainjob", "job.yaml", "numNodes: 2", 'numNodes: "2"', "numNodes"),
    ("kubeflow-trainer-api", "trainjob", "job.yaml", "numProcPerNode", "procsPerNode", "procsPerNode is not known"),
    ("kubeflow-trainer-api", "trainjob", "job.yaml", "runtimeRef", "runtime", "runtime"),
    ("kubeflow-training", "pytorchjob", "job.yaml", "nprocPerNode:", "nProcPerNode:", "nProcPerNode is not known"),
    ("kubeflow-training", "pytorchjob", "job.yaml", "replicas: 1", "replicas: one", "not int"),
    ("kubeflow-training", "pytorchjob", "job.yaml", "- name: pytorch", "- name: train", "no container called pytorch"),
    ("sbatch", "slurm", "job.sbatch", "--gpus-per-node=8", "--gpus-per-node=16", "not available"),
    ("sbatch", "slurm", "job.sbatch", "##SBATCH --partition=", "#SBATCH --partition=gold", "invalid partition"),
    ("sbatch", "slurm", "job.sbatch", "--ntasks-per-node=1", "--tasks-each-node=1", "tasks-each-node"),
    ("sbatch", "slurm", "job.sbatch", "--nodes=2", "--nodes=64", "node"),
    ("mpirun", "mpirun", "launch.sh", "--map-by ppr:8:node", "--map-by node", "rank 1 would run on"),
    ("mpirun", "mpirun", "launch.sh", "--bind-to none", "--bindto none", "bindto"),
    ("mpirun", "mpirun", "launch.sh", "-np 16", "-np 24", ""),
    ("torchrun", "kubernetes", "launch.sh", "--nproc-per-node", "--nprocs-per-node", "nprocs-per-node"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "launcher", "file", "was", "now", "words"), BROKEN)
def test_hand_broken_files_are_refused(
    workers: dict[str, Worker],
    tmp_path: Path,
    name: str,
    launcher: LauncherName,
    file: str,
    was: str,
    now: str,
    words: str,
) -> None:
    folder = folder_of(tmp_path, launcher)
    assert was in folder.files[file]
    broken = EmittedFolder(folder.path, folder.manifest, {**folder.files, file: folder.files[file].replace(was, now)})
    assert workers[name].ask(validator(name).request(folder)).accepted
    verdict = workers[name].ask(validator(name).request(broken))
    assert not verdict.accepted
    assert words in verdict.message


def test_a_mount_of_no_volume_is_refused(workers: dict[str, Worker], tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "kubernetes")
    text = folder.files["job.yaml"].replace("- name: shared-memory", "- name: other", 1)
    files = {**folder.files, "job.yaml": text}
    request = validator("kubernetes-validate").request(EmittedFolder(folder.path, folder.manifest, files))
    verdict = workers["kubernetes-validate"].ask(request)
    assert not verdict.accepted
    assert "mounts 'other', which is no volume" in verdict.message


def test_a_reserved_variable_in_a_trainjob_is_refused(workers: dict[str, Worker], tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "trainjob", HOSTS)
    text = folder.files["job.yaml"].replace("- name: NODE_NAME", "- name: PET_NNODES")
    verdict = workers["kubeflow-trainer-api"].ask({"manifest": text})
    assert (verdict.accepted, verdict.stage) == (False, "webhook")


def test_hosts_that_the_cluster_lacks_are_refused_by_slurm(workers: dict[str, Worker], tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "slurm", HOSTS)
    request = dict(validator("sbatch").request(folder))
    request["script"] = request["script"].replace("n2,n10", "n2,n99")
    verdict = workers["sbatch"].ask(request)
    assert not verdict.accepted
    assert "node name" in verdict.message


@pytest.mark.slow
def test_ray_refuses_what_does_not_fit(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "ray")
    with worker_or_skip("ray") as worker:
        request = dict(validator("ray").request(folder))
        assert worker.ask(request).facts == {"bundles": 2, "devices": 16}
        fewer = worker.ask({**request, "job": request["job"].replace('"num_nodes": 2', '"num_nodes": 1')})
        assert "8 devices for 16 ranks" in fewer.message
        none = worker.ask({**request, "job": request["job"].replace('"devices_per_node": 8', '"devices_per_node": 0')})
        assert not none.accepted
        moved = request["manifest"].replace("/plan-files/ray_driver.py", "/elsewhere/ray_driver.py")
        assert worker.ask({**request, "manifest": moved}).stage == "entrypoint"
        train = folder_of(tmp_path / "train", "ray-train")
        verdict = worker.ask(validator("ray").request(train))
        assert verdict.facts == {"workers": 16, "devices": 16}


def test_all_validators_of_launchers_are_in_the_catalogue() -> None:
    assert {name for names in ASKED.values() for name in names} <= set(validators())
