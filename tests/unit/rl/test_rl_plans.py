"""The search over divisions, its bound, and what is asked wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planner.cli.commands.rl.flags import question_data
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.operations.question import cluster_of, model_of
from planner.operations.rl import RL_ESTIMATE, RlEstimateRequest
from planner.operations.service import opened_service
from planner.question.sequences import Sequences
from planner.rl.plan import RlPlan
from planner.rl.problem import RlConstraints
from planner.rl.search.divisions import Division, divisions, least_work
from planner.rl.search.find import find_rl_plan
from planner.rl.search.played import played, rollout_groups
from planner.rl.words import ENGINE_MEMORY
from tests.unit.rl.rl_questions import even_engine, rl_problem

EVERY = RlConstraints(synchrony=("synchronous", "one_step_off", "asynchronous"), trainers=("megatron",))


@pytest.fixture(scope="module")
def plan() -> RlPlan:
    return find_rl_plan(rl_problem(constraints=EVERY, staleness=0.5), even_engine)


def test_no_division_is_faster_than_the_plan(plan: RlPlan) -> None:
    problem, work = plan.problem, least_work(plan.problem)
    steps = {}
    for division in divisions(problem):
        try:
            steps[division] = played(problem, division, even_engine).prediction.step_s
        except NoFeasiblePlan:
            continue
        assert steps[division] >= work.step_s(division)
    assert plan.best.prediction.step_s == pytest.approx(min(steps.values()))
    assert plan.lower_bound_s <= min(steps.values())
    assert plan.num_evaluated <= plan.num_divisions == len(list(divisions(problem)))


def test_a_plan_is_read_back(plan: RlPlan) -> None:
    assert RlPlan.model_validate_json(plan.model_dump_json()) == plan
    assert plan.best.deployment.num_devices == 8


def test_divisions_are_whole_nodes() -> None:
    found = list(divisions(rl_problem(cluster=cluster_of("dgx-h100", 32), constraints=EVERY)))
    split = [each for each in found if each.placement == "split"]
    assert {each.rollout_devices for each in split} == {8, 16, 24}
    assert all(each.trainer_devices + each.rollout_devices == 32 for each in split)
    assert [each for each in found if each.placement == "colocated"] == [Division("colocated", "synchronous", 32, 32)]


def test_longer_responses_take_longer() -> None:
    division = Division("colocated", "synchronous", 8, 8)
    steps = []
    for mean in (200, 400, 800):
        responses = Sequences(kind="padded", mean=mean)
        steps.append(played(rl_problem(response_tokens=responses), division, even_engine).prediction.step_s)
    assert steps == sorted(steps)


def test_a_critic_and_a_reference_take_their_time() -> None:
    division = Division("colocated", "synchronous", 8, 8)
    plain, ppo = (
        played(rl_problem(algorithm=name), division, even_engine).prediction.stages_s for name in ("dapo", "ppo")
    )
    assert "reference_log_prob" not in plain
    assert {"values", "critic_update", "reference_log_prob"} <= set(ppo)


ESTIMATE = {
    **{"model": "llama-3.2-1b", "cluster": "dgx-h100", "devices": 8, "prompts": 8, "placement": "split"},
    **{"prompt_tokens": {"kind": "padded", "mean": 9}, "response_tokens": {"kind": "padded", "mean": 9}},
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rollout_devices": 8}, "so that 0 train"),
        ({"rollout_devices": 9}, "9 of 8 devices generate"),
        ({"devices": 1}, "0 of 1 devices generate"),
        ({"rollout_tp": 3}, "do not divide 4 devices of the engines"),
        ({"rollout_devices": 3, "rollout_tp": 2}, "do not divide 3 devices"),
        ({"placement": "colocated", "synchrony_asked": "one_step_off"}, "in turns"),
        ({"placement": "colocated", "rollout_devices": 4}, "on all 8 devices"),
    ],
)
def test_a_deployment_that_cannot_be_is_told(changes: dict[str, Any], said: str) -> None:
    asked = RlEstimateRequest.model_validate({**ESTIMATE, **changes})
    with pytest.raises(DocumentInvalid, match=said), opened_service(None) as service:
        service.call(RL_ESTIMATE, asked)


def test_constraints_that_are_a_word_are_told(tmp_path: Path) -> None:
    file = tmp_path / "question.yaml"
    file.write_text("model: llama-3.2-1b\ncluster: dgx-h100\nconstraints: colocated\n", "utf-8")
    with pytest.raises(DocumentInvalid, match="constraints are named"):
        question_data(file)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mini_batches": 3}, "does not divide"),
        ({"staleness": 0.5}, "asynchronous"),
        ({"algorithm": "grpo", "critic": "actor"}, "only ppo"),
        ({"reward": {"kind": "rule", "latency_s": 1.0}}, "rule takes no time"),
        ({"reward": {"kind": "model"}}, "has a model"),
        ({"constraints": {"rollout_pins": {"dp": 2}}}, "not dp"),
        ({"constraints": {"rollout_pins": {"pp": 2}}}, "no pipeline"),
        ({"constraints": {"placements": ["colocated"], "synchrony": ["asynchronous"]}}, "colocated"),
    ],
)
def test_what_cannot_be_is_told(changes: dict[str, Any], said: str) -> None:
    whole = rl_problem()
    if changes.get("critic"):
        changes = {**changes, "critic": whole.actor}
    with pytest.raises(ValidationError, match=said):
        rl_problem(**changes)


def test_engines_are_played_with_the_memory_that_launches_give_them() -> None:
    problem = rl_problem(constraints=EVERY)
    for division in divisions(problem):
        for group in rollout_groups(problem, division):
            assert group.settings.memory_fraction == ENGINE_MEMORY[division.placement]


def test_roles_that_do_not_fit_together_leave_for_the_host() -> None:
    """Actor and critic of 8B on four devices: each fits alone, both states and an activation peak do not."""
    division = Division("split", "one_step_off", 4, 4)
    large = {"actor": model_of("llama-3.1-8b"), "cluster": cluster_of("dgx-h100", 8), "constraints": EVERY}
    ppo, grpo = (played(rl_problem(algorithm=name, **large), division, even_engine) for name in ("ppo", "grpo"))
    small = played(rl_problem(), division, even_engine)
    assert [each.deployment.offload for each in (ppo, grpo, small)] == ["states", "reference", "nothing"]
    assert ppo.prediction.stages_s["switch"] > grpo.prediction.stages_s["switch"] > 0
    assert "switch" not in small.prediction.stages_s
