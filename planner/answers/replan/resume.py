"""What a change of plan means for a run that goes on: the loss curve, and what its checkpoint can become.

What holds for every back-end is said here; what a back-end's software adds is data of its room
(``planner.backends.resuming``), with its source.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.backends.asked import software_of
from planner.backends.resuming import DATA_PARALLEL, LAYOUT, Keeps, LossEffect, Matters, Reshaping
from planner.plan.plan import Plan
from planner.question.problem import Workload
from profiles.document import Document

ARITHMETIC = "arithmetic"
SUMS = frozenset({*LAYOUT, "micro_batch_size", "num_microbatches", "zero_stage"})
GENERAL = (
    LossEffect(
        frozenset({"global_batch_size"}),
        "no",
        "another number of samples a step is another gradient and another number of steps an epoch; learning rate and"
        " schedule were chosen for the old one",
        ARITHMETIC,
    ),
    LossEffect(
        DATA_PARALLEL | {"micro_batch_size", "num_microbatches", "zero_stage"},
        "up to rounding",
        "gradients of the same samples are added in another order",
        ARITHMETIC,
    ),
    LossEffect(
        frozenset({"tp", "etp", "cp"}),
        "up to rounding",
        "partial sums of matmuls or of attention are added in another order",
        ARITHMETIC,
    ),
    LossEffect(
        frozenset({"pp", "vpp", "ep"}),
        "up to rounding",
        "the same operations run elsewhere; the norm of all gradients is added in another order",
        ARITHMETIC,
    ),
    LossEffect(
        frozenset({"schedule", "recompute", "recompute_modules", "optimizer_offload", "activation_offload"}),
        "exactly",
        "the same operations run on the same numbers at another time",
        ARITHMETIC,
    ),
)
ORDER: tuple[Keeps, ...] = ("exactly", "up to rounding", "no")


class LossChange(Document):
    """One change of fields, and whether the loss curve stays."""

    fields: tuple[str, ...] = Field(description="with their values before and after: tp 4 -> 2")
    keeps: Keeps
    why: str
    source: str


class CheckpointUse(Document):
    """Whether a checkpoint of the old plan can be loaded by the new one, and how."""

    format: str | None = Field(description="null: not known, or the back-end writes none")
    loads: Literal["as it is", "if saved so", "once converted", "no", "not known"]
    saved_with: str = Field(description="what it must have been written with; empty = nothing special")
    steps: tuple[str, ...] = Field(description="what to run or set before the restart")
    not_restored: tuple[str, ...]
    why: str
    source: str


def changed_fields(old: Plan, new: Plan) -> dict[str, tuple[object, object]]:
    """Strategy fields and the global batch that differ: before and after.

    ``dp`` follows from its two parts; ``microbatch_group_size`` orders the same work.
    """
    before = {**old.strategy, "global_batch_size": old.problem.workload.global_batch_size}
    after = {**new.strategy, "global_batch_size": new.problem.workload.global_batch_size}
    return {name: (before[name], after[name]) for name in before if name in after and before[name] != after[name]}


def loss_changes(old: Plan, new: Plan) -> tuple[LossChange, ...]:
    """What each change of fields does to the loss curve, the worst first; none where nothing changes."""
    changed = changed_fields(old, new)
    found = []
    for effect in (*GENERAL, *software_of(new).backend.resuming.effects):
        fields = [name for name in changed if name in effect.fields]
        if fields and _applies(effect.matters, old):
            words = tuple(f"{name} {changed[name][0]} -> {changed[name][1]}" for name in fields)
            found.append(LossChange(fields=words, keeps=effect.keeps, why=effect.why, source=effect.source))
    return tuple(sorted(found, key=lambda each: -ORDER.index(each.keeps)))


def keeps_curve(changes: tuple[LossChange, ...]) -> Keeps:
    """The loss curve as a whole."""
    return max((each.keeps for each in changes), key=ORDER.index, default="exactly")


def _applies(matters: Matters, plan: Plan) -> bool:
    workload: Workload = plan.problem.workload
    if matters == "experts":
        return plan.problem.model.has_experts
    if matters == "dropout":
        return workload.dropout
    return matters == "always" or workload.sequences is not None or workload.training is not None


def checkpoint_use(old: Plan, new: Plan) -> CheckpointUse:
    """The first way of the old plan's format that covers all degrees that change."""
    software = software_of(old)
    resuming = software.backend.resuming
    zero = old.chosen().zero_stage
    made = next((each for each in resuming.formats if zero in each.zero_stages), None)
    if not resuming.saves:
        return _without("no", f"{software.title} writes no checkpoints: the state can only come from devices that stay")
    if made is None:
        return _without("not known", f"what a checkpoint of {software.title} can be loaded with is not known here")
    changed = changed_fields(old, new)
    degrees = {name for name in changed if name in LAYOUT or name == "zero_stage"}
    named = ", ".join(f"{name} {changed[name][0]} -> {changed[name][1]}" for name in sorted(degrees)) or "no degree"
    notes = tuple(word for fields, word in made.notes if fields & degrees)
    way = next((each for each in made.ways if degrees <= each.changes), None)
    if way is None:
        held = sorted(degrees - max((each.changes for each in made.ways), key=len, default=frozenset()))
        words = f"no way is known to load it with another {', '.join(held)}"
        return CheckpointUse(
            format=made.name,
            loads="no",
            saved_with="",
            steps=(),
            not_restored=notes,
            why=words,
            source=_sources(made.ways),
        )
    loads: Literal["as it is", "if saved so", "once converted"] = "if saved so" if way.saved_with else "as it is"
    return CheckpointUse(
        format=made.name,
        loads="once converted" if way.converts else loads,
        saved_with=way.saved_with,
        steps=way.steps,
        not_restored=notes,
        why=f"{named}",
        source=way.source,
    )


def _sources(ways: tuple[Reshaping, ...]) -> str:
    return "; ".join(each.source for each in ways)


def _without(loads: Literal["no", "not known"], why: str) -> CheckpointUse:
    return CheckpointUse(format=None, loads=loads, saved_with="", steps=(), not_restored=(), why=why, source="")
