"""The moments of a step at which a device can be fullest, and what it holds then.

The peak of a stage is the largest of its moments.  For a device that holds ``n`` layers, ``k`` of them relieved, each
is linear in what the search decides::

    held = fixed + n S + f ( n A - k (A - a) ) + (k > 0) w

Most back-ends have one moment that stands for all: buffers of the loss, of gathered units and of a layer's working
tensors are reserved together.  PyTorch FSDP2 (``moments_apart``) allocates and frees them one by one.  With ``U`` the
parameters of a unit (a layer; the root: embedding and head), ``b`` bytes of a gradient under reduction, and [z] = 1
where parameters are gathered unit by unit (ZeRO-3), its moments are

* ``passes``: the first backward pass begins, every kept activation is there.  The largest of
    - loss: kept and passing logits;
    - head: 16-bit gradient of the logits, gradient of the head's matrix, [z] root gathered, ``2 U_root`` and once more
      while it is copied out of the collective, or beside the next layer's ``2 U``;
    - layer: working tensors (``planner.predict.memory.backward``), gradient of the head's matrix, [z] ``2 U_root``, and
      ``2 U`` for the layer and for the next one.
  Gradients under reduction live until the next unit's reduction: ``b U_root`` of the micro-batch before in all three,
  or ``b U`` of the layer above, which has then freed what it kept.
* ``second``: as ``passes`` where all forward passes come first (gpipe, looped_bfs): there are no gradients then, but
  when the second backward pass begins, with one micro-batch less in flight, there are.
* ``end``: the last gradient of the root is made, nothing is kept any more.
* ``step``: no 16-bit parameters, and AdamW's fused loops hold a root of every second moment, 4 bytes a parameter.

Gradients exist in ``passes`` only where an earlier micro-batch has left some (``states_by_moment``).  Sources: torch
2.13.0, distributed/fsdp/_fully_shard/_fsdp_param_group.py (pre_backward, post_backward, unshard), _fsdp_collectives.py
(foreach_reduce), optim/adamw.py; pipelining/stage.py (receive buffers of every micro-batch).

Shape letters: R rows, P stages, N layer kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.predict.memory.states import MASTER_BYTES, WEIGHT_BYTES, StateBytes
from solver.arrays import Array, Ints

GRADIENT_BYTES = 2.0
"""Bytes of a gradient before its reduction, of a logit, and of a gradient of the logits."""


@dataclass(frozen=True, slots=True)
class MomentTerms:
    """What moments apart need beside the usual costs: [R].

    ``head_matrix``: parameters of the matrix that makes the logits, also where it is the embedding's.
    ``embedding_gradients``: parameters for which gradients of the embedding exist; a vocabulary split over tp is summed
    up whole before it is cut.
    """

    working_bytes: Array
    hidden_bytes: Array
    entry_bytes: Array
    logits: Array
    head_matrix: Array
    head_inputs_bytes: Array
    embedding_gradients: Array
    reduced_bytes: Array
    end_dense: StateBytes
    end_expert: StateBytes
    step_dense: StateBytes
    step_expert: StateBytes


@dataclass(frozen=True, slots=True)
class Units:
    """Parameters of the FSDP units of each stage, and how they are handled: [R, P] or [R, 1]."""

    root: Array
    last: Array
    """1 on the head's stage."""
    layer: Array
    gathered: Array
    """1 where parameters are gathered unit by unit."""
    reduced: Array
    """1 where gradients are reduced unit by unit."""
    pending_bytes: Array
    """Gradients of the root left by the micro-batch before: under reduction until the next one, or accumulated whole
    where tensor parallelism splits the weight."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Bytes of one moment: [R, P]; states a layer [R, N].  ``kept_bytes``: activations kept by the ends."""

    name: str
    kept_bytes: Array
    buffer_bytes: Array
    in_flight: Array
    replay_bytes: Array
    layer_state_bytes: Array
    dense_state: StateBytes
    expert_state: StateBytes
    fixed_bytes: Array
    """All that does not depend on the layers: kept, buffers, states of the ends."""


def fullest_of(*choices: Array) -> Array:
    """Largest of several arrays, element by element."""
    largest: Array = np.maximum.reduce(np.broadcast_arrays(*choices))
    return largest


def passes_bytes(
    terms: MomentTerms, units: Units, head: tuple[Array, Array], freed: Array, replay: Array
) -> tuple[Array, Array, Array]:
    """Kept by the head, buffers, and what a replay adds, at the fullest moment around the first backward pass: [R, P].

    ``head``: what it keeps of a micro-batch, and what passes beside that while the loss runs: [R].
    ``freed``: what a layer frees when it is done; ``replay``: what a relieved layer makes again: [R, 1].
    """
    last, saved, transient = units.last, head[0][:, None], head[1][:, None]
    head_gradient = last * GRADIENT_BYTES * terms.head_matrix[:, None]
    inputs = last * terms.head_inputs_bytes[:, None]
    logits = last * GRADIENT_BYTES * terms.logits[:, None]
    loss = last * transient + units.pending_bytes
    arriving = units.gathered * WEIGHT_BYTES
    of_head = units.pending_bytes + np.maximum(
        2.0 * arriving * units.root + logits,
        arriving * (units.root + units.layer) + logits + head_gradient + last * terms.hidden_bytes[:, None],
    )
    layer = head_gradient + arriving * (units.root + 2.0 * units.layer) + _working(terms, units, freed)
    in_loss, in_head = last * saved + loss, inputs + of_head
    again = layer + replay
    peak = fullest_of(in_loss, in_head, layer)
    kept = np.where(peak == in_loss, last * saved, np.where(peak == in_head, inputs, 0.0))
    return kept, peak - kept, np.maximum(again - peak, 0.0)


def _working(terms: MomentTerms, units: Units, freed: Array) -> Array:
    """Working tensors of the fullest layer, and gradients under reduction: [R, P]."""
    working, reduced = terms.working_bytes[:, None], terms.reduced_bytes[:, None]
    above = units.reduced * reduced * units.layer - freed
    # At a layer's end its own parameters are dropped, its gradients whole and copied for the reduction.
    own = units.reduced * (GRADIENT_BYTES + reduced) - units.gathered * WEIGHT_BYTES
    return fullest_of(working + units.pending_bytes, working + above, own * units.layer - freed)


def end_bytes(terms: MomentTerms, units: Units, first: Array, last: Array) -> Array:
    """Buffers when the root's last gradient is made, or copied for its reduction: [R, P]."""
    made = last * terms.head_matrix[:, None] + first * terms.embedding_gradients[:, None]
    reduced = units.reduced * terms.reduced_bytes[:, None]
    making = units.gathered * WEIGHT_BYTES * units.root + GRADIENT_BYTES * made + reduced * units.layer
    making = making + first * terms.hidden_bytes[:, None]
    return np.maximum(making, (GRADIENT_BYTES + reduced) * units.root)


def states_by_moment(
    usual: StateBytes, shards: Array, zero: Ints, several: NDArray[np.bool_], *, late: NDArray[np.bool_]
) -> tuple[StateBytes, StateBytes, StateBytes]:
    """State of one parameter in the passes, at the end of the last backward pass, and in the optimizer step: all [R].

    ``usual``: with gradients accumulated whole below ZeRO-2.  Without ``several`` backward passes to one reduction
    nothing is accumulated: 16-bit gradients are reduced unit by unit into fp32 shards.  ``late``: all forward passes
    come before the first backward pass, and with them the largest activations before any gradient.
    """
    shard = MASTER_BYTES / np.where(zero >= 1, shards, 1.0)
    gradients = np.where((zero <= 1) & several, usual.gradients, shard)
    nothing = np.zeros(len(zero))

    def state(weights: Array, made: Array, passing: Array) -> StateBytes:
        return StateBytes(weights=weights, gradients=made, optimizer=usual.optimizer, host=usual.host, passing=passing)

    return (
        state(usual.weights, np.where(late, 0.0, gradients), nothing),
        state(usual.weights, gradients, nothing),
        state(nothing, shard, shard),
    )
