"""Sweeps of the service and their cells; a key of a client may name a sweep."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SHA = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables, and the column."""
    op.create_table(
        "sweeps",
        sa.Column("sweep_id", SHA, nullable=False),
        sa.Column("document_sha", SHA, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("cancelled_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("sweep_id", name="pk_sweeps"),
        sa.ForeignKeyConstraint(["document_sha"], ["documents.sha"], name="fk_sweeps_document_sha_documents"),
    )
    op.create_index("ix_sweeps_created_at_sweep_id", "sweeps", ["created_at", "sweep_id"])
    op.create_index("ix_sweeps_ended_at", "sweeps", ["ended_at"])
    op.create_table(
        "sweep_cells",
        sa.Column("sweep_id", SHA, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("job_id", sa.String(64), nullable=True),
        sa.Column("line", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("sweep_id", "position", name="pk_sweep_cells"),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.sweep_id"], name="fk_sweep_cells_sweep_id_sweeps"),
    )
    op.create_index("ix_sweep_cells_job_id", "sweep_cells", ["job_id"])
    op.add_column("idempotency_keys", sa.Column("sweep_id", SHA, nullable=True))


def downgrade() -> None:
    """Drop them, and the documents that only sweeps have."""
    op.drop_table("sweep_cells")
    op.drop_table("sweeps")
    op.execute("DELETE FROM documents WHERE kind = 'sweep'")
    # A key whose answer was a sweep has none any more.
    op.execute("DELETE FROM idempotency_keys WHERE sweep_id IS NOT NULL")
    with op.batch_alter_table("idempotency_keys") as table:
        table.drop_column("sweep_id")
