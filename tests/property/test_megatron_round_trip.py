from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.emit.layout import layout_of
from planner.emit.megatron import emit, project, read_back, rule_input, rules, violations
from planner.emit.megatron.layout import layout_string, parse_layout
from planner.errors import TargetRefused
from planner.plan import ChunkPlan, Plan
from tests.plan_strategies import plans


def test_reading_back_gives_the_emitted_plan() -> None:
    outcomes: Counter[str] = Counter()

    @given(plans())
    @settings(max_examples=300)
    def check(plan: Plan) -> None:
        try:
            emission = emit(plan, "torchrun")
        except TargetRefused:
            outcomes["refused"] += 1
            return
        strategy, layout = read_back(emission.files)
        assert strategy == emission.plan.chosen()
        assert layout == layout_of(emission.plan)
        if not emission.projections:
            assert emission.plan == plan
            outcomes["as wanted"] += 1
        outcomes["emitted"] += 1

    check()
    assert outcomes["emitted"] >= 150, outcomes
    assert outcomes["as wanted"] >= 10, outcomes


@given(plans())
def test_a_projected_plan_needs_no_projection(plan: Plan) -> None:
    projected, projections = project(plan)
    assert (projected == plan) == (projections == ())
    again, none = project(projected)
    assert none == ()
    assert again is projected


@given(plans())
def test_a_projection_keeps_the_layers_in_order_and_the_degrees(plan: Plan) -> None:
    before, after = plan.chosen(), project(plan)[0]
    strategy = after.chosen()
    for name in ("tp", "cp", "ep", "etp", "pp", "dp", "world_size", "num_microbatches", "zero_stage"):
        assert getattr(strategy, name) == getattr(before, name)
    chunks = sorted((chunk for stage in after.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    assert [chunk.chunk for chunk in chunks] == list(range(strategy.num_chunks))
    assert sum(chunk.num_layers for chunk in chunks) == plan.problem.model.num_layers
    first = 0
    for chunk in chunks:
        assert chunk.first_layer == first
        first += chunk.num_layers


@given(plans())
def test_rules_over_a_plan_and_over_a_rule_input_agree(plan: Plan) -> None:
    found = {finding.rule for finding in violations(rule_input(plan))}
    assert found == {rule.id for rule in rules() if rule.check(plan) is not None}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=20))
def test_layout_strings_parse_back(counts: list[tuple[int, int]]) -> None:
    chunks = []
    first = 0
    for index, (layers, mtp) in enumerate(counts):
        last = index == len(counts) - 1
        chunks.append(
            ChunkPlan(
                chunk=index,
                first_layer=first,
                num_layers=layers,
                has_embedding=index == 0,
                has_head=last,
                num_mtp_layers=mtp if last else 0,
            )
        )
        first += layers
    assert parse_layout(layout_string(chunks), "here") == tuple(chunks)
