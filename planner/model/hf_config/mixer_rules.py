"""Which layers have another token mixer than attention, and its sizes: rules that the tables of families name."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import MixerRule
from planner.model.hf_config.mechanisms import LAYER_KINDS
from planner.model.mixers.delta_rule import DeltaRuleSpec
from planner.model.mixers.lightning import LightningSpec
from planner.model.mixers.mamba import Mamba1Spec, Mamba2Spec
from planner.model.mixers.short_conv import ShortConvSpec
from planner.model.spec import TokenMixer

_FULL = ("full_attention", "attention")
_OTHER = ("linear_attention", "mamba")
MixerReader = Callable[[ClassKeys, int], TokenMixer]
DefaultRule = Callable[[ClassKeys, int], list[bool]]
"""Which layers have the other mixer where the config does not list them."""


def listed_mixers(
    read: MixerReader, default: DefaultRule, words: tuple[str, ...] = _OTHER, attention: tuple[str, ...] = _FULL
) -> MixerRule:
    """The layers that ``layer_types`` (``layers_block_type``) names by one of ``words``; the others are attention."""

    def rule(keys: ClassKeys, num_layers: int, hidden: int) -> list[TokenMixer | None]:
        flags = _listed(keys, num_layers, words, attention)
        flags = default(keys, num_layers) if flags is None else flags
        mixer = read(keys, hidden) if any(flags) else None
        return [mixer if flag else None for flag in flags]

    return rule


def _listed(keys: ClassKeys, num_layers: int, words: tuple[str, ...], attention: tuple[str, ...]) -> list[bool] | None:
    for key in ("layer_types", "layers_block_type"):
        names = keys.reader.strings(key)
        if names is None:
            continue
        for name in sorted(set(names) - {*attention, *words}):
            keys.reader.refuse(key, f"holds {name[:40]!r}: {LAYER_KINDS.get(name, 'not read for this model_type')}")
        if len(names) != num_layers:
            keys.reader.refuse(key, f"must hold one entry a layer ({num_layers}), holds {len(names)}")
            return None
        return [name in words for name in names]
    return None


def attention_every(period: int | str, default_period: int = 4) -> DefaultRule:
    """The last layer of every ``period`` (a number or a key) is attention."""

    def rule(keys: ClassKeys, num_layers: int) -> list[bool]:
        step = period if isinstance(period, int) else keys.reader.integer(period, default=default_period)
        return [bool((layer + 1) % step) for layer in range(num_layers)]

    return rule


def all_other(_: ClassKeys, num_layers: int) -> list[bool]:
    """No layer is attention."""
    return [True] * num_layers


def attention_at_indices(keys: ClassKeys, num_layers: int) -> list[bool]:
    """The layers of ``attn_layer_indices`` are attention (bamba)."""
    attention = set(keys.reader.integers("attn_layer_indices", []))
    return [layer not in attention for layer in range(num_layers)]


def attention_in_full_indices(keys: ClassKeys, num_layers: int) -> list[bool]:
    """The layers of ``full_attn_idxs`` are attention, all without it (lfm2)."""
    attention = set(keys.reader.integers("full_attn_idxs", list(range(num_layers))))
    return [layer not in attention for layer in range(num_layers)]


def jamba_attention(keys: ClassKeys, num_layers: int) -> list[bool]:
    """One layer of every ``attn_layer_period``, at ``attn_layer_offset``, is attention."""
    period, offset = keys.integer("attn_layer_period"), keys.integer("attn_layer_offset", minimum=0)
    return [layer % period != offset for layer in range(num_layers)]


def olmo_attention(_: ClassKeys, num_layers: int) -> list[bool]:
    """Every fourth layer is attention, or the last of a model without a fourth."""
    other = [layer % 4 != 3 for layer in range(num_layers)]
    return [*other[:-1], False] if all(other) else other


def kimi_attention(keys: ClassKeys, num_layers: int) -> list[bool]:
    """The layers of ``linear_attn_config`` (counted from 1); without it every fourth after the first is attention."""
    nested = keys.reader.data.get("linear_attn_config")
    if isinstance(nested, dict) and "full_attn_layers" in nested and "kda_layers" in nested:
        full = set(keys.reader.child("linear_attn_config").integers("full_attn_layers", []))
        return [layer + 1 not in full for layer in range(num_layers)]
    return [not layer or layer % 4 != 0 for layer in range(num_layers)]


def gated_delta(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Gated DeltaNet with the keys of Qwen3-Next; absent sizes as olmo_hybrid's class fills them."""
    value_heads = keys.optional("linear_num_value_heads") or keys.integer("num_attention_heads")
    key_heads = keys.optional("linear_num_key_heads") or keys.integer("num_attention_heads")
    if value_heads % key_heads:
        keys.reader.refuse("linear_num_key_heads", f"must divide linear_num_value_heads = {value_heads}")
        key_heads = value_heads
    key_dim = keys.optional("linear_key_head_dim") or max(int(0.75 * hidden / key_heads), 1)
    return DeltaRuleSpec(
        kind="gated_delta",
        num_value_heads=value_heads,
        num_key_heads=key_heads,
        key_head_dim=key_dim,
        value_head_dim=keys.optional("linear_value_head_dim") or 2 * key_dim,
        conv_kernel=keys.integer("linear_conv_kernel_dim"),
    )


def kimi_delta(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Kimi delta attention: sizes at the top, or in ``linear_attn_config``, which goes before them."""
    heads, width = keys.integer("linear_num_heads"), keys.integer("linear_head_dim")
    kernel = keys.integer("linear_conv_kernel_dim")
    if isinstance(keys.reader.data.get("linear_attn_config"), dict):
        nested = keys.reader.child("linear_attn_config")
        heads, width = nested.integer("num_heads", default=heads), nested.integer("head_dim", default=width)
        kernel = nested.integer("short_conv_kernel_size", default=kernel)
    return DeltaRuleSpec(
        kind="kimi_delta",
        num_value_heads=heads,
        num_key_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=kernel,
    )


def bailing_delta(keys: ClassKeys, _: int) -> TokenMixer:
    """Kimi delta attention of Bailing: as many heads as attention, whole projections of decay and gate."""
    heads = keys.integer("num_attention_heads")
    heads = keys.reader.integer("linear_num_heads", default=heads)
    # ``head_dim`` of a written config is the rotated width; ``linear_head_dim`` keeps the given one.
    width = keys.reader.integer("linear_head_dim", "head_dim", default=int(keys.defaults["head_dim"]))
    kernel = keys.reader.integer("linear_conv_kernel_dim", default=keys.integer("short_conv_kernel_size"))
    return DeltaRuleSpec(
        kind="kimi_delta",
        num_value_heads=heads,
        num_key_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=kernel,
        whole_gates=True,
    )


def bailing_attention(keys: ClassKeys, num_layers: int) -> list[bool]:
    """The last layer of every ``layer_group_size`` is attention."""
    step = keys.integer("layer_group_size")
    return [bool((layer + 1) % step) for layer in range(num_layers)]


def read_mamba2(
    keys: ClassKeys,
    inner: int,
    *,
    names: tuple[str, str, str, str, str, str],
    biases: tuple[str, str, str],
    gate_norm: bool = True,
) -> Mamba2Spec:
    """Mamba-2 of ``inner`` channels in all.

    ``names``: keys of heads, head width (absent or ``auto``: what fills the channels), state, groups, kernel, chunk;
    ``biases``: keys of those of the convolution, the input and the output projection.
    """
    heads_key, width_key, state, groups_key, kernel, chunk = names
    heads, groups = keys.integer(heads_key), keys.integer(groups_key)
    given = keys.reader.data.get(width_key, keys.defaults.get(width_key))
    width = max(inner // heads, 1) if given in (None, "auto") else keys.integer(width_key)
    if given == "auto":
        keys.text(width_key, "auto")
    if width * heads != inner:
        keys.reader.refuse(width_key, f"times {heads_key} = {heads} must be the {inner} channels, is {width}")
    if heads % groups:
        keys.reader.refuse(groups_key, f"must divide {heads_key} = {heads}, is {groups}")
        groups = heads
    return Mamba2Spec(
        num_heads=heads,
        head_dim=width,
        state_size=keys.integer(state),
        num_groups=groups,
        conv_kernel=keys.integer(kernel),
        chunk_size=keys.integer(chunk),
        conv_bias=keys.on(biases[0]),
        projection_bias=keys.on(biases[1]),
        output_projection_bias=keys.on(biases[2]),
        gate_norm=gate_norm,
    )


_GRANITE_NAMES = (
    "mamba_n_heads",
    "mamba_d_head",
    "mamba_d_state",
    "mamba_n_groups",
    "mamba_d_conv",
    "mamba_chunk_size",
)


def granite_mamba2(keys: ClassKeys, hidden: int) -> Mamba2Spec:
    """Mamba-2 with the keys of Bamba and Granite 4."""
    inner = keys.integer("mamba_expand") * hidden
    biases = ("mamba_conv_bias", "mamba_proj_bias", "mamba_proj_bias")
    return read_mamba2(keys, inner, names=_GRANITE_NAMES, biases=biases)


def falcon_mamba2(keys: ClassKeys, hidden: int) -> Mamba2Spec:
    """Mamba-2 beside the attention of Falcon-H1."""
    inner = keys.optional("mamba_d_ssm") or keys.integer("mamba_expand") * hidden
    biases = ("mamba_conv_bias", "mamba_proj_bias", "projectors_bias")
    return read_mamba2(keys, inner, names=_GRANITE_NAMES, biases=biases, gate_norm=keys.on("mamba_rms_norm"))


def pure_mamba2(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Mamba-2 with the keys of the ``mamba2`` class."""
    names = ("num_heads", "head_dim", "state_size", "n_groups", "conv_kernel", "chunk_size")
    biases = ("use_conv_bias", "use_bias", "use_bias")
    return read_mamba2(keys, keys.integer("expand") * hidden, names=names, biases=biases)


def pure_mamba1(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Mamba-1 with the keys of the ``mamba`` class."""
    inner = keys.integer("expand") * hidden
    return Mamba1Spec(
        inner_size=keys.reader.integer("intermediate_size", default=inner),
        state_size=keys.integer("state_size"),
        time_step_rank=_rank(keys, "time_step_rank", hidden),
        conv_kernel=keys.integer("conv_kernel"),
        conv_bias=keys.on("use_conv_bias"),
        projection_bias=keys.on("use_bias"),
    )


def jamba_mamba1(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Mamba-1 of Jamba, with norms of step sizes, B and C."""
    return Mamba1Spec(
        inner_size=keys.integer("mamba_expand") * hidden,
        state_size=keys.integer("mamba_d_state"),
        time_step_rank=_rank(keys, "mamba_dt_rank", hidden),
        conv_kernel=keys.integer("mamba_d_conv"),
        conv_bias=keys.on("mamba_conv_bias"),
        projection_bias=keys.on("mamba_proj_bias"),
        inner_norms=True,
    )


def _rank(keys: ClassKeys, key: str, hidden: int) -> int:
    given = keys.reader.data.get(key, keys.defaults.get(key))
    if given in (None, "auto"):
        keys.text(key, "auto")
        return ceil(hidden / 16)
    return keys.integer(key)


def lightning(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Lightning attention of MiniMax, with the heads of its attention."""
    heads = keys.integer("num_attention_heads")
    return LightningSpec(
        num_heads=heads,
        head_dim=keys.optional("head_dim") or max(hidden // heads, 1),
        block_size=keys.integer("block_size"),
    )


def short_conv(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Gated short convolution of LFM2."""
    kernel = keys.reader.integer("conv_L_cache", default=3)
    return ShortConvSpec(width=hidden, conv_kernel=kernel, bias=keys.on("conv_bias"))


def lfm3_layers(_: ClassKeys, num_layers: int) -> list[bool]:
    """The second of every four layers, the fourth, and the first are convolutions."""
    return [layer % 4 != 2 and (layer % 4 != 0 or layer == 0) for layer in range(num_layers)]


def lfm3_conv(keys: ClassKeys, hidden: int) -> TokenMixer:
    """Gated short convolution of LFM3."""
    return ShortConvSpec(width=hidden, conv_kernel=keys.integer("conv_L_cache"), bias=keys.on("conv_bias"))


def lfm2_width(keys: ClassKeys) -> int:
    """Width of LFM2's MLP: two thirds of the given one, times a factor, rounded up to a multiple."""
    width = keys.reader.integer("block_ff_dim", "intermediate_size", default=int(keys.defaults["intermediate_size"]))
    if not keys.on("block_auto_adjust_ff_dim"):
        return width
    multiple = keys.integer("block_multiple_of")
    scaled = int(keys.number("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
    return multiple * ceil(scaled / multiple)
