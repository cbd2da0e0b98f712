"""Emitted folders train under Megatron-LM, every layout on one curve: real steps on CPU ranks.

Megatron's own schedules and model, in fp32, with initial weights and samples that do not depend on the layout
(planner/backends/megatron/tiny_run_worker.py).  Context parallelism is missing: without Transformer Engine Megatron
has no attention for it (megatron-core 0.19.2 core/transformer/dot_product_attention.py:57); there is none for a CPU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from planner.backends.checking.environment import overlay
from planner.backends.emission.write import write_emission
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_plan
from tests.rank_launch import cpu_environment, launched, torchrun
from tests.round_trip import as_spelled
from tests.validators import worker_or_skip
from tests.warm_python.interpreters import NATIVE, WarmPythons

emit = emitter("megatron")

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "planner" / "backends" / "megatron" / "tiny_run_worker.py"
SAMPLES, STEPS, TOLERANCE = 8, 3, 1e-5
ATTENTION = AttentionSpec(num_heads=4, num_kv_heads=2, head_dim=16, v_head_dim=16)
DENSE = ModelSpec(
    name="tiny",
    family="llama",
    hidden_size=64,
    vocab_size=512,
    layer_kinds=(LayerSpec(attention=ATTENTION, mlp=MlpSpec(intermediate_size=128, gated=True)),),
    layer_runs=(LayerRun(kind=0, count=4),),
    max_sequence_length=64,
)
TIED = DENSE.model_copy(update={"tie_embeddings": True})
EXPERTS = MoeSpec(num_experts=4, top_k=2, expert_intermediate_size=64)
MIXTURE = DENSE.model_copy(update={"family": "mixtral", "layer_kinds": (LayerSpec(attention=ATTENTION, moe=EXPERTS),)})
MODELS = {"dense": DENSE, "tied": TIED, "mixture": MIXTURE}


@dataclass(frozen=True, slots=True)
class Run:
    """One layout of one model."""

    model: str
    strategy: Strategy
    layers: tuple[int, ...] | None = None
    recompute: tuple[int, ...] | None = None


ONE = Strategy(num_microbatches=8)
PIPELINE = replace(ONE, pp=2)
INTERLEAVED = replace(PIPELINE, vpp=2, schedule="interleaved", microbatch_group_size=2)
TENSOR = replace(ONE, tp=2, sp=True)

REFERENCES = {name: Run(name, ONE) for name in MODELS}
RUNS: dict[str, Run] = {
    "tp2": Run("dense", replace(TENSOR, sp=False)),
    "tp2 sp": Run("dense", TENSOR),
    "pp2": Run("dense", PIPELINE),
    "uneven stages": Run("dense", PIPELINE, (1, 3)),
    "vpp2": Run("dense", INTERLEAVED),
    "vpp2, a chunk without layers": Run("dense", INTERLEAVED, (0, 2, 1, 1)),
    "recompute of the first layer": Run("dense", replace(PIPELINE, recompute="full"), None, (1, 1)),
    "dp2": Run("dense", replace(ONE, dp_shard=2, num_microbatches=4)),
    "tied pp2": Run("tied", PIPELINE),
    "tied tp2": Run("tied", TENSOR),
    "ep2": Run("mixture", replace(ONE, ep=2, dp_shard=2, num_microbatches=4)),
    "tp2 ep2": Run("mixture", replace(TENSOR, ep=2)),
    "etp2": Run("mixture", replace(TENSOR, etp=2)),
    "tp2 pp2": Run("dense", replace(TENSOR, pp=2)),
    "ep2 pp2": Run("mixture", replace(PIPELINE, ep=2, dp_shard=2, num_microbatches=4)),
}


def emitted(run: Run, folder: Path) -> Path:
    """The folder of one run; only the learning rate of ``data.args`` is ours, so that three steps go far."""
    workload = Workload(global_batch_size=SAMPLES, sequence_length=32)
    wanted = make_plan(
        run.strategy,
        MODELS[run.model],
        workload=workload,
        layers_per_chunk=run.layers,
        recompute_layers_per_chunk=run.recompute,
    )
    write_emission(emit(as_spelled(wanted, "megatron"), "torchrun"), folder)
    data = folder / "data.args"
    data.write_text(data.read_text().replace("--lr 1e-4", "--lr 1e-2"))
    return folder


def trained(runs: dict[str, Run], folder: Path, warm_pythons: WarmPythons) -> dict[str, list[float]]:
    """Losses of runs of one world size, all in one launch."""
    with worker_or_skip("megatron-core") as worker:
        megatron = overlay(worker.validator, worker.version)
    ranks = {run.strategy.world_size for run in runs.values()}.pop()
    paths = {str(emitted(run, folder / str(index))): name for index, (name, run) in enumerate(runs.items())}
    environment = cpu_environment()
    python = warm_pythons.python(NATIVE, environment).executable
    command = [*torchrun(python, ranks), str(SCRIPT), str(megatron), str(STEPS), *paths]
    done = launched(command, environment, timeout_s=600)
    losses: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        said = json.loads(line)
        assert "error" not in said, said
        if "replaced" in said:
            assert said["replaced"]["--transformer-impl"].startswith("no Transformer Engine")
        if "loss" in said:
            losses.setdefault(paths[said["run"]], []).append(said["loss"])
    assert done.returncode == 0, done.stderr[-2000:]
    return losses


def of_size(ranks: int) -> dict[str, Run]:
    return {name: run for name, run in RUNS.items() if run.strategy.world_size == ranks}


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons) -> dict[str, list[float]]:
    """The losses of one rank."""
    return trained(REFERENCES, tmp_path_factory.mktemp("one"), warm_pythons)


def test_one_rank_learns(references: dict[str, list[float]]) -> None:
    assert set(references) == set(MODELS)
    assert all(len(losses) == STEPS and losses[-1] < losses[0] - 0.3 for losses in references.values()), references


@pytest.mark.parametrize("ranks", [2, 4])
def test_layouts_follow_the_curve_of_one_rank(
    references: dict[str, list[float]], ranks: int, tmp_path: Path, warm_pythons: WarmPythons
) -> None:
    runs = of_size(ranks)
    losses = trained(runs, tmp_path, warm_pythons)
    assert set(losses) == set(runs)
    for name, found in losses.items():
        assert found == pytest.approx(references[runs[name].model], rel=TOLERANCE), name


def test_every_layout_is_run() -> None:
    assert set(of_size(2)) | set(of_size(4)) == set(RUNS)
