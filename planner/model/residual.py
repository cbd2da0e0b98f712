"""Residual streams between layers: one (plain), or ``n`` that every block reads from and writes to.

Hyper-connections (arXiv 2409.19606; with a doubly stochastic mixing matrix: DeepSeek-V4, "manifold-constrained") keep
``n`` streams as wide as the layer.  Before each block, from all streams of a token, a linear map gives the weights that
collapse them into the block's input, those that spread its output, and (``mixes``) the ``n x n`` matrix that mixes the
streams.  Forward FLOPs of one token and block, ``h`` features::

    weights of the map    2 n h rows        rows = n (collapse) + n (spread) + n^2 (mix, where there is one)
    collapse, spread      point-wise (2 n h each)
    mix                   2 n^2 h           (where there is one)

Everything that passes between layers is ``n`` times as wide: activations kept at the borders of recomputed layers, what
a pipeline stage sends to the next, the first layer's input (a copy a stream).  Kept for the backward pass of a block:
the streams (``n h``), the collapsed input (the norm's own), the block's output (``h``), the weights in fp32.  The
Sinkhorn iterations work on ``n x n`` numbers a token: left out.

``altup`` (arXiv 2301.13310, gemma3n): the streams are mixed before a layer, one goes through it, and its change
corrects all of them behind the layer; the coefficients are parts of the layer.

How it is cut: weights are replicated over tp (below 0.1 % of a layer); under sequence parallelism each rank mixes its
own tokens.  Pipelines carry all streams.  Recomputed with the whole layer only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.norm_operators import residual_operator
from planner.model.operator import Operator
from profiles.document import Document


class ResidualSpec(Document):
    """Hyper-connections, or alternating updates, with ``streams`` residual streams."""

    kind: Literal["hyper", "altup"] = "hyper"
    streams: int = Field(gt=1)
    mixes: bool = Field(default=True, description="whether a matrix mixes the streams at every block")
    learned_scales: int = Field(default=0, ge=0, description="learned scalars on the groups of weights, a block")
    bias: bool = Field(default=True, description="a learned constant for every weight")
    rank: int | None = Field(
        default=None,
        gt=0,
        exclude_if=lambda rank: rank is None,
        description="a weight for every feature of the collapse, through a pair as narrow; then a norm comes before",
    )

    @property
    def rows(self) -> int:
        """Weights of one token and block."""
        return self.streams * (2 + (self.streams if self.mixes else 0))


def read_streams(residual: ResidualSpec, block: str, hidden_size: int, saved_from: str) -> tuple[Operator, ...]:
    """The weights of one block and the collapse of the streams into its input."""
    if residual.kind == "altup":
        return (_mix(residual, block, hidden_size, kept=True),) if block == "attention" else ()
    wide, rows, rank = residual.streams * hidden_size, residual.rows, residual.rank
    if rank is not None:  # down and up again, a spread of one weight a stream, the norm
        rows = 2 * rank + residual.streams
    learned = wide * rows + (residual.rows if residual.bias else 0) + residual.learned_scales + (wide if rank else 0)
    weights = Operator(
        name=f"{block}_stream_weights",
        op_class="matmul",
        module="residual",
        shard="replicated",
        parameters=learned,
        replicated_parameters=learned,
        in_features=wide,
        out_features=rows,
        read_width=wide,
        write_width=rows,
        saved_width=wide + 2 * rows,
        saved_shard="sequence",
        saved_from=saved_from,
    )
    collapse = Operator(
        name=f"{block}_stream_collapse",
        op_class="residual",
        module="residual",
        shard="sequence",
        read_width=wide,
        write_width=hidden_size,
    )
    return (weights, collapse)


def write_streams(residual: ResidualSpec, block: str, hidden_size: int, saved_from: str) -> tuple[Operator, ...]:
    """The mix of the streams and the spread of the block's output over them."""
    wide = residual.streams * hidden_size
    if residual.kind == "altup" and block == "attention":
        return (residual_operator(f"{block}_residual", hidden_size),)
    spread = Operator(
        name=f"{block}_residual",
        op_class="residual",
        module="residual",
        shard="sequence",
        read_width=wide + hidden_size,
        write_width=wide,
        saved_width=hidden_size,
        saved_shard="sequence",
        saved_from=saved_from,
    )
    mixes = residual.mixes and residual.kind == "hyper"
    return (_mix(residual, block, hidden_size), spread) if mixes else (spread,)


def _mix(residual: ResidualSpec, block: str, hidden_size: int, *, kept: bool = False) -> Operator:
    """``n x n`` products of all streams; ``kept``: nothing else keeps the streams."""
    wide = residual.streams * hidden_size
    return Operator(
        name=f"{block}_stream_mix",
        op_class="matmul",
        module="residual",
        shard="replicated",
        in_features=residual.streams,
        out_features=residual.streams,
        tokens_per_token=float(hidden_size),
        read_width=wide,
        write_width=wide,
        saved_width=wide if kept else 0,
        saved_shard="sequence" if kept else None,
    )
