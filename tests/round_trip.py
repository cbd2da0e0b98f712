"""Do a target's files say exactly the projected plan, and does a projection keep what it must?

What the property tests of several targets check in the same way; which plans are drawn, and how many of them must be
emitted, is each test's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from planner.backends.emission.emission import Emission, Finding, Projection
from planner.backends.emission.layout import Layout, layout_of
from planner.errors import BackEndRefused
from planner.plan import Plan
from planner.strategy import Strategy

Project = Callable[[Plan], tuple[Plan, tuple[Projection, ...]]]


def outcomes_of_reading_back(
    drawn: SearchStrategy[Plan],
    emit: Callable[[Plan], Emission],
    read_back: Callable[[Mapping[str, str]], tuple[Strategy, Layout]],
    *,
    refusals: Callable[[Plan], list[Finding]],
    each: Callable[[Emission], None] = lambda _emission: None,
    max_examples: int = 300,
) -> Counter[str]:
    """Checks that files read back as the plan they were made of, and that only findings refuse a plan.

    ``refusals`` finds the broken rules of a refused plan once projected; ``each`` sees every emission.  Counts the
    plans ``refused``, ``emitted``, and emitted ``as wanted``, without a projection.
    """
    outcomes: Counter[str] = Counter()

    @given(drawn)
    @settings(max_examples=max_examples)
    def check(plan: Plan) -> None:
        try:
            emission = emit(plan)
        except BackEndRefused:
            assert refusals(plan) != []
            outcomes["refused"] += 1
            return
        strategy, layout = read_back(emission.files)
        assert strategy == emission.plan.chosen()
        assert layout == layout_of(emission.plan)
        assert (emission.plan == plan) == (not emission.projections)
        each(emission)
        outcomes["emitted"] += 1
        outcomes["as wanted"] += not emission.projections

    check()
    return outcomes


def assert_needs_no_second_projection(project: Project, plan: Plan) -> None:
    """A projection tells whether it changed the plan, and leaves nothing to project."""
    projected, projections = project(plan)
    assert (projected == plan) == (projections == ())
    again, none = project(projected)
    assert none == ()
    assert again is projected


def assert_same_fields(before: Strategy, after: Strategy, names: str) -> None:
    """The named fields (words of one string) are as they were."""
    for name in names.split():
        assert getattr(after, name) == getattr(before, name)


def assert_layers_in_order(plan: Plan) -> None:
    """The chunks are numbered along the model and hold all its layers, each where the one before it ended."""
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    assert [chunk.chunk for chunk in chunks] == list(range(plan.chosen().num_chunks))
    first = 0
    for chunk in chunks:
        assert chunk.first_layer == first
        first += chunk.num_layers
    assert first == plan.problem.model.num_layers


def assert_ends_in_place(plan: Plan) -> None:
    """Embedding on the first chunk, head on the last, and each chunk starting where the one before it ended."""
    chunks = sorted((chunk for stage in plan.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    assert [chunk.first_layer for chunk in chunks] == [
        sum(each.num_layers for each in chunks[:index]) for index in range(len(chunks))
    ]
    assert chunks[0].has_embedding
    assert chunks[-1].has_head
