"""Planning for the pools that ``--pool`` and ``--cluster`` name: plan, write, print."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.backend_names import ANY
from planner.cli.options import ObjectiveChoice
from planner.cli.output import OutputFormat, talk, to_json, write_answer
from planner.cli.problem_inputs import SpaceFlags, read_constraints, read_workload, whole_number
from planner.cli.workload_flags import WorkloadFlags
from planner.errors import BackEndRefused, Conflict, DocumentInvalid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.search.pools.plan import PoolsPlan
    from planner.search.pools.problem import PoolsProblem
    from profiles.cluster import Cluster

LONGEST_COUNT = 30
"""Digits: what is longer is no number of devices, and Python refuses to read some thousands of them."""


def named_pools(pool: list[str] | None, cluster: str | None, devices: int | None) -> tuple[Cluster, ...] | None:
    """The pools of ``--pool NAME:COUNT`` or of a cluster with several; None for an ordinary cluster.

    Raises DocumentInvalid, NotFound, or Conflict when both or neither is given.
    """
    if pool and (cluster is not None or devices is not None):
        other = "--cluster" if cluster is not None else "--devices"
        raise Conflict(
            f"--pool names devices and their number, and so does {other}", where=other, hint=f"drop {other} or --pool"
        )
    if pool:
        return tuple(_pool(text) for text in pool)
    if cluster is None:
        raise DocumentInvalid(
            "on which devices?", where="--cluster", hint="give --cluster C, or --pool NAME:COUNT for each pool"
        )
    from profiles.catalogue import load_cluster

    whole_number(devices, "--devices")
    # A cluster of several pools cannot be scaled by one number: with --devices its own message says so.
    whole = load_cluster(cluster) if devices is None else load_cluster(cluster, devices)
    if len(whole.pools) == 1:
        return None
    return tuple(
        whole.model_copy(update={"name": one.name if one.name != "default" else one.device.name, "pools": (one,)})
        for one in whole.pools
    )


def _pool(text: str) -> Cluster:
    from profiles.catalogue import load_cluster

    name, colon, count = text.rpartition(":")
    if not colon or not name or not (count.isascii() and count.isdigit() and 0 < len(count) <= LONGEST_COUNT):
        raise DocumentInvalid(
            f"cannot read {text!r}: a pool is a cluster and its number of devices",
            where="--pool",
            hint="write --pool NAME:COUNT, for example --pool dgx-h100:256",
        )
    whole_number(int(count), "--pool")
    cluster = load_cluster(name, int(count))
    if len(cluster.pools) != 1:
        raise DocumentInvalid(
            f"{name} has {len(cluster.pools)} pools of its own", where="--pool", hint="name one pool at a time"
        )
    return cluster


def refuse_flags(flags: Mapping[str, bool], space: SpaceFlags, emitted: tuple[str, ...]) -> None:
    """Refuse what plans over several pools cannot do.  Raises BackEndRefused for launch files, else Conflict."""
    if emitted:
        raise BackEndRefused(
            "no back-end here can run a plan whose stages have devices and sub-meshes of their own",
            where="--emit",
            hint="print the plan with -o json, or plan each pool by itself with --cluster",
        )
    limits = {
        "--objective": space.objective is not ObjectiveChoice.STEP_TIME,
        "--max-step-time": space.max_step_time_s is not None,
        "--min-tokens-per-s": space.min_tokens_per_s is not None,
        "--backend": space.backends != (ANY,),
    }
    wrong = [name for name, given in {**flags, **limits}.items() if given]
    if wrong:
        raise Conflict(
            f"plans over several pools do not know {', '.join(wrong)}",
            where=wrong[0],
            hint="drop it, or plan each pool by itself with --cluster",
        )


def pools_problem(model: str, clusters: tuple[Cluster, ...], work: WorkloadFlags, space: SpaceFlags) -> PoolsProblem:
    """The checked question.  Raises DocumentInvalid or NotFound."""
    from pydantic import ValidationError

    from planner.model.load import load_model
    from planner.question.complete import require_agreement
    from planner.search.pools.problem import PoolsProblem

    spec, workload, constraints = load_model(model), read_workload(work), read_constraints(space)
    require_agreement(spec, workload)
    try:
        problem = PoolsProblem(model=spec, clusters=clusters, workload=workload, constraints=constraints)
    except ValidationError as error:
        said = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise DocumentInvalid(said, where="--pool", hint="plan each pool by itself with --cluster") from error
    problem.pins()
    for cluster in clusters:
        _has_precision(cluster, problem.workload.precision)
    return problem


def _has_precision(cluster: Cluster, precision: str) -> None:
    device = cluster.pools[0].device
    if precision not in device.peak_flops_per_s:
        known = ", ".join(sorted(device.peak_flops_per_s))
        raise DocumentInvalid(
            f"{device.name} has no {precision} rate; it knows {known}",
            where="--precision",
            hint="choose a precision that every pool has, for example --precision fp16",
        )


def answer_pools(
    problem: PoolsProblem, time_limit_s: float | None, plan_out: Path | None, quiet: bool, output: OutputFormat
) -> None:
    """Plan and print.  Raises NoFeasiblePlan and BudgetSpent."""
    from planner.search.pools.assemble import assemble_pools_plan
    from planner.search.pools.find import find_assignment

    names = ", ".join(
        f"{cluster.num_devices:,} x {cluster.pools[0].device.name} ({name})"
        for name, cluster in zip(problem.pool_names(), problem.clusters, strict=True)
    )
    talk(f"checked: {problem.model.name} on {names}", quiet=quiet)
    start_s = time.perf_counter()
    plan = assemble_pools_plan(problem, find_assignment(problem, time_limit_s))
    wall_s = time.perf_counter() - start_s
    talk(f"searched in {wall_s:.2f} s, gap {plan.gap:.2%}; plans over several pools are not stored", quiet=quiet)
    if plan_out is not None:
        plan_out.write_text(to_json(plan.model_dump(mode="json")), encoding="utf-8")
    document = plan.model_dump(mode="json", exclude={"problem"})
    document["search"]["wall_s"] = wall_s
    data = {"plan_id": plan.plan_id, "problem_id": problem.problem_id, **document}
    write_answer(data, output, lambda: _tables(plan, wall_s))


def _tables(plan: PoolsPlan, wall_s: float) -> Iterator[RenderableType]:
    from planner.cli.render.pools import pools_report

    return pools_report(plan, wall_s)
