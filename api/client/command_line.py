"""``planner.operations.service.Service`` over a ``Client``: how the command line asks a service.

Problems of the service become the planner's own errors, so that a command fails here as it fails without a service:
the same slug, the same exit code, the name of a flag where the pointer means one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

from api.client.client import Client
from api.client.errors import ProblemReported
from api.wire.jobs import JobProgress
from api.wire.problem_details import FLAG_POINTERS
from api.wire.sweeps import UNANSWERED
from planner.answers.sweep.answer import NOT_REACHED
from planner.errors import MeshwrightError, NoFeasiblePlan
from planner.operations.emit import EMIT, EmissionView, EmitRequest
from planner.operations.operation import Operation
from planner.operations.plan_reference import PlanRequest, is_plan_file, stored_reference
from planner.operations.plans import FULL_ID, GET_PLAN
from planner.operations.service import LocalService
from planner.operations.sweep import Swept
from planner.search.options import SearchOptions, SearchProgress
from profiles.document import Document

T = TypeVar("T")
Q = TypeVar("Q", bound=Document)
A = TypeVar("A")
FLAGS = {pointer: flag for flag, pointer in reversed(FLAG_POINTERS.items())}
"""Where a fault is in a request -> the flag that said it (the first of several)."""
SWEEP_FLAGS = {
    "models": "--model",
    "clusters": "--cluster",
    "device_counts": "--devices",
    "sequence_lengths": "--sequence-length",
    "global_batch_sizes": "--global-batch-size",
}
"""Axis of a sweep -> the flag that gives it."""
WORDS = {pointer[1:].replace("/", "."): flag for pointer, flag in FLAGS.items() if pointer.count("/") > 1}
"""What the service's sentences call a part of a question -> its flag; single words may be words of the sentence."""
_WORD = re.compile("|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True)))


@contextmanager
def open_service(url: str) -> Iterator[RemoteService]:
    """The service at ``url``; its connections are closed with the block."""
    with Client(url) as client, ExitStack() as opened:
        here = LocalService(None, opened, lambda plan: service.call(GET_PLAN, PlanRequest(plan=plan)))
        service = RemoteService(client, here)
        yield service


class RemoteService:
    """See ``Service``."""

    def __init__(self, client: Client, here: LocalService) -> None:
        self._client = client
        self._here = here

    @property
    def address(self) -> str:
        """See ``Service``."""
        return self._client.address

    def call(
        self,
        operation: Operation[Q, A],
        asked: Q,
        *,
        search: SearchOptions | None = None,
        progress: Callable[..., None] | None = None,
        started: Callable[[str], None] | None = None,
        keep: bool = True,
    ) -> A:
        """See ``Service``: what is asked about files of this machine is worked out here, or refused."""
        if isinstance(asked, EmitRequest) and asked.settings and asked.backend and not is_plan_file(asked.plan):
            return cast("A", self._placed(asked, search, progress))
        if operation.reads_files is not None and operation.reads_files(asked):
            return self._here.call(operation, asked, search=search, progress=progress, keep=keep)
        for part in operation.plans:
            stored_reference(getattr(asked, part))
        heard = progress if progress is None or operation.runs == "sweep" else _heard(progress)
        found = _said(lambda: self._client.call(operation, asked, started=started, progress=heard))
        return cast("A", _swept(found)) if isinstance(found, Swept) else found

    def _placed(
        self, asked: EmitRequest, search: SearchOptions | None, progress: Callable[..., None] | None
    ) -> EmissionView:
        """Files of another back-end, put together here: the service plans and keeps what they say that they are of."""
        there = self.call(EMIT, asked.model_copy(update={"settings": {}}), search=search, progress=progress)
        view = self._here.call(EMIT, asked.model_copy(update={"plan": there.plan_id, "backend": None}), keep=False)
        told = ("asked_plan_id", "slower_by", "difference")
        return view.model_copy(update={name: getattr(there, name) for name in told})

    def plan_id(self, reference: str) -> str:
        """See ``Service``; a service says the id of a prefix or label with the whole plan only."""
        is_whole = re.fullmatch(FULL_ID, reference) is not None
        return reference if is_whole else self.call(GET_PLAN, PlanRequest(plan=reference)).plan_id

    def kept(self, plan_id: str) -> str:
        """See ``Service``."""
        there = f"stored at {self.address}; next: meshwright explain {plan_id[:12]} --server {self.address}"
        return self._here.kept(plan_id) or there

    def wrote(self, view: EmissionView) -> None:
        """See ``Service``."""
        self._here.wrote(view)

    def end(self) -> None:
        """See ``Service``."""
        self._here.end()

    def question(self, whole: Callable[[], T], parts: Callable[[], dict[str, Any]]) -> T | dict[str, Any]:
        """See ``Service``."""
        return parts()


def _swept(found: Swept) -> Swept:
    """A sweep as one of this machine says it."""
    ended = found.ended
    if isinstance(ended, ProblemReported):
        ended.where = _sweep_flag(ended.where)
        ended = command_error(ended)
    return replace(found, rows=[_line(row) for row in found.rows], ended=ended)


def _line(data: dict[str, Any]) -> dict[str, Any]:
    """The line of a cell as a sweep of this machine says it."""
    if data["outcome"] in UNANSWERED:
        data |= {"outcome": "missing", "reason": NOT_REACHED}
    told = {name: _in_flags(data[name]) for name in ("reason", "hint", "binding") if data[name] is not None}
    return {
        **{**data, **told},
        "relaxations": [_in_flags(each) for each in data["relaxations"]],
        "where": _sweep_flag(data["where"]),
    }


def _in_flags(text: str) -> str:
    """A sentence of the service as this machine would say it."""
    return _WORD.sub(lambda match: WORDS[match[0]], text)


def _sweep_flag(where: str | None) -> str | None:
    """The flag that gave an axis, or the place as it is."""
    return SWEEP_FLAGS.get((where or "").split("/")[1], where) if (where or "").startswith("/") else where


def command_error(error: ProblemReported) -> MeshwrightError:
    """The planner's own error for a problem of the service, where there is one; else the same in flags' words."""
    problem = error.problem
    error.where = _flag_words(error.where)
    if problem.slug != NoFeasiblePlan.slug:
        return error
    hints = tuple(_in_flags(each.hint) for each in problem.errors if each.hint)
    return NoFeasiblePlan(
        _in_flags(problem.detail), binding=problem.binding or "unknown", relaxations=hints, pruned=problem.pruned
    )


def _flag_words(where: str | None) -> str | None:
    """``/strategy/tp`` as ``--strategy tp``; a place that no flag gives stays as it is."""
    pointer, field = where or "", ""
    while pointer not in FLAGS and "/" in pointer:
        pointer, _, last = pointer.rpartition("/")
        field = f"{last}/{field}" if field else last
    return f"{FLAGS[pointer]} {field}".rstrip() if pointer in FLAGS else where


def _said(ask: Callable[[], T]) -> T:
    """The answer, or the service's problem in the planner's words."""
    try:
        return ask()
    except ProblemReported as error:
        raise command_error(error) from None


def _heard(progress: Callable[[SearchProgress], None]) -> Callable[[JobProgress], None]:
    """The progress of a job, told as that of a search."""

    def hear(state: JobProgress) -> None:
        progress(SearchProgress(state.phase, state.bounded, state.evaluated, state.incumbent_s, state.bound_s))

    return hear
