"""Random llama and mixtral configs have the parameters of their ``transformers`` class."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.hf_config import model_from_hf_config
from planner.model.megatron_args import megatron_job
from planner.model.parameters import active_parameters, parameters_by_module, total_parameters
from profiles.errors import DocumentInvalid

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    heads = draw(st.integers(1, 8))
    kv_heads = draw(st.sampled_from([divisor for divisor in range(1, heads + 1) if heads % divisor == 0]))
    config: dict[str, Any] = {
        "hidden_size": heads * 2 * draw(st.integers(1, 16)),
        "intermediate_size": draw(st.integers(1, 300)),
        "num_hidden_layers": draw(st.integers(1, 4)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": draw(st.integers(3, 500)),
        "tie_word_embeddings": draw(st.booleans()),
    }
    if draw(st.booleans()):
        config["head_dim"] = 2 * draw(st.integers(1, 40))
    return config


def meta_parameters(model_type: str, config: dict[str, Any]) -> int:
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(model_type, **config))
    return sum(int(parameter.numel()) for parameter in model.parameters())


@settings(max_examples=30)
@given(config=configs(), attention_bias=st.booleans(), mlp_bias=st.booleans())
def test_random_llama(config: dict[str, Any], attention_bias: bool, mlp_bias: bool) -> None:
    config |= {"attention_bias": attention_bias, "mlp_bias": mlp_bias}
    spec = model_from_hf_config({"model_type": "llama", **config}, "x", "f")
    assert total_parameters(spec) == meta_parameters("llama", config)
    assert active_parameters(spec) == total_parameters(spec)


@settings(max_examples=30)
@given(config=configs(), experts=st.integers(1, 9), data=st.data())
def test_random_mixtral(config: dict[str, Any], experts: int, data: st.DataObject) -> None:
    top_k = data.draw(st.integers(1, experts))
    config |= {"num_local_experts": experts, "num_experts_per_tok": top_k}
    spec = model_from_hf_config({"model_type": "mixtral", **config}, "x", "f")
    assert total_parameters(spec) == meta_parameters("mixtral", config)
    one_expert = 3 * config["hidden_size"] * config["intermediate_size"]
    idle = config["num_hidden_layers"] * (experts - top_k) * one_expert
    assert active_parameters(spec) == total_parameters(spec) - idle
    assert sum(parameters_by_module(spec).values()) == total_parameters(spec)


_KEYS = [
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "head_dim",
    "layer_types",
    "text_config",
    "vision_config",
    "num_experts",
    "n_group",
    "rope_parameters",
    "mlp_only_layers",
]
_ANY = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers()))


@settings(max_examples=200)
@given(
    model_type=st.sampled_from(["llama", "deepseek_v3", "gpt_neox", "qwen2_moe", "gemma3", "llava", "opt", "mpt"]),
    values=st.dictionaries(
        st.sampled_from(_KEYS),
        _ANY,
        max_size=5,
    ),
)
def test_any_config_gives_a_model_or_one_clear_error(model_type: str, values: dict[str, Any]) -> None:
    try:
        spec = model_from_hf_config({"model_type": model_type, **values}, "x", "f")
    except DocumentInvalid as caught:
        clear = bool(caught.what and caught.where and caught.hint)
    else:
        clear = total_parameters(spec) > 0
    assert clear


@settings(max_examples=200)
@given(text=st.text(alphabet="-abc =$(){}[]'\"\\\n#;&|0123456789@:+*/", max_size=80))
def test_any_script_gives_a_job_or_one_clear_error(text: str) -> None:
    base = "--num-layers 2 --hidden-size 8 --num-attention-heads 2 --max-position-embeddings 8 --vocab-size 9 "
    for script in (text, base + text, text + "\n" + base):
        try:
            job = megatron_job(script, "x", "run.sh")
        except DocumentInvalid as caught:
            clear = bool(caught.what and caught.where)
        else:
            clear = total_parameters(job.model) > 0
        assert clear
