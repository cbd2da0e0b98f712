"""The speed of the search's parts in a process that is already warm.

``leaf-bounds``: complete strategies costed and bounded, time and memory bound both, each with a bound of its own; the
memory reliefs of one sharding share its costing, as in the search.  ``space-rate``: strategies of the declared space
that one whole search accounts for per second; most fall under the bound of their core or layout and are never written
out.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.measurement import Measurement, Spec
from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.predict.cost.hardware import hardware_of
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.bound import BoundTerms
from planner.search.branch import Search
from planner.search.find import find_plan
from planner.search.memory_bound import relief_bounds_s
from planner.search.options import SearchOptions
from profiles.catalogue import load_cluster

BOUNDS_TARGET_PER_S = 1_000_000.0
REPLAN_TARGET_S = 0.3
WARM_TARGETS_S = {
    "any": 0.4,
    "megatron": 0.2,
    "megatron-bridge": 0.2,
    "deepspeed": 0.2,
    "torchtitan": 0.2,
    "native": 0.2,
}
"""Seconds of a plan in a process that has planned before, as in the service, by the back-end that is asked."""
LAYOUTS_A_BATCH = 2_000
MOST_LEAVES = 1_000_000


def llama_70b(devices: int, backend: str = "any") -> Problem:
    """Llama-3.1-70B, 1,024 samples of 8,192 tokens, on DGX H100."""
    return Problem(
        constraints=Constraints(backends=(backend,)),
        model=load_model("llama-3.1-70b"),
        cluster=load_cluster("dgx-h100", devices),
        workload=Workload(global_batch_size=1024, sequence_length=8192),
    )


def leaf_bounds(repeats: int) -> list[Measurement]:
    """Leaves bounded per second, with the best plan's time as cutoff, as in a search that knows its answer."""
    problem = llama_70b(64)
    cutoff_s = find_plan(problem).step_time_s
    task = "strategies bounded per second of one core, each by its own (Llama-3.1-70B on 64 H100)"
    return [_rate("leaf-bounds", task, repeats, lambda: _bound_leaves(problem, cutoff_s))]


def _rate(name: str, task: str, repeats: int, work: Callable[[], int]) -> Measurement:
    """Strategies per processor second: one thread, so this is the rate of a core that nobody else uses."""
    samples, cpu_s, wall_s, strategies = [], [], [], 0
    for _ in range(repeats):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        strategies = work()
        cpu_s.append(time.process_time() - start_cpu_s)
        wall_s.append(time.perf_counter() - start_s)
        samples.append(strategies / cpu_s[-1])
    return Measurement(
        *(name, task, "1/s", BOUNDS_TARGET_PER_S, tuple(samples), tuple(cpu_s)),
        larger_is_better=True,
        details={"strategies": strategies, "wall_s": wall_s},
    )


def _bound_leaves(problem: Problem, cutoff_s: float) -> int:
    """Bound up to MOST_LEAVES strategies, each by itself, as the search does; returns how many."""
    free = problem.model_copy(update={"constraints": Constraints(backends=(UNRESTRICTED,))})
    search = Search(free, hardware_of(problem.cluster, "bf16"), SearchOptions())
    cores = search.space.cores
    table, key = search.costs.keyed(cores)
    layouts, key = search.space.layouts(cores, key)
    order = np.random.default_rng(0).permutation(len(layouts))
    done = 0
    for start in range(0, len(order), LAYOUTS_A_BATCH):
        picked = order[start : start + LAYOUTS_A_BATCH]
        rows, keys = search.space.shardings(layouts.take(picked), key[picked])
        terms = BoundTerms(search.costs, rows, search.costs.rows(rows, (table, keys)))
        reliefs = search.space.relief_codes
        done += relief_bounds_s(terms, table.layers, reliefs, search.limits, cutoff_s).size
        if done >= MOST_LEAVES:
            break
    return done


def space_rate(repeats: int) -> list[Measurement]:
    """Strategies of the declared space accounted for per second of a whole search, proof included."""
    problem = llama_70b(64)
    task = "strategies accounted for per second of one core, whole search (Llama-3.1-70B on 64 H100)"
    return [_rate("space-rate", task, repeats, lambda: find_plan(problem).search.bounded)]


def replan(repeats: int) -> list[Measurement]:
    """A node of eight leaves the cluster of 64: a new proved plan on 56, in a process that has planned on 64."""
    find_plan(llama_70b(64))
    samples, cpu_s, answer = [], [], ""
    for _ in range(repeats):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        answer = _answer(llama_70b(56))
        samples.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - start_cpu_s)
    task = "re-plan after losing one node, warm (Llama-3.1-70B, 64 to 56 H100)"
    return [Measurement("replan", task, "s", REPLAN_TARGET_S, tuple(samples), tuple(cpu_s), details={"answer": answer})]


def warm_plans(repeats: int) -> list[Measurement]:
    """The question of the README in a process that has answered it before: all back-ends, and each by itself."""
    found = []
    for backend, target_s in WARM_TARGETS_S.items():
        problem, samples, cpu_s, answer = llama_70b(64, backend), list[float](), list[float](), ""
        find_plan(problem)
        for _ in range(repeats):
            start_s, start_cpu_s = time.perf_counter(), time.process_time()
            answer = _answer(problem)
            samples.append(time.perf_counter() - start_s)
            cpu_s.append(time.process_time() - start_cpu_s)
        whose = "all back-ends" if backend == "any" else backend
        task = f"warm plan, Llama-3.1-70B on 64 H100, {whose}"
        found.append(
            Measurement(
                *(f"warm-{backend}", task, "s", target_s, tuple(samples), tuple(cpu_s)), details={"answer": answer}
            )
        )
    return found


def _answer(problem: Problem) -> str:
    """The plan in a few words; "no plan" is an answer too."""
    try:
        plan: Plan = find_plan(problem)
    except NoFeasiblePlan as error:
        return error.what
    return f"{plan.status}, {plan.step_time_s:.4g} s, {plan.search.bounded} strategies"


LEAF_BOUNDS = Spec("leaf-bounds", leaf_bounds)
SPACE_RATE = Spec("space-rate", space_rate)
REPLAN = Spec("replan", replan)
WARM_PLANS = Spec("warm-plans", warm_plans)
