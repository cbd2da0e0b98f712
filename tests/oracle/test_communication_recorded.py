"""The native trainer sends what the bill says: real processes, gloo, bf16, every collective recorded.

What it sends beside the bill is written down here, byte for byte:

* loss over a split vocabulary: maximum, and sum with the target's logit, fp32: 12 bytes a token;
* weights that tensor parallelism does not cut, each rank seeing other tokens (norms, router): their gradients are
  summed over tp, in fp32 once a step; where FSDP reduces after every micro-batch, in bf16 and as often;
* how many tokens go to each expert: int64, before each dispatch;
* ring context parallelism as one gather of keys and values, and one scatter of their gradients, instead of a ring that
  goes around three times;
* a replayed layer gathers what its backward pass needs anyway, and stops before its last reduction, of which nothing
  in the backward pass depends.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from planner.backends.asked import physics_of
from planner.model.spec import ModelSpec
from planner.plan.communication_bill import communication_bill
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from tests.native_models import SEQUENCE_LENGTH, tiny_llama, tiny_plan, tiny_qwen3_moe
from tests.rank_launch import cpu_environment, launched, torchrun
from tests.warm_python.interpreters import NATIVE, WarmPythons

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

ROOT = Path(__file__).parents[2]
VOCABULARY = 128
"""Divides over all ranks: FSDP pads each table, and each other matrix, to whole rows a rank."""
Bytes = dict[tuple[str, str], float]


def _even(model: ModelSpec) -> ModelSpec:
    return model.model_copy(update={"vocab_size": VOCABULARY})


LLAMA, MOE = _even(tiny_llama(num_layers=2)), _even(tiny_qwen3_moe())


def _plan(model: ModelSpec = LLAMA, **switches: Any) -> Plan:
    """Two micro-batches or more."""
    dp = switches.get("dp_shard", 1) * switches.get("dp_replicate", 1)
    size = switches.setdefault("micro_batch_size", 2 if dp > 1 else 4)
    return tiny_plan(Strategy(**{"num_microbatches": 8 // dp // size, **switches}), model)


EXACT: dict[str, Plan] = {
    "tp2": _plan(tp=2),
    "tp2-sp": _plan(tp=2, sp=True),
    "tp2-sp-recompute-activation": _plan(tp=2, sp=True, recompute="selective", recompute_modules=("activation",)),
    "dp2-zero0": _plan(dp_shard=2, zero_stage=0),
    "dp2-zero1": _plan(dp_shard=2, zero_stage=1),
    "dp2-zero2": _plan(dp_shard=2, zero_stage=2),
    "dp2-zero3": _plan(dp_shard=2, zero_stage=3),
    "dp2-zero3-full-recompute": _plan(dp_shard=2, zero_stage=3, recompute="full"),
    "pp2-1f1b": _plan(pp=2, micro_batch_size=1),
    "pp2-interleaved": _plan(pp=2, vpp=2, schedule="interleaved", microbatch_group_size=2, micro_batch_size=2),
    "pp2-zbv": _plan(pp=2, vpp=2, schedule="zbv", micro_batch_size=2),
    "cp2-all-to-all": _plan(cp=2, cp_kind="all_to_all"),
    "ep2-dp2": _plan(MOE, ep=2, dp_shard=2),
    "ep2-tp2": _plan(MOE, ep=2, tp=2, sp=True),
    "hsdp-2x2-zero2": _plan(dp_replicate=2, dp_shard=2, zero_stage=2, micro_batch_size=1),
    "tp2-sp-dp2-zero3": _plan(tp=2, sp=True, dp_shard=2, zero_stage=3),
    "tp2-sp-pp2": _plan(tp=2, sp=True, pp=2),
    "ep2-dp4-zero3": _plan(MOE, ep=2, dp_shard=4, zero_stage=3, micro_batch_size=1),
}
OTHER: dict[str, Plan] = {
    "cp2-ring": _plan(cp=2, cp_kind="ring"),
    "tp2-full-recompute": _plan(tp=2, recompute="full"),
    "tp2-sp-full-recompute": _plan(tp=2, sp=True, recompute="full"),
}
PLANS = EXACT | OTHER


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, warm_pythons: WarmPythons) -> dict[str, list[dict[str, Any]]]:
    """What each rank of each plan sent in one step."""
    found: dict[str, list[dict[str, Any]]] = {}
    for world_size in sorted({plan.chosen().world_size for plan in PLANS.values()}):
        folder = tmp_path_factory.mktemp(f"world{world_size}")
        for name, plan in PLANS.items():
            if plan.chosen().world_size == world_size:
                (folder / f"{name}.json").write_text(plan.canonical_json(), encoding="utf-8")
        worker = str(ROOT / "tests" / "communication_worker.py")
        environment = cpu_environment()
        python = warm_pythons.python(NATIVE, environment).executable
        done = launched([*torchrun(python, world_size), worker, str(folder)], environment, timeout_s=600)
        if done.returncode:
            pytest.fail(f"world size {world_size}:\n{done.stdout[-2000:]}\n{done.stderr[-8000:]}")
        for path in folder.glob("*.result"):
            found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return found


def sent(plan: Plan, ranks: list[dict[str, Any]], stage: int) -> tuple[Bytes, Bytes]:
    """Mean over the ranks of a stage, by axis and operation: what is billed, and what stands beside the bill.

    Tokens are not routed evenly, so that one rank sends more and another less; the mean is what the bill says.
    """
    billed: Bytes = defaultdict(float)
    beside: Bytes = defaultdict(float)
    mine = [rank["lines"] for rank in ranks if rank["stage"] == stage]
    sp = plan.chosen().sp
    for axis, operation, _, size, dtype, count in (line for lines in mine for line in lines):
        small = (axis == "tp" and operation == "all_reduce" and (sp or dtype == "float32")) or dtype == "int64"
        (beside if small else billed)[axis, operation] += size * count / len(mine)
    return dict(billed), dict(beside)


def bill(plan: Plan, stage: int) -> Bytes:
    return {
        (line.axis, line.operation): line.bytes_per_step
        for line in communication_bill(plan, physics_of(plan))
        if line.stage == stage
    }


def loss_bytes(plan: Plan) -> float:
    strategy = plan.chosen()
    tokens = strategy.num_microbatches * strategy.micro_batch_size * SEQUENCE_LENGTH / strategy.cp
    return 12.0 * tokens if strategy.tp > 1 else 0.0


@pytest.mark.parametrize("name", EXACT)
def test_what_is_sent_is_what_is_billed(name: str, recorded: dict[str, Any]) -> None:
    plan = EXACT[name]
    for stage in range(plan.chosen().pp):
        assert sent(plan, recorded[name], stage)[0] == bill(plan, stage)


@pytest.mark.parametrize("name", PLANS)
def test_a_group_has_the_size_that_the_bill_says(name: str, recorded: dict[str, Any]) -> None:
    sizes = {(line.axis, line.group_size) for line in communication_bill(PLANS[name], physics_of(PLANS[name]))}
    assert {(line[0], line[2]) for rank in recorded[name] for line in rank["lines"]} == sizes


@pytest.mark.parametrize("name", [name for name, plan in PLANS.items() if not plan.problem.model.has_experts])
def test_beside_the_bill_dense_models_send_the_loss_and_the_gradients_of_norms(
    name: str, recorded: dict[str, Any]
) -> None:
    plan = PLANS[name]
    strategy, hidden = plan.chosen(), plan.problem.model.hidden_size
    for stage in plan.stages:
        last = any(chunk.has_head for chunk in stage.chunks)
        often = strategy.zero_stage >= 2 and strategy.dp > 1
        gradient_bytes = 2.0 * strategy.num_microbatches if often else 4.0
        norms = (2 * stage.layers + last) * hidden * gradient_bytes if strategy.sp else 0.0
        expected = norms + last * loss_bytes(plan)
        assert sum(sent(plan, recorded[name], stage.stage)[1].values()) == expected


def test_beside_the_bill_experts_send_counts_and_the_gradients_of_what_tp_does_not_cut(
    recorded: dict[str, Any],
) -> None:
    plan = EXACT["ep2-tp2"]
    hidden, experts, mixtures, layers = 64, 8, 3, 4
    beside = sent(plan, recorded["ep2-tp2"], 0)[1]
    assert beside["ep", "all_to_all"] == plan.chosen().num_microbatches * mixtures * experts * 8.0
    uncut = (2 * layers + 1) * hidden + 2 * layers * 8 + mixtures * experts * hidden
    assert beside["tp", "all_reduce"] == uncut * 4.0 + loss_bytes(plan)


def test_the_ring_is_one_gather_and_one_scatter(recorded: dict[str, Any]) -> None:
    billed = bill(OTHER["cp2-ring"], 0)
    found = sent(OTHER["cp2-ring"], recorded["cp2-ring"], 0)[0]
    around = billed.pop(("cp", "all_gather"))
    assert found.pop(("cp", "all_gather")) == found.pop(("cp", "reduce_scatter")) == around / 3
    assert found == billed


@pytest.mark.parametrize("name", ["tp2-full-recompute", "tp2-sp-full-recompute"])
def test_a_replayed_layer_stops_early_and_gathers_once(name: str, recorded: dict[str, Any]) -> None:
    plan = OTHER[name]
    strategy = plan.chosen()
    hidden_states = strategy.micro_batch_size * SEQUENCE_LENGTH * plan.problem.model.hidden_size * 2.0
    each = strategy.num_microbatches * plan.problem.model.num_layers * hidden_states
    saved = (
        {("tp", "all_gather"): 2 * each, ("tp", "reduce_scatter"): each}
        if strategy.sp
        else {("tp", "all_reduce"): each}
    )
    expected = {key: size - saved.get(key, 0.0) for key, size in bill(plan, 0).items()}
    assert sent(plan, recorded[name], 0)[0] == expected
