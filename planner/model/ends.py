"""What the two ends of a model have beyond a token table, learned positions, a norm and a vocabulary matmul.

Encoders of the BERT kind add rows of other tables to each token's (segments, tasks, languages), may embed on a width of
their own and map it to the hidden width, and run one more layer (``HeadTransform``) before the vocabulary matmul.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from planner.model.mixers.kinds import NormKind
from planner.model.norm_operators import norm_operator, residual_operator
from planner.model.operator import Module, Operator
from profiles.document import Document


class AddedTable(Document):
    """A table beside the token table: ``rows`` vectors of ``width`` features."""

    name: str = Field(min_length=1)
    rows: int = Field(gt=0)
    width: int = Field(gt=0)
    looked_up: bool = Field(
        default=True,
        exclude_if=lambda on: on,
        description="whether each token reads a row; else the table is held only",
    )


class AdapterSpec(Document):
    """``count`` bottlenecks behind a layer, one a language: down to ``width``, an activation, up again, with biases."""

    width: int = Field(gt=0)
    count: int = Field(gt=0)
    norm: bool = Field(default=False, description="a norm of its own before the bottleneck")


class HeadTransform(Document):
    """What stands before the vocabulary matmul: a projection to ``width``, an activation, a norm."""

    width: int = Field(gt=0)
    bias: bool = True
    norm: NormKind = "layer"


class EndsSpec(Document):
    """Additions to the two ends of a model."""

    tables: tuple[AddedTable, ...] = ()
    input_width: int | None = Field(
        default=None, gt=0, description="features that a projection with bias maps to the hidden width; None = no such"
    )
    narrow: bool = Field(
        default=False, description="positions and the embedding's norm stand before that projection, at its input width"
    )
    transform: HeadTransform | None = None
    head_streams: int = Field(
        default=1,
        gt=0,
        exclude_if=lambda streams: streams == 1,
        description="streams of a token from which the head predicts (prophetnet)",
    )


def table_operator(table: AddedTable, *, of_source: bool = False) -> Operator:
    """Look-up in one table and the sum with what is there already; every tensor-parallel rank holds all of it."""
    parameters = table.rows * table.width
    return Operator(
        name=f"{table.name}_embedding",
        op_class="embedding",
        module="embedding",
        shard="sequence",
        parameters=parameters,
        replicated_parameters=parameters,
        read_width=2 * table.width if table.looked_up else 0,
        write_width=table.width if table.looked_up else 0,
        of_source=of_source,
    )


def input_projection(in_features: int, out_features: int, saved_from: str, *, of_source: bool = False) -> Operator:
    """Projection of what the tables give to the hidden width, with a bias."""
    projected = _linear("embedding_projection", "embedding", in_features, out_features, saved_from)
    return replace(projected, of_source=of_source)


def transform_operators(transform: HeadTransform, hidden_size: int, source: str) -> tuple[Operator, ...]:
    """Projection, activation and norm before the vocabulary matmul."""
    width = transform.width
    activation = Operator(
        name="head_activation",
        op_class="activation",
        module="head",
        shard="sequence",
        read_width=width,
        write_width=width,
        saved_width=width,
        saved_shard="sequence",
        saved_from="head_transform",
    )
    norm = norm_operator("head_norm", width, transform.norm, saved_from="head_activation")
    return (_linear("head_transform", "head", hidden_size, width, source, bias=transform.bias), activation, norm)


def adapter_operators(adapter: AdapterSpec, hidden_size: int, norm: NormKind, source: str) -> tuple[Operator, ...]:
    """Bottlenecks behind a layer: every token runs through one of them; all are held."""
    down = _linear("adapter_down", "mlp", hidden_size, adapter.width, source)
    up = _linear("adapter_up", "mlp", adapter.width, hidden_size, "adapter_activation")
    held = (
        replace(each, parameters=adapter.count * each.parameters, replicated_parameters=adapter.count * each.parameters)
        for each in (down, up)
    )
    first, last = held
    activation = Operator(
        name="adapter_activation",
        op_class="activation",
        module="mlp",
        shard="sequence",
        read_width=adapter.width,
        write_width=adapter.width,
        saved_width=adapter.width,
        saved_shard="sequence",
        saved_from="adapter_down",
    )
    normed = (norm_operator("adapter_norm", hidden_size, norm, saved_from=source),) if adapter.norm else ()
    return (*normed, first, activation, last, residual_operator("adapter_residual", hidden_size))


def _linear(
    name: str, module: Module, in_features: int, out_features: int, saved_from: str, *, bias: bool = True
) -> Operator:
    parameters = in_features * out_features + (out_features if bias else 0)
    return Operator(
        name=name,
        op_class="matmul",
        module=module,
        shard="replicated",
        parameters=parameters,
        replicated_parameters=parameters,
        in_features=in_features,
        out_features=out_features,
        read_width=in_features,
        write_width=out_features,
        saved_width=in_features,
        saved_shard="sequence",
        saved_from=saved_from,
    )
