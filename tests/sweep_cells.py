"""Sweeps for tests: small models whose cells are searched in parts of a second, one too large for few devices."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answers.sweep.answer import Answer
from planner.answers.sweep.executor import Executor
from planner.answers.sweep.grid import Cell, Sources, grid
from planner.answers.sweep.question import SweepQuestion
from planner.answers.sweep.task import Task
from planner.answers.sweep.walk import answers
from planner.model.load import load_model
from planner.question.problem import Constraints
from planner.search.options import SearchOptions
from planner.store.repository import Store
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster

QUICK = SearchOptions(top_k=0)


def small_question(
    models: Sequence[str] = ("llama-3.2-1b", "llama-3.1-70b"),
    device_counts: Sequence[int] = (4, 12, 16),
    sequence_lengths: Sequence[int] = (2048,),
    global_batch_sizes: Sequence[int] = (64,),
) -> SweepQuestion:
    """Each model on 4 devices, too few for the larger one, on 12, which are no whole nodes, and on 16."""
    return SweepQuestion(
        models=tuple(models),
        clusters=("dgx-h100",),
        device_counts=tuple(device_counts),
        sequence_lengths=tuple(sequence_lengths),
        global_batch_sizes=tuple(global_batch_sizes),
        # Another back-end keeps the optimizer's state in host memory, and then the larger model fits on 4.
        constraints=Constraints(backends=("megatron",)),
    )


def cells_of(question: SweepQuestion) -> tuple[Cell, ...]:
    """The cells with built-in models and clusters, without measurements."""
    return grid(question, Sources(load_model, load_cluster, scale_cluster, lambda _device: None))


def tasks_of(cells: Sequence[Cell]) -> list[Task]:
    """A task for each cell that is a question."""
    problems = [cell.problem for cell in cells if cell.problem is not None]
    return [Task(problem.problem_id, problem.canonical_json()) for problem in problems]


def sweep(cells: Sequence[Cell], store: Store, executor: Executor, options: SearchOptions = QUICK) -> list[Answer]:
    """Every answer, in the order of the grid."""
    return sorted(answers(cells, options, store, executor), key=lambda answer: answer.cell.index)
