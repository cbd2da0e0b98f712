"""The memory that a back-end keeps beside what the model and the strategy ask for.

Everything here is zero for the neutral traits.  All of it is additive: bytes a parameter, or bytes of a micro-batch
that do not depend on how many layers a stage holds.  Shape letters: R rows, K keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.model.operator import Operator
from planner.predict.memory.states import WEIGHT_BYTES, StateBytes
from planner.predict.physics.physics import Physics
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints

STEP_WORKSPACE_BYTES = 2.0 * 2.0**25
"""Two cuBLAS handles (forward and autograd thread) of 32 MiB each on Hopper: PyTorch, CUDABlas.cpp."""

NARROW_COPIES = 2.0
"""Bytes a parameter of a weight in 8 bit, as it stands and transposed: tensor cores of 8 bit take one layout."""


def with_framework_gradients(
    state: StateBytes, zero: Ints, ranks: Array, kept_per_parameter: Array, traits: Physics
) -> StateBytes:
    """State with reduction buckets (where whole gradients are reduced over ``ranks``) and passing gradients: [R].

    A backward pass frees what its micro-batch kept while its 16-bit gradients pile up: only what these are larger
    adds to the peak, ``max(0, passing - kept)`` bytes a parameter.
    """
    buckets = np.where((ranks > 1) & (zero <= 1), traits.bucket_bytes_per_parameter, 0.0)
    passing = np.maximum(traits.passing_gradient_bytes - kept_per_parameter, 0.0)
    return replace(state, gradients=state.gradients + buckets, passing=state.passing + passing)


def with_framework_kept(operators: Sequence[Operator], traits: Physics) -> tuple[Operator, ...]:
    """Operators of a layer with what this back-end's kernels keep: copies in norms, ``f`` elements of an unfused gate.

    Inputs of experts' gates may be kept in 8 bit (``narrow_gate_inputs``).

    The gate's are kept for, and freed with, the product that the next matmul reads: recomputing the activation makes
    both.
    """
    if traits.norm_copies:
        operators = [
            replace(each, saved_width=each.saved_width * (1.0 + traits.norm_copies))
            if each.op_class == "norm"
            else each
            for each in operators
        ]
    if traits.narrow_gate_inputs:
        gated = gates_by_name(operators)
        operators = [
            replace(each, saved_bytes_per_element=1.0) if each.name in gated and each.module == "moe" else each
            for each in operators
        ]
    if not traits.keeps_gate_output:
        return tuple(operators)
    gates = gates_by_name(operators)
    return tuple(
        replace(operator, saved_width=operator.saved_width + gates[operator.saved_from].write_width)
        if operator.saved_from in gates and operator.saved_width
        else operator
        for operator in operators
    )


def with_eight_bit_experts(operators: Sequence[Operator], each: float = 1.0) -> tuple[Operator, ...]:
    """Operators of a layer whose grouped matmuls keep their inputs in 8 bit, or at ``each`` bytes an element."""
    return tuple(
        replace(operator, saved_bytes_per_element=each) if operator.op_class == "grouped_matmul" else operator
        for operator in operators
    )


def with_eight_bit_inputs(operators: Sequence[Operator], each: float = 1.0) -> tuple[Operator, ...]:
    """Operators of a layer whose dense matmuls keep their inputs in 8 bit, or at ``each`` bytes an element.

    The output of attention is kept by attention itself, in 16 bit: its projection keeps an 8-bit copy beside it.
    """
    attention = {operator.name for operator in operators if operator.op_class == "attention"}
    return tuple(
        replace(operator, saved_bytes_per_element=each + (2.0 if operator.saved_from in attention else 0.0))
        if operator.op_class == "matmul" and operator.saved_width and operator.shard in ("column", "row")
        else operator
        for operator in operators
    )


def with_narrow_copies(state: StateBytes, rows: StrategyRows, each: float) -> StateBytes:
    """State of expert parameters with two copies of ``each`` bytes an element: [R]."""
    if not each:
        return state
    return replace(state, weights=state.weights + narrow_copies(rows.zero, rows.fp8_parameters.astype(float), each))


def narrow_copies(zero: Ints, stored: Array, each: float) -> Array:
    """Bytes a parameter of the narrow copies beside 16-bit weights, ``each`` for an element of one of the two: [R].

    ZeRO-3 casts what it gathers.  Weights that are ``stored`` in 8 bit, as they stand and transposed, have nothing
    beside them and take as much as 16-bit ones.
    """
    copies: Array = np.where((zero >= 3) | (stored > 0), 0.0, NARROW_COPIES * each)
    return copies


def gates_by_name(operators: Sequence[Operator]) -> dict[str, Operator]:
    """Gated non-linearities among some operators: they read a gate and a value, and write one product."""
    return {
        operator.name: operator
        for operator in operators
        if operator.op_class == "activation" and operator.read_width == 2 * operator.write_width
    }


def framework_buffer_bytes(traits: Physics, whole_bytes: Array, tp: Ints, layer_kept_bytes: Array) -> Array:
    """Buffers of a micro-batch on every stage: [R].

    ``whole_bytes``: hidden states of a whole micro-batch on one device; ``layer_kept_bytes``: kept by one layer.
    """
    held = collective_buffer_bytes(traits, whole_bytes, tp)
    working = traits.whole_sequence_tensors * whole_bytes + traits.backward_working_share * layer_kept_bytes
    return held + working


def collective_buffer_bytes(traits: Physics, whole_bytes: Array, tp: Ints) -> Array:
    """Buffers that tensor-parallel collectives hold between steps too: [R]."""
    return np.where(tp > 1, traits.collective_buffers * whole_bytes, 0.0)


def step_copy_bytes(traits: Physics, zero: Ints, shards: Array) -> Array:
    """Bytes a parameter of the flat copies (own shard and whole) through which ZeRO-1 gathers its weights: [R]."""
    if not traits.step_copies:
        return np.zeros(len(zero))
    return np.where((zero == 1) & (shards > 1), WEIGHT_BYTES * (1.0 + 1.0 / shards), 0.0)
