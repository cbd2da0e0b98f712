"""The small model for a large one: the same kinds of layers, with small widths that every axis divides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil, lcm

from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.mixers.delta_rule import DeltaRuleSpec
from planner.model.mixers.mamba import Mamba1Spec, Mamba2Spec
from planner.model.mixers.short_conv import ShortConvSpec
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec, TokenMixer
from planner.strategy.strategy import Strategy

HEAD_DIM = 16
FEWEST_HEADS = 4
FEWEST_EXPERTS = 4
MOST_ACTIVE_EXPERTS = 2
VOCABULARY_A_RANK = 128
SHORTEST_SEQUENCE = 32
MASK_BLOCK = 128


def tiny_lengths(strategy: Strategy) -> tuple[int, ...]:
    """Sequences to try: of at least 32 tokens that context and sequence parallelism divide; in whole blocks on each cp.

    The second is for back-ends that cut attention masks in blocks of 128 tokens.
    """
    pieces = strategy.cp * (2 if strategy.cp_kind == "ring" else 1) * (strategy.tp if strategy.sp else 1)
    shortest = pieces * ceil(SHORTEST_SEQUENCE / pieces)
    return (shortest, lcm(pieces, strategy.cp * MASK_BLOCK)) if strategy.cp > 1 else (shortest,)


def tiny_model(model: ModelSpec, strategy: Strategy, wanted: Strategy, num_layers: int, length: int) -> ModelSpec:
    """``model`` with ``num_layers`` small layers for ``strategy``, which stands for ``wanted``; ``length`` in tokens.

    Kept: kinds of layers and their proportions, biases, norms, tied embeddings, grouped-query, latent and windowed
    attention, shared and grouped experts, and how key/value heads relate to tp.
    """
    kinds = tuple(_tiny_layer(kind, strategy, wanted, length) for kind in model.layer_kinds)
    hidden = _heads(strategy) * HEAD_DIM
    sequence = _kind_sequence(model.layer_kind_sequence(), num_layers)
    runs = tuple(LayerRun(kind=kind, count=len(list(run))) for kind, run in groupby(sequence))
    return model.model_copy(
        update={
            "name": f"tiny-{model.name}",
            "hidden_size": hidden,
            "vocab_size": min(model.vocab_size, VOCABULARY_A_RANK * strategy.tp),
            "layer_kinds": kinds,
            "layer_runs": runs,
            "learned_positions": length if model.learned_positions else 0,
            "embedding_size": None if model.embedding_size in {None, model.hidden_size} else hidden // 2,
            "max_sequence_length": length,
            "mtp": model.mtp.model_copy(update={"num_layers": 1}) if model.mtp else None,
        }
    )


def _split_heads(strategy: Strategy) -> int:
    """Ranks over which heads are split."""
    return strategy.tp * (strategy.cp if strategy.cp_kind == "all_to_all" else 1)


def _heads(strategy: Strategy) -> int:
    unit = _split_heads(strategy)
    return unit * max(2, ceil(FEWEST_HEADS / unit))


def _tiny_layer(kind: LayerSpec, strategy: Strategy, wanted: Strategy, length: int) -> LayerSpec:
    hidden = _heads(strategy) * HEAD_DIM
    return kind.model_copy(
        update={
            "attention": _tiny_mixer(kind.attention, strategy, wanted, length),
            "mlp": None if kind.mlp is None else _tiny_mlp(kind.mlp, hidden),
            "moe": None if kind.moe is None else _tiny_experts(kind.moe, strategy, hidden),
        }
    )


def _tiny_mixer(mixer: TokenMixer, strategy: Strategy, wanted: Strategy, length: int) -> TokenMixer:
    heads = _heads(strategy)
    if isinstance(mixer, AttentionSpec):
        return _tiny_attention(mixer, strategy, wanted, length)
    small: dict[str, object] = {"num_heads": heads, "head_dim": HEAD_DIM}
    if isinstance(mixer, DeltaRuleSpec):
        small = {"num_value_heads": heads, "num_key_heads": heads}
        small |= {"key_head_dim": HEAD_DIM, "value_head_dim": HEAD_DIM}
    elif isinstance(mixer, Mamba2Spec):
        small |= {"num_groups": heads, "state_size": HEAD_DIM}
    elif isinstance(mixer, Mamba1Spec):
        small = {"inner_size": 2 * heads * HEAD_DIM, "time_step_rank": HEAD_DIM}
    elif isinstance(mixer, ShortConvSpec):
        small = {"width": heads * HEAD_DIM}
    elif isinstance(mixer, AbsentMixerSpec):
        small = {}
    return mixer.model_copy(update=small)


def _tiny_attention(attention: AttentionSpec, strategy: Strategy, wanted: Strategy, length: int) -> AttentionSpec:
    heads = _heads(strategy)
    small: dict[str, object] = {
        "num_heads": heads,
        "num_kv_heads": _kv_heads(attention, strategy, wanted),
        "head_dim": HEAD_DIM,
        "v_head_dim": HEAD_DIM,
        "sliding_window": None if attention.sliding_window is None else max(2, length // 4),
    }
    if attention.kind == "mla":
        small |= {"head_dim": 3 * HEAD_DIM // 2, "qk_rope_head_dim": HEAD_DIM // 2, "kv_lora_rank": 2 * HEAD_DIM}
        small |= {"q_lora_rank": None if attention.q_lora_rank is None else 3 * HEAD_DIM}
    elif attention.qk_rope_head_dim is not None:
        rotated = round(HEAD_DIM * attention.qk_rope_head_dim / attention.head_dim / 2) * 2
        small["qk_rope_head_dim"] = min(max(2, rotated), HEAD_DIM)
    return attention.model_copy(update=small)


def _kv_heads(attention: AttentionSpec, strategy: Strategy, wanted: Strategy) -> int:
    """As many as heads, one, a whole number a rank, or fewer than ranks: whichever the model has on its own mesh."""
    heads, unit = _heads(strategy), _split_heads(strategy)
    if attention.num_kv_heads == attention.num_heads:
        return heads
    if attention.num_kv_heads == 1:
        return 1
    if attention.num_kv_heads % _split_heads(wanted) == 0:
        return heads // 2
    return max(count for count in range(1, unit + 1) if unit % count == 0 and (count < unit or unit == 1))


def _tiny_mlp(mlp: MlpSpec, hidden: int) -> MlpSpec:
    return mlp.model_copy(update={"intermediate_size": (2 if mlp.gated else 4) * hidden})


def _tiny_experts(moe: MoeSpec, strategy: Strategy, hidden: int) -> MoeSpec:
    groups = min(moe.num_groups, 2)
    step = lcm(strategy.ep, groups)
    experts = step * ceil(max(FEWEST_EXPERTS, 2 * groups, strategy.ep) / step)
    width = hidden * strategy.etp
    return moe.model_copy(
        update={
            "num_experts": experts,
            "top_k": min(moe.top_k, MOST_ACTIVE_EXPERTS),
            "expert_intermediate_size": width,
            "shared_intermediate_size": width if moe.shared_intermediate_size else 0,
            "num_groups": groups,
            "top_k_groups": min(moe.top_k_groups, groups),
        }
    )


def _kind_sequence(whole: Sequence[int], num_layers: int) -> list[int]:
    """``num_layers`` kinds picked along the model; a kind that falls through takes the place of a frequent one."""
    last = max(num_layers - 1, 1)
    places = [round(index * (len(whole) - 1) / last) for index in range(num_layers)]
    picked = [whole[place] for place in places]
    for missing in sorted(set(whole) - set(picked)):
        near = whole.index(missing)
        movable = [index for index, kind in enumerate(picked) if picked.count(kind) > 1]
        if movable:
            picked[min(movable, key=lambda index: abs(places[index] - near))] = missing
    return picked
