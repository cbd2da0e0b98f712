"""The native trainer computes the same losses and gradients on every layout: real processes, gloo, CPU.

All plans of one world size run in one torchrun launch, because starting processes costs more than training.  The
emitted directory is started with the real interpreter, the others are forked from one that has imported torch.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.backends.emission.write import write_emission
from planner.backends.native.space import violations
from planner.backends.rules.rule import rule_input
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.native_models import tiny_gpt2, tiny_llama, tiny_plan, tiny_qwen3_moe
from tests.rank_launch import cpu_environment, launched, torchrun
from tests.sampling import drawn
from tests.warm_python.interpreters import NATIVE, WarmPythons

emit = emitter("native")

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5
"""Losses; measured: at most 1.5e-7, one unit in the last place of fp32."""
NORM_TOLERANCE = 1e-4
"""Gradient norms; measured: at most 2e-5, in the third step, where Adam has made the most of what rounding left."""


def _strategy(**switches: Any) -> Strategy:
    """Fill up to 8 samples with micro-batches of one."""
    dp = switches.get("dp_shard", 1) * switches.get("dp_replicate", 1)
    # Dispatch on the CPU costs per call, so tp, cp and experts run few larger micro-batches.
    few = max(switches.get(axis, 1) for axis in ("tp", "cp", "ep")) > 1
    size = switches.setdefault("micro_batch_size", (2 if dp > 1 else 4) if few else 1)
    # torch's stages reduce gradients behind the last backward pass.
    switches.setdefault("overlap_grad_reduce", switches.get("pp", 1) == 1)
    return Strategy(**{"num_microbatches": 8 // dp // size, **switches})


def _three_axes(**switches: Any) -> Strategy:
    """Pipeline, tensor parallelism and FSDP at once: 8 processes, 4 micro-batches."""
    return _strategy(pp=2, tp=2, sp=True, dp_shard=2, micro_batch_size=1, **switches)


MOE, SHARED_MOE = tiny_qwen3_moe(), tiny_qwen3_moe(shared=32)
SELECTIVE: dict[str, Any] = {"recompute": "selective", "recompute_modules": ("attention_core", "activation")}
NORM: dict[str, Any] = {"recompute": "selective", "recompute_modules": ("norm", "activation")}
NORM_MLP: dict[str, Any] = {"recompute": "selective", "recompute_modules": ("norm", "mlp")}
NORM_MOE: dict[str, Any] = {"recompute": "selective", "recompute_modules": ("norm", "moe")}

PLANS: dict[str, Plan] = {
    "tp2": tiny_plan(_strategy(tp=2)),
    "tp2-sp": tiny_plan(_strategy(tp=2, sp=True)),
    "tp2-sp-recompute-norm": tiny_plan(_strategy(tp=2, sp=True, **NORM)),
    "tp2-recompute-norm-mlp": tiny_plan(_strategy(tp=2, **NORM_MLP)),
    "tp2-sp-recompute-norm-moe": tiny_plan(_strategy(tp=2, sp=True, **NORM_MOE), SHARED_MOE),
    "dp2-zero3-recompute-norm-gpt2": tiny_plan(_strategy(dp_shard=2, zero_stage=3, **NORM), tiny_gpt2()),
    "pp2-zbv-recompute-norm": tiny_plan(_strategy(pp=2, vpp=2, schedule="zbv", **NORM)),
    "ep2-dp2-recompute-norm-moe": tiny_plan(_strategy(ep=2, dp_shard=2, **NORM), SHARED_MOE),
    "tp2-sp-gpt2-tied": tiny_plan(_strategy(tp=2, sp=True), tiny_gpt2()),
    "tp2-gpt2-tied": tiny_plan(_strategy(tp=2), tiny_gpt2()),
    "dp2-zero0": tiny_plan(_strategy(dp_shard=2, zero_stage=0)),
    "dp2-zero1": tiny_plan(_strategy(dp_shard=2, zero_stage=1)),
    "dp2-zero2": tiny_plan(_strategy(dp_shard=2, zero_stage=2)),
    "dp2-zero3-full-recompute": tiny_plan(
        _strategy(dp_shard=2, zero_stage=3, recompute="full"), recompute_layers_per_chunk=(2,)
    ),
    "dp2-zero3-selective": tiny_plan(_strategy(dp_shard=2, zero_stage=3, **SELECTIVE)),
    "dp2-tied": tiny_plan(_strategy(dp_shard=2), tiny_llama(tie_embeddings=True)),
    "pp2-1f1b-uneven": tiny_plan(_strategy(pp=2), layers_per_chunk=(1, 3)),
    "pp2-gpipe": tiny_plan(_strategy(pp=2, schedule="gpipe", micro_batch_size=2)),
    "pp2-interleaved-uneven": tiny_plan(
        _strategy(pp=2, vpp=2, schedule="interleaved", microbatch_group_size=2), layers_per_chunk=(2, 1, 1, 0)
    ),
    "pp2-zbv": tiny_plan(_strategy(pp=2, vpp=2, schedule="zbv")),
    "pp2-zbv-recompute": tiny_plan(
        _strategy(pp=2, vpp=2, schedule="zbv", recompute="full"), recompute_layers_per_chunk=(1, 0, 1, 0)
    ),
    "pp2-dualpipev": tiny_plan(_strategy(pp=2, vpp=2, schedule="dualpipev")),
    "pp2-looped-bfs": tiny_plan(_strategy(pp=2, vpp=2, schedule="looped_bfs")),
    "pp2-looped-bfs-uneven-recompute": tiny_plan(
        _strategy(pp=2, vpp=2, schedule="looped_bfs", recompute="full"), None, (2, 1, 1, 0), (1, 0, 1, 0)
    ),
    "pp2-interleaved-zb": tiny_plan(
        _strategy(pp=2, vpp=2, schedule="interleaved_zb", microbatch_group_size=2), layers_per_chunk=(1, 1, 1, 1)
    ),
    "pp2-interleaved-zb-recompute-norm": tiny_plan(
        _strategy(pp=2, vpp=2, schedule="interleaved_zb", microbatch_group_size=2, **NORM), None, (0, 2, 1, 1)
    ),
    "pp2-zb-h1-uneven": tiny_plan(_strategy(pp=2, schedule="zb_h1"), layers_per_chunk=(1, 3)),
    "pp2-zb-h1-recompute": tiny_plan(
        _strategy(pp=2, schedule="zb_h1", recompute="full"), recompute_layers_per_chunk=(2, 1)
    ),
    "pp2-moe": tiny_plan(_strategy(pp=2), MOE),
    "cp2-ring": tiny_plan(_strategy(cp=2, cp_kind="ring")),
    "cp2-ring-window": tiny_plan(_strategy(cp=2, cp_kind="ring"), tiny_llama(sliding_window=9)),
    "cp2-all-to-all": tiny_plan(_strategy(cp=2, cp_kind="all_to_all")),
    "cp2-all-to-all-window": tiny_plan(_strategy(cp=2, cp_kind="all_to_all"), tiny_llama(sliding_window=9)),
    "ep2-dp2-moe": tiny_plan(_strategy(ep=2, dp_shard=2), MOE),
    "ep2-dp2-moe-recompute": tiny_plan(_strategy(ep=2, dp_shard=2, recompute="full", zero_stage=3), MOE),
    "ep2-dp2-moe-selective": tiny_plan(
        _strategy(ep=2, dp_shard=2, recompute="selective", recompute_modules=("moe", "mlp")), MOE
    ),
    "ep2-tp2-moe": tiny_plan(_strategy(ep=2, tp=2, sp=True), MOE),
    "tp2-moe": tiny_plan(_strategy(tp=2, sp=True), SHARED_MOE),
    "bf16-tp2-sp": tiny_plan(_strategy(tp=2, sp=True)),
    "bf16-dp2-moe": tiny_plan(_strategy(dp_shard=2, ep=2, zero_stage=3), MOE),
    "bf16-pp2-zbv": tiny_plan(_strategy(pp=2, vpp=2, schedule="zbv")),
    "hsdp-2x2": tiny_plan(_strategy(dp_replicate=2, dp_shard=2, zero_stage=2)),
    "tp2-dp2-zero3": tiny_plan(_strategy(tp=2, sp=True, dp_shard=2, zero_stage=3)),
    "tp2-pp2": tiny_plan(_strategy(tp=2, sp=True, pp=2)),
    "tp2-pp2-zbv-recompute-norm": tiny_plan(_strategy(tp=2, sp=True, pp=2, vpp=2, schedule="zbv", **NORM)),
    "tp2-pp2-zbv-full-recompute": tiny_plan(_strategy(tp=2, sp=True, pp=2, vpp=2, schedule="zbv", recompute="full")),
    "tp2-cp2-ring": tiny_plan(_strategy(tp=2, sp=True, cp=2, cp_kind="ring")),
    "tp2-cp2-all-to-all": tiny_plan(_strategy(tp=2, cp=2, cp_kind="all_to_all")),
    "cp2-dp2-zero0": tiny_plan(_strategy(cp=2, cp_kind="ring", dp_shard=2, zero_stage=0)),
    "pp4-zb-h1": tiny_plan(_strategy(pp=4, schedule="zb_h1")),
    "pp2-dp2-interleaved": tiny_plan(
        _strategy(pp=2, vpp=2, schedule="interleaved", microbatch_group_size=2, dp_shard=2)
    ),
    "pp2-dp2-dp-outermost": tiny_plan(_strategy(pp=2, dp_shard=2, axis_order="tp-cp-ep-pp-dp"), None, (3, 1)),
    "ep4-dp2-tp2-moe": tiny_plan(_strategy(ep=4, tp=2, sp=True, dp_shard=2), SHARED_MOE),
    "ep2-hsdp-moe": tiny_plan(_strategy(ep=2, dp_replicate=2, dp_shard=2), MOE),
    "ep2-dp4-zero0-moe": tiny_plan(_strategy(ep=2, dp_shard=4, zero_stage=0), MOE),
    "ep2-pp2-dp2-zbv-moe": tiny_plan(_strategy(ep=2, pp=2, vpp=2, schedule="zbv", dp_shard=2), MOE),
    "ep2-cp2-dp2-moe": tiny_plan(_strategy(ep=2, cp=2, cp_kind="all_to_all", dp_shard=2), MOE),
    "hsdp-2x2-zero3-recompute": tiny_plan(
        _strategy(dp_replicate=2, dp_shard=2, zero_stage=3, recompute="full"), None, None, (3,)
    ),
    "pp2-tp2-fsdp2-1f1b-uneven": tiny_plan(_three_axes(), None, (3, 1)),
    "pp2-tp2-fsdp2-interleaved-recompute": tiny_plan(
        _three_axes(vpp=2, schedule="interleaved", microbatch_group_size=2, recompute="full"), None, None, (1, 0, 0, 1)
    ),
    "pp2-tp2-fsdp2-zbv": tiny_plan(_three_axes(vpp=2, schedule="zbv")),
    "pp2-tp2-fsdp2-zb-h1": tiny_plan(_three_axes(schedule="zb_h1")),
    "pp2-tp2-fsdp2-looped-bfs": tiny_plan(_three_axes(vpp=2, schedule="looped_bfs")),
    "pp2-tp2-fsdp2-interleaved-zb": tiny_plan(_three_axes(vpp=2, schedule="interleaved_zb", microbatch_group_size=2)),
    "pp2-hsdp-2x2": tiny_plan(_strategy(pp=2, dp_replicate=2, dp_shard=2, micro_batch_size=1)),
}


def _kind(name: str) -> object:
    s = PLANS[name].chosen()
    if name.startswith("bf16") or s.schedule != "1f1b":
        return "bf16" if name.startswith("bf16") else s.schedule
    return s.cp_kind if s.cp > 1 else s.ep > 1


TRAINED = drawn(list(PLANS), 13, kept=("tp2", "pp2-zbv"), kind=_kind)
"""The plans that train in this run: every schedule, kind of context parallelism, experts and bf16."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons) -> dict[str, Any]:
    """Loss, gradient norm and reference of every plan that trains."""
    found: dict[str, Any] = {}
    trained = {name: PLANS[name] for name in TRAINED}
    for world_size in sorted({plan.chosen().world_size for plan in trained.values()}):
        folder = tmp_path_factory.mktemp(f"world{world_size}")
        for name, plan in trained.items():
            if plan.chosen().world_size == world_size:
                (folder / f"{name}.json").write_text(plan.canonical_json(), encoding="utf-8")
        _launch(folder, world_size, warm_pythons)
        for path in folder.glob("*.result"):
            found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _launch(folder: Path, world_size: int, warm_pythons: WarmPythons) -> None:
    worker = str(ROOT / "tests" / "integration" / "native_parity_worker.py")
    environment = cpu_environment()
    python = warm_pythons.python(NATIVE, environment).executable
    done = launched([*torchrun(python, world_size), worker, str(folder)], environment, timeout_s=600)
    if done.returncode:
        pytest.fail(f"world size {world_size}:\n{done.stdout[-2000:]}\n{done.stderr[-8000:]}")


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_obeys_the_rules(name: str) -> None:
    assert violations(rule_input(PLANS[name])) == []


@pytest.mark.parametrize("name", [name for name in TRAINED if not name.startswith("bf16")])
def test_losses_and_gradient_norms_equal_one_process(name: str, results: dict[str, Any]) -> None:
    records, reference = results[name]["records"], results[name]["reference"]
    assert len(records) == len(reference) == 3
    for record, wanted in zip(records, reference, strict=True):
        assert record["loss"] == pytest.approx(wanted["loss"], rel=TOLERANCE)
        assert record["gradient_norm"] == pytest.approx(wanted["gradient_norm"], rel=NORM_TOLERANCE)


@pytest.mark.parametrize("name", [name for name in TRAINED if name.startswith("bf16")])
def test_bf16_stays_near_fp32(name: str, results: dict[str, Any]) -> None:
    first, wanted = results[name]["records"][0], results[name]["reference"][0]
    assert first["loss"] == pytest.approx(wanted["loss"], rel=1e-3)
    assert first["gradient_norm"] == pytest.approx(wanted["gradient_norm"], rel=5e-3)
    assert first["loss"] != pytest.approx(wanted["loss"], rel=1e-7)
    # Adam's first steps have the size of the learning rate whatever the gradient, so rounding grows from here.
    last, wanted = results[name]["records"][-1], results[name]["reference"][-1]
    assert last["loss"] == pytest.approx(wanted["loss"], rel=1e-2)


def test_an_emitted_directory_trains(tmp_path: Path) -> None:
    plan = PLANS["pp2-1f1b-uneven"]
    write_emission(emit(plan, "torchrun"), tmp_path / "out")
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MASTER_PORT": "29613",
        "TRAIN_ARGS": "--device cpu --steps 2 --single-process-check",
    }
    launch = ["bash", str(tmp_path / "out" / "launch.sh")]
    done = launched(launch, environment, timeout_s=400)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["step"] for line in lines] == [0, 1]
    assert all(line["tokens_per_s"] > 0 for line in lines)


def test_reference_learns(results: dict[str, Any]) -> None:
    losses = [record["loss"] for record in results["tp2"]["reference"]]
    assert len(set(losses)) == 3
    assert all(4 < loss < 6 for loss in losses)


def test_memory_of_every_stage_is_reported(results: dict[str, Any]) -> None:
    assert len(results["pp2-zbv"]["records"][0]["peak_memory_bytes"]) == 2
    assert min(results["pp2-zbv"]["records"][0]["peak_memory_bytes"]) > 0
