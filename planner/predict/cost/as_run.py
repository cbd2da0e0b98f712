"""Strategies as the back-end really runs them, whatever the strategy calls it.

ZeRO under a pipeline: the traits ``pipeline_keeps_whole`` and ``pipeline_reduces_last``
(``planner.predict.physics.communication``) say that the stages of a pipeline gather parameters once a step and
accumulate whole gradients, which are reduced once.  That is ZeRO-1 in time (one reduce_scatter and one all_gather a
step) and in memory (whole 16-bit parameters and whole gradients in the dtype of the reduction, optimizer states
sharded), so such rows are costed as ZeRO-1.

Overlap of tensor-parallel collectives: latent attention may switch it off for the whole model, and expert overlap may
exclude it on some devices (``overlaps_latent_tp``, ``overlaps_tp_beside_ep``).

Shape letters: R rows, K keys.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.spec import ModelSpec
from planner.predict.cost.hardware import Hardware
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.physics import Physics
from planner.strategy.rows import StrategyRows

BEFORE_BLACKWELL = frozenset({"volta", "turing", "ampere", "ada", "hopper"})
"""NVIDIA devices on which the number of hardware queues decides what overlaps."""


def rows_as_run(rows: StrategyRows, framework: Physics) -> StrategyRows:
    """The rows with the ZeRO stage and the overlap of gradients that the back-end really runs: [R]."""
    if not (framework.pipeline_keeps_whole or framework.pipeline_reduces_last):
        return rows
    piped = rows.pp > 1
    zero, overlap_grad = rows.zero, rows.overlap_grad
    if framework.pipeline_keeps_whole:
        zero = np.where(piped, np.minimum(zero, 1), zero)
    if framework.pipeline_reduces_last:
        overlap_grad = np.where(piped, 0, overlap_grad)
    return replace(rows, zero=zero, overlap_grad=overlap_grad)


def keys_as_run(keys: LayerKeys, model: ModelSpec, hardware: Hardware) -> LayerKeys:
    """The keys with the overlap of tensor-parallel collectives that the back-end really has: [K]."""
    framework, overlap_tp = hardware.physics, keys.overlap_tp
    latent = any(kind.attention.kind == "mla" for kind in model.layer_kinds)
    if latent and not framework.overlaps_latent_tp:
        overlap_tp = np.zeros_like(overlap_tp)
    if not framework.overlaps_tp_beside_ep and hardware.pool.device.architecture in BEFORE_BLACKWELL:
        overlap_tp = np.where(keys.overlap_ep > 0, 0.0, overlap_tp)
    return keys if overlap_tp is keys.overlap_tp else replace(keys, overlap_tp=overlap_tp)
