"""The value of each mechanism of the predictions: the error of judged rows with and without it.

Each mechanism is one or more traits of the back-ends (``planner.predict.physics``); without it they are neutral and all
else stays, constants too.  So a figure says what the finished model loses, not what was gained on the day that it came.
``benchmarks.mechanism_page`` prints it.  Rows of which constants were chosen are left out, as in the accuracy report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.evidence.accuracy.ranking import ranking_score
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.prediction import Prediction, predict_runs
from planner.evidence.runs.sources import source_group
from planner.predict.physics.physics import TUNED, Physics

LEAST_ROWS = 5
LEAST_CHANGE = 0.003
"""Sources with fewer judged rows, and changes of the mean error below this, are not listed."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """Words, the traits that carry it, and what stands in their place without it."""

    name: str
    meaning: str
    neutral: Mapping[str, Any]

    def without(self, traits: Physics) -> Physics:
        """The same back-end without this mechanism."""
        changed = {key: value for key, value in self.neutral.items() if getattr(traits, key) != value}
        if "attention" in changed and traits.attention not in ("unfused", "triton", "flash2"):
            del changed["attention"]
        return replace(traits, **changed) if changed else traits


def _neutral(*names: str) -> dict[str, Any]:
    return {name: getattr(TUNED, name) for name in names}


TIME: tuple[Mechanism, ...] = (
    Mechanism(
        "host launch floor",
        "a layer takes the longer of its kernels and the host's launches and calls",
        _neutral("launch_s", "call_s", "parameter_hooks", "reduction_launches"),
    ),
    Mechanism("host of routed experts", "launches around experts cost the host more, each local expert is a product",
              _neutral("expert_launches", "each_expert_s")),
    Mechanism("graphs on Grace hosts", "attention and router launch nothing", _neutral("graphed")),
    Mechanism("attention kernel", "unfused, Triton or FlashAttention-2 instead of the best one", _neutral("attention")),
    Mechanism("unfused point-wise work", "several passes over memory, by operator class", _neutral("unfused")),
    Mechanism(
        "ranks meet on the host", "each tensor-parallel collective of a multi-node job waits", _neutral("meeting_s")
    ),
    Mechanism("stalling transfers", "a stage's hosts are blocked at each transfer", _neutral("transfer_stall_s")),
    Mechanism("gradient accumulation", "a kernel of its own adds gradients to fp32", _neutral("accumulation_bytes")),
    Mechanism(
        "gradient buckets",
        "many small collectives: each pays its launch and its way through the network",
        _neutral("reduction_bucket_bytes", "gather_by_tensor"),
    ),
    Mechanism("unpadded vocabulary", "misaligned matmuls of the head", _neutral("pads_vocabulary")),
    Mechanism("slowest device", "every step waits for the slowest of all devices", {"waits_for_slowest": False}),
    Mechanism("skew of collectives", "the slowest rank's host decides", _neutral("collective_skew_s")),
    Mechanism("loss in fp32", "Megatron-Core's fused loss passes over fp32 logits", _neutral("wide_loss")),
    Mechanism("log-probabilities", "trainers of RL pass over fp32 logits in chunks and multiply again",
              _neutral("log_probability_loss")),
    Mechanism("separate reductions", "bias, norm, residual gradients by own kernels", _neutral("separate_reductions")),
    Mechanism("dispatch once a node", "a routed token is sent once to a node that holds several of its experts",
              _neutral("dispatch")),
    Mechanism("operator checkpointing", "every second matmul is replayed", _neutral("operator_checkpointing")),
)  # fmt: skip
MEMORY: tuple[Mechanism, ...] = (
    Mechanism("buckets and copies of the step", "gradients beside the accumulators, flat copies of ZeRO-1",
              _neutral("bucket_bytes_per_parameter", "step_copies", "collective_buffers")),
    Mechanism("kept activations of the kernels", "gate output, attention copies, dropout masks, attention scores",
              {**_neutral("keeps_gate_output", "attention_output_copies", "dropout"), "attention": "flash2"}),
    Mechanism("logits of the loss", "copies that a back-end's loss keeps", _neutral("kept_logit_bytes",
                                                                                  "passing_logit_bytes")),
    Mechanism("experts in 8 bit", "inputs of a byte, copies of weights", _neutral("eight_bit_experts")),
    Mechanism("fp32 shards", "FSDP's parameters are their own master copy", _neutral("fp32_shards")),
    Mechanism("operator checkpointing", "outputs of every second matmul stay", _neutral("operator_checkpointing")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures:
    """Errors of one source."""

    n: int
    median: float
    mean: float
    tau: float | None
    good_picks: float | None


@dataclass(frozen=True, slots=True)
class Loss:
    """One mechanism on one source: errors with and without."""

    mechanism: Mechanism
    source: str
    after: Figures
    before: Figures


def losses(
    runs: Sequence[MappedRun], mechanisms: Sequence[Mechanism], groups: Mapping[str, str], quantity: str
) -> Iterator[Loss]:
    """What every mechanism buys on every source that it touches, the largest first."""
    whole = _by_source(predict_runs(runs)[0], groups, quantity)
    for mechanism in mechanisms:
        stripped = [replace(run, traits=mechanism.without(run.traits)) for run in runs]
        touched = {
            source_group(run.row.source)
            for run, other in zip(runs, stripped, strict=True)
            if run.traits != other.traits
        }
        chosen = [run for run in stripped if source_group(run.row.source) in touched]
        found = _by_source(predict_runs(chosen)[0], groups, quantity)
        for source, before in sorted(found.items(), key=lambda item: -item[1].n):
            after = whole[source]
            if before.n >= LEAST_ROWS and abs(before.mean - after.mean) >= LEAST_CHANGE:
                yield Loss(mechanism, source, after, before)


def _by_source(predictions: Sequence[Prediction], groups: Mapping[str, str], quantity: str) -> dict[str, Figures]:
    members: dict[str, list[Prediction]] = defaultdict(list)
    for each in predictions:
        if _measured(each, quantity) is not None:
            members[source_group(each.row.source)].append(each)
    return {source: _figures(found, groups, quantity) for source, found in members.items()}


def _measured(each: Prediction, quantity: str) -> float | None:
    return each.row.measured_step_s if quantity == "time" else each.row.measured_peak_bytes


def _figures(predictions: Sequence[Prediction], groups: Mapping[str, str], quantity: str) -> Figures:
    measured = np.array([_measured(each, quantity) or np.nan for each in predictions])
    predicted = np.array([each.step_time_s if quantity == "time" else each.peak_memory_bytes for each in predictions])
    error = np.abs(predicted / measured - 1.0)
    score = ranking_score(
        [groups.get(each.row.id) or f"alone|{each.row.id}" for each in predictions], predicted, measured
    )
    ranked = quantity == "time" and score.num_groups > 0
    return Figures(
        n=len(predictions),
        median=float(np.median(error)),
        mean=float(error.mean()),
        tau=score.median_kendall_tau if ranked else None,
        good_picks=score.good_picks if ranked else None,
    )
