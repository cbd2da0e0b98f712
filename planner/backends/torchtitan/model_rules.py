"""The models that torchtitan's families cannot build.

The planner knows the model exactly, so a plan of the free space may hold one that no family has.
"""

from __future__ import annotations

from planner.backends.rules.forward_factors import forward_factor
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.packed_sequences import CONCATENATED, packed_sequences
from planner.backends.rules.rule import RuleInput, SpaceRule, mixtures, used_kinds
from planner.backends.rules.token_mixers import beyond_attention
from planner.backends.rules.training_kinds import training_kinds
from planner.backends.torchtitan.family import family_of, num_dense_layers

_TITAN = "torchtitan 0.3.0"
_SILU = frozenset({"silu", "swish"})
_FLOAT8_DEVICES = ("ada", "hopper", "blackwell", "rubin", "feynman", "cdna3", "cdna4", "cdna5")


def _parts(given: RuleInput) -> str | None:
    model = given.model
    other = beyond_attention(model)
    if other is not None:
        return f"no torchtitan family builds {other}"
    wrong = (
        *((tower.called, True) for tower in model.towers),
        ("multi-token prediction modules (torchtitan has them without pp and cp only)", model.mtp is not None),
        ("an embedding narrower than the layers", model.embedding_size not in (None, model.hidden_size)),
        ("a norm behind the embedding", model.embedding_norm),
        ("a model without final norm", not model.final_norm),
        ("a head with bias", model.head_bias),
        (f"positions {model.position!r}", model.position != "rope" or model.learned_positions > 0),
    )
    names = [name for name, holds in wrong if holds]
    return f"no torchtitan family builds {', '.join(names)}" if names else None


def _attention(given: RuleInput) -> str | None:
    kinds = used_kinds(given.model)
    attention = kinds[0].attention
    if any(kind.attention != attention for kind in kinds):
        return "all layers of torchtitan's families have the same attention"
    wrong = (
        ("biases", attention.qkv_bias or attention.output_bias),
        ("sinks", attention.sinks),
        ("a sliding window", attention.sliding_window is not None),
        ("a cap on its logits", attention.logit_softcap is not None),
        ("no causal mask", not attention.causal),
        ("query norms with bias", attention.qk_norm_bias),
    )
    names = [name for name, holds in wrong if holds]
    return f"the family {family_of(given.model)} does not build attention with {', '.join(names)}" if names else None


def _head_width(given: RuleInput) -> str | None:
    model, attention = given.model, used_kinds(given.model)[0].attention
    family = family_of(model)
    if family == "deepseek_v3":
        return "latent attention with query norms is not built" if attention.qk_norm != "none" else None
    if attention.qk_rope_head_dim not in (None, attention.head_dim):
        return f"the family {family} rotates whole heads, not {attention.qk_rope_head_dim} of {attention.head_dim}"
    if attention.v_head_dim != attention.head_dim:
        return f"the family {family} has values as wide as keys"
    if family == "qwen3":
        if attention.qk_norm == "per_head":
            return None
        return "experts without latent attention are built in the family qwen3 alone, which norms queries and keys"
    if attention.head_dim * attention.num_heads != model.hidden_size:
        return f"the family llama3 has heads of {model.hidden_size} / {attention.num_heads}, not {attention.head_dim}"
    return None


def _layers(given: RuleInput) -> str | None:
    model, kinds = given.model, used_kinds(given.model)
    wrong = (
        ("a norm other than RMSNorm", any(kind.norm != "rms" for kind in kinds)),
        *((f"{number} norm{'s' * (number > 1)}", number != 2) for number in sorted({kind.num_norms for kind in kinds})),
        ("norms behind the branches", any(kind.norm_placement != "pre" for kind in kinds)),
        ("attention and MLP side by side", any(kind.parallel_residual for kind in kinds)),
        ("no MLP and no experts", any(kind.mlp is None and kind.moe is None for kind in kinds)),
        ("an MLP without gate or with bias", any(kind.mlp and (kind.mlp.bias or not kind.mlp.gated) for kind in kinds)),
        (f"the activation {model.activation_function!r}", model.activation_function not in _SILU),
    )
    names = [name for name, holds in wrong if holds]
    return f"torchtitan's families do not build layers with {', '.join(names)}" if names else None


def _layer_order(given: RuleInput) -> str | None:
    model, family = given.model, family_of(given.model)
    dense = num_dense_layers(model)
    moes = [model.layer_kinds[index].moe is not None for index in model.layer_kind_sequence()]
    mlps = {kind.mlp for kind in used_kinds(model) if kind.mlp is not None}
    if len(mlps) > 1 or len(mixtures(model)) > 1:
        return f"the family {family} has one width of MLP and one kind of experts"
    if not all(moes[dense:]):
        return f"the family {family} has no dense layers behind the first one with experts"
    if family == "qwen3" and any(moes) and dense:
        return "the family qwen3 has experts in every layer or in none"
    return "the family deepseek_v3 has experts" if family == "deepseek_v3" and not any(moes) else None


def _experts(given: RuleInput) -> str | None:
    for moe in mixtures(given.model):
        wrong = [
            ("experts with bias", moe.expert_bias or moe.shared_bias),
            ("experts without gate", not moe.gated),
            ("gate on the shared experts", moe.shared_gate),
        ]
        if family_of(given.model) == "deepseek_v3":
            shared = moe.shared_intermediate_size
            wrong += [
                ("shared experts of another width", shared == 0 or shared % moe.expert_intermediate_size > 0),
                ("expert groups of unequal size", moe.num_experts % moe.num_groups > 0),
            ]
        else:
            wrong += [
                ("shared experts", moe.shared_intermediate_size > 0),
                ("a router other than softmax", moe.score_function != "softmax"),
                ("group-limited routing", moe.num_groups > 1),
                ("a router with bias", moe.router_bias),
            ]
        names = [name for name, holds in wrong if holds]
        if names:
            return f"the family {family_of(given.model)} has no {', '.join(names)}"
    return None


def _training(given: RuleInput) -> str | None:
    workload = given.workload
    if workload.precision == "fp16":
        return "parameters and matrix products are bf16 or fp32, never fp16; use precision bf16"
    if workload.optimizer != "adam":
        return f"the emitted configuration has AdamW with fp32 states, not {workload.optimizer}"
    return "torchtitan's families have no dropout" if workload.dropout else None


def _float8(given: RuleInput) -> str | None:
    if given.workload.precision != "fp8":
        return None
    if mixtures(given.model):
        return "fp8 of experts needs a nightly torchao; use precision bf16 with experts"
    if given.architecture and not given.architecture.lower().startswith(_FLOAT8_DEVICES):
        return f"Float8Linear needs SM89 or later, or gfx942, not {given.architecture}"
    return None


def _forward(given: RuleInput) -> str | None:
    said = forward_factor(given.model)
    return None if said is None else f"no torchtitan family builds {said}"


MODEL_RULES: tuple[SpaceRule, ...] = (
    training_kinds(
        f"{_TITAN} config/configs.py: the emitted configuration trains every weight by cross-entropy",
        instead="name --backend accelerate",
    ),
    packed_sequences(
        f"{_TITAN} models/common/config_utils.py:76, hf_datasets/text_datasets.py:144", packings=CONCATENATED
    ),
    SpaceRule("M1", f"{_TITAN} models/common/decoder.py:62, models/deepseek_v3/mtp.py:201", _parts),
    SpaceRule("M2", f"{_TITAN} models/common/config_utils.py: make_gqa_config, get_attention_config", _attention),
    SpaceRule("M3", f"{_TITAN} models/llama3/__init__.py:66, models/qwen3/__init__.py:91", _head_width),
    SpaceRule("M4", f"{_TITAN} models/common/decoder.py:43, models/common/feed_forward.py", _layers),
    SpaceRule("M5", f"{_TITAN} models/deepseek_v3/__init__.py:149, models/qwen3/__init__.py:140", _layer_order),
    SpaceRule("M6", f"{_TITAN} models/common/moe.py, models/common/config_utils.py: make_router_config", _experts),
    SpaceRule("M7", f"{_TITAN} config/configs.py:84-92, components/optimizer/optimizer.py:378", _training),
    SpaceRule("M8", f"{_TITAN} components/quantization/float8.py:85-98", _float8),
    fp8_recipes(f"{_TITAN} components/quantization/float8.py:58", has=(), own="one scale a row"),
    SpaceRule("M19", f"{_TITAN} models/llama3/model.py, models/qwen3/model.py: not built", _forward),
)
