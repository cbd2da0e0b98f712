"""Channel mixers of a layer: a gated or plain MLP, and experts that a router chooses among."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from profiles.document import Document


class MlpSpec(Document):
    """Dense feed-forward network of one layer kind."""

    intermediate_size: int = Field(gt=0)
    gated: bool = Field(description="two input projections (SwiGLU, GeGLU) instead of one")
    bias: bool = False


class MoeSpec(Document):
    """Mixture of experts of one layer kind: router, routed experts, shared experts."""

    num_experts: int = Field(gt=0)
    top_k: int = Field(gt=0)
    expert_intermediate_size: int = Field(gt=0)
    gated: bool = True
    expert_bias: bool = False
    router_bias: bool = Field(default=False, description="learned bias (or score correction) of one value an expert")
    shared_intermediate_size: int = Field(default=0, ge=0, description="total width of the shared experts")
    shared_bias: bool = False
    shared_gate: bool = Field(default=False, description="a learned scalar gate on the shared experts (qwen2_moe)")
    score_function: Literal["softmax", "sigmoid"] = "softmax"
    num_groups: int = Field(default=1, gt=0, description="expert groups of group-limited routing; 1 = none")
    top_k_groups: int = Field(default=1, gt=0, description="groups that one token may reach")
    latent_size: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda size: size is None,
        description="width of the routed experts' input and output where it is not the layer's (nemotron_h)",
    )
    latent_bias: bool = Field(
        default=False, exclude_if=lambda on: not on, description="biases of the two projections of latent experts"
    )
    router_input_size: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda size: size is None,
        description="width of what the router scores, where a part of the layer makes it (zaya)",
    )
    zero_experts: int = Field(
        default=0,
        ge=0,
        exclude_if=lambda count: not count,
        description="experts that give their input back: the router chooses among them too (longcat_flash)",
    )
    image_intermediate_size: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda size: size is None,
        description="width of as many experts, with a router, for tokens of images, not of text (ernie4_5_vl)",
    )
    unused_up_experts: int = Field(
        default=0,
        ge=0,
        exclude_if=lambda count: not count,
        description="experts whose input projections the reference class allocates and never uses (longcat_flash)",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.top_k > self.num_experts:
            raise ValueError(f"top_k = {self.top_k} exceeds num_experts = {self.num_experts}")
        return self
