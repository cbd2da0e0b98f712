"""Convolution module of a conformer: a gated projection, a depthwise convolution over time, a projection back.

Gulati et al., arXiv 2005.08100, figure 2.  Forward FLOPs of one frame: ``2 h 2 w`` in, ``2 k w`` along time, ``2 w h``
out, and ``2 w w`` where a projection across channels stands behind the convolution.  Kept: both halves of the gate,
the convolution's input, the norm's input and output.  It looks both ways, so no part of a clip stands alone.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import ChannelMixer
from planner.model.mixers.parts import projection
from planner.model.operator import Operator


class ConvModuleSpec(ChannelMixer):
    """Convolution module of one layer kind; ``width`` is that behind its gate."""

    kind: Literal["conv_module"] = "conv_module"
    width: int = Field(gt=0)
    conv_kernel: int = Field(gt=0)
    conv_bias: bool = False
    crosses_channels: bool = Field(default=False, description="a projection behind the convolution, as wide")
    projection_bias: bool = Field(
        default=True, exclude_if=lambda on: on, description="biases of the projections in and out"
    )
    vectors: int = Field(default=0, ge=0, description="vectors of its width in batch norm and gate")

    @property
    def num_heads(self) -> int:
        """Channels, which tensor parallelism splits."""
        return self.width

    @property
    def num_kv_heads(self) -> int:
        """As ``num_heads``."""
        return self.width


def conv_module_operators(mixer: ConvModuleSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    width, bias = mixer.width, mixer.projection_bias
    convolution = Operator(
        name="convolution",
        op_class="convolution",
        module="attention",
        shard="features",
        parameters=width * (mixer.conv_kernel + (1 if mixer.conv_bias else 0) + mixer.vectors),
        flops=2.0 * mixer.conv_kernel * width,
        # The gate reads two halves and writes one, then the convolution, then norm and activation.
        read_width=4 * width,
        write_width=3 * width,
        saved_width=4 * width,
        saved_shard="features",
        saved_from="in_projection",
    )
    across = projection("channel_projection", width, width, "replicated", bias=True, saved_from="convolution")
    return (
        projection("in_projection", hidden_size, 2 * width, "column", bias=bias, saved_from=input_from),
        convolution,
        *((across,) if mixer.crosses_channels else ()),
        projection("output_projection", width, hidden_size, "row", bias=bias, saved_from="convolution"),
    )
