"""State-space mixers: Mamba-2 (SSD, arXiv 2405.21060) and Mamba-1 (arXiv 2312.00752).

Mamba-2, chunks of ``C`` tokens (mamba_ssm ``mamba_chunk_scan_combined``), with ``P`` features a head, a state of ``N``
and ``G`` groups that share B and C.  Forward FLOPs of one token::

    C B^T                         2 C N   a group     whole blocks
    (L * C B^T) X                 C P     a head      the kernel stops at the causal bound: half of 2 C P on average
    states of the chunks B^T X    2 N P   a head
    reading the states            2 N P   a head

Its backward makes convolution and scan again from the projected input (``mamba_split_conv1d_scan_combined``), so that
the layer keeps its input, the projection's output, the scan's output and the input of the output projection.

Mamba-1 runs one recurrence of ``N`` states a channel without tensor cores, ``9 N`` FLOPs a token and channel
(exponential of the step, decay, input, state, output: state-spaces/mamba's own count), and projects its step sizes, B
and C from the convolved channels.

How they are cut: heads (Mamba-2; groups too) or channels (Mamba-1) over tp; cp only by trading the sequence for heads.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.mixers.kinds import ChannelMixer, OtherMixer
from planner.model.mixers.parts import gated_norm, projection, short_convolution
from planner.model.operator import Operator

SELECTIVE_FLOPS = 9.0
"""FLOPs of one state of one channel and token in Mamba-1's scan."""


class Mamba2Spec(OtherMixer):
    """Mamba-2: ``num_heads`` heads of ``head_dim`` channels, ``num_groups`` groups of B and C."""

    kind: Literal["mamba2"] = "mamba2"
    num_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    state_size: int = Field(gt=0)
    num_groups: int = Field(gt=0)
    conv_kernel: int = Field(default=4, gt=0)
    chunk_size: int = Field(default=256, gt=0)
    conv_bias: bool = True
    projection_bias: bool = False
    output_projection_bias: bool = False
    gate_norm: bool = Field(default=True, description="whether the gated output is normed (weights as wide)")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_heads % self.num_groups:
            raise ValueError(f"num_groups = {self.num_groups} must divide num_heads = {self.num_heads}")
        return self

    @property
    def num_kv_heads(self) -> int:
        """Groups that share B and C, split with the heads."""
        return self.num_groups

    @property
    def v_head_dim(self) -> int:
        """Channels of a head."""
        return self.head_dim


class Mamba1Spec(ChannelMixer):
    """Mamba-1: ``inner_size`` channels with ``state_size`` states each; step sizes of rank ``time_step_rank``."""

    kind: Literal["mamba1"] = "mamba1"
    inner_size: int = Field(gt=0)
    state_size: int = Field(gt=0)
    time_step_rank: int = Field(gt=0)
    conv_kernel: int = Field(default=4, gt=0)
    conv_bias: bool = True
    projection_bias: bool = False
    inner_norms: bool = Field(default=False, description="learned norms of step sizes, B and C (jamba)")

    @property
    def num_heads(self) -> int:
        """Channels, which tensor parallelism splits."""
        return self.inner_size

    @property
    def num_kv_heads(self) -> int:
        """As ``num_heads``: nothing is shared between channels."""
        return self.inner_size


def mamba2_operators(mixer: Mamba2Spec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    inner, shared = mixer.num_heads * mixer.head_dim, 2 * mixer.num_groups * mixer.state_size
    bias = mixer.projection_bias
    each = mixer.chunk_size * mixer.head_dim + 4 * mixer.state_size * mixer.head_dim
    flops = mixer.num_heads * each + 2 * mixer.num_groups * mixer.chunk_size * mixer.state_size
    scan = Operator(
        name="recurrence",
        op_class="chunk_scan",
        module="attention",
        shard="heads",
        parameters=3 * mixer.num_heads,  # decay, bias of the step size, skip
        flops=float(flops),
        kernel="mamba2",
        chunk=mixer.chunk_size,
        read_width=inner + shared + mixer.num_heads,
        write_width=inner,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_groups,
        qk_dim=mixer.state_size,
        v_dim=mixer.head_dim,
        saved_width=mixer.num_heads,  # step sizes; the rest is made again from the convolution's input
        saved_shard="heads",
        saved_from="in_projection",
    )
    out_features = 2 * inner + shared + mixer.num_heads
    return (
        projection("in_projection", hidden_size, out_features, "column", bias=bias, saved_from=input_from),
        short_convolution(inner + shared, mixer.conv_kernel, bias=mixer.conv_bias, saved_from="in_projection"),
        scan,
        gated_norm(inner, inner if mixer.gate_norm else 0, replicated=False, saved_from="recurrence"),
        projection(
            "output_projection",
            inner,
            hidden_size,
            "row",
            bias=mixer.output_projection_bias,
            saved_from="gated_norm",
        ),
    )


def mamba1_operators(mixer: Mamba1Spec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection.

    The small projection of step sizes, B and C sums over channels: row-parallel under tp.
    """
    inner, states, rank = mixer.inner_size, mixer.state_size, mixer.time_step_rank
    small = rank + 2 * states
    norms = Operator(
        name="state_norms",
        op_class="norm",
        module="attention",
        shard="replicated",
        parameters=small,
        replicated_parameters=small,
        read_width=small,
        write_width=small,
        saved_width=small,
        saved_shard="sequence",
        saved_from="state_projection",
    )
    scan = Operator(
        name="recurrence",
        op_class="selective_scan",
        module="attention",
        shard="features",
        parameters=inner * (states + 1),  # decay of each state, skip of each channel
        flops=SELECTIVE_FLOPS * inner * states,
        read_width=3 * inner + 2 * states,
        write_width=inner,
        num_heads=inner,
        num_kv_heads=inner,
        qk_dim=1,
        v_dim=1,
        saved_width=2 * inner + 2 * states,  # step sizes and gate; the convolved channels are made again
        saved_shard="features",
        saved_from="time_step_projection",
    )
    bias = mixer.projection_bias
    return (
        projection("in_projection", hidden_size, 2 * inner, "column", bias=bias, saved_from=input_from),
        short_convolution(inner, mixer.conv_kernel, bias=mixer.conv_bias, saved_from="in_projection"),
        projection("state_projection", inner, small, "row", keeps_input=False),
        *((norms,) if mixer.inner_norms else ()),
        projection("time_step_projection", rank, inner, "column", bias=True, saved_from="state_projection"),
        scan,
        projection("output_projection", inner, hidden_size, "row", bias=bias, saved_from="recurrence"),
    )
