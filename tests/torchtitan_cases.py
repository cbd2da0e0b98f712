"""Random runs for torchtitan's tests: legal and illegal ones, and what its own worker is asked about them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.backends.checking.validator import Verdict
from planner.backends.checking.worker import Worker
from planner.backends.torchtitan.config_module import MODULE_FILE, module_text
from planner.backends.torchtitan.degrees import SCHEDULES, SELECTIVE_MODULES, expert_tensor_degree, group_size
from planner.backends.torchtitan.train_script import TRAIN_SCRIPT, train_script
from planner.backends.torchtitan.validator import arguments
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.schedules import LOOPED_SCHEDULES, V_SCHEDULES, ScheduleName
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_cluster, make_plan

CHECKED = {f"torchtitan.{rule}" for rule in ("T1", "C1", "E2", "E4", "P3", "P4", "P5")}
"""Rules that torchtitan itself enforces when it reads a configuration, or builds mesh, stages and model.

It swallows what the others refuse: G1 (without a pipeline it derives the number of micro-batches), T2, E1 and C3
(uneven shards), P2 (a single-stage schedule runs a rank's first model part and drops the others).
"""


def llama_like(num_layers: int = 4, *, groups: int = 4, tied: bool = False, width: int = 512) -> ModelSpec:
    """Dense, family llama3."""
    attention = AttentionSpec(num_heads=8, num_kv_heads=groups, head_dim=32, v_head_dim=32)
    layer = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=width, gated=True))
    return _model("llama", layer, num_layers, tied=tied)


def qwen_like(num_layers: int = 4, *, experts: int = 0, tied: bool = False) -> ModelSpec:
    """Normed heads, family qwen3; every layer with ``experts``, or none."""
    attention = AttentionSpec(num_heads=8, num_kv_heads=4, head_dim=64, v_head_dim=64, qk_norm="per_head")
    moe = MoeSpec(num_experts=experts, top_k=2, expert_intermediate_size=128) if experts else None
    mlp = None if experts else MlpSpec(intermediate_size=512, gated=True)
    layer = LayerSpec(attention=attention, mlp=mlp, moe=moe)
    return _model("qwen3_moe" if experts else "qwen3", layer, num_layers, tied=tied, epsilon=1e-6)


def deepseek_like(num_layers: int = 4, *, experts: int = 8, dense: int = 1, query_rank: int | None = 64) -> ModelSpec:
    """Latent attention, family deepseek_v3."""
    attention = AttentionSpec(
        kind="mla",
        num_heads=8,
        num_kv_heads=8,
        head_dim=48,
        v_head_dim=32,
        q_lora_rank=query_rank,
        kv_lora_rank=64,
        qk_rope_head_dim=16,
    )
    moe = MoeSpec(
        num_experts=experts,
        top_k=2,
        expert_intermediate_size=128,
        score_function="sigmoid",
        shared_intermediate_size=256,
        num_groups=2,
        top_k_groups=1,
    )
    kinds = (
        LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=512, gated=True)),
        LayerSpec(attention=attention, moe=moe),
    )
    runs = [LayerRun(kind=0, count=dense)] if dense else []
    return _model("deepseek_v3", kinds[1], num_layers).model_copy(
        update={"layer_kinds": kinds, "layer_runs": (*runs, LayerRun(kind=1, count=num_layers - dense))}
    )


def _model(family: str, layer: LayerSpec, num_layers: int, *, tied: bool = False, epsilon: float = 1e-5) -> ModelSpec:
    return ModelSpec(
        name=f"tiny-{family}",
        family=family,
        hidden_size=256,
        vocab_size=1024,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=num_layers),),
        tie_embeddings=tied,
        max_sequence_length=4096,
        norm_epsilon=epsilon,
    )


def random_model(rng: random.Random) -> ModelSpec:
    """Any of the families, all sizes small."""
    layers, tied = rng.choice([4, 5, 6, 8]), rng.random() < 0.25
    family = rng.choice(["llama", "wide llama", "qwen", "qwen experts", "deepseek"])
    if family == "llama":
        return llama_like(layers, groups=rng.choice([1, 2, 4, 8]), tied=tied)
    if family == "wide llama":
        return llama_like(layers, width=768)
    if family == "deepseek":
        return deepseek_like(layers, dense=rng.choice([0, 1, 2]), query_rank=rng.choice([None, 64]))
    return (
        qwen_like(layers, experts=rng.choice([4, 6, 8])) if family == "qwen experts" else qwen_like(layers, tied=tied)
    )


def random_strategy(rng: random.Random, model: ModelSpec, wanted: ScheduleName | None = None) -> Strategy:
    """Degrees of every kind, legal or not; what the files cannot even say is left out.  ``wanted`` needs a pipeline."""
    tp, pp = rng.choice([1, 1, 2, 3, 4, 8]), rng.choice([2, 2, 3, 4] if wanted else [1, 1, 1, 2, 2, 3, 4])
    cp = rng.choice([1, 1, 1, 2, 4])
    schedule: ScheduleName = wanted if wanted is not None else rng.choice(sorted(SCHEDULES)) if pp > 1 else "1f1b"
    vpp = 1
    if pp > 1:
        usual = rng.choice([2, 3]) if schedule in LOOPED_SCHEDULES else {"zbv": 2, "dualpipev": 2}.get(schedule, 1)
        vpp = usual if schedule in V_SCHEDULES or rng.random() < 0.9 else rng.choice([1, 2, 3])
    ep = rng.choice([1, 1, 2, 4, 8]) if model.has_experts or rng.random() < 0.1 else 1
    recompute = rng.choice(["none", "selective", "full"])
    zero = rng.choice([0, 1]) if pp > 1 else rng.choice([0, 2, 3])
    s = Strategy(
        tp=tp,
        sp=tp > 1 and rng.random() < 0.7,
        cp=cp,
        cp_kind="ring" if cp > 1 else "none",
        ep=ep,
        etp=expert_tensor_degree(tp, ep, experts=model.has_experts),
        pp=pp,
        vpp=vpp,
        dp_replicate=rng.choice([1, 1, 2]) if zero else 1,
        dp_shard=rng.choice([1, 2, 2, 3, 4]),
        micro_batch_size=rng.choice([1, 2]),
        num_microbatches=rng.choice([1, 2, 3, 4, 6, 7, 8]),
        schedule=schedule,
        zero_stage=zero or (int(cp > 1) * (1 if pp > 1 else 3)),
        recompute=recompute,  # type: ignore[arg-type]
        recompute_modules=SELECTIVE_MODULES if recompute == "selective" else (),
        overlap_grad_reduce=pp == 1,
    )
    return replace(s, microbatch_group_size=group_size(s), overlap_tp=s.sp and rng.random() < 0.2)


def random_plan(rng: random.Random, schedule: ScheduleName | None = None) -> Plan:
    """A plan whose parts agree, for a random strategy; every chunk has a layer."""
    model = random_model(rng)
    strategy = random_strategy(rng, model, schedule)
    while strategy.num_chunks > model.num_layers:
        strategy = random_strategy(rng, model, schedule)
    cuts = sorted(rng.sample(range(1, model.num_layers), strategy.num_chunks - 1))
    layers = [high - low for low, high in zip([0, *cuts], [*cuts, model.num_layers], strict=True)]
    samples = strategy.global_batch_size + (rng.random() < 0.05)
    per_node = max(size for size in range(1, 9) if strategy.world_size % size == 0)
    return make_plan(
        strategy,
        model,
        make_cluster(strategy.world_size, devices_per_node=per_node),
        Workload(global_batch_size=samples, sequence_length=rng.choice([96, 256, 1024, 1032])),
        layers_per_chunk=layers,
    )


def files_of(plan: Plan) -> dict[str, str]:
    """The configuration of a plan as it is, whether or not it is legal."""
    return {MODULE_FILE: module_text(plan), TRAIN_SCRIPT: train_script("0.3.0", pipeline=plan.chosen().pp > 1)}


def question(files: Mapping[str, str], world_size: int, **more: Any) -> dict[str, Any]:
    """What the worker is asked."""
    named = {name: text for name, text in files.items() if name.startswith("titan")}
    return {"files": named, "arguments": arguments(dict(files)), "world_size": world_size, **more}


def ask_every_stage(worker: Worker, plan: Plan) -> Verdict:
    """The first refusal by the first rank of a pipeline stage, or the last acceptance.

    One rank builds its own stage only: too few experts for its shards matter where a layer has experts.
    """
    s = plan.chosen()
    asked = question(files_of(plan), s.world_size, build=True)
    verdict = worker.ask(asked)
    for stage in range(1, s.pp):
        if verdict.accepted:
            verdict = worker.ask({**asked, "rank": stage * s.world_size // s.pp})
    return verdict
