"""Writing launch files from commands: one folder a back-end, each with its own plan of the question.

A plan is of one back-end.  Where another is named, the question is planned again there, and what differs is told.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.output import talk

if TYPE_CHECKING:
    from planner.answers.diff import PlanDiff
    from planner.answers.replan.other_backend import PlanThere
    from planner.operations.emit import EmissionView, EmitRequest
    from planner.operations.service import Service
    from planner.plan.plan import Plan
    from planner.search.options import SearchOptions

UNTOLD = {"problem", "stages", "same_problem", "identical", "summary"}
"""Parts of a difference that an answer leaves out: that another back-end was asked is known.  ``meshwright diff`` has
them."""


def planned_there(plan: Plan, backend: str, search: SearchOptions | None, *, quiet: bool) -> PlanThere:
    """The same question's best plan in ``backend``; ``best`` is the plan itself.  Raises NotFound, BackEndRefused."""
    from planner.answers.replan.other_backend import PlanThere, plan_there
    from planner.cli.backend_names import BEST
    from planner.cli.progress import search_progress

    if backend == BEST:
        return PlanThere(plan, None)
    with search_progress(quiet=quiet) as progress:
        return plan_there(plan, backend, search, progress)


def emit_into(
    directory: Path,
    service: Service,
    asked: EmitRequest,
    *,
    quiet: bool,
    search: SearchOptions | None = None,
    keep: bool = True,
) -> dict[str, Any]:
    """Write launch files; returns them as plain data.  Raises BackEndRefused, Conflict, NotFound, DocumentInvalid."""
    from planner.cli.progress import search_progress
    from planner.operations.emit import EMIT

    with search_progress(quiet=quiet or asked.backend is None) as progress:
        view = service.call(EMIT, asked, search=search, progress=progress, keep=keep)
    data = emission_data(view, view.write(directory))
    service.wrote(view)
    tell_difference(data, quiet=quiet)
    return data


def keep_plan(plan: Plan, database: str | None, *, quiet: bool) -> None:
    """Store a plan that was made on the way, and say so.  Raises what storing raises."""
    from planner.store import open_store

    with open_store(database) as store:
        plan_id = store.save_plan(plan)
        talk(f"stored in {store.address}; next: meshwright explain {plan_id[:12]}", quiet=quiet)


def tell_difference(data: Mapping[str, Any], *, quiet: bool) -> None:
    """Say aloud that the files are of another plan than the one at hand."""
    if data["difference"] is not None:
        talk(f"{data['backend']} has a plan of its own: {_speed(data)}", quiet=quiet)


def emission_data(view: EmissionView, directory: Path) -> dict[str, Any]:
    """What a program wants to know about launch files."""
    manifest = view.manifest
    return {
        "backend": manifest["backend"],
        "release": manifest["release"],
        "launcher": manifest["launcher"],
        "launch_notes": list(view.launch_notes),
        "directory": os.path.abspath(directory),
        "launch_command": manifest["launch_command"],
        "environment": dict(manifest["environment"]),
        "files": sorted(manifest["files"]),
        "versions": {name: text for name, text in manifest["versions"].items() if name != "meshwright"},
        "plan_id": manifest["plan_id"],
        "step_time_s": view.step_time_s,
        "slower_by": view.slower_by,
        "difference": _told(view.difference),
        "assumptions": list(manifest["assumptions"]),
    }


def there_data(there: PlanThere) -> dict[str, Any]:
    """The plan that was taken and, where it is of another back-end, how it differs from the one at hand."""
    return {
        "backend": there.plan.backend,
        "plan_id": there.plan.plan_id,
        "step_time_s": there.plan.step_time_s,
        "slower_by": there.slower_by,
        "difference": _told(there.difference),
    }


def _told(difference: PlanDiff | None) -> dict[str, Any] | None:
    return None if difference is None else difference.model_dump(mode="json", exclude=UNTOLD)


def emission_lines(data: Mapping[str, Any]) -> list[str]:
    """The same for a person: where it is, how to start it, and what differs from the plan at hand."""
    release = f" {data['release']}" if data["release"] else ""
    where = f"{data['backend']}{release} files for {data['launcher']} in {data['directory']}"
    first, *others = data["launch_command"].splitlines()
    lines = [where, f"  start: {first}", *(f"         {each}" for each in others)]
    lines += [f"  note: {note}" for note in data["launch_notes"]]
    return [*lines, *difference_lines(data)]


def difference_lines(data: Mapping[str, Any]) -> list[str]:
    """How the plan of another back-end differs, term by term; nothing for the plan at hand."""
    from planner.answers.views.words import gib, seconds
    from planner.predict.step_terms import term_words
    from planner.strategy.fields import told_fields, value_words

    difference = data["difference"]
    if difference is None:
        return []
    changes = {
        each["field"]: f"{value_words(each['a'])} -> {value_words(each['b'])}" for each in difference["strategy"]
    }
    told = ", ".join(f"{name} {changes[name]}" for name in told_fields(tuple(changes)))
    terms = sorted(
        (each for each in difference["breakdown_s"] if each["change"]), key=lambda each: -abs(each["change"])
    )
    time = ", ".join(f"{term_words(each['term'])} {_signed(seconds(each['change']))}" for each in terms)
    memory = [each for each in difference["peak_memory_bytes"] if each["change"]]
    sizes = ", ".join(f"{each['term']} {_signed(gib(each['change']))}" for each in memory)
    named = (("strategy", told or "the same"), ("time", time), ("memory of the worst device", sizes))
    return [f"  {_speed(data)}", *(f"  {name}: {words}" for name, words in named if words)]


def _speed(data: Mapping[str, Any]) -> str:
    """``plan 0123456789ab, 120.1 s: 2.6 % slower than plan ba9876543210``."""
    from planner.answers.views.words import close_seconds, percent, short_id

    slower_by, difference = data["slower_by"], data["difference"]
    change = f"{percent(abs(slower_by))} {'slower' if slower_by >= 0 else 'faster'} than" if slower_by else "as fast as"
    plan = f"plan {short_id(data['plan_id'])}, {close_seconds(data['step_time_s'])}"
    return f"{plan}: {change} plan {short_id(difference['a'])}"


def _signed(words: str) -> str:
    return words if words.startswith("-") else f"+{words}"
