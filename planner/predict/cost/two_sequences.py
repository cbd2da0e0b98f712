"""An encoder beside a decoder: which layers run over which sequence, and what the encoder's end keeps.

Both run on every stage's devices one after the other (an encoder-decoder has one stage).  Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import layer_width
from planner.model.spec import AttentionSpec, ModelSpec
from planner.predict.cost.layer import working_bytes
from planner.predict.layer_keys import KEY_COLUMNS, LayerKeys, SourcedKeys
from planner.predict.memory.activations import score_biases_bytes
from planner.question.problem import Workload
from planner.question.source import source_of
from solver.arrays import Array


def own_keys(model: ModelSpec, workload: Workload, keys: LayerKeys) -> LayerKeys:
    """The keys with the length of the encoder's sequence or of a tower's tokens, where it is another one."""
    source = source_of(model, workload)
    if source == keys.sequence_length:
        return keys
    columns = {name: getattr(keys, name) for name in (*KEY_COLUMNS, "spread")}
    return SourcedKeys(**columns, sequence_length=keys.sequence_length, routing=keys.routing, source_length=source)


def keys_by_kind(model: ModelSpec, keys: LayerKeys) -> list[LayerKeys]:
    """The keys of each layer kind: those of the encoder run over its own sequence."""
    of_encoder = model.encoder.num_kinds if model.encoder else 0
    return [keys.source if kind < of_encoder else keys for kind in range(len(model.layer_kinds))]


def widths_of(model: ModelSpec) -> list[int]:
    """Width of what each layer kind hands on: its hidden width, times the residual streams, or those of a token."""
    streams = model.stream_size // model.hidden_size
    return [
        streams * (kind.rows.streams if kind.rows else 1) * layer_width(model, number)
        for number, kind in enumerate(model.layer_kinds)
    ]


def encoder_end_bytes(operators: Sequence[Operator], model: ModelSpec, keys: LayerKeys) -> Array:
    """What stays until the backward pass at the encoder's end, its output among it, and biases made for a stack: [K].

    Of a denoiser: what its entry keeps, latents' patches and text states.
    Biases of scores that a first layer makes for all layers of its stack stay also where layers are replayed.
    """
    ends = operators if model.denoiser is not None else [operator for operator in operators if operator.of_source]
    kept = working_bytes(ends, keys)
    for kind, own in zip(model.layer_kinds, keys_by_kind(model, keys), strict=True):
        bias = kind.attention.position_bias if isinstance(kind.attention, AttentionSpec) else None
        if bias is not None and bias.serves:
            kept = kept + score_biases_bytes(kind.attention.num_heads, own)
    return np.asarray(kept)
