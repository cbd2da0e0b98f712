"""``meshwright plan``: search for the best plan, prove it, store it, write its launch files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.backends.launch import LauncherName
from planner.cli import options as flags
from planner.cli.backend_names import parse_backends, parse_emitted, require_files_of_best
from planner.cli.front import answer_front, front_alone
from planner.cli.output import OutputFormat
from planner.cli.planning import Wanted, answer, search_options
from planner.cli.pools import answer_pools, named_pools, pools_backends, pools_problem, refuse_flags
from planner.cli.problem_inputs import ProblemFlags, SpaceFlags, build_problem
from planner.cli.remote_question import remote_question
from planner.cli.script_flags import (
    From,
    MaybeModel,
    PassedOn,
    ScriptArguments,
    ScriptFlags,
    Variables,
    VocabularySize,
    refuse_beside,
    said_job,
    shown_beside,
    software_of,
)
from planner.cli.workload_flags import NOTHING_SAID, WorkloadFlags, with_flags
from planner.operations.service import opened_service
from planner.strategy.fields import PINNABLE, Value
from planner.strategy.text import parse_assignments, parse_forbids

if TYPE_CHECKING:
    from planner.operations.service import Service
    from planner.search.options import SearchOptions
    from planner.search.pools.problem import PoolsProblem
    from profiles.cluster import Cluster

Emit = Annotated[
    str | None,
    typer.Option(
        "--emit",
        metavar="B,...",
        help="Write launch files: best (of this plan), or back-ends, each from its own plan of the question.",
    ),
]
Launcher = Annotated[LauncherName, typer.Option("--launcher", help="Who starts the processes.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder of the launch files (with --emit).")]
PlanOut = Annotated[Path | None, typer.Option("--plan-out", metavar="FILE", help="Write the whole plan document.")]
Trace = Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Write the timeline for Perfetto.")]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not keep the plan in the database.")]
Reuse = Annotated[bool, typer.Option("--reuse", help="Take a stored, proved answer to exactly this question.")]
MaybeCluster = Annotated[
    str | None,
    typer.Option("--cluster", "-c", metavar="C", help="Cluster YAML or a built-in name (see clusters list)."),
]
Pools = Annotated[
    list[str] | None,
    typer.Option(
        "--pool", metavar="C:N", help="Plan one pipeline over unequal pools: N devices of cluster C. Repeatable."
    ),
]
Pareto = Annotated[
    bool,
    typer.Option("--pareto", help="Plan for every device count of the cluster; print step time against device time."),
]
Full = Annotated[bool, typer.Option("--full", help="JSON and YAML: with the embedded problem.")]


HERE = "plan on this machine"
"""What to do where a server cannot."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan)


@with_flags("work", WorkloadFlags)
def plan(  # noqa: PLR0913, PLR0917  # a flag is an argument
    passed_on: PassedOn = None,
    model: MaybeModel = None,
    from_script: From = None,
    cluster: MaybeCluster = None,
    pool: Pools = None,
    devices: flags.Devices = None,
    work: WorkloadFlags = NOTHING_SAID,
    profile: flags.Profile = "auto",
    calibration: flags.Calibration = None,
    objective: flags.Objective = flags.ObjectiveChoice.STEP_TIME,
    price: flags.Price = None,
    reliability: flags.Reliability = None,
    max_step_time: flags.MaxStepTime = None,
    min_tokens_per_s: flags.MinTokensPerSecond = None,
    pin: flags.Pin = None,
    forbid: flags.Forbid = None,
    backend: flags.MaybeBackend = None,
    memory_margin: flags.MemoryMargin = None,
    fits: flags.Fits = None,
    prefer: flags.Prefer = flags.PreferChoice.RECOMMENDED,
    top: flags.TopK = 3,
    time_limit: flags.TimeLimit = None,
    seed: flags.Seed = 0,
    variables: Variables = None,
    script_args: ScriptArguments = None,
    vocab_size: VocabularySize = None,
    emit: Emit = None,
    launcher: Launcher = "torchrun",
    out: Out = None,
    plan_out: PlanOut = None,
    trace: Trace = None,
    no_store: NoStore = False,
    reuse: Reuse = False,
    database: flags.Database = None,
    server: flags.Server = None,
    pareto: Pareto = False,
    full: Full = False,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Find the best way to train a model on a cluster, and prove how fast one can be."""
    script = ScriptFlags(from_script, variables, script_args, passed_on, vocab_size)
    refuse_beside(script, here := {"--pool": bool(pool), "--pareto": pareto})
    reference, job = said_job(script, model, devices, "plan", quiet)
    keeps = not (no_store or reuse or pareto or pool)
    only_here = here | {"--no-store": no_store}
    # Around all that takes long to import: the process that will store the plan imports beside it.
    with opened_service(server, database, only_here=only_here, instead=HERE, keeps=keeps) as service:
        require_files_of_best(
            emitted := parse_emitted(emit), backends := parse_backends(software_of(backend, script, job))
        )
        limits = (max_step_time, min_tokens_per_s, objective, price, fits, prefer, reliability)
        space = SpaceFlags(_pins(pin), parse_forbids(forbid or (), "--forbid"), backends, memory_margin, *limits)
        asked = ProblemFlags(reference, cluster, devices, work, space, profile, calibration, job)
        wanted = Wanted(emitted, launcher, out, plan_out, trace, full, quiet, output, shown_beside(script, job, quiet))
        answered = _Answered(search_options(top, time_limit, seed), pool, pareto, not no_store, reuse, database)
        _answer(service, asked, wanted.checked(), answered)


@dataclass(frozen=True, slots=True)
class _Answered:
    """How the question is answered."""

    search: SearchOptions
    pools: list[str] | None
    pareto: bool
    keep: bool
    reuse: bool
    database: str | None


def _answer(service: Service, asked: ProblemFlags, wanted: Wanted, way: _Answered) -> None:
    """Over unequal pools, for every number of devices, or the one plan."""
    search = way.search
    question = service.question(
        lambda: named_pools(way.pools, asked.cluster, asked.devices) or build_problem(asked),
        lambda: {**remote_question(service, asked), "prefer": asked.space.prefer.value},
    )
    if isinstance(question, tuple):
        others = {"--reuse": way.reuse, "--pareto": way.pareto}
        problem = _over_pools(asked, question, others, wanted)
        answer_pools(service, problem, search.time_limit_s, wanted, keep=way.keep)
    elif way.pareto and not isinstance(question, dict):
        front_alone(wanted.emitted, (wanted.plan_out, wanted.trace))
        answer_front(question, search, keep=way.keep, database=way.database, quiet=wanted.quiet, output=wanted.output)
    else:
        answer(service, question, search, wanted, keep=way.keep, reuse=way.reuse)


def _pins(texts: list[str] | None) -> dict[str, Value]:
    return parse_assignments(texts or [], "--pin", PINNABLE)


def _over_pools(
    asked: ProblemFlags, clusters: tuple[Cluster, ...], others: dict[str, bool], wanted: Wanted
) -> PoolsProblem:
    """The question of one pipeline over unequal pools, which knows fewer flags."""
    others = {"--trace": wanted.trace is not None, **others}
    known = {"--profile": asked.profile not in {"auto", "none"}, "--calibration": asked.calibration is not None}
    refuse_flags({**known, **others}, asked.space)
    space = replace(asked.space, backends=pools_backends(asked.space.backends, wanted.emitted))
    return pools_problem(asked.model, clusters, asked.work, space)
