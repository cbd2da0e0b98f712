"""``meshwright estimate``: the numbers of one given strategy, without any search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.backend_names import parse_backends
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.planning import announce, write_plan, write_trace
from planner.cli.problem_inputs import ProblemFlags, SpaceFlags
from planner.cli.script_flags import (
    From,
    MaybeModel,
    PassedOn,
    ScriptArguments,
    ScriptFlags,
    Variables,
    VocabularySize,
    said_job,
    software_of,
    tell_open_places,
)
from planner.cli.workload_flags import NOTHING_SAID, WorkloadFlags, with_flags
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.operations.launch_files import plain_strategy, script_facts
from planner.operations.service import opened_service
from planner.strategy.text import parse_assignments

if TYPE_CHECKING:
    from planner.model.megatron_args import LaunchJob
    from planner.plan.plan import Plan

StrategyText = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        "-s",
        metavar="K=V,...",
        help="The strategy, for example tp=8,pp=4,dp=2,mbs=1 (default: what a Megatron script says).",
    ),
]
Layers = Annotated[
    str | None,
    typer.Option("--layers", metavar="N,...", help="Layers of each model chunk along the model (default: best split)."),
]
PlanOut = Annotated[Path | None, typer.Option("--plan-out", metavar="FILE", help="Write the whole plan document.")]
Trace = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Write the timeline for Perfetto.")]
Full = Annotated[bool, typer.Option("--full", help="JSON and YAML: with the embedded problem.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("estimate")(estimate)


@with_flags("work", WorkloadFlags)
def estimate(  # noqa: PLR0913, PLR0917  # a flag is an argument
    cluster: flags.ClusterReference,
    passed_on: PassedOn = None,
    model: MaybeModel = None,
    from_script: From = None,
    strategy: StrategyText = None,
    devices: flags.Devices = None,
    work: WorkloadFlags = NOTHING_SAID,
    profile: flags.Profile = "auto",
    calibration: flags.Calibration = None,
    backend: flags.MaybeBackend = None,
    memory_margin: flags.MemoryMargin = None,
    fits: flags.Fits = None,
    layers: Layers = None,
    variables: Variables = None,
    script_args: ScriptArguments = None,
    vocab_size: VocabularySize = None,
    plan_out: PlanOut = None,
    trace: Trace = None,
    full: Full = False,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Predict one strategy: time, memory, whether it fits.  Exit code 5 when it does not fit."""
    script = ScriptFlags(from_script, variables, script_args, passed_on, vocab_size)
    reference, job = said_job(script, model, devices, "estimate", quiet)
    values = given_strategy(job, strategy)
    chunk_layers = _parse_layers(layers) if layers is not None else _script_layers(job, strategy)
    software = parse_backends(software_of(backend, script, job))
    space = SpaceFlags({}, backends=software, memory_margin=memory_margin, fits=fits)
    asked = ProblemFlags(reference, cluster, devices, work, space, profile, calibration, job)
    from planner.cli.question import question_of
    from planner.operations.estimate import ESTIMATE, EstimateRequest

    with opened_service(server) as service:
        question = question_of(service, asked)
        if not isinstance(question, dict):
            announce(question, quiet)
        launched = backend is None and script.path is not None
        request = EstimateRequest(question=question, strategy=values, chunk_layers=chunk_layers, launched=launched)
        found = service.call(ESTIMATE, request)
    plan = found.plan
    if isinstance(question, dict):
        announce(plan.problem, quiet)
    if found.filled_in:
        talk(f"filled in: {', '.join(found.filled_in)}", quiet=quiet)
    write_plan(plan, plan_out)
    write_trace(plan, trace)
    _print(plan, script, job, full, quiet, output)
    if plan.status == "infeasible":
        raise _does_not_fit(plan)


def _print(
    plan: Plan, script: ScriptFlags, job: LaunchJob | None, full: bool, quiet: bool, output: OutputFormat
) -> None:
    from planner.cli.plan_answer import answer_data, answer_tables
    from planner.cli.render.script import script_report

    data, read = answer_data(plan, full=full), None
    if script.path is not None and job is not None:
        read = data["script"] = script_facts(job)
    elif job is not None:
        tell_open_places(job, quiet)
    first = [] if read is None else list(script_report(read, script.path or ""))
    write_answer(data, output, lambda: [*first, *answer_tables(plan)])


def _does_not_fit(plan: Plan) -> NoFeasiblePlan:
    from planner.plan.limits import missing

    lacks = missing(plan)
    over = plan.peak_memory_bytes > plan.memory_limit_bytes
    return NoFeasiblePlan(
        f"the strategy does not fit: {'; '.join(lacks)}" if lacks else "a limit is broken",
        binding="memory" if over else "host memory" if lacks else "limit",
        relaxations=("change the strategy, or let `meshwright plan` search for one that fits",),
        where="--strategy",
    )


def given_strategy(script: LaunchJob | None, texts: list[str] | None) -> dict[str, Any]:
    """Fields of the launch script, overlaid with ``--strategy``.  Raises DocumentInvalid when nothing is said."""
    if texts is None and script is None:
        raise DocumentInvalid(
            "no strategy is given",
            where="--strategy",
            hint="write it as --strategy tp=8,pp=4,mbs=1, all fields optional",
        )
    said = parse_assignments(texts or [], "--strategy")
    return {**(plain_strategy(script) if script else {}), **said}


def _script_layers(script: LaunchJob | None, texts: list[str] | None) -> tuple[int, ...] | None:
    """Layers of each chunk as the launch script says; None where it does not, or another pipeline is asked for."""
    asked = parse_assignments(texts or [], "--strategy")
    return None if script is None or {"pp", "vpp", "schedule"} & set(asked) else script.chunk_layers


def _parse_layers(text: str) -> tuple[int, ...]:
    """``10,10,9`` as numbers.  Raises DocumentInvalid."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 7 for part in parts):
        raise DocumentInvalid(
            f"{text!r} is not a list of layer counts",
            where="--layers",
            hint="one number for each chunk: 10,10,9",
        )
    return tuple(int(part) for part in parts)
