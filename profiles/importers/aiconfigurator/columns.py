"""The meaning of AIConfigurator's columns: one mapping for each kind of table, chosen by its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["forward", "unknown"]


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of operator table.

    ``needs``: columns that identify it.  ``shape``: our size name -> their column.  ``time``: column, seconds a unit.
    """

    operator: str
    needs: frozenset[str]
    shape: dict[str, str]
    dtype: str = ""
    time: tuple[str, float] = ("latency", 1e-3)
    causal: bool | None = None


_TOKENS = {
    "num_tokens": "num_tokens",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "inter_size",
    "experts_per_token": "topk",
    "num_experts": "num_experts",
    "tensor_parallel": "moe_tp_size",
    "expert_parallel": "moe_ep_size",
}
_ATTENTION = {
    "batch_size": "batch_size",
    "num_heads": "num_heads",
    "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "window": "window_size",
}
_MODULE = {
    "batch_size": "batch_size",
    "num_heads": "num_heads",
    "tensor_parallel": "tp_size",
    "expert_parallel": "moe_ep_size",
    "num_tokens": "num_tokens",
    "hidden_size": "hidden_size",
    "head_dim": "head_dim",
    "m": "m",
    "k": "k",
    "num_experts": "num_experts",
    "experts_per_token": "topk",
}
_DEEPEP = {
    "num_tokens": "num_token",
    "hidden_size": "hidden_size",
    "experts_per_token": "num_topk",
    "num_experts": "num_experts",
}

# The first kind whose columns all exist is taken; ``op_name`` decides between prefill and decode attention.
KINDS: tuple[TableKind, ...] = (
    TableKind(
        "matmul", frozenset({"gemm_dtype", "m", "n", "k", "latency"}), {"m": "m", "n": "n", "k": "k"}, "gemm_dtype"
    ),
    TableKind(
        "attention",
        frozenset({"attn_dtype", "isl", "num_heads", "num_key_value_heads", "head_dim", "latency"}),
        _ATTENTION,
        "attn_dtype",
        causal=True,
    ),
    TableKind(
        "attention",
        frozenset({"attn_dtype", "isl", "num_heads", "head_dim", "latency"}),
        {
            "batch_size": "batch_size",
            "num_heads": "num_heads",
            "num_kv_heads": "num_heads",
            "head_dim": "head_dim",
        },
        "attn_dtype",
        causal=False,
    ),
    TableKind("moe", frozenset({"moe_dtype", "num_tokens", "inter_size", "topk", "latency"}), _TOKENS, "moe_dtype"),
    TableKind(
        "expert_dispatch",
        frozenset({"comm_backend", "phase", "ep_size", "num_tokens", "transmit_us", "latency"}),
        {
            "num_tokens": "num_tokens",
            "hidden_size": "hidden_size",
            "experts_per_token": "topk",
            "num_experts": "num_experts",
            "expert_parallel": "ep_size",
        },
        "comm_dtype",
        ("latency", 1e-6),
    ),
    TableKind(
        "expert_dispatch", frozenset({"num_token", "dispatch_avg_t_us"}), _DEEPEP, time=("dispatch_avg_t_us", 1e-6)
    ),
    TableKind("expert_combine", frozenset({"num_token", "combine_avg_t_us"}), _DEEPEP, time=("combine_avg_t_us", 1e-6)),
    TableKind(
        "expert_dispatch",
        frozenset({"num_token", "dispatch_transmit_us"}),
        _DEEPEP,
        time=("dispatch_transmit_us", 1e-6),
    ),
    TableKind(
        "expert_combine", frozenset({"num_token", "combine_transmit_us"}), _DEEPEP, time=("combine_transmit_us", 1e-6)
    ),
    TableKind(
        "module",
        frozenset({"quant_type", "num_token", "avg_ms"}),
        {"num_tokens": "num_token", "hidden_size": "hidden_size", "ffn_hidden_size": "intermediate_size"},
        "quant_type",
        ("avg_ms", 1e-3),
    ),
    TableKind("elementwise", frozenset({"quant_dtype", "m", "k", "latency"}), {"m": "m", "k": "k"}, "quant_dtype"),
    TableKind("module", frozenset({"op_name", "latency"}), _MODULE),
)

TOGETHER: tuple[frozenset[str], ...] = (
    frozenset({"dispatch_avg_t_us", "combine_avg_t_us"}),
    frozenset({"dispatch_transmit_us", "combine_transmit_us"}),
)
"""Tables that hold two operators a row: both kinds are read."""

DTYPES = ("attn_dtype", "mla_dtype", "bmm_dtype", "moe_dtype", "quant_dtype")
"""Where a kind names no column of its own: the first of these that the table has is the number format."""

COLLECTIVE_DTYPES = ("nccl_dtype", "allreduce_dtype")
NOT_DETAIL = frozenset(
    {"framework", "version", "device", "op_name", "latency", "avg_ms", "message_size", "num_gpus", *COLLECTIVE_DTYPES}
)
"""Stored elsewhere; every other column that the shape does not use goes into ``detail``."""


def kinds_of(names: set[str]) -> list[TableKind]:
    """The kinds of operator that a table with these columns holds; empty = unknown table."""
    found = [kind for kind in KINDS if kind.needs <= names]
    if not found:
        return []
    if any(pair <= names for pair in TOGETHER):
        return [kind for kind in found if kind.operator.startswith("expert_")]
    return found[:1]
