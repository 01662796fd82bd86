"""The job queue: procrastinate's own tables, types and functions.

Locks: none that matters, everything is new.
"""

import sqlalchemy as sa
from alembic import context, op
from procrastinate.schema import SchemaManager

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DROP = """
DO $$
DECLARE item record;
BEGIN
    DROP TABLE IF EXISTS procrastinate_periodic_defers, procrastinate_events, procrastinate_jobs,
        procrastinate_workers CASCADE;
    FOR item IN SELECT oid::regprocedure AS signature FROM pg_proc
        WHERE proname LIKE 'procrastinate\\_%' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE 'DROP FUNCTION ' || item.signature || ' CASCADE';
    END LOOP;
    FOR item IN SELECT typname FROM pg_type
        WHERE typname LIKE 'procrastinate\\_%' AND typtype IN ('e', 'c')
        AND typnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE 'DROP TYPE ' || quote_ident(item.typname) || ' CASCADE';
    END LOOP;
END $$
"""


def upgrade() -> None:
    if context.is_offline_mode():
        op.execute(sa.text(SchemaManager.get_schema().replace(":", "\\:")))
    else:
        op.get_bind().exec_driver_sql(SchemaManager.get_schema().replace("%", "%%"))


def downgrade() -> None:
    op.execute(DROP)
