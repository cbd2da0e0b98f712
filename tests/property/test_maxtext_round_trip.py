"""Does every random plan reach MaxText's file and come back, or is it refused with rules?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.emission.assemble import PLAN_JSON
from planner.backends.emission.layout import layout_of
from planner.backends.maxtext import emit, project, read_back, rule_input, violations
from planner.errors import BackEndRefused
from planner.plan import Plan
from tests.plan_strategies import plans

ARCHITECTURES = ("tpu_v5p", "tpu_7x", "hopper", "cdna3")


def on(plan: Plan, architecture: str, domain: int) -> Plan:
    """The same plan on another device, its scale-up domain larger or smaller."""
    cluster = plan.problem.cluster
    pool = cluster.pools[0]
    pool = pool.model_copy(
        update={
            "device": pool.device.model_copy(update={"architecture": architecture}),
            "scale_up": pool.scale_up.model_copy(update={"domain_size": domain}),
        }
    )
    problem = plan.problem.model_copy(update={"cluster": cluster.model_copy(update={"pools": (pool,)})})
    return plan.model_copy(update={"problem": problem})


@settings(max_examples=300, deadline=None)
@given(plans(), st.sampled_from(ARCHITECTURES), st.sampled_from([2, 4, 8, 64]))
def test_what_is_emitted_reads_back_as_the_projected_plan(drawn: Plan, architecture: str, domain: int) -> None:
    plan = on(drawn, architecture, domain)
    projected, projections = project(plan)
    assert bool(projections) == (projected is not plan)
    assert project(projected) == (projected, ())
    findings = violations(rule_input(projected))
    if findings:
        with pytest.raises(BackEndRefused) as refusal:
            emit(plan, "torchrun")
        assert all(finding.rule in str(refusal.value) for finding in findings)
        return
    emission = emit(plan, "torchrun")
    files = {name: text for name, text in emission.files.items() if name != PLAN_JSON}
    strategy, layout = read_back(files)
    assert strategy == emission.plan.chosen()
    assert layout == layout_of(emission.plan)
