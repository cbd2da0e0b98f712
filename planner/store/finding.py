"""Finding something in the store: by id, unique prefix, label, question, or page by page.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Select, func, select, tuple_

from planner.plan.plan import FINAL, Plan
from planner.store.errors import AmbiguousPlan, PlanUnreadable, StoreCorrupt
from planner.store.records import EmissionRecord, LabelRecord, PlanFacts, PlanRecord, PlanText
from planner.store.tables import DocumentRow, EmissionRow, LabelRow, PlanRow, SearchRow
from profiles.errors import NotFound

MIN_PREFIX = 4
"""Shortest prefix of a plan id that is looked up, as in Git."""

_HEX = re.compile(r"[0-9a-f]+")


def resolve(connection: Connection, reference: str) -> str:
    """The plan id meant by an id, a label or a unique prefix of an id.  Raises NotFound or AmbiguousPlan."""
    wanted = reference.strip()
    labelled = connection.execute(
        select(LabelRow.plan_id).where(LabelRow.name == wanted).order_by(LabelRow.version.desc()).limit(1)
    ).scalar()
    if labelled is not None:
        return labelled
    prefix = wanted.lower()
    if len(prefix) >= MIN_PREFIX and _HEX.fullmatch(prefix):
        # Ids are hexadecimal, so everything that starts with the prefix sorts before prefix + "g".
        within = (PlanRow.plan_id >= prefix, PlanRow.plan_id < prefix + "g")
        ids = (
            connection.execute(select(PlanRow.plan_id).where(*within).order_by(PlanRow.plan_id).limit(6))
            .scalars()
            .all()
        )
        if len(ids) == 1:
            return ids[0]
        if ids:
            shown = ", ".join(plan_id[:16] for plan_id in ids[:5]) + (", ..." if len(ids) > 5 else "")
            raise AmbiguousPlan(f"{reference!r} fits several plans: {shown}", where=reference, hint="give more digits")
    raise NotFound(
        f"there is no plan {reference!r}",
        where=reference,
        hint=f"`meshwright plans list` shows ids and labels; a prefix needs {MIN_PREFIX} digits",
    )


def read_plan(connection: Connection, plan_id: str) -> Plan:
    """The whole plan.  Raises StoreCorrupt when its body does not hash to its id, PlanUnreadable for another form."""
    body = connection.execute(select(DocumentRow.body).where(DocumentRow.sha == plan_id)).scalar()
    if body is None or hashlib.sha256(body.encode()).hexdigest() != plan_id:
        raise StoreCorrupt(
            "the stored plan is damaged: its text does not hash to its id", where=plan_id, hint="restore a backup"
        )
    try:
        return Plan.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "/" + "/".join(str(part) for part in first["loc"])
        raise PlanUnreadable(
            f"the plan was stored by another release and cannot be read by this one: {first['msg']}",
            where=f"{plan_id}#{pointer}",
            hint="plan again with this release, or read it with the one that stored it",
        ) from error


def read_text(connection: Connection, plan_id: str) -> PlanText:
    """The stored text of a plan.  Raises StoreCorrupt when it does not hash to its id."""
    query = select(PlanRow.problem_id, PlanRow.status, DocumentRow.body, DocumentRow.schema_version).join(
        DocumentRow, DocumentRow.sha == PlanRow.plan_id
    )
    row = connection.execute(query.where(PlanRow.plan_id == plan_id)).first()
    if row is None or hashlib.sha256(row.body.encode()).hexdigest() != plan_id:
        raise StoreCorrupt(
            "the stored plan is damaged: its text does not hash to its id", where=plan_id, hint="restore a backup"
        )
    return PlanText(plan_id, row.problem_id, row.status, row.body, row.schema_version)


def read_document(connection: Connection, kind: str, sha: str) -> str:
    """The text of a document that has an id of its own.  Raises NotFound."""
    query = select(DocumentRow.body).where(DocumentRow.sha == sha, DocumentRow.kind == kind)
    body = connection.execute(query).scalar()
    if body is None:
        raise NotFound(f"there is no such {kind}", where=kind, hint=f"give the whole id of a {kind} that is stored")
    return str(body)


def find_answer(connection: Connection, problem_id: str, software_signature: str) -> str | None:
    """The best plan that this very software found for this very problem: proved before unproved, then smallest gap."""
    query = (
        select(PlanRow.plan_id)
        .join(SearchRow, SearchRow.plan_id == PlanRow.plan_id)
        .where(SearchRow.problem_id == problem_id, SearchRow.software_signature == software_signature)
        .order_by(PlanRow.status.in_(FINAL).desc(), PlanRow.gap, SearchRow.created_at.desc(), PlanRow.plan_id)
        .limit(1)
    )
    return connection.execute(query).scalar()


def longest_search_s(connection: Connection, problem_id: str, software_signature: str) -> float:
    """For how long this software has searched this problem at most; 0 when it never did."""
    query = select(func.max(SearchRow.wall_s)).where(
        SearchRow.problem_id == problem_id, SearchRow.software_signature == software_signature
    )
    return float(connection.execute(query).scalar() or 0.0)


def _gap(row: Any) -> float | None:
    """The gap of a stored plan; None of an estimate, which is feasible and has none above zero.

    A searched plan whose gap is zero is proved.
    """
    return None if row.status == "feasible" and row.gap == 0.0 else float(row.gap)


def list_plans(
    connection: Connection,
    model: str | None = None,
    cluster: str | None = None,
    *,
    backend: str | None = None,
    problem_id: str | None = None,
    limit: int,
    after: str | None,
) -> tuple[PlanRecord, ...]:
    """Newest first; ``after`` is the last plan id of the page before."""
    query: Select[tuple[PlanRow]] = select(PlanRow)
    if model is not None:
        query = query.where(PlanRow.model_name == model)
    if cluster is not None:
        query = query.where(PlanRow.cluster_name == cluster)
    if backend is not None:
        query = query.where(PlanRow.backend == backend)
    if problem_id is not None:
        query = query.where(PlanRow.problem_id == problem_id)
    if after is not None:
        last = connection.execute(select(PlanRow.created_at, PlanRow.plan_id).where(PlanRow.plan_id == after)).one()
        query = query.where(tuple_(PlanRow.created_at, PlanRow.plan_id) < tuple_(last.created_at, last.plan_id))
    rows = connection.execute(query.order_by(PlanRow.created_at.desc(), PlanRow.plan_id.desc()).limit(limit)).all()
    ids = [row.plan_id for row in rows]
    labels, facts = labels_of(connection, ids), _facts_of(connection, ids)
    return tuple(
        PlanRecord(
            plan_id=row.plan_id,
            problem_id=row.problem_id,
            outcome=row.status,
            step_time_s=row.step_time_s,
            gap=_gap(row),
            num_devices=row.num_devices,
            model_name=row.model_name,
            cluster_name=row.cluster_name,
            created_at=row.created_at,
            labels=tuple(labels[row.plan_id]),
            backend=row.backend or "",
            release=row.release or "",
            facts=facts[row.plan_id],
        )
        for row in rows
    )


def list_labels(connection: Connection, limit: int, after: str | None) -> tuple[LabelRecord, ...]:
    """The newest version of every label, by name, after a name."""
    query = _newest_labels()
    if after is not None:
        query = query.where(LabelRow.name > after)
    rows = connection.execute(query.limit(limit))
    return tuple(LabelRecord(row.name, row.version, row.plan_id, row.created_at) for row in rows)


def label_history(connection: Connection, name: str) -> tuple[LabelRecord, ...]:
    """Every version of a label, newest first."""
    query = select(LabelRow.name, LabelRow.version, LabelRow.plan_id, LabelRow.created_at)
    rows = connection.execute(query.where(LabelRow.name == name).order_by(LabelRow.version.desc()))
    return tuple(LabelRecord(row.name, row.version, row.plan_id, row.created_at) for row in rows)


def list_emissions(connection: Connection, plan_id: str) -> tuple[EmissionRecord, ...]:
    """Everything written from a plan, newest first."""
    query = select(
        EmissionRow.emission_id, EmissionRow.backend, EmissionRow.launcher, EmissionRow.manifest, EmissionRow.created_at
    )
    order = (EmissionRow.created_at.desc(), EmissionRow.emission_id)
    rows = connection.execute(query.where(EmissionRow.plan_id == plan_id).order_by(*order))
    return tuple(
        EmissionRecord(row.emission_id, plan_id, row.target, row.launcher, json.loads(row.manifest), row.created_at)
        for row in rows
    )


def _facts_of(connection: Connection, plan_ids: Sequence[str]) -> dict[str, PlanFacts]:
    query = select(DocumentRow.sha, DocumentRow.body).where(DocumentRow.sha.in_(plan_ids))
    return {row.sha: PlanFacts.of(row.body) for row in connection.execute(query)}


def labels_of(connection: Connection, plan_ids: Sequence[str]) -> defaultdict[str, list[str]]:
    """Labels that mean each of these plans now, by name."""
    labels: defaultdict[str, list[str]] = defaultdict(list)
    for row in connection.execute(_newest_labels().where(LabelRow.plan_id.in_(plan_ids))):
        labels[row.plan_id].append(row.name)
    return labels


def _newest_labels() -> Select[str, int, str, datetime]:
    """The newest version of every label, by name."""
    newest = select(LabelRow.name, func.max(LabelRow.version).label("version")).group_by(LabelRow.name).subquery()
    same = (LabelRow.name == newest.c.name) & (LabelRow.version == newest.c.version)
    query = select(LabelRow.name, LabelRow.version, LabelRow.plan_id, LabelRow.created_at)
    return query.join(newest, same).order_by(LabelRow.name)
