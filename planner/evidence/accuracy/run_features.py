"""The features of a run that its error may depend on: a few numbers, the same for every source.

Logarithms (base 2) of degrees and sizes, switches as they are, and the share of each class of time in the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import Prediction
from planner.predict.uncertainty import CLASS_OF_TERM
from solver.arrays import Array

RECOMPUTE = {"none": 0.0, "selective": 1.0, "full": 2.0}
CLASSES = tuple(dict.fromkeys(CLASS_OF_TERM.values()))
FEATURES = (
    *("tp", "pp", "dp", "cp", "ep", "micro-batch size", "micro-batches", "layers a stage", "hidden size"),
    *("feed-forward width", "experts", "sequence", "devices", "nodes of a tp group", "device peak"),
    *("fp8", "ZeRO", "recompute", "sequence parallel"),
    *(f"{name} share" for name in CLASSES),
)


def run_features(runs: Sequence[MappedRun], predictions: Sequence[Prediction]) -> Array:
    """Features [N, F] in the order of ``FEATURES``."""
    rows = [_features(run, each) for run, each in zip(runs, predictions, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(FEATURES))


def _features(run: MappedRun, prediction: Prediction) -> list[float]:
    strategy, pool = run.strategy, run.cluster.pools[0]
    sizes = (
        strategy.tp,
        strategy.pp,
        strategy.dp,
        strategy.cp,
        strategy.ep,
        strategy.micro_batch_size,
        strategy.num_microbatches,
        max(run.chunk_layers),
        run.model.hidden_size,
        _feed_forward_width(run),
        _num_experts(run),
        run.workload.sequence_length,
        strategy.world_size,
        max(strategy.tp / pool.devices_per_node, 1.0),
        prediction.peak_flops_per_s,
    )
    switches = (
        float(run.workload.precision == "fp8"),
        float(strategy.zero_stage),
        RECOMPUTE.get(strategy.recompute, 1.0),
        float(strategy.sp),
    )
    step_s = sum(prediction.breakdown_s.values())
    shares = dict.fromkeys(CLASSES, 0.0)
    for term, seconds in prediction.breakdown_s.items():
        shares[CLASS_OF_TERM[term]] += seconds / step_s
    return [*(float(np.log2(size)) for size in sizes), *switches, *(4.0 * share for share in shares.values())]


def _feed_forward_width(run: MappedRun) -> int:
    """Of one expert where the last kind of layer is routed."""
    layer = run.model.layer_kinds[-1]
    if layer.moe is not None:
        return layer.moe.expert_intermediate_size
    return layer.mlp.intermediate_size if layer.mlp is not None else run.model.hidden_size


def _num_experts(run: MappedRun) -> int:
    moe = run.model.layer_kinds[-1].moe
    return moe.num_experts if moe is not None else 1
