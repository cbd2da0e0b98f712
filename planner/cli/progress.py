"""The progress line on stderr: on a terminal only; silent in pipes, logs and with --quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.cli.output import console_for

if TYPE_CHECKING:
    from planner.search.options import SearchProgress


@contextmanager
def search_progress(*, quiet: bool) -> Iterator[Callable[[SearchProgress], None] | None]:
    """A callback for ``find_plan``, or None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Refreshed by the search and not by a thread: a process with threads searches alone (``planner.search.beside``).
    with Progress(*columns, console=console_for(sys.stderr), transient=True, auto_refresh=False) as live:
        task = live.add_task("searching")
        yield lambda state: live.update(task, description=describe(state), refresh=True)


@contextmanager
def counted_progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A callback ``(done, total)`` that moves a bar, or None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console_for(sys.stderr), transient=True) as live:
        task = live.add_task(what, total=None)
        yield lambda done, total: live.update(task, completed=done, total=total)


def describe(state: SearchProgress) -> str:
    """One line: phase, how many were looked at, the best so far, the bound and the gap."""
    words = [state.phase, f"{state.bounded:,} bounded", f"{state.evaluated:,} solved"]
    if state.incumbent_s is not None:
        words.append(f"best {state.incumbent_s:.3f} s")
    if state.lower_bound_s is not None:
        words.append(f"bound {state.lower_bound_s:.3f} s")
    if state.incumbent_s and state.lower_bound_s is not None:
        words.append(f"gap {max(1 - state.lower_bound_s / state.incumbent_s, 0.0):.2%}")
    return "  ".join(words)
