"""The steps after the question is checked: search, keep, write, print, in an order that loses nothing.

The plan is printed even when storing it or writing its launch files fails: a long search is never thrown away.
The failure is reported after it, with its own exit code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.backends.launch import LauncherName
from planner.cli.backend_names import bare_name
from planner.cli.emitting import emission_lines, planned_there, write_there
from planner.cli.output import OutputFormat, talk, to_json, write_answer
from planner.cli.problem_inputs import positive
from planner.errors import DocumentInvalid, NoFeasiblePlan

if TYPE_CHECKING:
    from planner.plan.plan import Plan
    from planner.question.problem import Problem
    from planner.search.options import SearchOptions
    from planner.store.repository import Store

MOST_ALTERNATIVES = 100


@dataclass(frozen=True, slots=True)
class Place:
    """The database to keep the plan in; None = the default one."""

    url: str | None


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


def answer(problem: Problem, search: SearchOptions, wanted: Wanted, *, database: Place | None, reuse: bool) -> None:
    """Plan, keep, write and print.  Raises NoFeasiblePlan, BudgetSpent and everything that storing can raise."""
    announce(problem, wanted.quiet)
    if database is None:
        _answer(problem, search, wanted, None, reuse=False)
        return
    from planner.store import open_store

    with open_store(database.url) as store:
        _answer(problem, search, wanted, store, reuse=reuse)


def announce(problem: Problem, quiet: bool) -> None:
    """Say what was understood."""
    cluster, workload = problem.cluster, problem.workload
    talk(
        f"checked: {problem.model.name}, {cluster.num_devices:,} devices of {cluster.name}, "
        f"{workload.global_batch_size:,} x {workload.sequence_length:,} tokens, {workload.precision}",
        quiet=quiet,
    )


def _answer(problem: Problem, search: SearchOptions, wanted: Wanted, store: Store | None, *, reuse: bool) -> None:
    stored = store.find_plan(problem.problem_id) if store is not None and reuse else None
    wall_s: float | None = None
    if stored is not None and stored.is_final:
        plan = stored
        talk("found: a stored, proved answer to this question", quiet=wanted.quiet)
    else:
        plan, wall_s = _search(problem, search, quiet=wanted.quiet)
    done = Afterwards()
    if store is not None and wall_s is not None:
        done.attempt(lambda: _keep(store, plan, wall_s, done))
    _write(plan, search, wanted, store if done.failure is None else None, done)
    print_answer(plan, wall_s, wanted, done)
    if done.failure is not None:
        raise done.failure


def _search(problem: Problem, search: SearchOptions, *, quiet: bool) -> tuple[Plan, float]:
    from planner.cli.progress import search_progress
    from planner.search.find import find_plan

    start_s = time.perf_counter()
    try:
        with search_progress(quiet=quiet) as progress:
            plan = find_plan(problem, search, progress)
    except NoFeasiblePlan as error:
        error.where = error.where or f"{problem.model.name} on {problem.cluster.num_devices:,} x {problem.cluster.name}"
        raise
    wall_s = time.perf_counter() - start_s
    talk(f"searched: {plan.search.enumerated:,} strategies in {wall_s:.2f} s, gap {plan.gap:.2%}", quiet=quiet)
    return plan, wall_s


def _keep(store: Store, plan: Plan, wall_s: float, done: Afterwards) -> None:
    plan_id = store.save_plan(plan, wall_s)
    done.notes.append(f"stored in {store.address}; next: meshwright explain {plan_id[:12]}")


def _write(plan: Plan, search: SearchOptions, wanted: Wanted, store: Store | None, done: Afterwards) -> None:
    """Every file that was asked for; one that fails does not stop the others."""
    write_documents(plan, wanted, done)
    for backend in wanted.emitted:
        done.attempt(lambda name=backend: _emit(plan, name, search, wanted, store, done))  # type: ignore[misc]


def _emit(
    plan: Plan, backend: str, search: SearchOptions, wanted: Wanted, store: Store | None, done: Afterwards
) -> None:
    """The files of one back-end, from its own plan of the question, which is kept beside the plan at hand."""
    from planner.backends.emission.write import read_manifest

    start_s = time.perf_counter()
    there = planned_there(plan, backend, search, quiet=wanted.quiet)
    wall_s = time.perf_counter() - start_s
    if store is not None and there.difference is not None:
        store.save_plan(there.plan, wall_s)
    directory = wanted.directory(backend)
    done.emissions.append(write_there(there, wanted.launcher, directory, quiet=wanted.quiet))
    if store is not None:
        store.save_emission(there.plan.plan_id, there.plan.backend, wanted.launcher, read_manifest(directory))


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
    write_answer(data, wanted.output, lambda: answer_tables(plan, wall_s=wall_s, notes=notes))
