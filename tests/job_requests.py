"""Planning requests for jobs: a small one that is solved in milliseconds, and one that takes seconds."""

from __future__ import annotations

from api.jobs.board import PlanRequest
from planner.model.builtin import builtin_model
from planner.question.problem import Constraints, Problem, Workload
from tests.faulty_solver import HANG
from tests.plan_factory import make_cluster, make_model


def small_request(batch: int = 8, *, priority: int = 0) -> PlanRequest:
    """A tiny model on four devices with its degrees pinned; every ``batch`` is another problem."""
    problem = Problem(
        model=make_model(),
        cluster=make_cluster(4),
        workload=Workload(global_batch_size=batch, sequence_length=2048),
        constraints=Constraints(pins={"tp": 1, "pp": 1, "cp": 1, "micro_batch_size": 1, "zero_stage": 1}),
    )
    return PlanRequest(problem=problem, top_k=0, priority=priority)


def slow_request(batch: int = 2048, num_devices: int = 2048) -> PlanRequest:
    """A large mixture of experts on thousands of devices: seconds of search."""
    problem = Problem(
        model=builtin_model("deepseek-v3"),
        cluster=make_cluster(num_devices),
        workload=Workload(global_batch_size=batch, sequence_length=4096),
    )
    return PlanRequest(problem=problem)


def long_request() -> PlanRequest:
    """A first plan within a second, and a proof that takes many: a hundred thousand devices have many degrees."""
    problem = Problem(
        model=builtin_model("llama-3.1-405b"),
        cluster=make_cluster(100_000),
        workload=Workload(global_batch_size=10_000, sequence_length=4096),
    )
    return PlanRequest(problem=problem)


def infeasible_request() -> PlanRequest:
    """A model that no plan fits on one device."""
    problem = Problem(
        model=builtin_model("llama-3.1-405b"),
        cluster=make_cluster(1),
        workload=Workload(global_batch_size=8, sequence_length=4096),
    )
    return PlanRequest(problem=problem)


def faulty_request(fault: int, batch: int = 8, *, limited: bool = True) -> PlanRequest:
    """A small request on which ``tests.faulty_solver`` commits a fault; a hanging one has a time limit."""
    limit_s = 1.0 if limited and fault == HANG else None
    return small_request(batch).model_copy(update={"seed": fault, "time_limit_s": limit_s})
