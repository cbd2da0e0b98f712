"""The encoder beside a decoder: the first layers of the model's sequence, whose output every decoder layer reads.

``ModelSpec.layer_kinds`` and ``layer_runs`` hold the encoder's layers first, then the decoder's, so that whatever
walks over layers sees both; ``EncoderSpec`` says how many are the encoder's and what stands at its two ends.  Its
layers run over the source sequence, the decoder's over the target; cross-attention (``LayerSpec.cross``) joins them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.ends import AddedTable, table_operator
from planner.model.mixers.kinds import NormKind
from planner.model.norm_operators import norm_operator
from planner.model.operator import Operator
from profiles.document import Document


class ConvFront(Document):
    """Two convolutions over time that turn a spectrum into the encoder's tokens (Whisper): the second halves time."""

    input_width: int = Field(gt=0, description="features of one frame, such as mel bins")
    kernel: int = Field(default=3, gt=0)
    stride: int = Field(default=2, gt=0, description="frames of the spectrum for one token")


class PatchFront(Document):
    """A projection, with a bias, of every patch of an image to one of the encoder's tokens (ViT, pix2struct)."""

    kind: Literal["patches"] = "patches"
    input_width: int = Field(gt=0, description="values of one patch")


class EncoderSpec(Document):
    """The encoder's share of ``layer_runs`` and ``layer_kinds``, and its two ends."""

    num_layers: int = Field(gt=0, description="layers of layer_runs, from the first, that are the encoder's")
    num_kinds: int = Field(gt=0, description="kinds of layer_kinds, from the first, that are the encoder's")
    hidden_size: int | None = Field(default=None, gt=0, description="its width where it is not the decoder's")
    tables: tuple[AddedTable, ...] = Field(
        default=(),
        description="tables of its own, such as positions; a token table only if the decoder's is not shared",
    )
    front: ConvFront | PatchFront | None = Field(default=None, description="what stands in the place of a token table")
    norm: NormKind = "rms"
    embedding_norm: bool = False
    final_norm: bool = True
    sequence_length: int | None = Field(default=None, gt=0, description="tokens of every source; None = as asked")


def encoder_end_operators(encoder: EncoderSpec, hidden_size: int) -> tuple[Operator, ...]:
    """List what stands around the encoder's layers: look-up or convolutions, tables, norms; rows are source tokens.

    The final norm's output is what all decoder layers' keys and values are projected from, so it is kept once, here.
    """
    width = encoder.hidden_size or hidden_size
    operators = list(_front(encoder.front, width)) if encoder.front else [_look_up(width)]
    operators += [table_operator(table, of_source=True) for table in encoder.tables]
    if encoder.embedding_norm:
        operators.append(norm_operator("source_norm", width, encoder.norm, saved_from="", of_source=True))
    if encoder.final_norm:
        operators.append(norm_operator("encoder_norm", width, encoder.norm, saved_from="", of_source=True))
    return (*operators, _states(width))


def _look_up(width: int) -> Operator:
    return Operator(
        name="source_embedding",
        op_class="embedding",
        module="embedding",
        shard="sequence",
        read_width=width,
        write_width=width,
        of_source=True,
    )


def _states(width: int) -> Operator:
    """The encoder's output as the decoder reads it: kept until the first decoder layer's backward pass is done."""
    return Operator(
        name="encoder_states",
        op_class="residual",
        module="residual",
        shard="sequence",
        saved_width=width,
        saved_shard="sequence",
        saved_from="encoder_norm",
        of_source=True,
    )


def _front(front: ConvFront | PatchFront, width: int) -> tuple[Operator, ...]:
    """``2 * kernel * in * out`` FLOPs for each output of a convolution; the first one's are frames."""
    if isinstance(front, PatchFront):
        return (_convolution("patch_projection", front.input_width, width, rows=1),)
    first, second = front.kernel * front.input_width, front.kernel * width
    return (
        _convolution("spectrum_convolution", first, width, rows=front.stride),
        _convolution("time_convolution", second, width, rows=1),
    )


def _convolution(name: str, in_features: int, width: int, rows: int) -> Operator:
    parameters = in_features * width + width
    return Operator(
        name=name,
        op_class="matmul",
        module="embedding",
        shard="replicated",
        parameters=parameters,
        replicated_parameters=parameters,
        in_features=in_features,
        out_features=rows * width,
        read_width=rows * in_features,
        write_width=rows * width,
        saved_width=rows * (in_features + width),
        saved_shard="sequence",
        of_source=True,
    )
