"""The models that ``pretrain_gpt.py`` of Megatron-LM 0.19.2 cannot build from flags.

The planner knows them exactly; Megatron's flags have no word for them.
"""

from __future__ import annotations

from planner.backends.megatron.token_mixers import mixer_problem, way
from planner.backends.rules.forward_factors import forward_factor
from planner.backends.rules.rule import RuleInput, SpaceRule, used_kinds
from planner.model.spec import AttentionSpec, LayerSpec

_FLAGS = "megatron-core 0.19.2 training/arguments.py: no flag says it"
GELU_NAMES = frozenset({"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python"})
QUICK_GELU = "quick_gelu"
"""``--quick-geglu`` (0.19.2 training/argument_utils.py:323)."""
SILU_NAMES = frozenset({"silu", "swish"})


def _vision(given: RuleInput) -> str | None:
    towers = given.model.towers
    return f"{towers[0].called} in front of the model" if towers else None


def _norms(given: RuleInput) -> str | None:
    kinds = used_kinds(given.model)
    if len({kind.norm for kind in kinds}) > 1:
        return "different norms in different layers"
    if kinds[0].norm not in ("rms", "layer"):
        return f"norms other than RMSNorm and LayerNorm with bias ({kinds[0].norm})"
    wanted = 1 if way(given.model) == "pattern" else 2
    other = next((kind.num_norms for kind in kinds if kind.num_norms != wanted), None)
    if other is not None:
        return f"layers with {other} norms instead of {wanted}"
    return "a model without a norm after the last layer" if not given.model.final_norm else None


def _post_norm(given: RuleInput) -> str | None:
    placements = {kind.norm_placement for kind in used_kinds(given.model)}
    return "norms behind attention and MLP instead of before them" if placements != {"pre"} else None


def _residual(given: RuleInput) -> str | None:
    parallel = any(kind.parallel_residual for kind in used_kinds(given.model))
    return "attention and MLP side by side on the residual stream" if parallel else None


def _positions(given: RuleInput) -> str | None:
    model = given.model
    if model.position == "alibi":
        return "ALiBi position biases"
    if model.position == "rope" and not model.learned_positions and model.rotary_base != int(model.rotary_base):
        return "a rotary base that is not a whole number"
    return None


def _embedding(given: RuleInput) -> str | None:
    model = given.model
    if model.embedding_size not in (None, model.hidden_size):
        return "an embedding of another width than the layers"
    if model.embedding_norm:
        return "a norm after the embedding"
    return "an output head with bias" if model.head_bias else None


def _one_attention(given: RuleInput) -> str | None:
    softmax = [kind.attention for kind in used_kinds(given.model) if isinstance(kind.attention, AttentionSpec)]
    shapes = {attention.model_copy(update={"sliding_window": None}) for attention in softmax}
    windows = {window for kind in used_kinds(given.model) if (window := kind.attention.sliding_window)}
    if len(shapes) > 1:
        return "attention of different shapes in different layers"
    return f"sliding windows of different lengths {sorted(windows)}" if len(windows) > 1 else None


def _one_mlp(given: RuleInput) -> str | None:
    kinds = used_kinds(given.model)
    dense = {kind.mlp for kind in kinds if kind.mlp}
    experts = {kind.moe for kind in kinds if kind.moe}
    if len(dense) > 1 or len(experts) > 1:
        return "MLPs or experts of different sizes in different layers"
    if way(given.model) != "pattern" and any((kind.mlp is None) == (kind.moe is None) for kind in kinds):
        return "layers that have not exactly one of MLP and experts"
    gated = {mlp.gated for mlp in dense} | {moe.gated for moe in experts}
    return "gated and plain MLPs in one model" if len(gated) > 1 else None


def _attention_kind(given: RuleInput) -> str | None:
    for kind in used_kinds(given.model):
        attention = kind.attention
        if not attention.causal:
            return "attention that is not causal"
        if attention.kind == "gqa" and attention.v_head_dim != attention.head_dim:
            return "attention whose value heads have another width than its query heads"
        if attention.logit_softcap is not None:
            return "attention with a cap on its logits"
        if attention.qk_norm == "full_width":
            return "attention with one norm over all query heads together"
        if attention.qk_norm_bias and kind.norm == "rms":
            return "attention with biases in its query and key norms"
    return None


def _biases(given: RuleInput) -> str | None:
    """Megatron has one switch for every linear layer, and one more for query, key and value."""
    wanted = {flag for kind in used_kinds(given.model) for flag in linear_biases(kind)}
    if wanted == {True, False}:
        return "a bias in some of the linear layers only (other than query, key, value)"
    if wanted == {True} and not all(kind.attention.qkv_bias for kind in used_kinds(given.model)):
        return "linear layers with bias, but query, key and value without"
    return None


def linear_biases(kind: LayerSpec) -> set[bool]:
    """Whether the linear layers other than query, key and value have a bias."""
    flags = {kind.attention.output_bias}
    if kind.mlp:
        flags.add(kind.mlp.bias)
    if kind.moe:
        flags.add(kind.moe.expert_bias)
        if kind.moe.shared_intermediate_size:
            flags.add(kind.moe.shared_bias)
    return flags


def _activation(given: RuleInput) -> str | None:
    name = given.model.activation_function
    gated = any(part.gated for kind in used_kinds(given.model) for part in (kind.mlp, kind.moe) if part)
    if gated and (name in SILU_NAMES or name == QUICK_GELU or given.model.family == "gpt_oss"):
        return None
    if not gated and (name in GELU_NAMES or name == "relu2"):
        return None
    return f"the activation {name!r} in a {'gated' if gated else 'plain'} MLP"


def _router(given: RuleInput) -> str | None:
    """A router's linear bias comes and goes with the bias of the linear layers (core/transformer/moe/router.py:64)."""
    for kind in used_kinds(given.model):
        moe = kind.moe
        if moe is None:
            continue
        if moe.expert_bias and not moe.router_bias:
            return "experts with bias behind a router without"
        if moe.router_bias and not moe.expert_bias and moe.score_function != "sigmoid":
            return "a corrected softmax router; Megatron corrects sigmoid scores only"
        if moe.num_experts % moe.num_groups or moe.top_k_groups > moe.num_groups:
            return "expert groups that do not divide the experts"
    return None


def _forward(given: RuleInput) -> str | None:
    return forward_factor(given.model)


def _mixers(given: RuleInput) -> str | None:
    return mixer_problem(given.model)


_CHECKS = {
    "M1": _vision,
    "M2": _norms,
    "M3": _post_norm,
    "M4": _residual,
    "M5": _positions,
    "M6": _embedding,
    "M7": _one_attention,
    "M8": _one_mlp,
    "M9": _attention_kind,
    "M10": _biases,
    "M11": _activation,
    "M12": _router,
    "M19": _forward,
    "M20": _mixers,
}


def _rule(rule_id: str) -> SpaceRule:
    inner = _CHECKS[rule_id]

    def check(given: RuleInput) -> str | None:
        message = inner(given)
        return None if message is None else f"Megatron-LM's flags cannot build {message}; name another --backend"

    return SpaceRule(rule_id, _FLAGS, check)


MODEL_RULES: tuple[SpaceRule, ...] = tuple(_rule(rule_id) for rule_id in _CHECKS)
