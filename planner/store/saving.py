"""Saving to the store: insert if absent, then compare; content-addressed rows never change.

Every function works inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.dialects import sqlite

from planner.plan.plan import Plan
from planner.store.tables import Base, DocumentRow, EmissionRow, LabelRow, PlanRow, ProblemRow, SearchRow
from profiles.document import Document, canonical_json
from profiles.errors import Conflict

# Any constant: whoever saves has it together with others, whoever removes has it alone.
_DOCUMENTS_LOCK = 0x6D657372


def insert_plan(connection: Connection, plan: Plan, now: datetime) -> str:
    """Store the plan and every document that its problem is made of; returns the plan's id.

    A plan of an earlier version is stored as it was written, under the id that it has.
    """
    problem = plan.problem
    parts: dict[str, Document] = {
        "model": problem.model,
        "cluster": problem.cluster,
        "workload": problem.workload,
        "constraints": problem.constraints,
        "objective": problem.objective,
        "plan": plan,
    }
    shas = insert_documents(connection, parts)
    problem_id = problem.problem_id
    insert_absent(
        connection,
        ProblemRow,
        [
            {
                "problem_id": problem_id,
                **{f"{kind}_sha": sha for kind, sha in shas.items() if kind != "plan"},
                "profile_id": problem.profile_id,
            }
        ],
    )
    insert_absent(
        connection,
        PlanRow,
        [
            {
                "plan_id": shas["plan"],
                "problem_id": problem_id,
                "status": plan.outcome,
                "step_time_s": plan.step_time_s,
                "gap": plan.gap or 0.0,
                "num_devices": plan.chosen().world_size,
                "model_name": problem.model.name,
                "cluster_name": problem.cluster.name,
                "created_at": now,
                "backend": plan.backend,
                "release": plan.release,
            }
        ],
    )
    return shas["plan"]


def insert_search(
    connection: Connection, plan_id: str, problem_id: str, software_signature: str, wall_s: float, now: datetime
) -> None:
    """Record that this software found this plan; the first record stays."""
    row = {
        "plan_id": plan_id,
        "software_signature": software_signature,
        "problem_id": problem_id,
        "wall_s": wall_s,
        "created_at": now,
    }
    insert_absent(connection, SearchRow, [row])


def insert_label(connection: Connection, name: str, plan_id: str, now: datetime, expected: int | None = None) -> int:
    """Point a label at a plan; returns the label's version.  The same plan again is no new version.

    ``expected``: the version that this one replaces, 0 = the label is new, None = whichever.  Raises Conflict.
    """
    if connection.dialect.name == "postgresql":
        # Two writers of one label take turns; SQLite has one writer at a time anyway.
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
    newest = connection.execute(
        select(LabelRow.version, LabelRow.plan_id)
        .where(LabelRow.name == name)
        .order_by(LabelRow.version.desc())
        .limit(1)
    ).first()
    if expected is not None and (0 if newest is None else newest.version) != expected:
        raise Conflict(
            f"label {name} is not at the version that this change replaces",
            where="If-Match",
            hint="read it again and decide on what it means now",
        )
    if newest is not None and newest.plan_id == plan_id:
        return int(newest.version)
    version = 1 if newest is None else int(newest.version) + 1
    row = {"name": name, "version": version, "plan_id": plan_id, "created_at": now}
    insert_absent(connection, LabelRow, [row])
    return version


def insert_emission(
    connection: Connection, plan_id: str, backend: str, launcher: str, manifest: Mapping[str, Any], now: datetime
) -> str:
    """Record what was written; returns the emission's id, the hash of all that identifies it."""
    body = canonical_json(manifest)
    identity = canonical_json([plan_id, backend, launcher, body])
    emission_id = hashlib.sha256(identity.encode()).hexdigest()
    row = {
        "emission_id": emission_id,
        "plan_id": plan_id,
        "target": backend,
        "launcher": launcher,
        "manifest": body,
        "created_at": now,
    }
    insert_absent(connection, EmissionRow, [row])
    return emission_id


def hold_documents(connection: Connection, *, alone: bool = False) -> None:
    """Until the transaction ends nobody removes a document that it found; ``alone``: nobody finds one either.

    SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        function = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        connection.execute(text(f"SELECT {function}(:key)"), {"key": _DOCUMENTS_LOCK})


def insert_documents(connection: Connection, parts: Mapping[str, Document]) -> dict[str, str]:
    """Insert the absent ones and compare all.  Raises Conflict when an id already has another body."""
    hold_documents(connection)
    bodies = {kind: canonical_json(_written(part)) for kind, part in parts.items()}
    shas = {kind: hashlib.sha256(body.encode()).hexdigest() for kind, body in bodies.items()}
    rows = [
        {
            "sha": shas[kind],
            "kind": kind,
            "schema_version": int(_written(part).get("schema_version", 1)),
            "body": bodies[kind],
        }
        for kind, part in parts.items()
    ]
    # One order for all writers: two transactions that insert the same rows in different orders could wait in a circle.
    insert_absent(connection, DocumentRow, sorted(rows, key=lambda row: str(row["sha"])))
    stored = connection.execute(select(DocumentRow.sha, DocumentRow.body).where(DocumentRow.sha.in_(shas.values())))
    expected = {sha: bodies[kind] for kind, sha in shas.items()}
    for sha, body in stored:
        if body != expected[sha]:
            raise Conflict(
                f"the database holds another document under the id {sha[:12]}",
                where=sha,
                hint="a stored plan never changes, so the database was edited or damaged: restore a backup",
            )
    return shas


def _written(document: Document) -> Mapping[str, Any]:
    return document.written() if isinstance(document, Plan) else document.model_dump(mode="json")


def insert_absent(connection: Connection, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert the rows whose key is not there yet; returns how many."""
    inserted = 0
    # The returned row says whether one was inserted; a driver's row count may say nothing.
    key = inspect(table).primary_key
    for row in rows:
        if connection.dialect.name == "postgresql":
            # Here, because the import costs 20 ms, which SQLite users need not pay.
            from sqlalchemy.dialects import postgresql

            done = connection.execute(postgresql.insert(table).values(**row).on_conflict_do_nothing().returning(*key))
        else:
            done = connection.execute(sqlite.insert(table).values(**row).on_conflict_do_nothing().returning(*key))
        inserted += len(done.all())
    return inserted
