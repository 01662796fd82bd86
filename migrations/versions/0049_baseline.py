"""The schema at the beginning of 0.1.0, which baseline.sql states whole and frozen.

Migrations are numbered on from those of the development before it. A store at the last of these, 0048, becomes one at
0049 by from_0048.sql. A later change is a migration of its own, and edits schema.sql (or security.sql) too, which state
the schema at the head. A test compares what both ways make.

Locks: none that matters, everything is new.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import context, op
from procrastinate.schema import SchemaManager

revision = "0049"
down_revision = None
branch_labels = None
depends_on = None

FOLDER = Path(__file__).parents[1]


def upgrade() -> None:
    for statements in (SchemaManager.get_schema(), (FOLDER / "baseline.sql").read_text(encoding="utf-8")):
        if context.is_offline_mode():
            op.execute(sa.text(statements.replace(":", "\\:")))
        else:
            op.get_bind().exec_driver_sql(statements.replace("%", "%%"))
