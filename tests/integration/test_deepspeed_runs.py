"""The emitted files train: ``launch.sh`` as it is, two CPU processes, every layout with the same losses.

Samples and initial weights do not depend on the mesh, so all layouts of one model follow one curve, up to bf16.  Plain
gradient descent makes the curve follow the gradients' scale, which Adam hides; only its learning rate is edited.

Importing takes most of a launch, so ranks are forked from an interpreter that has imported; two layouts are started
with the real one as well.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.emission.write import write_emission
from planner.model.hf_config import model_from_hf_config
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.rank_launch import cpu_environment, launched
from tests.sampling import drawn
from tests.warm_python.interpreters import DEEPSPEED, WarmPythons

emit = emitter("deepspeed")

if any(importlib.util.find_spec(name) is None for name in ("deepspeed", "torch", "transformers")):
    pytest.skip(f"deepspeed=={DEEPSPEED_VERSION}, torch and transformers are not installed", allow_module_level=True)

pytestmark = pytest.mark.slow

SAMPLES, STEPS = 8, 3
TOLERANCE = 0.002
TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
    "max_position_embeddings": 128,
}
DATA = Strategy(dp_shard=2, num_microbatches=4, overlap_grad_reduce=False, overlap_param_gather=False)
ONE_SAMPLE = replace(DATA, dp_shard=1, num_microbatches=8)


@dataclass(frozen=True)
class Run:
    """One layout of one model."""

    strategy: Strategy
    family: str = "llama"
    gradient_dtype: str = "bf16"
    precision: str = "bf16"
    layers: tuple[int, ...] | None = None
    recompute: tuple[int, ...] | None = None
    optimizer: str = "sgd"
    learning_rate: float | None = 1.0
    """None = as emitted."""
    single_precision: bool = False
    """Plans are bf16 or fp16; with this edit only the order of sums is left to differ."""
    real_interpreter: bool = False
    """Nothing is imported before the script asks for it."""


Losses = Callable[[Run], tuple[float, ...]]


def tiny_model(family: str) -> ModelSpec:
    """A model of a few thousand parameters; two layers of it are enough for two stages of different size."""
    config = TINY | {"model_type": family.removesuffix("-tied"), "tie_word_embeddings": family.endswith("-tied")}
    if family == "mixtral":
        config |= {"num_local_experts": 4, "num_experts_per_tok": 2}
    return model_from_hf_config(config, f"tiny-{family}", "test")


def emitted(run: Run, path: Path) -> Path:
    """The folder of one run."""
    workload = Workload.model_validate(
        {
            "global_batch_size": SAMPLES,
            "sequence_length": 32,
            "gradient_dtype": run.gradient_dtype,
            "precision": run.precision,
            "optimizer": run.optimizer,
        }
    )
    plan = make_plan(
        run.strategy,
        tiny_model(run.family),
        workload=workload,
        layers_per_chunk=run.layers,
        recompute_layers_per_chunk=run.recompute,
    )
    emission = emit(plan, "torchrun")
    write_emission(emission, path)
    config = json.loads((path / "ds_config.json").read_text())
    if run.learning_rate is not None:
        config["optimizer"]["params"]["lr"] = run.learning_rate
    if run.single_precision:
        for key in (run.precision, "data_types", "communication_data_type"):
            del config[key]
        training = json.loads((path / "training.json").read_text())
        (path / "training.json").write_text(json.dumps(training | {"dtype": "float32"}))
    (path / "ds_config.json").write_text(json.dumps(config))
    return path


def printed_losses(path: Path, environment: dict[str, str]) -> tuple[float, ...]:
    """Start ``launch.sh`` and read what it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = {"STEPS": str(STEPS), "MASTER_PORT": str(port)}
    done = launched(["bash", "launch.sh"], environment | launch, cwd=path, timeout_s=600)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("step ")]
    assert [line[:2] for line in lines] == [["step", str(step + 1)] for step in range(STEPS)]
    return tuple(float(line[3]) for line in lines)


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons) -> Losses:
    """The losses of a run, each run started once."""
    directory = tmp_path_factory.mktemp("deepspeed")
    real = cpu_environment(DS_ACCELERATOR="cpu")
    real["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{real['PATH']}"
    warm = warm_pythons.python(DEEPSPEED, real).found_by(real)
    found: dict[Run, tuple[float, ...]] = {}

    def losses_of(run: Run) -> tuple[float, ...]:
        if run not in found:
            path = emitted(run, directory / f"run{len(found)}")
            found[run] = printed_losses(path, real if run.real_interpreter else warm)
        return found[run]

    return losses_of


REFERENCE = Run(DATA)
SAME_AS_LLAMA = {
    "zero 0": Run(replace(DATA, zero_stage=0)),
    "zero 3, three layers recomputed": Run(replace(DATA, zero_stage=3, recompute="full"), recompute=(3,)),
    "pipeline of 1 and 3 layers, one recomputed each": Run(
        replace(ONE_SAMPLE, pp=2, recompute="full"), layers=(1, 3), recompute=(1, 1)
    ),
    "dualpipev": Run(replace(ONE_SAMPLE, pp=2, vpp=2, schedule="dualpipev"), layers=(1, 1, 2, 0)),
    "autotp, zero 3": Run(replace(ONE_SAMPLE, tp=2, zero_stage=3)),
    "ulysses, zero 3": Run(replace(ONE_SAMPLE, cp=2, cp_kind="all_to_all", zero_stage=3)),
}
ADAM = Run(DATA, gradient_dtype="fp32", optimizer="adam", learning_rate=None)
ADAM_PIPELINE = replace(ADAM, strategy=replace(ONE_SAMPLE, pp=2))
OTHERS = {
    "tied pipeline": (
        Run(DATA, "qwen3-tied", learning_rate=0.3),
        Run(replace(ONE_SAMPLE, pp=2), "qwen3-tied", learning_rate=0.3),
    ),
    "experts, zero 3": (Run(DATA, "mixtral"), Run(replace(DATA, ep=2, zero_stage=3, recompute="full"), "mixtral")),
    "adam, pipeline": (ADAM, ADAM_PIPELINE),
}


def test_training_moves_the_loss_further_than_the_tolerance(losses: Losses) -> None:
    still, moved = losses(replace(REFERENCE, learning_rate=0.0)), losses(REFERENCE)
    assert all(math.isfinite(loss) for loss in moved)
    assert moved[0] == pytest.approx(still[0], abs=1e-4)
    assert max(abs(a - b) for a, b in zip(moved, still, strict=True)) > 10 * TOLERANCE


@pytest.mark.parametrize("name", drawn(list(SAME_AS_LLAMA), 3))
def test_every_layout_follows_the_same_curve(name: str, losses: Losses) -> None:
    reference, other = losses(REFERENCE), losses(SAME_AS_LLAMA[name])
    assert other == pytest.approx(reference, abs=TOLERANCE)


@pytest.mark.parametrize("name", drawn(list(OTHERS), 2))
def test_other_models_follow_their_own_curve(name: str, losses: Losses) -> None:
    first, second = OTHERS[name]
    assert losses(second) == pytest.approx(losses(first), abs=TOLERANCE)


ONE_PROCESS = Run(replace(DATA, dp_shard=1, num_microbatches=8, zero_stage=0), single_precision=True)
PIPELINE = replace(ONE_SAMPLE, pp=2)
WITH_PIPELINE = {0: "fp16", 1: "bf16"}
"""Precision of a plan with a pipeline by ZeRO stage: in bf16 without ZeRO DeepSpeed shards states all the same."""
SAME_AS_ONE_PROCESS = {
    **{f"zero {stage}": Run(replace(DATA, zero_stage=stage), single_precision=True) for stage in range(4)},
    **{
        f"autotp, zero {stage}": Run(replace(ONE_SAMPLE, tp=2, zero_stage=stage), single_precision=True)
        for stage in (0, 1, 3)
    },
    **{
        f"pipeline, zero {stage}": Run(
            replace(PIPELINE, zero_stage=stage), layers=(1, 3), single_precision=True, precision=WITH_PIPELINE[stage]
        )
        for stage in (0, 1)
    },
}
"""Gradients are clipped from the first step on, so a norm that is not the whole model's shows in the second loss."""
TIED_ALONE = replace(ONE_PROCESS, family="qwen3-tied", learning_rate=0.3)


ALONE = drawn(list(SAME_AS_ONE_PROCESS), 5, kind=lambda name: name.partition(",")[0].split()[0])


@pytest.mark.parametrize("name", ALONE)
def test_in_single_precision_every_layout_is_one_process(name: str, losses: Losses) -> None:
    assert losses(SAME_AS_ONE_PROCESS[name]) == pytest.approx(losses(ONE_PROCESS), rel=1e-5)


@pytest.mark.parametrize("zero_stage", drawn([0, 1], 1))
def test_a_tied_weight_on_two_stages_is_one_weight(zero_stage: int, losses: Losses) -> None:
    strategy = replace(PIPELINE, zero_stage=zero_stage, dp_shard=2, num_microbatches=4)
    ranks = losses(replace(TIED_ALONE, strategy=strategy, precision=WITH_PIPELINE[zero_stage]))
    assert ranks == pytest.approx(losses(TIED_ALONE), rel=1e-5)


def test_zero_0_and_zero_1_are_equal(losses: Losses) -> None:
    assert losses(SAME_AS_LLAMA["zero 0"]) == pytest.approx(losses(REFERENCE), abs=2e-4)


@pytest.mark.parametrize("name", drawn(["zero 1", "pipeline, zero 1"], 1))
def test_the_real_interpreter_trains_the_same(name: str, losses: Losses) -> None:
    run = SAME_AS_ONE_PROCESS[name]
    assert losses(replace(run, real_interpreter=True)) == pytest.approx(losses(run), rel=1e-6)
