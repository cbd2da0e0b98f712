"""Published runs can be asked about exactly as they were run: what is given is held, full recompute is of all layers.

What is compared with the measured step are ratios within a factor of two: an estimate in seconds instead of minutes, or
of a third of the layers, would be far outside; how good the predictions are is told by ``meshwright accuracy``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.model.load import load_model
from planner.model.spec import ModelSpec
from planner.plan import Plan
from planner.plan_relief import relieves_every_layer
from planner.problem import Constraints, OptimizerName, Precision, Problem, Workload
from planner.relief_layers import relief_layers
from planner.search.estimate import estimate
from planner.strategy_text import complete_strategy, parse_assignments
from profiles.catalogue import load_cluster
from tests.command_line import run_here

NEMOTRON = """
name: nemotron-4-340b
num_layers: 96
hidden_size: 18432
num_heads: 96
num_kv_heads: 8
intermediate_size: 73728
vocab_size: 256000
max_sequence_length: 4096
mlp: squared_relu
norm: layer
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A published run: as it is asked about, and the step that its source measured (None = it states none)."""

    model: str
    cluster: str
    devices: int
    batch: int
    sequence: int
    precision: Precision
    backend: str
    strategy: str
    measured_s: float | None = None
    optimizer: OptimizerName = "adam"


TURING = ("gpt-530b", "dgx-a100-80g")
GPT3 = ("gpt3-175b", "dgx-a100-80g")
FULL = {
    "mt-nlg-530b-280": Run(
        *TURING, 2240, 1920, 2048, "bf16", "megatron-deepspeed", "tp=8,pp=35,dp=8,recompute=full", 60.1
    ),
    "mt-nlg-530b-350": Run(
        *TURING, 2800, 1920, 2048, "bf16", "megatron-deepspeed", "tp=8,pp=35,dp=10,recompute=full", 50.2
    ),
    "mt-nlg-530b-420": Run(
        *TURING, 3360, 1920, 2048, "bf16", "megatron-deepspeed", "tp=8,pp=35,dp=12,recompute=full", 44.4
    ),
    "sc21-175b-384": Run(*GPT3, 384, 1536, 2048, "fp16", "megatron==2.5", "tp=8,pp=12,zero=0,recompute=full", 76.8),
    "sc21-175b-1536": Run(*GPT3, 1536, 1536, 2048, "fp16", "megatron==2.5", "tp=8,pp=12,zero=0,recompute=full", 20.8),
    "sc21-1t": Run(
        "gpt-1t", "dgx-a100-80g", 3072, 3072, 2048, "fp16", "megatron==2.5", "tp=8,pp=64,zero=0,recompute=full", 102.63
    ),
    "bloom-176b": Run(
        *("bloom-176b", "dgx-a100-80g", 384, 2048, 2048, "bf16", "megatron-deepspeed"),
        "tp=4,pp=12,dp=8,mbs=2,zero=1,recompute=full",
        104.7,
    ),
}
"""MT-NLG: arXiv 2201.11990, section 2.4; SC'21: arXiv 2104.04473, tables 1 and 2; BLOOM: bigscience tr11-176B-ml."""
OTHERS = {
    # Optimizer states and gradients are sharded (arXiv 2407.21783, section 3.3.2): ZeRO-2, no recompute, interleaved.
    "llama-3-405b": Run(
        *("llama-3.1-405b", "dgx-h100", 16384, 2048, 8192, "bf16", "megatron"),
        "tp=8,pp=16,dp=128,zero=2,vpp=4,recompute=none",
        6.46,
    ),
    # arXiv 2406.11704, table 2.
    "nemotron-4-340b": Run(
        "nemotron", "dgx-h100", 6144, 2304, 4096, "bf16", "megatron", "tp=8,pp=12,vpp=8,dp=64,zero=1", 8.0
    ),
    # DualPipe keeps twice the parameters; its V-shaped form is the nearest schedule there is.
    "deepseek-v3": Run(
        *("deepseek-v3", "dgx-h800", 2048, 15360, 4096, "fp8", "unrestricted"),
        "pp=16,ep=64,dp=128,zero=1,schedule=dualpipev,overlap_ep=true,recompute_modules=norm+activation",
        19.9,
        "adam_bf16_states",
    ),
}


def _problem(run: Run, folder: Path) -> Problem:
    return Problem(
        model=_model(run, folder),
        cluster=load_cluster(run.cluster, run.devices),
        workload=Workload(
            global_batch_size=run.batch,
            sequence_length=run.sequence,
            precision=run.precision,
            optimizer=run.optimizer,
        ),
        constraints=Constraints(backends=(run.backend,)),
    )


def _model(run: Run, folder: Path) -> ModelSpec:
    if run.model != "nemotron":
        return load_model(run.model)
    path = folder / "nemotron-4-340b.yaml"
    path.write_text(NEMOTRON)
    return load_model(str(path))


def _estimated(run: Run, folder: Path) -> tuple[Plan, dict[str, Any]]:
    values = parse_assignments([run.strategy], "--strategy")
    strategy, _ = complete_strategy(values, run.devices, run.batch)
    return estimate(_problem(run, folder), strategy, None, values, relief_layers(values)), values


def _held(plan: Plan, values: dict[str, Any]) -> None:
    """Every given field is in the plan, and said to be given."""
    assert plan.origins is not None
    for name, value in values.items():
        has = plan.strategy[name]
        assert ("+".join(has) if isinstance(has, list) else has) == value
        assert plan.origins.given[name] == value
    if "pp" in values:
        assert len(plan.stages) == values["pp"]


@pytest.mark.parametrize("name", FULL)
def test_a_published_run_with_full_recompute_is_stated_exactly(name: str, tmp_path: Path) -> None:
    run = FULL[name]
    plan, values = _estimated(run, tmp_path)
    _held(plan, values)
    assert plan.status == "feasible"
    assert relieves_every_layer(plan)
    # A third of the backward and forward work is the replay.
    assert 0.2 < plan.breakdown_s["recompute"] / plan.breakdown_s["compute"] < 0.4
    assert run.measured_s is not None
    assert 0.5 < plan.step_time_s / run.measured_s < 2.0


@pytest.mark.parametrize("name", OTHERS)
def test_a_published_run_without_full_recompute_is_stated_exactly(name: str, tmp_path: Path) -> None:
    run = OTHERS[name]
    plan, values = _estimated(run, tmp_path)
    _held(plan, values)
    if run.measured_s is not None:
        assert 0.5 < plan.step_time_s / run.measured_s < 2.0


@pytest.mark.parametrize("name", ["llama-3-405b", "nemotron-4-340b"])
def test_a_published_run_that_fitted_is_judged_to_fit(name: str, tmp_path: Path) -> None:
    plan, _ = _estimated(OTHERS[name], tmp_path)
    assert plan.status == "feasible"


def test_the_command_says_what_it_held() -> None:
    run = FULL["mt-nlg-530b-280"]
    words = ("estimate", "--model", run.model, "--cluster", run.cluster, "--devices", str(run.devices))
    asked = (*words, "--global-batch-size", str(run.batch), "--sequence-length", str(run.sequence))
    ran = run_here(*asked, "--backend", run.backend, "--strategy", run.strategy, "--output", "json")
    assert ran.exit_code == 0, ran.stderr
    plan = ran.json()
    assert plan["origins"]["given"] == {
        "tp": 8, "pp": 35, "dp": 8, "recompute": "full", "relieved_layers": ",".join(["3"] * 35)
    }  # fmt: skip
    assert plan["origins"]["chosen"] == {"layers": ",".join(["3"] * 35)}
    assert {stage["recompute"]["num_layers_per_chunk"][0] for stage in plan["stages"]} == {3}
    table = run_here(*asked, "--backend", run.backend, "--strategy", run.strategy).stdout
    assert "Held and filled in" in table
    assert "recompute=full" in table
