"""Meshwright in notebooks and scripts: documents in, documents out.

    import meshwright

    plan = meshwright.plan("llama-3.1-70b", "dgx-h100", devices=64, global_batch_size=1024, sequence_length=8192)
    plan.step_time_s, plan.strategy, plan.bound
    meshwright.explain(plan)
    meshwright.why_not(plan, tp=8, pp=2)
    meshwright.emit(plan, "out/best")

A model or cluster is a built-in name, a file, plain data or a document; a plan is a ``Plan``, or the id, label or file
of one.  Errors are ``meshwright.MeshwrightError`` with what, where and hint.  In a notebook a plan shows its report.
What is listed in ``__all__`` stays; everything behind it (``planner``, ``profiles``, ``solver``) is private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import MeshwrightError
from planner.operations.notebook import show_plans
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.version import __version__

if TYPE_CHECKING:
    from planner.answers.diff import PlanDiff
    from planner.answers.explain.why import Explanation
    from planner.answers.explain.why_not import WhyNot
    from planner.answers.replan.replan import Replan
    from planner.answers.sensitivity import Sensitivity
    from planner.answers.throughput.curve import Throughput

__all__ = [
    "Constraints", "MeshwrightError", "Objective", "Plan", "Problem", "Workload", "__version__", "diff", "emit",
    "estimate", "explain", "load", "plan", "problem", "replan", "save", "sensitivity", "throughput", "why_not",
]  # fmt: skip
PlanSaid = Plan | str | Path


def problem(model: Any, cluster: Any, *, devices: int | None = None, **said: Any) -> Problem:
    """The question.  ``said``: fields of ``Workload``, ``Constraints``, ``Objective``; ``profile``; ``calibration``.

    ``pin`` and ``forbid`` stand for ``pins`` and ``forbids``, ``backend`` for ``backends`` ("any", "megatron,native").
    """
    from planner.operations.said import said_problem

    return said_problem(model, cluster, devices, said)


def plan(model: Any, cluster: Any = None, *, top: int = 3, time_limit_s: float | None = None, **said: Any) -> Plan:
    """The best plan of a ``Problem``, or of what ``problem`` takes.  Raises MeshwrightError."""
    from planner.search.find import find_plan
    from planner.search.options import SearchOptions

    asked = model if isinstance(model, Problem) else problem(model, cluster, **said)
    return find_plan(asked, SearchOptions(top_k=top, time_limit_s=time_limit_s))


def estimate(strategy: str | Mapping[str, Any], model: Any, cluster: Any = None, **said: Any) -> Plan:
    """The prediction of one strategy, ``"tp=8,pp=4"`` or fields; ``status`` is ``infeasible`` where it does not fit."""
    from planner.operations.said import said_estimate

    asked = model if isinstance(model, Problem) else problem(model, cluster, **said)
    return said_estimate(asked, strategy)


def explain(plan: PlanSaid, *, brief: bool = False) -> Explanation:
    """Why this plan: what binds, what each choice costs, what the next faster one lacks."""
    from planner.answers.explain.why import explain as why

    return why(load(plan), with_neighbours=not brief)


def why_not(plan: PlanSaid, **fields: Any) -> WhyNot:
    """The best plan with these fields of a strategy, or what rules them out: ``why_not(plan, tp=8, pp=2)``."""
    from planner.answers.explain.why_not import why_not as ask
    from planner.strategy.fields import PINNABLE
    from planner.strategy.text import checked_fields

    return ask(load(plan), checked_fields(fields, "why_not", PINNABLE))


def diff(a: PlanSaid, b: PlanSaid) -> PlanDiff:
    """How two plans differ, term by term."""
    from planner.answers.diff import diff_plans

    return diff_plans(load(a), load(b))


def sensitivity(
    plan: PlanSaid, changes: Sequence[float] = (-0.2, -0.1, 0.1, 0.2), *, replan: bool = True
) -> Sensitivity:
    """How time and choice depend on inputs that may be wrong by these fractions."""
    from planner.answers.sensitivity import sensitivity as analyse

    return analyse(load(plan), tuple(changes), replan=replan)


def replan(plan: PlanSaid, **said: Any) -> Replan:
    """The layout kept and the fastest one on other devices of the same kind, what must move, and which to take.

    ``said``: one of ``devices``, ``lost_nodes``, ``lost_devices``, ``num_lost_nodes``, and ``node_names``,
    ``prefer_layout``, ``horizon_hours``, ... (``planner.operations.replan.ReplanQuestion``).
    """
    from planner.operations.said import said_replan

    return said_replan(load(plan), said)


def throughput(
    model: Any, cluster: Any, device_counts: Sequence[int], *, budget_s: float = 10.0, **said: Any
) -> Throughput:
    """How fast on each of several device counts, within one budget of time."""
    from planner.answers.throughput.curve import throughput_curve

    asked = problem(model, cluster, **{"prefer": "fastest", **said})
    return throughput_curve(asked, tuple(device_counts), budget_s=budget_s)


def emit(plan: PlanSaid, directory: str | Path, *, backend: str | None = None, launcher: str = "torchrun") -> Path:
    """Launch files in a folder, for the plan's own back-end or from the best plan of its question on another one."""
    from planner.operations.said import said_emission

    return said_emission(load(plan), Path(directory), backend, launcher)


def load(plan: PlanSaid) -> Plan:
    """A plan by its id, prefix or label in the database, or from a file or an emitted folder; a ``Plan`` is itself."""
    from planner.operations.plan_reference import load_plan

    return plan if isinstance(plan, Plan) else load_plan(str(plan))


def save(plan: Plan) -> str:
    """Keep a plan in the database; its id."""
    from planner.store import open_store

    with open_store(None) as store:
        return store.save_plan(plan)


show_plans()
