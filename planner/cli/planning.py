"""The steps after the question is checked: search, keep, write, print, in an order that loses nothing.

The plan is printed even when storing it or writing its launch files fails: a long search is never thrown away.
The failure is reported after it, with its own exit code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.backends.launch import LauncherName
from planner.cli.backend_names import BEST, bare_name
from planner.cli.emitting import emission_lines, emit_into
from planner.cli.output import OutputFormat, talk, to_json, write_answer
from planner.cli.problem_inputs import positive
from planner.errors import DocumentInvalid, NoFeasiblePlan

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.model.megatron_args import LaunchJob
    from planner.operations.service import Service
    from planner.plan.plan import Plan
    from planner.question.problem import Problem
    from planner.search.options import SearchOptions

MOST_ALTERNATIVES = 100


@dataclass(frozen=True, slots=True)
class ReadScript:
    """A launch script whose run is shown beside the plan."""

    name: str
    job: LaunchJob


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user wants to get besides a plan: launch files, documents, the form of the answer."""

    emitted: tuple[str, ...]
    """Back-ends that get launch files; ``best`` = the plan's own."""
    launcher: LauncherName
    out: Path | None
    plan_out: Path | None
    trace: Path | None
    full: bool
    quiet: bool
    output: OutputFormat
    script: ReadScript | None = None

    def checked(self) -> Wanted:
        """The same, without combinations that could only fail after the search.  Raises DocumentInvalid."""
        if self.emitted and self.out is None:
            raise DocumentInvalid("launch files need a folder", where="--out", hint="add --out DIR")
        if self.out is not None and not self.emitted:
            raise DocumentInvalid("a folder without launch files", where="--out", hint="add --emit best, or drop --out")
        return self

    def directory(self, backend: str) -> Path:
        """The files of one back-end go to DIR, those of several to DIR/NAME, the plan's own then to DIR/best."""
        folder = self.out or Path()
        return folder if len(self.emitted) == 1 else folder / bare_name(backend)


@dataclass(slots=True)
class Afterwards:
    """What happened after the search: notes for the answer, and the first failure."""

    emissions: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: Exception | None = None

    def attempt(self, step: Callable[[], None]) -> None:
        """Run one step; keep the first failure, whatever it is, for later."""
        try:
            step()
        except Exception as error:
            self.failure = self.failure or error


def search_options(top: int, time_limit_s: float | None, seed: int) -> SearchOptions:
    """Checked search options.  Raises DocumentInvalid."""
    positive(time_limit_s, "--time-limit")
    if not 0 <= top <= MOST_ALTERNATIVES:
        raise DocumentInvalid(
            f"{top} runners-up cannot be reported", where="--top", hint=f"give a number from 0 to {MOST_ALTERNATIVES}"
        )
    if not 0 <= seed < 2**31:
        raise DocumentInvalid(f"{seed} is no seed", where="--seed", hint="give a whole number from 0 to 2147483647")
    from planner.search.options import SearchOptions

    return SearchOptions(top_k=top, time_limit_s=time_limit_s, seed=seed, processes=2)


def answer(
    service: Service,
    question: Problem | dict[str, Any],
    search: SearchOptions,
    wanted: Wanted,
    *,
    keep: bool,
    reuse: bool,
) -> None:
    """Plan, write and print.  Raises NoFeasiblePlan, BudgetSpent and everything that storing can raise."""
    from planner.cli.progress import search_progress
    from planner.operations.plan import PLAN, PlanningRequest

    asked = PlanningRequest(
        question=question, top_k=search.top_k, time_limit_s=search.time_limit_s, seed=search.seed, reuse=reuse
    )
    announce(question, wanted.quiet)
    try:
        with search_progress(quiet=wanted.quiet) as progress:
            started = partial(_tell_job, service.address, wanted.quiet)
            found = service.call(PLAN, asked, search=search, progress=progress, started=started, keep=keep)
    except NoFeasiblePlan as error:
        error.where = error.where or _place(question)
        raise
    plan = found.plan
    if isinstance(question, dict):
        announce(plan.problem, wanted.quiet)
    effort = f"{plan.search.enumerated:,} strategies in {found.wall_s or 0.0:.2f} s"
    told = {
        "searched": f"searched: {effort}, gap {plan.gap:.2%}",
        "stored": "found: a stored, proved answer to this question",
        "service": f"planned by {service.address}, gap {plan.gap:.2%}",
    }
    talk(told[found.source], quiet=wanted.quiet)
    done = Afterwards()
    if kept := service.kept(plan.plan_id):
        done.notes.append(kept)
    write_documents(plan, wanted, done)
    for backend in wanted.emitted:
        done.attempt(partial(_emit, service, plan, backend, search, wanted, done, keep=keep))
    print_answer(plan, found.wall_s, wanted, done)
    if done.failure is not None:
        service.end()
        raise done.failure


def announce(question: Problem | dict[str, Any], quiet: bool) -> None:
    """Say what was understood; nothing yet of parts that a service puts together."""
    if isinstance(question, dict):
        return
    cluster, workload = question.cluster, question.workload
    talk(
        f"checked: {question.model.name}, {cluster.num_devices:,} devices of {cluster.name}, "
        f"{workload.global_batch_size:,} x {workload.sequence_length:,} tokens, {workload.precision}",
        quiet=quiet,
    )


def _tell_job(address: str, quiet: bool, job: str) -> None:
    watch = f"meshwright jobs watch {job} --server {address}"
    talk(f"a long search: job {job} goes on without this command ({watch})", quiet=quiet)


def _place(question: Problem | dict[str, Any]) -> str:
    """``llama-3.1-70b on 64 x dgx-h100``, as far as the question says it."""
    if not isinstance(question, dict):
        return f"{question.model.name} on {question.cluster.num_devices:,} x {question.cluster.name}"
    names = [
        part if isinstance(part, str) else part.get("name", "") for part in (question["model"], question["cluster"])
    ]
    devices = question["devices"]
    return f"{names[0]} on {f'{devices:,} x ' if devices else ''}{names[1]}"


def _emit(  # what one step needs
    service: Service, plan: Plan, backend: str, search: SearchOptions, wanted: Wanted, done: Afterwards, *, keep: bool
) -> None:
    """The files of one back-end, from its own plan of the question, which is kept beside the plan at hand."""
    from planner.operations.emit import EmitRequest

    asked = EmitRequest(plan=plan.plan_id, backend=None if backend == BEST else backend, launcher=wanted.launcher)
    folder = wanted.directory(backend)
    done.emissions.append(emit_into(folder, service, asked, quiet=wanted.quiet, search=search, keep=keep))


def write_plan(plan: Plan, path: Path | None) -> None:
    """The whole plan document, for ``explain``, ``emit``, ``diff`` and ``sensitivity``."""
    from planner.operations.plan_reference import full_document
    from planner.operations.reading import write_file

    if path is not None:
        write_file(path, to_json(full_document(plan)))


def write_trace(plan: Plan, path: Path | None) -> None:
    """The simulated timeline in the trace format that Perfetto opens."""
    from planner.operations.reading import write_file
    from planner.plan.timeline import plan_timeline
    from planner.predict.schedule.trace import trace_json

    if path is not None:
        write_file(path, trace_json(plan_timeline(plan), plan.step_time_s))


def write_documents(plan: Plan, wanted: Wanted, done: Afterwards) -> None:
    """The plan document and the timeline, where they were asked for."""
    if wanted.plan_out is not None:
        done.attempt(lambda: write_plan(plan, wanted.plan_out))
    if wanted.trace is not None:
        done.attempt(lambda: write_trace(plan, wanted.trace))


def print_answer(plan: Plan, wall_s: float | None, wanted: Wanted, done: Afterwards) -> None:
    """The plan, its launch files and what is worth knowing, in the form that was asked for."""
    from planner.cli.plan_answer import answer_data, answer_tables

    data = answer_data(plan, wall_s=wall_s, full=wanted.full)
    if done.emissions:
        data["emissions"] = done.emissions
    lines = [line for emission in done.emissions for line in emission_lines(emission)]
    notes = ["", *lines, *done.notes] if lines or done.notes else []
    first, last = _script_tables(plan, wanted.script, data)
    write_answer(data, wanted.output, lambda: [*first, *answer_tables(plan, wall_s=wall_s, notes=notes), *last])


def _script_tables(
    plan: Plan, script: ReadScript | None, data: dict[str, Any]
) -> tuple[list[RenderableType], list[RenderableType]]:
    """What was read, before the plan, and the script's run beside it, behind it; both are added to ``data``."""
    if script is None:
        return [], []
    from planner.cli.render.script import compared_report, script_report
    from planner.operations.launch_files import script_facts
    from planner.operations.script_run import compared

    read, both = script_facts(script.job), compared(script.job, plan)
    data["script"], data["compared"] = read, both.data()
    return list(script_report(read, script.name)), list(compared_report(both))
