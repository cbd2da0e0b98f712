"""Launches of verl: said and read back, refused where verl has no words, composed by verl's own configuration."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.backends.checking.environment import is_ready
from planner.backends.checking.worker import Worker
from planner.errors import DocumentInvalid
from planner.operations.question import model_of
from planner.rl.deployment import RlDeployment, TrainerLayout
from planner.rl.frameworks.verl.check import check_folder
from planner.rl.frameworks.verl.launch import launch_of
from planner.rl.frameworks.verl.overrides import launch_from, overrides_of, words_of
from planner.rl.frameworks.verl.validator import VALIDATOR, request_of
from planner.rl.frameworks.verl.write import verl_folder, words_of_script
from planner.rl.problem import Reward, RlConstraints, RlProblem
from planner.serving.layout import InstanceGroup, InstanceLayout
from tests.unit.rl.rl_questions import rl_problem

ASYNCHRONOUS = RlConstraints(synchrony=("synchronous", "one_step_off", "asynchronous"))
STRATEGY: dict[str, Any] = {
    **{"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "ep": 1, "etp": 1, "sp": False, "dp_shard": 4, "micro_batch_size": 1},
    **{"recompute": "full", "optimizer_offload": False, "activation_offload": False},
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "fsdp2": ({}, {}, {"tp": 1}),
    "ulysses": ({}, {"cp": 2, "dp_shard": 4}, {"tp": 2}),
    "megatron": ({"trainer": "megatron"}, {"tp": 2, "sp": True, "recompute": "none"}, {"tp": 4}),
    "uneven ends": ({"trainer": "megatron", "stage_layers": (3, 5, 5, 3)}, {"tp": 1, "pp": 4}, {"tp": 8}),
    "selective": ({"trainer": "megatron"}, {"tp": 4, "recompute": "selective"}, {"tp": 2, "ep": 2}),
    "split": ({"num_devices": 4, "synchrony": "one_step_off"}, {}, {"tp": 2}),
    "asynchronous": ({"num_devices": 4, "synchrony": "asynchronous", "trainer": "megatron"}, {"tp": 2}, {"tp": 4}),
}


def asked(algorithm: str = "grpo", **changes: Any) -> RlProblem:
    return rl_problem(algorithm=algorithm, constraints=ASYNCHRONOUS, staleness=1.5, mini_batches=4, **changes)


def deployed(name: str) -> RlDeployment:
    said, strategy, layout = CASES[name]
    devices = said.get("num_devices", 8)
    synchrony = said.get("synchrony", "synchronous")
    split = synchrony != "synchronous"
    trainer = TrainerLayout(
        trainer=said.get("trainer", "fsdp2"),
        num_devices=devices,
        strategy={**STRATEGY, **strategy},
        stage_layers=said.get("stage_layers", ()),
    )
    instances = (8 - devices if split else 8) // layout["tp"]
    return RlDeployment(
        placement="split" if split else "colocated",
        synchrony=synchrony,
        trainer=trainer,
        rollout=InstanceGroup(num_instances=instances, layout=InstanceLayout(**layout)),
        weight_sync="sharded" if split else "reshard",
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("algorithm", ["ppo", "grpo", "dapo", "rloo", "reinforce++"])
def test_a_launch_is_read_back(name: str, algorithm: str, tmp_path: Path) -> None:
    launch = launch_of(asked(algorithm), deployed(name), "org/model")
    assert launch_from(words_of(launch)) == launch
    folder = verl_folder(asked(algorithm), deployed(name), "org/model")
    assert launch_from(words_of_script(folder.files["run.sh"])) == launch
    assert RlDeployment.model_validate(json.loads(folder.files["rl-deployment.json"])) == deployed(name)
    workers = yaml.safe_load(folder.files["rayjob.yaml"])["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    container = workers["template"]["spec"]["containers"][0]
    assert workers["replicas"] == 1  # both sides of a split are in the cluster's one node
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert "--nodes=1\n" in folder.files["job.sbatch"]
    assert "--gpus-per-node=8\n" in folder.files["job.sbatch"]


def test_the_scripts_are_shell(tmp_path: Path) -> None:
    folder = verl_folder(asked(), deployed("split"), "org/model")
    for name in ("run.sh", "job.sbatch"):
        subprocess.run(["bash", "-n"], input=folder.files[name], text=True, check=True)


def test_samples_as_long_as_the_limit_fit_a_micro_batch() -> None:
    """verl asserts that a micro-batch holds the longest sample (verl/utils/seqlen_balancing.py)."""
    for name in CASES:
        launch = launch_of(asked(), deployed(name), "org/model")
        assert launch.tokens_per_device * launch.cp >= launch.longest_prompt + launch.longest_response


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("fsdp2", {"mini_batches": 128}, "whole prompts"),
        ("fsdp2", {"algorithm": "distillation"}, "teacher"),
        ("fsdp2", {"over_sampling": 1.5}, "over-sampling"),
        ("fsdp2", {"critic": model_of("llama-3.2-3b")}, "another model"),
        ("fsdp2", {"reward": Reward(kind="model", model=model_of("llama-3.2-1b"))}, "reward model"),
        ("asynchronous", {"constraints": ASYNCHRONOUS.model_copy(update={"partial_rollout": False})}, "go on under"),
    ],
)
def test_what_verl_cannot_say_is_refused(name: str, changes: dict[str, Any], said: str) -> None:
    problem = asked().model_copy(update=changes)
    with pytest.raises(DocumentInvalid, match=said):
        launch_of(problem, deployed(name), "org/model")


@pytest.mark.parametrize(
    ("layout", "said"), [({"tp": 4, "ep": 2}, "expert parallelism"), ({"tp": 2, "pp": 2}, "no pipeline")]
)
def test_engines_that_verl_does_not_run_are_refused(layout: dict[str, int], said: str) -> None:
    group = InstanceGroup(num_instances=2, layout=InstanceLayout(**layout))
    deployment = deployed("fsdp2").model_copy(update={"rollout": group})
    with pytest.raises(DocumentInvalid, match=said):
        launch_of(asked(), deployment, "org/model")


def test_an_override_that_nobody_reads_is_an_error() -> None:
    words = words_of(launch_of(asked(), deployed("fsdp2"), "org/model"))
    with pytest.raises(DocumentInvalid, match=r"not read: trainer\.balance_batch"):
        launch_from([*words, "trainer.balance_batch=False"])


@pytest.mark.budget(8)
def test_verl_composes_every_kind_of_launch() -> None:
    """verl's own tree of configurations: names that it has not are refused by Hydra."""
    if not is_ready(VALIDATOR, VALIDATOR.default_version):
        pytest.skip("verl is not installed: python -m tests.install_validators verl")
    with Worker(VALIDATOR, VALIDATOR.default_version) as worker:
        for name, algorithm in (
            ("ulysses", "ppo"),
            ("uneven ends", "grpo"),
            ("asynchronous", "ppo"),
            ("split", "dapo"),
        ):
            launch = launch_of(asked(algorithm), deployed(name), "org/model")
            verdict = worker.ask(request_of(launch))
            assert verdict.accepted, (name, verdict.message)
            assert verdict.facts["devices"] == 8
        broken = {**request_of(launch), "words": [*words_of(launch), "actor_rollout_ref.actor.no_such=1"]}
        assert worker.ask(broken).stage == "compose"
        fewer = {**request_of(launch), "devices": 16}
        assert "planned are 16" in worker.ask(fewer).message


def test_a_folder_is_checked(tmp_path: Path) -> None:
    from planner.backends.emission.write import write_folder

    folder = verl_folder(asked(), deployed("megatron"), "org/model")
    path = write_folder(folder.files, folder.executables, folder.manifest, tmp_path / "verl")
    assert any("read back: colocated, megatron" in stage for stage in check_folder(path).stages)
    script = (path / "run.sh").read_text("utf-8")
    (path / "run.sh").write_text(script.replace("  algorithm.adv_estimator=grpo", "  algorithm.adv_estimator=magic"))
    with pytest.raises(Exception, match="estimator"):
        check_folder(path)


def test_a_pipeline_of_two_stages_is_said_by_its_first() -> None:
    """Megatron gives the stages between the named ends what these leave: here the last one alone."""
    deployment = deployed("uneven ends")
    two = deployment.trainer.model_copy(update={"stage_layers": (9, 7), "strategy": {**STRATEGY, "pp": 2}})
    launch = launch_of(asked("ppo"), deployment.model_copy(update={"trainer": two}), "org/model")
    assert (launch.first_layers, launch.last_layers) == (9, 0)
    said = overrides_of(launch)
    for role in ("actor_rollout_ref.actor", "critic"):  # a reference follows the actor in verl's own files
        assert said[f"+{role}.megatron.override_transformer_config.num_layers_in_first_pipeline_stage"] == "9"
    assert launch_from(words_of(launch)) == launch


def test_samples_of_the_step_before_are_not_dropped() -> None:
    """verl counts the trainer's own version too (verl/trainer/ppo/v1/replay_buffer.py, ``_stale_terminal_keys``)."""
    one = overrides_of(launch_of(asked(), deployed("split"), "org/model"))
    assert one["trainer.v1.sampler.max_off_policy_threshold"] == "2"
    assert one["trainer.v1.sampler.max_off_policy_strategy"] == "wait"
    assert one["trainer.v1.separate_async.num_warmup_batches"] == "1.0"
    free = overrides_of(launch_of(asked(), deployed("asynchronous"), "org/model"))
    assert free["trainer.v1.sampler.max_off_policy_threshold"] == "8"
    assert free["trainer.v1.separate_async.num_warmup_batches"] == "1.5"


def test_a_part_of_a_node_behind_whole_ones_is_refused() -> None:
    """Ray's pools have nodes of equal size: twelve devices must not become eight."""
    deployment = deployed("split")
    twelve = InstanceGroup(num_instances=6, layout=InstanceLayout(tp=2))
    with pytest.raises(DocumentInvalid, match="12 devices are not nodes of 8"):
        launch_of(asked(), deployment.model_copy(update={"rollout": twelve}), "org/model")


def test_the_job_of_kubernetes_names_no_variable_of_a_shell() -> None:
    folder = verl_folder(asked(), deployed("split"), "org/model")
    line = yaml.safe_load(folder.files["rayjob.yaml"])["spec"]["entrypoint"]
    assert "$" not in line
    assert "data.train_files=/data/train_files.parquet" in line


def test_turns_are_turned_on() -> None:
    said = overrides_of(launch_of(asked(turns={"mean": 4, "tool_latency_s": 1}), deployed("fsdp2"), "org/model"))
    assert said["actor_rollout_ref.rollout.multi_turn.enable"] == "True"
    assert said["actor_rollout_ref.rollout.multi_turn.max_assistant_turns"] == "4"


def test_no_override_is_said_twice() -> None:
    names = list(overrides_of(launch_of(asked("ppo"), deployed("asynchronous"), "org/model")))
    assert len(names) == len(set(names))
