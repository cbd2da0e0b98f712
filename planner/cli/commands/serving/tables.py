"""A serving plan and an estimate as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.answers.views.words import count, gib, money, percent, seconds, short_id
from planner.cli.render.tables import bullets, facts, heading, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.operations.serving import ServingEstimate
    from planner.serving.layout import Deployment, InstanceGroup
    from planner.serving.plan import RankedDeployment, ServingPlan
    from planner.serving.predict.prediction import TimeSpread
    from planner.serving.problem import ServingProblem

HEAD = (
    *("engine", "deployment", "formats", ">devices", ">in flight"),
    *(">TTFT", ">TPOT", ">tokens/s", ">a device", ">a user", "promises"),
)


def plan_tables(found: ServingPlan) -> Iterator[RenderableType]:
    """The whole answer."""
    from rich.text import Text

    from planner.serving.search.explain import deployment_words

    problem, best = found.problem, found.best
    yield Text(
        f"{problem.model.name} on {problem.num_devices:,} devices of {problem.cluster.name}:"
        f" {best.deployment.engine} {best.deployment.release}, {deployment_words(best.deployment)}",
        style="bold",
    )
    proved = "proved" if found.status == "optimal" else f"gap {percent(found.gap)}"
    yield Text(
        f"{count(best.value)} {found.unit}; no deployment of {count(found.num_deployments)} gives more than"
        f" {count(found.bound)} ({proved})"
        if found.unit != "devices"
        else f"{best.value:,.0f} devices; no deployment of {count(found.num_deployments)} needs less than"
        f" {found.bound:,.0f} ({proved})"
    )
    yield heading(f"The best, and the best found of other engines and kinds (times: {_percentile(problem)})")
    yield table("", HEAD, [_row(problem, line) for line in (best, *found.runners_up)])
    yield heading("Instances")
    yield from _instances(best)
    yield heading("Why")
    lines = [*found.why, *([found.why_not_other_kind] if found.why_not_other_kind else [])]
    least = "" if found.status == "optimal" else " at least"
    lines += [
        f"without the promise of {each.promise} ({seconds(each.limit_s)}) the best is{least} {percent(each.gain)}"
        " better"
        for each in found.promise_costs
    ]
    yield bullets([*lines, *found.notes])
    if found.pareto:
        yield heading("Tokens a second and user against tokens a second and device (median)")
        yield table("", HEAD, [_row(problem, line) for line in found.pareto])
    if found.traffic_changes:
        yield heading("Under another traffic, at the same load")
        rows = [
            (
                each.change,
                "" if each.ttft_s is None else seconds(each.ttft_s),
                "" if each.tpot_s is None else seconds(each.tpot_s),
                count(each.output_tokens_per_s),
                "kept" if each.meets else "broken",
            )
            for each in found.traffic_changes
        ]
        yield table("", ("change", ">TTFT", ">TPOT", ">tokens/s", "promises"), rows)
    yield heading("What was left out")
    refused = [f"{reason}: {number:,}" for reason, number in list(found.refused.items())[:8]]
    yield bullets([f"{found.num_evaluated:,} instance layouts were evaluated", f"the bound: {found.proof}", *refused])
    yield Text(f"\nplan {short_id(found.plan_id)}", style="dim")


def estimate_tables(found: ServingEstimate) -> Iterator[RenderableType]:
    """What a given deployment gives."""
    from planner.serving.search.explain import why

    problem, line = found.problem, found.line
    yield table("", HEAD, [_row(problem, line)])
    if not line.prediction.fits:
        yield bullets([f"does not fit: {line.prediction.reason}"])
        return
    yield heading("Instances")
    yield from _instances(line)
    yield heading("Why")
    yield bullets(why(problem, line))
    if found.refused:
        yield heading("What it lacks")
        yield bullets(found.refused)


def _row(problem: ServingProblem, line: RankedDeployment) -> tuple[str, ...]:
    from planner.serving.search.explain import deployment_words

    prediction = line.prediction
    formats = line.deployment.formats
    experts = f"/{formats.experts}" if formats.experts else ""
    return (
        f"{line.deployment.engine} {line.deployment.release}",
        deployment_words(line.deployment),
        f"{formats.weights}{experts}, kv {formats.kv_cache}",
        f"{line.deployment.num_devices:,}",
        f"{line.concurrency:,.0f}",
        _time(problem, prediction.ttft),
        _time(problem, prediction.tpot),
        count(prediction.output_tokens_per_s),
        count(prediction.output_tokens_per_s_per_device),
        count(prediction.output_tokens_per_s_per_user),
        "kept" if line.meets else "broken",
    )


def _time(problem: ServingProblem, spread: TimeSpread | None) -> str:
    from planner.serving.search.curves import limits_of

    return "" if spread is None else seconds(getattr(spread, f"p{limits_of(problem.promised).percentile}_s"))


def _percentile(problem: ServingProblem) -> str:
    from planner.serving.search.curves import limits_of

    percentile = limits_of(problem.promised).percentile
    return "median" if percentile == 50 else f"{percentile}th percentile"


def _instances(line: RankedDeployment) -> Iterator[RenderableType]:
    rows = []
    for group, instance in zip(line.deployment.groups, line.prediction.instances, strict=False):
        rows.append(
            (
                f"{group.num_instances} x {group.role}",
                f"{group.layout.num_devices:,}",
                _settings(group),
                seconds(instance.iteration_s),
                f"{instance.running:,.0f}",
                gib(instance.weight_bytes),
                gib(instance.cache_bytes),
                f"{instance.cache_tokens:,}",
                percent(instance.cache_used),
            )
        )
    head = (
        "instances",
        ">devices each",
        "settings",
        ">step",
        ">running",
        ">weights",
        ">kv room",
        ">kv tokens",
        ">used",
    )
    yield table("", head, rows)
    rows_ = _facts(line.deployment, line)
    if rows_:
        yield facts(rows_)


def _settings(group: InstanceGroup) -> str:
    from planner.serving.search.explain import settings_words

    return settings_words(group) or "the engine's own"


def _facts(deployment: Deployment, line: RankedDeployment) -> list[tuple[str, str]]:
    prediction, found = line.prediction, list[tuple[str, str]]()
    if deployment.disaggregated:
        found.append(("keys and values move in", seconds(prediction.kv_transfer_s)))
    for name, likely in (
        ("TTFT", prediction.likely_ttft),
        ("TPOT", prediction.likely_tpot),
        ("throughput", prediction.likely_throughput),
    ):
        if likely is not None:
            found.append((f"9 of 10 measured {name}", f"{likely.low:.2f} to {likely.high:.2f} of the predicted"))
    if line.cost_per_million_output_tokens is not None:
        found.append(("a million output tokens", money(line.cost_per_million_output_tokens)))
    return found


def why_not_tables(found: ServingPlan, other: ServingEstimate, words: tuple[str, ...]) -> Iterator[RenderableType]:
    """Another deployment beside the best."""
    yield table("", HEAD, [_row(found.problem, line) for line in (found.best, other.line)])
    yield heading("Why not")
    yield bullets(words)
