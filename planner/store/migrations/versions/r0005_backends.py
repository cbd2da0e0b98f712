"""The back-end of each plan, so that lists can show it and ask for it."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

RENAMED = {"tuned": "unrestricted", "megatron-2021": "megatron==2.5"}
"""Frameworks of plans of version 1 that are spelled otherwise since."""


def upgrade() -> None:
    """Add the columns; each stored plan says what belongs there."""
    op.add_column("plans", sa.Column("backend", sa.Text, nullable=True))
    op.add_column("plans", sa.Column("release", sa.Text, nullable=True))
    op.create_index("ix_plans_backend_created_at", "plans", ["backend", "created_at"])
    connection = op.get_bind()
    bodies = sa.text("SELECT body FROM documents WHERE sha = :plan_id")
    told = sa.text("UPDATE plans SET backend = :backend, release = :release WHERE plan_id = :plan_id")
    # One plan at a time: bodies are large, and a database may hold many.
    for plan_id in connection.execute(sa.text("SELECT plan_id FROM plans")).scalars().all():
        body = connection.execute(bodies, {"plan_id": plan_id}).scalar()
        backend, release = _of(json.loads(body or "{}"))
        connection.execute(told, {"plan_id": plan_id, "backend": backend, "release": release})


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_plans_backend_created_at", "plans")
    # Not in a batch: other tables refer to this one, and SQLite would make it anew.
    op.drop_column("plans", "release")
    op.drop_column("plans", "backend")


def _of(plan: dict[str, Any]) -> tuple[str, str]:
    """Back-end and release: of version 1 the framework, where its rules were asked or none were, else the target."""
    if "backend" in plan:
        return str(plan["backend"]), str(plan.get("release", ""))
    problem = plan.get("problem", {})
    target, framework = problem.get("constraints", {}).get("target", "any"), problem.get("framework", "tuned")
    named = RENAMED.get(framework, framework)
    backend, _, release = (named if target in ("any", named.partition("==")[0]) else target).partition("==")
    return backend, release
