"""The learning loop: runs, observations, compressions, feedback, refusals, and what became of a memory.

Locks: `memories` for the moment in which four columns are added, without a rewrite. Its indexes are the next
revision's: what is built beside readers and writers is not undone by a failure, so it has a revision for itself.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NOW = sa.text("now()")


def upgrade() -> None:
    _runs()
    _observations()
    _compressions()
    _feedback()
    _refusals()
    _memories()


def downgrade() -> None:
    for table in ("refusals", "feedback", "compressions", "observations", "runs"):
        op.drop_table(table)
    op.drop_constraint("memories_retired_as_ck", "memories")
    for column in ("retired_as", "findings", "uses", "released"):
        op.drop_column("memories", column)


def _memories() -> None:
    op.add_column("memories", sa.Column("retired_as", sa.Text(), nullable=True))
    op.add_column("memories", sa.Column("findings", postgresql.JSONB(), nullable=True))
    op.add_column("memories", sa.Column("uses", sa.Integer(), server_default="0", nullable=False))
    op.add_column("memories", sa.Column("released", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.execute(
        "ALTER TABLE memories ADD CONSTRAINT memories_retired_as_ck"
        " CHECK (retired_as IN ('gone', 'deleted', 'superseded', 'quarantined')) NOT VALID"
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), server_default="", nullable=False),
        sa.Column("task_type", sa.Text(), server_default="", nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("queries", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("output_path", sa.Text(), nullable=True),
        sa.Column("lines", sa.Integer(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("round_scores", postgresql.ARRAY(sa.REAL()), server_default="{}", nullable=False),
        sa.Column("final_score", sa.REAL(), nullable=True),
        sa.Column("verdict", sa.Text(), server_default="", nullable=False),
        sa.Column("issues", postgresql.ARRAY(sa.Text()), server_default="{}", nullable=False),
        sa.Column("stages", postgresql.JSONB(), server_default="{}", nullable=False),
        sa.Column("metadata", postgresql.JSONB(), server_default="{}", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.CheckConstraint("final_score BETWEEN 0 AND 10", name="runs_final_score_ck"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="runs_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "run_id", name="runs_pk"),
    )
    op.create_index("runs_created_ix", "runs", ["workspace_id", "created_at", "run_id"])


def _observations() -> None:
    op.create_table(
        "observations",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("task_type", sa.Text(), nullable=False),
        sa.Column("narrative", sa.Text(), nullable=False),
        sa.Column("facts", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("output_path", sa.Text(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("compressor", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("prompt", sa.Text(), nullable=True),
        sa.Column("superseded_by", sa.UUID(), nullable=True),
        sa.CheckConstraint("compressor IN ('llm', 'extractive', 'given')", name="observations_compressor_ck"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="observations_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "memory_id", name="observations_pk"),
    )
    op.create_index("observations_task_ix", "observations", ["workspace_id", sa.text("md5(task)")])


def _compressions() -> None:
    op.create_table(
        "compressions",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("observation_id", sa.UUID(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("request", postgresql.JSONB(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("outcome IN ('stored', 'joined', 'refused')", name="compressions_outcome_ck"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="compressions_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "observation_id", name="compressions_pk"),
    )
    op.create_index(
        "compressions_run_ix",
        "compressions",
        ["workspace_id", "run_id", sa.text("md5(request ->> 'task')")],
        unique=True,
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_index(
        "compressions_waiting_ix",
        "compressions",
        ["created_at"],
        postgresql_where=sa.text("outcome IS NULL"),
    )


def _feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("feedback_id", sa.UUID(), nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("memory_id", sa.UUID(), nullable=False),
        sa.Column("rating", sa.SmallInteger(), nullable=True),
        sa.Column("undoes", sa.UUID(), nullable=True),
        sa.Column("comment", sa.Text(), server_default="", nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.CheckConstraint("(rating IN (-1, 1)) <> (undoes IS NOT NULL)", name="feedback_rating_ck"),
        sa.ForeignKeyConstraint(
            ["workspace_id", "memory_id"],
            ["memories.workspace_id", "memories.memory_id"],
            name="feedback_memories_fk",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workspace_id", "feedback_id", name="feedback_pk"),
        sa.UniqueConstraint("workspace_id", "undoes", name="feedback_undoes_uq"),
        sa.UniqueConstraint("workspace_id", "idempotency_key", name="feedback_idempotency_key_uq"),
    )
    op.create_index("feedback_memory_ix", "feedback", ["workspace_id", "memory_id", "position"])


def _refusals() -> None:
    op.create_table(
        "refusals",
        sa.Column("workspace_id", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"], name="refusals_workspaces_fk"),
        sa.PrimaryKeyConstraint("workspace_id", "reason", name="refusals_pk"),
    )
