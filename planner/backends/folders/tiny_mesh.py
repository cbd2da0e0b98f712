"""The small mesh for a large one: every axis above 1 stays above 1, and the schedule keeps what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import log2, prod
from typing import Any

from planner.errors import DocumentInvalid
from planner.strategy.schedules import GROUPED_SCHEDULES, V_SCHEDULES
from planner.strategy.strategy import Strategy

AXES = ("tp", "cp", "pp", "dp_replicate", "dp_shard")
MOST_CHUNKS = 16
LARGEST_MICRO_BATCH = 2


def tiny_strategies(wanted: Strategy, max_ranks: int) -> Iterator[Strategy]:
    """Small strategies that may stand for ``wanted``, the best first; the rules of the back-end decide which one does.

    A mesh of at most ``max_ranks`` ranks stays as it is.  Raises DocumentInvalid when its axes need more ranks.
    """
    least = prod(2 for axis in AXES if getattr(wanted, axis) > 1)
    if least > max_ranks:
        axes = [axis for axis in AXES if getattr(wanted, axis) > 1]
        raise DocumentInvalid(
            f"{len(axes)} axes above 1 ({', '.join(axes)}) need at least {least} ranks, {max_ranks} are allowed",
            where="--max-ranks",
            hint=f"allow more: --max-ranks {least}",
        )
    for degrees in _meshes(wanted, max_ranks):
        mesh = replace(wanted, **degrees)
        for ep, etp in _expert_degrees(wanted, mesh):
            yield _few_microbatches(replace(mesh, ep=ep, etp=etp))


def _meshes(wanted: Strategy, max_ranks: int) -> list[dict[str, Any]]:
    """Degrees by axis: divisors of the wanted ones before others, large meshes before small ones, then even cuts."""
    if wanted.world_size <= max_ranks:
        return [{axis: getattr(wanted, axis) for axis in AXES}]
    full = [getattr(wanted, axis) for axis in AXES]
    choices = [range(2, min(degree, max_ranks) + 1) if degree > 1 else (1,) for degree in full]
    meshes = [degrees for degrees in product(*choices) if prod(degrees) <= max_ranks]

    def rank(degrees: tuple[int, ...]) -> tuple[int, int, float]:
        divisors = sum(whole % part == 0 for whole, part in zip(full, degrees, strict=True))
        cuts = [log2(whole / part) for whole, part in zip(full, degrees, strict=True) if whole > 1]
        return -divisors, -prod(degrees), max(cuts) - min(cuts)

    return [dict(zip(AXES, degrees, strict=True)) for degrees in sorted(meshes, key=rank)]


def _expert_degrees(wanted: Strategy, mesh: Strategy) -> list[tuple[int, int]]:
    """(ep, etp) that fit on the mesh, the largest first, divisors of the wanted ones before others."""
    ways = mesh.tp * mesh.cp * mesh.dp
    choices = [range(2, min(degree, ways) + 1) if degree > 1 else (1,) for degree in (wanted.ep, wanted.etp)]
    pairs = [(ep, etp) for ep, etp in product(*choices) if ways % (ep * etp) == 0]
    return sorted(pairs, key=lambda pair: (wanted.ep % pair[0] + wanted.etp % pair[1], -pair[0] * pair[1]))


def _few_microbatches(mesh: Strategy) -> Strategy:
    """Two rounds through the pipeline where the plan has them, in micro-batches of at most two samples."""
    rounds = 2 if mesh.pp == 1 else 2 * mesh.pp
    count = min(mesh.num_microbatches, rounds)
    group = 0
    vpp = mesh.vpp if mesh.schedule in V_SCHEDULES or mesh.num_chunks <= MOST_CHUNKS else max(2, MOST_CHUNKS // mesh.pp)
    if mesh.schedule in GROUPED_SCHEDULES:
        count = rounds if mesh.num_microbatches >= rounds else mesh.pp
        group = mesh.pp
    return replace(
        mesh,
        vpp=vpp,
        num_microbatches=count,
        microbatch_group_size=group,
        micro_batch_size=min(mesh.micro_batch_size, LARGEST_MICRO_BATCH),
    )
