"""The numbers that a plan leans on, how sure they are, and what should be measured next."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from planner.backends.asked import physics_of
from planner.plan.plan import Plan
from planner.predict.cost.measured import nodes_of_group
from planner.predict.coverage.leaning import Leaning
from planner.question.problem import Problem
from profiles.document import Document
from profiles.prediction.profile import TableOrigin
from profiles.prediction.rungs import PROVENANCE_OF_RUNG


class Lookup(Document):
    """One number that the step time was made from."""

    term: str
    operator: str
    part: str
    dtype: str
    shape: dict[str, int]
    rung: str = Field(description="how it was found in the profile")
    input: str = Field(description="measured, interpolated, extrapolated, transferred or datasheet")
    sigma: float = Field(description="spread of its log")
    share_of_step: float


class Gain(Lookup):
    """A lookup that a measurement would make surer."""

    sigma_gain: float = Field(description="what the spread of the whole step would lose")


class LeaningView(Document):
    """Where the time of a step comes from."""

    plan_id: str
    profile_id: str | None
    device: str
    step_time_s: float
    step_time_interval_s: tuple[float, float] = Field(description="80 %")
    sigma: float
    input_sigma: dict[str, float]
    time_by_input: dict[str, float] = Field(description="share of the looked-up time by where it comes from")
    lookups: tuple[Lookup, ...]
    num_lookups: int
    measure_next: tuple[Gain, ...]
    commands: tuple[str, ...] = Field(description="what measures the lookups that help most, on a node of the device")
    tables: tuple[TableOrigin, ...]


def leaning_view(plan: Plan, rows: int, problem: Problem | None = None) -> LeaningView:
    """The largest ``rows`` lookups of a plan; ``problem``: the plan's with another profile, to look them up there."""
    from planner.predict.cost.hardware import problem_hardware
    from planner.predict.coverage.coverage import coverage

    problem = problem or plan.problem
    hardware = problem_hardware(problem, physics_of(plan))
    found = coverage(problem, hardware, plan.chosen(), plan.breakdown_s)
    measured = hardware.rates.measured.profile if hardware.rates.measured else None
    interval, sigma = _spread(plan, found.input_sigma if measured else None)
    gains = found.gains()[:rows]
    return LeaningView(
        plan_id=plan.plan_id,
        profile_id=measured.profile_id if measured else None,
        device=problem.cluster.pools[0].device.name,
        step_time_s=plan.step_time_s,
        step_time_interval_s=interval,
        sigma=sigma,
        input_sigma=found.input_sigma,
        time_by_input=found.provenance_shares,
        lookups=tuple(_lookup(each, plan.step_time_s) for each in found.leanings[:rows]),
        num_lookups=len(found.leanings),
        measure_next=tuple(
            Gain(**_lookup(each, plan.step_time_s).model_dump(), sigma_gain=gain) for each, gain in gains
        ),
        commands=_commands(plan, [each for each, gain in gains if gain > 0]),
        tables=() if measured is None else measured.origins,
    )


def _spread(plan: Plan, input_sigma: dict[str, float] | None) -> tuple[tuple[float, float], float]:
    from planner.backends.asked import physics_of
    from planner.predict.uncertainty import step_interval_s, step_sigma

    used = plan.problem.calibration
    traits, model = physics_of(plan), plan.problem.model
    studied = traits.spread_at(
        plan.chosen().world_size,
        experts=model.num_experts,
        traced=model.traced is not None,
        breakdown_s=plan.breakdown_s,
    )
    spread = (input_sigma, used.framework_sigma if used else None)
    interval = step_interval_s(plan.breakdown_s, *spread, studied_sigma=studied)
    return interval, step_sigma(plan.breakdown_s, *spread, studied)


def _lookup(leaning: Leaning, step_s: float) -> Lookup:
    return Lookup(
        term=leaning.term,
        operator=leaning.operator,
        part=leaning.part,
        dtype=leaning.dtype,
        shape=leaning.shape,
        rung=leaning.rung.name.lower(),
        input=PROVENANCE_OF_RUNG[leaning.rung],
        sigma=leaning.sigma,
        share_of_step=leaning.seconds / step_s,
    )


def _commands(plan: Plan, wanted: list[Leaning]) -> tuple[str, ...]:
    commands: list[str] = []
    strategy, workload = plan.chosen(), plan.problem.workload
    if any(leaning.term == "compute" for leaning in wanted):
        commands.append(
            f"meshwright profile measure --model {plan.problem.model.name} --tp {strategy.tp}"
            f" --sequence-length {workload.sequence_length} --dtype {workload.precision}"
        )
    groups = [leaning for leaning in wanted if leaning.term != "compute"]
    if groups:
        pool = plan.problem.cluster.pools[0]
        size, stride = (np.array([each.shape[name] for each in groups]) for name in ("group_size", "stride"))
        # Tables are kept by the number of nodes of a group: where it lies on the fabric does not matter.
        nodes = min(int(nodes_of_group(size, stride, pool.devices_per_node).max()), pool.num_nodes)
        launch = f"torchrun --nnodes {nodes} --nproc-per-node {pool.devices_per_node} --no-python"
        commands.append(f"{launch} meshwright profile measure --only collectives,overlap")
    return tuple(commands)
