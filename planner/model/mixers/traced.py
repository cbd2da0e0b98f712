"""A layer whose operators were recorded from its module, because no table describes its family.

What stands here is what ``planner.model.traced`` measured: products with their rows, depth and width, attention with
its heads, and groups of point-wise operations with what they read and write.  Sizes are of one token; ``further_rows``
are rows of a product that do not depend on how many tokens there are.

Nothing is proven about how such a layer may be split: every rank of tensor or context parallelism would run all of it,
so that neither is allowed (``planner.backends.rules.legality``).  It is recomputed whole or not at all.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import OtherMixer
from planner.model.operator import Module, Operator, Shard
from profiles.document import Document

TracedClass = Literal[
    "matmul",
    "grouped_matmul",
    "attention",
    "convolution",
    "norm",
    "activation",
    "rope",
    "residual",
    "gate",
    "embedding",
]
_SHARDS: dict[str, Shard] = {"matmul": "replicated", "grouped_matmul": "expert_column", "attention": "heads"}


class TracedOperator(Document):
    """One operator of a traced layer or of an end of the model; every size of one token."""

    name: str = Field(min_length=1, description="unique within the layer: where the module runs it")
    op_class: TracedClass
    parameters: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    in_features: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    out_features: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    rows: float = Field(default=1.0, ge=0, exclude_if=lambda rows: rows == 1.0, description="rows a token")
    further_rows: int = Field(
        default=0, ge=0, exclude_if=lambda rows: rows == 0, description="rows of a sequence beside those of its tokens"
    )
    read_width: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0, description="elements read")
    write_width: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0, description="elements written")
    flops: float = Field(default=0.0, ge=0, exclude_if=lambda flops: flops == 0, description="of a convolution")
    num_heads: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    num_kv_heads: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    qk_dim: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    v_dim: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    window: int | None = Field(default=None, gt=0, exclude_if=lambda size: size is None)
    causal: bool = Field(default=True, exclude_if=lambda on: on)
    num_experts: int = Field(default=0, ge=0, exclude_if=lambda size: size == 0)
    saved_width: float = Field(
        default=0.0, ge=0, exclude_if=lambda size: size == 0, description="elements kept for the backward pass"
    )
    kept_scores: int = Field(
        default=0, ge=0, exclude_if=lambda size: size == 0, description="elements kept for each pair of tokens"
    )


class TracedSpec(OtherMixer):
    """A whole layer as it was recorded; the layer has neither norms nor an MLP beside it."""

    kind: Literal["traced"] = "traced"
    operators: tuple[TracedOperator, ...] = Field(min_length=1)

    @property
    def num_heads(self) -> int:
        """None that tensor parallelism could split."""
        return 0

    @property
    def num_kv_heads(self) -> int:
        """As ``num_heads``."""
        return 0

    @property
    def head_dim(self) -> int:
        """None."""
        return 0

    @property
    def v_head_dim(self) -> int:
        """None."""
        return 0


def traced_operator(traced: TracedOperator, module: Module | None = None) -> Operator:
    """The operator of one recorded entry; ``module``: where it counts, if not as its class says."""
    core = traced.op_class == "attention"
    own: Module = "attention_core" if core else "norm" if traced.op_class == "norm" else "traced"
    return Operator(
        name=traced.name,
        op_class=traced.op_class,
        module=module or own,
        shard=_SHARDS.get(traced.op_class, "sequence"),
        parameters=traced.parameters,
        replicated_parameters=0 if traced.op_class == "grouped_matmul" else traced.parameters,
        in_features=traced.in_features,
        out_features=traced.out_features,
        tokens_per_token=traced.rows,
        further_rows=traced.further_rows,
        read_width=traced.read_width,
        write_width=traced.write_width,
        flops=traced.flops,
        num_heads=traced.num_heads,
        num_kv_heads=traced.num_kv_heads,
        qk_dim=traced.qk_dim,
        v_dim=traced.v_dim,
        window=traced.window,
        causal=traced.causal,
        num_experts=traced.num_experts,
        saved_width=traced.saved_width,
        saved_shard="sequence" if traced.saved_width else None,
        kept_scores=traced.kept_scores,
    )
