"""Our rules and Megatron-LM agree on random plans, legal and not, of every model that ships.

A rule that says where Megatron stops must be right about it, and where no such rule is broken Megatron must accept and
derive the plan's numbers.  ``python -m tests.integration.test_megatron_differential COUNT`` tries many more.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import pytest

from planner.backends.checking.worker import Worker
from planner.backends.megatron.recompute import cannot_recompute
from planner.backends.megatron.space import TABLE
from planner.backends.rules.rule import rule_input
from planner.model.builtin import builtin_model, builtin_models
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import AxisOrder, RecomputePolicy, Strategy
from tests.megatron_models import REFUSED_MODELS, UNREAD_MODELS
from tests.megatron_verdicts import ask_megatron, disagreement
from tests.plan_factory import make_cluster, make_mla_model, make_model, make_moe_model, make_plan
from tests.plan_strategies import MODULES
from tests.round_trip import as_spelled
from tests.validators import SharedWorkers, worker_or_skip

pytestmark = pytest.mark.slow
COUNT = 200


def models() -> list[ModelSpec]:
    """Every shipped model whose flags exist, and small ones of odd shapes.

    Not those of a hybrid pattern: the validator builds layers of a transformer, which are cut by other rules.
    """
    asked = [name for name in builtin_models() if name not in REFUSED_MODELS]
    shipped = [builtin_model(name) for name in asked if UNREAD_MODELS.get(name) != "--hybrid-layer-pattern"]
    odd = [make_model(7, num_heads=12, num_kv_heads=4), make_moe_model(9, num_dense=2, num_mtp_layers=2, shared=512)]
    return [*shipped, *odd, make_model(12, tie_embeddings=True), make_mla_model(12, num_mtp_layers=1)]


def random_strategy(draw: random.Random, model: ModelSpec) -> Strategy:
    """Degrees and switches; about half of them break some rule."""
    experts = model.has_experts
    tp, pp = draw.choice([1, 1, 2, 4, 8, 3, 16]), draw.choice([1, 1, 2, 4, 8, 3])
    cp, dp_shard = draw.choice([1, 1, 1, 2, 4]), draw.choice([1, 2, 4, 8])
    vpp = draw.choice([1, 1, 2, 3]) if pp > 1 else draw.choice([1] * 9 + [2])
    micro_batches = draw.choice([1, 2, 4, 6, 8, 12, 16])
    policies: list[RecomputePolicy] = ["none", "none", "selective", "full"]
    orders: list[AxisOrder] = ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]
    recompute = draw.choice(policies)
    modules = tuple(draw.sample(MODULES, draw.randint(1, 3))) if recompute == "selective" else ()
    modules = tuple(module for module in modules if cannot_recompute(model, module) is None)
    if recompute == "selective" and not modules:
        recompute = "none"
    return Strategy(
        tp=tp,
        sp=tp > 1 and draw.random() < 0.7,
        cp=cp,
        cp_kind=draw.choice(["ring", "all_to_all"]) if cp > 1 else "none",
        ep=draw.choice([1, 2, 4, 8, 3, 16]) if experts else draw.choice([1] * 12 + [2]),
        etp=draw.choice([1, 1, 1, tp, 2]) if experts else 1,
        pp=pp,
        vpp=vpp,
        dp_replicate=draw.choice([1, 1, 1, 2]),
        dp_shard=dp_shard,
        micro_batch_size=draw.choice([1, 2]),
        num_microbatches=micro_batches,
        schedule="interleaved" if vpp > 1 else "1f1b",
        microbatch_group_size=draw.choice([pp, pp, pp + 1, 2 * pp]) if vpp > 1 else 0,
        zero_stage=draw.choice([0, 1, 1, 1, 2, 3]),
        recompute=recompute,
        recompute_modules=modules,
        optimizer_offload=draw.random() < 0.15,
        activation_offload=recompute != "full" and draw.random() < 0.2,
        overlap_grad_reduce=draw.random() < 0.85,
        overlap_param_gather=draw.random() < 0.6,
        overlap_tp=draw.random() < 0.2,
        overlap_ep=draw.random() < (0.15 if experts else 0.02),
        axis_order=orders[draw.random() < 0.1],
    )


def random_plan(draw: random.Random) -> Plan:
    """What would be emitted if no rule stood in the way."""
    model = draw.choice(models())
    strategy = random_strategy(draw, model)
    samples = strategy.global_batch_size + draw.choice([0] * 19 + [1])
    workload = Workload(
        global_batch_size=samples,
        sequence_length=draw.choice([1024, 1024, 1024, 2048, 1022]),
        precision=draw.choice(["bf16", "bf16", "bf16", "fp16", "fp8"]),
        optimizer=draw.choice(["adam", "adam", "adam", "adam_bf16_states", "sgd", "muon"]),
        gradient_dtype=draw.choice(["fp32", "bf16"]),
    )
    per_node = max(size for size in range(1, 9) if strategy.world_size % size == 0)
    architecture = draw.choice(["hopper", "blackwell", "ampere"])
    cluster = make_cluster(strategy.world_size, devices_per_node=per_node, architecture=architecture)
    layers = None
    if draw.random() < 0.3:
        cuts = sorted(draw.randint(0, model.num_layers) for _ in range(strategy.num_chunks - 1))
        layers = [high - low for low, high in zip([0, *cuts], [*cuts, model.num_layers], strict=True)]
    return as_spelled(make_plan(strategy, model, cluster, workload, layers), "megatron")


def compare(worker: Worker, seed: int) -> tuple[str, str | None]:
    """Where Megatron stopped, and how that differs from what our rules say."""
    plan = random_plan(random.Random(seed))
    answer = ask_megatron(worker, plan)
    return answer.stage, disagreement(answer, plan, TABLE.violations(rule_input(plan)))


@pytest.fixture(scope="module")
def megatron(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("megatron-core")


def test_random_plans_get_one_verdict(megatron: Worker) -> None:
    stages: Counter[str] = Counter()
    different = {}
    for seed in range(COUNT):
        stage, difference = compare(megatron, seed)
        stages[stage] += 1
        if difference is not None:
            different[seed] = difference
    assert different == {}
    assert stages["ok"] >= COUNT // 8
    assert {"validate", "config", "groups", "schedule", "optimizer"} <= set(stages)


def main(count: int) -> None:
    """Compare many, print what differs."""
    stages: Counter[str] = Counter()
    with worker_or_skip("megatron-core") as worker:
        for seed in range(count):
            stage, difference = compare(worker, seed)
            stages[stage] += 1
            if difference is not None:
                print(f"seed {seed}: {difference}", flush=True)
    print(dict(stages))


if __name__ == "__main__":
    main(int(sys.argv[1]))
