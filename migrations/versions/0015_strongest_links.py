"""A memory's links are found strongest first, in both directions, however many it has.

Locks: nothing; the indexes are built CONCURRENTLY, and the one they replace is dropped when they serve.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

OUT, IN, BEFORE = "links_out_ix", "links_in_ix", "links_to_ix"
SPREADING = "relation <> 'similar'"


def _index(name: str, columns: list[str], *, where: str | None = None, include: list[str] | None = None) -> None:
    # What was cut off leaves an index that nothing uses.
    op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    op.create_index(
        name,
        "links",
        [sa.text(column) for column in columns],
        postgresql_where=None if where is None else sa.text(where),
        postgresql_include=include,
        postgresql_concurrently=True,
    )


def upgrade() -> None:
    with op.get_context().autocommit_block():
        _index(OUT, ["workspace_id", "from_id", "relation", "weight DESC", "to_id"], where=SPREADING)
        _index(IN, ["workspace_id", "to_id", "relation", "weight DESC", "from_id"])
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {BEFORE}")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        _index(BEFORE, ["workspace_id", "to_id", "relation", "from_id"], include=["weight"])
        for name in (IN, OUT):
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
