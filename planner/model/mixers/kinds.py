"""Words and defaults that all token mixers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from profiles.document import Document

NormKind = Literal["rms", "layer", "layer_no_bias", "none_affine"]
Modality = Literal["vision", "audio"]
FED: Mapping[Modality, str] = {"vision": "images", "audio": "audio"}
"""What samples hold for the tower of a modality, in words."""


class OtherMixer(Document):
    """Base of the token mixers that are no softmax attention: what attention's own words read as there.

    Each kind says how many heads tensor parallelism splits (``num_heads``) and how many groups their inputs share
    (``num_kv_heads``), so that rules about heads hold for every mixer.
    """

    sliding_window: ClassVar[int | None] = None
    causal: ClassVar[bool] = True
    sinks: ClassVar[bool] = False
    qkv_bias: ClassVar[bool] = False
    output_bias: ClassVar[bool] = False
    qk_norm: ClassVar[Literal["none", "per_head", "full_width"]] = "none"
    qk_norm_bias: ClassVar[bool] = False
    q_lora_rank: ClassVar[int | None] = None
    kv_lora_rank: ClassVar[int | None] = None
    qk_rope_head_dim: ClassVar[int | None] = None
    logit_softcap: ClassVar[float | None] = None
    output_gate: ClassVar[bool] = False
    indexer: ClassVar[None] = None


class ChannelMixer(OtherMixer):
    """Base of mixers along time in which each channel stands for itself: heads of one channel."""

    head_dim: ClassVar[int] = 1
    v_head_dim: ClassVar[int] = 1


class EqualHeads(OtherMixer):
    """Base of the mixers whose queries, keys and values have as many heads of one width."""

    num_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)

    @property
    def num_kv_heads(self) -> int:
        """As many as query heads."""
        return self.num_heads

    @property
    def v_head_dim(self) -> int:
        """As ``head_dim``."""
        return self.head_dim
