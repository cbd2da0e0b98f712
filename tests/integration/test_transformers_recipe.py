"""The real transformers classes take the recipe in ``model_config.json`` and compute with it."""

from __future__ import annotations

from typing import Any

import pytest

from planner.backends.deepspeed.model_config import model_config
from planner.backends.deepspeed.write import LOSS_CLASSES, routing_assumptions
from planner.backends.rules.training_recipe import routing, stretch
from planner.model.builtin import builtin_model, builtin_models

pytest.importorskip("transformers", reason="the classes live in transformers")
pytestmark = pytest.mark.slow

FAMILIES = ["deepseek_v2", "deepseek_v3", "kimi_k2", "qwen3_moe", "mixtral", "glm4_moe"]
ROUTED = [name for name in builtin_models() if builtin_model(name).family in FAMILIES]
STRETCHED = [name for name in builtin_models() if stretch(builtin_model(name))]
SMALL = {"num_hidden_layers": 2, "hidden_size": 384, "intermediate_size": 64, "vocab_size": 128}


def built(name: str) -> Any:
    """The emitted config with fewer and thinner layers, as a model without weights."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    values = model_config(builtin_model(name)) | SMALL
    if "moe_intermediate_size" in values:
        values["moe_intermediate_size"] = 32
    if "first_k_dense_replace" in values:
        values["first_k_dense_replace"] = 0
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("name", ROUTED)
def test_the_class_routes_as_published(name: str) -> None:
    model, recipe = built(name), routing(builtin_model(name))
    assert recipe is not None
    seen: dict[str, set[Any]] = {"norm_topk_prob": set(), "routed_scaling_factor": set(), "topk_method": set()}
    for module in model.modules():
        for attribute, values in seen.items():
            if hasattr(module, attribute):
                values.add(getattr(module, attribute))
    # mixtral's class always divides by the sum, DeepSeek-V2's never does.
    assert seen["norm_topk_prob"] <= {recipe.normalizes}
    assert bool(seen["norm_topk_prob"]) is (builtin_model(name).family not in {"mixtral", "deepseek_v2"})
    assert seen["routed_scaling_factor"] <= {recipe.scaling_factor}
    assert bool(seen["routed_scaling_factor"]) is (builtin_model(name).family not in {"mixtral", "qwen3_moe"})
    assert seen["topk_method"] <= {"group_limited_greedy"}


@pytest.mark.parametrize("name", STRETCHED)
def test_the_class_stretches_as_published(name: str) -> None:
    """The slowest rotation is as much slower as the stretch says, the fastest is as it was."""
    from transformers import AutoConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    model = builtin_model(name)
    found = stretch(model)
    assert found is not None
    values = model_config(model)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    frequencies, _ = ROPE_INIT_FUNCTIONS[found.kind](config, "cpu")
    width = 2 * len(frequencies)
    assert float(frequencies[0]) == pytest.approx(1.0)
    plain = model.rotary_base ** -((width - 2) / width)
    assert float(frequencies[-1]) == pytest.approx(plain / found.factor, rel=1e-4)
    if found.kind == "yarn":
        assert config.rope_parameters["mscale_all_dim"] == found.mscale_all_dim


def test_the_files_say_who_balances() -> None:
    """A loss of the class has to be switched on, and the other classes have none."""
    for name in ROUTED:
        model = builtin_model(name)
        (line,) = (line for line in routing_assumptions(model) if "balances the experts" in line)
        has_loss = "router_aux_loss_coef" in model_config(model)
        assert ("output_router_logits" in line) is has_loss is (model.family in LOSS_CLASSES)
