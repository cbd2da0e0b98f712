"""Planning for the pools that ``--pool`` and ``--cluster`` name: plan, write, print."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.cli.backend_names import ANY, BEST
from planner.cli.emitting import emission_data, emission_lines
from planner.cli.options import ObjectiveChoice
from planner.cli.output import talk, to_json, write_answer
from planner.cli.planning import Afterwards, Wanted
from planner.cli.problem_inputs import SpaceFlags, read_constraints, read_workload, whole_number
from planner.cli.workload_flags import WorkloadFlags
from planner.errors import BackEndRefused, Conflict, DocumentInvalid

if TYPE_CHECKING:
    from planner.operations.pools import PoolsPlanned
    from planner.operations.service import Service
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


def pools_backends(named: tuple[str, ...], emitted: tuple[str, ...]) -> tuple[str, ...]:
    """The back-end that a plan over pools is for: ``--backend``, or the one that ``--emit`` names.

    Raises BackEndRefused for launch files of several back-ends, or of none.
    """
    wanted = tuple(name for name in emitted if name != BEST)
    if named == (ANY,) and len(wanted) == 1:
        return wanted
    if emitted and (named == (ANY,) or any(name not in named for name in wanted)):
        raise BackEndRefused(
            "launch files over several pools are those of the one back-end that the stages were planned for",
            where="--emit",
            hint="name it: --backend native --emit best",
        )
    return named


def refuse_flags(flags: Mapping[str, bool], space: SpaceFlags) -> None:
    """Refuse what plans over several pools cannot do.  Raises Conflict."""
    limits = {
        "--objective": space.objective is not ObjectiveChoice.STEP_TIME,
        "--max-step-time": space.max_step_time_s is not None,
        "--min-tokens-per-s": space.min_tokens_per_s is not None,
    }
    wrong = [name for name, given in {**flags, **limits}.items() if given]
    if wrong:
        raise Conflict(
            f"plans over several pools do not know {', '.join(wrong)}",
            where=wrong[0],
            hint="drop it, or plan each pool by itself with --cluster",
        )


def pools_problem(model: str, clusters: tuple[Cluster, ...], work: WorkloadFlags, space: SpaceFlags) -> PoolsProblem:
    """The checked question.  Raises DocumentInvalid, NotFound, BackEndRefused."""
    from planner.model.load import load_model
    from planner.search.pools.problem import complete_pools_problem

    spec = load_model(model)
    return complete_pools_problem(spec, clusters, read_workload(work, model=spec), read_constraints(space))


def answer_pools(
    service: Service, problem: PoolsProblem, time_limit_s: float | None, wanted: Wanted, *, keep: bool
) -> None:
    """Plan, store, write and print.

    Raises NoFeasiblePlan, BudgetSpent, and what storing and writing launch files raise.
    """
    from planner.cli.render.pools import pools_report
    from planner.operations.pools import POOLS, PoolsPlanned, pools_request, runnable_plan
    from planner.operations.reading import write_file

    names = ", ".join(
        f"{cluster.num_devices:,} x {cluster.pools[0].device.name} ({name})"
        for name, cluster in zip(problem.pool_names(), problem.clusters, strict=True)
    )
    talk(f"checked: {problem.model.name} on {names}", quiet=wanted.quiet)
    start_s = time.perf_counter()
    found = service.call(POOLS, pools_request(problem, time_limit_s), keep=keep)
    plan, wall_s = found.plan, time.perf_counter() - start_s
    planned = PoolsPlanned(plan, runnable_plan(plan), wall_s)
    talk(f"searched in {wall_s:.2f} s, gap {plan.gap:.2%}", quiet=wanted.quiet)
    if planned.runnable is None:
        talk("a plan for study, which is not stored; name --backend for one that runs", quiet=wanted.quiet)
    elif kept := service.kept(planned.plan_id):
        stored = kept.partition(";")[0]
        talk(f"{stored}; next: meshwright plans show {planned.plan_id[:12]}", quiet=wanted.quiet)
    if wanted.plan_out is not None:
        whole = plan if planned.runnable is None else planned.runnable
        write_file(wanted.plan_out, to_json(whole.model_dump(mode="json")))
    document = plan.model_dump(mode="json", exclude={"problem"})
    document["search"]["wall_s"] = wall_s
    data = {"plan_id": planned.plan_id, "problem_id": problem.problem_id, **document}
    done = Afterwards()
    if wanted.emitted:
        done.attempt(lambda: done.emissions.append(_emitted(service, planned, wanted)))
        data["emissions"] = done.emissions
    lines = [line for emission in done.emissions for line in emission_lines(emission)]
    write_answer(data, wanted.output, lambda: pools_report(planned, lines))
    service.end()
    if done.failure is not None:
        raise done.failure


def _emitted(service: Service, planned: PoolsPlanned, wanted: Wanted) -> dict[str, Any]:
    """Launch files of the back-end that the stages were planned for.  Raises what writing them raises."""
    from planner.operations.pools import pools_emission

    view = pools_emission(planned, wanted.launcher)
    folder = view.write(wanted.directory(wanted.emitted[0]))
    service.wrote(view)
    return emission_data(view, folder)
