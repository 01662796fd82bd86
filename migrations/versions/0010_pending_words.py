"""The word index takes many memories at once: their entries come in over its pending list, which the writer merges.

Locks: `lexical_terms_ix` against other changes of its definition (SHARE UPDATE EXCLUSIVE); readers and writers go on.
Going back merges what is pending, so that nothing is left to read through.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER INDEX lexical_terms_ix SET (fastupdate = on)")


def downgrade() -> None:
    op.execute("ALTER INDEX lexical_terms_ix SET (fastupdate = off)")
    op.execute("SELECT gin_clean_pending_list('lexical_terms_ix'::regclass)")
