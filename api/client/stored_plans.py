"""Requests about plans that the service keeps: the plans, views of them, launch files, labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from api.client.errors import ServiceAnswerInvalid
from api.client.question_body import path_part
from api.client.transport import Transport, read_answer
from api.http.archive import check_name
from api.wire.views import EmissionView, LabelView, MemoryView, PlanPage, PlanSummary
from planner.answers.diff import PlanDiff
from planner.answers.explain.why import Explanation
from planner.answers.explain.why_not import WhyNot
from planner.answers.sensitivity import Sensitivity
from planner.backends.emission.write import sha256, write_folder
from planner.plan.plan import Plan

PAGE = 500


class StoredPlans:
    """The part of a client that reads ``/v1/plans`` and ``/v1/labels``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_plan(self, plan: str) -> Plan:
        """The plan of an id, a unique prefix or a label.  Raises ProblemReported (not-found, ambiguous-plan)."""
        return read_plan(self._transport.send("GET", path_of(plan)).content)

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
        wanted = {
            "model": model,
            "cluster": cluster,
            "backend": backend,
            "problem_id": problem_id,
            "limit": min(page, PAGE),
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        while True:
            params = given if after is None else {**given, "after": after}
            found = self._transport.ask(PlanPage, "GET", "/v1/plans", params=params)
            yield from found.plans
            if found.next is None:
                return
            after = found.next

    def explanation(self, plan: str, *, brief: bool = False) -> Explanation:
        """Why this plan; ``brief``: without estimates of its neighbours."""
        params = {"brief": "true"} if brief else {}
        return self._transport.ask(Explanation, "GET", f"{path_of(plan)}/explanation", params=params)

    def why_not(self, plan: str, choice: str) -> WhyNot:
        """Why not another choice, for example ``tp=4,pp=8``."""
        return self._transport.ask(WhyNot, "GET", f"{path_of(plan)}/explanation", params={"why_not": choice})

    def timeline(self, plan: str) -> dict[str, Any]:
        """The simulated step in Chrome's trace-event form, as Perfetto opens it."""
        found: dict[str, Any] = json.loads(self._transport.send("GET", f"{path_of(plan)}/timeline").content)
        return found

    def memory(self, plan: str) -> MemoryView:
        """What fills each stage's worst device, against the limit."""
        return self._transport.ask(MemoryView, "GET", f"{path_of(plan)}/memory")

    def sensitivity(
        self, plan: str, changes: Sequence[float] = (-0.2, -0.1, 0.1, 0.2), *, replan: bool = False
    ) -> Sensitivity:
        """How much the plan depends on numbers that may be wrong by these fractions."""
        params = {"changes": list(changes), "replan": "true" if replan else "false"}
        return self._transport.ask(Sensitivity, "GET", f"{path_of(plan)}/sensitivity", params=params)

    def diff(self, a: str, b: str) -> PlanDiff:
        """How plan ``b`` differs from plan ``a``."""
        return self._transport.ask(PlanDiff, "GET", f"{path_of(a)}/diff/{path_part(b, 'plan')}")

    def label(self, name: str, plan: str) -> LabelView:
        """Point a label at a plan; its history stays."""
        return self._transport.ask(LabelView, "PUT", f"/v1/labels/{path_part(name, 'label')}", body={"plan": plan})

    def get_label(self, name: str) -> LabelView:
        """Which plan a label means, and meant."""
        return self._transport.ask(LabelView, "GET", f"/v1/labels/{path_part(name, 'label')}")


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


def write_view(view: EmissionView, folder: Path) -> Path:
    """Write launch files that came over the network; see ``Emissions.write_emission``."""
    listed: Mapping[str, Mapping[str, Any]] = view.manifest.get("files", {})
    for path, text in view.files.items():
        check_name(path)
        if listed.get(path, {}).get("sha256") != sha256(text):
            raise ServiceAnswerInvalid(f"the launch file {path} is not what its manifest says", where=path)
    executables = frozenset(path for path, entry in listed.items() if entry.get("executable"))
    return write_folder(view.files, executables, view.manifest, folder)


def path_of(plan: str) -> str:
    """Where a plan is."""
    return f"/v1/plans/{path_part(plan, 'plan')}"
