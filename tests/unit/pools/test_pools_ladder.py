"""The ladder of measurements under a plan over several kinds of devices."""

from __future__ import annotations

from functools import cache

import pytest

from planner.answers.explain.pools_ladder import pools_ladder
from planner.answers.explain.trust_ladder import Rung, shortened_model
from planner.answers.explain.why import explain
from planner.answers.over_pools import clusters_of
from planner.plan.plan import Plan
from planner.search.pools.launchable import launchable_plan
from tests.unequal_devices import devices, plan_of, question


@cache
def runnable() -> Plan:
    pins: dict[str, int | str | bool] = {"tp": 1, "micro_batch_size": 1, "zero_stage": 0, "recompute": "none"}
    return launchable_plan(plan_of(question(devices("slow", 1, 3.0), devices("fast", 2, 1.0), layers=9, **pins)))


@cache
def rungs() -> tuple[Rung, ...]:
    return pools_ladder(runnable())


def test_the_files_are_run_first_and_every_kind_of_devices_has_a_rung() -> None:
    plan = runnable()
    files, *kinds = rungs()
    assert files.commands == (f"meshwright run {plan.plan_id[:12]} --tiny",)
    assert files.run is None
    assert [kind.what.rsplit(" ", 1)[1] for kind in kinds] == [cluster.name for cluster in clusters_of(plan)]


def test_a_rung_is_the_longest_stage_of_its_kind_alone() -> None:
    plan = runnable()
    first = 0
    for cluster, rung in zip(clusters_of(plan), rungs()[1:], strict=True):
        count = cluster.num_devices * len(plan.stages) // plan.problem.cluster.num_devices
        stages, first = plan.stages[first : first + count], first + count
        longest = max(stages, key=lambda stage: stage.forward_s + stage.backward_s)
        assert rung.run is not None
        assert rung.run.layers == longest.layers
        assert rung.run.strategy["pp"] == 1
        assert shortened_model(plan.problem.model, rung.run.layers).num_layers == longest.layers
        # Alone it has embedding and head too, and no stage to wait for.
        alone_s = rung.run.expected_step_time_s / plan.chosen().num_microbatches
        assert alone_s == pytest.approx(longest.forward_s + longest.backward_s, rel=1.0)
        assert alone_s > 0.9 * (longest.forward_s + longest.backward_s)
        assert f"--cluster {cluster.name} --devices {rung.run.devices}" in rung.commands[0]


def test_the_explanation_has_it_unless_it_is_to_be_brief() -> None:
    assert explain(runnable()).ladder == rungs()
    assert explain(runnable(), with_neighbours=False).ladder == ()
