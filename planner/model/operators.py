"""The operators that a model runs for each token, and what each keeps for the backward pass.

``layer_operators`` lists one transformer layer, ``embedding_operators`` and ``head_operators`` the two ends,
``mtp_operators`` what a multi-token-prediction module runs around its layer, ``tower_operators`` one layer of a tower
(its tokens are patches or frames).

What is kept (``saved_width``), for bf16 training with flash attention, fused SwiGLU/GELU and fused cross-entropy, as
in Megatron-Core with TransformerEngine.  Source: Korthikanti et al., arXiv 2205.05198, section 4.1: a GPT layer keeps
``34 * s*b*h`` bytes, of which 2 are the byte masks of the two hidden-wide dropouts.  Masks are left out here, so a
GPT layer keeps ``16`` elements = 32 bytes a token and hidden feature:

    norm inputs 2h, inputs of qkv and of the first MLP matmul 2h, q k v 3h, input of the output projection h,
    input and output of the non-linearity 4h + 4h                                         = 16h elements

* Each tensor is counted once, at the first operator that keeps it: the norm output that feeds q, k and v; the tensor
  that router, shared experts and dispatch all read; gate and up, both inputs of one SwiGLU.
* Flash attention keeps q, k, v and its output (counted at the output projection), not the s x s scores.
* Row statistics (norm 1-2, log-sum-exp one fp32 a head) are left out: below 0.3 % of a layer.
* ``saved_shard`` ``sequence`` = the input of a column-parallel matmul, kept sequence-sharded under sp and gathered
  again for the weight gradient (section 4.2.2 of the paper).
* The loss keeps the fp32 softmax of the logits, ``4 * s*b*v`` bytes (section 4.3 of the paper).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from planner.model.denoiser import denoiser_entry, denoiser_exit, two_streams
from planner.model.encoder import encoder_end_operators
from planner.model.ends import adapter_operators, input_projection, table_operator, transform_operators
from planner.model.layer_parts import block_parts, part_operator
from planner.model.layer_rows import RowsSpec, with_rows
from planner.model.mixers import mixer_operators
from planner.model.mixers.cross import cross_operators
from planner.model.mlp_operators import mlp_operators, moe_operators
from planner.model.norm_operators import norm_operator, residual_operator
from planner.model.operator import Operator
from planner.model.residual import ResidualSpec, read_streams, write_streams
from planner.model.spec import LayerSpec, ModelSpec, TowerRun
from planner.model.trace import entry_operators, exit_operators


def layer_operators(spec: ModelSpec, kind: int) -> tuple[Operator, ...]:
    """List what one layer of kind ``kind`` runs, in order; names are unique within the layer."""
    if spec.traced is not None:
        mixer = spec.layer_kinds[kind].attention
        return mixer_operators(mixer, spec.hidden_size, norm=spec.layer_kinds[kind].norm, rope=False, input_from="")
    return _of_kind(spec.layer_kinds[kind], layer_width(spec, kind), spec.position == "rope", spec.residual)


@lru_cache(maxsize=1024)
def _of_kind(layer: LayerSpec, width: int, rope: bool, residual: ResidualSpec | None) -> tuple[Operator, ...]:
    """The same for layers that are alike in every model that has them: whoever costs a model asks again."""
    operators = _transformer_layer(layer, width, rope=rope, residual=residual)
    if layer.joint is not None:
        operators = two_streams(layer.joint, operators, {part.name for part in layer.parts})
    if layer.rows is not None:
        operators = with_rows(operators, layer.rows)
    if not layer.reuses_weights:
        return operators
    # Its weights, gradients and optimizer state are those of the layer that has them.
    return tuple(replace(operator, parameters=0, replicated_parameters=0) for operator in operators)


def layer_width(spec: ModelSpec, kind: int) -> int:
    """Hidden width of the layers of one kind: the model's, or that of its encoder."""
    encoder = spec.encoder
    return (encoder.hidden_size or spec.hidden_size) if encoder and kind < encoder.num_kinds else spec.hidden_size


def tower_operators(run: TowerRun) -> tuple[Operator, ...]:
    """List what one layer of a tower runs for each of its patches or frames.

    Front end and projector are not listed: see ``extra_parameters`` and ``ends_flops_per_item`` of the tower.
    """
    return _transformer_layer(run.layer, run.hidden_size, rope=run.rope)


def vision_operators(spec: ModelSpec) -> tuple[Operator, ...]:
    """The same of the first layers of the vision tower; empty without one."""
    return () if spec.vision is None else tower_operators(spec.vision.runs[0])


def _transformer_layer(
    layer: LayerSpec, hidden_size: int, *, rope: bool, residual: ResidualSpec | None = None
) -> tuple[Operator, ...]:
    parts = _parts(layer)
    sandwiched = layer.num_norms == (6 if "cross" in parts else 4)
    pre = layer.num_norms > 0 and (layer.norm_placement == "pre" or sandwiched)
    if layer.parallel_residual:
        return _parallel_layer(layer, hidden_size, rope=rope)
    operators: list[Operator] = []
    stream = ""
    for block in parts:
        source = stream
        if residual is not None:
            operators += read_streams(residual, block, hidden_size, stream)
            source = operators[-1].name
        # A single norm in a sequential layer stands before its first part.
        norm = (layer.cross.norm or layer.norm) if layer.cross and block == "cross" else layer.norm
        if pre and norm != "absent" and (not operators or layer.num_norms > 1):
            operators.append(norm_operator(f"{block}_norm", hidden_size, norm, saved_from=source))
            source = f"{block}_norm"
        operators += _block(layer, hidden_size, block, source, rope=rope)
        if sandwiched or (layer.norm_placement == "post_branch" and layer.num_norms > 0):
            name = f"{block}_post_norm"
            operators.append(norm_operator(name, hidden_size, layer.norm, saved_from=operators[-1].name))
        if residual is not None:
            operators += write_streams(residual, block, hidden_size, operators[-1].name)
        else:
            operators.append(residual_operator(f"{block}_residual", hidden_size))
        stream = f"{block}_residual"
        if layer.norm_placement == "post_residual" and layer.num_norms > 0:
            operators.append(norm_operator(f"{block}_norm", hidden_size, layer.norm, saved_from=stream))
            stream = f"{block}_norm"
    if layer.adapter is not None:
        operators += adapter_operators(layer.adapter, hidden_size, layer.norm, stream)
    return tuple(operators)


def _parts(layer: LayerSpec) -> tuple[str, ...]:
    """The parts of a sequential layer; a layer of one part only has one norm and one sum."""
    if layer.attention.kind == "none":
        return ("mlp",)
    alone = layer.mlp is None and layer.moe is None and layer.num_norms == 1
    if layer.cross is not None and not layer.cross.merged:
        return ("attention", "cross", "mlp")
    return ("attention",) if alone else ("attention", "mlp")


def _parallel_layer(layer: LayerSpec, hidden_size: int, *, rope: bool) -> tuple[Operator, ...]:
    """Attention and MLP read the same layer input, each through its own norm or both through one."""
    own_norm = layer.num_norms > 1
    operators = [norm_operator("attention_norm", hidden_size, layer.norm, saved_from="")]
    operators += _block(layer, hidden_size, "attention", "attention_norm", rope=rope)
    if own_norm:
        operators.append(norm_operator("mlp_norm", hidden_size, layer.norm, saved_from="", shares_input=True))
    source = "mlp_norm" if own_norm else "attention_norm"
    operators += _block(layer, hidden_size, "mlp", source, rope=rope, input_kept=not own_norm)
    operators.append(residual_operator("residual", hidden_size, num_terms=3))
    return tuple(operators)


def _mixers(layer: LayerSpec, hidden_size: int, source: str, *, rope: bool) -> tuple[Operator, ...]:
    """The token mixer, and the one beside it, which reads the same tensor (kept once)."""
    first = mixer_operators(layer.attention, hidden_size, norm=layer.norm, rope=rope, input_from=source)
    if layer.beside is None:
        return first
    second = mixer_operators(layer.beside, hidden_size, norm=layer.norm, rope=rope, input_from=source)
    renamed = [replace(op, name=f"beside_{op.name}", saved_from=f"beside_{op.saved_from}") for op in second[1:]]
    start = replace(second[0], name=f"beside_{second[0].name}", saved_width=0, saved_shard=None, saved_from="")
    return (*first, start, *renamed, residual_operator("mixer_sum", hidden_size))


def _block(
    layer: LayerSpec, hidden_size: int, block: str, source: str, *, rope: bool, input_kept: bool = False
) -> tuple[Operator, ...]:
    if block == "attention":
        merged = layer.cross is not None and layer.cross.merged
        return (
            *_mixers(layer, hidden_size, source, rope=rope),
            *(cross_operators(layer.cross, hidden_size, input_from=source) if layer.cross and merged else ()),
            *block_parts(layer.parts, "attention", "attention"),
        )
    if block == "cross" and layer.cross is not None:
        return cross_operators(layer.cross, hidden_size, input_from=source)
    operators: tuple[Operator, ...] = ()
    if layer.moe is not None:
        operators = moe_operators(layer.moe, hidden_size, input_from=source, input_kept=input_kept)
    if layer.mlp is not None:
        kept = input_kept or layer.moe is not None
        operators += mlp_operators(layer.mlp, hidden_size, input_from=source, input_kept=kept)
    if layer.experts_beside:
        operators += (residual_operator("experts_sum", hidden_size),)
    return (*operators, *block_parts(layer.parts, "mlp", "mlp" if layer.moe is None else "moe"))


def embedding_operators(spec: ModelSpec) -> tuple[Operator, ...]:
    """List what turns token ids (or latents) into the first layer's input: look-up, positions, norm."""
    if spec.denoiser is not None:
        return denoiser_entry(spec.denoiser, spec.hidden_size)
    if spec.traced is not None:
        return entry_operators(spec.traced)
    width, ends = spec.embedding_size or spec.hidden_size, spec.ends
    inside = ends is not None and ends.narrow
    operators = list(encoder_end_operators(spec.encoder, spec.hidden_size)) if spec.encoder else []
    operators += [
        Operator(
            name="token_embedding",
            op_class="embedding",
            module="embedding",
            shard="vocabulary",
            parameters=(spec.vocab_size + spec.further_embedding_rows) * width,
            read_width=width,
            write_width=width,
        )
    ]
    if ends is not None:
        operators += [table_operator(table) for table in ends.tables]
        if ends.input_width is not None and not inside:
            operators.append(input_projection(ends.input_width, spec.hidden_size, "token_embedding"))
    elif width != spec.hidden_size:
        operators.append(_resize("embedding_projection", width, spec.hidden_size, "token_embedding"))
    width = width if inside else spec.hidden_size
    if spec.learned_positions:
        parameters = spec.learned_positions * width
        operators.append(
            Operator(
                name="position_embedding",
                op_class="embedding",
                module="embedding",
                shard="sequence",
                parameters=parameters,
                replicated_parameters=parameters,
                read_width=2 * width,
                write_width=width,
            )
        )
    if spec.embedding_norm:
        norm = spec.layer_kinds[0].norm
        operators.append(norm_operator("embedding_norm", width, norm, saved_from="token_embedding"))
    operators += [part_operator(part, "embedding") for part in spec.entry_parts]
    if ends is not None and ends.input_width is not None and inside:
        operators.append(input_projection(ends.input_width, spec.hidden_size, "embedding_norm"))
    return tuple(operators)


def _resize(name: str, in_features: int, out_features: int, saved_from: str) -> Operator:
    """Projection between embedding width and hidden width (opt-350m), without bias."""
    return Operator(
        name=name,
        op_class="matmul",
        module="embedding",
        shard="replicated",
        parameters=in_features * out_features,
        replicated_parameters=in_features * out_features,
        in_features=in_features,
        out_features=out_features,
        read_width=in_features,
        write_width=out_features,
        saved_width=in_features,
        saved_shard="sequence",
        saved_from=saved_from,
    )


def head_operators(spec: ModelSpec) -> tuple[Operator, ...]:
    """List what turns the last layer's output into the loss: final norm, vocabulary matmul, cross-entropy.

    With tied embeddings the matmul has no parameters of its own, but runs all the same; a pipeline whose last stage
    is not its first holds a copy of the ``in_features * out_features`` weight.
    """
    if spec.denoiser is not None:
        return denoiser_exit(spec.denoiser)
    if spec.traced is not None:
        return (*exit_operators(spec.traced, spec.vocab_size), _loss(spec.vocab_size))
    operators: list[Operator] = []
    source, width = "", spec.hidden_size
    # Not "head": they count with the final norm, not with the weight that embeddings may be tied to.
    operators += [part_operator(part, "norm") for part in spec.exit_parts]
    if spec.final_norm:
        operators.append(norm_operator("final_norm", width, spec.layer_kinds[-1].norm, saved_from=source))
        source = "final_norm"
    if spec.ends is not None and spec.ends.transform is not None:
        operators += transform_operators(spec.ends.transform, width, source)
        source, width = "head_norm", spec.ends.transform.width
    elif spec.embedding_size is not None and spec.embedding_size != width:
        operators.append(_resize("head_projection", width, spec.embedding_size, source))
        source, width = "head_projection", spec.embedding_size
    weight = 0 if spec.tie_embeddings else width * spec.vocab_size
    operators += [
        Operator(
            name="lm_head",
            op_class="matmul",
            module="head",
            shard="vocabulary",
            parameters=weight + (spec.vocab_size if spec.head_bias else 0),
            in_features=width,
            out_features=spec.vocab_size,
            read_width=width,
            write_width=spec.vocab_size,
            saved_width=width,
            saved_shard="sequence",
            saved_from=source,
        ),
        _loss(spec.vocab_size),
    ]
    streams = spec.ends.head_streams if spec.ends else 1
    return tuple(operators) if streams == 1 else with_rows(operators, RowsSpec(streams=streams))


def _loss(vocab_size: int) -> Operator:
    return Operator(
        name="cross_entropy",
        op_class="cross_entropy",
        module="head",
        shard="vocabulary",
        read_width=vocab_size,
        write_width=vocab_size,
        saved_width=vocab_size,
        saved_shard="vocabulary",
        saved_bytes_per_element=4.0,
        saved_from="lm_head",
    )


def mtp_operators(spec: ModelSpec) -> tuple[Operator, ...]:
    """List what one multi-token-prediction module runs besides its layer; empty without modules.

    Two norms (hidden state, embedding of the next token), the projection 2h -> h, and the norm before the shared
    head (arXiv 2412.19437, section 2.2).  Its layer is ``layer_operators(spec, spec.mtp.kind)``; it also runs the
    look-up, the vocabulary matmul and the loss once more, with the main model's weights.
    """
    if spec.mtp is None:
        return ()
    width, norm = spec.hidden_size, spec.layer_kinds[spec.mtp.kind].norm
    projection = Operator(
        name="mtp_projection",
        op_class="matmul",
        module="mtp",
        shard="column",
        parameters=2 * width * width,
        in_features=2 * width,
        out_features=width,
        read_width=2 * width,
        write_width=width,
        saved_width=2 * width,
        saved_shard="sequence",
        saved_from="mtp_hidden_norm",
    )
    return (
        norm_operator("mtp_embedding_norm", width, norm, saved_from=""),
        norm_operator("mtp_hidden_norm", width, norm, saved_from=""),
        projection,
        norm_operator("mtp_final_norm", width, norm, saved_from=""),
    )
