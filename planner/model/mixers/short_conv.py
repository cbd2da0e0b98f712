"""Gated short convolution (LFM2): ``C * conv(B * x)`` between two projections, as wide as the layer.

Forward FLOPs of one token: two projections (``3 h`` out, ``h`` out) and ``2 * kernel * h``.  Kept: B, C, x, the
convolution's input and output.  Channels are split over tp; cp needs the ``kernel - 1`` tokens before its part.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import ChannelMixer
from planner.model.mixers.parts import projection
from planner.model.operator import Operator


class ShortConvSpec(ChannelMixer):
    """Gated short convolution of one layer kind; ``width`` is the layer's."""

    kind: Literal["short_conv"] = "short_conv"
    width: int = Field(gt=0)
    conv_kernel: int = Field(gt=0)
    bias: bool = False

    @property
    def num_heads(self) -> int:
        """Channels, which tensor parallelism splits."""
        return self.width

    @property
    def num_kv_heads(self) -> int:
        """As ``num_heads``."""
        return self.width


def short_conv_operators(mixer: ShortConvSpec, hidden_size: int, *, input_from: str) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    width, bias = mixer.width, mixer.bias
    convolution = Operator(
        name="convolution",
        op_class="convolution",
        module="attention",
        shard="features",
        parameters=width * (mixer.conv_kernel + (1 if bias else 0)),
        flops=2.0 * mixer.conv_kernel * width,
        # Two products around it: reads B, x, C, writes and reads B x and the convolved tensor.
        read_width=5 * width,
        write_width=3 * width,
        saved_width=5 * width,
        saved_shard="features",
        saved_from="in_projection",
    )
    return (
        projection("in_projection", hidden_size, 3 * width, "column", bias=bias, saved_from=input_from),
        convolution,
        projection("output_projection", width, hidden_size, "row", bias=bias, saved_from="convolution"),
    )
