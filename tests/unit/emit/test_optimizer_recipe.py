"""One plan has the same learning rate, betas, decay and clipping in the files of every back-end."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping

import pytest

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.maxtext.read import parse_config
from planner.backends.megatron.arguments import parse_arguments
from planner.backends.megatron_bridge.validator import request as bridge_request
from planner.backends.native.trainer.settings import TrainSettings
from planner.backends.registry import names_with_files
from planner.backends.rules.optimizer_recipe import (
    BETAS,
    CLIP_GRADIENT_NORM,
    EPSILON,
    LEARNING_RATE,
    WEIGHT_DECAY,
    filled,
)
from planner.backends.torchtitan.toml_config import read_config
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.mindspeed_plans import ascend_cluster
from tests.plan_factory import make_model, make_plan

Numbers = tuple[float | None, ...]
"""Learning rate, two betas, epsilon, decay, the norm to clip at; None = the file clips in another way."""
WANTED = (LEARNING_RATE, *BETAS, EPSILON, WEIGHT_DECAY)


def megatron(files: Mapping[str, str]) -> Numbers:
    given = parse_arguments(files["data.args"])
    names = ("--lr", "--adam-beta1", "--adam-beta2", "--adam-eps", "--weight-decay", "--clip-grad")
    return tuple(float(given[name][0]) for name in names)


def bridge(files: Mapping[str, str]) -> Numbers:
    asked = bridge_request(EmittedFolder(None, {"backend": "megatron-bridge"}, dict(files)))["optimizer"]  # type: ignore[arg-type]
    names = ("lr", "adam_beta1", "adam_beta2", "adam_eps", "weight_decay", "clip_grad")
    return tuple(asked[name] for name in names)


def torchtitan(files: Mapping[str, str]) -> Numbers:
    if "titan.toml" in files:
        given = read_config(files["titan.toml"])
        words = given["optimizer"]
        numbers = [words[name] for name in ("lr", "beta1", "beta2", "eps", "weight_decay")]
        return (*numbers, given["training"]["max_norm"])
    calls = {
        ast.unparse(node.func): node
        for node in ast.walk(ast.parse(files["titan_plan.py"]))
        if isinstance(node, ast.Call)
    }
    words = {word.arg: word.value for word in calls["default_adamw"].keywords}
    rate = words["lr"].args[0].args[1]
    clip = next(word.value for word in calls["TrainingConfig"].keywords if word.arg == "max_norm")
    betas, epsilon, decay = (ast.literal_eval(words[name]) for name in ("betas", "eps", "weight_decay"))
    return (float(ast.literal_eval(rate)), *betas, epsilon, decay, ast.literal_eval(clip))


def deepspeed(files: Mapping[str, str]) -> Numbers:
    config = json.loads(files["ds_config.json"])
    words = config["optimizer"]["params"]
    return (words["lr"], *words["betas"], words["eps"], words["weight_decay"], config["gradient_clipping"])


def accelerate(files: Mapping[str, str]) -> Numbers:
    tree = ast.parse(files["train_accelerate.py"])
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "optimizer_of")
    given = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    words = ast.literal_eval(next(node.value for node in given if ast.unparse(node.targets[0]) == "numbers"))
    return (words["lr"], *words["betas"], words["eps"], words["weight_decay"], None)


def maxtext(files: Mapping[str, str]) -> Numbers:
    config = parse_config(files["maxtext.yml"])
    names = ("learning_rate", "adam_b1", "adam_b2", "adam_eps", "adam_weight_decay", "gradient_clipping_threshold")
    return tuple(config[name] for name in names)


def native(files: Mapping[str, str]) -> Numbers:
    """The trainer has them, and a file only where the user says others."""
    assert "--learning-rate" not in " ".join(line for line in files["train.sh"].splitlines() if line[:1] != "#")
    torch = pytest.importorskip("torch", reason="the trainer runs on torch")
    from planner.backends.native.trainer.optimizer import build_optimizer

    settings = TrainSettings()
    group = build_optimizer([torch.nn.Linear(2, 2, bias=False)], settings).param_groups[0]
    numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
    return (*numbers, settings.clip_gradient_norm)


PLAIN = Strategy(dp_shard=8)
READERS: dict[str, tuple[Callable[[Mapping[str, str]], Numbers], Strategy]] = {
    "megatron": (megatron, PLAIN),
    "megatron-bridge": (bridge, PLAIN),
    "mindspeed": (megatron, PLAIN),
    "torchtitan": (torchtitan, Strategy(dp_shard=8, zero_stage=2)),
    "torchtitan==0.2.2": (torchtitan, Strategy(dp_shard=8, zero_stage=2)),
    "deepspeed": (deepspeed, Strategy(dp_shard=8, overlap_grad_reduce=False, overlap_param_gather=False)),
    "accelerate": (accelerate, Strategy(dp_shard=8, zero_stage=3)),
    "maxtext": (maxtext, Strategy(dp_shard=8, zero_stage=3, recompute="full")),
    "native": (native, PLAIN),
}


def plan_for(name: str, strategy: Strategy) -> Plan:
    backend, _, release = name.partition("==")
    cluster = ascend_cluster(8) if backend == "mindspeed" else None
    plan = make_plan(strategy, make_model(), cluster, backend=backend)
    return plan.model_copy(update={"release": release}) if release else plan


def test_every_back_end_that_writes_files_is_asked() -> None:
    assert {name.partition("==")[0] for name in READERS} == set(names_with_files())


@pytest.mark.parametrize("name", READERS)
def test_the_numbers_are_the_declared_ones(name: str) -> None:
    read, strategy = READERS[name]
    backend, _, release = name.partition("==")
    words = (release,) if release else ()
    files = emitter(backend)(plan_for(name, strategy), "torchrun", *words).files
    *numbers, clip = read(files)
    assert tuple(numbers) == WANTED
    assert clip in {CLIP_GRADIENT_NORM, None}
    assert not [path for path, text in files.items() if "@LEARNING_RATE@" in text or "@BETA" in text]


def test_a_template_is_filled() -> None:
    assert filled("@LEARNING_RATE@ @BETAS@ @BETA2@ @EPSILON@") == "1e-4 (0.9, 0.95) 0.95 1e-8"
