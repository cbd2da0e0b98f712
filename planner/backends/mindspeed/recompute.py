"""The flags of this dialect that recompute what the planner means.

Layers are built with ``--transformer-impl local``: every norm is a module of its own and every MLP has its activation
in reach, so MindSpeed's ``--recompute-norm`` and ``--recompute-activation-function`` act on all layers, dense or not
(MindSpeed core/memory/recompute).  The rest are Megatron's own ``--recompute-modules``; ``moe_act`` is the activation
of the routed experts (megatron-core 0.12.1 core/transformer/transformer_config.py:722, moe/experts.py:118).
"""

from __future__ import annotations

from planner.backends.rules.rule import mixtures, used_kinds
from planner.model.spec import ModelSpec
from planner.strategy.strategy import RecomputeModule

MODULES_BY_NAME: dict[str, RecomputeModule] = {
    "core_attn": "attention_core",
    "mlp": "mlp",
    "moe": "moe",
    "moe_act": "activation",
}
"""Names of ``--recompute-modules`` -> what the planner calls them."""
MODULES_BY_SWITCH: dict[str, RecomputeModule] = {
    "--recompute-norm": "norm",
    "--recompute-activation-function": "activation",
}
"""MindSpeed's switches -> what the planner calls it."""
ORDER: tuple[RecomputeModule, ...] = ("attention_core", "norm", "activation", "mlp", "moe")
"""The order in which the modules are read back."""


def cannot_recompute(model: ModelSpec, module: RecomputeModule) -> str | None:
    """Why nothing of this model would be recomputed; None when something would."""
    if module == "mla_up_proj":
        return "MindSpeed brings an MLA of its own, and what its modules recompute was not read"
    if module == "moe" and not mixtures(model):
        return "the model has no experts"
    if module == "mlp" and all(kind.mlp is None for kind in used_kinds(model)):
        return "the model has no dense MLP"
    return None


def module_names(model: ModelSpec, modules: tuple[RecomputeModule, ...]) -> tuple[str, ...]:
    """The words after ``--recompute-modules``."""
    names = [name for name, module in MODULES_BY_NAME.items() if module in modules and name != "moe_act"]
    return tuple(names + ["moe_act"] * ("activation" in modules and bool(mixtures(model))))


def module_switches(model: ModelSpec, modules: tuple[RecomputeModule, ...]) -> tuple[str, ...]:
    """MindSpeed's switches; the activation's acts on dense MLPs and shared experts."""
    plain = any(kind.mlp or (kind.moe and kind.moe.shared_intermediate_size) for kind in used_kinds(model))
    return tuple(
        switch
        for switch, module in MODULES_BY_SWITCH.items()
        if module in modules and (module != "activation" or plain)
    )


def in_order(modules: tuple[RecomputeModule, ...]) -> tuple[RecomputeModule, ...]:
    """The same modules in the order of ``ORDER``."""
    return tuple(module for module in ORDER if module in modules)
