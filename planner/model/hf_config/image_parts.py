"""Parameters and forward FLOPs of what stands around the layers of a vision tower, one image at a time.

A projector is a sum of few pieces: linear maps, norms, tables, convolutions, cross-attention.  Two FLOPs a
multiply-add; norms, tables and biases count parameters alone, as in ``planner.model.flops``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Learned scalars, and forward FLOPs of one image."""

    parameters: int = 0
    flops: int = 0

    def __add__(self, other: Part) -> Part:
        return Part(self.parameters + other.parameters, self.flops + other.flops)

    def times(self, count: int) -> Part:
        """As many of it, each with weights of its own."""
        return Part(count * self.parameters, count * self.flops)

    def idle(self) -> Part:
        """Its weights alone: an image does not run through it."""
        return Part(self.parameters)


def linear(inputs: int, outputs: int, positions: int, *, bias: bool = True) -> Part:
    """A matrix that each of ``positions`` meets."""
    return Part(inputs * outputs + (outputs if bias else 0), 2 * inputs * outputs * positions)


def norm(width: int, *, bias: bool = True) -> Part:
    """A norm with scale and, as layer norm has, shift."""
    return Part(2 * width if bias else width)


def table(rows: int, width: int) -> Part:
    """Learned rows: positions, queries, a codebook."""
    return Part(rows * width)


def convolution(inputs: int, outputs: int, window: int, positions: int, *, bias: bool = False) -> Part:
    """A convolution over ``window`` places (the product of the kernel's sides) with ``positions`` outputs."""
    return Part(inputs * outputs * window + (outputs if bias else 0), 2 * inputs * outputs * window * positions)


def scores(queries: int, keys: int, width: int) -> Part:
    """The two matmuls of attention between ``queries`` and ``keys`` over heads that are ``width`` wide together."""
    return Part(0, 4 * queries * keys * width)


def attention(
    width: int, queries: int, keys: int, *, key_width: int | None = None, bias: bool = True, windows: int = 1
) -> Part:
    """Projections and core of one attention; queries and keys are those of one of ``windows``."""
    source = width if key_width is None else key_width
    ends = linear(width, width, windows * queries, bias=bias).times(2)
    sources = linear(source, width, windows * keys, bias=bias).times(2)
    return ends + sources + Part(0, windows * scores(queries, keys, width).flops)


def mlp(inputs: int, inner: int, outputs: int, positions: int, *, gated: bool = False, bias: bool = True) -> Part:
    """Two matrices, or three with a gate."""
    first = linear(inputs, inner, positions, bias=bias).times(2 if gated else 1)
    return first + linear(inner, outputs, positions, bias=bias)


def total(parts: Sequence[Part]) -> Part:
    """The sum of some parts."""
    return Part(sum(part.parameters for part in parts), sum(part.flops for part in parts))
