"""Every combination of models, clusters, device counts, lengths and batches, each a question of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from planner.answers.sweep.answer import Answer, missing
from planner.answers.sweep.executor import Executor
from planner.answers.sweep.grid import Cell
from planner.answers.sweep.table import lines
from planner.answers.sweep.walk import answers
from planner.errors import MeshwrightError
from planner.operations.operation import Operation, Session
from planner.search.options import SearchOptions
from profiles.document import Document


class SweepAsked(Document):
    """Cells here, axes for a service; and what is the same for all of them."""

    question: tuple[Any, ...] | dict[str, Any] = Field(description="``planner.answers.sweep.grid.Cell``, or the parts")
    price_per_device_hour: float | None = None
    top_k: int = 3
    time_limit_s: float | None = None
    seed: int = 0
    executor: Any = Field(default=None, exclude=True, description="who searches the cells here")


@dataclass(frozen=True, slots=True)
class Swept:
    """A line for each cell, whole even where something ended the sweep before it reached all of them."""

    rows: Sequence[dict[str, Any]]
    kept: str
    """Where the plans are, in words for a person."""
    goes_on: str
    """How the sweep goes on, where it was interrupted."""
    ended: MeshwrightError | KeyboardInterrupt | None = None
    """What ended it early."""


def _work(session: Session, asked: SweepAsked) -> Swept:
    if isinstance(asked.question, dict):
        raise TypeError("the parts of a question are for a service elsewhere")
    cells: tuple[Cell, ...] = asked.question
    executor: Executor = asked.executor
    options = SearchOptions(top_k=asked.top_k, time_limit_s=asked.time_limit_s, seed=asked.seed)
    done: dict[int, Answer] = {}
    store, ended = session.store(), None
    try:
        with closing(answers(cells, options, store, executor)) as found:
            for answer in found:
                done[answer.cell.index] = answer
                if session.progress is not None:
                    session.progress(len(done), len(cells))
    except (MeshwrightError, KeyboardInterrupt) as error:
        ended = error
    rows = lines((done.get(cell.index) or missing(cell) for cell in cells), asked.price_per_device_hour)
    kept = f"plans are stored in {store.address}; next: meshwright explain PLAN"
    return Swept(rows, kept, "the same command goes on from the database", ended)


SWEEP = Operation(
    name="create_sweep",
    summary="Plan every combination of models, clusters, device counts, lengths and batches",
    description="202: it is on disk, and its cells become jobs.  The same content is the same sweep.\n\nAsked again, it"
    " goes on: cells that failed, or were cancelled, are tried again; answers stay.",
    request=SweepAsked,
    answer=Swept,
    work=_work,
    path="/v1/sweeps",
    method="POST",
    tag="sweeps",
    scope="plan",
    served="own",
    runs="sweep",
    keyed=True,
    example={
        "models": ["llama-3.1-8b", "llama-3.1-70b"],
        "clusters": ["dgx-h100"],
        "device_counts": [16, 64],
        "sequence_lengths": [8192],
        "global_batch_sizes": [128],
    },
    changes=True,
    searches=lambda asked: True,
    command="sweep",
)
