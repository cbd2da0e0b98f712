"""The tensors of a layer that MaxText keeps for the backward pass: ``remat_policy`` and the tensors' places.

MaxText wraps every layer in ``jax.checkpoint`` (layers/nnx_decoders.py:1159), whatever the policy: what no policy
names is computed again, norms and activation functions always.  So recomputing nothing cannot be said
(``remat_policy: none`` means full), and the nearest is to keep the outputs of all matrix products.

``custom`` gives each named tensor a place: on the device, on the host (``offload``), or nowhere (``remat``).  The
names are in configs/base.yml:450-476.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.backends.rules.foreign_names import foreign_names
from planner.strategy.strategy import RecomputeModule, RecomputePolicy

PROJECTIONS = foreign_names(
    """
    query_proj key_proj value_proj kv_proj qkv_proj query_wa_proj kv_wa_proj mla_q mla_kv out_proj
    """
)
MODULE_TENSORS: Mapping[RecomputeModule, tuple[str, ...]] = {
    "attention_core": ("context",),
    "mlp": ("mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo"),
    "moe": ("moe_x_sorted", "moe_mlpwi_0", "moe_mlpwi_1", "moe_mlpwo"),
}
"""Planner module -> tensors that stay when it is not recomputed; without ``moe_x_sorted`` rows are dispatched twice."""
LAYER_INPUT = "decoder_layer_input"
TENSORS = (LAYER_INPUT, *PROJECTIONS, *(name for names in MODULE_TENSORS.values() for name in names))

_ORDER: tuple[RecomputeModule, ...] = ("attention_core", "norm", "activation", "mlp", "moe")


def canonical_modules(
    modules: tuple[RecomputeModule, ...], *, dense_layers: bool, expert_layers: bool
) -> tuple[RecomputeModule, ...]:
    """The least that MaxText recomputes beside ``modules``: norms, and activation functions outside mlp and moe.

    Modules that no layer has are dropped.
    """
    wanted = set(modules) - ({"mlp"} if not dense_layers else set()) - ({"moe"} if not expert_layers else set())
    wanted.add("norm")
    wanted = wanted - {"activation"} if wanted & {"mlp", "moe"} else wanted | {"activation"}
    return tuple(module for module in _ORDER if module in wanted)


def remat_keys(policy: RecomputePolicy, modules: tuple[RecomputeModule, ...], *, offload: bool) -> dict[str, str]:
    """Config keys; ``offload`` sends to the host what would stay on the device."""
    kept = "offload" if offload else "device"
    if policy == "full":
        return {"remat_policy": "custom", LAYER_INPUT: kept} if offload else {"remat_policy": "full"}
    keys = {"remat_policy": "custom", LAYER_INPUT: kept} | dict.fromkeys(PROJECTIONS, kept)
    for module, tensors in MODULE_TENSORS.items():
        keys |= dict.fromkeys(tensors, "remat" if module in modules else kept)
    return keys


def read_remat(config: Mapping[str, Any]) -> tuple[RecomputePolicy, tuple[RecomputeModule, ...], bool] | None:
    """Policy, modules and whether kept tensors go to the host; None where the keys say something else."""
    for offload in (False, True):
        for policy, modules in _choices():
            said = remat_keys(policy, modules, offload=offload)
            if all(_place(config, key) == said.get(key, _DEFAULTS[key]) for key in _DEFAULTS):
                return policy, modules, offload
    return None


_DEFAULTS: dict[str, str] = {"remat_policy": "full", LAYER_INPUT: "device"} | {
    name: "remat" for name in TENSORS if name != LAYER_INPUT
}


def _place(config: Mapping[str, Any], key: str) -> Any:
    return config.get(key, _DEFAULTS[key])


def _choices() -> list[tuple[RecomputePolicy, tuple[RecomputeModule, ...]]]:
    """Every form that ``canonical_modules`` can have, and full."""
    found: list[tuple[RecomputePolicy, tuple[RecomputeModule, ...]]] = [("full", ())]
    for core in ((), ("attention_core",)):
        for parts in (("norm", "activation"), ("norm", "mlp"), ("norm", "moe"), ("norm", "mlp", "moe")):
            found.append(("selective", (*core, *parts)))
    return found
