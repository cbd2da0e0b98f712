"""A plan over several pools for people: head, stages, pools, reasons, proof, assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from planner.answers.views.words import count, gib, percent, seconds, short_id
from planner.cli.render.tables import bullets, facts, heading, table
from planner.search.pools.plan import PoolsPlan, PoolStage

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.operations.pools import PoolsPlanned

BREAKDOWN_WORDS = {
    "slowest_stage": "the slowest stage",
    "pp_bubble": "filling and draining",
    "pp_send": "sends",
    "late": "reduction and optimizer",
}


def pools_report(planned: PoolsPlanned, files: Sequence[str] = ()) -> Iterator[RenderableType]:
    """The whole report, part by part; ``files``: where launch files are, and how to start them."""
    plan, wall_s = planned.plan, planned.wall_s
    yield from _head(plan, planned.plan_id)
    yield heading("Stages")
    yield _stages(plan)
    yield heading("Pools")
    yield _pools(plan)
    yield heading("Why")
    yield bullets(plan.why)
    search = plan.search
    yield heading("Searched")
    yield facts(
        [
            (
                "stages",
                f"{search.sub_meshes:,} sub-meshes with {search.policies:,} policies, {search.labels:,} labels in"
                f" {search.windows} windows, in {seconds(wall_s)}",
            ),
            (
                "samples",
                f"{search.solved} of {search.microbatch_choices} numbers of samples at a time"
                f"{', each with a sharding of all stages,' if plan.strategy else ''} looked at",
            ),
            ("proof", search.proof),
        ]
    )
    yield heading("Assumptions")
    yield bullets(plan.assumptions)
    if files:
        yield Text("\n".join(("", *files)))


def _head(plan: PoolsPlan, plan_id: str) -> Iterator[RenderableType]:
    problem = plan.problem
    where = " + ".join(
        f"{cluster.num_devices:,} x {cluster.pools[0].device.name} ({name})"
        for name, cluster in zip(problem.pool_names(), problem.clusters, strict=True)
    )
    verdict = (
        "optimal: proved best in the searched space"
        if plan.status == "optimal"
        else f"feasible: within {percent(plan.gap)} of the bound"
    )
    yield Text(f"{problem.model.name} on {where}")
    yield Text(f"PLAN {short_id(plan_id)}  {verdict}", style="bold")
    parts = ", ".join(
        f"{BREAKDOWN_WORDS[name]} {seconds(value)}" for name, value in plan.breakdown_s.items() if value > 0
    )
    by = [] if plan.strategy is None else [("back-end", f"{plan.backend} {plan.release}")]
    yield facts(
        [
            *by,
            (
                "work",
                f"{problem.workload.global_batch_size:,} x {problem.workload.sequence_length:,} tokens a step,"
                f" {problem.workload.precision}; {plan.num_microbatches:,} micro-batches of"
                f" {plan.microbatch_samples:,} samples, 1F1B",
            ),
            ("step", f"{seconds(plan.step_time_s)}: {parts}"),
            ("rate", f"{count(plan.tokens_per_s)} tokens/s, MFU {percent(plan.model_flops_utilization)} of all pools"),
            ("bound", f"no plan is faster than {seconds(plan.lower_bound_s)} (gap {percent(plan.gap)})"),
        ]
    )


def _stages(plan: PoolsPlan) -> RenderableType:
    names = (
        ">stage",
        "pool",
        ">devices",
        "layers",
        "sub-mesh",
        "recompute",
        "offload",
        ">micro-batch",
        ">peak",
        ">of limit",
    )
    rows = [
        (
            str(stage.stage),
            stage.pool,
            f"{stage.devices:,}",
            f"{'E+' if stage.has_embedding else ''}{stage.layers}{'+H' if stage.has_head else ''}",
            _mesh(stage),
            "none" if stage.recompute == "none" else f"{stage.recompute} {stage.recompute_layers}/{stage.layers}",
            _offload(stage),
            seconds(stage.microbatch_s),
            gib(stage.peak_memory_bytes.total),
            percent(stage.peak_memory_bytes.total / stage.memory_limit_bytes),
        )
        for stage in plan.stages
    ]
    return table("", names, rows)


def _mesh(stage: PoolStage) -> str:
    known = stage.strategy
    words = [f"{name}={known[name]}" for name in ("tp", "cp", "ep", "dp") if known.get(name, 1) != 1]
    return ", ".join([*words, f"mbs={known['micro_batch_size']}", f"zero={known['zero_stage']}"])


def _offload(stage: PoolStage) -> str:
    words = ["optimizer"] if stage.optimizer_offload else []
    if stage.activation_offload_layers:
        words.append(f"activations {stage.activation_offload_layers}/{stage.layers}")
    return ", ".join(words) or "none"


def _pools(plan: PoolsPlan) -> RenderableType:
    rows = [
        (
            use.pool,
            use.device,
            f"{use.used:,} of {use.devices:,}",
            str(use.stages),
            str(use.layers),
            percent(use.busy_fraction),
        )
        for use in plan.pools
    ]
    return table("", ("pool", "device", ">devices used", ">stages", ">layers", ">busy"), rows)
