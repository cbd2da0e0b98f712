"""Requests about plans that the service keeps: the plans, views of them, launch files, labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import httpx

from api.client.errors import ServiceAnswerInvalid
from api.client.question_body import path_part
from api.client.transport import Transport, read_answer
from api.http.archive import check_name
from api.wire.views import Estimate
from planner.answers.diff import PlanDiff
from planner.answers.explain.why import Explanation
from planner.answers.explain.why_not import WhyNot
from planner.answers.replan.replan import Replan
from planner.answers.sensitivity import Sensitivity
from planner.backends.emission.write import sha256
from planner.operations.diff import DIFF, DiffRequest
from planner.operations.drawings import TIMELINE
from planner.operations.emit import EmissionView
from planner.operations.estimate import Estimated
from planner.operations.explain import EXPLAIN, ExplainRequest
from planner.operations.labels import GET_LABEL, PUT_LABEL, LabelName, LabelRequest, LabelView
from planner.operations.memory import MEMORY, MemoryView
from planner.operations.operation import Method, Operation
from planner.operations.plan import Planned
from planner.operations.plan_reference import PlanRequest
from planner.operations.plans import GET_PLAN, LARGEST_PAGE, LIST_PLANS, PlansRequest, PlanSummary
from planner.operations.sensitivity import SENSITIVITY, USUAL_CHANGES, SensitivityRequest
from planner.plan.plan import Plan
from profiles.document import Document

Q = TypeVar("Q", bound=Document)
A = TypeVar("A")


class StoredPlans:
    """The part of a client that reads ``/v1/plans`` and ``/v1/labels``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def call(self, operation: Operation[Q, A], asked: Q) -> A:
        """The answer to an operation of ``planner.operations``.  Raises ProblemReported, ServiceAnswerInvalid."""
        return read_as(operation, self._sent(operation, operation.method, asked).content)

    def _sent(self, operation: Operation[Q, A], method: Method, asked: Q, **more: Any) -> httpx.Response:
        """The response to the request of an operation: in the path what belongs there, the rest as query or body."""
        in_query = method in {"GET", "DELETE"}
        parts = sent_parts(operation, asked, exclude_defaults=in_query)
        words = {part: path_part(str(parts.pop(part)), _kind(operation, part)) for part in operation.path_parts}
        sent: dict[str, Any] = {"params": parts} if in_query else {"body": parts}
        return self._transport.send(method, operation.path.format(**words), **sent, **more)

    def get_plan(self, plan: str) -> Plan:
        """The plan of an id, a unique prefix or a label.  Raises ProblemReported (not-found, ambiguous-plan)."""
        return self.call(GET_PLAN, PlanRequest(plan=plan))

    def list_plans(
        self,
        *,
        model: str | None = None,
        cluster: str | None = None,
        backend: str | None = None,
        problem_id: str | None = None,
        after: str | None = None,
        page: int = 50,
    ) -> Iterator[PlanSummary]:
        """Every stored plan, newest first; pages are fetched as they are needed, and stable while plans come."""
        limit = min(page, LARGEST_PAGE)
        wanted = PlansRequest(model=model, cluster=cluster, backend=backend, problem_id=problem_id, limit=limit)
        while True:
            found = self.call(LIST_PLANS, wanted.model_copy(update={"after": after}))
            yield from found.plans
            if found.next is None:
                return
            after = found.next

    def explanation(self, plan: str, *, brief: bool = False) -> Explanation:
        """Why this plan; ``brief``: without estimates of its neighbours."""
        return cast("Explanation", self.call(EXPLAIN, ExplainRequest(plan=plan, brief=brief)))

    def why_not(self, plan: str, choice: str) -> WhyNot:
        """Why not another choice, for example ``tp=4,pp=8``."""
        return cast("WhyNot", self.call(EXPLAIN, ExplainRequest(plan=plan, why_not=choice)))

    def timeline(self, plan: str) -> dict[str, Any]:
        """The simulated step in Chrome's trace-event form, as Perfetto opens it."""
        return self.call(TIMELINE, PlanRequest(plan=plan))

    def memory(self, plan: str) -> MemoryView:
        """What fills each stage's worst device, against the limit."""
        return self.call(MEMORY, PlanRequest(plan=plan))

    def sensitivity(self, plan: str, changes: Sequence[float] = USUAL_CHANGES, *, replan: bool = False) -> Sensitivity:
        """How much the plan depends on numbers that may be wrong by these fractions."""
        return self.call(SENSITIVITY, SensitivityRequest(plan=plan, changes=list(changes), replan=replan))

    def diff(self, a: str, b: str) -> PlanDiff:
        """How plan ``b`` differs from plan ``a``."""
        return self.call(DIFF, DiffRequest(a=a, b=b))

    def label(self, name: str, plan: str) -> LabelView:
        """Point a label at a plan; its history stays."""
        return self.call(PUT_LABEL, LabelRequest(name=name, plan=plan))

    def get_label(self, name: str) -> LabelView:
        """Which plan a label means, and meant."""
        return self.call(GET_LABEL, LabelName(name=name))


def read_plan(content: bytes) -> Plan:
    """The plan of an answer, whose content is its id.  Raises ServiceAnswerInvalid."""
    data = json.loads(content)
    said = data.get("plan_id")
    if "upgraded_from" in data:
        # The service reads an earlier version for us; its id is of the text as that was stored.
        del data["upgraded_from"]
        return read_answer(Plan, json.dumps(data).encode()).stored_as(str(said))
    plan = read_answer(Plan, content)
    check_plan(plan, said)
    return plan


def check_plan(plan: Plan, said: object) -> None:
    """Refuse a plan that is not the one that its id says: this release could only use a part of it."""
    if plan.plan_id != said:
        raise ServiceAnswerInvalid(
            f"plan {str(said)[:12]} holds what this release does not know",
            hint="install the release that the service runs (see its /version)",
        )


def sent_parts(operation: Operation[Q, A], asked: Q, *, exclude_defaults: bool = False) -> dict[str, Any]:
    """The parts of a request as a service takes them, those of its path among them."""
    parts = asked.model_dump(mode="json", exclude_defaults=exclude_defaults)
    for name in operation.spread:
        inner = parts.pop(name, {})
        only = operation.question_parts if name == "question" else ()
        # A document leaves out parts that do not apply, as a calibration that nobody asked for.
        parts |= {each: inner[each] for each in only or inner if each in inner}
    return parts


def read_as(operation: Operation[Q, A], content: bytes) -> A:
    """The answer of an operation.  Raises ServiceAnswerInvalid; BackEndRefused for names that leave a folder."""
    reads: Callable[[bytes], A] = READERS.get(operation.answer, partial(read_answer, operation.answer))
    return reads(content)


def _read_emission(content: bytes) -> EmissionView:
    """Launch files that came over the network: plain names, and texts that are what the manifest says."""
    view = read_answer(EmissionView, content)
    listed: Mapping[str, Mapping[str, Any]] = view.manifest.get("files", {})
    for path, text in view.files.items():
        check_name(path)
        if listed.get(path, {}).get("sha256") != sha256(text):
            raise ServiceAnswerInvalid(f"the launch file {path} is not what its manifest says", where=path)
    return view


def _read_replan(content: bytes) -> Replan:
    found = read_answer(Replan, content)
    check_plan(found.plan, found.new_plan_id)
    return found


def _read_estimated(content: bytes) -> Estimated:
    found = read_answer(Estimate, content)
    if found.problem is None:
        raise ServiceAnswerInvalid(
            "the service did not say what it estimated", hint="the service runs an older release"
        )
    plan = Plan.model_validate({**found.plan.model_dump(), "problem": found.problem})
    return Estimated(plan, found.filled_in)


READERS: dict[Any, Callable[[bytes], Any]] = {
    Plan: read_plan,
    Planned: lambda content: Planned(read_plan(content)),
    Replan: _read_replan,
    Estimated: _read_estimated,
    EmissionView: _read_emission,
    str: bytes.decode,
}
"""Answers that are no document as it stands."""


def _kind(operation: Operation[Any, Any], part: str) -> str:
    """What a part of the path names: ``plan``, or the place where such things are, in the singular."""
    before = operation.path.split(f"/{{{part}}}")[0].rpartition("/")[2]
    return "plan" if part in operation.plans else before.removesuffix("s")
