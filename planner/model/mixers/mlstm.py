"""mLSTM of xLSTM (arXiv 2405.04517): a matrix memory a head, with an input and a forget gate of one value each.

In chunks of ``C`` tokens, forward FLOPs of one token and head of ``k`` key and ``v`` value features::

    Q K^T, (Q K^T * decay) V      2 C (k + v)     whole blocks
    K^T V, Q (K^T V)              4 k v

A norm of each head and a sigmoid gate follow.  Kept: queries, keys, values, gates in fp32, the output and its gate.
How it is cut: heads over tp; cp only by trading the sequence for heads.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import OtherMixer
from planner.model.mixers.parts import gated_norm, projection
from planner.model.operator import Operator


class MlstmSpec(OtherMixer):
    """mLSTM of one layer kind; ``qk_size`` and ``v_size`` of all heads together."""

    kind: Literal["mlstm"] = "mlstm"
    num_heads: int = Field(gt=0)
    qk_size: int = Field(gt=0)
    v_size: int = Field(gt=0)
    chunk_size: int = Field(default=64, gt=0)

    @property
    def num_kv_heads(self) -> int:
        """As many as heads."""
        return self.num_heads

    @property
    def head_dim(self) -> int:
        """Width of a query."""
        return max(self.qk_size // self.num_heads, 1)

    @property
    def v_head_dim(self) -> int:
        """Width of a value."""
        return max(self.v_size // self.num_heads, 1)


def mlstm_operators(mixer: MlstmSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    heads, keys, values = mixer.num_heads, mixer.qk_size, mixer.v_size
    mixed = 2 * keys + values
    scan = Operator(
        name="recurrence",
        op_class="chunk_scan",
        module="attention",
        shard="heads",
        kernel="mlstm",
        chunk=mixer.chunk_size,
        flops=2.0 * mixer.chunk_size * (keys + values) + 4.0 * keys * values / heads,
        read_width=mixed + 2 * heads,
        write_width=values,
        num_heads=heads,
        num_kv_heads=heads,
        qk_dim=mixer.head_dim,
        v_dim=mixer.v_head_dim,
        saved_width=mixed + 4 * heads,
        saved_shard="heads",
        saved_from="in_projection",
    )
    return (
        projection("in_projection", hidden_size, mixed + values, "column", saved_from=input_from),
        projection("gates", hidden_size, 2 * heads, "column", bias=True, keeps_input=False),
        scan,
        gated_norm(values, values, replicated=False, saved_from="recurrence"),
        projection("output_projection", values, hidden_size, "row", saved_from="gated_norm"),
    )
