"""Lightning attention (arXiv 2401.04658): linear attention with a fixed decay a head, in blocks of ``C`` tokens.

Forward FLOPs of one token and head of ``d`` features::

    (Q K^T * decay) V     4 C d      whole blocks
    K^T V, Q (K^T V)      4 d d

Queries, keys and values pass an activation first; a norm over all heads and a sigmoid gate follow.  Kept: the activated
q, k and v and their input, the output, the gate.  Heads are split over tp; the norm needs a sum over tp.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import EqualHeads
from planner.model.mixers.parts import gated_norm, projection
from planner.model.operator import Operator


class LightningSpec(EqualHeads):
    """Lightning attention of one layer kind."""

    kind: Literal["lightning"] = "lightning"
    block_size: int = Field(default=256, gt=0, description="tokens of one block")


def lightning_operators(mixer: LightningSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    width = mixer.num_heads * mixer.head_dim
    activation = Operator(
        name="qkv_activation",
        op_class="gate",
        module="attention",
        shard="heads",
        read_width=3 * width,
        write_width=3 * width,
        saved_width=3 * width,
        saved_shard="heads",
        saved_from="qkv",
    )
    scan = Operator(
        name="recurrence",
        op_class="chunk_scan",
        module="attention",
        shard="heads",
        flops=4.0 * width * (mixer.block_size + mixer.head_dim),
        kernel="lightning",
        chunk=mixer.block_size,
        read_width=3 * width,
        write_width=width,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_heads,
        qk_dim=mixer.head_dim,
        v_dim=mixer.head_dim,
        saved_width=3 * width,
        saved_shard="heads",
        saved_from="qkv_activation",
    )
    return (
        projection("qkv", hidden_size, 3 * width, "column", saved_from=input_from),
        projection("output_gate", hidden_size, width, "column", keeps_input=False),
        activation,
        scan,
        gated_norm(width, width, replicated=False, saved_from="recurrence"),
        projection("output_projection", width, hidden_size, "row", saved_from="gated_norm"),
    )
