"""Answers to planning questions: from memory, the database, a running search, or a search of their own.

Equal content never solves twice: the problem's hash and the software's signature find what is stored, and questions
that arrive while the first is being searched wait for its answer.  (Two servers on one database may search the same
question at the same moment; they store the same plan.)
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from anyio import to_thread

from api.jobs.board import JobBoard, PlanRequest
from api.settings import Settings
from api.solving.flights import Flights, RecentAnswers
from api.solving.task_runner import TaskRunner, TooLong
from api.telemetry.metrics import Metrics
from api.wire.jobs import JobRecord
from planner.plan.plan import Plan
from planner.question.older_documents import has_older_words
from planner.store.records import PlanText
from planner.store.repository import Store

log = logging.getLogger("meshwright.api")
PLAN_VERSION = Plan.model_fields["schema_version"].default


@dataclass(frozen=True, slots=True)
class Answer:
    """A stored plan, ready to send, and where it came from."""

    plan_id: str
    problem_id: str
    content: bytes
    source: str


class StillSearching(Exception):  # the caller makes a job of it
    """The search takes longer than a client should wait."""


class Answers:
    """Answers to planning questions, of one service."""

    def __init__(self, store: Store, pool: TaskRunner, metrics: Metrics, settings: Settings) -> None:
        self._store = store
        self._pool = pool
        self._metrics = metrics
        self._settings = settings
        self._flights: Flights[Answer] = Flights(goes_on=True)
        self._recent: RecentAnswers[Answer] = RecentAnswers(settings.cached_answers)

    async def known(self, request: PlanRequest) -> Answer | None:
        """The answer, if it is in memory or in the database.

        A plan that is not proved answers only a request whose own time limit would not do better.
        """
        key = request.content_hash()
        found = self._recent.get(key)
        if found is not None:
            self._metrics.count_answer("memory")
            return replace(found, source="memory")
        text = await to_thread.run_sync(self._store.find_answer, request.problem.problem_id)
        if text is None or not text.answers(request.top_k):
            return None
        self._metrics.count_answer("database")
        return self._keep(key, text, "database")

    def spelt(self, spelling: str) -> Answer | None:
        """The answer to a question in exactly this spelling, if its meaning can never change."""
        found = self._recent.get(spelling)
        if found is not None:
            self._metrics.count_answer("memory")
        return found

    def spell(self, spelling: str, request: PlanRequest) -> None:
        """Remember a spelling of an answered question."""
        found = self._recent.get(request.content_hash())
        if found is not None:
            self._recent.keep(spelling, replace(found, source="memory"))

    async def search(self, request: PlanRequest) -> Answer:
        """The answer, searched now.  Raises StillSearching, AnswerRefused, and what storing raises."""
        answer, joined = await self._flights.share(request.content_hash(), lambda: self._search(request))
        self._metrics.count_answer("flight" if joined else "search")
        return replace(answer, source="flight") if joined else answer

    async def stored(self, plan_id: str) -> Answer:
        """A plan that is stored.  Raises NotFound."""
        found = self._recent.get(plan_id)
        if found is not None:
            return found
        text = await to_thread.run_sync(self._store.plan_text, plan_id)
        return self._keep(text.plan_id, text, "database")

    def forget(self, plan_id: str) -> None:
        """A plan is gone: neither its id nor its question is answered from memory."""
        self._recent.forget(lambda answer: answer.plan_id == plan_id)

    async def _search(self, request: PlanRequest) -> Answer:
        start_s = time.perf_counter()
        payload = {**request.model_dump(mode="json"), "priority": request.priority}
        try:
            content = await self._pool.run("plan", payload, self._settings.synchronous_s)
        except TooLong:
            raise StillSearching from None
        wall_s = time.perf_counter() - start_s
        text = await to_thread.run_sync(self._save, content, wall_s)
        return self._keep(request.content_hash(), text, "search")

    def _save(self, content: bytes, wall_s: float) -> PlanText:
        plan = Plan.model_validate_json(content)
        plan_id = self._store.save_plan(plan, wall_s)
        return PlanText(plan_id, plan.problem.problem_id, plan.outcome, content.decode(), plan.schema_version)

    def _keep(self, key: str, text: PlanText, source: str) -> Answer:
        answer = Answer(text.plan_id, text.problem_id, plan_json(text), source)
        # Only what is proved may answer for its question again; under its own id a plan never changes.
        if text.is_final:
            self._recent.keep(key, answer)
        self._recent.keep(text.plan_id, answer)
        return answer


async def make_job(board: JobBoard, request: PlanRequest, key: str | None, owner: str) -> JobRecord:
    """Hand a request to the board.  Raises QueueFull, KeyReused."""
    return await to_thread.run_sync(lambda: board.submit(request, key=key, owner=owner))


def plan_json(text: PlanText) -> bytes:
    """A stored plan as the wire shows it: its ids, then the document; one of an earlier version as it is read today."""
    head, body = f'{{"plan_id":"{text.plan_id}","problem_id":"{text.problem_id}",', text.body
    if text.schema_version != PLAN_VERSION or has_older_words(body):
        plan = Plan.model_validate_json(body)
        if plan.is_upgraded:
            head += f'"upgraded_from":{text.schema_version},'
            body = plan.canonical_json()
    return (head + body[1:]).encode()
