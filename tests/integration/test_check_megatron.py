"""``meshwright check`` asks the real Megatron-LM about a folder; a hand-edited one fails in Megatron's words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.backends.checking.emitted import read_folder
from planner.backends.checking.environment import is_ready
from planner.backends.checking.worker import Worker
from planner.backends.emission.write import write_emission
from planner.backends.folders.catalogue import parse_requirement
from planner.backends.megatron.validator import request
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.command_line import run_here
from tests.emitter import emitter
from tests.install_validators import OTHER_RELEASES
from tests.plan_factory import make_cluster, make_plan
from tests.sampling import drawn
from tests.validators import SharedWorkers, worker_or_skip

emit = emitter("megatron")

pytestmark = pytest.mark.slow
DEFAULT = "megatron-core==0.19.2"
INTERLEAVED = Strategy(
    tp=4, sp=True, pp=4, vpp=2, schedule="interleaved", microbatch_group_size=4, dp_shard=2, num_microbatches=8
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    worker_or_skip("megatron-core")
    return write_emission(emit(make_plan(INTERLEAVED, backend="megatron"), "torchrun"), tmp_path / "out")


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def verdict(*words: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and what megatron-core said about the folder."""
    ran = run_here("check", *words, "-o", "json")
    said = [each for each in ran.json()["validators"] if each["name"] == "megatron-core"]
    assert len(said) == 1, ran.stdout
    return ran.exit_code, said[0]


def test_an_emitted_folder_is_accepted(folder: Path) -> None:
    code, said = verdict(str(folder), "--with", DEFAULT)
    assert (code, said["accepted"], said["version"]) == (0, True, "0.19.2"), said
    assert said["facts"]["layers_per_chunk"] == [1] * 8
    assert (said["facts"]["dp"], said["facts"]["num_microbatches"]) == (2, 8)


def test_four_bit_products_are_accepted(tmp_path: Path, shared_workers: SharedWorkers) -> None:
    worker = shared_workers.worker("megatron-core")
    said = {"global_batch_size": 8, "sequence_length": 4096, "precision": "fp8", "fp8_recipe": "nvfp4"}
    plan = make_plan(
        Strategy(dp_shard=8),
        backend="megatron",
        cluster=make_cluster(8, architecture="blackwell"),
        workload=Workload.model_validate(said),
    )
    folder = write_emission(emit(plan, "torchrun"), tmp_path / "out")
    assert "--fp4-format e2m1" in (folder / "megatron.args").read_text()
    found = worker.ask(request(read_folder(folder)))
    assert found.accepted, found


EDITS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a misspelt flag": (
        lambda folder: edit(folder, "megatron.args", "--sequence-parallel", "--sequence-paralel"),
        "parse",
        "unrecognized arguments: --sequence-paralel",
    ),
    "a flag without its companion": (
        lambda folder: edit(folder, "megatron.args", "--use-distributed-optimizer\n", ""),
        "validate",
        "--overlap-param-gather",
    ),
    "a degree that does not divide the heads": (
        lambda folder: edit(folder, "megatron.args", "--num-attention-heads 16", "--num-attention-heads 18"),
        "config",
        "must be a multiple of tensor_model_parallel_size",
    ),
    "too few micro-batches": (
        lambda folder: edit(folder, "megatron.args", "--global-batch-size 16", "--global-batch-size 12"),
        "schedule",
        "remainder of M",
    ),
    "another number of nodes": (
        lambda folder: edit(folder, "launch.sh", "NUM_NODES=4", "NUM_NODES=5"),
        "validate",
        "world size (40)",
    ),
    "a variable that is no longer exported": (
        lambda folder: edit(folder, "launch.sh", "export CUDA_DEVICE_MAX_CONNECTIONS=1\n", ""),
        "validate",
        "CUDA_DEVICE_MAX_CONNECTIONS",
    ),
    "data arguments that Megatron does not know": (
        lambda folder: edit(folder, "data.args", "--eval-iters 0", "--evaluation-iters 0"),
        "parse",
        "--evaluation-iters",
    ),
}


def test_edited_folders_are_refused_in_megatrons_words(folder: Path, shared_workers: SharedWorkers) -> None:
    plan_files = {path.name: path.read_text() for path in folder.iterdir()}
    worker = shared_workers.worker("megatron-core")
    for name, (spoil, stage, words) in EDITS.items():
        for file, text in plan_files.items():
            (folder / file).write_text(text)
        spoil(folder)
        said = worker.ask(request(read_folder(folder)))
        assert (name, said.accepted, said.stage) == (name, False, stage), said
        assert words in said.message, name


def test_check_names_the_edit_and_megatrons_refusal(folder: Path) -> None:
    edit(folder, "megatron.args", "--sequence-parallel", "--sequence-paralel")
    ran = run_here("check", str(folder), "--with", DEFAULT)
    assert ran.exit_code == 8
    assert "--sequence-parallel: absent, emitted as set" in ran.stdout
    assert "megatron-core 0.19.2 refuses (parse): unrecognized arguments: --sequence-paralel" in ran.stdout


OTHERS = [each for each in OTHER_RELEASES if each.startswith("megatron-core")]


@pytest.mark.parametrize("requirement", drawn(OTHERS, 1))
def test_other_releases_answer_where_they_are_installed(folder: Path, requirement: str) -> None:
    validator, version = parse_requirement(requirement)
    if not is_ready(validator, version):
        pytest.skip(f"validator {requirement} is not installed: python -m tests.install_validators {requirement}")
    with Worker(validator, version) as worker:
        asked = request(read_folder(folder))
        assert worker.ask(asked).accepted
        refused = worker.ask({**asked, "arguments": [*asked["arguments"], "--no-such-flag"]})
        assert (refused.stage, refused.message) == ("parse", "unrecognized arguments: --no-such-flag")
