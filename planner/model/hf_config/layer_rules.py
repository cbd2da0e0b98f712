"""Which layers slide and which route: rules that the tables of families name."""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import RoutingRule, WindowRule
from planner.model.hf_config.mechanisms import LAYER_KINDS
from planner.model.hf_config.reader import ConfigReader

_FULL, _SLIDING, _CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


def _kinds(reader: ConfigReader, key: str, num_layers: int, known: tuple[str, ...]) -> list[str] | None:
    """One word a layer, or None where the config has none; other words are findings."""
    names = reader.strings(key)
    if names is None:
        return None
    for kind in sorted(set(names) - set(known)):
        reader.refuse(key, f"holds {kind!r}: {LAYER_KINDS.get(kind, 'layers of this kind are not modelled')}")
    if len(names) != num_layers:
        reader.refuse(key, f"must hold one entry a layer ({num_layers}), holds {len(names)}")
        return None
    return names


def _windows(
    keys: ClassKeys,
    num_layers: int,
    slides: list[bool],
    key: str = "sliding_window",
    words: tuple[str, ...] = (_FULL, _SLIDING),
) -> list[int | None]:
    """Windows by ``layer_types``: ``words`` are those of attention over all tokens, of sliding, and of others."""
    names = _kinds(keys.reader, "layer_types", num_layers, words)
    window = keys.optional(key, minimum=0) or None
    if names is not None:
        slides = [name == words[1] for name in names]
    if any(slides) and window is None and names is not None:
        keys.reader.refuse(key, f"is required where layer_types name {words[1]}")
    return [window if slide else None for slide in slides]


def every_layer(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """All layers slide where ``sliding_window`` is given."""
    return _windows(keys, num_layers, [True] * num_layers)


def one_window(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """All layers have the window ``sliding_window``, if any; the class knows no kinds of layers."""
    return [keys.optional("sliding_window")] * num_layers


def listed(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """The layers that ``layer_types`` names slide; without it none does."""
    return _windows(keys, num_layers, [False] * num_layers)


def listed_as(*words: str, period: int | None = None, key: str = "sliding_window") -> WindowRule:
    """As ``listed``, by other words: of full, of sliding, of others; without them all but every ``period``-th slide."""

    def rule(keys: ClassKeys, num_layers: int) -> list[int | None]:
        slides = [period is not None and (layer + 1) % period != 0 for layer in range(num_layers)]
        return _windows(keys, num_layers, slides, key, words)

    return rule


def reference_windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """All layers slide over what is generated and see all of the prompt: in training they see all tokens."""
    _kinds(keys.reader, "layer_types", num_layers, (_FULL, "reference_sliding_attention"))
    keys.optional("sliding_window")
    return [None] * num_layers


def full_every(period: int | str, first_full: bool = False) -> WindowRule:
    """All layers slide but every ``period``-th (a number or a key): the last of a period, or its first."""

    def rule(keys: ClassKeys, num_layers: int) -> list[int | None]:
        step = period if isinstance(period, int) else keys.optional(period) or 1
        rest = 0 if first_full else step - 1
        return _windows(keys, num_layers, [layer % step != rest for layer in range(num_layers)])

    return rule


def lfm3_windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """Every fourth layer slides from the fifth on, unless ``layer_types`` says otherwise."""
    slides = [layer % 4 == 0 and layer > 0 for layer in range(num_layers)]
    return _windows(keys, num_layers, slides, words=(_FULL, _SLIDING, "conv"))


def full_first_and_every(period: int, first: bool, last: bool) -> WindowRule:
    """All layers slide but every ``period``-th, and the first or the last one."""

    def rule(keys: ClassKeys, num_layers: int) -> list[int | None]:
        full = [
            (layer + 1) % period == 0 or (first and layer == 0) or (last and layer == num_layers - 1)
            for layer in range(num_layers)
        ]
        return _windows(keys, num_layers, [not each for each in full])

    return rule


def full_from_end(period: int) -> WindowRule:
    """All layers slide but the last and every ``period``-th before it."""

    def rule(keys: ClassKeys, num_layers: int) -> list[int | None]:
        return _windows(keys, num_layers, [(num_layers - 1 - layer) % period != 0 for layer in range(num_layers)])

    return rule


def flint_windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """The first two layers, the last and every fourth from the second on see all tokens."""
    full = [layer < 2 or layer % 4 == 1 or layer == num_layers - 1 for layer in range(num_layers)]
    return _windows(keys, num_layers, [not each for each in full])


def chunks(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """Llama 4: layers with rotary positions see their chunk only.

    A chunk is taken as a window of as many tokens: the same up to one chunk, more than the model computes beyond it.
    """
    chunk = keys.optional("attention_chunk_size")
    step = keys.integer("no_rope_layer_interval")
    flags = keys.reader.integers("no_rope_layers", [])
    if not flags:
        flags = [int((layer + 1) % step != 0) for layer in range(num_layers)]
    names = _kinds(keys.reader, "layer_types", num_layers, (_FULL, _CHUNKED))
    chunked = [name == _CHUNKED for name in names] if names else [bool(flag) for flag in flags[:num_layers]]
    return [chunk if each else None for each in chunked]


def after_max_window_layers(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """Layers from ``max_window_layers`` on slide."""
    first = keys.optional("max_window_layers", minimum=0)
    first = num_layers if first is None else first
    return _windows(keys, num_layers, [layer >= first for layer in range(num_layers)])


def switched_windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """Qwen: layers from ``max_window_layers`` on slide if ``use_sliding_window``; a class without the key has all."""
    first: int | None = 0
    if "max_window_layers" in keys.defaults:
        first = keys.optional("max_window_layers", minimum=0)
    first = num_layers if first is None else first
    return _switched(keys, num_layers, [layer >= first for layer in range(num_layers)])


def switched_even_windows(keys: ClassKeys, num_layers: int) -> list[int | None]:
    """Qwen2-MoE: every other layer below ``max_window_layers`` slides if ``use_sliding_window``."""
    last = keys.integer("max_window_layers", minimum=0)
    return _switched(keys, num_layers, [layer % 2 == 0 and layer < last for layer in range(num_layers)])


def _switched(keys: ClassKeys, num_layers: int, slides: list[bool]) -> list[int | None]:
    names = _kinds(keys.reader, "layer_types", num_layers, (_FULL, _SLIDING))
    window = keys.optional("sliding_window", minimum=0) or None
    window = window if keys.on("use_sliding_window") else None
    slides = slides if names is None else [name == _SLIDING for name in names]
    return [window if slide else None for slide in slides]


def _routed(keys: ClassKeys, num_layers: int, default: list[bool]) -> list[bool]:
    names = _kinds(keys.reader, "mlp_layer_types", num_layers, ("dense", "sparse"))
    return default if names is None else [name == "sparse" for name in names]


def all_routed(keys: ClassKeys, num_layers: int) -> list[bool]:
    """Every layer routes, unless ``mlp_layer_types`` says otherwise."""
    return _routed(keys, num_layers, [True] * num_layers)


def dense_first(dense: int | str, default: int = 0) -> RoutingRule:
    """The first ``dense`` layers (a number or a key, ``default`` where it is nowhere) do not route."""

    def rule(keys: ClassKeys, num_layers: int) -> list[bool]:
        first = dense if isinstance(dense, int) else keys.optional(dense, minimum=0)
        first = default if first is None else first
        return _routed(keys, num_layers, [layer >= first for layer in range(num_layers)])

    return rule


def dense_then_every(keys: ClassKeys, num_layers: int) -> list[bool]:
    """DeepSeek: behind ``first_k_dense_replace`` layers every ``moe_layer_freq``-th one routes."""
    dense = keys.integer("first_k_dense_replace", minimum=0)
    every = keys.reader.integer("moe_layer_freq", default=1)
    return [layer >= dense and layer % every == 0 for layer in range(num_layers)]


def qwen_steps(keys: ClassKeys, num_layers: int) -> list[bool]:
    """Every ``decoder_sparse_step``-th layer routes, except ``mlp_only_layers``."""
    step = keys.optional("decoder_sparse_step") or 1
    default = [0, 1] if "mlp_only_layers" not in keys.defaults else []
    dense = set(keys.reader.integers("mlp_only_layers", keys.defaults.get("mlp_only_layers") or default))
    return [layer not in dense and (layer + 1) % step == 0 for layer in range(num_layers)]


def ernie_steps(keys: ClassKeys, num_layers: int) -> list[bool]:
    """Every ``moe_layer_interval``-th layer from the start index to the end index (-1 = the last) routes."""
    start, step = keys.integer("moe_layer_start_index", minimum=0), keys.integer("moe_layer_interval")
    end = keys.integer("moe_layer_end_index", minimum=-1)
    end = num_layers - 1 if end == -1 else end
    routed = [(layer + 1) % step == 0 and start <= layer <= end for layer in range(num_layers)]
    return _routed(keys, num_layers, routed)


def hash_routed(keys: ClassKeys, num_layers: int) -> list[bool]:
    """All layers route: the first ones by a table of tokens, the others by scores (deepseek_v4)."""
    _kinds(keys.reader, "mlp_layer_types", num_layers, ("hash_moe", "moe"))
    return [True] * num_layers


def moe_frequency(keys: ClassKeys, num_layers: int) -> list[bool]:
    """A flag a layer (``moe_layer_freq``); all route without it."""
    flags = keys.reader.integers("moe_layer_freq", [1] * num_layers)
    default = [bool(flag) for flag in flags[:num_layers]] + [True] * (num_layers - len(flags))
    return _routed(keys, num_layers, default)


def llama4_steps(keys: ClassKeys, num_layers: int) -> list[bool]:
    """The layers of ``moe_layers``, or every ``interleave_moe_layer_step``-th one."""
    step = keys.integer("interleave_moe_layer_step")
    named = keys.reader.integers("moe_layers", list(range(step - 1, num_layers, step)))
    return [layer in set(named) for layer in range(num_layers)]


def granite_routed(keys: ClassKeys, num_layers: int) -> list[bool]:
    """Every layer routes where there are experts (0 = a dense model)."""
    return [bool(keys.optional("num_local_experts", minimum=0))] * num_layers


def jamba_routed(keys: ClassKeys, num_layers: int) -> list[bool]:
    """One layer of every ``expert_layer_period``, at ``expert_layer_offset``, routes; none with one expert."""
    period, offset = keys.integer("expert_layer_period"), keys.integer("expert_layer_offset", minimum=0)
    several = keys.integer("num_experts") > 1
    return [several and layer % period == offset for layer in range(num_layers)]
