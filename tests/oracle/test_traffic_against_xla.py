"""XLA compiles the collectives that the planner bills: the plan's shardings on fake devices, exact sizes.

What must be equal for each axis: elements gathered and elements reduced, over all layers of a step.  An all-reduce is
a reduce-scatter and an all-gather; XLA is free to choose between the two forms, so both sides are compared in halves.

Three things are the step's, not XLA's choice: queries, keys and values are one product, as are gate and up (separate
products of one input have separate sums backward: MaxText's ``fused_qkv`` and ``fused_mlp``); norms carry no
weights; the ring of context parallelism is a gather, as in the bill.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from planner.backends.checking.worker import Worker
from planner.backends.maxtext.read import parse_config
from planner.backends.maxtext.step_validator import step_request
from planner.backends.maxtext.version import CONFIG_FILE
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec
from planner.plan.communication_bill import communication_bill
from planner.plan.plan import Plan
from planner.predict.physics.physics import TUNED
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from tests.emitter import emitter
from tests.plan_factory import make_cluster, make_plan
from tests.validators import SharedWorkers

emit = emitter("maxtext")

pytestmark = pytest.mark.slow

LAYERS, SEQUENCE, MICRO_BATCH = 2, 64, 2
ELEMENT_BYTES = 2
BASE = Strategy(
    zero_stage=3, recompute="selective", recompute_modules=("norm", "activation"), micro_batch_size=MICRO_BATCH
)
# A gather happens, and with it its transpose: what is summed and cut.
GATHERED, REDUCED = "gathered", "reduced"


@pytest.fixture(scope="module")
def worker(shared_workers: SharedWorkers) -> Worker:
    return shared_workers.worker("jax")


def model(layers: int, *, experts: bool, weightless_norms: bool) -> ModelSpec:
    attention = AttentionSpec(num_heads=8, num_kv_heads=8, head_dim=16, v_head_dim=16)
    layer = LayerSpec(
        attention=attention,
        mlp=None if experts else MlpSpec(intermediate_size=512, gated=True),
        moe=MoeSpec(num_experts=8, top_k=2, expert_intermediate_size=64) if experts else None,
        norm="none_affine" if weightless_norms else "rms",
    )
    return ModelSpec(
        name="step",
        family="mixtral" if experts else "llama",
        hidden_size=128,
        vocab_size=1024,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=layers),),
        max_sequence_length=SEQUENCE,
    )


def plan(strategy: Strategy, layers: int, *, experts: bool, weightless_norms: bool) -> Plan:
    workload = Workload(global_batch_size=strategy.global_batch_size, sequence_length=SEQUENCE, gradient_dtype="bf16")
    described = model(layers, experts=experts, weightless_norms=weightless_norms)
    return make_plan(strategy, described, make_cluster(strategy.world_size), workload)


def billed(strategy: Strategy, *, experts: bool) -> Counter[tuple[str, str]]:
    """Elements a rank gathers, reduces and exchanges for ``LAYERS`` layers, embedding and head left out."""
    total: Counter[tuple[str, str]] = Counter()
    for layers, sign in ((2 * LAYERS, 1), (LAYERS, -1)):
        for line in communication_bill(plan(strategy, layers, experts=experts, weightless_norms=True), TUNED):
            elements = sign * line.bytes_per_step / ELEMENT_BYTES
            for kind in halves(line.operation):
                total[line.axis, kind] += round(elements)
    return Counter({key: size for key, size in total.items() if size})


def halves(operation: str) -> tuple[str, ...]:
    """An operation as gather, reduction or exchange."""
    return {"all_reduce": (REDUCED, GATHERED), "reduce_scatter": (REDUCED,), "all_gather": (GATHERED,)}.get(
        operation, (operation,)
    )


def compiled(
    worker: Worker, strategy: Strategy, axis_names: dict[str, str], *, experts: bool
) -> Counter[tuple[str, str]]:
    """The same of the step that XLA compiles for the emitted config."""
    emission = emit(plan(strategy, LAYERS, experts=experts, weightless_norms=False), "torchrun")
    request: dict[str, Any] = step_request(parse_config(emission.files[CONFIG_FILE]), LAYERS)
    request["dimensions"] |= {"hidden": 128, "heads": 8, "head_dim": 16, "mlp": 512, "sequence": SEQUENCE}
    request["dimensions"] |= {"experts": 8, "top_k": 2, "expert_mlp": 64} if experts else {}
    verdict = worker.ask(request)
    assert verdict.accepted, verdict.message
    total: Counter[tuple[str, str]] = Counter()
    for each in verdict.facts["collectives"]:
        axes = "+".join(each["axes"])
        for kind in halves(each["operation"]):
            total[axis_names.get(axes, axes), kind] += each["elements"]
    return total


def strategies() -> list[Any]:
    shard = {"fsdp": "dp_shard", "tensor": "tp"}
    sp = replace(BASE, tp=4, sp=True, zero_stage=0)
    return [
        pytest.param(sp, shard, id="tp"),
        pytest.param(replace(BASE, dp_shard=4), shard, id="fsdp"),
        pytest.param(replace(BASE, dp_shard=4, tp=2, sp=True), shard, id="fsdp x tp"),
        pytest.param(replace(BASE, dp_shard=2, dp_replicate=2), {**shard, "data": "dp_replicate"}, id="hsdp"),
    ]


@pytest.mark.parametrize(("strategy", "names"), strategies())
def test_dense_layers_send_what_is_billed(worker: Worker, strategy: Strategy, names: dict[str, str]) -> None:
    assert compiled(worker, strategy, names, experts=False) == billed(strategy, experts=False)


def test_full_recompute_sends_less_than_is_billed_by_what_xla_leaves_out(worker: Worker) -> None:
    """XLA replays what the backward pass reads: not a layer's last sum, and its inputs are gathered once, not twice."""
    strategy = replace(BASE, tp=4, sp=True, zero_stage=0, recompute="full", recompute_modules=())
    found = compiled(worker, strategy, {"tensor": "tp"}, experts=False)
    wanted, rows = billed(strategy, experts=False), LAYERS * MICRO_BATCH * SEQUENCE * 128
    assert found == wanted - Counter({("tp", REDUCED): rows, ("tp", GATHERED): 2 * rows})


@pytest.mark.parametrize("dp_shard", [4, 8])
def test_experts_exchange_what_is_billed(worker: Worker, dp_shard: int) -> None:
    strategy = replace(BASE, dp_shard=dp_shard, ep=4)
    names = {"expert": "ep", "fsdp": "edp_shard", "fsdp+expert": "dp_shard"}
    found, wanted = compiled(worker, strategy, names, experts=True), billed(strategy, experts=True)
    for key in (("ep", "all_to_all"), ("edp_shard", GATHERED), ("edp_shard", REDUCED)):
        assert found[key] == wanted[key], key
    assert found["ep", "all_to_all"] > 0
