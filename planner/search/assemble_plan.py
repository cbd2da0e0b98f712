"""Turns a candidate into a plan: numbers rounded to whole bytes, stages spelled out, provenance attached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.backends.asked import inside
from planner.backends.backend import Software
from planner.model.mixers.kinds import FED
from planner.model.spec import AttentionSpec, ModelSpec
from planner.plan.plan import (
    Alternative,
    BackEndAnswer,
    ChunkPlan,
    HostMemory,
    MemoryBill,
    Plan,
    PlanStatus,
    SearchReport,
    StageOffload,
    StagePlan,
    StageRecompute,
    UnrestrictedAnswer,
)
from planner.predict.candidate import Candidate, StageBill
from planner.predict.cost.efficiency import matmul_fraction
from planner.predict.cost.hardware import Hardware
from planner.predict.coverage.coverage import Coverage, coverage
from planner.predict.memory.fit_chance import fits_probability
from planner.predict.packed_rows import real_tokens_per_step
from planner.predict.physics.kernels import AttentionChoice
from planner.predict.physics.physics import Physics
from planner.predict.training_flops import step_flops
from planner.predict.uncertainty import step_interval_s
from planner.question.factors import factor_words
from planner.question.problem import Problem
from planner.search.evaluate import chunk_starts
from planner.search.item_notes import item_notes
from planner.search.model_notes import model_notes
from planner.search.room_notes import room_notes
from planner.search.routing_note import routing_notes
from planner.search.sequence_notes import sequence_notes
from planner.search.source_notes import source_notes
from planner.search.split_limits import host_limit_bytes, memory_limit_bytes
from planner.search.trace_notes import trace_notes, traced_by
from planner.search.training_notes import training_notes
from planner.version import __version__
from profiles.units import HOUR_S

ATTENTION_WORDS: dict[AttentionChoice, str] = {
    "best": "fused (flash)",
    "flash2": "fused (FlashAttention-2)",
    "triton": "fused (the first FlashAttention, in Triton)",
    "unfused": "not fused: its scores are written to memory and kept",
}


def assemble_plan(
    problem: Problem,
    hardware: Hardware,
    candidate: Candidate,
    *,
    software: Software,
    status: PlanStatus,
    lower_bound_s: float | None,
    report: SearchReport,
    others: Sequence[Candidate] = (),
    backends: tuple[BackEndAnswer, ...] = (),
    unrestricted: UnrestrictedAnswer | None = None,
) -> Plan:
    """Write a candidate of one back-end down as an immutable plan; ``problem`` is the question as it was asked.

    ``lower_bound_s``: no plan of the spaces that were searched is faster; None where nobody searched.
    """
    workload, step_s = problem.workload, candidate.step_time_s
    tokens, flops = real_tokens_per_step(workload), step_flops(problem.model, workload)
    peak, devices = hardware.pool.device.peak_flops_per_s[workload.matmul_format], candidate.strategy.world_size
    stages = tuple(_stage(hardware, problem, candidate, index) for index in range(candidate.strategy.pp))
    own, own_name = inside(problem, software), software.name
    covered = None
    if problem.profile is not None:
        covered = coverage(problem, hardware, candidate.strategy, candidate.breakdown_s)
    return Plan(
        problem=problem,
        backend=software.name,
        release=software.release.version,
        backends=backends,
        unrestricted=unrestricted,
        status=status,
        strategy=candidate.strategy.to_dict(),
        stages=stages,
        step_time_s=step_s,
        step_time_interval_s=step_interval_s(
            candidate.breakdown_s,
            covered.input_sigma if covered else None,
            problem.calibration.framework_sigma if problem.calibration else None,
            studied_sigma=software.release.physics.spread_at(
                candidate.strategy.world_size,
                experts=problem.model.num_experts,
                traced=problem.model.traced is not None,
                breakdown_s=candidate.breakdown_s,
            ),
        ),
        tokens_per_s=tokens / step_s,
        tokens_per_s_per_device=tokens / step_s / devices,
        model_flops_per_step=flops,
        model_flops_utilization=flops / (step_s * devices * peak),
        peak_memory_bytes=max(stage.peak_memory_bytes.total for stage in stages),
        memory_limit_bytes=int(memory_limit_bytes(own, hardware)),
        fits_probability=fits_probability(hardware.memory_bytes, candidate.peak_memory_bytes, own_name),
        breakdown_s=candidate.breakdown_s,
        pipeline_hop_s=candidate.hop_s,
        lower_bound_s=lower_bound_s,
        gap=None if lower_bound_s is None else max(0.0, 1.0 - lower_bound_s / step_s),
        search=report,
        alternatives=tuple(_alternative(candidate, other, hardware, own_name) for other in others),
        assumptions=_assumptions(problem, software, hardware, candidate),
        provenance=_provenance(problem, software, hardware, covered),
        cost_per_step=_cost_per_step(problem, step_s, devices),
    )


def _stage(hardware: Hardware, problem: Problem, candidate: Candidate, stage: int) -> StagePlan:
    strategy, split, bill = candidate.strategy, candidate.split, candidate.stages[stage]
    starts = chunk_starts(split.chunk_layers)
    last = strategy.num_chunks - 1
    mtp = problem.model.mtp.num_layers if problem.model.mtp is not None else 0
    chunks = tuple(
        ChunkPlan(
            chunk=chunk,
            first_layer=starts[chunk],
            num_layers=count,
            has_embedding=chunk == 0,
            has_head=chunk == last,
            num_mtp_layers=mtp if chunk == last else 0,
        )
        for chunk, count in enumerate(split.chunk_layers)
        if strategy.chunk_stage(chunk) == stage
    )
    relieved = tuple(min(split.relieved[stage], chunk.num_layers) for chunk in chunks)
    held = [chunk.chunk for chunk in chunks]
    offloads = strategy.activation_offload
    replays = strategy.recompute != "none" and any(relieved)
    return StagePlan(
        stage=stage,
        layers=sum(chunk.num_layers for chunk in chunks),
        chunks=chunks,
        recompute=StageRecompute(
            policy=strategy.recompute if replays else "none",
            modules=strategy.recompute_modules if replays else (),
            num_layers_per_chunk=relieved if replays else (),
        ),
        offload=StageOffload(optimizer=strategy.optimizer_offload, activation_layers=sum(relieved) if offloads else 0),
        peak_memory_bytes=memory_bill(bill),
        host_memory_bytes=host_memory(bill, host_limit_bytes(hardware)),
        parameters_per_device=round(bill.dense_parameters + bill.expert_parameters),
        forward_s=bill.forward_s,
        backward_s=bill.backward_s,
        weight_gradient_s=bill.weight_gradient_s,
        chunk_forward_s=tuple(candidate.chunks.forward_s[held].tolist()),
        chunk_backward_s=tuple(candidate.chunks.backward_s[held].tolist()),
        chunk_weight_gradient_s=tuple(candidate.chunks.weight_gradient_s[held].tolist()),
    )


def memory_bill(bill: StageBill) -> MemoryBill:
    """A stage's bytes by part, whole numbers that add up."""
    parts = {
        "weights": round(bill.weights_bytes),
        "gradients": round(bill.gradients_bytes),
        "optimizer": round(bill.optimizer_bytes),
        "activations": round(bill.activations_bytes),
        "buffers": round(bill.buffers_bytes),
    }
    return MemoryBill(**parts, total=sum(parts.values()))


def host_memory(bill: StageBill, limit_bytes: float) -> HostMemory | None:
    """What a device of a stage keeps in host memory, in whole bytes; None where it keeps nothing."""
    kept, moved = round(bill.host_optimizer_bytes), round(bill.host_activations_bytes)
    if not kept and not moved:
        return None
    return HostMemory(optimizer=kept, activations=moved, total=kept + moved, limit=int(limit_bytes))


def _alternative(chosen: Candidate, other: Candidate, hardware: Hardware, backend: str) -> Alternative:
    mine, theirs = chosen.strategy.to_dict(), other.strategy.to_dict()
    return Alternative(
        strategy=theirs,
        step_time_s=other.step_time_s,
        peak_memory_bytes=round(other.peak_memory_bytes),
        slower_by=other.step_time_s / chosen.step_time_s - 1.0,
        differs_in=tuple(name for name in mine if mine[name] != theirs[name]),
        fits_probability=fits_probability(hardware.memory_bytes, other.peak_memory_bytes, backend),
    )


def _assumptions(problem: Problem, software: Software, hardware: Hardware, candidate: Candidate) -> tuple[str, ...]:
    workload, device = problem.workload, hardware.pool.device
    notes = [
        _input_note(problem, device.name),
        *_calibration_notes(problem),
        _physics_note(software),
        _attention_note(hardware.physics, problem.model),
        f"gradients are accumulated and reduced in {workload.gradient_dtype}, optimizer {workload.optimizer}",
        *training_notes(workload.trained),
        *room_notes(problem.constraints, software),
        *model_notes(problem, software, candidate.strategy),
        "every node, device and link runs at its nominal speed; no stragglers, no checkpoint or data-loading stalls",
    ]
    if workload.matmul_format not in device.achievable_matmul_fraction:
        notes.append(
            f"best matmul rate of {device.name} is not measured;"
            f" {matmul_fraction(device, workload.matmul_format):.0%} of peak assumed"
        )
    notes += routing_notes(problem, hardware, candidate)
    notes += sequence_notes(problem, hardware, candidate)
    notes += source_notes(problem)
    notes += trace_notes(problem.model)
    notes += item_notes(workload)
    for tower in problem.model.towers:
        if workload.items_per_sample(tower.modality) == 0:
            fed, named = FED[tower.modality], tower.modality
            notes.append(f"no {fed} in the samples: the {named} tower holds memory but does no work")
    return tuple(notes)


def _input_note(problem: Problem, device: str) -> str:
    if problem.profile is None:
        return f"operator and link times are datasheet predictions for {device}; a measured profile replaces them"
    return (
        f"{problem.profile.num_points:,} measured points of profile {problem.profile.profile_id[:12]} give the operator"
        f" and link times of {device} where they reach, datasheets the rest (see `meshwright profile coverage`)"
    )


def _calibration_notes(problem: Problem) -> tuple[str, ...]:
    """What a calibration does to the numbers; nothing without one."""
    used = problem.calibration
    if used is None:
        return ()
    whose = f"{used.framework} {used.framework_version}".strip()
    factors = ", ".join(factor_words(*item) for item in used.factors.changed().items()) or "all neutral"
    note = (
        f"calibration {used.calibration_id[:12]} ({whose} on {used.device}, {used.num_rows} measured step times)"
        f" corrects the predictions: {factors}"
    )
    if used.fitted_on_profile == problem.profile_id:
        return (note,)
    fitted = "datasheet predictions" if used.fitted_on_profile is None else f"profile {used.fitted_on_profile[:12]}"
    return (f"{note}; it was fitted on {fitted}, which are not the inputs of this plan",)


def _attention_note(physics: Physics, model: ModelSpec) -> str:
    masks = "dropout masks are kept" if physics.dropout else "no dropout masks are kept"
    both = any(isinstance(kind.attention, AttentionSpec) and not kind.attention.causal for kind in model.layer_kinds)
    seen = ("causal in the decoder, both ways in the encoder" if model.encoder else "both ways") if both else "causal"
    biased = any(
        isinstance(kind.attention, AttentionSpec) and kind.attention.position_bias for kind in model.layer_kinds
    )
    whole = "; biases by distance are kept as whole tables, as the classes of transformers make them" if biased else ""
    return f"attention is {seen} and {ATTENTION_WORDS[physics.attention]}{whole}; {masks}"


def _physics_note(software: Software) -> str:
    return f"launches, kernels, overlap and memory are those of {software.title}: {software.release.physics.summary}"


def _provenance(problem: Problem, software: Software, hardware: Hardware, covered: Coverage | None) -> dict[str, Any]:
    device = hardware.pool.device
    return {
        "software": __version__,
        "model": problem.model.content_hash(),
        "cluster": problem.cluster.content_hash(),
        "profile": problem.profile_id,
        "backend": software.spelled,
        "physics": software.release.physics.name,
        **({} if problem.model.traced is None else {"model_traced": traced_by(problem.model.traced)}),
        **_calibration_provenance(problem),
        "inputs": "datasheet" if covered is None else "measured where the profile reaches, else datasheet",
        "time_by_input": {"datasheet": 1.0}
        if covered is None
        else {name: round(share, 4) for name, share in sorted(covered.provenance_shares.items())},
        "device": {
            name: {"confidence": source.confidence, "source": source.source}
            for name, source in device.provenance.items()
        },
        "engine": "best-bound-first over the declared space; stage dealing by exact dynamic programming",
    }


def _calibration_provenance(problem: Problem) -> dict[str, Any]:
    used = problem.calibration
    if used is None:
        return {}
    identity = used.model_dump(mode="json", exclude={"schema_version", "factors"})
    return {"calibration": {**identity, "factors": used.factors.changed()}}


def _cost_per_step(problem: Problem, step_s: float, devices: int) -> float | None:
    price = problem.objective.price_per_device_hour or problem.cluster.price_per_device_hour
    return None if price is None else price * devices * step_s / HOUR_S
