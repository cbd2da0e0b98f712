"""No token mixer: a layer that is an MLP or a mixture of experts only (nemotron_h)."""

from __future__ import annotations

from typing import ClassVar, Literal

from planner.model.mixers.kinds import OtherMixer


class AbsentMixerSpec(OtherMixer):
    """A layer without token mixer: no parameters, no operators, nothing to split."""

    kind: Literal["none"] = "none"
    num_heads: ClassVar[int] = 0
    num_kv_heads: ClassVar[int] = 0
    head_dim: ClassVar[int] = 0
    v_head_dim: ClassVar[int] = 0
