"""What a frozen tower saves: its backward pass, what it keeps, its gradients and optimizer states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from planner.backends.hugging_face.space import SPACE as HUGGING_FACE
from planner.backends.megatron_bridge.space import KINDS as BRIDGE
from planner.backends.rules.rule import RuleInput
from planner.cli.training_flag import training_of
from planner.model.builtin import builtin_model
from planner.model.flops import vision_flops_per_image
from planner.model.parameters import towers_parameters
from planner.predict.cost.hardware import hardware_of
from planner.predict.cost.model_cost import EndTable, model_cost
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys
from planner.predict.training_flops import step_flops
from planner.question.problem import Problem, Workload
from planner.question.routing import EVEN
from planner.question.training import Training
from planner.strategy.strategy import Relief, Strategy
from tests.plan_factory import make_cluster

MODEL = builtin_model("qwen2.5-vl-7b")
FROZEN = "full,frozen_towers=vision"


def _workload(said: str | None, images: int = 4) -> Workload:
    data = {"global_batch_size": 16, "sequence_length": 4096, "images_per_sample": images}
    return Workload.model_validate({**data, "training": training_of(said)})


def _end(said: str | None, *, images: int = 4, tp: int = 1) -> EndTable:
    columns: dict[str, Any] = {name: np.ones(1) for name in KEY_COLUMNS} | {"tp": np.full(1, float(tp))}
    columns |= dict.fromkeys(("sp", "overlap_tp", "overlap_ep", "dispatcher"), np.zeros(1))
    keys = LayerKeys(**columns, sequence_length=4096, routing=EVEN)
    problem = Problem(model=MODEL, cluster=make_cluster(), workload=_workload(said, images))
    hardware = hardware_of(problem.cluster, problem.workload.precision)
    return model_cost(MODEL, problem.workload, hardware, keys, (Relief(),)).embedding


def test_a_frozen_tower_keeps_nothing_and_has_no_backward_pass() -> None:
    trained, frozen, without = _end(None), _end(FROZEN), _end(None, images=0)
    assert trained.saved_bytes[0] > without.saved_bytes[0]
    assert frozen.saved_bytes[0] == without.saved_bytes[0]
    assert frozen.backward_s[0] == pytest.approx(_end(FROZEN, images=0).backward_s[0])
    assert frozen.forward_s[0] == pytest.approx(trained.forward_s[0])
    assert trained.backward_s[0] > 1.5 * frozen.forward_s[0]


def test_its_weights_are_two_bytes_each_and_do_not_learn() -> None:
    trained, frozen, tower = _end(None), _end(FROZEN), towers_parameters(MODEL)
    assert trained.dense_parameters[0] - frozen.dense_parameters[0] == pytest.approx(tower)
    assert frozen.frozen_dense_bytes[0] == pytest.approx(2 * tower)
    assert trained.frozen_dense_bytes[0] == 0


def test_tensor_parallelism_reduces_it_forward_alone() -> None:
    trained, frozen, without = _end(None, tp=2), _end(FROZEN, tp=2), _end(None, images=0, tp=2)
    assert without.tp_s[0] < frozen.tp_s[0] < trained.tp_s[0]


def test_its_useful_flops_are_a_third() -> None:
    whole = vision_flops_per_image(MODEL) * 4 * 16
    assert step_flops(MODEL, _workload(None)) - step_flops(MODEL, _workload(FROZEN)) == pytest.approx(whole * 2 / 3)


def test_lora_freezes_every_tower() -> None:
    assert Training(kind="lora").freezes("vision")
    assert _end("lora").backward_s[0] == pytest.approx(_end("lora", images=0).backward_s[0])


@pytest.mark.parametrize(
    "said", ["lora,frozen_towers=vision", "full,frozen_towers=touch", "full,frozen_towers=audio+audio"]
)
def test_what_does_not_go_together_is_refused(said: str) -> None:
    with pytest.raises(ValidationError):
        Training.model_validate(training_of(said))


def test_only_towers_of_the_model_can_be_frozen() -> None:
    with pytest.raises(ValidationError, match="has no audio tower"):
        Problem(model=MODEL, cluster=make_cluster(), workload=_workload("full,frozen_towers=audio"))
    Problem(model=MODEL, cluster=make_cluster(), workload=_workload("full,frozen_towers=all"))
    text = MODEL.model_copy(update={"vision": None})
    with pytest.raises(ValidationError, match="has no vision or audio tower"):
        Problem(model=text, cluster=make_cluster(), workload=_workload("full,frozen_towers=all"))


def test_questions_without_frozen_towers_are_written_as_before() -> None:
    assert "frozen_towers" not in Training(kind="lora").model_dump(mode="json")
    said = Training.model_validate(training_of("pretrain,frozen_towers=vision+audio"))
    assert said.frozen_towers == ("vision", "audio")
    assert Training.model_validate(said.model_dump(mode="json")) == said
    assert "frozen towers vision+audio" in said.words()


def test_a_back_end_that_freezes_none_says_so() -> None:
    given = RuleInput(Strategy(), MODEL, _workload(FROZEN))
    assert "freezes no towers" in (BRIDGE.check(given) or "")
    rules = [rule for rule in HUGGING_FACE.rules.model_rules if rule.id == "K1"]
    assert [rule.check(given) for rule in rules] == [None]
