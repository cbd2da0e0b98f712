"""What can be asked about plans that the service keeps?  The plans, views of them, launch files, labels."""

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
from planner.backends.emission.write import sha256, write_folder
from planner.backends.launch.settings import LaunchSettings
from planner.diff import PlanDiff
from planner.explain.why import Explanation
from planner.explain.why_not import WhyNot
from planner.plan import Plan
from planner.sensitivity import Sensitivity

PAGE = 500


class StoredPlans:
    """The part of a client that reads ``/v1/plans`` and ``/v1/labels``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_plan(self, plan: str) -> Plan:
        """The plan of an id, a unique prefix or a label.  Raises ProblemReported (not-found, ambiguous-plan)."""
        return read_plan(self._transport.send("GET", _of(plan)).content)

    def list_plans(
        self,
        *,
        model: str | None = None,
        cluster: str | None = None,
        problem_id: str | None = None,
        after: str | None = None,
        page: int = 50,
    ) -> Iterator[PlanSummary]:
        """Every stored plan, newest first; pages are fetched as they are needed, and stable while plans come."""
        wanted = {"model": model, "cluster": cluster, "problem_id": problem_id, "limit": min(page, PAGE)}
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
        return self._transport.ask(Explanation, "GET", f"{_of(plan)}/explanation", params=params)

    def why_not(self, plan: str, choice: str) -> WhyNot:
        """Why not another choice, for example ``tp=4,pp=8``."""
        return self._transport.ask(WhyNot, "GET", f"{_of(plan)}/explanation", params={"why_not": choice})

    def timeline(self, plan: str) -> dict[str, Any]:
        """The simulated step in Chrome's trace-event form, as Perfetto opens it."""
        found: dict[str, Any] = json.loads(self._transport.send("GET", f"{_of(plan)}/timeline").content)
        return found

    def memory(self, plan: str) -> MemoryView:
        """What fills each stage's worst device, against the limit."""
        return self._transport.ask(MemoryView, "GET", f"{_of(plan)}/memory")

    def sensitivity(
        self, plan: str, changes: Sequence[float] = (-0.2, -0.1, 0.1, 0.2), *, replan: bool = False
    ) -> Sensitivity:
        """How much the plan depends on numbers that may be wrong by these fractions."""
        params = {"changes": list(changes), "replan": "true" if replan else "false"}
        return self._transport.ask(Sensitivity, "GET", f"{_of(plan)}/sensitivity", params=params)

    def diff(self, a: str, b: str) -> PlanDiff:
        """How plan ``b`` differs from plan ``a``."""
        return self._transport.ask(PlanDiff, "GET", f"{_of(a)}/diff/{path_part(b, 'plan')}")

    def emission(
        self,
        plan: str,
        target: str,
        *,
        launcher: str = "torchrun",
        version: str | None = None,
        settings: LaunchSettings | None = None,
    ) -> EmissionView:
        """The launch files of a plan, with their manifest; ``settings``: what only you know of where the job runs.

        Raises ProblemReported (target-refused).
        """
        path, params = _emission(plan, target, launcher, version, settings)
        return self._transport.ask(EmissionView, "GET", path, params=params)

    def emission_zip(
        self,
        plan: str,
        target: str,
        *,
        launcher: str = "torchrun",
        version: str | None = None,
        settings: LaunchSettings | None = None,
    ) -> bytes:
        """The same as one archive; equal plans give equal bytes."""
        path, params = _emission(plan, target, launcher, version, settings)
        return self._transport.send("GET", path, params=params, headers={"Accept": "application/zip"}).content

    def write_emission(
        self,
        plan: str,
        target: str,
        folder: Path,
        *,
        launcher: str = "torchrun",
        version: str | None = None,
        settings: LaunchSettings | None = None,
    ) -> EmissionView:
        """The launch files in ``folder``: whole or not at all, and only an untouched emission is replaced.

        Raises Conflict and DocumentInvalid as ``meshwright emit`` does, BackEndRefused for a name that leads out of the
        folder, ServiceAnswerInvalid for a file that is not what the manifest says.
        """
        found = self.emission(plan, target, launcher=launcher, version=version, settings=settings)
        write_view(found, folder)
        return found

    def label(self, name: str, plan: str) -> LabelView:
        """Point a label at a plan; its history stays."""
        return self._transport.ask(LabelView, "PUT", f"/v1/labels/{path_part(name, 'label')}", body={"plan": plan})

    def get_label(self, name: str) -> LabelView:
        """Which plan a label means, and meant."""
        return self._transport.ask(LabelView, "GET", f"/v1/labels/{path_part(name, 'label')}")


def read_plan(content: bytes) -> Plan:
    """The plan of an answer, whose content is its id.  Raises ServiceAnswerInvalid."""
    plan = read_answer(Plan, content)
    check_plan(plan, json.loads(content).get("plan_id"))
    return plan


def check_plan(plan: Plan, said: object) -> None:
    """Refuse a plan that is not the one that its id says: this release could only use a part of it."""
    if plan.plan_id != said:
        raise ServiceAnswerInvalid(
            f"plan {str(said)[:12]} holds what this release does not know",
            hint="install the release that the service runs (see its /version)",
        )


def write_view(view: EmissionView, folder: Path) -> Path:
    """Write launch files that came over the network; see ``StoredPlans.write_emission``."""
    listed: Mapping[str, Mapping[str, Any]] = view.manifest.get("files", {})
    for path, text in view.files.items():
        check_name(path)
        if listed.get(path, {}).get("sha256") != sha256(text):
            raise ServiceAnswerInvalid(f"the launch file {path} is not what its manifest says", where=path)
    executables = frozenset(path for path, entry in listed.items() if entry.get("executable"))
    return write_folder(view.files, executables, view.manifest, folder)


def _of(plan: str) -> str:
    return f"/v1/plans/{path_part(plan, 'plan')}"


def _emission(
    plan: str, target: str, launcher: str, version: str | None, settings: LaunchSettings | None
) -> tuple[str, dict[str, Any]]:
    said = {} if settings is None else settings.to_dict()
    params = {"launcher": launcher, **({"version": version} if version else {}), **said}
    return f"{_of(plan)}/emissions/{path_part(target, 'target')}", params
