"""Runs from stored training logs: iterations of one setting become one run; model and cluster are given.

A log states degrees, batch and sequence in its block of arguments; ``said`` fills in what it leaves out and never
overrides it.  The time of a run is the median of its iterations (the importer has dropped the first one), its memory
the largest reading, reserved before allocated.  What cannot be put into the planner's terms is returned with a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from planner.backends.registry import backends
from planner.errors import DocumentInvalid
from planner.evidence.calibration.calibrate import CalibrationRun
from planner.evidence.runs.flavours import DEFAULT, FSDP, TORCHTITAN, Flavour, MemoryMeaning
from planner.evidence.runs.prediction import MappedRun, Unmapped
from planner.evidence.runs.row_strategy import (
    arithmetic_of_row,
    chunk_layers_of_row,
    degrees_of_row,
    strategy_of_row,
    traits_of_row,
    workload_of_row,
)
from planner.evidence.runs.software import described
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.spec import ModelSpec
from profiles.cluster import Cluster
from profiles.observation_store.batch import StoredBatch
from profiles.observations.records import IterationObservation, Scalar
from profiles.scaling import scale_cluster

GIB = 2.0**30
MODEL_SIZES = {"num_layers": "layers", "hidden_size": "hidden width", "num_attention_heads": "attention heads"}

LOGGED_BACKENDS = {"megatron-lm": "megatron"}
"""Back-ends by what the readers of logs write for their software, where that is another name."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the user says where the log does not."""

    model: ModelSpec
    cluster: Cluster
    strategy: Mapping[str, Scalar] = field(default_factory=dict)
    global_batch_size: int | None = None
    sequence_length: int | None = None
    software_version: str = ""


def log_runs(
    batches: Sequence[tuple[StoredBatch, Sequence[IterationObservation]]], said: Said, first_line: int = 1
) -> tuple[list[CalibrationRun], list[Unmapped]]:
    """Runs of all batches, and settings that could not be mapped, each with its reason."""
    runs: list[CalibrationRun] = []
    unmapped: list[Unmapped] = []
    line = first_line
    for batch, iterations in batches:
        for readings in _by_setting(iterations):
            row = _row(line, batch, readings, said)
            line += 1
            try:
                mapped = _mapped(row, batch, readings, said)
            except RowUnmapped as error:
                unmapped.append(Unmapped(row, error.what))
                continue
            version = batch.environment.framework_version or said.software_version
            name = batch.environment.framework or batch.source.format
            backend = LOGGED_BACKENDS.get(name, name)
            known = backend if backend in backends() else ""
            runs.append(CalibrationRun(mapped, name, version, source_name(batch), known))
    return runs, unmapped


def source_name(batch: StoredBatch) -> str:
    """How a batch is called in a calibration."""
    return f"{batch.source.format} batch {batch.batch_id[:12]}"


def _by_setting(iterations: Sequence[IterationObservation]) -> list[list[IterationObservation]]:
    """Iterations that differ in nothing but what was measured; failures apart, so that they are counted once."""
    groups: dict[str, list[IterationObservation]] = defaultdict(list)
    for each in iterations:
        sizes = (each.num_devices, each.global_batch_size, each.micro_batch_size, each.sequence_length, each.model)
        groups[repr((sorted(each.strategy.items()), sizes, each.ok))].append(each)
    return _with_memory_only(list(groups.values()))


def _with_memory_only(groups: list[list[IterationObservation]]) -> list[list[IterationObservation]]:
    """A memory report says no batch of its own: it joins the only timed setting there is."""
    timed = [group for group in groups if any(each.timing is not None for each in group)]
    untimed = [group for group in groups if group not in timed and group[0].ok]
    if len(timed) != 1:
        return groups
    joined = [*timed[0], *(each for group in untimed for each in group)]
    return [joined, *(group for group in groups if group not in timed and group not in untimed)]


def _row(line: int, batch: StoredBatch, readings: Sequence[IterationObservation], said: Said) -> TruthRow:
    """The setting as a row of measured runs: what the log says first, else what the user says."""
    first = next((each for each in readings if each.timing is not None), readings[0])
    stated: dict[str, Scalar] = {**said.strategy, **first.strategy}
    times = [each.timing.time_s for each in readings if each.timing is not None]
    memory, _ = _memory(readings)
    zero = stated.get("zero_stage")
    etp = stated.get("etp")
    return TruthRow(
        line=line,
        id=f"{batch.batch_id[:12]}/{line}",
        source=source_name(batch),
        model=said.model.name,
        device=said.cluster.pools[0].device.name,
        intra_node_link="",
        inter_node_link="",
        zero_or_fsdp="" if zero is None else f"zero{zero}",
        recompute=str(stated.get("recompute", "")),
        precision="fp8" if first.detail.get("fp8") not in (None, False, "") else str(first.detail.get("dtype", "bf16")),
        notes="" if etp is None else f"expert-tensor-parallel-size={etp}",
        layers=None, hidden=None, ffn_hidden=None, heads=None, kv_heads=None, vocab=None, experts=None, topk=None,
        num_devices=first.num_devices or batch.environment.num_devices,
        nodes=None,
        seq_len=first.sequence_length or said.sequence_length,
        gbs=first.global_batch_size or said.global_batch_size,
        mbs=first.micro_batch_size or _whole(stated, "micro_batch_size"),
        sp=_whole(stated, "sp"),
        tp=_whole(stated, "tp"),
        cp=_whole(stated, "cp"),
        pp=_whole(stated, "pp"),
        vpp=_whole(stated, "vpp"),
        ep=_whole(stated, "ep"),
        dp=_whole(stated, "dp"),
        from_memory=0,
        params_b=None,
        tokens_per_s_per_device=None, tflops_per_device=None, mfu_pct=None,
        step_time_s=median(times) if times else None,
        peak_mem_gib=None if memory is None else memory / GIB,
    )  # fmt: skip


def _whole(stated: Mapping[str, Scalar], name: str) -> int | None:
    value = stated.get(name)
    return int(value) if isinstance(value, (int, bool)) else None


def _memory(readings: Sequence[IterationObservation]) -> tuple[int | None, MemoryMeaning]:
    """The largest peak, reserved where the log has it, and which it is."""
    reserved = [each.peak_reserved_bytes or each.reserved_bytes for each in readings]
    allocated = [each.peak_allocated_bytes for each in readings]
    for values, meaning in ((reserved, "reserved"), (allocated, "allocated")):
        known = [value for value in values if value]
        if known:
            return max(known), meaning  # type: ignore[return-value]  # one of the two literals
    return None, "allocated"


def _mapped(row: TruthRow, batch: StoredBatch, readings: Sequence[IterationObservation], said: Said) -> MappedRun:
    first = readings[0]
    if not first.ok:
        raise RowUnmapped("the run failed: it has no step time")
    _check_device(batch, said)
    _check_model(first.detail, said.model)
    if first.detail.get("recompute_method") == "block":
        raise RowUnmapped("recompute of some layers only (method block) is not mapped")
    flavour = _flavour(batch, readings, said)
    degrees = degrees_of_row(row, flavour, said.model.num_layers)
    strategy = strategy_of_row(row, degrees, said.model, flavour)
    workload = workload_of_row(row, flavour)
    try:
        cluster = scale_cluster(said.cluster, strategy.world_size)
    except DocumentInvalid as error:
        raise RowUnmapped(f"the cluster cannot have {strategy.world_size} devices: {error.what}") from None
    return MappedRun(
        row=row,
        flavour=flavour,
        model=said.model,
        cluster=cluster,
        workload=workload,
        strategy=strategy,
        chunk_layers=chunk_layers_of_row(said.model, strategy, flavour),
        arithmetic=arithmetic_of_row(row),
        traits=traits_of_row(row, flavour),
        software=described(row),
    )


def _check_device(batch: StoredBatch, said: Said) -> None:
    measured, given = batch.environment.device, said.cluster.pools[0].device.name
    if measured and measured != given:
        raise RowUnmapped(f"the log is of {measured}, --cluster has {given}")


def _check_model(detail: Mapping[str, Scalar], model: ModelSpec) -> None:
    """The log's sizes must be those of the model that the user names."""
    heads = model.layer_kinds[0].attention.num_heads
    mine = {"num_layers": model.num_layers, "hidden_size": model.hidden_size, "num_attention_heads": heads}
    for name, words in MODEL_SIZES.items():
        if name in detail and detail[name] != mine[name]:
            raise RowUnmapped(f"the log's model has {detail[name]} {words}, --model has {mine[name]}")


def _flavour(batch: StoredBatch, readings: Sequence[IterationObservation], said: Said) -> Flavour:
    """Defaults of the software, overlaid with what the log says; Megatron's switches are off unless named."""
    name = batch.environment.framework
    stated: dict[str, Scalar] = {**said.strategy, **readings[0].strategy}
    base = TORCHTITAN if "titan" in name else FSDP if "fsdp" in name else DEFAULT
    sharded = base is not DEFAULT
    _, meaning = _memory(readings)
    return Flavour(
        name=name or base.name,
        gradient_dtype=base.gradient_dtype,
        zero_stage=int(stated.get("zero_stage", base.zero_stage if sharded else 0)),
        sequence_parallel=bool(stated.get("sp", False)),
        overlap_grad_reduce=bool(stated.get("overlap_grad_reduce", sharded)),
        overlap_param_gather=bool(stated.get("overlap_param_gather", sharded)),
        overlap_tp=bool(stated.get("overlap_tp", False)),
        memory=meaning,
    )
