"""Reads a config by its family's entry in the tables: ``Decoder`` and ``Experts`` -> ``ModelSpec``."""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.layers import windowed
from planner.model.hf_config.reader import MAX_LAYERS, ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.mixers.indexer import IndexerSpec
from planner.model.spec import UNBOUNDED, AttentionSpec, LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec, TokenMixer

_MAX_VOCABULARY = 10_000_000


def import_decoder(reader: ConfigReader, name: str, family: str, table: Decoder) -> ModelSpec:
    """Read a decoder of the tables; keys that are left out take the defaults of the ``transformers`` class."""
    keys = ClassKeys(reader, family)
    for key, mechanism in table.refused:
        if keys.on(key):
            reader.refuse(key, f"asks for {mechanism}, which is not modelled")
    for key in table.without_parameters:
        keys.on(key)
    hidden = keys.width(table.hidden)
    layers = _layers(keys, table, hidden)
    if table.shaped:
        layers = table.shaped(keys, hidden, layers)
    kinds, runs = runs_of(layers)
    entry, exit_parts = table.ends(keys, hidden) if table.ends else ((), ())
    positions = keys.integer(table.positions) if table.positions else UNBOUNDED
    vocabulary = keys.integer("vocab_size")
    if vocabulary > _MAX_VOCABULARY:
        reader.refuse("vocab_size", f"must be at most {_MAX_VOCABULARY}, is {vocabulary}")
        vocabulary = 1
    predicted = keys.optional(table.predicted_layers, minimum=0) if table.predicted_layers else None
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=vocabulary,
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=keys.on("tie_word_embeddings") and table.ties,
        learned_positions=positions + table.extra_positions if table.learned_positions else 0,
        final_norm=table.final_norm,
        head_bias=keys.on(table.head_bias),
        max_sequence_length=positions,
        mtp=MtpSpec(num_layers=predicted, kind=kinds.index(layers[-1])) if predicted else None,
        activation_function=keys.text(table.activation, "gelu"),
        position=table.position,
        rotary_base=_rope_number(keys, "rope_theta", 10000.0),
        norm_epsilon=keys.number(table.epsilon, 1e-5) if table.epsilon else 1e-5,
        embedding_norm=table.embedding_norm,
        residual=table.residual(keys) if table.residual else None,
        entry_parts=entry,
        exit_parts=exit_parts,
    )


def _layers(keys: ClassKeys, table: Decoder, hidden: int) -> list[LayerSpec]:
    num_layers = keys.integer(table.layers)
    if num_layers > MAX_LAYERS:
        keys.reader.refuse(table.layers, f"must be at most {MAX_LAYERS}, is {num_layers}")
        num_layers = 1
    mixers = table.mixers(keys, num_layers, hidden) if table.mixers else [None] * num_layers
    attention: TokenMixer = AbsentMixerSpec()
    if None in mixers or table.latent:  # the keys of latent attention have defaults that are read in any case
        attention = read_latent(keys, table) if table.latent else read_attention(keys, table, hidden)
    for switch in (table.qkv_bias, table.output_bias):
        keys.on(switch)  # read also where no layer has attention
    windows = table.windows(keys, num_layers) if table.windows else [None] * num_layers
    routes = table.experts.layers(keys, num_layers) if table.experts else [False] * num_layers
    moe = read_moe(keys, table.experts) if table.experts else None
    mlp = None if all(routes) or table.without_mlp else _mlp(keys, table, hidden)
    parallel = keys.on(table.parallel)
    num_norms = 4 if keys.on(table.four_norms) else 1 if parallel or table.without_mlp else table.num_norms
    layer = LayerSpec.model_construct(
        attention=attention,
        beside=table.beside(keys, hidden) if table.beside else None,
        norm=table.norm,
        num_norms=num_norms,
        norm_placement=table.norm_placement,
        parallel_residual=parallel,
    )
    return [
        layer.model_copy(
            update={
                "attention": mixer or _attention(keys, attention, window, index),
                "norm_placement": (table.mixer_norm_placement if mixer else None) or table.norm_placement,
                "mlp": None if routed else mlp,
                "moe": moe if routed else None,
            }
        )
        for index, (mixer, window, routed) in enumerate(zip(mixers, windows, routes, strict=True))
    ]


def _attention(keys: ClassKeys, attention: TokenMixer, window: int | None, layer: int) -> TokenMixer:
    """The family's attention as one layer has it: its window, or whether it chooses tokens itself."""
    if not isinstance(attention, AttentionSpec) or attention.indexer is None:
        return windowed(attention, window) if isinstance(attention, AttentionSpec) else attention
    kinds = keys.reader.strings("indexer_types")
    if kinds is None or layer >= len(kinds) or kinds[layer] == "full":
        return attention
    indexer = attention.indexer.model_copy(update={"reuses_choice": True})
    return attention.model_copy(update={"indexer": indexer})


def _mlp(keys: ClassKeys, table: Decoder, hidden: int) -> MlpSpec:
    width = (
        table.dense_width(keys) if table.dense_width else keys.optional(table.dense_intermediate or table.intermediate)
    )
    return MlpSpec(intermediate_size=width or 4 * hidden, gated=table.gated, bias=keys.on(table.mlp_bias))


def read_attention(keys: ClassKeys, table: Decoder, hidden: int) -> AttentionSpec:
    """Grouped-query attention, without its windows."""
    reader, heads = keys.reader, keys.integer(table.heads)
    kv_heads = (keys.optional(table.kv_heads) if table.kv_heads else None) or heads
    if heads % kv_heads:
        reader.refuse(table.kv_heads or table.heads, f"must divide {table.heads} = {heads}, is {kv_heads}")
        kv_heads = heads
    head_dim = keys.optional(table.head_dim) if table.head_dim else None
    exact = head_dim is not None or hidden % heads == 0
    if head_dim is None:
        if not exact and (table.divided_heads or not table.head_dim):
            reader.refuse(table.heads, f"must divide the hidden size {hidden}, is {heads}")
        head_dim = max(hidden // heads, 1)
    if table.even_heads and heads * head_dim != hidden:
        reader.refuse("head_dim", f"must be {hidden} / {heads}, the only one with which the class runs; is {head_dim}")
    rotated = _rotated(keys, table, head_dim)
    if exact and table.position == "rope" and (rotated or head_dim) % 2:
        reader.refuse(table.head_dim or "head_dim", f"must be even for rotary positions, is {head_dim}")
    normed = table.qk_norm != "none" and keys.on(table.qk_norm_key)
    return AttentionSpec(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=keys.on(table.qkv_bias),
        output_bias=keys.on(table.output_bias),
        qk_norm=table.qk_norm if normed else "none",
        qk_norm_bias=normed and table.qk_norm_bias,
        sinks=keys.on(table.sinks),
        output_gate=table.output_gate,
        logit_softcap=keys.reader.optional_number(table.softcap, default=keys.defaults.get(table.softcap))
        if table.softcap
        else None,
        qk_rope_head_dim=rotated,
    )


def read_latent(keys: ClassKeys, table: Decoder) -> AttentionSpec:
    """Multi-head latent attention (arXiv 2405.04434, section 2.1); the bias reaches the down projections too."""
    heads = keys.integer(table.heads)
    rope_dim = keys.integer("qk_rope_head_dim", minimum=0 if table.position == "none" else 1)
    if rope_dim % 2:
        keys.reader.refuse("qk_rope_head_dim", f"must be even for rotary positions, is {rope_dim}")
    bias = keys.on(table.qkv_bias)
    return AttentionSpec(
        kind="mla",
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=keys.integer("qk_nope_head_dim") + rope_dim,
        v_head_dim=keys.integer("v_head_dim"),
        qkv_bias=bias,
        output_bias=bias,
        q_lora_rank=keys.optional("q_lora_rank"),
        kv_lora_rank=keys.integer("kv_lora_rank"),
        qk_rope_head_dim=rope_dim,
        indexer=_indexer(keys, table) if table.indexer else None,
    )


def _indexer(keys: ClassKeys, table: Decoder) -> IndexerSpec:
    """Indexer of sparse attention; ``layer_types`` must say the same of every layer."""
    names = set(keys.reader.strings("layer_types") or ())
    for name in sorted(names - {"indexed_attention", "deepseek_sparse_attention", *table.unindexed}):
        keys.reader.refuse("layer_types", f"holds {name!r}; only indexed_attention is read for this model_type")
    return IndexerSpec(
        num_heads=keys.integer("index_n_heads"),
        head_dim=keys.integer("index_head_dim"),
        top_k=keys.integer("index_topk"),
        reads_query_latent=table.indexer_reads_latent,
    )


def read_moe(keys: ClassKeys, experts: Experts) -> MoeSpec:
    """The mixture of experts; impossible numbers are findings."""
    reader, count, top_k = keys.reader, keys.integer(experts.count), keys.integer(experts.top_k)
    if top_k > count:
        reader.refuse(experts.top_k, f"must not exceed the {count} experts, is {top_k}")
        top_k = count
    if experts.only_top_k not in (None, top_k):
        reader.refuse(experts.top_k, f"must be {experts.only_top_k}, the only one that the class computes, is {top_k}")
    groups = (keys.optional("n_group") if experts.groups else None) or 1
    top_groups = (keys.optional("topk_group") if experts.groups else None) or groups
    if count % groups:
        reader.refuse("n_group", f"must divide the {count} experts, is {groups}")
    if top_groups > groups:
        reader.refuse("topk_group", f"must not exceed n_group = {groups}, is {top_groups}")
    width = keys.width(experts.width) if isinstance(experts.width, str) else experts.width(keys)
    if experts.shared_width is not None:
        shared = keys.optional(experts.shared_width, minimum=0) or 0
    elif isinstance(experts.shared, str):
        shared = width * (keys.optional(experts.shared, minimum=0) or 0)
    else:
        shared = width * experts.shared
    return MoeSpec(
        num_experts=count,
        top_k=top_k,
        expert_intermediate_size=width,
        expert_bias=keys.on(experts.expert_bias),
        router_bias=keys.on(experts.router_bias),
        shared_intermediate_size=shared,
        shared_bias=keys.on(experts.shared_bias),
        shared_gate=experts.shared_gate,
        score_function=experts.score_function,
        num_groups=groups,
        top_k_groups=top_groups,
    )


def _rotated(keys: ClassKeys, table: Decoder, head_dim: int) -> int | None:
    """Rotated width of a head, or None where all of it rotates."""
    if table.position != "rope":
        return None
    if table.rotary_dim is not None:
        rotated = keys.optional(table.rotary_dim) or head_dim
    else:
        factor = _rope_number(keys, "partial_rotary_factor", 1.0)
        if factor > 1:
            keys.reader.refuse("partial_rotary_factor", f"must be at most 1, is {factor}")
        rotated = int(head_dim * min(factor, 1.0))
    return rotated if 0 < rotated < head_dim else None


def _rope_number(keys: ClassKeys, key: str, default: float) -> float:
    """A number of the rotary embedding: at the top, in ``rope_parameters``, or there under a kind of layer."""
    value = keys.number(key, default)
    for holder in ("rope_parameters", "rope_scaling"):
        nested = keys.reader.data.get(holder)
        if not isinstance(nested, dict):
            continue
        child = keys.reader.child(holder)
        kind = next(
            (kind for kind in ("full_attention", "sliding_attention") if isinstance(nested.get(kind), dict)), None
        )
        value = (child.child(kind) if kind else child).number(key, default=value)
    return value
