"""A fleet is shared: jobs, the pools whose nodes they share, who gets what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.answers.fleet.answer import Fleet
from planner.answers.fleet.question import FleetJob, FleetQuestion
from planner.errors import MeshwrightError
from planner.operations.operation import Operation, Session
from planner.operations.question import asked_problem, cluster_of, model_of
from planner.question.problem import Objective

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.answers.fleet.nodes import PoolNodes
    from planner.question.problem import Problem
    from profiles.cluster import Cluster


def fleet_clusters(asked: FleetQuestion) -> list[Cluster]:
    """The clusters of the pools.  Raises NotFound, DocumentInvalid with the pool."""
    found = []
    for at, pool in enumerate(asked.pools):
        try:
            found.append(cluster_of(pool.cluster))
        except MeshwrightError as error:
            raise _placed(error, f"pool {pool.name}", f"/pools/{at}/cluster") from None
    return found


def fleet_problems(asked: FleetQuestion, pools: tuple[PoolNodes, ...]) -> list[dict[int, Problem]]:
    """The question of each job on each pool that it may use.  Raises what is wrong with one, with the job's name."""
    from planner.operations.profile_choice import chosen_profile

    profiles = [chosen_profile(asked.profile, pool.cluster.pools[0].device) for pool in pools]
    found: list[dict[int, Problem]] = []
    known: dict[tuple[str, int], Problem] = {}
    for at, job in enumerate(asked.jobs):
        own: dict[int, Problem] = {}
        for place, pool in enumerate(pools):
            if job.pools and pool.name not in job.pools:
                continue
            key = _alike(job), place
            if key not in known:
                try:
                    model = model_of(job.model)
                except MeshwrightError as error:
                    raise _placed(error, f"job {job.name}", f"/jobs/{at}/model") from None
                try:
                    known[key] = asked_problem(
                        model, pool.cluster, job.workload, job.constraints, Objective(), profiles[place]
                    )
                except MeshwrightError as error:
                    raise _placed(error, f"job {job.name}", f"/jobs/{at}/workload") from None
            own[place] = known[key]
        found.append(own)
    return found


def with_former(asked: FleetQuestion, stored: Callable[[str], str]) -> FleetQuestion:
    """The question with the earlier answer for its id.  ``stored``: the text of a fleet.  Raises NotFound."""
    if not isinstance(asked.former, str):
        return asked
    try:
        return asked.model_copy(update={"former": Fleet.model_validate_json(stored(asked.former))})
    except MeshwrightError as error:
        error.where = "/former"
        raise


def _alike(job: FleetJob) -> str:
    """Equal for jobs that ask the same."""
    return FleetJob.model_construct(
        name="same", model=job.model, workload=job.workload, constraints=job.constraints
    ).model_dump_json()


def _placed(error: MeshwrightError, whose: str, where: str) -> MeshwrightError:
    """The same error with whose and where it is."""
    error.what, error.where = f"{whose}: {error.what}", where
    return error


def _work(session: Session, asked: FleetQuestion) -> Fleet:
    from planner.answers.fleet.fleet import share
    from planner.answers.fleet.nodes import fleet_nodes

    asked = with_former(asked, lambda fleet_id: session.store().fleet_text(fleet_id))
    pools = fleet_nodes(asked, fleet_clusters(asked))
    return share(
        asked,
        pools,
        fleet_problems(asked, pools),
        plan=session.plan,
        known=session.known,
        keep=lambda plan: session.keep(plan, None),
        stop=None if session.search is None else session.search.stop,
        progress=session.progress,
    )


FLEET = Operation(
    name="create_fleet",
    summary="Share the nodes of pools between jobs: who gets how many and which",
    description="The speed of every job on every size, the best allocation with its bound, named nodes, what one node"
    " more would be worth, who waits and why.\n\nWith `former`, an earlier answer, nothing is asked twice and jobs move"
    " only where it pays, or as few as possible.\n\nWhat the time for an answer does not decide becomes a job (202)"
    " with the question's own budget and limit; the same\nrequest answers once it has ended.\n\nA fleet file is sent"
    " as it is with `Content-Type: application/yaml`.",
    request=FleetQuestion,
    answer=Fleet,
    work=_work,
    path="/v1/fleets",
    method="POST",
    tag="elastic",
    scope="plan",
    errors=(404, 409, 504),
    served="own",
    runs="job",
    keyed=True,
    body=FleetQuestion,
    example={
        "pools": [{"name": "h100", "cluster": "dgx-h100", "nodes": ["n[00-03]"]}],
        "jobs": [
            {
                "name": "pretrain",
                "model": "llama-3.1-8b",
                "workload": {"global_batch_size": 64, "sequence_length": 4096},
                "constraints": {"backends": ["megatron"]},
                "weight": 2,
            },
            {
                "name": "ablation",
                "model": "llama-3.2-1b",
                "workload": {"global_batch_size": 64, "sequence_length": 4096},
                "constraints": {"backends": ["megatron"]},
                "max_devices": 16,
            },
        ],
    },
    changes=True,
    searches=lambda asked: True,
    command="fleet",
)
