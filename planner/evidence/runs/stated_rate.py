"""Rows that state a rate of FLOPs and no time: the step time that the rate means.

    step_s = FLOPs of a token by the source's convention * tokens of a step / (devices * rate)

Conventions, by what the row's notes say:

* ``model`` (default): matmuls and attention over all positions, no recomputation: Megatron-Core's counter and most
  vendors' tables (Korthikanti et al., arXiv 2205.05198, appendix A);
* ``causal``: attention over the positions that a token sees, where the notes say causal or halved;
* ``hardware``: the forward pass counted twice, where the notes say that recomputation is in it: 4/3 of ``model``.

A utilisation without a rate is one of the device's dense 16-bit peak (989.5 TFLOP/s of an H100), unless the row says
that its peak is another.
"""

from __future__ import annotations

import re
from dataclasses import replace

from planner.evidence.runs.truth import TruthRow
from planner.model.flops import model_flops_per_token
from planner.model.spec import ModelSpec

HARDWARE = re.compile(r"hardware FLOPs|incl(\.|uding)? recompute", re.IGNORECASE)
CAUSAL = re.compile(r"causal-halved|causal attention FLOPs|halved attention", re.IGNORECASE)
REPLAYED = 4.0 / 3.0


def with_stated_rate(row: TruthRow, model: ModelSpec, num_devices: int, peak_flops_per_s: float | None) -> TruthRow:
    """The row with a step time, where it states a rate and neither a time nor tokens a second."""
    if row.measured_step_s is not None or row.gbs is None or row.sequence_length is None or row.out_of_memory:
        return row
    rate = (row.tflops_per_device or 0.0) * 1e12
    if not rate and row.mfu_pct and peak_flops_per_s:
        rate = row.mfu_pct / 100.0 * peak_flops_per_s
    if not rate:
        return row
    causal = CAUSAL.search(row.notes) is not None
    flops = model_flops_per_token(model, row.sequence_length, causal=causal)
    if HARDWARE.search(row.notes):
        flops *= REPLAYED
    step_s = flops * row.gbs * row.sequence_length / (num_devices * rate)
    return replace(row, converted_step_s=step_s)
