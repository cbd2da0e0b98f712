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

    from planner.coverage.coverage import Coverage
    from planner.coverage.leaning import Leaning
    from planner.plan import Plan
    from profiles.prediction.profile import Profile

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
    from planner.cli.plan_reference import load_plan
    from planner.cli.profile_choice import chosen_profile
    from planner.cost.hardware import problem_hardware
    from planner.coverage.coverage import coverage

    the_plan = load_plan(plan, database)
    problem = the_plan.problem
    if profile != "plan":
        reference = chosen_profile(profile, problem.cluster.pools[0].device)
        problem = problem.model_copy(update={"profile": reference})
    hardware = problem_hardware(problem)
    found = coverage(problem, hardware, the_plan.chosen(), the_plan.breakdown_s)
    measured = hardware.rates.measured
    data = _data(the_plan, found, measured.profile if measured else None, rows)
    write_answer(data, output, lambda: _tables(data))


def _data(plan: Plan, found: Coverage, profile: Profile | None, rows: int) -> dict[str, Any]:
    from planner.framework.known import framework_traits
    from planner.uncertainty import step_interval_s, step_sigma

    step_s = plan.step_time_s
    gains, used = found.gains(), plan.problem.calibration
    traits, experts = framework_traits(plan.problem.framework), plan.problem.model.has_experts
    studied = traits.spread_at(plan.chosen().world_size, experts=experts)
    spread = (found.input_sigma if profile else None, used.framework_sigma if used else None)
    return {
        "plan_id": plan.plan_id,
        "profile_id": profile.profile_id if profile else None,
        "device": plan.problem.cluster.pools[0].device.name,
        "step_time_s": step_s,
        "step_time_interval_s": step_interval_s(plan.breakdown_s, *spread, studied_sigma=studied),
        "sigma": step_sigma(plan.breakdown_s, *spread, studied),
        "input_sigma": found.input_sigma,
        "time_by_input": found.provenance_shares,
        "lookups": [_lookup(leaning, step_s) for leaning in found.leanings[:rows]],
        "num_lookups": len(found.leanings),
        "measure_next": [{**_lookup(leaning, step_s), "sigma_gain": gain} for leaning, gain in gains[:rows]],
        "commands": _commands(plan, [leaning for leaning, gain in gains[:rows] if gain > 0]),
        "tables": [origin.model_dump(mode="json") for origin in profile.origins] if profile else [],
    }


def _lookup(leaning: Leaning, step_s: float) -> dict[str, Any]:
    from profiles.prediction.rungs import PROVENANCE_OF_RUNG

    return {
        "term": leaning.term,
        "operator": leaning.operator,
        "part": leaning.part,
        "dtype": leaning.dtype,
        "shape": leaning.shape,
        "rung": leaning.rung.name.lower(),
        "input": PROVENANCE_OF_RUNG[leaning.rung],
        "sigma": leaning.sigma,
        "share_of_step": leaning.seconds / step_s,
    }


def _commands(plan: Plan, wanted: list[Leaning]) -> list[str]:
    """Commands that measure the lookups that help most, on a node of the plan's device."""
    commands: list[str] = []
    strategy, workload = plan.chosen(), plan.problem.workload
    compute = sorted({leaning.operator.split()[0] for leaning in wanted if leaning.term == "compute"})
    if compute:
        commands.append(
            f"meshwright profile measure --model {plan.problem.model.name} --tp {strategy.tp}"
            f" --sequence-length {workload.sequence_length} --dtype {workload.precision}"
        )
    groups = [leaning for leaning in wanted if leaning.term != "compute"]
    if groups:
        per_node = plan.problem.cluster.pools[0].devices_per_node
        nodes = max(-(-leaning.shape["group_size"] * leaning.shape["stride"] // per_node) for leaning in groups)
        launch = f"torchrun --nnodes {nodes} --nproc-per-node {per_node} --no-python"
        commands.append(f"{launch} meshwright profile measure --only collectives,overlap")
    return commands


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
