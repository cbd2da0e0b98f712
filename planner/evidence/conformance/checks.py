"""The checks that must hold of every back-end, one small function each; ``CHECKS`` lists them.

A check yields what is wrong, one sentence a fault, and nothing where all is well.
"""

from __future__ import annotations

import math
import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from planner.backends.asked import problem_hardware
from planner.backends.backend import Software
from planner.backends.checking.emitted import read_folder
from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.backends.emission.write import write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.backends.folders.report import Checker
from planner.backends.registry import backends, software
from planner.backends.rules.rule import SpaceRule, rule_input
from planner.evidence.conformance.questions import questions
from planner.plan.plan import Plan
from planner.predict.candidate import Candidate
from planner.question.problem import BACKEND_PATTERN, UNRESTRICTED, Constraints, Problem
from planner.search.backend_rules import BackEndRules
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.search.row_context import strategy_context
from planner.search.sample import random_plans, random_strategies
from planner.search.split import best_split
from planner.search.split_limits import split_rules
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import Strategy
from profiles.device import Vendor
from profiles.errors import MeshwrightError

TRIES = 12
"""Random strategies of a question's space."""
VERDICTS = 3
"""Of a question's plans: some validators compile the whole step."""
STRANGERS = 60
"""Random strategies of the whole declared space."""
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Tried:
    """A release of a back-end, and the questions that it is tried on by their numbers, which seed what is drawn."""

    software: Software
    questions: Mapping[int, Problem]
    verdicts: int = VERDICTS
    """Plans of a question that installed validators are asked about."""
    drawn: list[tuple[Problem, Plan]] = field(default_factory=list, compare=False)
    """Plans that one check has asked for are there for the next one."""

    @classmethod
    def of(cls, wanted: Software) -> Tried:
        """Tried on every sample question."""
        return cls(wanted, dict(enumerate(questions(wanted))))

    def plans(self) -> Iterator[tuple[Problem, Plan]]:
        """Random plans of the space of every question."""
        if not self.drawn:
            questions = self.questions.items()
            self.drawn.extend((asked, plan) for seed, asked in questions for plan in random_plans(asked, seed, TRIES))
        yield from self.drawn


Check = Callable[[Tried], Iterator[str]]


def names(tried: Tried) -> Iterator[str]:
    """Its name, title, releases and devices are spelled as a question takes them."""
    wanted, backend = tried.software, tried.software.backend
    spelled = f"{backend.name}=={wanted.release.version}" if wanted.release.version else backend.name
    if not re.match(BACKEND_PATTERN, spelled):
        yield f"{spelled!r} is not a name that --backend takes"
    if not backend.title or not backend.summary or "\n" in backend.summary:
        yield "a back-end has a title and a summary of one line"
    versions = [each.version for each in backend.releases]
    if len(set(versions)) != len(versions):
        yield f"releases are named twice: {', '.join(versions)}"
    strangers = backend.vendors - set(get_args(Vendor))
    if strangers:
        yield f"no device of the catalogue is made by {', '.join(sorted(strangers))}"
    if not wanted.release.physics.name or not wanted.release.physics.summary:
        yield "its physics has no name or no summary"


def rules(tried: Tried) -> Iterator[str]:
    """Every rule has an id of its own, a source, and fields that a strategy has."""
    table, known = tried.software.release.space.rules, {each.name for each in fields(Strategy)} | {"dp"}
    every: list[SpaceRule] = [*table.model_rules, *table.strategy_rules]
    ids = [rule.id for rule in every]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"two rules are called {name}"
    for rule in every:
        if not rule.source.strip():
            yield f"rule {rule.id} cites nothing"
        if unknown := set(rule.fields) - known:
            yield f"rule {rule.id} is about {', '.join(sorted(unknown))}, which no strategy has"
    for rule in table.strategy_rules:
        if not rule.fields:
            yield f"rule {rule.id} names no field of a strategy; if it is about the model alone, it is a model rule"


def columns(tried: Tried) -> Iterator[str]:
    """Its columns declare values that exist."""
    declared = tried.software.release.space.columns
    if unknown := set(declared.schedules) - set(SCHEDULE_NAMES):
        yield f"no schedule is called {', '.join(sorted(unknown))}"
    if declared.pipeline_parallel and not declared.schedules:
        yield "it declares pipelines, and no schedule for them"


def answers(tried: Tried) -> Iterator[str]:
    """Some question has a plan in it, proved, and the plan is of its space."""
    wanted, asked = tried.software, tried.questions
    if not asked:
        yield "it refuses every sample model on every sample cluster"
    plans = 0
    for problem in asked.values():
        try:
            plan = find_plan(problem, SearchOptions(top_k=0))
        except MeshwrightError:
            continue
        plans += 1
        if plan.backend != wanted.name or plan.status != "optimal":
            yield f"{_words(problem)}: the plan is {plan.status}, of {plan.backend}"
        if broken := wanted.release.space.rules.violations(rule_input(plan)):
            yield f"{_words(problem)}: its best plan breaks its rule {broken[0].rule}: {broken[0].message}"
    if asked and not plans:
        yield "no sample question has a plan in it"


def spelling(tried: Tried) -> Iterator[str]:
    """What is spelled is a strategy that its rules take and that is spelled no further."""
    for problem, plan in tried.plans():
        checked = BackEndRules(problem)
        layers = tuple(chunk.num_layers for chunk in chunks_in_model_order(layout_of(plan)))
        strategy = plan.chosen()
        if checked.spelled(strategy, layers) != strategy:
            yield f"{_words(problem)}: spelled twice, {strategy} changes again"
        for finding in checked.broken(strategy, layers):
            yield f"{_words(problem)}: {finding.rule} ({finding.message}) refuses what was spelled: {strategy}"


def unspelled(tried: Tried) -> Iterator[str]:
    """A strategy as it was enumerated costs what it costs as it is spelled: spelling changes nothing that runs."""
    for problem in tried.questions.values():
        checked, hardware = BackEndRules(problem), problem_hardware(problem)
        limits = split_rules(problem, hardware)
        drawn = islice(random_strategies(problem, seed=7), 20 * TRIES)
        for strategy in islice((each for each in drawn if not checked.refuses(each)), TRIES):
            other = checked.spelled(strategy)
            if other == strategy:
                continue
            # Not estimate(): a plan is told as it is spelled, so both plans would be the same.
            before, after = (
                best_split(strategy_context(problem, hardware, each), limits) for each in (strategy, other)
            )
            if (before is None) != (after is None):
                yield f"{_words(problem)}: spelled, {strategy} fits otherwise"
            elif before is not None and after is not None and not _same(before, after):
                yield (
                    f"{_words(problem)}: {strategy} takes {before.step_time_s} s and {before.peak_memory_bytes} bytes,"
                    f" spelled {after.step_time_s} s and {after.peak_memory_bytes} bytes"
                )


def files(tried: Tried) -> Iterator[str]:
    """Every plan of the space can be written and reads back equal; an installed validator accepts it."""
    if tried.software.backend.files is None or tried.software.release.predicts_only:
        return
    written, asked_before = 0, Counter[str]()
    with tempfile.TemporaryDirectory(prefix="meshwright-conformance-") as folder, Checker() as checker:
        for number, (problem, plan) in enumerate(tried.plans()):
            try:
                directory = write_emission(emit_plan(plan, "torchrun"), Path(folder) / str(number))
            except MeshwrightError as error:
                yield f"{_words(problem)}: a plan of the space cannot be written: {error.what} ({plan.chosen()})"
                continue
            written += 1
            for finding in check_directory(directory):
                yield f"{_words(problem)}: {finding.rule}: {finding.message} ({plan.chosen()})"
            asked_before[problem.problem_id] += 1
            if asked_before[problem.problem_id] > tried.verdicts:
                continue
            for verdict in checker.check(read_folder(directory)).verdicts:
                if not verdict.accepted:
                    yield f"{_words(problem)}: {verdict.validator} refuses: {verdict.message} ({plan.chosen()})"
    if not written:
        yield "no plan of the sample questions was written"


def refusals(tried: Tried) -> Iterator[str]:
    """A rule looks at its fields only: with those of a plan that it takes, it takes a strategy that it refused.

    So whoever reads a refusal knows what to change, and the rule's cited source is about just these fields.
    """
    by_id = {rule.id: rule for rule in tried.software.release.space.rules.strategy_rules}
    told = set[str]()
    for seed, problem in tried.questions.items():
        taken = next(iter(random_plans(problem, seed, TRIES)), None)
        if taken is None:
            continue
        checked, strangers = BackEndRules(problem), random_strategies(_free(problem), seed=11)
        for strategy in islice(strangers, STRANGERS):
            for finding in checked.broken(strategy):
                rule = by_id.get(finding.rule.partition(".")[2])
                # A column of the space that a strategy is outside of is no rule and has fields too.
                fields = finding.fields if rule is None else rule.fields
                if not fields:
                    if finding.rule not in told:
                        told.add(finding.rule)
                        yield (
                            f"{_words(problem)}: {finding.rule} is a model rule and looks at the strategy:"
                            f" it takes the model and refuses {strategy}"
                        )
                    continue
                mended = replace(strategy, **_values(taken.chosen(), fields))
                if finding.rule not in told and finding.rule in {each.rule for each in checked.broken(mended)}:
                    told.add(finding.rule)
                    yield (
                        f"{_words(problem)}: {finding.rule} ({finding.message}) is not about {', '.join(fields)}"
                        f" alone: with those of {taken.chosen()} it still refuses {strategy}"
                    )


def _values(strategy: Strategy, names: tuple[str, ...]) -> dict[str, Any]:
    """Values of the named fields; ``dp`` stands for its factors."""
    own = {part for name in names for part in (("dp_replicate", "dp_shard") if name == "dp" else (name,))}
    return {name: getattr(strategy, name) for name in own}


CHECKS: tuple[Check, ...] = (names, rules, columns, answers, spelling, unspelled, files, refusals)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check found in one release of a back-end."""

    backend: str
    check: str
    promise: str
    faults: tuple[str, ...]


def asked(names: Sequence[str]) -> tuple[Software, ...]:
    """Those of ``NAME[==RELEASE]``; without a name every release of the registry.  Raises NotFound."""
    if names:
        return tuple(software(name, where=name) for name in names)
    return tuple(Software(each, release) for each in backends().values() for release in each.releases)


def conformance(wanted: Software) -> Iterator[Outcome]:
    """Every check of one release, one after the other."""
    for check in CHECKS:
        promise = (check.__doc__ or "").splitlines()[0]
        yield Outcome(wanted.spelled, check.__name__, promise, faults_of(check, wanted))


def faults_of(check: Check, wanted: Software, tried: Tried | None = None) -> tuple[str, ...]:
    """What one check finds, each fault once; code of the room that stops with an error of Python's own is a fault.

    ``tried``: of ``wanted``, where not every sample question is to be asked; checks that get the same one share what it
    has drawn.
    """
    found = dict[str, None]()
    try:
        for fault in check(tried or Tried.of(wanted)):
            found[fault] = None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        found[f"it stops with {type(error).__name__}: {error} ({last.filename}:{last.lineno}, {last.name})"] = None
    return tuple(found)


def _same(one: Candidate, other: Candidate) -> bool:
    times = math.isclose(one.step_time_s, other.step_time_s, rel_tol=TOLERANCE)
    return times and math.isclose(one.peak_memory_bytes, other.peak_memory_bytes, rel_tol=TOLERANCE)


def _free(problem: Problem) -> Problem:
    return problem.model_copy(update={"constraints": Constraints(backends=(UNRESTRICTED,))})


def _words(problem: Problem) -> str:
    return f"{problem.model.name} on {problem.cluster.num_devices} x {problem.cluster.pools[0].device.name}"
