"""A sharding plan for people: where time goes, what each module does, the most expensive reshardings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from planner.answers.views.words import gib, percent, seconds, short_id
from planner.cli.render.tables import bullets, facts, heading, table
from planner.shard.compare_plans import ShardingDifference, TermDifference
from planner.shard.explain_operator import OperatorExplanation
from planner.shard.placement import layout_of, short
from planner.shard.sharding_plan import ShardingPlan
from planner.shard.words import module_summaries

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.shard.questions import MeshOutcome

MOST_RESHARDINGS = 8
MOST_ROWS = 10


def plan_report(plan: ShardingPlan, outcomes: Sequence[MeshOutcome]) -> Iterator[RenderableType]:
    """The whole plan."""
    costs = plan.costs
    mesh = " x ".join(f"{axis.name} {axis.size}" for axis in plan.mesh)
    yield Text(f"{plan.traced.title} on {plan.cluster}, mesh {mesh}", style="bold")
    total = max(costs.total_s, 1e-30)
    split = (
        f"compute {seconds(costs.compute_s)} ({percent(costs.compute_s / total)}), resharding "
        f"{seconds(costs.resharding_s)} ({percent(costs.resharding_s / total)})"
    )
    phases = f"forward {seconds(costs.forward_s)}, backward {seconds(costs.backward_s)}, optimizer "
    memory = (
        f"{gib(costs.peak_memory_bytes)} of {gib(costs.capacity_bytes or 0)}: parameters "
        f"{gib(costs.parameters_bytes)}, training state {gib(costs.states_bytes)}, activations "
        f"{gib(costs.activations_bytes)}"
    )
    proof = "proved best" if plan.status == "optimal" else f"at most {percent(plan.gap)} above the best"
    sources = ", ".join(f"{name} {number}" for name, number in plan.provenance.items())
    yield facts(
        [
            ("plan", short_id(plan.plan_id)),
            ("step", f"{seconds(costs.total_s)} = {split}"),
            ("phases", f"{phases}{seconds(costs.optimizer_s)}"),
            ("proof", f"{proof} (bound {seconds(plan.bound_s)})"),
            ("peak memory", memory),
            ("operators", f"{len(plan.operators)}; times: {sources}"),
            *[("repeated", f"{len(each.paths)} x {each.paths[-1]}") for each in plan.repeated],
        ]
    )
    if len(outcomes) > 1:
        yield heading("Meshes")
        yield table("", ("mesh", ">step", ">bound", "note"), [_mesh_row(each) for each in outcomes])
    yield heading("Modules (placements per axis: R whole, S0 split on dim 0, P partial sum)")
    rows = [
        (f"{each.copies} x {each.module_path}" if each.copies > 1 else each.module_path, each.in_words, each.weight,
         each.state, each.output)
        for each in module_summaries(plan)
    ]  # fmt: skip
    yield table("", ("module", "in words", "weight", "state", "output"), rows)
    yield heading("Most expensive reshardings")
    yield table("", (">time", "read by", "module", "held", "needed", "by"), _resharding_rows(plan))
    yield bullets(plan.assumptions)


def _mesh_row(outcome: MeshOutcome) -> tuple[str, str, str, str]:
    proved = outcome.proved
    if proved is None:
        return outcome.mesh.text, "", "", outcome.refusal or ""
    return outcome.mesh.text, seconds(proved.bill.total_ps / 1e12), seconds(proved.bound_ps / 1e12), ""


def _resharding_rows(plan: ShardingPlan) -> list[tuple[str, str, str, str, str, str]]:
    edges = [
        (edge.resharding_s, operator.name, operator.module_path, edge.held, edge.needed, " + ".join(edge.collectives))
        for operator in plan.operators
        for edge in operator.inputs
        if edge.resharding_s > 0
    ]
    for row in plan.parameters:
        state, name = row.state_placements, row.parameter
        for time, what, held, needed, how in (
            (row.gradient_resharding_s, "gradient", (), state, row.gradient_collectives),
            (row.update_resharding_s, "update", state, row.placements, row.update_collectives),
        ):
            if time > 0:
                edges.append((time, what, name, held, needed, " + ".join(how)))
    edges.sort(key=lambda each: -each[0])
    return [
        (seconds(time), name, module, short(layout_of(held)), short(layout_of(needed)), how)
        for time, name, module, held, needed, how in edges[:MOST_RESHARDINGS]
    ]


def explanation_report(explained: OperatorExplanation) -> Iterator[RenderableType]:
    """Options of one operator, best first."""
    yield heading(f"Options of {explained.name} ({explained.target}, {explained.module_path or 'module itself'})")
    rows = [
        (
            "chosen" if option.chosen else "",
            ", ".join(short(layout_of(each)) for each in option.inputs),
            ", ".join(short(layout_of(each)) for each in option.outputs),
            seconds(option.compute_s),
            seconds(option.resharding_s),
            gib(option.memory_bytes),
            f"+{seconds(option.slower_by_s)}" if option.slower_by_s > 0 else seconds(option.slower_by_s),
            ", ".join(f"{each.name} {seconds(each.resharding_s)}" for each in option.neighbours[:3]),
        )
        for option in explained.options
    ]
    columns = ("", "inputs", "outputs", ">compute", ">resharding", ">memory", ">slower by", "who reshards")
    yield table("", columns, rows)
    yield bullets(
        [f"neighbours keep their choices; {explained.impossible} more options cannot stand beside them"]
        + ([f"times are those of {explained.copies} copies together"] if explained.copies > 1 else [])
    )


def difference_report(difference: ShardingDifference, names: tuple[str, str]) -> Iterator[RenderableType]:
    """Two plans side by side."""
    yield heading(f"Against {names[1]}")
    yield table("", ("term", f">{names[0]}", f">{names[1]}", ">change"), [_term(each) for each in difference.terms])
    yield heading("Modules that differ most")
    rows = [_term(each) for each in difference.modules[:MOST_ROWS]]
    yield table("", ("module", f">{names[0]}", f">{names[1]}", ">change"), rows)
    yield heading(f"{difference.num_different} operators are placed differently")
    yield table(
        "",
        ("operator", "module", names[0], names[1], f">{names[0]} time", f">{names[1]} time"),
        [
            (each.name, each.module_path, short(layout_of(each.first)), short(layout_of(each.second)),
             seconds(each.first_s), seconds(each.second_s))
            for each in difference.operators
        ],
    )  # fmt: skip


def _term(row: TermDifference) -> tuple[str, str, str, str]:
    words = seconds if row.unit == "s" else gib
    sign = "+" if row.delta > 0 else ""
    return row.term, words(row.first), words(row.second), f"{sign}{words(row.delta)}"
