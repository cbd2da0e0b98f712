"""What the service keeps: named documents, API keys, idempotency keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SHA = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "named_documents",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("sha", SHA, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", "version", name="pk_named_documents"),
        sa.ForeignKeyConstraint(["sha"], ["documents.sha"], name="fk_named_documents_sha_documents"),
    )
    op.create_table(
        "api_keys",
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("secret_sha256", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("prefix", name="pk_api_keys"),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("request_sha", sa.String(64), nullable=False),
        sa.Column("plan_id", SHA, nullable=True),
        sa.Column("job_id", sa.String(64), nullable=True),
        sa.Column("problem", sa.Text, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("owner", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])


def downgrade() -> None:
    """Drop them."""
    for table in ("idempotency_keys", "api_keys", "named_documents"):
        op.drop_table(table)
