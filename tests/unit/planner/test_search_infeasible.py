"""The reason is right when there is no plan, and each named change really gives one."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.model.load import load_model
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from planner.search.find import find_plan
from planner.search.options import SearchOptions
from planner.strategy.text import parse_assignments
from profiles.cluster import Cluster
from tests.plan_factory import make_cluster, make_model
from tests.search_problems import Size, random_problem

QUICK = SearchOptions(top_k=0)
SMALL = Size(max_devices=6, max_layers=5, max_batch=6)


def _problem(batch: int = 8, sequence: int = 2048, devices: int = 8, **constraints: Any) -> Problem:
    return Problem(
        model=make_model(8),
        cluster=make_cluster(devices),
        workload=Workload(global_batch_size=batch, sequence_length=sequence),
        constraints=Constraints.model_validate({"backends": (UNRESTRICTED,), **constraints}),
    )


def _small_devices(problem: Problem, gib: float, host_gib: float = 1.0) -> Problem:
    pool = problem.cluster.pools[0]
    device = pool.device.model_copy(update={"memory_bytes": int(gib * 2**30)})
    host = pool.host.model_copy(update={"memory_bytes": int(host_gib * 2**30)})
    return _on(
        problem,
        problem.cluster.model_copy(update={"pools": (pool.model_copy(update={"device": device, "host": host}),)}),
    )


def _on(problem: Problem, cluster: Cluster) -> Problem:
    return problem.model_copy(update={"cluster": cluster})


def _refusal(problem: Problem) -> NoFeasiblePlan:
    with pytest.raises(NoFeasiblePlan) as caught:
        find_plan(problem, QUICK)
    return caught.value


def _relaxed(problem: Problem, text: str) -> Problem:
    """The change that a relaxation names, done by hand."""
    constraints, workload = problem.constraints, problem.workload
    words = text.split()
    if text.startswith("drop the pin on "):
        pins = {name: value for name, value in constraints.pins.items() if name != words[-1]}
        return problem.model_copy(update={"constraints": constraints.model_copy(update={"pins": pins})})
    if text.startswith("pin "):
        pins = constraints.pins | parse_assignments([_values(text)[0]], text)
        return problem.model_copy(update={"constraints": constraints.model_copy(update={"pins": pins})})
    if text.startswith("allow "):
        forbids = tuple(name for name in constraints.forbids if name != words[-1])
        return problem.model_copy(update={"constraints": constraints.model_copy(update={"forbids": forbids})})
    if text.startswith("use --backend "):
        return problem.model_copy(update={"constraints": constraints.model_copy(update={"backends": (words[-1],)})})
    if text.startswith("lower --memory-margin to "):
        margin = {"memory_margin_fraction": float(words[-1])}
        return problem.model_copy(update={"constraints": constraints.model_copy(update=margin)})
    if text.startswith("lower --fits to "):
        fits = {"fits": float(words[-1])}
        return problem.model_copy(update={"constraints": constraints.model_copy(update=fits)})
    if text.startswith("halve the sequence length to "):
        return problem.model_copy(update={"workload": workload.model_copy(update={"sequence_length": int(words[-1])})})
    assert words[0] == "use", f"a relaxation that this test cannot do: {text}"
    assert words[-1] == "devices", text
    pool = problem.cluster.pools[0]
    larger = pool.model_copy(update={"num_nodes": int(words[1].replace(",", "")) // pool.devices_per_node})
    return _on(problem, problem.cluster.model_copy(update={"pools": (larger,)}))


GENERAL = (
    "change the number of devices, the global batch size or the pins",
    "drop a pin, or choose another --backend",
    "drop a pin, or pin other values",
    "choose another --backend",
    "use nodes with more host memory, or more devices",
    "use far more devices, or a device with more memory",
)
"""Remedies of last resort: named only when none that was tried helps."""


def _values(text: str) -> list[str]:
    """``pin zero=0, 1 or 3`` as ``zero=0``, ``zero=1``, ``zero=3``."""
    name, _, values = text.removeprefix("pin ").partition("=")
    return [f"{name}={value}" for value in values.replace(" or ", ", ").split(", ")]


def _all_help(problem: Problem, refusal: NoFeasiblePlan) -> int:
    if len(refusal.relaxations) == 1 and refusal.relaxations[0] in GENERAL:
        return 0
    for text in refusal.relaxations:
        assert find_plan(_relaxed(problem, text), QUICK).step_time_s > 0, text
    return len(refusal.relaxations)


@pytest.mark.parametrize(
    ("asked", "words", "relaxed"),
    [
        ({"memory_margin_fraction": 0.1, "fits": None}, "2.0 GiB less 10% margin", "lower --memory-margin to 0.02"),
        ({"fits": 0.9999}, "2.0 GiB less what a chance of 0.9999 to fit takes", "lower --fits to 0.8"),
    ],
)
def test_too_little_memory(asked: dict[str, object], words: str, relaxed: str) -> None:
    problem = _small_devices(_problem(forbids=("optimizer_offload", "activation_offload")), 2)
    constraints = problem.constraints.model_copy(update=asked)
    problem = problem.model_copy(update={"constraints": constraints})
    refusal = _refusal(problem)
    assert refusal.binding == "device memory"
    assert relaxed in refusal.relaxations
    assert _all_help(problem, refusal) > 0
    assert words in str(refusal)


def test_a_batch_that_the_pinned_replicas_do_not_divide() -> None:
    problem = _problem(batch=6, pins={"dp": 4})
    refusal = _refusal(problem)
    assert refusal.binding == "pins"
    assert "dp divides the batch (6); dp may be 1, 2" in refusal.what
    assert refusal.relaxations[:2] == ("pin dp=1 or 2", "drop the pin on dp")
    assert _all_help(problem, refusal) > 0


def test_heads_that_the_pinned_degree_does_not_divide() -> None:
    problem = _problem(devices=6, batch=6, pins={"tp": 3})
    refusal = _refusal(problem)
    assert refusal.binding == "pins"
    assert "tp divides the devices (6), the attention heads" in refusal.what
    assert _all_help(problem, refusal) > 0


def test_more_stages_than_layers() -> None:
    problem = _problem(devices=16, batch=16, pins={"pp": 16})
    refusal = _refusal(problem)
    assert refusal.binding == "pins"
    assert "at most the chunks that the layers make (10)" in refusal.what
    assert _all_help(problem, refusal) > 0


def test_a_degree_that_does_not_divide_the_devices() -> None:
    problem = _problem(pins={"tp": 3})
    refusal = _refusal(problem)
    assert refusal.binding == "pins"
    assert refusal.what == (
        "tp=3 leaves no legal strategy on 8 devices: tp divides the devices (8), the attention heads and the widths of"
        " the layers; tp may be 1, 2, 4, 8"
    )
    assert refusal.relaxations[:2] == ("pin tp=2, 4 or 8", "drop the pin on tp")
    assert _all_help(problem, refusal) > 0


def test_more_expert_parallel_ranks_than_experts_are_told_by_the_experts() -> None:
    problem = _problem(devices=16, batch=16, pins={"ep": 16}).model_copy(update={"model": load_model("mixtral-8x7b")})
    refusal = _refusal(problem)
    assert refusal.binding == "pins"
    assert refusal.what.startswith("ep=16 leaves no legal strategy on 16 devices: ep divides the experts (8)")
    assert refusal.what.endswith("ep may be 1, 2, 4, 8")
    assert refusal.relaxations[-1] == "drop the pin on ep"


def test_experts_of_a_model_without_any_are_no_silent_pin() -> None:
    for name in ("ep", "etp"):
        refusal = _refusal(_problem(pins={name: 2}))
        assert "the model has no experts" in refusal.what
        assert f"{name} may be 1" in refusal.what


def test_of_several_pins_those_that_exclude_each_other_are_named() -> None:
    problem = _problem(pins={"micro_batch_size": 1, "dp": 8, "sp": True})
    refusal = _refusal(problem)
    assert refusal.what.startswith("dp=8 and sp=true together leave no legal strategy on 8 devices")
    assert "dp may be 1, 2, 4, or sp may be false with the other pins as they are" in refusal.what
    assert _all_help(problem, refusal) > 0


def test_too_few_microbatches_for_the_pinned_schedule() -> None:
    problem = _problem(batch=2, pins={"schedule": "zbv"})
    refusal = _refusal(problem)
    assert refusal.binding != "device memory"
    assert _all_help(problem, refusal) > 0


def test_everything_forbidden_leaves_no_way_to_use_the_devices() -> None:
    problem = _problem(forbids=("tp", "cp", "pp", "dp"))
    refusal = _refusal(problem)
    assert refusal.binding == "pins"
    assert {f"allow {name}" for name in ("tp", "cp", "dp")} <= set(refusal.relaxations)
    assert _all_help(problem, refusal) > 0


def test_host_memory_binds_when_only_offload_would_fit() -> None:
    problem = _problem(devices=1, batch=1, forbids=("activation_offload",))
    roomy = _small_devices(problem, 4.0, host_gib=100)
    assert find_plan(roomy, QUICK).strategy["optimizer_offload"]
    refusal = _refusal(_small_devices(problem, 4.0, host_gib=1))
    assert refusal.binding == "host memory"


def test_forbidding_a_field_with_a_neutral_value_leaves_the_neutral_value() -> None:
    """Not being interleaved is group 0, not group 1."""
    plan = find_plan(_problem(forbids=("microbatch_group_size", "vpp", "schedule", "zero_stage")), QUICK)
    assert plan.strategy["microbatch_group_size"] == 0
    assert (plan.strategy["vpp"], plan.strategy["schedule"], plan.strategy["zero_stage"]) == (1, "1f1b", 0)


def test_unknown_and_contradictory_pins_are_named_together() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        find_plan(_problem(pins={"recompte": "full", "pp": 2, "schedule": "2f2b"}, forbids=("pp",)), QUICK)
    for words in ("'recompte' (did you mean recompute?)", "schedule=2f2b", "pp is pinned to 2 and forbidden"):
        assert words in str(caught.value)


def test_every_named_relaxation_gives_a_plan() -> None:
    """Over random problems without a plan, of every kind."""
    named, bindings = 0, set()
    for seed in range(60):
        problem = random_problem(seed, SMALL)
        try:
            find_plan(problem, QUICK)
        except NoFeasiblePlan as refusal:
            bindings.add(refusal.binding)
            named += _all_help(problem, refusal)
    assert named > 10
    assert len(bindings) >= 3
