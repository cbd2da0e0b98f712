"""How one family's decoder stands in its config: the words of the tables in ``hf_config.tables``.

An entry names the config keys that give sizes and switches, and says what the family's layers are made of.  Defaults
and aliases of keys are those of the ``transformers`` class (``class_defaults.json``), so an entry holds no numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.mixers.mamba import Mamba2Spec
from planner.model.spec import LayerSpec, NormKind, NormPlacement, PartSpec, PositionKind, ResidualSpec, TokenMixer

Switch = bool | str
"""A fixed truth value, or the name of the config key that holds it."""
WindowRule = Callable[[ClassKeys, int], list[int | None]]
"""Sliding window of every layer, None where it sees all tokens."""
MixerRule = Callable[[ClassKeys, int, int], list[TokenMixer | None]]
"""Token mixer of every layer of a number of layers and a hidden width, None where it is the family's attention."""
LayersRule = Callable[[ClassKeys, int, list[LayerSpec]], list[LayerSpec]]
"""The layers as the family has them, from keys, hidden width and the layers that the entry gives."""
EndsRule = Callable[[ClassKeys, int], tuple[tuple[PartSpec, ...], tuple[PartSpec, ...]]]
"""What runs before the first layer and after the last, of a hidden width."""
RoutingRule = Callable[[ClassKeys, int], list[bool]]
"""Which layers are mixtures of experts."""


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture of experts of a family, and which layers hold it."""

    layers: RoutingRule
    count: str = "num_experts"
    top_k: str = "num_experts_per_tok"
    only_top_k: int | None = None
    """The only number of chosen experts that the class computes."""
    width: str | Callable[[ClassKeys], int] = "moe_intermediate_size"
    shared: str | int = 0
    """Shared experts, each as wide as a routed one: a number or a key."""
    shared_width: str | None = None
    """Key of the width of all shared experts together; it goes before ``shared``."""
    shared_gate: bool = False
    shared_bias: Switch = False
    expert_bias: Switch = False
    router_bias: Switch = False
    """A learned value an expert, be it a bias or the correction of the scores."""
    score_function: Literal["softmax", "sigmoid"] = "softmax"
    groups: bool = False
    """Whether ``n_group`` and ``topk_group`` limit the routing."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """One family's decoder: names of keys first, then the structure of a layer, then the two ends."""

    hidden: str = "hidden_size"
    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    kv_heads: str | None = "num_key_value_heads"
    """None: as many as query heads."""
    head_dim: str | None = "head_dim"
    """None: the hidden width over the heads."""
    divided_heads: bool = False
    """Whether heads must divide the hidden width where ``head_dim`` is not given."""
    even_heads: bool = False
    """Whether the class needs heads that fill the hidden width."""
    intermediate: str = "intermediate_size"
    """A key whose value is null reads as four times the hidden width."""
    positions: str | None = "max_position_embeddings"
    """None: the class has no such key."""
    activation: str = "hidden_act"
    epsilon: str | None = "rms_norm_eps"

    latent: bool = False
    """Multi-head latent attention with the keys of DeepSeek."""
    qkv_bias: Switch = "attention_bias"
    output_bias: Switch = "attention_bias"
    qk_norm: Literal["none", "per_head", "full_width"] = "none"
    qk_norm_key: Switch = True
    qk_norm_bias: bool = False
    sinks: Switch = False
    softcap: str | None = None
    windows: WindowRule | None = None
    output_gate: bool = False
    """Whether a gate as wide as the queries, projected with them, multiplies the output of attention."""
    mixers: MixerRule | None = None
    """Layers with another token mixer."""
    mixer_norm_placement: NormPlacement | None = None
    """Where these layers' norms stand, if elsewhere."""
    beside: Callable[[ClassKeys, int], Mamba2Spec] | None = None
    """A second mixer beside the attention of every layer."""
    indexer: bool = False
    """Whether an indexer chooses the tokens that latent attention sees."""
    indexer_reads_latent: bool = True
    """Whether its queries come from the latent of the queries, not from the layer's input."""
    unindexed: tuple[str, ...] = ()
    """Words of ``layer_types`` for layers that have none."""
    without_mlp: bool = False
    """Layers of a token mixer only, with one norm."""
    gated: bool = True
    mlp_bias: Switch = False
    dense_width: Callable[[ClassKeys], int] | None = None
    """Width of the dense layers where it is computed."""
    dense_intermediate: str | None = None
    """Key of the dense layers' width where it is not ``intermediate``."""
    experts: Experts | None = None
    norm: NormKind = "rms"
    num_norms: int = 2
    four_norms: Switch = False
    """Whether norms stand behind the branches too."""
    norm_placement: NormPlacement = "pre"
    parallel: Switch = False
    """Attention and MLP side by side, from one norm."""

    position: PositionKind = "rope"
    learned_positions: bool = False
    extra_positions: int = 0
    """Rows of the position table before position 0."""
    rotary_dim: str | None = None
    """Key of the rotated width of a head where it is given in features."""
    final_norm: bool = True
    ties: bool = True
    """Whether ``tie_word_embeddings`` ties anything: a class without tied keys keeps its head."""
    head_bias: Switch = False
    shaped: LayersRule | None = None
    """What layers have that the words above do not say."""
    ends: EndsRule | None = None
    residual: Callable[[ClassKeys], ResidualSpec] | None = None
    embedding_norm: bool = False
    predicted_layers: str | None = None
    """Key of the number of multi-token-prediction modules."""
    without_parameters: tuple[str, ...] = ()
    """Keys of parts that hold no parameters."""
    refused: tuple[tuple[str, str], ...] = ()
    """Keys that must be off, each with the mechanism that it switches on."""
