"""``PLAN.md`` of a sharding plan, for a person: what, why, where weights are, how to start."""

from __future__ import annotations

from planner.backends.emission.describe import bullet_section, markdown_table
from planner.backends.launch.spec import LaunchFiles
from planner.shard.sharding_plan import ShardingPlan
from planner.shard.words import module_summaries

_GIB = 2**30
_MOST_EDGES = 10


def sharding_markdown(plan: ShardingPlan, launch: LaunchFiles, assumptions: tuple[str, ...]) -> str:
    """Markdown for people; nothing reads it back."""
    parts = (
        _what(plan),
        _why(plan),
        _modules(plan),
        _edges(plan),
        bullet_section("Assumptions", (*plan.assumptions, *assumptions)),
        _launch(launch),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _what(plan: ShardingPlan) -> str:
    mesh = " x ".join(f"{axis.size} ({axis.name})" for axis in plan.mesh)
    limit = plan.costs.capacity_bytes
    of_limit = f" of {limit / _GIB:.1f} GiB usable" if limit is not None else ""
    rows = (
        ("module", f"`{plan.traced.module}`"),
        ("plan", f"`{plan.plan_id}`"),
        ("mesh", mesh),
        ("inputs", "; ".join(f"{row.name} {row.dtype}{list(row.shape)}" for row in plan.traced.inputs)),
        ("optimizer", plan.optimizer),
        ("expected time of a step", f"{plan.costs.total_s * 1e3:.3f} ms"),
        ("peak memory", f"{plan.costs.peak_memory_bytes / _GIB:.2f} GiB{of_limit} a device"),
    )
    return f"# {plan.traced.title} on a mesh of {mesh} on {plan.cluster}\n\n" + markdown_table(("", ""), rows)


def _why(plan: ShardingPlan) -> str:
    status = "proved best under its cost model" if plan.status == "optimal" else "feasible, not proved best"
    rows = (
        ("compute", f"{plan.costs.compute_s * 1e3:.3f}"),
        ("resharding", f"{plan.costs.resharding_s * 1e3:.3f}"),
    )
    bound = f"bound {plan.bound_s * 1e3:.3f} ms, gap {100 * plan.gap:.3f} %"
    return f"## Why\n\nThe plan is {status}: {bound}.\n\n" + markdown_table(("where the step goes", "ms"), rows)


def _modules(plan: ShardingPlan) -> str:
    rows = [
        (each.module_path, each.in_words, each.weight, each.state, each.output or "-", str(each.copies))
        for each in module_summaries(plan)
    ]
    head = ("module", "in words", "weight", "optimizer state", "output", "copies")
    return (
        "## Weights\n\nOne letter a mesh axis: S0 = dim 0 is cut, R = whole, P = a term of a sum.\n\n"
        + markdown_table(head, rows)
    )


def _edges(plan: ShardingPlan) -> str:
    """The dearest reshardings, of operators and of the optimizer's step."""
    rows = [
        (edge.resharding_s, (edge.producer, row.name, row.module_path, ", ".join(edge.collectives)))
        for row in plan.operators
        for edge in row.inputs
    ]
    for each in plan.parameters:
        gradient, update = ", ".join(each.gradient_collectives), ", ".join(each.update_collectives)
        rows.append((each.gradient_resharding_s, (f"gradient of {each.parameter}", "optimizer", "", gradient)))
        rows.append((each.update_resharding_s, (f"update of {each.parameter}", "the next step", "", update)))
    rows = sorted((row for row in rows if row[0] > 0), key=lambda row: -row[0])
    if not rows:
        return ""
    head = ("tensor", "read by", "in module", "collectives", "µs")
    shown = [(*words, f"{time * 1e6:.1f}") for time, words in rows[:_MOST_EDGES]]
    return f"## What is sent\n\nThe dearest of {len(rows)} reshardings.\n\n" + markdown_table(head, shown)


def _launch(launch: LaunchFiles) -> str:
    notes = "\n\n" + "\n".join(f"- {note}" for note in launch.notes) if launch.notes else ""
    return f"## Launch\n\nIn this directory:\n\n```\n{launch.command}\n```{notes}"
