"""Documents, problems, plans, searches, labels, emissions.

A migration is history: it spells its columns out and never imports ``tables``, which moves on.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SHA = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the first tables."""
    _create_questions()
    _create_answers()
    _create_uses()


def downgrade() -> None:
    """Drop them, referring tables first."""
    for table in ("emissions", "labels", "searches", "plans", "problems", "documents"):
        op.drop_table(table)


def _create_questions() -> None:
    op.create_table(
        "documents",
        sa.Column("sha", SHA, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("schema_version", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("sha", name="pk_documents"),
    )
    op.create_table(
        "problems",
        sa.Column("problem_id", SHA, nullable=False),
        *(_document(name) for name in ("model_sha", "cluster_sha", "workload_sha", "constraints_sha", "objective_sha")),
        sa.Column("profile_id", SHA, nullable=True),
        sa.PrimaryKeyConstraint("problem_id", name="pk_problems"),
    )


def _document(name: str) -> sa.Column[str]:
    foreign_key = sa.ForeignKey("documents.sha", name=f"fk_problems_{name}_documents")
    return sa.Column(name, SHA, foreign_key, nullable=False)


def _create_answers() -> None:
    op.create_table(
        "plans",
        sa.Column("plan_id", SHA, nullable=False),
        sa.Column("problem_id", SHA, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("step_time_s", sa.Double, nullable=False),
        sa.Column("gap", sa.Double, nullable=False),
        sa.Column("num_devices", sa.Integer, nullable=False),
        sa.Column("model_name", sa.Text, nullable=False),
        sa.Column("cluster_name", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", name="pk_plans"),
        sa.ForeignKeyConstraint(["plan_id"], ["documents.sha"], name="fk_plans_plan_id_documents"),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name="fk_plans_problem_id_problems"),
    )
    op.create_index("ix_plans_created_at_plan_id", "plans", ["created_at", "plan_id"])
    op.create_index("ix_plans_model_name_created_at", "plans", ["model_name", "created_at"])
    op.create_index("ix_plans_cluster_name_created_at", "plans", ["cluster_name", "created_at"])
    op.create_index("ix_plans_problem_id", "plans", ["problem_id"])
    op.create_table(
        "searches",
        sa.Column("plan_id", SHA, nullable=False),
        sa.Column("software_signature", sa.String(64), nullable=False),
        sa.Column("problem_id", SHA, nullable=False),
        sa.Column("wall_s", sa.Double, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("plan_id", "software_signature", name="pk_searches"),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.plan_id"], name="fk_searches_plan_id_plans"),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.problem_id"], name="fk_searches_problem_id_problems"),
    )
    op.create_index("ix_searches_problem_id_software_signature", "searches", ["problem_id", "software_signature"])


def _create_uses() -> None:
    op.create_table(
        "labels",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("plan_id", SHA, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", "version", name="pk_labels"),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.plan_id"], name="fk_labels_plan_id_plans"),
    )
    op.create_index("ix_labels_plan_id", "labels", ["plan_id"])
    op.create_table(
        "emissions",
        sa.Column("emission_id", SHA, nullable=False),
        sa.Column("plan_id", SHA, nullable=False),
        sa.Column("target", sa.String(32), nullable=False),
        sa.Column("launcher", sa.String(32), nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("emission_id", name="pk_emissions"),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.plan_id"], name="fk_emissions_plan_id_plans"),
    )
    op.create_index("ix_emissions_plan_id", "emissions", ["plan_id"])
