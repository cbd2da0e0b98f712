"""What is the nearest plan that MaxText runs?  Degrees are never touched, but for etp; switches are, and named."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.emission.emission import Projection
from planner.backends.emission.projections import Repair, projection, repaired
from planner.backends.maxtext.hardware import is_tpu
from planner.backends.maxtext.saved_tensors import canonical_modules
from planner.backends.rules.rule import mixtures, used_kinds
from planner.plan import ChunkPlan, Plan, StageOffload, StagePlan, StageRecompute
from planner.strategy import Strategy

_NO_CHOICE = "has no meaning here"


def project(plan: Plan) -> tuple[Plan, tuple[Projection, ...]]:
    """The nearest plan that MaxText can express, and every difference.  Unchanged when there is none."""
    strategy, notes = repaired(plan, _STEPS)
    stages = _stages(plan, strategy)
    for name, what, reason in (
        ("stages/chunks", "chunks", "stages hold equally many layers, one chunk each"),
        ("stages/recompute", "recompute", "one checkpoint policy serves every layer"),
        ("stages/offload", "offload", "one config serves every layer and stage"),
    ):
        wanted, emitted = [_words(stage, what) for stage in plan.stages], [_words(stage, what) for stage in stages]
        if wanted != emitted:
            notes.append(projection(name, "; ".join(wanted), "; ".join(emitted), reason))
    if strategy == plan.chosen() and stages == plan.stages:
        return plan, ()
    return plan.model_copy(update={"strategy": strategy.to_dict(), "stages": stages}), tuple(notes)


def _words(stage: StagePlan, what: str) -> str:
    if what == "chunks":
        return "+".join(str(chunk.num_layers) for chunk in stage.chunks)
    if what == "recompute":
        modules = f" ({', '.join(stage.recompute.modules)})" if stage.recompute.modules else ""
        return f"{stage.recompute.policy}{modules} {'/'.join(map(str, stage.recompute.num_layers_per_chunk))}".strip()
    optimizer = "on" if stage.offload.optimizer else "off"
    return f"optimizer {optimizer}, {stage.offload.activation_layers} activation layers"


def _schedule(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    after = replace(s, schedule="gpipe" if s.pp > 1 else "1f1b", vpp=1, microbatch_group_size=0)
    return after, "XLA runs every forward pass before the first backward pass" if s.pp > 1 else _NO_CHOICE


def _order(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    reason = "the stage axis is the outermost one" if s.pp > 1 else _NO_CHOICE
    return replace(s, axis_order="tp-cp-ep-dp-pp"), reason


def _sharding(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.zero_stage == 2:
        return replace(s, zero_stage=3), "gradients alone cannot be sharded; sharding the weights too keeps less"
    if s.zero_stage < 3 and s.cp * s.ep > 1:
        # Without ZeRO the split into replicas and shards says nothing yet.
        whole = replace(s, dp_replicate=1, dp_shard=s.dp) if s.zero_stage == 0 else s
        return replace(whole, zero_stage=3), "the context and expert axes shard the weights as well"
    return s, ""


def _replicas(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.zero_stage == 3 and s.dp_shard * s.cp * s.ep == 1:
        return replace(s, zero_stage=0, dp_replicate=1, dp_shard=s.dp), "ZeRO over one rank shards nothing"
    if s.zero_stage < 3:
        reason = "optimizer states are sharded over the whole data axis" if s.zero_stage else _NO_CHOICE
        return replace(s, dp_replicate=1, dp_shard=s.dp), reason
    return s, ""


def _model_axes(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    reason = "the tensor axis splits activations between layers, over their width" if s.tp > 1 else _NO_CHOICE
    return replace(s, sp=s.tp > 1), reason


def _experts(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    wanted = s.tp if mixtures(plan.problem.model) else 1
    return replace(s, etp=wanted), "the tensor axis splits the experts' MLP as well"


def _context(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.cp == 1:
        return replace(s, cp_kind="none"), _NO_CHOICE
    if s.cp_kind == "all_to_all" and not is_tpu(plan.problem.cluster.pools[0].device.architecture):
        return replace(s, cp_kind="ring"), "ulysses attention runs on TPU only"
    return s, ""


def _recompute(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    if s.recompute == "full":
        return replace(s, recompute_modules=()), _NO_CHOICE
    if s.activation_offload and s.pp > 1:
        reason = "saved tensors cannot leave the device inside the pipeline's loop; layers are recomputed instead"
        return replace(s, recompute="full", recompute_modules=(), activation_offload=False), reason
    kinds = used_kinds(plan.problem.model)
    modules = canonical_modules(
        s.recompute_modules,
        dense_layers=any(kind.mlp or (kind.moe and kind.moe.shared_intermediate_size) for kind in kinds),
        expert_layers=any(kind.moe for kind in kinds),
    )
    reason = "every layer is checkpointed: norms and activation functions are always computed again"
    return replace(s, recompute="selective", recompute_modules=modules), reason


def _activation_offload(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    wanted = s.activation_offload or any(stage.offload.activation_layers for stage in plan.stages)
    if wanted and s.pp > 1:
        return replace(s, activation_offload=False), "saved tensors cannot leave the device inside the pipeline's loop"
    return replace(s, activation_offload=wanted), "one config serves every layer"


def _optimizer_offload(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    wanted = s.optimizer_offload or any(stage.offload.optimizer for stage in plan.stages)
    return replace(s, optimizer_offload=wanted), "one config serves every stage"


def _overlap(s: Strategy, plan: Plan) -> tuple[Strategy, str]:
    after = replace(s, overlap_grad_reduce=True, overlap_param_gather=True, overlap_tp=False, overlap_ep=False)
    return after, "XLA's scheduler overlaps data-parallel collectives; nothing is asked of the others"


_STEPS: tuple[Repair, ...] = (
    _schedule,
    _order,
    _sharding,
    _replicas,
    _model_axes,
    _experts,
    _context,
    _recompute,
    _activation_offload,
    _optimizer_offload,
    _overlap,
)
"""In this order: what a later step allows depends on what earlier ones settle."""


def _stages(plan: Plan, s: Strategy) -> tuple[StagePlan, ...]:
    """Equal stages where the layers divide (a rule refuses the others), one policy for all."""
    layers, chunks = plan.problem.model.num_layers, [chunk for stage in plan.stages for chunk in stage.chunks]
    counts = [layers // s.pp] * s.pp
    if layers % s.pp:
        counts = [sum(chunk.num_layers for chunk in stage.chunks) for stage in plan.stages]
    made = []
    for stage, old in enumerate(plan.stages):
        last = stage == s.pp - 1
        chunk = ChunkPlan(
            chunk=stage,
            first_layer=sum(counts[:stage]),
            num_layers=counts[stage],
            has_embedding=stage == 0,
            has_head=last,
            num_mtp_layers=sum(each.num_mtp_layers for each in chunks) if last else 0,
        )
        update = {
            "chunks": (chunk,),
            "layers": counts[stage],
            "recompute": StageRecompute(
                policy=s.recompute, modules=s.recompute_modules, num_layers_per_chunk=(counts[stage],)
            ),
            "offload": StageOffload(
                optimizer=s.optimizer_offload, activation_layers=counts[stage] if s.activation_offload else 0
            ),
        }
        made.append(old.model_copy(update=update))
    return tuple(made)
