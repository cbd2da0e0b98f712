"""The planner's prediction of each measured run, or the reason why there is none.

Rows of one model, workload and cluster share one cost table, so thousands of rows take seconds.  No search runs: the
row's strategy is costed as stated, its layers dealt as its back-end deals them, its recompute policy on every layer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import DocumentInvalid, ProfileMissing
from planner.evidence.runs.bridge_recipes import recipe_layers
from planner.evidence.runs.flavours import Flavour, studied_on
from planner.evidence.runs.mapped_run import MappedRun
from planner.evidence.runs.reported_memory import device_bytes, reported_bytes
from planner.evidence.runs.row_cluster import cluster_of_row
from planner.evidence.runs.row_flavour import flavour_of_row
from planner.evidence.runs.row_model import model_of_row
from planner.evidence.runs.row_strategy import (
    arithmetic_of_row,
    chunk_layers_of_row,
    degrees_of_row,
    strategy_of_row,
    traits_of_row,
    workload_of_row,
)
from planner.evidence.runs.software import NOTHING_SAID, SoftwareDescription, described
from planner.evidence.runs.stated_rate import with_stated_rate
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.flops import model_flops_per_token
from planner.model.spec import ModelSpec
from planner.predict.candidate import Candidate, Split
from planner.predict.cost.hardware import Hardware, hardware_of
from planner.predict.cost.row_cost import CostModel
from planner.predict.memory.fit_chance import usable_bytes
from planner.predict.physics.host import HOST_SPREAD
from planner.predict.uncertainty import step_interval_s, z_of
from planner.question.factors import NEUTRAL, Factors
from planner.question.problem import Constraints
from planner.search.evaluate import evaluate_split
from planner.search.row_context import RowContext, row_context, take
from planner.strategy.rows import StrategyRows, relief_of
from planner.strategy.strategy import Relief, Strategy
from profiles.device import Device
from profiles.prediction.profile import Profile
from profiles.prediction.reference import ProfileReference

DEVICE_SPREAD = 0.18
"""Standard deviation of ln(step time) on a device whose rate in a step nobody has published: half of what lies
between the lowest and the highest sustained fraction of known ones, 0.63 and 0.90 (``profiles/catalogue``)."""
WHOLE_LAYER_MARGIN = 1.03
"""95 % quantile of measured over predicted peaks of layers that run whole (``whole_layer_memory``): fms-acceleration's
Mistral 7B and Llama 3 8B, 111 rows."""
STATED_LEVEL = 0.90
"""What the intervals of ``accuracy`` are meant to hold; those of plans: ``planner.predict.uncertainty.PLAN_LEVEL``."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the planner says about one row.

    ``peak_memory_bytes`` is the figure that the source reports (``Flavour.memory``, ``memory_rank``);
    ``fits`` compares the whole device memory of the worst rank with ``_limit_bytes``.
    ``least_memory_bytes`` is that memory under full recompute where the row leaves recompute unsaid, else the same.
    ``model_flops_per_device`` and ``peak_flops_per_s`` serve the constant-utilization baseline.
    ``framework_sigma``: the spread that a calibration left, where there is one.
    """

    row: TruthRow
    step_time_s: float
    peak_memory_bytes: float
    total_memory_bytes: float
    memory_limit_bytes: float
    device_memory_bytes: float
    breakdown_s: dict[str, float]
    model_flops_per_device: float
    peak_flops_per_s: float
    flavour: Flavour
    least_memory_bytes: float
    num_devices: int
    experts: int
    strategy: Strategy
    num_layers: int
    devices_per_node: int
    software: SoftwareDescription = NOTHING_SAID
    framework_sigma: float | None = None

    def interval_at(self, level: float) -> tuple[float, float]:
        """Seconds between which this part of such runs is meant to lie."""
        low_s, high_s = step_interval_s(
            self.breakdown_s, framework_sigma=self.framework_sigma, studied_sigma=self._studied, level=level
        )
        low_s, high_s = self._widened(low_s, high_s, level)
        # A correction of the whole step leaves the breakdown as it was.
        scale = self.step_time_s / sum(self.breakdown_s.values())
        return low_s * scale, high_s * scale

    @property
    def _studied(self) -> float | None:
        """The spread of whole steps, where runs of this software on such devices gave one."""
        found = self.flavour.traits.spread_at(self.num_devices, experts=self.experts, breakdown_s=self.breakdown_s)
        return found if studied_on(self.flavour, self.row.device) else None

    def _widened(self, low_s: float, high_s: float, level: float) -> tuple[float, float]:
        """The interval with what the description leaves open, and with the host's own spread where steps wait for it.

        A calibration has seen both on runs of the same software.
        """
        if self.framework_sigma is not None:
            return low_s, high_s
        step_s = sum(self.breakdown_s.values())
        waiting = self.breakdown_s.get("host", 0.0) / step_s
        new_device = 0.0 if studied_on(self.flavour, self.row.device) else DEVICE_SPREAD
        host = HOST_SPREAD if self._studied is None else 0.0
        more = z_of(level) * math.hypot(self.software.unknown_spread, host * waiting, new_device)
        below, above = math.log(step_s / low_s), math.log(high_s / step_s)
        return step_s * math.exp(-math.hypot(below, more)), step_s * math.exp(math.hypot(above, more))

    @property
    def interval_s(self) -> tuple[float, float]:
        """Interval of the level that ``accuracy`` states."""
        return self.interval_at(STATED_LEVEL)

    @property
    def fits(self) -> bool | None:
        """Whether the planner would let this run start; None where that hangs on recompute and the row is silent."""
        if self.total_memory_bytes <= self.memory_limit_bytes:
            return True
        return None if self.least_memory_bytes <= self.memory_limit_bytes else False


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A row without a prediction."""

    row: TruthRow
    reason: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """What predictions are made from: measurements of a device (None = its datasheet), factors of a calibration."""

    profile_of: Callable[[Device], ProfileReference | Profile | None] = lambda device: None
    factors: Factors = NEUTRAL


DATASHEET = Inputs()


def predict_rows(rows: Iterable[TruthRow]) -> tuple[list[Prediction], list[Unmapped]]:
    """Predictions from datasheets and unmapped rows, each in the order of the file."""
    runs, unmapped = map_rows(rows)
    predictions, more = predict_runs(runs)
    return predictions, sorted([*unmapped, *more], key=lambda each: each.row.line)


def map_rows(rows: Iterable[TruthRow]) -> tuple[list[MappedRun], list[Unmapped]]:
    """Rows in the planner's terms, and those that cannot be put so."""
    runs: list[MappedRun] = []
    unmapped: list[Unmapped] = []
    models: dict[str, ModelSpec] = {}
    for row in rows:
        try:
            runs.append(_map(row, models))
        except RowUnmapped as error:
            unmapped.append(Unmapped(row, error.what))
    return runs, unmapped


def predict_runs(runs: Iterable[MappedRun], inputs: Inputs = DATASHEET) -> tuple[list[Prediction], list[Unmapped]]:
    """Predictions in the order of the rows' lines, and runs whose device or cluster cannot be costed."""
    batches: dict[tuple[object, ...], list[MappedRun]] = defaultdict(list)
    for run in runs:
        workload = run.workload.model_dump_json()
        key = run.model.model_dump_json(), id(run.cluster), workload, run.flavour.name, run.arithmetic, run.traits
        batches[key].append(run)
    predictions: list[Prediction] = []
    unmapped: list[Unmapped] = []
    for batch in batches.values():
        _predict_batch(batch, inputs, predictions, unmapped)
    return sorted(predictions, key=lambda each: each.row.line), unmapped


def _map(row: TruthRow, models: dict[str, ModelSpec]) -> MappedRun:
    if row.contradiction:
        raise RowUnmapped(row.contradiction)
    software = described(row)
    flavour = flavour_of_row(row, software)
    shape = (row.layers, row.hidden, row.ffn_hidden, row.heads, row.kv_heads, row.vocab, row.experts, row.topk)
    words = (row.model, *shape, row.params_b, row.sequence_length, row.tp, flavour.name, _model_words(row, flavour))
    key = "|".join(str(word) for word in words)
    if key not in models:
        models[key] = model_of_row(row, flavour)
    model = models[key]
    workload = workload_of_row(row, flavour)
    degrees = degrees_of_row(row, flavour, model.num_layers)
    strategy = strategy_of_row(row, degrees, model, flavour)
    cluster = cluster_of_row(row, strategy.world_size)
    peak = cluster.pools[0].device.peak_flops_per_s.get("bf16")
    row = with_stated_rate(row, model, strategy.world_size, peak)
    return MappedRun(
        row=row,
        flavour=flavour,
        model=model,
        cluster=cluster,
        workload=workload,
        strategy=strategy,
        chunk_layers=recipe_layers(row, strategy.pp, strategy.vpp) or chunk_layers_of_row(model, strategy, flavour),
        arithmetic=arithmetic_of_row(row),
        traits=traits_of_row(row, flavour),
        software=software,
    )


def _model_words(row: TruthRow, flavour: Flavour) -> str:
    """The part of the notes that may change the model."""
    if flavour.megatron_defaults:
        return row.notes
    return " ".join(word for word in ("tie_emb=True", "tie_emb=False", "w/o MTP") if word in row.notes)


def _predict_batch(
    batch: Sequence[MappedRun], inputs: Inputs, predictions: list[Prediction], unmapped: list[Unmapped]
) -> None:
    first = batch[0]
    try:
        profile = inputs.profile_of(first.cluster.pools[0].device)
        hardware = replace(
            hardware_of(first.cluster, first.arithmetic, profile, physics=first.traits), factors=inputs.factors
        )
    except (ProfileMissing, DocumentInvalid) as error:
        unmapped.extend(Unmapped(mapped.row, error.what) for mapped in batch)
        return
    flops = model_flops_per_token(first.model, first.workload.sequence_length) * first.workload.sequence_length
    limit_bytes = _limit_bytes(hardware, first.flavour)
    evaluated = _evaluate(batch, hardware)
    unsaid = [
        index
        for index, (_, candidate) in enumerate(evaluated)
        if not batch[index].row.recompute and device_bytes(batch[index], candidate) > limit_bytes
    ]
    leanest = _evaluate([_recomputed(batch[index]) for index in unsaid], hardware)
    least = {
        index: device_bytes(_recomputed(batch[index]), candidate)
        for index, (_, candidate) in zip(unsaid, leanest, strict=True)
    }
    for index, (context, candidate) in enumerate(evaluated):
        least_bytes = least.get(index, device_bytes(batch[index], candidate))
        predictions.append(_prediction(batch[index], context, candidate, flops, least_bytes))


def _limit_bytes(hardware: Hardware, flavour: Flavour) -> float:
    """What a plan of this back-end may be predicted to need: it fits with the usual chance."""
    if flavour.whole_layers:
        return hardware.memory_bytes / WHOLE_LAYER_MARGIN
    return usable_bytes(hardware.memory_bytes, Constraints(), flavour.backend)


def _recomputed(mapped: MappedRun) -> MappedRun:
    return replace(mapped, strategy=replace(mapped.strategy, recompute="full", recompute_modules=()))


def _evaluate(batch: Sequence[MappedRun], hardware: Hardware) -> list[tuple[RowContext, Candidate]]:
    """Costs of runs of one model, workload and cluster."""
    if not batch:
        return []
    reliefs = tuple(dict.fromkeys([Relief(), *(relief_of(mapped.strategy) for mapped in batch)]))
    costs = CostModel(batch[0].model, batch[0].workload, hardware, reliefs)
    rows = StrategyRows.of([mapped.strategy for mapped in batch], reliefs)
    keyed = costs.keyed(rows)
    columns = costs.rows(rows, keyed)
    evaluated = []
    for index, mapped in enumerate(batch):
        at = np.array([index])
        context = row_context(costs, keyed[0], rows.take(at), take(columns, at))
        most = max(mapped.chunk_layers) if mapped.strategy.recompute != "none" else 0
        evaluated.append((context, evaluate_split(context, Split(mapped.chunk_layers, (most,) * mapped.strategy.pp))))
    return evaluated


def _prediction(
    mapped: MappedRun, context: RowContext, candidate: Candidate, sample_flops: float, least_bytes: float
) -> Prediction:
    hardware = context.costs.hardware
    strategy = mapped.strategy
    return Prediction(
        row=mapped.row,
        step_time_s=candidate.step_time_s,
        peak_memory_bytes=reported_bytes(candidate, mapped),
        total_memory_bytes=device_bytes(mapped, candidate),
        memory_limit_bytes=_limit_bytes(hardware, mapped.flavour),
        device_memory_bytes=hardware.memory_bytes,
        breakdown_s=candidate.breakdown_s,
        software=mapped.software,
        model_flops_per_device=sample_flops * strategy.global_batch_size / strategy.world_size,
        peak_flops_per_s=hardware.pool.device.peak_flops_per_s[mapped.arithmetic],
        flavour=mapped.flavour,
        least_memory_bytes=least_bytes,
        num_devices=strategy.world_size,
        experts=mapped.model.num_experts,
        strategy=strategy,
        num_layers=mapped.model.num_layers,
        devices_per_node=hardware.pool.devices_per_node,
    )
