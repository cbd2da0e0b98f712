"""From what was found to the answer."""

from __future__ import annotations

from planner.plan.plan import MemoryBill, Plan
from planner.predict.memory.fit_chance import fits_probability
from planner.predict.packed_rows import real_tokens_per_step
from planner.predict.training_flops import step_flops
from planner.question.problem import UNRESTRICTED, Problem
from planner.search.item_notes import item_notes
from planner.search.towers.compose import Together
from planner.search.towers.find import Found, Split, find_places
from planner.search.towers.plan import LanguagePart, PlaceName, SplitAnswer, TowerPart, TowerPlace, TowersPlan
from planner.search.training_notes import training_notes


def towers_plan(problem: Problem, time_limit_s: float | None = None, tower_devices: int | None = None) -> TowersPlan:
    """Where the tower stands best.  Raises what ``planner.search.towers.find.find_places`` does."""
    found = find_places(problem, time_limit_s, tower_devices)
    best_s = found.best_s
    places = [_first_stage(found, found.first_stage)] if found.first_stage is not None else []
    together: dict[PlaceName, Together | None] = {"same_devices": found.same_devices, "own_devices": found.own_devices}
    places += [_place(found, name, each) for name, each in together.items() if each is not None]
    return TowersPlan(
        problem=found.asked.problem,
        modality=found.asked.tower.modality,
        places=tuple(sorted(places, key=lambda each: each.step_time_s)),
        refused=found.refused,
        splits=tuple(_split(each) for each in found.splits),
        memory_limit_bytes=int(found.asked.limit_bytes),
        lower_bound_s=found.lower_bound_s,
        gap=max(0.0, 1.0 - found.lower_bound_s / best_s),
        searches=found.asked.searches,
        assumptions=_assumptions(found),
    )


def _first_stage(found: Found, plan: Plan) -> TowerPlace:
    return TowerPlace(
        place="first_stage",
        **_speed(found, plan.step_time_s),
        peak_memory_bytes=plan.peak_memory_bytes,
        fits_probability=_chance(found, plan.peak_memory_bytes),
        language=_language(plan),
        tower=None,
    )


def _place(found: Found, name: PlaceName, each: Together) -> TowerPlace:
    return TowerPlace(
        place=name,
        **_speed(found, each.step_s),
        peak_memory_bytes=round(each.peak_bytes),
        fits_probability=_chance(found, each.peak_bytes),
        language=_language(each.language),
        tower=_tower(found, each, alone=name == "own_devices"),
    )


def _speed(found: Found, step_s: float) -> dict[str, float]:
    problem, hardware = found.asked.problem, found.asked.hardware
    peak = hardware.pool.device.peak_flops_per_s[problem.workload.matmul_format]
    flops = step_flops(problem.model, problem.workload)
    return {
        "step_time_s": step_s,
        "tokens_per_s": real_tokens_per_step(problem.workload) / step_s,
        "model_flops_utilization": flops / (step_s * hardware.num_devices * peak),
    }


def _chance(found: Found, peak_bytes: float) -> float:
    return fits_probability(found.asked.hardware.memory_bytes, peak_bytes, UNRESTRICTED)


def _language(plan: Plan) -> LanguagePart:
    return LanguagePart(
        devices=plan.problem.cluster.num_devices,
        strategy=plan.strategy,
        stages=plan.stages,
        step_time_s=plan.step_time_s,
    )


def _tower(found: Found, each: Together, *, alone: bool) -> TowerPart:
    """``alone``: with the memory that its processes need beside the tower."""
    bill, asked = each.tower, found.asked
    framework = bill.framework_bytes if alone else 0.0
    beside = bill.beside_bytes(each.in_flight)
    states = bill.weights_bytes + bill.gradients_bytes + bill.optimizer_bytes
    kept = each.in_flight * bill.kept_bytes
    parts = {
        "weights": round(bill.weights_bytes),
        "gradients": round(bill.gradients_bytes),
        "optimizer": round(bill.optimizer_bytes),
        "activations": round(kept),
        "buffers": round(framework + beside - states - kept),
    }
    return TowerPart(
        devices=bill.layout.devices,
        tp=bill.layout.tp,
        dp=bill.layout.dp,
        samples_per_rank=bill.layout.samples_per_rank,
        frozen=asked.problem.workload.trained.freezes(asked.tower.modality),
        forward_s=bill.forward_s,
        backward_s=bill.backward_s,
        late_s=bill.late_s,
        bridge_s=each.bridge_s,
        parameters_per_device=round(bill.parameters),
        in_flight_microbatches=each.in_flight,
        peak_memory_bytes=MemoryBill(**parts, total=sum(parts.values())),
    )


def _split(each: Split) -> SplitAnswer:
    return SplitAnswer(
        tower_devices=each.devices,
        step_time_s=None if each.found is None else each.found.step_s,
        lower_bound_s=None if each.lower_bound_s == float("inf") else each.lower_bound_s,
        reason=each.reason if each.found is None else None,
    )


def _assumptions(found: Found) -> tuple[str, ...]:
    problem, device = found.asked.problem, found.asked.hardware.pool.device.name
    source = "measurements where they reach, else datasheets" if problem.profile is not None else "datasheets"
    return (
        f"operator and link times of {device} are from {source}; launches, kernels and memory are those of a tuned"
        " Megatron-Core run",
        "in every place the language model runs 1F1B without interleaving or context parallelism, with its optimizer"
        " states sharded: what MegatronMIMO runs (Megatron-LM d98e8a64, examples/mimo); `meshwright plan` searches more"
        " for a tower on the first stage",
        "the tower recomputes nothing and has neither pipeline nor context parallelism",
        *item_notes(problem.workload),
        *training_notes(problem.workload.trained),
        "no back-end writes files for a tower with a layout of its own: MegatronMIMO takes models as Python code"
        " (examples/mimo/model_providers); its grids are --encoder-tp, --encoder-dp, --llm-tp, --llm-pp, --llm-dp",
    )
