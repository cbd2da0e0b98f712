"""The module names of Megatron that recompute or offload what the planner means.

Facts (megatron-core 0.19.2): ``layernorm`` acts only where the norm is a module of its own, that is on latent attention
and in front of experts; elsewhere Transformer Engine fuses it into the next matrix (transformer_layer.py:450-520).
``moe_act`` needs grouped experts, ``mlp`` acts on dense layers, ``moe`` on expert layers, ``mla_up_proj`` on latent
attention (transformer_config.py:1789).
"""

from __future__ import annotations

from planner.backends.rules.rule import latent, mixture, used_kinds
from planner.model.spec import ModelSpec
from planner.strategy.strategy import RecomputeModule

MODULE_FLAGS: dict[RecomputeModule, str] = {
    "attention_core": "core_attn",
    "norm": "layernorm",
    "activation": "moe_act",
    "mlp": "mlp",
    "moe": "moe",
    "mla_up_proj": "mla_up_proj",
}
MODULES_BY_FLAG: dict[str, RecomputeModule] = {flag: module for module, flag in MODULE_FLAGS.items()}


def cannot_recompute(model: ModelSpec, module: RecomputeModule) -> str | None:
    """Why Megatron would not recompute ``module`` of this model; None when it would."""
    experts = mixture(model) is not None
    if module == "norm" and not experts and not latent(model):
        return "Transformer Engine fuses the norm into the next matrix, so it cannot be recomputed alone"
    if module == "activation" and not experts:
        return "only the activation of grouped experts can be recomputed alone"
    if module == "mla_up_proj" and not latent(model):
        return "the model has no latent attention (MLA)"
    if module == "moe" and not experts:
        return "the model has no experts"
    if module == "mlp" and all(kind.mlp is None for kind in used_kinds(model)):
        return "the model has no dense MLP"
    if module == "mlp" and any(kind.mlp is not None and kind.mlp.bias for kind in used_kinds(model)):
        # The MLP returns its last bias beside its output (core/transformer/mlp.py). CheckpointFunction then makes that
        # weight an output of its own, and its backward pass, which goes back through it, begins itself again.
        return "the MLP's biases come out of the recomputed part, and its backward pass never ends"
    return None


def offload_modules(model: ModelSpec, recomputed: tuple[str, ...]) -> tuple[str, ...]:
    """Megatron modules whose inputs go to the host: all that the model has and that are not recomputed anyway."""
    dropped = {
        "attention_core": {"core_attn", "attn_proj"},
        "norm": {"attn_norm", "mlp_norm"},
        "activation": {"moe_act"},
        "moe": {"expert_fc1", "moe_act"},
        "mlp": set[str](),
        "mla_up_proj": {"core_attn", "attn_proj"},  # its inputs are discarded; attn_proj goes with core_attn only
    }
    gone = set().union(*(dropped[module] for module in recomputed)) if recomputed else set()
    names = ["attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm"]
    names += ["expert_fc1", "moe_act"] if mixture(model) else []
    return tuple(name for name in names if name not in gone)
