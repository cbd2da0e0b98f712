"""Who changed what: the audit trail, and the triggers that keep its rows as they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "audit_events",
        sa.Column("seq", NUMBER, nullable=False, autoincrement=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("principal", sa.String(255), nullable=False),
        sa.Column("client", sa.String(64), nullable=False),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("route", sa.String(128), nullable=False),
        sa.Column("resource", sa.String(255), nullable=False),
        sa.Column("status", sa.Integer, nullable=True),
        sa.Column("count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_audit_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    op.create_index("ix_audit_events_principal_seq", "audit_events", ["principal", "seq"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION audit_events_unchanged() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''audit_events is append-only''; END'"
        )
        op.execute(
            "CREATE TRIGGER audit_events_unchanged BEFORE UPDATE ON audit_events "
            "FOR EACH ROW EXECUTE FUNCTION audit_events_unchanged()"
        )
    else:
        op.execute(
            "CREATE TRIGGER audit_events_unchanged BEFORE UPDATE ON audit_events "
            "BEGIN SELECT RAISE(ABORT, 'audit_events is append-only'); END"
        )


def downgrade() -> None:
    """Drop it, and what was recorded."""
    op.drop_table("audit_events")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_events_unchanged()")
