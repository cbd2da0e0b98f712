"""An encoder stack and a decoder stack put together into one ``ModelSpec``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.model.encoder import ConvFront, EncoderSpec, PatchFront
from planner.model.ends import AddedTable, EndsSpec
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.reader import MAX_LAYERS
from planner.model.layer_runs import runs_of
from planner.model.spec import LayerSpec, ModelSpec, NormKind


@dataclass(slots=True)
class EncoderStack:
    """The layers of an encoder and its two ends."""

    layers: list[LayerSpec]
    norm: NormKind
    width: int
    tables: list[AddedTable] = field(default_factory=list)
    front: ConvFront | PatchFront | None = None
    embedding_norm: bool = False
    final_norm: bool = True
    sequence_length: int | None = None


def joined(encoder: EncoderStack, decoder: list[LayerSpec], held: list[AddedTable], **model: Any) -> ModelSpec:
    """The model of both; ``held``: tables beside the decoder's token table, ``model``: the other fields."""
    encoder_kinds, encoder_runs = runs_of(encoder.layers)
    decoder_kinds, decoder_runs = runs_of(decoder)
    shift = len(encoder_kinds)
    return ModelSpec(
        layer_kinds=(*encoder_kinds, *decoder_kinds),
        layer_runs=(*encoder_runs, *(run.model_copy(update={"kind": run.kind + shift}) for run in decoder_runs)),
        encoder=EncoderSpec(
            num_layers=len(encoder.layers),
            num_kinds=shift,
            hidden_size=encoder.width if encoder.width != model["hidden_size"] else None,
            tables=tuple(encoder.tables),
            front=encoder.front,
            norm=encoder.norm,
            embedding_norm=encoder.embedding_norm,
            final_norm=encoder.final_norm,
            sequence_length=encoder.sequence_length,
        ),
        ends=EndsSpec(tables=tuple(held)) if held else None,
        **model,
    )


def layer_count(keys: ClassKeys, key: str) -> int:
    """Number of layers of one stack."""
    count = keys.integer(key)
    if count > MAX_LAYERS:
        keys.reader.refuse(key, f"must be at most {MAX_LAYERS}, is {count}")
    return min(count, MAX_LAYERS)


def apart(name: str, rows: int, width: int, *, looked_up: bool = True) -> AddedTable:
    """A token table beside the decoder's."""
    return AddedTable(name=name, rows=rows, width=width, looked_up=looked_up)
