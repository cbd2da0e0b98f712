"""A plan for people: head, time, memory, stages, back-ends, timeline, runners-up, what was searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from planner.answers.views.words import GIB, close_seconds, count, gib, money, percent, seconds, short_id
from planner.cli.render.back_ends import back_ends, short_strategy, software_title
from planner.cli.render.tables import WideOrNarrow, bullets, facts, heading, table
from planner.cli.render.words import bar, symbol
from planner.plan.limits import fullest_host, host_words
from planner.plan.plan import Alternative, ChunkPlan, FastestPlan, Origins, Plan, StagePlan
from planner.plan.recommendation import is_another, proved_words, same_words
from planner.plan.relief import offload_words
from planner.predict.memory.fit_chance import chance_words
from planner.predict.step_terms import term_words, told_terms
from planner.strategy.fields import told_fields, value_words
from planner.strategy.strategy import Strategy

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MOST_STAGES = 16
BAR_WIDTH = 24
MEMORY_BAR_WIDTH = 16


def plan_report(plan: Plan, *, wall_s: float | None = None, timeline: str | None = None) -> Iterator[RenderableType]:
    """The whole report, part by part."""
    yield from _head(plan)
    yield heading("Where the step goes")
    yield breakdown(plan)
    yield heading(f"Stages ({', '.join((f'limit {gib(plan.memory_limit_bytes)} a device', *_on_every_stage(plan)))})")
    yield stages(plan)
    yield from back_ends(plan)
    if timeline:
        yield heading("Timeline")
        yield Text(timeline.rstrip("\n"), no_wrap=True, overflow="crop")
    if plan.alternatives:
        yield heading("Runners-up of other degrees (solved, not proved best of their kind)")
        yield alternatives(plan.alternatives)
    yield from _foot(plan, wall_s)


def verdict(plan: Plan) -> str:
    """What the plan's status means, and for which spaces."""
    if plan.status == "infeasible":
        return "it does not fit"
    if plan.bound is None:
        return "an estimate: it fits"
    if plan.fastest is not None and is_another(plan):
        band = f"times within {100 * plan.fastest.band:.0f} % are not told apart"
        return f"recommended beside the fastest plan, {proved_words(plan.fastest)}: {band}"
    if plan.status == "optimal":
        spaces = "the spaces of all back-ends that were asked" if plan.backends else "its space"
        return f"optimal: no plan of {spaces} is predicted to be faster"
    return f"feasible: within {percent(plan.bound.gap)} of the bound"


def strategy_line(plan: Plan) -> str:
    """The strategy in one line."""
    from planner.backends.emission.describe import plan_strategy_words

    return plan_strategy_words(plan)


def headline(plan: Plan) -> str:
    """Model, devices and work in one line."""
    problem = plan.problem
    dot, times = symbol("·", "|"), symbol("\N{MULTIPLICATION SIGN}", "x")
    counts = Counter[str]()
    for pool in problem.cluster.pools:
        counts[pool.device.name] += pool.num_devices
    devices = " + ".join(f"{number:,} {times} {device}" for device, number in counts.items())
    return (
        f"{problem.model.name} on {devices} ({problem.cluster.name}) {dot} "
        f"{problem.workload.global_batch_size:,} {times} {problem.workload.sequence_length:,} tokens a step {dot} "
        f"{problem.workload.precision}"
    )


def inputs_line(plan: Plan) -> str:
    """``profile ae18c8e4ab11: 49.5 % of the looked-up time measured, 44.9 % interpolated, 5.7 % datasheet``."""
    shares = sorted(plan.provenance.get("time_by_input", {}).items(), key=lambda item: -item[1])
    parts = [
        f"{percent(share)} {'of the looked-up time ' if not place else ''}{name}"
        for place, (name, share) in enumerate(shares)
    ]
    return f"profile {short_id(plan.problem.profile_id or '')}: {', '.join(parts)}"


def breakdown(plan: Plan) -> RenderableType:
    """Seconds of each term, with bars."""
    total = sum(plan.breakdown_s.values()) or 1.0
    return table(
        "",
        ("", ">time", ">share", "|"),
        [
            (term_words(term), seconds(value), percent(value / total), bar(value / total, BAR_WIDTH))
            for term, value in told_terms(plan.breakdown_s)
        ],
    )


def stages(plan: Plan) -> RenderableType:
    """One line a pipeline rank; in long pipelines one line a run of equal ranks, with the worst memory of the run.

    What is the same on every rank stands in the heading; a narrow terminal gets no picture of the memory.
    """
    runs = _runs(plan.stages) if len(plan.stages) > MOST_STAGES else [(stage,) for stage in plan.stages]
    columns = (">stage", "layers", "recompute", "offload", "|memory", ">peak", ">of limit")
    terms = (">weights", ">grads", ">optim.", ">activ.", ">buffers", ">fwd / bwd")
    names = (*columns, *terms)
    rows = [_stage_row(run, plan.memory_limit_bytes) for run in runs]
    same = {"recompute": len(set(map(_recompute, plan.stages))) == 1, "offload": _same_offload(plan)}
    told = [name for name in names if not same.get(name)]

    def made(shown: list[str]) -> Table:
        return table(
            "", shown, [[cell for name, cell in zip(names, row, strict=True) if name in shown] for row in rows]
        )

    return WideOrNarrow(made(told), made([name for name in told if name not in {"|memory", ">of limit"}]))


def _same_offload(plan: Plan) -> bool:
    return len(set(map(offload_words, plan.stages))) == 1


def _on_every_stage(plan: Plan) -> tuple[str, ...]:
    """``recompute none``, ``offload optimizer``: what no column says because all stages do the same."""
    kinds = set(map(_recompute, plan.stages))
    words = [f"recompute {kinds.pop()}"] if len(kinds) == 1 else []
    first = offload_words(plan.stages[0])
    return (*words, *([f"offload {first}"] if _same_offload(plan) and first != "none" else []))


def _stage_row(run: tuple[StagePlan, ...], limit_bytes: int) -> tuple[str | Text, ...]:
    worst = max(run, key=lambda stage: stage.peak_memory_bytes.total)
    bill = worst.peak_memory_bytes
    used = bill.total / limit_bytes
    items = (bill.weights, bill.gradients, bill.optimizer, bill.activations, bill.buffers)
    return (
        str(worst.stage) if len(run) == 1 else f"{run[0].stage}-{run[-1].stage}",
        _layers(worst),
        _recompute(worst),
        offload_words(worst),
        Text(bar(used, MEMORY_BAR_WIDTH), style="red" if used > 1 else "yellow" if used > 0.95 else "green"),
        gib(bill.total),
        percent(used),
        *(f"{item / GIB:.1f}" for item in items),
        f"{seconds(worst.forward_s)} / {seconds(worst.backward_s)}",
    )


def alternatives(others: tuple[Alternative, ...]) -> RenderableType:
    """Runners-up: how much slower and in what they differ."""
    rows = [
        (
            str(index),
            seconds(other.step_time_s),
            percent(other.slower_by, signed=True),
            gib(other.peak_memory_bytes),
            ", ".join(f"{field}={value_words(other.strategy.get(field))}" for field in told_fields(other.differs_in)),
        )
        for index, other in enumerate(others, start=1)
    ]
    return table("", (">#", ">step", ">slower", ">peak", "differs in"), rows)


def _head(plan: Plan) -> Iterator[RenderableType]:
    low_s, high_s = plan.step_time_interval_s
    margin = plan.memory_limit_bytes - plan.peak_memory_bytes
    spare = f"{gib(margin)} spare" if margin >= 0 else f"{gib(-margin)} too much"
    yield Text(headline(plan))
    yield Text(
        f"PLAN {short_id(plan.plan_id)} for {software_title(plan.backend, plan.release)}, {verdict(plan)}",
        style="bold red" if plan.status == "infeasible" else "bold",
    )
    rows = [
        ("strategy", strategy_line(plan)),
        ("step", f"{close_seconds(plan.step_time_s)}  (interval {seconds(low_s)} to {seconds(high_s)})"),
        (
            "rate",
            f"{count(plan.tokens_per_s)} tokens/s, {count(plan.tokens_per_s_per_device)} a device, "
            f"MFU {percent(plan.model_flops_utilization)}",
        ),
        (
            "memory",
            f"{gib(plan.peak_memory_bytes)} of {gib(plan.memory_limit_bytes)} usable on the worst device, {spare}",
        ),
    ]
    rows += _host_memory(plan)
    if plan.fits_probability is not None:
        rows.append(("fits", f"with a chance of {chance_words(plan.fits_probability)}"))
    rows += _fastest(plan.fastest)
    if plan.bound is not None:
        spaces = "these spaces" if plan.backends else "this space"
        below = f"no plan of {spaces} is predicted below {close_seconds(plan.bound.step_time_s)}"
        rows.append(("bound", f"{below} (gap {percent(plan.bound.gap)})"))
    if plan.problem.profile is not None:
        rows.append(("inputs", inputs_line(plan)))
    if plan.cost_per_step is not None:
        rows.append(("cost", f"{money(plan.cost_per_step)} a step"))
    yield facts(rows)


def _host_memory(plan: Plan) -> list[tuple[str, str]]:
    """What the devices of the fullest stage keep in host memory; no line where nothing is offloaded."""
    stage = fullest_host(plan)
    held = None if stage is None else stage.host_memory_bytes
    if held is None:
        return []
    spare = f"{gib(-held.missing)} spare" if held.missing <= 0 else f"{gib(held.missing)} too much"
    return [("host memory", f"{host_words(held)} of {gib(held.limit)} usable a device, {spare}")]


def _fastest(fastest: FastestPlan | None) -> list[tuple[str, str]]:
    """The fastest plan beside the recommended one, and what it costs not to take it; one line where both are one."""
    if fastest is None:
        return []
    if fastest.is_recommended:
        return [("fastest", same_words(fastest))]
    needs = f"{gib(fastest.peak_memory_bytes)}, fits with {chance_words(fastest.fits_probability)}"
    told = f"{close_seconds(fastest.step_time_s)}, {needs}: {short_strategy(fastest.strategy)}"
    if "uneven layers" in fastest.mechanisms:
        told += ", uneven layers"
    return [
        ("fastest", f"{told} (--prefer fastest)"),
        ("price", fastest.price),
    ]


def _foot(plan: Plan, wall_s: float | None) -> Iterator[RenderableType]:
    search = plan.search
    pruned = sorted(search.pruned.items(), key=lambda item: (-item[1], item[0]))
    dot = symbol(" · ", " | ")
    took = f" in {seconds(wall_s)}" if wall_s is not None else ""
    yield heading("Searched" if plan.is_searched else "Estimated")
    looked_at = f"{search.enumerated:,} enumerated, {search.bounded:,} bounded, {search.evaluated:,} solved exactly"
    rows = [("strategies", looked_at + took)]
    if pruned:
        rows.append(("pruned", dot.join(f"{reason} {number:,}" for reason, number in pruned)))
    refused = sorted(search.refused.items(), key=lambda item: (-item[1], item[0]))
    if refused:
        rows.append(("refused", dot.join(f"{reason} {number:,}" for reason, number in refused)))
    if search.proof:
        rows.append(("proof", search.proof))
    yield facts(rows)
    if plan.origins is not None:
        yield heading("Held and filled in")
        yield facts(_origins(plan.origins))
    if plan.assumptions:
        yield heading("Assumptions")
        yield bullets(plan.assumptions)


def _origins(origins: Origins) -> list[tuple[str, str]]:
    """What was given, what was left out and filled in, and what the planner searched."""
    parts = (("given", origins.given), ("by default", origins.default), ("searched", origins.chosen))
    # In the order of a strategy's fields: a document that came over the wire has its own.
    order = list(Strategy().to_dict())

    def place(name: str) -> tuple[int, str]:
        return (order.index(name) if name in order else len(order)), name

    return [
        (
            title,
            ", ".join(f"{field}={_origin_words(values[field])}" for field in sorted(values, key=place)) or "nothing",
        )
        for title, values in parts
    ]


def _origin_words(value: int | str | bool) -> str:
    """A value; a list of layers with its repeats counted: ``4, 33 of 3, 2``."""
    words = value_words(value) or "none"
    if "," not in words:
        return words
    runs = [(number, len(list(run))) for number, run in groupby(words.split(","))]
    return f"({', '.join(number if repeats == 1 else f'{repeats} of {number}' for number, repeats in runs)})"


def _runs(all_stages: tuple[StagePlan, ...]) -> list[tuple[StagePlan, ...]]:
    """Neighbouring stages that hold the same and save the same."""

    def content(stage: StagePlan) -> tuple[str, str, str]:
        return _layers(stage), _recompute(stage), offload_words(stage)

    return [tuple(run) for _, run in groupby(all_stages, key=content)]


def _layers(stage: StagePlan) -> str:
    """``20``, or by chunk ``E+2, 6 of 3, 1+H`` (E embedding, H head), with extra prediction layers named."""
    words = []
    for text, run in groupby(_chunk_words(chunk) for chunk in stage.chunks):
        repeats = len(list(run))
        words.append(text if repeats == 1 else f"{repeats} of {text}")
    return ", ".join(words)


def _chunk_words(chunk: ChunkPlan) -> str:
    extra = f"+{chunk.num_mtp_layers} MTP" if chunk.num_mtp_layers else ""
    return f"{'E+' if chunk.has_embedding else ''}{chunk.num_layers}{extra}{'+H' if chunk.has_head else ''}"


def _recompute(stage: StagePlan) -> str:
    """Policy and layers; the modules stand in the strategy."""
    recompute = stage.recompute
    layers = sum(recompute.num_layers_per_chunk)
    return "none" if recompute.policy == "none" else f"{recompute.policy} {layers}/{stage.layers}"
