"""Finds the best plan for a problem: the entry of the search.

By what is minimised:

``step_time``  the fastest plan on all devices of the cluster
``devices``    the fewest devices that reach a step time or token rate
``cost``       the cheapest plan per token over all device counts that the cluster can be cut to
``tokens_per_day``  the most tokens a day with failures: which nodes train and which stand by

By ``objective.prefer`` the plan is the fastest one itself, or the recommended one near it with the fastest beside it
(``planner.search.recommend``).  The proof is of the fastest; ``status`` and ``gap`` are the plan's.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from planner.backends.asked import asked_software
from planner.errors import BudgetSpent, NoFeasiblePlan
from planner.plan.plan import Plan, PlanStatus, SearchReport, UnrestrictedAnswer
from planner.predict.candidate import Candidate
from planner.question.problem import ANY, Preference, Problem
from planner.search.across_backends import Compared, Entry, compare_backends, least_bound_s, unrestricted_entry
from planner.search.answers import backend_answers, fastest_plan, unrestricted_answer
from planner.search.assemble_plan import assemble_plan
from planner.search.beside import Beside, can_fork
from planner.search.device_counts import cheapest, fewest_devices, slowest_allowed_s, too_slow
from planner.search.infeasible import needed_share, no_feasible_plan
from planner.search.most_tokens import most_tokens
from planner.search.options import Progress, SearchOptions
from planner.search.other_degrees import find_alternatives
from planner.search.recommend import recommended
from planner.search.search_result import degrees
from planner.search.spelled import as_spelled

OPTIMAL_GAP = 1e-9


def find_plan(problem: Problem, options: SearchOptions | None = None, progress: Progress | None = None) -> Plan:
    """Find the best plan, with its bound.

    Raises NoFeasiblePlan (with the binding constraint and what would relax it), BudgetSpent when the time limit ended
    before any plan was found, DocumentInvalid for impossible pins, NotFound for a back-end that is not known.
    """
    options = options or SearchOptions()
    if problem.objective.minimize in ("devices", "cost"):
        over_counts = fewest_devices if problem.objective.minimize == "devices" else cheapest
        fastest, alone = preferring("fastest", problem), replace(options, compare=False)
        found = over_counts(fastest, alone, progress, plan_on_all_devices)
        several = options.compare and len(asked_software(problem)) > 1
        chosen = preferring(problem.objective.prefer, found.problem)
        return plan_on_all_devices(chosen, options, progress) if several or chosen != found.problem else found
    if problem.objective.minimize == "tokens_per_day":
        return most_tokens(problem, options, progress, plan_on_all_devices)
    plan = plan_on_all_devices(problem, options, progress)
    target_s = slowest_allowed_s(problem)
    if plan.step_time_s > target_s:
        raise too_slow(target_s, plan)
    return plan


def plan_on_all_devices(problem: Problem, options: SearchOptions, progress: Progress | None = None) -> Plan:
    """The best plan that uses every device of the problem's cluster, by any back-end that was asked."""
    started_s = time.monotonic()
    with ExitStack() as children:
        guessed: list[_Beside] = []

        def guess(entry: Entry) -> None:
            guessed.append(_Beside(entry, problem, options, started_s, None, children))

        forks = can_fork(options.processes)
        compared = compare_backends(problem, asked_software(problem), options, progress, guess if forks else None)
        if compared.fastest is None:
            raise _nothing(problem, compared, options)
        fastest = compared.fastest
        best = fastest.best
        assert best is not None
        beside = next((each for each in guessed if each.entry is fastest), None)
        if beside is None:
            children.close()
            beside = _Beside(fastest, problem, options, started_s, progress, children)
        answers = (
            backend_answers(compared.entries, best.step_time_s) if len(compared.entries) > 1 and options.compare else ()
        )
        free = beside.free.answer
        chosen, others = beside.recommended.answer or best, beside.others(options.top_k)
    proved = compared.complete or compared.lower_bound_s >= best.step_time_s * (1 - OPTIMAL_GAP)
    status: PlanStatus = "optimal" if proved else "feasible"
    as_fast = chosen.step_time_s <= best.step_time_s * (1 + OPTIMAL_GAP)
    plan = assemble_plan(
        problem,
        fastest.hardware,
        as_spelled(fastest.problem, fastest.hardware, chosen),
        software=fastest.software,
        status=status if as_fast else "feasible",
        lower_bound_s=min(best.step_time_s if proved else compared.lower_bound_s, best.step_time_s, chosen.step_time_s),
        report=_report(compared.entries, proved, "this" if as_fast else "the fastest"),
        others=others,
        backends=answers,
        unrestricted=free,
    )
    if problem.objective.prefer == "fastest":
        return plan
    return plan.model_copy(update={"fastest": fastest_plan(fastest, chosen, status)})


class _Beside:
    """What stands beside a back-end's fastest plan: the recommended plan, the runners-up and the unrestricted answer.

    None where the fastest plan is the recommended one, or where the unrestricted space has nothing faster.
    """

    def __init__(  # what a part may need
        self,
        entry: Entry,
        problem: Problem,
        options: SearchOptions,
        started_s: float,
        progress: Progress | None,
        children: ExitStack,
    ) -> None:
        forks, self.entry = can_fork(options.processes), entry
        prefers = problem.objective.prefer == "recommended"
        slowest_s, told = slowest_allowed_s(problem), None if forks else progress
        self.recommended = Beside(
            lambda: recommended(entry, slowest_s, told) if prefers else None, forks=forks and prefers
        )
        children.callback(self.recommended.stop)
        # One of them may be the recommended plan, or of its degrees.
        count = options.top_k + prefers if options.top_k else 0
        self._others = Beside(lambda: _others(entry, count), forks=forks and count > 0)
        children.callback(self._others.stop)
        asks = problem.constraints.backends == (ANY,) and options.compare
        self.free = Beside(lambda: _free(entry, problem, options, started_s) if asks else None, forks=forks and asks)
        children.callback(self.free.stop)

    def others(self, count: int) -> list[Candidate]:
        """The runners-up: plans of other degrees than those that are shown."""
        chosen = self.recommended.answer
        return [each for each in self._others.answer if chosen is None or degrees(each) != degrees(chosen)][:count]


def _free(fastest: Entry, problem: Problem, options: SearchOptions, started_s: float) -> UnrestrictedAnswer | None:
    """What the unrestricted space gives beside the fastest plan, in the time that is left when it is worked out."""
    assert fastest.best is not None
    left = _with_time_left(options, started_s)
    return unrestricted_answer(unrestricted_entry(problem, left, fastest.best.step_time_s), fastest)


def _others(fastest: Entry, count: int) -> list[Candidate]:
    """Plans of other degrees than the fastest one's."""
    assert fastest.search is not None
    assert fastest.best is not None
    if count and not fastest.copied:
        return find_alternatives(fastest.search, (fastest.best,), count)
    return fastest.result.others((fastest.best,))[:count]


def preferring(prefer: Preference, problem: Problem) -> Problem:
    """The same question with this preference."""
    if problem.objective.prefer == prefer:
        return problem
    return problem.model_copy(update={"objective": problem.objective.model_copy(update={"prefer": prefer})})


def _with_time_left(options: SearchOptions, started_s: float) -> SearchOptions:
    if options.time_limit_s is None:
        return options
    return replace(options, time_limit_s=max(0.0, options.time_limit_s - (time.monotonic() - started_s)))


def _nothing(problem: Problem, compared: Compared, options: SearchOptions) -> Exception:
    """Why there is no plan: out of time, or the reasons of every back-end and a closer look at the most promising."""
    searched = [each for each in compared.entries if each.search is not None]
    if any(not each.result.complete for each in searched):
        return BudgetSpent(
            f"no plan was found within {options.time_limit_s} s",
            where="--time-limit",
            hint="allow more time, or pin degrees to make the space smaller",
        )
    if not searched:
        reasons = "; ".join(f"{each.software.name}: {each.reason}" for each in compared.entries)
        names = ", ".join(each.software.name for each in compared.entries)
        what = f"no back-end can run a plan of this problem, whatever the strategy: {reasons}"
        instead = "--backend unrestricted plans for study what no back-end builds"
        if len(compared.entries) == 1:
            (entry,) = compared.entries
            what = f"{entry.software.spelled} can run no plan of this problem, whatever the strategy: {entry.reason}"
            instead = "choose another --backend"
        if problem.model.towers:
            instead = f"`meshwright towers` says where {problem.model.towers[0].called} stands best; {instead}"
        return NoFeasiblePlan(what, binding=f"rules of {names}", relaxations=(instead,))
    closest, error = _closest(searched, alone=len(compared.entries) == 1)
    others: dict[str, list[str]] = {}
    for each in compared.entries:
        if each is not closest:
            others.setdefault(each.reason, []).append(each.software.name)
    if others:
        more = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in others.items())
        error.what = f"no back-end has a plan; {closest.software.name}: {error.what}; {more}"
    return error


def _closest(searched: Sequence[Entry], *, alone: bool) -> tuple[Entry, NoFeasiblePlan]:
    """The back-end that is nearest to a plan, and why it has none.

    Whose memory falls short the least comes first; one whose rules are in the way only where they are so in all.
    """
    if len(searched) > 1:
        searched = sorted(searched, key=lambda entry: (needed_share(entry.problem), least_bound_s(entry)))
    looked_at = []
    for entry in searched:
        error = no_feasible_plan(entry.problem, entry.result, alone=alone)
        if not error.binding.startswith("rules of"):
            return entry, error
        looked_at.append((entry, error))
    return looked_at[0]


def _report(entries: Sequence[Entry], proved: bool, which: str) -> SearchReport:
    """What all searches looked at; an answer that was copied was looked at once."""
    results = [each.result for each in entries if each.search is not None and not each.copied]
    if proved:
        proof = (
            "every strategy of the spaces of all back-ends that were asked was evaluated or has a lower bound that is"
            f" not below {which} plan"
        )
    elif all(result.complete for result in results):
        proof = (
            f"every strategy was evaluated or has a lower bound that is not below {which} plan; the ways to deal the"
            " layers of some were too many to simulate, and the lower bound is theirs"
        )
    else:
        proof = "stopped early: the lower bound is the smallest bound of what was not examined"
    pruned, refused = Counter[str](), Counter[str]()
    for result in results:
        pruned, refused = pruned + result.pruned, refused + result.refused
    return SearchReport(
        enumerated=sum(result.enumerated for result in results),
        pruned=dict(sorted(pruned.items())),
        refused=dict(sorted(refused.items())),
        bounded=sum(result.bounded for result in results),
        evaluated=sum(result.evaluated for result in results),
        proof=proof,
    )
