"""Encoders of the BERT kind with a language model's head, by a table: ``model_type`` -> ``Bert``.

Segment and other tables added to the token's, a norm on the embedding, learned positions, layers with norms behind the
residual sums (or before the branches), a transform before the vocabulary matmul.  Attention sees both sides unless
``is_decoder`` is set.  Shapes: ``transformers`` 5.23 modeling files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.model.ends import AdapterSpec, AddedTable, EndsSpec, HeadTransform
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.reader import MAX_LAYERS, ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, ModelSpec, NormPlacement

Tables = Callable[[ClassKeys, int], list[AddedTable]]
"""The added tables of a config, given the width at which tokens are embedded."""


@dataclass(frozen=True, slots=True)
class Bert:
    """What one family has beyond a plain BERT."""

    hidden: str = "hidden_size"
    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    intermediate: str | None = "intermediate_size"
    """None: four times the hidden width."""
    positions: bool = True
    """Whether the positions are a learned table."""
    activation: str = "hidden_act"
    bias: bool | str = True
    norm_placement: NormPlacement = "post_residual"
    embedding_norm: bool = True
    tables: Tables | None = None
    transform: bool = True
    head_bias: bool = True
    embedding_size: str | None = None
    """Key of the width at which tokens are embedded, where it may differ from the hidden width."""
    always_maps: bool = False
    """Whether the embedding is mapped to the hidden width also where the two are equal."""
    output_size: str | None = None
    """Key of the head's width, where the head is not tied to the token table."""
    untied_twice: bool = True
    """Whether a head that is not tied has a bias of its own beside the class's."""
    block_sparse: bool = False
    adapters: bool = False
    causal: str = "is_decoder"


def import_bert(
    reader: ConfigReader, name: str, family: str, table: Bert | None = None, *, crossed: bool = False
) -> ModelSpec:
    """Read an encoder of the BERT kind with its language model's head.

    ``table``: that of a model inside another's config; ``crossed``: one that stands behind another.
    """
    table, keys = table or BERTS[family], ClassKeys(reader, family)
    if reader.boolean("add_cross_attention", default=False) != crossed:
        said = "must be true behind an encoder" if crossed else "is not read: there is no encoder beside this model"
        reader.refuse("add_cross_attention", said)
    hidden = keys.width(table.hidden)
    count = keys.integer(table.layers)
    if count > MAX_LAYERS:
        reader.refuse(table.layers, f"must be at most {MAX_LAYERS}, is {count}")
    layer = _layer(keys, table, hidden)
    kinds, runs = runs_of([layer] * min(count, MAX_LAYERS))
    positions = keys.integer("max_position_embeddings")
    width = (keys.optional(table.embedding_size) if table.embedding_size else None) or hidden
    tied = keys.on("tie_word_embeddings") and table.output_size is None
    vocabulary = keys.integer("vocab_size")
    output = keys.width(table.output_size) if table.output_size else width
    ends = EndsSpec(
        tables=(
            *(table.tables(keys, width) if table.tables else ()),
            *(second_bias(vocabulary) if table.untied_twice and not tied else ()),
        ),
        input_width=_input_width(keys, table, family, width, hidden),
        narrow=table.embedding_size is not None,
        transform=HeadTransform(width=output) if table.transform else None,
    )
    return ModelSpec(
        name=name,
        family=family,
        hidden_size=hidden,
        vocab_size=vocabulary,
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=tied,
        learned_positions=positions if table.positions else 0,
        embedding_size=width if width != hidden else None,
        embedding_norm=table.embedding_norm,
        final_norm=layer.norm_placement == "pre",
        head_bias=table.head_bias,
        max_sequence_length=positions,
        ends=None if ends == EndsSpec() else ends,
        activation_function=keys.text(table.activation, "gelu"),
        position="learned" if table.positions else "rope",
        norm_epsilon=keys.number("layer_norm_eps", 1e-12),
    )


def _layer(keys: ClassKeys, table: Bert, hidden: int) -> LayerSpec:
    heads = keys.integer(table.heads)
    head_dim = divided_heads(keys.reader, table.heads, hidden, heads)
    width = keys.width(table.intermediate) if table.intermediate else 4 * hidden
    return LayerSpec(
        attention=AttentionSpec(
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            qkv_bias=keys.on(table.bias),
            output_bias=True,
            causal=keys.reader.boolean(table.causal, default=False),
            sliding_window=block_sparse_window(keys) if table.block_sparse else None,
        ),
        adapter=_adapter(keys, hidden) if table.adapters else None,
        mlp=MlpSpec(intermediate_size=width, gated=False, bias=True),
        norm="layer",
        norm_placement="pre" if table.adapters and keys.on("pre_norm") else table.norm_placement,
    )


def block_sparse_window(keys: ClassKeys) -> int | None:
    """Tokens that a token sees in BigBird's attention: three blocks around it, two global and the random ones.

    Source: arXiv 2007.14062, section 2; the class attends in full where the sequence is not longer than that.
    """
    kind, block = keys.text("attention_type", "block_sparse"), keys.integer("block_size")
    random = keys.integer("num_random_blocks", minimum=0)
    return (5 + random) * block if kind == "block_sparse" else None


def _adapter(keys: ClassKeys, hidden: int) -> AdapterSpec | None:
    languages = keys.reader.strings("languages")
    count = 1 if languages is None else len(set(languages))
    width = hidden // keys.integer("adapter_reduction_factor")
    for key in ("adapter_reuse_layer_norm", "ln_before_adapter"):
        keys.on(key)  # where the layer's own norm runs again: no parameters
    if width == 0 or count == 0:
        keys.reader.refuse("languages" if width else "adapter_reduction_factor", "leaves no adapter")
        return None
    return AdapterSpec(width=width, count=count, norm=keys.on("adapter_layer_norm"))


def _input_width(keys: ClassKeys, table: Bert, family: str, width: int, hidden: int) -> int | None:
    """Features that are mapped to the hidden width: the embedding's own, or (roc_bert) all tables' side by side."""
    if family == "roc_bert":
        joined = ("pronunciation", "shape") if keys.on("concat_input") else ()
        sizes = [keys.integer(f"{each}_embed_dim") for each in joined if keys.on(f"enable_{each}")]
        return hidden + sum(sizes) if joined else None
    return width if table.embedding_size and (table.always_maps or width != hidden) else None


def second_bias(vocabulary: int) -> list[AddedTable]:
    """The class adds one bias and holds two where its head is not tied."""
    return [AddedTable(name="second_bias", rows=vocabulary, width=1, looked_up=False)]


def _segments(keys: ClassKeys, width: int) -> list[AddedTable]:
    rows = keys.integer("type_vocab_size", minimum=0)
    return [AddedTable(name="segment", rows=rows, width=width)] if rows else []


def _segments_and_pooler(keys: ClassKeys, width: int) -> list[AddedTable]:
    """The class holds a projection of the first token that the loss does not use."""
    return [*_segments(keys, width), AddedTable(name="pooler", rows=width + 1, width=width, looked_up=False)]


def _segments_and_tasks(keys: ClassKeys, width: int) -> list[AddedTable]:
    tasks = keys.on("use_task_id")
    rows = keys.integer("task_type_vocab_size") if tasks else 0
    return [*_segments(keys, width), *([AddedTable(name="task", rows=rows, width=width)] if tasks else [])]


def _segments_and_rotation(keys: ClassKeys, width: int) -> list[AddedTable]:
    """The class keeps the sines and cosines of its rotary positions as a frozen table of parameters."""
    rows, heads = keys.integer("max_position_embeddings"), keys.integer("num_attention_heads")
    head_dim = max(keys.width("hidden_size") // heads, 1)
    rotation = AddedTable(name="rotation", rows=rows, width=head_dim, looked_up=False)
    return [*_segments(keys, width), rotation]


def _languages(keys: ClassKeys, width: int) -> list[AddedTable]:
    rows, used = keys.integer("n_langs"), keys.on("use_lang_emb")
    return [AddedTable(name="language", rows=rows, width=width)] if rows > 1 and used else []


def _shapes_and_sounds(keys: ClassKeys, width: int) -> list[AddedTable]:
    tables = _segments(keys, width)
    for name in ("pronunciation", "shape"):
        rows, inner = keys.integer(f"{name}_vocab_size"), keys.integer(f"{name}_embed_dim")
        tables.append(AddedTable(name=name, rows=rows, width=inner, looked_up=keys.on(f"enable_{name}")))
    return tables


_BERT = Bert(tables=_segments)
_PRE = replace(_BERT, norm_placement="pre")

BERTS: dict[str, Bert] = {
    **dict.fromkeys(("bert", "camembert", "data2vec-text", "roberta", "xlm-roberta"), _BERT),
    "bert-generation": Bert(transform=False),
    "big_bird": replace(_BERT, bias="use_bias", tables=_segments_and_pooler, block_sparse=True),
    "electra": replace(_BERT, embedding_size="embedding_size", untied_twice=False),
    "ernie": replace(_BERT, tables=_segments_and_tasks),
    "megatron-bert": replace(_PRE, embedding_norm=False),
    "rembert": replace(
        _BERT,
        embedding_size="input_embedding_size",
        always_maps=True,
        output_size="output_embedding_size",
        untied_twice=False,
    ),
    "roberta-prelayernorm": _PRE,
    "roc_bert": replace(_BERT, tables=_shapes_and_sounds),
    "roformer": replace(_BERT, positions=False, tables=_segments_and_rotation, embedding_size="embedding_size"),
    "xlm": Bert(
        hidden="emb_dim",
        layers="n_layers",
        heads="n_heads",
        intermediate=None,
        tables=_languages,
        transform=False,
        untied_twice=False,
        causal="causal",
    ),
    "xlm-roberta-xl": replace(_PRE, embedding_norm=False),
    "xmod": replace(_BERT, adapters=True),
}
