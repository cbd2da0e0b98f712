"""Cross-attention of a decoder to a tower's tokens, as the token mixer of a layer (mllama, idefics).

Queries come from the text, keys and values from every token of the tower's items of the sample.  The operators are
those of an encoder-decoder's cross-attention (``planner.model.mixers.cross``), with norms of queries and keys where the
family has them, and learned gates on the layer's two branches.  Text positions are not rotated.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.cross import CrossAttentionSpec, cross_operators
from planner.model.mixers.kinds import Modality, OtherMixer
from planner.model.operator import Operator


class TowerCrossSpec(OtherMixer):
    """Cross-attention of one layer kind to the tower of a modality."""

    kind: Literal["tower_cross"] = "tower_cross"
    modality: Modality = "vision"
    num_heads: int = Field(gt=0)
    num_kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    source_width: int = Field(gt=0, description="width of the tower's tokens as the decoder reads them")
    head_norms: bool = Field(default=False, description="norms of queries and keys, over one head")
    bias: bool = Field(default=False, exclude_if=lambda on: not on, description="biases of all four projections")
    gate_parameters: int = Field(default=0, ge=0, description="learned values that scale the layer's branches")

    @property
    def v_head_dim(self) -> int:
        """As ``head_dim``."""
        return self.head_dim


def tower_cross_operators(mixer: TowerCrossSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed text and the tower's tokens to the gated output."""
    attention = CrossAttentionSpec(
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        head_dim=mixer.head_dim,
        source_width=mixer.source_width,
        query_bias=mixer.bias,
        key_bias=mixer.bias,
        value_bias=mixer.bias,
        output_bias=mixer.bias,
        qk_norm="per_head" if mixer.head_norms else "none",
    )
    operators = cross_operators(attention, hidden_size, input_from=input_from)
    gates = Operator(
        name="cross_gates",
        op_class="activation",
        module="attention",
        shard="sequence",
        parameters=mixer.gate_parameters,
        replicated_parameters=mixer.gate_parameters,
        read_width=hidden_size,
        write_width=hidden_size,
        saved_width=hidden_size,
        saved_shard="sequence",
        saved_from=operators[-1].name,
    )
    return (*operators, *((gates,) if mixer.gate_parameters else ()))
