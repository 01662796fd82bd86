"""The word index takes many memories at once, and few memories of a kind are found without reading the others.

Entries of the word index come in over its pending list, which the writer merges.

Locks: `lexical_terms_ix` for the instant in which its option is set (ACCESS EXCLUSIVE: it waits for the searches
that are under way, and new ones wait for it); nothing else, readers and writers go on while the index of kinds is
built. Each step can be taken again. Going back merges what is pending, so that nothing is left to read through.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER INDEX lexical_terms_ix SET (fastupdate = on)")
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS memories_kind_ix")
        op.create_index(
            "memories_kind_ix",
            "memories",
            ["workspace_id", "kind", "memory_id"],
            postgresql_where=sa.text("valid_until IS NULL"),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS memories_kind_ix")
    op.execute("ALTER INDEX lexical_terms_ix SET (fastupdate = off)")
    op.execute("SELECT gin_clean_pending_list('lexical_terms_ix'::regclass)")
