"""Random plans of a back-end's own space, whose spelling is held to change nothing.

Relief that no layer needs is left out before a plan is made (``planner.search.evaluate``), which frees the working
memory of a replayed layer; costs are compared behind that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from planner.backends.asked import inside, problem_hardware
from planner.backends.registry import software
from planner.model.load import load_model
from planner.plan.plan import Plan
from planner.question.problem import Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.estimate import estimate
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context
from planner.search.sample import random_strategies
from planner.search.split import best_split
from planner.search.split_limits import split_rules
from profiles.catalogue import load_cluster

DRAWS_A_PLAN = 40
"""Random strategies that are looked at for each plan that is wanted: rules refuse many, memory some."""


def question(model: str, cluster: str, devices: int, samples_a_device: int = 4) -> Problem:
    """A built-in model on a cluster of the catalogue."""
    return Problem(
        model=load_model(model),
        cluster=load_cluster(cluster, devices),
        workload=Workload(global_batch_size=samples_a_device * devices, sequence_length=4096),
    )


def drawn_plans(problem: Problem, backend: str, wanted: int) -> Iterator[Plan]:
    """At most ``wanted`` plans of random strategies that rules and memory let pass, as the back-end spells them.

    Checks of every one that its spelling is spelled the same, breaks no rule, and costs the same seconds and bytes.
    """
    own = inside(problem, software(backend))
    hardware, rules = problem_hardware(own), BackEndRules(own)
    assert rules.always() == []
    found = 0
    for drawn in islice(random_strategies(own, problem.cluster.num_devices), DRAWS_A_PLAN * wanted):
        if found == wanted:
            return
        if rules.refuses(drawn):
            continue
        candidate = best_split(strategy_context(own, hardware, drawn), split_rules(own, hardware))
        if candidate is None or rules.refuses(candidate.strategy, candidate.split.chunk_layers):
            continue
        chunks, used = candidate.split.chunk_layers, candidate.strategy
        spelled = rules.spelled(used, chunks)
        assert rules.spelled(spelled, chunks) == spelled
        assert rules.messages(spelled, chunks) == []
        before, after = (
            evaluate_split(strategy_context(own, hardware, each), candidate.split) for each in (used, spelled)
        )
        assert (after.step_time_s, after.peak_memory_bytes) == (before.step_time_s, before.peak_memory_bytes)
        found += 1
        yield estimate(own, spelled, chunks, relief="where_needed")
