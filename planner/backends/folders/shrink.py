"""Makes a plan small enough for CPU ranks: the same mesh, schedule and layout around a tiny model.

What a rank does stays: which axes are above 1, placement of chunks, recompute, sharding.  What only costs time goes:
widths, layers, tokens, micro-batches, and, where the mesh has more ranks than allowed, degrees above 2.  Offload goes
too: on a CPU there is nothing to move away from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from planner.backends.asked import software_of
from planner.backends.backend import Space
from planner.backends.folders.tiny_denoiser import tiny_denoiser, tiny_sample, tiny_text
from planner.backends.folders.tiny_layout import ChunkShare, tiny_shares, tiny_stages, whole_shares
from planner.backends.folders.tiny_mesh import tiny_strategies
from planner.backends.folders.tiny_model import tiny_lengths, tiny_model
from planner.backends.folders.tiny_tower import IMAGES, image_tokens, refuse_towers, tiny_tower
from planner.backends.rules.legality import RULES, model_shape
from planner.backends.rules.rule import mixtures, rule_input
from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan, StagePlan
from planner.question.problem import Problem, Workload
from planner.question.sample import sample_text
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import RecomputePolicy, Strategy
from profiles.cluster import Cluster

MOST_TRACED = 50_000_000
"""Parameters of a traced model that CPU ranks can hold and train."""
DEGREES = ("tp", "cp", "pp", "vpp", "dp_replicate", "dp_shard", "ep", "etp")
COUNTS = ("num_microbatches", "micro_batch_size", "microbatch_group_size", "optimizer_offload", "activation_offload")
SWITCHES = ("overlap_grad_reduce", "overlap_param_gather")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that the small plan has otherwise."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A small plan that its back-end runs, and how it differs from the plan it stands for."""

    plan: Plan
    changes: tuple[Change, ...]


def shrink(plan: Plan, max_ranks: int, *, context_parallelism: bool = True) -> Shrunk:
    """The plan on at most ``max_ranks`` ranks.

    Without ``context_parallelism`` its ranks become data-parallel ones (ZeRO shards over both alike).

    Raises DocumentInvalid (too many axes, or parts that have no small form) and BackEndRefused (no small form that the
    back-end's rules allow).
    """
    refuse_towers(plan.problem.model)
    if plan.problem.model.encoder is not None:
        hint = "check the files with `meshwright check`"
        raise DocumentInvalid("an encoder-decoder has no small form", where="--tiny", hint=hint)
    if plan.problem.model.traced is not None and (size := total_parameters(plan.problem.model)) > MOST_TRACED:
        what = f"a traced model of {size:,} parameters has no small form: its layers are known as they were run"
        hint = f"plan a small config of the same class, of at most {MOST_TRACED:,} parameters"
        raise DocumentInvalid(what, where="--tiny", hint=hint)
    software = software_of(plan)
    space, findings = software.release.space, list[str]()
    aim = plan.chosen() if context_parallelism else _data_parallel_instead(plan.chosen())
    for strategy in tiny_strategies(aim, max_ranks):
        for kept, length in product(_without_offload(strategy), tiny_lengths(strategy)):
            small = _as_spelled(_small_plan(plan, kept, length + image_tokens(plan.problem.model)), space)
            findings = _broken(small) + [each.message for each in space.rules.violations(rule_input(small))]
            if not findings:
                return Shrunk(small, _changes(plan, small))
    why = "; ".join(findings) or "no mesh fits"
    raise BackEndRefused(
        f"{software.name} runs no plan of at most {max_ranks} ranks like this one: {why}",
        where="--tiny",
        hint="allow more ranks with --max-ranks, or check the plan with `meshwright emit`",
    )


def _as_spelled(plan: Plan, space: Space) -> Plan:
    """The plan in the words of its back-end."""
    return plan.model_copy(update={"strategy": space.spelled(plan.chosen(), rule_input(plan)).to_dict()})


def on_one_rank(plan: Plan) -> Plan:
    """The same model and samples on a single rank without anything parallel.

    Raises BackEndRefused where the back-end's rules allow none.
    """
    s = plan.chosen()
    single = Strategy(num_microbatches=s.global_batch_size // s.micro_batch_size, micro_batch_size=s.micro_batch_size)
    single = replace(single, zero_stage=0, overlap_grad_reduce=False, overlap_param_gather=False)
    problem = plan.problem.model_copy(update={"cluster": _one_node(plan.problem.cluster, 1)})
    space, findings = software_of(plan).release.space, list[str]()
    # Some engines keep fp32 gradients only with a sharded optimizer, others shard nothing over one rank; some
    # recompute always.
    recomputes: tuple[RecomputePolicy, ...] = ("none", "full")
    for recompute, zero_stage in product(recomputes, (0, 1, 2)):
        stages = _whole_model(plan, single, recompute)
        strategy = replace(single, zero_stage=zero_stage, recompute=recompute).to_dict()
        alone = _as_spelled(plan.model_copy(update={"problem": problem, "strategy": strategy, "stages": stages}), space)
        findings = [each.message for each in space.rules.violations(rule_input(alone))]
        if not findings:
            return alone
    raise BackEndRefused(f"{plan.backend} does not run this model on one rank: {'; '.join(findings)}", where="--tiny")


def _whole_model(plan: Plan, single: Strategy, recompute: RecomputePolicy) -> tuple[StagePlan, ...]:
    """The one stage of the model on one rank."""
    layers = plan.problem.model.num_layers
    stages = tiny_stages(plan, single, (ChunkShare(layers, 0),))
    per_chunk = (layers,) if recompute == "full" else ()
    changes = {"policy": recompute, "modules": (), "num_layers_per_chunk": per_chunk}
    return (stages[0].model_copy(update={"recompute": stages[0].recompute.model_copy(update=changes)}),)


def _data_parallel_instead(wanted: Strategy) -> Strategy:
    """The same number of ranks without context parallelism; the experts keep their grid."""
    return replace(wanted, cp=1, cp_kind="none", dp_shard=wanted.dp_shard * wanted.cp)


def _without_offload(wanted: Strategy) -> Iterator[Strategy]:
    """Nothing is offloaded; data-parallel collectives overlap as in the plan, else as what is left of it has them."""
    plain = replace(wanted, optimizer_offload=False, activation_offload=False)
    yield plain
    if wanted.optimizer_offload:
        for reduce, gather in ((True, True), (True, False), (False, False)):
            yield replace(plain, overlap_grad_reduce=reduce, overlap_param_gather=gather)


def _small_plan(plan: Plan, strategy: Strategy, length: int) -> Plan:
    shares = whole_shares(plan) if plan.problem.model.traced is not None else tiny_shares(plan, strategy)
    num_layers = sum(share.layers for share in shares)
    problem = _small_problem(plan.problem, strategy, plan.chosen(), num_layers, length)
    stages = tiny_stages(plan, strategy, shares)
    note = f"A small form of plan {plan.plan_id[:12]} for CPU ranks; every predicted number is that plan's."
    return plan.model_copy(
        update={
            "problem": problem,
            "strategy": strategy.to_dict(),
            "stages": stages,
            "alternatives": (),
            "assumptions": (note,),
        }
    )


def _small_problem(problem: Problem, strategy: Strategy, wanted: Strategy, num_layers: int, length: int) -> Problem:
    workload = problem.workload.model_copy(
        update={
            "global_batch_size": strategy.global_batch_size,
            "sequence_length": length,
            "images_per_sample": IMAGES if problem.model.vision else 0,
            "audio_clips_per_sample": 0,
            "image_counts": None,
            "audio_clip_counts": None,
            **(_latents(problem.model) if problem.model.denoiser else {}),
        }
    )
    model = problem.model
    if model.traced is not None:
        return problem.model_copy(
            update={"cluster": _one_node(problem.cluster, strategy.world_size), "workload": workload}
        )
    return problem.model_copy(
        update={
            "model": tiny_denoiser(model, num_layers)
            if model.denoiser
            else tiny_tower(tiny_model(model, strategy, wanted, num_layers, length)),
            "cluster": _one_node(problem.cluster, strategy.world_size),
            "workload": workload,
        }
    )


def _latents(model: ModelSpec) -> dict[str, Any]:
    """The sample of a diffusion transformer."""
    sample, tokens = tiny_sample(model)
    return {"sample": sample, "sequence_length": tokens, "source_length": tiny_text(model)}


def _one_node(cluster: Cluster, ranks: int) -> Cluster:
    """One node of the cluster's first devices that holds all ranks."""
    pool = cluster.pools[0]
    inside = pool.scale_up.model_copy(update={"kind": "switch", "domain_size": ranks, "torus_shape": None})
    node = pool.model_copy(update={"num_nodes": 1, "devices_per_node": ranks, "scale_up": inside})
    return cluster.model_copy(update={"name": f"{ranks} CPU ranks", "pools": (node,), "fabric": ()})


def _broken(plan: Plan) -> list[str]:
    """Rules of any back-end that the small plan breaks."""
    strategy, workload = plan.chosen(), plan.problem.workload
    rows = StrategyRows.of([strategy], [relief_of(strategy)])
    empty_ends = software_of(plan).release.space.columns.empty_ends
    shape = model_shape(plan.problem.model, workload, strategy.world_size, empty_ends=empty_ends)
    return [rule.message for rule in RULES if rule.broken(rows, shape).any()]


def _changes(plan: Plan, small: Plan) -> tuple[Change, ...]:
    """Everything that differs in size, in words of the plan."""
    before, after = _sizes(plan), _sizes(small)
    return tuple(Change(name, before[name], after[name]) for name in before if before[name] != after[name])


def _sizes(plan: Plan) -> dict[str, Any]:
    strategy, model, workload = plan.chosen(), plan.problem.model, plan.problem.workload
    sizes: dict[str, Any] = {name: getattr(strategy, name) for name in (*DEGREES, *COUNTS, *SWITCHES)}
    sizes |= {"layers": model.num_layers, "hidden_size": model.hidden_size, "vocab_size": model.vocab_size}
    last = model.layer_kinds[model.layer_kind_sequence()[-1]]
    sizes |= {"heads": last.attention.num_heads, "kv_heads": last.attention.num_kv_heads}
    for moe in mixtures(model)[:1]:
        sizes |= {"experts": moe.num_experts, "active_experts": moe.top_k}
    return sizes | _samples(workload)


def _samples(workload: Workload) -> dict[str, Any]:
    sizes = {"sequence_length": workload.sequence_length, "global_batch_size": workload.global_batch_size}
    return sizes | ({"sample": sample_text(workload.sample)} if workload.sample else {})
