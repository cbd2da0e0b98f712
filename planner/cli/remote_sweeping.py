"""Sweeping by a service: its workers search, it keeps the plans; printed as if made here.

The sweep goes on without this command: the same command later finds it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from planner.cli.failure import Interrupted
from planner.cli.output import talk
from planner.cli.progress import counted_progress
from planner.cli.remote_question import cluster_part, model_part, profile_name
from planner.cli.sweeping import Wanted, judge, print_sweep
from planner.errors import MeshwrightError

if TYPE_CHECKING:
    from planner.answers.sweep.question import SweepQuestion
    from planner.operations.service import PlanService
    from planner.search.options import SearchOptions


def sweep_remotely(
    service: PlanService, question: SweepQuestion, profile: str, search: SearchOptions, wanted: Wanted
) -> None:
    """Ask, watch and print.  Raises what a sweep here raises, and what the service says."""
    body = _body(service, question, profile, search, wanted)
    talk(f"asked: {question.num_cells:,} cells", quiet=wanted.quiet)
    start_s = time.perf_counter()
    rows: list[dict[str, Any]] = []
    ended: MeshwrightError | KeyboardInterrupt | None = None
    try:
        with counted_progress("planning", quiet=wanted.quiet) as progress:
            for sweep_id, rows in service.sweep(body):  # noqa: B007  # the last ones are the answer
                if progress is not None:
                    progress(_done(rows), len(rows))
    except (MeshwrightError, KeyboardInterrupt) as error:
        ended = error
    if rows:
        print_sweep(_in_own_words(rows, question), time.perf_counter() - start_s, wanted)
        talk(f"sweep {sweep_id} is kept at {service.address}", quiet=wanted.quiet)
    if isinstance(ended, KeyboardInterrupt):
        what = f"interrupted; {_done(rows):,} of {question.num_cells:,} cells are answered"
        raise Interrupted(what, hint=f"the sweep goes on at {service.address}; the same command shows it") from None
    if ended is not None:
        raise ended
    judge(rows)


def _body(
    service: PlanService, question: SweepQuestion, profile: str, search: SearchOptions, wanted: Wanted
) -> dict[str, Any]:
    """What is sent: names as names, files as documents.  Raises NotFound, DocumentInvalid, Conflict."""
    return {
        **question.model_dump(mode="json"),
        "models": [model_part(each) for each in dict.fromkeys(question.models)],
        "clusters": [cluster_part(each) for each in dict.fromkeys(question.clusters)],
        "profile": profile_name(service, profile),
        "price_per_device_hour": wanted.price_per_device_hour,
        "top_k": search.top_k,
        "time_limit_s": search.time_limit_s,
        "seed": search.seed,
    }


def _done(rows: list[dict[str, Any]]) -> int:
    return sum(row["outcome"] != "missing" for row in rows)


def _in_own_words(rows: list[dict[str, Any]], question: SweepQuestion) -> list[dict[str, Any]]:
    """Lines that call models and clusters as the command does: by the path of a file, not by the name inside."""
    words: dict[str, dict[str, str]] = {}
    for name, said in (("model", question.models), ("cluster", question.clusters)):
        theirs, ours = dict.fromkeys(row[name] for row in rows), dict.fromkeys(said)
        words[name] = dict(zip(theirs, ours, strict=True)) if len(theirs) == len(ours) else {}
    return [{**row, **{name: words[name].get(row[name], row[name]) for name in words}} for row in rows]
