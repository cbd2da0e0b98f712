"""The layers that Megatron-LM's arguments build.

Flags and defaults: ``megatron/training/arguments.py`` and ``transformer_config.py`` (Megatron-Core 0.12 to 0.18).
"""

from __future__ import annotations

from planner.model.megatron_flags import MegatronFlags
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, MoeSpec, NormKind


def read_layers(flags: MegatronFlags, hidden_size: int, num_layers: int) -> list[LayerSpec]:
    """Every transformer layer in order."""
    bias = not flags.has("disable-bias-linear")
    gated = flags.has("swiglu", "quick-geglu", "geglu", "gelu-tanh")
    norm: NormKind = "rms" if (flags.text("normalization") or "LayerNorm") == "RMSNorm" else "layer"
    width = flags.integer("ffn-hidden-size") or _default_width(hidden_size, swiglu=flags.has("swiglu"))
    attention = read_attention(flags, hidden_size, bias=bias)
    mlp = MlpSpec(intermediate_size=width, gated=gated, bias=bias)
    moe = read_moe(flags, width, gated=gated, bias=bias)
    routes = _routed_layers(flags, num_layers) if moe is not None else [False] * num_layers
    windows = _windows(flags, num_layers)
    return [
        LayerSpec(
            attention=attention.model_copy(update={"sliding_window": window}),
            mlp=None if routed else mlp,
            moe=moe if routed else None,
            norm=norm,
        )
        for routed, window in zip(routes, windows, strict=True)
    ]


def _default_width(hidden_size: int, *, swiglu: bool) -> int:
    """``4h``; with SwiGLU two thirds of it, rounded down to a multiple of 64 (arguments.py, validate_args)."""
    return max(int(4 * hidden_size * 2 / 3) // 64 * 64, 64) if swiglu else 4 * hidden_size


def read_attention(flags: MegatronFlags, hidden_size: int, *, bias: bool) -> AttentionSpec:
    """Attention of every layer, without its window."""
    heads = flags.required("num-attention-heads")
    if flags.has("multi-latent-attention"):
        rope_dim = flags.integer("qk-pos-emb-head-dim") or 64
        return AttentionSpec(
            kind="mla",
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=(flags.integer("qk-head-dim") or 128) + rope_dim,
            v_head_dim=flags.integer("v-head-dim") or 128,
            qkv_bias=bias,
            output_bias=bias,
            q_lora_rank=flags.integer("q-lora-rank"),
            kv_lora_rank=flags.integer("kv-lora-rank") or 32,
            qk_rope_head_dim=rope_dim,
        )
    head_dim = flags.integer("kv-channels")
    if head_dim is None:
        # 1 stands for a width that is missing, which is a finding of its own.
        if hidden_size > 1 and hidden_size % heads:
            flags.refuse("num-attention-heads", f"must divide --hidden-size {hidden_size}", "or give --kv-channels")
        head_dim = max(hidden_size // heads, 1)
    groups = heads
    if flags.has("group-query-attention"):
        groups = flags.integer("num-query-groups") or 1
        if heads % groups:
            flags.refuse("num-query-groups", f"must divide --num-attention-heads {heads}, is {groups}", "correct it")
            groups = heads
    rotated = max(int(head_dim * flags.number("rotary-percent", default=1.0)), 1)
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=groups,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=bias or flags.has("add-qkv-bias"),
        output_bias=bias,
        qk_norm="per_head" if flags.has("qk-layernorm") else "none",
        qk_norm_bias=flags.has("qk-layernorm") and flags.text("normalization") != "RMSNorm",
        sinks=flags.text("softmax-type") == "learnable",
        qk_rope_head_dim=rotated if rotated < head_dim else None,
    )


def read_moe(flags: MegatronFlags, dense_width: int, *, gated: bool, bias: bool) -> MoeSpec | None:
    """Mixture of experts, or None."""
    experts = flags.integer("num-experts", minimum=0)
    if not experts:
        return None
    top_k = flags.integer("moe-router-topk") or 2
    if top_k > experts:
        flags.refuse("moe-router-topk", f"must not exceed --num-experts {experts}, is {top_k}", "correct it")
        top_k = 1
    groups = flags.integer("moe-router-num-groups") or 1
    return MoeSpec(
        num_experts=experts,
        top_k=top_k,
        expert_intermediate_size=flags.integer("moe-ffn-hidden-size") or dense_width,
        gated=gated,
        expert_bias=bias,
        shared_intermediate_size=flags.integer("moe-shared-expert-intermediate-size", minimum=0) or 0,
        shared_bias=bias,
        shared_gate=flags.has("moe-shared-expert-gate"),
        score_function="sigmoid" if flags.text("moe-router-score-function") == "sigmoid" else "softmax",
        num_groups=groups,
        top_k_groups=flags.integer("moe-router-group-topk") or groups,
    )


def _routed_layers(flags: MegatronFlags, num_layers: int) -> list[bool]:
    """``--moe-layer-freq N``: layers 0, N, 2N... route; a list says it layer by layer."""
    pattern = flags.pattern("moe-layer-freq", num_layers)
    if pattern is None:
        return [True] * num_layers
    if len(pattern) == 1 and num_layers != 1:
        return [layer % max(pattern[0], 1) == 0 for layer in range(num_layers)]
    return [bool(entry) for entry in pattern]


def _windows(flags: MegatronFlags, num_layers: int) -> list[int | None]:
    """``--window-size "(left, right)"`` and the layers that ``--window-attn-skip-freq`` leaves unlimited."""
    words = "".join(flags.words("window-size")).strip("()[] ").replace(" ", "")
    if not words:
        return [None] * num_layers
    left = words.split(",", maxsplit=1)[0]
    if not left.lstrip("-").isdigit() or len(left) > 9:
        flags.refuse("window-size", f"cannot be read: '{words[:40]}'", "write (left,0)")
        return [None] * num_layers
    window = int(left) + 1 if int(left) >= 0 else None
    skip = flags.pattern("window-attn-skip-freq", num_layers)
    if skip is None:
        return [window] * num_layers
    if len(skip) == 1 and num_layers != 1:
        period = max(skip[0], 1)
        return [None if (layer + 1) % period == 0 else window for layer in range(num_layers)]
    return [window if entry else None for entry in skip]
