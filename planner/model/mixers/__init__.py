"""Token mixers: what lets a token see the ones before it, one kind a file.

Each file says the mixer's sizes (a document with ``kind``), its operators (parameters, FLOPs, bytes, what is kept for
the backward pass, how each is split) and what cuts it.  ``TokenMixer`` is the union that a layer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Tag

from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.mixers.channel_recurrence import ChannelRecurrenceSpec, channel_recurrence_operators
from planner.model.mixers.compressed import CompressedAttentionSpec, compressed_operators
from planner.model.mixers.conv_module import ConvModuleSpec, conv_module_operators
from planner.model.mixers.delta_rule import DeltaRuleSpec, delta_rule_operators
from planner.model.mixers.expert_attention import ExpertAttentionSpec, expert_attention_operators
from planner.model.mixers.kinds import NormKind
from planner.model.mixers.lightning import LightningSpec, lightning_operators
from planner.model.mixers.local_global import LocalGlobalSpec, local_global_operators
from planner.model.mixers.mamba import Mamba1Spec, Mamba2Spec, mamba1_operators, mamba2_operators
from planner.model.mixers.mlstm import MlstmSpec, mlstm_operators
from planner.model.mixers.relative import RelativeAttentionSpec, relative_operators
from planner.model.mixers.short_conv import ShortConvSpec, short_conv_operators
from planner.model.mixers.softmax import AttentionSpec, attention_operators
from planner.model.mixers.tower_cross import TowerCrossSpec, tower_cross_operators
from planner.model.mixers.traced import TracedSpec, traced_operator
from planner.model.mixers.window_cross import WindowCrossSpec, window_cross_operators
from planner.model.operator import Operator

_FILES = {
    "gqa": "softmax",
    "mla": "softmax",
    "gated_delta": "delta_rule",
    "kimi_delta": "delta_rule",
    "mamba2": "mamba2",
    "mamba1": "mamba1",
    "lightning": "lightning",
    "short_conv": "short_conv",
    "compressed": "compressed",
    "conv_module": "conv_module",
    "window_cross": "window_cross",
    "expert_attention": "expert_attention",
    "mlstm": "mlstm",
    "rg_lru": "channel_recurrence",
    "wkv": "channel_recurrence",
    "tower_cross": "tower_cross",
    "local_global": "local_global",
    "relative": "relative",
    "traced": "traced",
    "none": "absent",
}


def _tag(value: Any) -> str | None:
    """Which document of the union a value is; documents written before there were other kinds may leave it out."""
    kind = value.get("kind", "gqa") if isinstance(value, dict) else getattr(value, "kind", None)
    return _FILES.get(kind) if isinstance(kind, str) else None


TokenMixer = Annotated[
    Annotated[AttentionSpec, Tag("softmax")]
    | Annotated[DeltaRuleSpec, Tag("delta_rule")]
    | Annotated[Mamba2Spec, Tag("mamba2")]
    | Annotated[Mamba1Spec, Tag("mamba1")]
    | Annotated[LightningSpec, Tag("lightning")]
    | Annotated[ShortConvSpec, Tag("short_conv")]
    | Annotated[CompressedAttentionSpec, Tag("compressed")]
    | Annotated[ConvModuleSpec, Tag("conv_module")]
    | Annotated[WindowCrossSpec, Tag("window_cross")]
    | Annotated[ExpertAttentionSpec, Tag("expert_attention")]
    | Annotated[MlstmSpec, Tag("mlstm")]
    | Annotated[ChannelRecurrenceSpec, Tag("channel_recurrence")]
    | Annotated[TowerCrossSpec, Tag("tower_cross")]
    | Annotated[LocalGlobalSpec, Tag("local_global")]
    | Annotated[RelativeAttentionSpec, Tag("relative")]
    | Annotated[TracedSpec, Tag("traced")]
    | Annotated[AbsentMixerSpec, Tag("absent")],
    Discriminator(
        _tag,
        custom_error_type="unknown_token_mixer",
        custom_error_message="kind must be one of " + ", ".join(_FILES),
    ),
]
"""The token mixer of a layer, told apart by ``kind``; without it grouped-query attention."""


_OPERATORS: Mapping[type, Callable[..., tuple[Operator, ...]]] = {
    DeltaRuleSpec: delta_rule_operators,
    Mamba2Spec: mamba2_operators,
    Mamba1Spec: mamba1_operators,
    LightningSpec: lightning_operators,
    ShortConvSpec: short_conv_operators,
    CompressedAttentionSpec: compressed_operators,
    ConvModuleSpec: conv_module_operators,
    TowerCrossSpec: tower_cross_operators,
    WindowCrossSpec: window_cross_operators,
    ExpertAttentionSpec: expert_attention_operators,
    MlstmSpec: mlstm_operators,
    ChannelRecurrenceSpec: channel_recurrence_operators,
    LocalGlobalSpec: local_global_operators,
    RelativeAttentionSpec: relative_operators,
    TracedSpec: lambda mixer, hidden_size, input_from: tuple(traced_operator(each) for each in mixer.operators),
    AbsentMixerSpec: lambda mixer, hidden_size, input_from: (),
}


def mixer_operators(
    mixer: TokenMixer, hidden_size: int, *, norm: NormKind, rope: bool, input_from: str
) -> tuple[Operator, ...]:
    """List the operators of one token mixer; ``input_from`` names the operator that makes its input."""
    if isinstance(mixer, AttentionSpec):
        return attention_operators(mixer, hidden_size, norm=norm, rope=rope, input_from=input_from)
    return _OPERATORS[type(mixer)](mixer, hidden_size, input_from=input_from)
