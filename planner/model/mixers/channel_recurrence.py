"""Recurrences of every channel by itself: RG-LRU (Griffin, arXiv 2402.19427) and the WKV of RWKV-4 (arXiv 2305.13048).

RG-LRU, ``w`` channels in ``H`` blocks: two branches from the input, a short convolution, an input gate and a recurrence
gate by block-diagonal matrices (``2 w / H`` FLOPs a channel and gate), then ``h = a h + sqrt(1 - a^2) (i x)``: about
8 FLOPs a channel.  WKV: a weighted mean of all earlier values with a decay a channel, about 10 FLOPs a channel, keys,
values and receptances from mixtures of a token with the one before.

Both scans run without tensor cores.  Kept: inputs of the projections, the convolved channels, gates in fp32, the
scan's output.  How they are cut: channels (blocks) over tp; cp only by trading the sequence for channels.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.mixers.kinds import OtherMixer
from planner.model.mixers.parts import projection, short_convolution
from planner.model.operator import Operator

RG_LRU_FLOPS = 8.0
WKV_FLOPS = 10.0


class ChannelRecurrenceSpec(OtherMixer):
    """A recurrence of ``width`` channels; ``num_heads`` blocks of gates (RG-LRU)."""

    kind: Literal["rg_lru", "wkv"]
    width: int = Field(gt=0)
    num_heads: int = Field(default=1, gt=0)
    conv_kernel: int = Field(default=4, gt=0)

    @property
    def num_kv_heads(self) -> int:
        """As ``num_heads``."""
        return self.num_heads

    @property
    def head_dim(self) -> int:
        """Channels of a block."""
        return max(self.width // self.num_heads, 1)

    @property
    def v_head_dim(self) -> int:
        """Channels of a block."""
        return self.head_dim


def channel_recurrence_operators(
    mixer: ChannelRecurrenceSpec, hidden_size: int, *, input_from: str
) -> tuple[Operator, ...]:
    """From the normed input of the layer to the output projection."""
    if mixer.kind == "wkv":
        return _wkv(mixer, hidden_size, input_from)
    width, block = mixer.width, mixer.head_dim
    gates = Operator(
        name="recurrence_gates",
        op_class="matmul",
        module="attention",
        shard="heads",
        parameters=2 * width * (block + 1),
        in_features=block,
        out_features=block,
        tokens_per_token=2.0 * mixer.num_heads,
        read_width=width,
        write_width=2 * width,
        saved_width=width,
        saved_shard="heads",
        saved_from="convolution",
    )
    return (
        projection("in_projection", hidden_size, 2 * width, "column", bias=True, saved_from=input_from),
        short_convolution(width, mixer.conv_kernel, bias=True, saved_from="in_projection"),
        gates,
        _scan(width, width, RG_LRU_FLOPS, read=3 * width, saved=5 * width, saved_from="recurrence_gates"),
        _product(width, "recurrence"),
        projection("output_projection", width, hidden_size, "row", bias=True, saved_from="output_product"),
    )


def _wkv(mixer: ChannelRecurrenceSpec, hidden_size: int, input_from: str) -> tuple[Operator, ...]:
    width = mixer.width
    shift = Operator(
        name="token_shift",
        op_class="gate",
        module="attention",
        shard="sequence",
        parameters=3 * hidden_size,
        replicated_parameters=3 * hidden_size,
        read_width=2 * hidden_size,
        write_width=3 * hidden_size,
        saved_width=hidden_size,
        saved_shard="sequence",
        saved_from=input_from,
    )
    inputs = [
        projection(name, hidden_size, width, "column", saved_from="token_shift")
        for name in ("key", "value", "receptance")
    ]
    return (
        shift,
        *inputs,
        _scan(width, 2 * width, WKV_FLOPS, read=2 * width, saved=4 * width, saved_from="key"),
        _product(width, "recurrence"),
        projection("output_projection", width, hidden_size, "row", saved_from="output_product"),
    )


def _scan(width: int, learned: int, flops: float, *, read: int, saved: int, saved_from: str) -> Operator:
    return Operator(
        name="recurrence",
        op_class="selective_scan",
        module="attention",
        shard="heads",
        parameters=learned,
        flops=flops * width,
        read_width=read,
        write_width=width,
        num_heads=width,
        num_kv_heads=width,
        qk_dim=1,
        v_dim=1,
        saved_width=saved,
        saved_shard="heads",
        saved_from=saved_from,
    )


def _product(width: int, saved_from: str) -> Operator:
    """The scan's output times its gate."""
    return Operator(
        name="output_product",
        op_class="gate",
        module="attention",
        shard="heads",
        read_width=2 * width,
        write_width=width,
        saved_width=2 * width,
        saved_shard="heads",
        saved_from=saved_from,
    )
