"""A layer of transformers keeps what the traits of DeepSpeed and Accelerate say: counted, on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from planner.backends.hugging_face.physics import TRANSFORMERS
from planner.model.hf_config.registry import model_from_hf_config
from planner.model.operators import layer_operators
from planner.predict.layer_keys import LayerKeys
from planner.predict.memory.activations import saved_bytes
from planner.predict.memory.framework_memory import with_framework_kept
from planner.predict.physics.physics import TUNED, Physics
from planner.strategy.strategy import Relief

if TYPE_CHECKING:
    from torch import Tensor

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 1024,
}
BATCH, SEQUENCE = 2, 256


def counted_bytes() -> int:
    """Bytes of distinct tensors that one layer keeps for its backward pass, its own weights aside."""
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = transformers.LlamaConfig(**{name: size for name, size in SIZES.items() if name != "model_type"})
    config._attn_implementation = "sdpa"
    layer = LlamaDecoderLayer(config, 0).to(torch.bfloat16)
    hidden = torch.randn(BATCH, SEQUENCE, 512, dtype=torch.bfloat16, requires_grad=True)
    positions = torch.arange(SEQUENCE)[None].expand(BATCH, -1)
    tables = LlamaRotaryEmbedding(config)(hidden, positions)
    weights = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer(hidden, attention_mask=None, position_ids=positions, position_embeddings=tables)
    assert (output[0] if isinstance(output, tuple) else output).requires_grad
    return sum(kept.values())


def modelled_bytes(traits: Physics) -> float:
    model = model_from_hf_config(dict(SIZES), "test", "test")
    one, off = np.ones(1), np.zeros(1)
    keys = LayerKeys(
        tp=one, sp=off, cp=one, ring=off, ep=one, etp=one, micro_batch_size=BATCH * one, overlap_tp=off,
        overlap_ep=off, sequence_length=SEQUENCE,
    )  # fmt: skip
    operators = with_framework_kept(layer_operators(model, 0), traits)
    return float(saved_bytes(operators, keys, Relief(), 512, traits)[0])


def test_a_llama_layer_keeps_what_the_traits_say() -> None:
    counted = counted_bytes()
    assert modelled_bytes(TRANSFORMERS) == pytest.approx(counted, rel=0.02)
    assert modelled_bytes(TUNED) < 0.75 * counted
