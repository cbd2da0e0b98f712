"""``meshwright profile coverage``: what a plan leans on, and what to measure next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from rich.console import RenderableType


SHOWN = 15
ProfileOfPlan = Annotated[
    str,
    typer.Option("--profile", metavar="P", help="Look the plan up in: plan (its own), auto, none, a file or an id."),
]
Rows = Annotated[int, typer.Option("--rows", metavar="N", help="Lookups to list.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("coverage")(coverage_of_plan)


def coverage_of_plan(
    plan: flags.PlanReference,
    profile: ProfileOfPlan = "plan",
    rows: Rows = SHOWN,
    database: flags.Database = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Where the numbers behind a plan come from, how sure they are, and which measurement would help most."""
    if rows < 1:
        raise DocumentInvalid(f"{rows} is no number of rows", where="--rows", hint="give 1 or more")
    from planner.answers.explain.leaning import leaning_view
    from planner.operations.plan_reference import load_plan
    from planner.operations.profile_choice import chosen_profile

    the_plan = load_plan(plan, database)
    problem = the_plan.problem
    if profile != "plan":
        reference = chosen_profile(profile, problem.cluster.pools[0].device)
        problem = problem.model_copy(update={"profile": reference})
    data = leaning_view(the_plan, rows, problem).model_dump(mode="json")
    write_answer(data, output, lambda: _tables(data))


def _tables(data: dict[str, Any]) -> Iterable[RenderableType]:
    from planner.cli.render.tables import table

    low, high = data["step_time_interval_s"]
    yield (
        f"plan {data['plan_id'][:12]} on {data['device']}, profile {(data['profile_id'] or 'none')[:12]}:"
        f" {data['step_time_s']:.3g} s a step, 80 % interval {low:.3g} to {high:.3g} s"
    )
    yield table(
        "Inputs",
        ("where the time comes from", ">share"),
        [(name, f"{share:.1%}") for name, share in sorted(data["time_by_input"].items(), key=lambda item: -item[1])],
    )
    yield ""
    columns = ("term", "operator", "part", "shape", "input", ">sigma", ">share of step")
    yield table(f"Largest of {data['num_lookups']} lookups", columns, [_row(each) for each in data["lookups"]])
    if data["measure_next"]:
        yield ""
        rows = [(*_row(each)[:5], f"{each['sigma_gain']:.2%}") for each in data["measure_next"]]
        yield table("Measure next (what the step's sigma would lose)", (*columns[:5], ">gain"), rows)
    for command in data["commands"]:
        yield f"  {command}"


def _row(lookup: dict[str, Any]) -> tuple[str, ...]:
    shape = " ".join(f"{name}={size:,}" for name, size in lookup["shape"].items())
    share = f"{lookup['share_of_step']:.1%}"
    return lookup["term"], lookup["operator"], lookup["part"], shape, lookup["input"], f"{lookup['sigma']:.2f}", share
