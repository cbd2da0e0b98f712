"""The run of a launch script beside the plan that answers its question: yours and ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from planner.answers.diff import FieldChange, strategy_changes
from planner.answers.explain.why_not import WhyNot
from planner.answers.explain.why_not_script import given_run, why_not_run
from planner.errors import DocumentInvalid, MeshwrightError
from planner.operations.launch_files import model_fields, needs_model, read_script, script_backend, script_strategy
from planner.operations.said_script import SaidScript
from planner.plan.plan import Plan
from profiles.validation import FindingsInvalid

if TYPE_CHECKING:
    from planner.model.megatron_args import LaunchJob


@dataclass(frozen=True, slots=True)
class Compared:
    """``yours``: the script's run as a plan, None where it cannot run, which ``reason`` says.

    ``strategy``: fields that differ; a = yours.
    """

    yours: Plan | None
    ours: Plan
    strategy: tuple[FieldChange, ...] = ()
    reason: str = ""

    def data(self) -> dict[str, Any]:
        """Plain data, without the whole plans."""
        return {
            "reason": self.reason or None,
            "strategy": [each.model_dump(mode="json") for each in self.strategy],
            "yours": None if self.yours is None else _numbers(self.yours),
            "ours": _numbers(self.ours),
        }


def _numbers(plan: Plan) -> dict[str, Any]:
    return {
        "backend": plan.backend,
        "step_time_s": plan.step_time_s,
        "peak_memory_bytes": plan.peak_memory_bytes,
        "fits": plan.status != "infeasible",
    }


def compared(job: LaunchJob, ours: Plan) -> Compared:
    """The script's run on the plan's question, nothing of it chosen, beside the plan."""
    try:
        yours = given_run(ours.problem, _held(ours, job), job.chunk_layers, script_backend(job))
    except MeshwrightError as error:
        return Compared(None, ours, reason=error.what)
    return Compared(yours, ours, strategy_changes(yours.strategy, ours.strategy))


def why_not_script(plan: Plan, said: SaidScript) -> tuple[WhyNot, LaunchJob]:
    """Why the plan is not the script's run.  A vocabulary or model that the script does not tell is the plan's.

    Raises NotFound, FindingsInvalid, and DocumentInvalid for a script of another model.
    """
    job = _job_for(plan, said)
    mine, its = model_fields(job.model), model_fields(plan.problem.model)
    shapes = ("num_layers", "hidden_size", "num_heads", "num_experts")
    other = [name for name in shapes if mine.get(name) != its.get(name)]
    if other:
        words = ", ".join(f"{name} {mine.get(name)} and not {its.get(name)}" for name in other)
        here = said.sent is None
        raise DocumentInvalid(
            f"the script trains another model than the plan: {words}",
            where="--why-not" if here else "/text",
            hint="ask about a plan of this model" + (": meshwright plan --from SCRIPT" if here else ""),
        )
    return why_not_run(plan, _held(plan, job), job.chunk_layers, script_backend(job)), job


def _held(plan: Plan, job: LaunchJob) -> dict[str, Any]:
    """The run's strategy; of another batch than the question's its micro-batches are as many as that batch makes."""
    strategy = script_strategy(job)
    if job.workload.get("global_batch_size", 0) != plan.problem.workload.global_batch_size:
        strategy.pop("num_microbatches", None)
    return strategy


def _job_for(plan: Plan, said: SaidScript) -> LaunchJob:
    said = replace(said, devices=plan.problem.cluster.num_devices)
    if said.model is None and needs_model(said.path, said.sent):
        return read_script(replace(said, model=plan.problem.model))
    try:
        return read_script(said)
    except FindingsInvalid as error:
        if said.vocab_size is not None or {finding.pointer for finding in error.findings} != {"/--vocab-size"}:
            raise
    except DocumentInvalid as error:
        if said.model is not None or "--model" not in (error.hint or "") or error.where == "--model":
            raise
        return read_script(replace(said, model=plan.problem.model))
    return read_script(replace(said, vocab_size=plan.problem.model.vocab_size))


def held_to(plan: Plan, job: LaunchJob) -> tuple[str, ...]:
    """Where the script's work is not that of the plan's question, to which it is held."""
    workload, lines = plan.problem.workload, list[str]()
    for name, value in job.workload.items():
        asked = getattr(workload, name, value)
        said = type(asked).model_validate(value) if isinstance(asked, BaseModel) else value
        if asked != said:
            lines.append(f"{name} {asked} of the plan's question, not the script's {value}")
    return tuple(lines)
