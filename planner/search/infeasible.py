"""Why there is no plan, and the smallest change that gives one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import numpy as np

from planner.backends.asked import inside, problem_hardware, the_software, why_not_these_devices
from planner.backends.backend import Software
from planner.backends.registry import with_files
from planner.errors import MeshwrightError, NoFeasiblePlan
from planner.predict.cost.row_cost import CostModel
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.bound import BoundTerms
from planner.search.branch import Search
from planner.search.memory_bound import lower_bounds_s
from planner.search.options import SearchOptions, SearchProgress
from planner.search.pin_cause import PinCause, nearest, pin_cause
from planner.search.pin_conflict import PinConflict, pin_conflict, repinned, value_word
from planner.search.room_notes import room_words
from planner.search.search_result import Pruned, SearchResult
from planner.search.space import Space
from planner.search.split_limits import memory_limit_bytes
from planner.strategy.rows import StrategyRows

FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
MOST_CORES = 400
"""Cores looked at for the diagnosis, spread over all sizes of micro-batches."""
TRIAL_S = 2.0
"""Processor time to find a first plan of a relaxed problem; a relaxation that takes longer is not named."""
SMALL_MARGIN = 0.02
LOW_CHANCE = 0.8
LOOSE_REASONS = {"pinned or forbidden": 0, "heads": 1, "sequence": 1, "layers": 1, "global_batch": 2}
"""How far a choice got that fails for a reason: what got furthest binds.  Reasons not listed come last of all."""


class _FirstPlan(Exception):
    """Ends a trial search at its first plan."""


def no_feasible_plan(problem: Problem, result: SearchResult, *, alone: bool = True) -> NoFeasiblePlan:
    """Diagnose an empty search: the binding constraint and relaxations, each one tried before it is named.

    ``alone``: whether the question names this back-end only, so that another one may help.
    """
    conflict = pin_conflict(problem)
    if conflict is not None:
        return NoFeasiblePlan(
            conflict.message,
            binding=f"rules of {conflict.backend}",
            relaxations=_around(problem, conflict, alone) or ("drop a pin, or choose another --backend",),
            pruned=result.refused + result.pruned,
        )
    cause = pin_cause(problem)
    if cause is not None:
        return NoFeasiblePlan(
            cause.message(problem.cluster.num_devices),
            binding="pins",
            relaxations=(*_other_values(problem, cause), *_helpful(problem, alone))
            or ("drop a pin, or pin other values",),
            pruned=result.refused + result.pruned,
        )
    what, binding, otherwise = _diagnosis(problem, result)
    return NoFeasiblePlan(
        what,
        binding=binding,
        relaxations=_helpful(problem, alone) or (otherwise,),
        pruned=result.refused + result.pruned,
    )


def _diagnosis(problem: Problem, result: SearchResult) -> tuple[str, str, str]:
    """What is wrong, what binds, and a general remedy for the case that no tried one helps."""
    devices, name = problem.cluster.num_devices, the_software(problem).name
    space = Space(problem, devices)
    if len(space.cores) == 0 or len(_sample(space)) == 0:
        reason, count = _binding_rule(space)
        what = f"no strategy is legal on {devices} devices; {count} choices fail the rule '{reason}'"
        return what, reason, "change the number of devices, the global batch size or the pins"
    if result.pruned[Pruned.BACKEND_RULES] and _feasible(problem):
        what = f"every strategy that fits is refused by the rules of {name}"
        return what, f"rules of {name}", "choose another --backend"
    if _has_plan(_roomy_host(problem)):
        what = f"{problem.model.name} fits {devices} devices only by offloading more than the host memory holds"
        return what, "host memory", "use nodes with more host memory, or more devices"
    return _out_of_memory(problem), "device memory", "use far more devices, or a device with more memory"


def needed_share(problem: Problem) -> float:
    """What some strategy needs of a device's memory at least, over what may be used: one of ``FACTORS``.

    1 where the memory bound lets one fit, infinity where none does or there is no strategy.
    """
    terms, limit = _sampled_terms(problem), memory_limit_bytes(problem, problem_hardware(problem))
    fitting = (value for value in (1.0, *FACTORS) if terms is not None and _some_fit(terms, limit * value))
    return next(fitting, float("inf"))


def _out_of_memory(problem: Problem) -> str:
    hardware = problem_hardware(problem)
    limit = memory_limit_bytes(problem, hardware)
    factor = needed_share(problem)
    need = "more than 100 x that" if factor > FACTORS[-1] else f"about {limit * factor / 2**30:.0f} GiB"
    return (
        f"nothing fits the memory: {problem.model.name} on {problem.cluster.num_devices} x {hardware.pool.device.name}"
        f" needs {need} a device, {limit / 2**30:.1f} GiB may be used"
        f" ({hardware.memory_bytes / 2**30:.1f} GiB {room_words(problem.constraints)})"
    )


def _helpful(problem: Problem, alone: bool) -> tuple[str, ...]:
    """Relaxations that give a plan; of several back-ends and device counts the first only."""
    found = [text for text, changed in _relaxations(problem) if _has_plan(changed)]
    return (*found, *(_first(_elsewhere(problem)) if alone else ()), *_first(_larger(problem)))


def _first(tries: Iterable[tuple[str, Problem]]) -> tuple[str, ...]:
    return next(((text,) for text, changed in tries if _has_plan(changed)), ())


def _around(problem: Problem, conflict: PinConflict, alone: bool) -> tuple[str, ...]:
    """Other values for the pins in conflict, and what else takes them out of the way; each one gives a plan."""
    values: dict[str, list[str]] = {}
    for name, value in conflict.instead:
        if _has_plan(repinned(problem, name, value)):
            values.setdefault(name, []).append(value_word(value))
    pinned = tuple(f"pin {name}={_either(words)}" for name, words in values.items())
    changes = [change for change in _relaxations(problem) if change[0].startswith(("drop", "allow"))]
    helpful = (text for text, changed in changes if _has_plan(changed))
    return (*pinned, *helpful, *(_first(_elsewhere(problem)) if alone else ()))


def _other_values(problem: Problem, cause: PinCause) -> tuple[str, ...]:
    """Other values of each pin, the nearest ones, that give a plan."""
    pinned, found = dict(cause.pins), []
    for name, values in cause.allowed:
        near = [value for value in nearest(values, pinned[name]) if _has_plan(repinned(problem, name, value))]
        if near:
            found.append(f"pin {name}={_either([value_word(value) for value in near])}")
    return tuple(found)


def _either(words: list[str]) -> str:
    """``0, 1 or 3``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _binding_rule(space: Space) -> tuple[str, int]:
    """The rule that stopped the choices which got furthest, and how many it stopped."""
    furthest = len(LOOSE_REASONS)
    stopped = ((reason, count) for reason, count in space.pruned.items() if count)
    order = sorted(stopped, key=lambda item: (LOOSE_REASONS.get(item[0], furthest), item[1]))
    return order[-1] if order else ("the space is empty", 0)


def _relaxations(problem: Problem) -> list[tuple[str, Problem]]:
    """Changes to try, smallest first."""
    constraints, workload = problem.constraints, problem.workload
    tries: list[tuple[str, Problem]] = []
    for name in constraints.pins:
        pins = {key: value for key, value in constraints.pins.items() if key != name}
        tries.append((f"drop the pin on {name}", _with(problem, constraints={"pins": pins})))
    for name in constraints.forbids:
        rest = tuple(other for other in constraints.forbids if other != name)
        tries.append((f"allow {name}", _with(problem, constraints={"forbids": rest})))
    tries += _tighter(problem)
    if workload.sequence_length >= 2048:
        half = workload.sequence_length // 2
        tries.append((f"halve the sequence length to {half}", _with(problem, workload={"sequence_length": half})))
    return tries


def _tighter(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """The same problem with less room."""
    constraints = problem.constraints
    if (constraints.memory_margin_fraction or 0.0) > SMALL_MARGIN:
        smaller: dict[str, object] = {"memory_margin_fraction": SMALL_MARGIN}
        yield f"lower --memory-margin to {SMALL_MARGIN}", _with(problem, constraints=smaller)
    if constraints.fits is not None and constraints.fits > LOW_CHANCE:
        yield f"lower --fits to {LOW_CHANCE}", _with(problem, constraints={"fits": LOW_CHANCE})


def _elsewhere(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """The same problem to each other back-end that files can be written for and that may run it."""
    for each in with_files():
        wanted = Software(each, each.releases[0])
        other = inside(problem, wanted)
        if wanted.name == the_software(problem).name or why_not_these_devices(wanted, problem):
            continue
        if not BackEndRules(other).always():
            yield f"use --backend {wanted.name}", other


def _larger(problem: Problem) -> list[tuple[str, Problem]]:
    """The same problem on more nodes."""
    cluster = problem.cluster
    tries = []
    for factor in (2, 4, 8, 16, 64):
        pool = cluster.pools[0].model_copy(update={"num_nodes": cluster.pools[0].num_nodes * factor})
        larger = problem.model_copy(update={"cluster": cluster.model_copy(update={"pools": (pool,)})})
        tries.append((f"use {cluster.num_devices * factor} devices", larger))
    return tries


def _roomy_host(problem: Problem) -> Problem:
    pool = problem.cluster.pools[0]
    host = pool.host.model_copy(update={"memory_bytes": pool.host.memory_bytes * 1000})
    cluster = problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"host": host}),)})
    return problem.model_copy(update={"cluster": cluster})


def _with(problem: Problem, **changes: dict[str, object]) -> Problem:
    parts = {name: getattr(problem, name).model_copy(update=update) for name, update in changes.items()}
    return problem.model_copy(update=parts)


def _feasible(problem: Problem) -> bool:
    """Whether some strategy could fit, by the memory bound alone."""
    terms = _sampled_terms(problem)
    return terms is not None and _some_fit(terms, memory_limit_bytes(problem, problem_hardware(problem)))


def _sampled_terms(problem: Problem) -> BoundTerms | None:
    """What the bounds of a sample of the strategies are made of; None where there is no strategy."""
    try:
        hardware = problem_hardware(problem)
        space = Space(problem, problem.cluster.num_devices)
        cores = space.cores
    except MeshwrightError:
        return None
    if len(cores) == 0:
        return None
    rows = _sample(space)
    if len(rows) == 0:
        return None
    costs = CostModel(problem.model, problem.workload, hardware, space.reliefs)
    return BoundTerms(costs, rows, costs.rows(rows))


def _some_fit(terms: BoundTerms, limit_bytes: float) -> bool:
    return bool(np.isfinite(lower_bounds_s(terms, limit_bytes)).any())


def _sample(space: Space) -> StrategyRows:
    """Strategies of a few hundred cores, from the smallest micro-batches to the largest."""
    cores = space.cores
    smallest = np.argsort(cores.micro_batch_size * cores.num_microbatches / (cores.tp * cores.cp), kind="stable")
    picked = cores.take(smallest[np.linspace(0, len(smallest) - 1, min(MOST_CORES, len(smallest))).astype(int)])
    layouts, key = space.layouts(picked, np.zeros(len(picked), dtype=np.int64))
    rows, key = space.shardings(layouts, key)
    return space.leaves(rows, key)[0]


def _has_plan(problem: Problem) -> bool:
    """Whether a search finds a plan, within ``TRIAL_S`` of processor time: a busy machine gives the same answer."""
    end_s = time.thread_time() + TRIAL_S

    def stop(snapshot: SearchProgress) -> None:
        if snapshot.incumbent_s is not None:
            raise _FirstPlan

    try:
        hardware = problem_hardware(problem)
        Search(problem, hardware, SearchOptions(top_k=0, stop=lambda: time.thread_time() > end_s), stop).run()
    except _FirstPlan:
        return True
    except MeshwrightError:
        return False
    return False
