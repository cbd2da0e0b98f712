"""Low-rank adapters of a row: which matrices they stand beside, how many parameters, and what they cost.

Notes name rank and matrices ("LoRA r=16 on q,k,v,o", "rank 64 on all linear layers"); a row that does not is taken at
rank 16 on every linear layer.  Adapter parameters are trained in fp32 (PEFT casts them, peft ``cast_adapter_dtype``):
16 bytes each with Adam.  Beside each adapted matmul run, in PEFT's eager form, dropout of the input, two thin matmuls,
a scale and a sum: ``PLAIN_PASSES`` reads or writes of a hidden-wide tensor; fused forms need ``FUSED_PASSES``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.evidence.runs.software import SoftwareDescription
from planner.model.parameters import embedding_parameters, head_parameters
from planner.model.spec import LayerSpec, ModelSpec

RANK = re.compile(r"\br\s?=\s?(\d+)|\brank (\d+)", re.IGNORECASE)
USUAL_RANK = 16
TARGETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"all linear", ("q", "k", "v", "o", "gate", "up", "down")),
    (r"c_attn/c_proj/w1/w2", ("qkv", "o", "gate", "up", "down")),
    (r"linear_qkv\+linear_proj", ("qkv", "o")),
    (r"\(q,v,o \+ MLP\)", ("q", "v", "o", "gate", "up", "down")),
    (r"q,k,v,o", ("q", "k", "v", "o")),
    (r"\(q,v\)", ("q", "v")),
)
"""Words of notes and the matrices that they mean; first match wins."""
ENDS_TOO = re.compile(r"embedding and output layer trained", re.IGNORECASE)
TRAINED_BYTES = 16.0
"""fp32 weight, gradient and two moments of a trained adapter parameter."""
PLAIN_PASSES = 9.5
"""Hidden-wide 16-bit tensors that PEFT's eager adapter moves in one pass beside one matmul: dropout reads, writes and
masks (2.5), the first matmul reads (1), the second writes (1), the scale reads and writes (2), the sum reads two and
writes one (3)."""
FUSED_PASSES = 4.0
"""Without dropout and with scale and sum in the matmuls (fused adapter kernels): two reads, one write, one sum."""
KERNELS = (6.0, 8.0)
"""Launches of one adapter, forward and backward, in PEFT's eager form."""


@dataclass(frozen=True, slots=True)
class Adapters:
    """Adapters of one layer kind: their number, parameters, and whether the model's ends are trained too."""

    count: int
    parameters: float
    end_parameters: float


def adapters_of(notes: str, model: ModelSpec) -> Adapters:
    """What learns in a run of adapters: of the whole model."""
    match = RANK.search(notes)
    rank = int(next(group for group in match.groups() if group)) if match else USUAL_RANK
    names = next((found for words, found in TARGETS if re.search(words, notes)), TARGETS[0][1])
    kinds = model.layer_kind_sequence()
    parameters = sum(
        rank * _widths(name, model.layer_kinds[kind], model.hidden_size) for kind in kinds for name in names
    )
    ends = embedding_parameters(model) + head_parameters(model) if ENDS_TOO.search(notes) else 0
    return Adapters(len(names) * len(kinds), float(parameters), float(ends))


def _widths(name: str, layer: LayerSpec, hidden: int) -> int:
    """Input and output features of one matrix; experts have none of their own."""
    attention = layer.attention
    queries, values = attention.num_heads * attention.head_dim, attention.num_kv_heads * attention.v_head_dim
    inner = layer.mlp.intermediate_size if layer.mlp is not None else 0
    sizes = {
        "q": hidden + queries,
        "k": hidden + values,
        "v": hidden + values,
        "o": queries + hidden,
        "qkv": hidden + queries + 2 * values,
        "gate": hidden + inner,
        "up": hidden + inner,
        "down": inner + hidden,
    }
    return sizes[name] if inner or name not in ("gate", "up", "down") else 0


def passes_of(software: SoftwareDescription) -> float:
    """Hidden-wide tensors that one adapter moves in one pass."""
    return FUSED_PASSES if software.kernels == "fast-kernels" or software.compiled == "yes" else PLAIN_PASSES
