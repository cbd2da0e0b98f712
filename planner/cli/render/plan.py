"""How does a person read a plan?  Head, time, memory bars, stages, timeline, runners-up, what was searched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from planner.cli.render.tables import facts, heading, table
from planner.cli.render.words import bar, count, gib, percent, seconds, short_id, symbol
from planner.diff import offload_words, recompute_words
from planner.plan import Alternative, Plan, StagePlan

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_STAGES = 16
BAR_WIDTH = 24

TERM_NAMES = {
    "compute": "compute",
    "tp": "tensor parallel communication",
    "cp": "context parallel communication",
    "ep": "expert all-to-all",
    "dp": "gradients and parameters (data parallel)",
    "pp_bubble": "pipeline bubble",
    "pp_send": "pipeline sends",
    "optimizer": "optimizer step",
    "recompute": "recompute",
    "offload": "offload",
}


def plan_report(plan: Plan, *, wall_s: float | None = None, timeline: str | None = None) -> Iterator[RenderableType]:
    """The whole report, part by part."""
    yield from _head(plan)
    yield heading("Where the step goes")
    yield breakdown(plan)
    yield heading(f"Stages (limit {gib(plan.memory_limit_bytes)} a device)")
    yield stages(plan)
    if timeline:
        yield heading("Timeline")
        yield Text(timeline.rstrip("\n"), no_wrap=True, overflow="crop")
    if plan.alternatives:
        yield heading("Runners-up")
        yield alternatives(plan.alternatives)
    yield from _foot(plan, wall_s)


def strategy_line(plan: Plan) -> str:
    """The strategy in one line."""
    from planner.emit.describe import strategy_words

    return strategy_words(plan.chosen())


def headline(plan: Plan) -> str:
    """Model, devices and work in one line."""
    problem = plan.problem
    device = problem.cluster.pools[0].device.name
    dot, times = symbol("·", "|"), symbol("\N{MULTIPLICATION SIGN}", "x")
    return (
        f"{problem.model.name} on {problem.cluster.num_devices:,} {times} {device} ({problem.cluster.name}) {dot} "
        f"{problem.workload.global_batch_size:,} {times} {problem.workload.sequence_length:,} tokens a step {dot} "
        f"{problem.workload.precision}"
    )


def breakdown(plan: Plan) -> RenderableType:
    """Seconds of each term, with bars."""
    total = sum(plan.breakdown_s.values()) or 1.0
    terms = sorted(plan.breakdown_s.items(), key=lambda item: -item[1])
    return table(
        "",
        ("", ">time", ">share", ""),
        [
            (
                TERM_NAMES.get(term, term.replace("_", " ")),
                seconds(value),
                percent(value / total),
                bar(value / total, BAR_WIDTH),
            )
            for term, value in terms
            if value > 0
        ],
    )


def stages(plan: Plan) -> RenderableType:
    """One line a pipeline rank; equal neighbours are folded when there are many."""
    groups = _fold(plan.stages) if len(plan.stages) > MOST_STAGES else [(stage, stage) for stage in plan.stages]
    rows: list[tuple[str | Text, ...]] = []
    for first, last in groups:
        bill = first.peak_memory_bytes
        used = bill.total / plan.memory_limit_bytes
        mark = Text(bar(used, BAR_WIDTH), style="red" if used > 1 else "yellow" if used > 0.95 else "green")
        rows.append(
            (
                str(first.stage) if first is last else f"{first.stage}-{last.stage}",
                _layers(first),
                recompute_words(first),
                offload_words(first),
                mark,
                gib(bill.total),
                percent(used),
                *(
                    f"{getattr(bill, term) / 2**30:.1f}"
                    for term in ("weights", "gradients", "optimizer", "activations", "buffers")
                ),
                f"{seconds(first.forward_s)} / {seconds(first.backward_s)}",
            )
        )
    columns = (">stage", "layers", "recompute", "offload", "memory", ">peak", ">of limit")
    terms = (">weights", ">grads", ">optim.", ">activ.", ">buffers", ">fwd / bwd")
    return table("", (*columns, *terms), rows)


def alternatives(others: tuple[Alternative, ...]) -> RenderableType:
    """Runners-up: how much slower and in what they differ."""
    rows = [
        (
            str(index),
            seconds(other.step_time_s),
            percent(other.slower_by, signed=True),
            gib(other.peak_memory_bytes),
            ", ".join(f"{field}={_plain(other.strategy.get(field))}" for field in other.differs_in),
        )
        for index, other in enumerate(others, start=1)
    ]
    return table("", (">#", ">step", ">slower", ">peak", "differs in"), rows)


def _head(plan: Plan) -> Iterator[RenderableType]:
    low_s, high_s = plan.step_time_interval_s
    verdict = {
        "optimal": "optimal: proved best in the searched space",
        "feasible": f"feasible: within {percent(plan.gap)} of the bound",
        "infeasible": "infeasible: it does not fit",
    }[plan.status]
    margin = plan.memory_limit_bytes - plan.peak_memory_bytes
    spare = f"{gib(margin)} spare" if margin >= 0 else f"{gib(-margin)} too much"
    yield Text(headline(plan))
    yield Text(f"PLAN {short_id(plan.plan_id)}  {verdict}", style="bold red" if plan.status == "infeasible" else "bold")
    rows = [
        ("strategy", strategy_line(plan)),
        ("step", f"{seconds(plan.step_time_s)}  (interval {seconds(low_s)} to {seconds(high_s)})"),
        (
            "rate",
            f"{count(plan.tokens_per_s)} tokens/s, {count(plan.tokens_per_s_per_device)} a device, "
            f"MFU {percent(plan.model_flops_utilization)}",
        ),
        (
            "memory",
            f"{gib(plan.peak_memory_bytes)} of {gib(plan.memory_limit_bytes)} usable on the worst device, {spare}",
        ),
        ("bound", f"no plan can be faster than {seconds(plan.lower_bound_s)} (gap {percent(plan.gap)})"),
    ]
    if plan.cost_per_step is not None:
        rows.append(("cost", f"{plan.cost_per_step:,.4g} a step"))
    yield facts(rows)


def _foot(plan: Plan, wall_s: float | None) -> Iterator[RenderableType]:
    search = plan.search
    pruned = sorted(search.pruned.items(), key=lambda item: (-item[1], item[0]))
    dot = symbol(" · ", " | ")
    took = f" in {seconds(wall_s)}" if wall_s is not None else ""
    yield heading("Searched")
    rows = [
        (
            "strategies",
            f"{search.enumerated:,} enumerated, {search.bounded:,} bounded, {search.evaluated:,} solved exactly{took}",
        )
    ]
    if pruned:
        rows.append(("pruned", dot.join(f"{reason} {number:,}" for reason, number in pruned)))
    if search.proof:
        rows.append(("proof", search.proof))
    yield facts(rows)
    if plan.assumptions:
        yield heading("Assumptions")
        yield Text("\n".join(f"  {symbol('•', '-')} {line}" for line in plan.assumptions))


def _fold(all_stages: tuple[StagePlan, ...]) -> list[tuple[StagePlan, StagePlan]]:
    """Runs of stages that look alike (same layers, recompute, offload; memory within 1 %), for long pipelines."""
    groups: list[tuple[StagePlan, StagePlan]] = []
    for stage in all_stages:
        if groups and _alike(groups[-1][0], stage):
            groups[-1] = (groups[-1][0], stage)
        else:
            groups.append((stage, stage))
    return groups


def _alike(a: StagePlan, b: StagePlan) -> bool:
    same = (_layers(a), recompute_words(a), offload_words(a)) == (_layers(b), recompute_words(b), offload_words(b))
    return same and abs(a.peak_memory_bytes.total / b.peak_memory_bytes.total - 1) < 0.01


def _layers(stage: StagePlan) -> str:
    """``20``, ``10+10`` for two chunks, with ``E`` for the embedding and ``H`` for the head."""
    parts = []
    for chunk in stage.chunks:
        extra = f"+{chunk.num_mtp_layers} MTP" if chunk.num_mtp_layers else ""
        parts.append(f"{'E+' if chunk.has_embedding else ''}{chunk.num_layers}{extra}{'+H' if chunk.has_head else ''}")
    return " | ".join(parts)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(value) if isinstance(value, list) else str(value)
