"""``meshwright shard --instance``: a contest instance in, a checked selection out."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.output import OutputFormat, write_answer
from planner.errors import BudgetSpent, DocumentInvalid, NoFeasiblePlan

if TYPE_CHECKING:
    from rich.console import RenderableType

    from solver.selection.answer import Answer
    from solver.selection.problem import SelectionProblem

NODES_NAMED = 5
LONGEST_LOADING_S = 5.0
"""What loading compiled kernels may take on a busy machine; more means that they were compiled."""


def shard_instance(path: Path, time_limit_s: float, seed: int, output: OutputFormat) -> None:
    """Read, solve within the limit (the reading counts) and print.  Raises NoFeasiblePlan or BudgetSpent."""
    started = time.monotonic()
    from planner.shard.instance import read_instance
    from solver.selection.problem import InvalidSelection
    from solver.selection.solve import solve

    # Kernels that were not compiled when Meshwright was installed are compiled now, once: that is not charged.
    started = max(started, time.monotonic() - LONGEST_LOADING_S)
    with _interruptible() as interrupted:
        problem = read_instance(path)
        reading_s = time.monotonic() - started
        try:
            answer = solve(
                problem, time_limit_s=max(0.0, time_limit_s - reading_s), seed=seed, should_stop=interrupted.is_set
            )
        except InvalidSelection as error:
            raise DocumentInvalid(str(error), where=str(path), hint="see the message") from None
    _refuse_no_answer(path, problem, answer, time_limit_s)
    data = as_data(answer, reading_s)
    write_answer(data, output, lambda: _table(data, path))


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets instead of raising: the best selection so far is printed."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.signal(signal.SIGINT, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse_no_answer(path: Path, problem: SelectionProblem, answer: Answer, time_limit_s: float) -> None:
    if answer.status == "unknown":
        raise BudgetSpent(
            f"no selection was found within {time_limit_s:g} s", where=str(path), hint="raise --time-limit"
        )
    if answer.status != "infeasible":
        return
    window = answer.binding_window
    if window is not None:
        what = (
            f"no selection fits: from time {window.begin} until before {window.end} at least {window.least_usage} "
            f"is needed, usage_limit is {window.capacity}"
        )
        raise NoFeasiblePlan(
            what,
            binding=f"usage from {window.begin} until before {window.end}",
            relaxations=(f"raise usage_limit to {window.least_usage} or more",),
            where=str(path),
        )
    names = ", ".join(problem.name(node) for node in answer.forbidden_nodes[:NODES_NAMED])
    raise NoFeasiblePlan(
        f"no selection is permitted: every option of {names} is forbidden, alone or by the edges around",
        binding=f"forbidden costs at {names}",
        relaxations=("permit more pairs on their edges (costs below 10^18)",),
        where=str(path),
    )


def as_data(answer: Answer, reading_s: float) -> dict[str, Any]:
    """The answer as plain data; all times count from the start of the reading."""
    return {
        "status": answer.status,
        "cost": answer.cost,
        "bound": answer.bound,
        "gap": answer.gap,
        "wall_s": reading_s + answer.wall_s,
        "choice": list(answer.choice or ()),
        "trace": [
            {"wall_s": reading_s + point.wall_s, "cost": point.cost, "bound": point.bound, "by": point.by}
            for point in answer.trace
        ],
    }


def _table(data: dict[str, Any], path: Path) -> Iterator[RenderableType]:
    from rich.table import Table

    gap = "none proved" if data["gap"] is None else f"{data['gap']:.4%}"
    bound = "none" if data["bound"] is None else f"{data['bound']:,}"
    yield f"{path.name}: {data['status']}, cost {data['cost']:,}, bound {bound}, gap {gap}, {data['wall_s']:.2f} s"
    table = Table("seconds", "cost", "bound", "by")
    for point in data["trace"]:
        cost, bound = (f"{point[key]:,}" if point[key] is not None else "" for key in ("cost", "bound"))
        table.add_row(f"{point['wall_s']:.2f}", cost, bound, point["by"])
    yield table
