"""Removing what somebody asked to be gone: a plan, a label, a named document, and what was kept only for it.

Documents are shared: one goes when no plan's question, no name and no sweep needs it any more.  Every function works
inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, Select, delete, select

from planner.store import finding, named, saving
from planner.store.records import RemovedPlan
from planner.store.tables import (
    DocumentRow,
    EmissionRow,
    IdempotencyKeyRow,
    LabelRow,
    NamedDocumentRow,
    PlanRow,
    ProblemRow,
    SearchRow,
    SweepRow,
)
from profiles.errors import Conflict, NotFound

_PARTS = ("model_sha", "cluster_sha", "workload_sha", "constraints_sha", "objective_sha")


def remove_plan(connection: Connection, reference: str) -> RemovedPlan:
    """Remove a plan, what was written from it and said about it, and its question when no other plan answers it.

    Raises NotFound, AmbiguousPlan, Conflict where a label means it now.
    """
    saving.hold_documents(connection, alone=True)
    plan_id = finding.resolve(connection, reference)
    if labels := finding.labels_of(connection, [plan_id])[plan_id]:
        names = ", ".join(labels)
        raise Conflict(
            f"plan {plan_id[:12]} is what {names} means",
            where="plan",
            hint="point the label at another plan, or delete it, first",
        )
    problem_id = connection.execute(select(PlanRow.problem_id).where(PlanRow.plan_id == plan_id)).scalar_one()
    counts = {
        kind: connection.execute(delete(row).where(row.plan_id == plan_id)).rowcount
        for kind, row in (("emissions", EmissionRow), ("label_versions", LabelRow), ("requests", IdempotencyKeyRow))
    }
    for row in (SearchRow, PlanRow):
        connection.execute(delete(row).where(row.plan_id == plan_id))
    forget_documents(connection, {plan_id, *_question_without_plans(connection, problem_id)})
    return RemovedPlan(plan_id, problem_id, **counts)


def remove_label(connection: Connection, name: str) -> int:
    """Remove a label with its history; how many versions it had.  Raises NotFound."""
    count = connection.execute(delete(LabelRow).where(LabelRow.name == name)).rowcount
    if not count:
        raise NotFound("there is no such label", where="name", hint="`meshwright plans labels` lists them")
    return count


def remove_named(connection: Connection, kind: str, name: str, expected: str | None) -> int:
    """Remove every version under a name; how many there were.  Plans of it stay, with its document.

    Raises NotFound, Conflict when the name means something else than ``expected`` by now.
    """
    saving.hold_documents(connection, alone=True)
    newest = named.current(connection, kind, name)
    if newest is None:
        raise NotFound(f"there is no stored {kind} {name!r}", where="name")
    named.check_expected(kind, name, newest, expected)
    here = (NamedDocumentRow.kind == kind, NamedDocumentRow.name == name)
    shas = set(connection.execute(select(NamedDocumentRow.sha).where(*here)).scalars())
    count = connection.execute(delete(NamedDocumentRow).where(*here)).rowcount
    forget_documents(connection, shas)
    return count


def _question_without_plans(connection: Connection, problem_id: str) -> Collection[str]:
    """Remove a question that no plan answers any more; the documents that it had."""
    left = select(PlanRow.plan_id).where(PlanRow.problem_id == problem_id).limit(1)
    if connection.execute(left).first() is not None:
        return ()
    columns = [getattr(ProblemRow, part) for part in _PARTS]
    row = connection.execute(select(*columns).where(ProblemRow.problem_id == problem_id)).one()
    connection.execute(delete(ProblemRow).where(ProblemRow.problem_id == problem_id))
    return tuple(row)


def forget_documents(connection: Connection, shas: Collection[str]) -> None:
    """Remove those of these documents that nothing needs; the caller holds documents alone."""
    needed: list[Select[tuple[str]]] = [select(getattr(ProblemRow, part)) for part in _PARTS]
    needed += [select(PlanRow.plan_id), select(NamedDocumentRow.sha), select(SweepRow.document_sha)]
    unused = [DocumentRow.sha.not_in(each) for each in needed]
    connection.execute(delete(DocumentRow).where(DocumentRow.sha.in_(shas), *unused))
