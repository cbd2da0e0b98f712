"""How is a plan emitted for a target that cannot express all of it?  Projected, costed again, the loss reported."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.emit.assemble import PLAN_MARKDOWN
from planner.emit.catalogue import target_module
from planner.emit.describe import plan_markdown
from planner.emit.emission import Emission, LauncherName
from planner.errors import DocumentInvalid, TargetRefused
from planner.plan import Plan


@dataclass(frozen=True, slots=True)
class TargetEmission:
    """An emission whose plan has honest numbers, and how much the target's limits cost."""

    emission: Emission
    slower_by: float
    """Step time of the emitted plan over the wanted one, minus one; 0 when nothing was given up."""


def emit_for_target(plan: Plan, target: str, launcher: LauncherName) -> TargetEmission:
    """Emit ``plan``; a projected plan is estimated again so that its files carry its own numbers.

    Raises NotFound for an unknown target, TargetRefused when neither the plan nor its projection can run there.
    """
    module = target_module(target)
    first = module.emit(plan, launcher)
    if not first.projections:
        return TargetEmission(first, 0.0)
    costed = _cost_again(first.plan, target)
    second = module.emit(costed, launcher)
    emission = replace(second, projections=(*first.projections, *second.projections))
    files = {**emission.files, PLAN_MARKDOWN: plan_markdown(emission)}
    return TargetEmission(replace(emission, files=files), costed.step_time_s / plan.step_time_s - 1)


def _cost_again(projected: Plan, target: str) -> Plan:
    """The projected plan with numbers of its own."""
    from planner.search.estimate import estimate

    chunks = sorted((chunk for stage in projected.stages for chunk in stage.chunks), key=lambda chunk: chunk.chunk)
    hint = f"plan again with --target {target}, so that the search stays inside what it can run"
    try:
        costed = estimate(projected.problem, projected.chosen(), tuple(chunk.num_layers for chunk in chunks))
    except DocumentInvalid as error:
        raise TargetRefused(
            f"the nearest plan that {target} can express is not legal: {error.what}",
            where=f"--target {target}",
            hint=hint,
        ) from error
    if costed.status == "infeasible":
        over = (costed.peak_memory_bytes - costed.memory_limit_bytes) / 2**30
        lack = f"misses {over:.1f} GiB" if over > 0 else "breaks a limit of the problem"
        raise TargetRefused(f"the nearest plan that {target} can express {lack}", where=f"--target {target}", hint=hint)
    return costed
