"""A key of a client may name a fleet that was shared; the answers themselves are documents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SHA = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column."""
    op.add_column("idempotency_keys", sa.Column("fleet_id", SHA, nullable=True))


def downgrade() -> None:
    """Drop it, and the answers that only it names."""
    op.execute("DELETE FROM documents WHERE kind = 'fleet'")
    # A key whose answer was a fleet has none any more.
    op.execute("DELETE FROM idempotency_keys WHERE fleet_id IS NOT NULL")
    with op.batch_alter_table("idempotency_keys") as table:
        table.drop_column("fleet_id")
