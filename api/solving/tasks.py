"""The tasks that are computed outside the event loop: one function a question, plain data in, bytes out.

They run in processes of their own (``api.solving.child``): numpy work would hold up every other request.  Each imports
what it needs, so that a process that only estimates never loads an emitter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from api.solving.watch import Watch
from planner.operations.estimate import ESTIMATE, EstimateRequest
from planner.operations.operation import Operation, Session, nothing_stored
from planner.operations.pools import POOLS, PoolsRequest
from planner.operations.registry import OPERATIONS
from planner.operations.replan import REPLAN
from planner.operations.rl import RL_ESTIMATE, RL_PLAN, RlEstimateRequest, RlRequest
from planner.operations.script import READ_SCRIPT, ScriptRequest, script_answer
from planner.operations.serving import (
    SERVING_ESTIMATE,
    SERVING_PLAN,
    ServingEstimateRequest,
    ServingPlanRequest,
)
from planner.operations.towers import TOWERS, TowersRequest
from planner.plan.plan import Plan
from planner.question.problem import Problem
from planner.search.options import SearchOptions
from profiles.document import Document, canonical_json

Payload = Mapping[str, Any]


Task = Callable[[Payload, Watch], bytes]
"""Payload and who waits for the answer -> canonical JSON, or a page."""


def plan(payload: Payload, watch: Watch) -> bytes:
    """The best plan of a ``PlanRequest``.  Raises NoFeasiblePlan, BudgetSpent, DocumentInvalid, DeadlineReached."""
    from api.jobs.board import PlanRequest
    from planner.search.find import find_plan

    request = PlanRequest.model_validate(payload)
    options = replace(request.search_options(), stop=watch.stop.is_set)
    found = find_plan(request.problem, options, watch.report)
    return _document(_proved(found, request.problem))


def estimate(payload: Payload, watch: Watch) -> bytes:
    """One strategy's plan, fitting or not."""
    problem = Problem.model_validate(payload["problem"])
    given = {name: payload[name] for name in ("strategy", "chunk_layers", "launched")}
    found = ESTIMATE.work(_session(watch), EstimateRequest(question=problem, **given))
    return _json(
        {
            "fits": found.plan.status != "infeasible",
            "missing_bytes": max(found.plan.peak_memory_bytes - found.plan.memory_limit_bytes, 0),
            "filled_in": found.filled_in,
            "plan": found.plan.model_dump(mode="json", exclude={"problem"}),
            "problem": payload["problem"] if payload["include_problem"] else None,
        }
    )


def bounds(payload: Payload, watch: Watch) -> bytes:
    """Whether a question can have a plan, and how fast one can be."""
    from planner.answers.bounds import problem_bounds

    return _document(problem_bounds(Problem.model_validate(payload)))


def pools(payload: Payload, watch: Watch) -> bytes:
    """A plan over several kinds of devices, and its launch files."""
    # The check of plans knows one kind of device; every stage was recomputed where the plan was put together.
    session = replace(_session(watch), keep=lambda _made, _wall_s: None)
    return _in_order(POOLS.work(session, PoolsRequest.model_validate(payload)).model_dump(mode="json"))


def towers(payload: Payload, watch: Watch) -> bytes:
    """Where a tower stands best."""
    return _document(TOWERS.work(_session(watch), TowersRequest.model_validate(payload)))


def rl_plan(payload: Payload, watch: Watch) -> bytes:
    """The best deployment for a step of RL."""
    return _document(RL_PLAN.work(_session(watch), RlRequest.model_validate(payload)))


def rl_estimate(payload: Payload, watch: Watch) -> bytes:
    """The step of RL as somebody runs it."""
    return _document(RL_ESTIMATE.work(_session(watch), RlEstimateRequest.model_validate(payload)))


def serving_plan(payload: Payload, watch: Watch) -> bytes:
    """The best deployment of a serving engine."""
    return _document(SERVING_PLAN.work(_session(watch), ServingPlanRequest.model_validate(payload)))


def serving_estimate(payload: Payload, watch: Watch) -> bytes:
    """What a given deployment gives."""
    return _document(SERVING_ESTIMATE.work(_session(watch), ServingEstimateRequest.model_validate(payload)))


def fleet(payload: Payload, watch: Watch) -> bytes:
    """The fleet of a ``FleetRequest``, as JSON text, and the new plans of its curves.

    Told to stop it shares the fleet by the speeds that are known by then.
    """
    from planner.answers.fleet.question import FleetQuestion
    from planner.operations.fleet import FLEET

    made = list[Plan]()
    session = replace(
        _session(watch, lambda name: _stored(payload["plans"][name])),
        search=SearchOptions(top_k=0, stop=watch.stop.is_set),
        progress=watch.report_sizes,
        keep=lambda plan, _wall_s: made.append(_proved(plan, plan.problem)),
    )
    found = FLEET.work(session, FleetQuestion.model_validate(payload["asked"]))
    return _json({"fleet": found.model_dump_json(), "plans": [plan.model_dump_json() for plan in made]})


def script(payload: Payload, watch: Watch) -> bytes:
    """What a launch script says, its run on a question and beside a plan."""
    problem = None if payload["problem"] is None else Problem.model_validate(payload["problem"])
    plan = None if payload["plan"] is None else _plan(payload)
    return _document(script_answer(ScriptRequest.model_validate(payload["asked"]), problem, plan))


def emission(payload: Payload, watch: Watch) -> bytes:
    """The launch files of a plan, with their manifest; no search.

    ``asked``: the plan that was asked about, where the files are of the same question's plan in another back-end.
    """
    from planner.answers.diff import diff_plans
    from planner.answers.replan.other_backend import PlanThere
    from planner.backends.launch.settings import LaunchSettings
    from planner.operations.emit import emission_view

    plan = _plan(payload)
    asked = _stored(payload["asked"]) if "asked" in payload else None
    there = PlanThere(plan, None if asked is None else diff_plans(asked, plan))
    view = emission_view(there, payload["launcher"], LaunchSettings.from_dict(payload["settings"]))
    return _in_order(view.model_dump(mode="json"))


def quick_plan(payload: Payload, watch: Watch) -> bytes:
    """A good plan soon, with the bound of the whole space."""
    from planner.answers.throughput.quick_plan import quick_plan as plan_quickly

    left_s = max(watch.left_s, 0.01)
    problem = Problem.model_validate(payload["problem"])
    return _document(_proved(plan_quickly(problem, min(left_s, payload["most_s"]), payload.get("seed", 0)), problem))


def closer_plan(payload: Payload, watch: Watch) -> bytes:
    """A quick plan, or a faster one, with a closer bound; and whether more time may find more."""
    from planner.answers.throughput.quick_plan import closer_plan as plan_closer

    plan = _plan(payload)
    found, more = plan_closer(plan, min(max(watch.left_s, 0.01), payload["most_s"]), payload["seed"])
    return _json({"plan": _proved(found, plan.problem).model_dump(mode="json"), "more": more})


def cluster_completion(payload: Payload, watch: Watch) -> bytes:
    """The cluster that topology files describe."""
    from api.uploads.completing import completed

    return completed(payload).model_dump_json().encode()


def measurement_import(payload: Payload, watch: Watch) -> bytes:
    """What logs and traces measured, stored unless it is a dry run."""
    from api.uploads.storing import stored

    return stored(payload, watch.check).model_dump_json().encode()


def replan(payload: Payload, watch: Watch) -> bytes:
    """Other devices for the plan whose text is sent; ``known``: texts of proved plans that need no search."""
    known = {plan.problem.problem_id: plan for plan in map(_stored, payload["known"])}
    plan = _plan(payload)
    session = replace(_session(watch, lambda _name: plan), known=lambda problem: known.get(problem.problem_id))
    asked = REPLAN.request(**{**payload["asked"], "plan": plan.plan_id})
    return _document(REPLAN.work(session, asked))


def about_plan(operation: Operation[Any, Any], payload: Payload, watch: Watch) -> bytes:
    """What an operation says about the plan whose text is sent in the place of its name; a new plan is proved."""
    plan = _plan(payload)
    session = _session(watch, lambda _name: plan)
    answer = operation.work(session, operation.request(**{**payload, "plan": plan.plan_id}))
    if isinstance(answer, Document):
        return _document(answer)
    return answer.encode() if isinstance(answer, str) else _in_order(answer)


TASKS: dict[str, Task] = {
    **{each.task: partial(about_plan, each) for each in OPERATIONS if each.served == "view"},
    "plan": plan,
    REPLAN.task: replan,
    ESTIMATE.task: estimate,
    "bounds": bounds,
    POOLS.task: pools,
    TOWERS.task: towers,
    RL_PLAN.task: rl_plan,
    RL_ESTIMATE.task: rl_estimate,
    SERVING_PLAN.task: serving_plan,
    SERVING_ESTIMATE.task: serving_estimate,
    "fleet": fleet,
    READ_SCRIPT.task: script,
    "emission": emission,
    "quick_plan": quick_plan,
    "closer_plan": closer_plan,
    "cluster_completion": cluster_completion,
    "measurement_import": measurement_import,
}
"""Name -> task; what is not here is never called."""


def _proved(found: Plan, asked: Problem) -> Plan:
    """The plan, recomputed from its own decisions.  Raises SolverInconsistent: what is refused is never stored."""
    from api.errors import refused_by_checker
    from planner.search.recheck import recheck_plan
    from solver.check import CheckFailed

    try:
        recheck_plan(found, asked)
    except CheckFailed as error:
        raise refused_by_checker(error) from None
    return found


def _plan(payload: Payload) -> Plan:
    return _stored(payload["plan"])


def _stored(text: str) -> Plan:
    """A plan of its stored text, known by that text's id also where it is of an earlier version."""
    return Plan.model_validate_json(text)


def _document(document: Document) -> bytes:
    return document.canonical_json().encode()


def _in_order(data: Any) -> bytes:
    """Not canonical: a manifest keeps its order, so that a folder is the same wherever it is written."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _session(watch: Watch, plan: Callable[[str], Plan] = nothing_stored) -> Session:
    """A computing process: it opens no database, and proves new plans."""
    return Session(
        plan,
        search=SearchOptions(top_k=0),
        progress=watch.check,
        keep=lambda made, _wall_s: _proved(made, made.problem),
    )


def _json(data: Any) -> bytes:
    return canonical_json(data).encode()
