"""The kept activations that recomputing a part of the layer frees, and what has to run again.

Two mechanisms exist (Megatron-Core ``--recompute-granularity selective --recompute-modules``):

* *checkpoint* (``attention_core``, ``mlp``, ``moe``): the region's inputs stay, everything kept *inside* it goes.  Its
  output stays where an operator outside keeps it.
* *output discarding* (``norm``, ``activation``, ``mla_up_proj``): the region's output goes too, and is made again just
  before the first backward operator that reads it.  Norm means the hidden-wide norms, not those inside attention.

``mla_up_proj``: the up-projections and the rotation of latent attention.  Queries, keys and values go, the latents that
they are made of stay (megatron-core 0.19.2 core/transformer/multi_latent_attention.py:972-977, 454-457).
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.operator import Operator
from planner.strategy.strategy import RecomputeModule

_DISCARDING: frozenset[RecomputeModule] = frozenset({"norm", "activation", "mla_up_proj"})
_LATENT_UP = frozenset({"q_up", "q_projection", "kv_up", "rope"})
"""What makes queries, keys and values of the latents; without a query latent, of the layer's input."""


def region(operators: Sequence[Operator], module: RecomputeModule) -> frozenset[str]:
    """Names of the operators that run again in the backward pass."""
    if module == "norm":
        return frozenset(op.name for op in operators if op.op_class == "norm" and op.module == "norm")
    if module == "activation":
        return frozenset(op.name for op in operators if op.op_class == "activation")
    if module == "mla_up_proj":
        latent = any(op.name == "kv_up" for op in operators)
        return frozenset(op.name for op in operators if op.name in _LATENT_UP) if latent else frozenset()
    if module == "moe":
        return frozenset(op.name for op in operators if op.module in ("moe", "shared_expert"))
    return frozenset(op.name for op in operators if op.module == module)


def freed_operators(operators: Sequence[Operator], modules: Sequence[RecomputeModule]) -> frozenset[str]:
    """Names of the operators whose ``saved_width`` is no longer kept when ``modules`` are recomputed.

    Recomputing ``attention_core`` frees nothing under flash attention: its inputs stay for the recomputation and its
    output stays for the projection; only the s x s scores would go, and those are never written.
    """
    freed: set[str] = set()
    for module in modules:
        inside = region(operators, module)
        discards_output = module in _DISCARDING
        for op in operators:
            if op.saved_width and op.saved_from in inside and (discards_output or op.name in inside):
                freed.add(op.name)
    return frozenset(freed)
