"""Checks that a back-end's files say exactly the plan that they were made of, whatever its space holds.

What the property tests of several back-ends check in the same way; which plans are drawn, and how many of them must be
emitted, is each test's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from planner.backends.asked import inside, problem_hardware
from planner.backends.emission.emission import Emission, Finding
from planner.backends.emission.layout import Layout, layout_of
from planner.backends.folders.emit import emit_for
from planner.backends.registry import files_of, software
from planner.backends.rules.rule import rule_input
from planner.errors import BackEndRefused
from planner.model.builtin import builtin_model
from planner.plan.plan import Plan
from planner.question.problem import Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.estimate import estimate
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context
from planner.search.sample import random_strategies
from planner.search.split import best_split
from planner.search.split_limits import split_rules
from planner.strategy.strategy import Strategy
from profiles.catalogue.cluster_files import load_cluster

DRAWS_A_PLAN = 40
"""Random strategies that are looked at for each plan that is wanted: rules refuse many, memory some."""


def question(model: str, cluster: str, devices: int, **workload: object) -> Problem:
    """A built-in model on devices of a built-in cluster, 96 samples of 4,096 tokens a step (fewer where it ends)."""
    asked = builtin_model(model)
    tokens = min(asked.max_sequence_length, 4096)
    return Problem(
        model=asked,
        cluster=load_cluster(cluster, devices),
        workload=Workload.model_validate({"global_batch_size": 96, "sequence_length": tokens, **workload}),
    )


def as_spelled(plan: Plan, backend: str) -> Plan:
    """The plan as one of ``backend`` (``NAME[==RELEASE]``), in its words."""
    wanted = software(backend)
    spelled = wanted.release.space.spelled(plan.chosen(), rule_input(plan))
    return plan.model_copy(
        update={"backend": wanted.name, "release": wanted.release.version, "strategy": spelled.to_dict()}
    )


def outcomes_of_reading_back(
    drawn: SearchStrategy[Plan],
    emit: Callable[[Plan], Emission],
    read_back: Callable[[Mapping[str, str]], tuple[Strategy, Layout]],
    *,
    refusals: Callable[[Plan], list[Finding]],
    each: Callable[[Emission], None] = lambda _emission: None,
    max_examples: int = 300,
) -> Counter[str]:
    """Checks that files read back as the plan that they were made of, and that only findings refuse a plan.

    ``drawn`` gives plans in the words of their back-end (``as_spelled``); ``refusals`` finds the broken rules of one;
    ``each`` sees every emission.  Counts the plans ``refused`` and ``emitted``.
    """
    outcomes: Counter[str] = Counter()

    @given(drawn)
    @settings(max_examples=max_examples)
    def check(plan: Plan) -> None:
        findings = refusals(plan)
        if findings:
            with pytest.raises(BackEndRefused) as refusal:
                emit(plan)
            assert all(finding.rule in str(refusal.value) for finding in findings)
            outcomes["refused"] += 1
            return
        emission = emit(plan)
        assert emission.plan == plan
        strategy, layout = read_back(emission.files)
        assert strategy == plan.chosen()
        assert layout == layout_of(plan)
        each(emission)
        outcomes["emitted"] += 1

    check()
    return outcomes


def plans_of_the_space(problem: Problem, backend: str, seed: int, wanted: int) -> Iterator[Plan]:
    """At most ``wanted`` plans of random strategies of a back-end's space that its rules and the memory let pass.

    Checks of every one that its spelling is the only one and costs the same seconds and bytes.
    """
    own = inside(problem, software(backend))
    hardware, rules = problem_hardware(own), BackEndRules(own)
    assert rules.always() == []
    found = 0
    for drawn in islice(random_strategies(own, seed), DRAWS_A_PLAN * wanted):
        if found == wanted:
            return
        if rules.refuses(drawn):
            continue
        candidate = best_split(strategy_context(own, hardware, drawn), split_rules(own, hardware))
        if candidate is None or rules.refuses(candidate.strategy, candidate.split.chunk_layers):
            continue
        chunks = candidate.split.chunk_layers
        spelled = rules.spelled(candidate.strategy, chunks)
        assert rules.spelled(spelled, chunks) == spelled
        assert rules.messages(spelled, chunks) == []
        again = evaluate_split(strategy_context(own, hardware, spelled), candidate.split)
        assert again.step_time_s == candidate.step_time_s
        assert again.peak_memory_bytes == candidate.peak_memory_bytes
        found += 1
        yield estimate(own, spelled, chunks, relief="where_needed")


def assert_comes_back(plan: Plan) -> Emission:
    """The plan's back-end writes it, and reading the files gives strategy and stages back."""
    wanted = software(f"{plan.backend}=={plan.release}")
    emission = emit_for(wanted, plan, "torchrun")
    assert files_of(wanted).read(emission.files) == (plan.chosen(), layout_of(plan))
    assert emission.plan == plan
    return emission
