"""Operators that several token mixers share: projections and short convolutions."""

from __future__ import annotations

from planner.model.operator import Operator, Shard


def projection(
    name: str,
    in_features: int,
    out_features: int,
    shard: Shard,
    *,
    bias: bool = False,
    saved_from: str = "",
    keeps_input: bool = True,
    saved_shard: Shard | None = None,
    parameters: int | None = None,
) -> Operator:
    """One matmul of a mixer; without ``keeps_input`` another operator keeps the same tensor.

    ``parameters``: where it is not ``in * out`` (+ bias).  A row-parallel bias is on every tensor-parallel rank.
    """
    bias_size = out_features if bias else 0
    weights = in_features * out_features if parameters is None else parameters
    where: Shard = saved_shard or ("heads" if shard == "row" else "sequence")
    return Operator(
        name=name,
        op_class="matmul",
        module="attention",
        shard=shard,
        parameters=weights + bias_size,
        replicated_parameters={"replicated": weights + bias_size, "row": bias_size}.get(shard, 0),
        in_features=in_features,
        out_features=out_features,
        read_width=in_features,
        write_width=out_features,
        saved_width=in_features if keeps_input else 0,
        saved_shard=where if keeps_input else None,
        saved_from=saved_from if keeps_input else "",
    )


def short_convolution(width: int, kernel: int, *, bias: bool, saved_from: str) -> Operator:
    """Causal depthwise convolution over ``kernel`` tokens with its activation, fused: reads and writes ``width``.

    ``2 * kernel * width`` FLOPs a token; channels are split with the heads.  Its backward needs its input only.
    """
    return Operator(
        name="convolution",
        op_class="convolution",
        module="attention",
        shard="heads",
        parameters=width * (kernel + (1 if bias else 0)),
        flops=2.0 * kernel * width,
        read_width=width,
        write_width=width,
        saved_width=width,
        saved_shard="heads",
        saved_from=saved_from,
    )


def gated_norm(width: int, weights: int, *, replicated: bool, saved_from: str) -> Operator:
    """Norm of a mixer's output times a gate, fused: keeps both inputs, ``width`` features each.

    ``weights`` learned scalars; ``replicated``: one vector for all heads, not split by tensor parallelism.
    """
    return Operator(
        name="gated_norm",
        op_class="norm",
        module="attention",
        shard="heads",
        parameters=weights,
        replicated_parameters=weights if replicated else 0,
        read_width=2 * width,
        write_width=width,
        saved_width=2 * width,
        saved_shard="heads",
        saved_from=saved_from,
    )
