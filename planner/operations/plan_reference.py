"""Plan references: a stored id, a unique prefix, a label, a plan file, or the folder of an emission."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from planner.errors import Conflict, DocumentInvalid, NotFound
from planner.operations.operation import PLAN
from planner.operations.reading import file_exists, read_json
from planner.plan.plan import Plan
from profiles.document import Document
from profiles.validation import read_document

PlanName = Annotated[str, PLAN, Field(description="id, unique prefix (4 digits or more) or label")]
PLAN_FILE = "plan.json"
NOT_IN_THE_DOCUMENT = ("plan_id", "problem_id")
"""Keys of the printed plan that are derived from the document, not part of it."""


class PlanRequest(Document):
    """Which plan is meant."""

    plan: PlanName


def load_plan(reference: str, database: str | None = None) -> Plan:
    """The plan of a file here, or one that is stored.  Raises NotFound, Conflict, DocumentInvalid."""
    from planner.store import open_store

    def stored(stored_reference: str) -> Plan:
        with open_store(database) as store:
            return store.get_plan(stored_reference)

    return file_or_stored(reference, stored)


def file_or_stored(reference: str, stored: Callable[[str], Plan]) -> Plan:
    """The plan of a file here, or what ``stored`` finds.  Raises NotFound, Conflict, DocumentInvalid."""
    if not is_plan_file(reference):
        return stored(reference)
    path = Path(reference)
    return read_plan_file(path / PLAN_FILE if reference != "-" and path.is_dir() else path)


def is_plan_file(reference: str) -> bool:
    """Whether a file of this machine is meant.  Raises NotFound for one that is not there."""
    if reference == "-" or file_exists(Path(reference)):
        return True
    if "/" in reference or Path(reference).suffix in {".json", ".yaml", ".yml"}:
        raise NotFound(
            "no such plan file", where=reference, hint="give a plan file, an emitted folder, or an id of plans list"
        )
    return False


def stored_reference(reference: str) -> str:
    """A plan that a service keeps.  Raises Conflict for a file, which it cannot see."""
    if is_plan_file(reference):
        raise Conflict(
            "the service sees no file of this machine",
            where=reference,
            hint="give the id, a unique prefix or a label of a plan that it keeps, or drop --server",
        )
    return reference


def read_plan_file(path: Path) -> Plan:
    """A plan from a JSON file that ``--plan-out``, ``plans export`` or an emitter wrote."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise DocumentInvalid("this JSON is not a plan", where=str(path), hint="give a file that --plan-out wrote")
    if "plan_id" in data and "problem" not in data:
        raise DocumentInvalid(
            "this is the short form of a plan, without its problem",
            where=str(path),
            hint="write it with --plan-out FILE, or print it with -o json --full",
        )
    plan = read_document(Plan, document_part(data), str(path))
    said = data.get("plan_id")
    if said is not None and said != plan.plan_id:
        raise Conflict(
            f"the file says plan {str(said)[:12]} but its content is plan {plan.plan_id[:12]}",
            where=f"{path}#/plan_id",
            hint="the file was edited after it was written; remove plan_id to use it as it is, or export it again",
        )
    return plan


def full_document(plan: Plan) -> dict[str, Any]:
    """The whole plan with its derived ids: what files hold."""
    return {"plan_id": plan.plan_id, "problem_id": plan.problem.problem_id, **plan.model_dump(mode="json")}


def document_part(data: dict[str, Any]) -> dict[str, Any]:
    """The printed form without what only printing adds (ids, the wall clock)."""
    document = {key: value for key, value in data.items() if key not in NOT_IN_THE_DOCUMENT}
    if isinstance(document.get("search"), dict):
        document["search"] = {key: value for key, value in document["search"].items() if key != "wall_s"}
    return document
