"""The flags that describe the model: ``ModelSpec`` -> architecture arguments of ``pretrain_gpt.py``.

What a plan does not depend on is not in a ``ModelSpec``: how experts are balanced and rotary frequencies stretched is
as in the published recipe (``rules.training_recipe``), initialisation and learning rate are those of DATA_ARGS.
"""

from __future__ import annotations

from itertools import groupby

from planner.backends.megatron.arguments import Words
from planner.backends.megatron.model_rules import QUICK_GELU, linear_biases
from planner.backends.megatron.token_mixers import mixer_flags, way
from planner.backends.rules.rule import latent, mixture, used_kinds
from planner.backends.rules.token_mixers import softmax_attention
from planner.backends.rules.training_recipe import Routing, routing, stretch
from planner.model.spec import ModelSpec, MoeSpec, TokenMixer
from planner.question.problem import Workload

VOCABULARY_MULTIPLE = 128


def model_flags(model: ModelSpec, workload: Workload) -> dict[str, Words]:
    """Size, attention, MLP, norms, positions, vocabulary."""
    kinds = used_kinds(model)
    widths = [kind.mlp.intermediate_size for kind in kinds if kind.mlp]
    moe = mixture(model)
    flags: dict[str, Words] = {
        "--num-layers": (str(model.num_layers),),
        "--hidden-size": (str(model.hidden_size),),
        "--ffn-hidden-size": (str(widths[0] if widths else moe.expert_intermediate_size if moe else 0),),
        **_attention_flags(softmax_attention(model) or kinds[0].attention),
        **mixer_flags(model),
        **_window_flags(model),
        "--normalization": ("RMSNorm" if kinds[0].norm == "rms" else "LayerNorm",),
        "--norm-epsilon": (f"{model.norm_epsilon:g}",),
        **_activation_flags(model),
        **_bias_flags(model),
        **_position_flags(model, workload),
    }
    if not model.tie_embeddings:
        flags["--untie-embeddings-and-output-weights"] = ()
    if model.mtp:
        flags["--mtp-num-layers"] = (str(model.mtp.num_layers),)
    flags["--make-vocab-size-divisible-by"] = (str(VOCABULARY_MULTIPLE),)
    if not workload.dropout:
        flags |= {"--attention-dropout": ("0.0",), "--hidden-dropout": ("0.0",)}
    return flags


def moe_flags(model: ModelSpec) -> dict[str, Words]:
    """Experts and router; empty for a dense model."""
    moe = mixture(model)
    if moe is None:
        return {}
    flags: dict[str, Words] = {
        "--num-experts": (str(moe.num_experts),),
        "--moe-router-topk": (str(moe.top_k),),
        "--moe-ffn-hidden-size": (str(moe.expert_intermediate_size),),
        "--moe-grouped-gemm": (),
        "--moe-permute-fusion": (),
        "--moe-token-dispatcher-type": ("alltoall",),
        "--moe-router-dtype": ("fp32",),
    }
    pattern = [model.layer_kinds[kind].moe is not None for kind in model.layer_kind_sequence()]
    if not all(pattern) and way(model) != "pattern":  # its letters say it
        flags["--moe-layer-freq"] = (list_pattern(pattern),)
    if moe.shared_intermediate_size:
        flags["--moe-shared-expert-intermediate-size"] = (str(moe.shared_intermediate_size),)
    if moe.shared_gate:
        flags["--moe-shared-expert-gate"] = ()
    if moe.latent_size:
        flags["--moe-latent-size"] = (str(moe.latent_size),)
    return flags | _router_flags(moe, routing(model) or Routing())


def _router_flags(moe: MoeSpec, recipe: Routing) -> dict[str, Words]:
    """Scores, their scale and learned correction, groups, and what balances the experts.

    One expert a token demands the softmax before the choice, and scores that are not normalized are such.
    """
    flags: dict[str, Words] = {}
    if moe.score_function == "sigmoid":
        flags["--moe-router-score-function"] = ("sigmoid",)
        if recipe.bias_update_rate is not None:
            flags |= {
                "--moe-router-enable-expert-bias": (),
                "--moe-router-bias-update-rate": (f"{recipe.bias_update_rate:g}",),
            }
    elif moe.top_k == 1 or not recipe.normalizes:
        flags["--moe-router-pre-softmax"] = ()
    if moe.num_groups > 1:
        flags |= {
            "--moe-router-num-groups": (str(moe.num_groups),),
            "--moe-router-group-topk": (str(moe.top_k_groups),),
        }
    if recipe.scaling_factor not in (None, 1.0):
        flags["--moe-router-topk-scaling-factor"] = (f"{recipe.scaling_factor:g}",)
    flags["--moe-router-load-balancing-type"] = (recipe.balancing,)
    return flags | ({} if recipe.balancing == "none" else {"--moe-aux-loss-coeff": (f"{recipe.coefficient:g}",)})


def recipe_reasons(model: ModelSpec) -> dict[str, str]:
    """Why the flags that a plan does not decide are there: whose recipe they are."""
    reasons: dict[str, str] = {}
    recipe, stretched = routing(model), stretch(model)
    if recipe is not None:
        reasons |= {
            "--moe-router-bias-update-rate": f"balances experts without a loss ({recipe.source})",
            "--moe-router-pre-softmax": f"scores of the chosen experts are not divided by their sum ({recipe.source})",
            "--moe-router-topk-scaling-factor": f"scale of the routed experts' output ({recipe.source})",
            "--moe-router-load-balancing-type": _balancing_reason(recipe),
            "--moe-aux-loss-coeff": "Megatron's default 0 balances nothing",
        }
        if recipe.scaling_factor is None:
            reasons["--moe-router-topk"] = "YOURS: --moe-router-topk-scaling-factor, not known for this size"
    if stretched is not None:
        reasons |= dict.fromkeys(
            ("--use-rope-scaling", "--rotary-scaling-factor"),
            f"{stretched.source}; leave it out for a model without stretched positions",
        )
    return reasons


def _balancing_reason(recipe: Routing) -> str:
    if recipe.balancing == "none":
        return (
            f"YOURS: as in {recipe.source} nothing balances the experts, and the plan takes them to be balanced;"
            " to train from the start set a type and --moe-aux-loss-coeff"
        )
    return f"the plan takes experts to be balanced ({recipe.source})"


def list_pattern(values: list[bool]) -> str:
    """A Python list expression without spaces, as Megatron evaluates it: ``([0]*3+[1]*58)``."""
    runs = [f"[{int(value)}]*{len(list(run))}" for value, run in groupby(values)]
    return f"({'+'.join(runs)})"


def _attention_flags(attention: TokenMixer) -> dict[str, Words]:
    flags: dict[str, Words] = {"--num-attention-heads": (str(attention.num_heads),)}
    if attention.kind == "mla":
        rope = attention.qk_rope_head_dim or 0
        flags |= {
            "--multi-latent-attention": (),
            "--kv-lora-rank": (str(attention.kv_lora_rank),),
            "--qk-head-dim": (str(attention.head_dim - rope),),
            "--qk-pos-emb-head-dim": (str(rope),),
            "--v-head-dim": (str(attention.v_head_dim),),
            "--kv-channels": (str(attention.v_head_dim),),
            "--qk-layernorm": (),
        }
        return flags | ({"--q-lora-rank": (str(attention.q_lora_rank),)} if attention.q_lora_rank else {})
    flags["--kv-channels"] = (str(attention.head_dim),)
    if attention.num_kv_heads != attention.num_heads:
        flags |= {"--group-query-attention": (), "--num-query-groups": (str(attention.num_kv_heads),)}
    if attention.qk_norm == "per_head":
        flags["--qk-layernorm"] = ()
    if attention.sinks:
        flags["--softmax-type"] = ("learnable",)
    return flags


def _window_flags(model: ModelSpec) -> dict[str, Words]:
    """A window of w tokens sees itself and w - 1 to the left; Megatron's pair counts the ones to the left."""
    per_layer = [model.layer_kinds[kind].attention.sliding_window for kind in model.layer_kind_sequence()]
    windows = [window for window in per_layer if window]
    if not windows:
        return {}
    flags: dict[str, Words] = {"--window-size": (f"{windows[0] - 1},0",)}
    if not all(per_layer):
        flags["--window-attn-skip-freq"] = (list_pattern([bool(window) for window in per_layer]),)
    return flags


def _activation_flags(model: ModelSpec) -> dict[str, Words]:
    if model.family == "gpt_oss":
        return {
            "--quick-geglu": (),
            "--glu-linear-offset": ("1.0",),
            "--activation-func-clamp-value": ("7.0",),
        }
    if any(part.gated for kind in used_kinds(model) for part in (kind.mlp, kind.moe) if part):
        return {"--quick-geglu" if model.activation_function == QUICK_GELU else "--swiglu": ()}
    return {"--squared-relu": ()} if model.activation_function == "relu2" else {}


def _bias_flags(model: ModelSpec) -> dict[str, Words]:
    kinds = used_kinds(model)
    if any(True in linear_biases(kind) for kind in kinds):
        return {}
    flags: dict[str, Words] = {"--disable-bias-linear": ()}
    return flags | ({"--add-qkv-bias": ()} if any(kind.attention.qkv_bias for kind in kinds) else {})


def _position_flags(model: ModelSpec, workload: Workload) -> dict[str, Words]:
    """Without a table the number of positions only has to cover the sample (rule A15)."""
    rows = model.learned_positions or max(model.max_sequence_length, workload.sequence_length)
    kind = "learned_absolute" if model.learned_positions else model.position
    flags: dict[str, Words] = {"--position-embedding-type": (kind,), "--max-position-embeddings": (str(rows),)}
    if kind == "rope":
        flags["--rotary-base"] = (f"{model.rotary_base:.0f}",)
        attention = softmax_attention(model) or used_kinds(model)[0].attention
        rotated = attention.qk_rope_head_dim
        if attention.kind == "gqa" and rotated is not None and rotated != attention.head_dim:
            flags["--rotary-percent"] = (f"{rotated / attention.head_dim:g}",)
    return flags | _stretch_flags(model, latent=latent(model))


def _stretch_flags(model: ModelSpec, *, latent: bool) -> dict[str, Words]:
    """Latent attention is always YaRN's, whose factor is said: Megatron-LM's default is 1, Megatron-Bridge's 40."""
    found = stretch(model)
    if latent:
        flags: dict[str, Words] = {"--rotary-scaling-factor": (f"{found.factor if found else 1.0:g}",)}
        if found:
            flags |= {"--mscale": (f"{found.mscale:g}",), "--mscale-all-dim": (f"{found.mscale_all_dim:g}",)}
        return flags
    return {"--use-rope-scaling": (), "--rope-scaling-factor": (f"{found.factor:g}",)} if found else {}
