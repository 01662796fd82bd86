"""Makes the columns, keys and indexes of tables."""

from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

Kind: TypeAlias = TypeEngine[Any] | type[TypeEngine[Any]]
Id, FALSE = UUID(as_uuid=True), sa.text("false")
OWN_USER = sa.text("COALESCE(current_setting('priors.user'::text, true), ''::text)")
TERM_DIMENSIONS = 536_870_912
"""2**29: a lexeme's dimension in `lexical.weights`; two of 1,000 terms share one with a probability of 0.1 %."""


def required(**kinds: Kind) -> list[SchemaItem]:
    """Returns columns that each row has a value of."""
    return [sa.Column(name, kind, nullable=False) for name, kind in kinds.items()]


def optional(**kinds: Kind) -> list[SchemaItem]:
    """Returns columns that may be null."""
    return [sa.Column(name, kind) for name, kind in kinds.items()]


def default(value: str | sa.TextClause, **kinds: Kind) -> list[SchemaItem]:
    """Returns columns that have this value where none is given."""
    return [sa.Column(name, kind, nullable=False, server_default=value) for name, kind in kinds.items()]


def of_user() -> list[SchemaItem]:
    """Returns the column of the user whom a row belongs to: of whom the session writes for, "" for nobody."""
    return default(OWN_USER, user_id=sa.Text)


def moments(*names: str, nullable: bool = False, now: bool = False) -> list[SchemaItem]:
    """Returns columns of moments; with `now` a moment is the present where none is given."""
    default = sa.func.now() if now else None
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=nullable, server_default=default) for name in names]


def keyed(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns of a primary key, the workspace's first, and the key."""
    return [*required(workspace_id=sa.BigInteger, **kinds), sa.PrimaryKeyConstraint("workspace_id", *kinds)]


def of_workspace(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns, the key, and a foreign key to the workspace: for rows that depend on nothing else."""
    return [*keyed(**kinds), sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"])]


def of_memory(**kinds: Kind) -> list[SchemaItem]:
    """Returns the columns and the key, with the memory as the second column, and a foreign key that deletes with it."""
    return [*keyed(memory_id=Id, **kinds), deleted_with("memories", memory_id="memory_id")]


def deleted_with(table: str, *, key_name: str | None = None, **columns: str) -> sa.ForeignKeyConstraint:
    """Returns a foreign key to `table` that cascades deletes; `columns` maps a row's own columns to those there."""
    theirs = [f"{table}.{name}" for name in ("workspace_id", *columns.values())]
    return sa.ForeignKeyConstraint(["workspace_id", *columns], theirs, name=key_name, ondelete="CASCADE")


def index(name: str, *columns: str | sa.TextClause, where: str | None = None, **options: Any) -> sa.Index:  # noqa: ANN401 - SQLAlchemy's
    """Returns an index that the workspace leads; `where` is the condition of its rows."""
    if where is not None:
        options["postgresql_where"] = sa.text(where)
    return sa.Index(name, "workspace_id", *columns, **options)
