"""The problem of each cell: the product of the axes, in the order in which they were given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from planner.answers.sweep.question import SweepQuestion
from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.complete import complete_problem
from planner.question.problem import Problem, Workload
from planner.question.work_kind import WorkKind
from profiles.cluster import Cluster
from profiles.device import Device
from profiles.prediction.reference import ProfileReference


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of axis values; ``refusal`` says why it is no problem at all."""

    index: int
    model: str
    cluster: str
    num_devices: int
    sequence_length: int
    global_batch_size: int
    problem: Problem | None
    refusal: DocumentInvalid | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """Where names lead: each may raise, and then the whole sweep is refused."""

    model: Callable[[str], ModelSpec]
    cluster: Callable[[str], Cluster]
    scaled: Callable[[Cluster, int], Cluster]
    profile: Callable[[Device], ProfileReference | None]


def grid(question: SweepQuestion, sources: Sources) -> tuple[Cell, ...]:
    """Every cell of the sweep.

    A name that leads nowhere raises what its source raises.  A combination that cannot be (a device count that is no
    whole number of nodes of one of the clusters, a histogram of other experts than the model's) is a cell with its
    refusal.
    """
    models = {name: sources.model(name) for name in question.models}
    clusters = {name: sources.cluster(name) for name in question.clusters}
    counts: list[int | None] = [*dict.fromkeys(question.device_counts)] or [None]
    scaled = {(name, count): _scaled(sources, whole, count) for name, whole in clusters.items() for count in counts}
    profiles = {name: sources.profile(whole.pools[0].device) for name, whole in clusters.items()}
    lengths, batches = dict.fromkeys(question.sequence_lengths), dict.fromkeys(question.global_batch_sizes)
    workloads = {(length, batch): _workload(question, length, batch) for length in lengths for batch in batches}
    cells = []
    for index, (model, cluster, count, length, batch) in enumerate(product(models, clusters, counts, lengths, batches)):
        there = scaled[cluster, count]
        problem, refusal = None, there if isinstance(there, DocumentInvalid) else None
        if isinstance(there, Cluster):
            asked = (models[model], there, workloads[length, batch], question.constraints)
            try:
                problem = complete_problem(*asked, profile=profiles[cluster])
            except DocumentInvalid as error:
                refusal = error
        devices = clusters[cluster].num_devices if count is None else count
        cells.append(Cell(index, model, cluster, devices, length, batch, problem, refusal))
    return tuple(cells)


def _scaled(sources: Sources, cluster: Cluster, count: int | None) -> Cluster | DocumentInvalid:
    if count is None:
        return cluster
    try:
        return sources.scaled(cluster, count)
    except DocumentInvalid as error:
        return error


def _workload(question: SweepQuestion, sequence_length: int, global_batch_size: int) -> Workload:
    kind = {name: getattr(question, name) for name in WorkKind.model_fields}
    return Workload(global_batch_size=global_batch_size, sequence_length=sequence_length, **kind)
