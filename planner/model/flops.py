"""The useful FLOPs of training one token.

``forward + backward = 3 * forward``: two FLOPs a multiply-add, and the backward pass runs each matmul twice (input and
weight gradient).  Counted: every matmul that a token meets (``6 * N_active`` without look-up tables, biases and
norms), the vocabulary matmul, attention ``2 * context * heads * (qk_dim + v_dim)``, and what other token mixers say
their chunked kernels run (``planner.model.mixers``).  Not counted: the embedding
look-up, point-wise work, and recomputation - this is the numerator of model-FLOPs utilization (MFU), not of hardware
utilization (HFU).  A causal token sees ``(s + 1) / 2`` tokens on average, a sliding window ``w`` at most ``w``.  Many
papers (Narayanan et al., arXiv 2104.04473, equation 3; Korthikanti et al., arXiv 2205.05198, equation 8) count all
``s``: ``causal=False`` gives theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from planner.model.operator import Operator
from planner.model.operators import (
    embedding_operators,
    head_operators,
    layer_operators,
    mtp_operators,
    tower_operators,
)
from planner.model.spec import ModelSpec, Tower


@runtime_checkable
class Documents(Protocol):
    """Documents of several lengths, within each of which attention stays."""

    def context(self, window: int | None, *, causal: bool) -> float:
        """Mean number of tokens that one token attends to."""


def attention_context(sequence_length: int | Documents, window: int | None, *, causal: bool) -> float:
    """Mean number of tokens that one token attends to: in one sequence, or in documents of several lengths.

    Causal: ``mean(min(i, w) for i in 1..s)`` = ``(s + 1) / 2`` without a window.  Otherwise ``min(s, w)``.
    """
    if isinstance(sequence_length, Documents):
        return sequence_length.context(window, causal=causal)
    reach = sequence_length if window is None else min(window, sequence_length)
    if not causal:
        return float(reach)
    return (reach * (reach + 1) / 2 + (sequence_length - reach) * reach) / sequence_length


def forward_flops(
    operator: Operator, sequence_length: int | Documents, *, causal: bool = True, source_length: int | None = None
) -> float:
    """FLOPs of one operator for one token of the layer: matmuls, attention, scans; 0 for point-wise operators.

    ``source_length``: tokens of the encoder's sequence, where it is not as long as the decoder's.
    """
    if operator.of_source and source_length is not None:
        return _source_flops(operator, sequence_length, source_length)
    if operator.op_class == "attention":
        context = attention_context(sequence_length, operator.window, causal=causal and operator.causal)
        return 2.0 * context / operator.stride * operator.num_heads * (operator.qk_dim + operator.v_dim)
    if operator.op_class == "index_scores":
        context = attention_context(sequence_length, None, causal=causal) / operator.stride
        return 2.0 * context * operator.num_heads * operator.qk_dim
    if operator.flops:
        return operator.flops
    rows = operator.tokens_per_token
    if operator.further_rows and isinstance(sequence_length, int):
        rows += operator.further_rows / sequence_length
    return 2.0 * operator.in_features * operator.out_features * rows


def _source_flops(operator: Operator, sequence_length: int | Documents, source_length: int) -> float:
    """The same where rows are source tokens, or attention sees them: all of them, from each of the layer's tokens."""
    if operator.op_class == "attention":
        return 2.0 * source_length * operator.num_heads * (operator.qk_dim + operator.v_dim)
    rows = source_length / sequence_length if isinstance(sequence_length, int) else 1.0
    return rows * forward_flops(operator, source_length)


def _sum_forward(
    operators: Iterable[Operator], sequence_length: int | Documents, causal: bool, source_length: int | None = None
) -> float:
    return sum(forward_flops(op, sequence_length, causal=causal, source_length=source_length) for op in operators)


def source_tokens(spec: ModelSpec, sequence_length: int, asked: int | None = None) -> int:
    """Tokens of the encoder's sequence: what the model fixes, else what is asked for, else as many as the decoder's.

    Of a denoiser: text tokens of a sample, as many as asked for, else as its pipeline takes.
    """
    if spec.denoiser is not None:
        return asked or spec.denoiser.text_tokens
    if spec.encoder is None:
        return asked or sequence_length
    return spec.encoder.sequence_length or asked or sequence_length


def forward_flops_per_token(
    spec: ModelSpec, sequence_length: int | Documents, causal: bool = True, source_length: int | None = None
) -> float:
    """FLOPs of one forward pass for one token (of the decoder, with its share of the encoder's); without towers."""
    source = None
    if (spec.encoder is not None or spec.denoiser is not None or source_length) and isinstance(sequence_length, int):
        source = source_tokens(spec, sequence_length, source_length)
    head = _sum_forward(head_operators(spec), sequence_length, causal)
    total = _sum_forward(embedding_operators(spec), sequence_length, causal, source) + head
    for run in spec.layer_runs:
        operators = layer_operators(spec, run.kind)
        if source and spec.encoder and run.kind < spec.encoder.num_kinds and isinstance(sequence_length, int):
            total += run.count * source / sequence_length * _sum_forward(operators, source, causal)
        else:
            total += run.count * _sum_forward(operators, sequence_length, causal, source)
    if spec.mtp is not None:
        module = _sum_forward(mtp_operators(spec), sequence_length, causal) + head
        module += _sum_forward(layer_operators(spec, spec.mtp.kind), sequence_length, causal)
        total += spec.mtp.num_layers * module
    return total


def model_flops_per_token(
    spec: ModelSpec, sequence_length: int | Documents, causal: bool = True, source_length: int | None = None
) -> float:
    """Useful FLOPs of forward and backward for one token: the numerator of MFU.  Recompute is never counted.

    Multi-token-prediction modules are counted (their loss is part of training); towers are counted apart, by
    ``tower_flops_per_item``.
    """
    return 3.0 * forward_flops_per_token(spec, sequence_length, causal, source_length)


def tower_flops_per_item(tower: Tower) -> float:
    """Useful FLOPs of forward and backward through a tower and its projector for one image or clip."""
    layers = sum(
        run.count * run.units_per_item * _sum_forward(tower_operators(run), run.units_per_item, True)
        for run in tower.runs
    )
    return 3.0 * (layers + tower.ends_flops_per_item)


def vision_flops_per_image(spec: ModelSpec) -> float:
    """The same of the vision tower for one image; 0 without one."""
    return 0.0 if spec.vision is None else tower_flops_per_item(spec.vision)
