"""The emitted arguments describe the same model: our own importer of Megatron scripts reads them back."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.megatron.space import TABLE
from planner.backends.rules.rule import rule_input
from planner.model.builtin import builtin_model, builtin_models
from planner.model.megatron_args import megatron_job
from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.validation import FindingsInvalid
from tests.emitter import emitter
from tests.megatron_models import REFUSED_MODELS, UNREAD_MODELS
from tests.plan_factory import make_plan

emit = emitter("megatron")


def described(model: ModelSpec) -> dict[str, Any]:
    """What flags can say of a model; the vocabulary is padded by whoever reads them."""
    data = model.model_dump(exclude={"name", "family", "vocab_size", "max_sequence_length", "activation_function"})
    if data["mtp"]:
        del data["mtp"]["count_in_parameters"]
    for kind in data["layer_kinds"]:
        if kind["moe"] and kind["moe"]["expert_bias"]:
            # Megatron's bias switch covers routers and shared experts too (core/transformer/moe/router.py:64).
            kind["moe"] |= {"router_bias": True, "shared_bias": False}
    return data


@pytest.mark.parametrize("name", builtin_models())
def test_arguments_describe_the_model_or_it_is_refused(name: str) -> None:
    model = builtin_model(name)
    workload = Workload(global_batch_size=1, sequence_length=min(model.max_sequence_length, 4096))
    plan = make_plan(Strategy(), model, workload=workload)
    found = {finding.rule for finding in TABLE.violations(rule_input(plan))}
    if name in REFUSED_MODELS:
        assert f"megatron.{REFUSED_MODELS[name]}" in found
        return
    assert found == set()
    files = emit(plan, "torchrun").files
    if name in UNREAD_MODELS:
        with pytest.raises(FindingsInvalid, match=UNREAD_MODELS[name]):
            megatron_job(files["megatron.args"] + files["data.args"], name, "megatron.args")
        return
    imported = megatron_job(files["megatron.args"] + files["data.args"], name, "megatron.args").model
    assert described(imported) == described(model)
