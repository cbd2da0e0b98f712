"""A trace counts what a table counts: the same parameters, FLOPs and kept elements, layer kind by layer kind.

The tables are judged by the classes and torch's own counter (``test_parameters_against_transformers``,
``test_flops_against_torch``), so that they judge the tracer.  All families are traced in one process of their own: the
tracer puts itself in the place of torch's attention there.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

if any(find_spec(name) is None for name in ("torch", "transformers")):
    pytest.skip("torch and transformers are not installed", allow_module_level=True)

from benchmarks.model_types import in_a_process
from benchmarks.traced_models import compared
from planner.model.hf_config import model_from_hf_config
from planner.model.parameters import active_parameters, total_parameters
from planner.model.traced.worker import Untraceable, traced
from profiles.errors import DocumentInvalid

pytestmark = pytest.mark.slow
EXACT = ("llama", "qwen3", "gemma3_text", "gpt2")
"""Rotary, query and key norms, windows and sandwiched norms, learned positions with biases: nothing may differ."""
EAGER_EXPERTS = ("qwen3_moe", "deepseek_v3")
"""The classes weight experts' outputs one by one and keep them; tables describe the fused way."""


def _all() -> dict[str, Any]:
    return {name: compared(name) for name in (*EXACT, *EAGER_EXPERTS)}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return in_a_process(_all, limit_s=1200.0)


@pytest.mark.parametrize("name", EXACT)
def test_a_plain_decoder_is_traced_exactly(name: str, found: dict[str, Any]) -> None:
    one = found[name]
    assert (one["attention"], one["parameters_off"]) == ("sdpa", 0)
    assert one["flops"] == one["flops_4096"] == 1.0
    assert one["kept"] == pytest.approx(1.0, abs=0.005)
    assert one["step"] == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("name", EAGER_EXPERTS)
def test_experts_are_traced_with_what_their_class_keeps(name: str, found: dict[str, Any]) -> None:
    one = found[name]
    assert one["parameters_off"] == 0
    assert one["flops"] == pytest.approx(1.0, abs=0.005)
    assert 1.0 < one["kept"] < 1.5


def _why(config: dict[str, Any]) -> dict[str, str]:
    try:
        traced(config)
    except Untraceable as error:
        return {"reason": str(error)}
    return {}


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [("blt", "does not run on the meta device"), ("musicgen", "two sequences"), ("pi0", "token ids alone")],
)
def test_what_cannot_be_traced_says_why(model_type: str, reason: str) -> None:
    assert reason in in_a_process(_why, {"model_type": model_type}, limit_s=600.0)["reason"]


def test_a_type_without_a_table_is_read_through_the_process_of_its_own() -> None:
    """An audio tower that no table describes: its weights are counted, and no token of text meets them."""
    model = model_from_hf_config({"model_type": "nemo_speechlm"}, "m", "config.json")
    assert model.traced is not None
    assert total_parameters(model) > 2 * active_parameters(model)


def test_a_type_that_transformers_does_not_have_is_refused_as_before() -> None:
    with pytest.raises(DocumentInvalid, match="not supported"):
        model_from_hf_config({"model_type": "of_next_year"}, "m", "config.json")
