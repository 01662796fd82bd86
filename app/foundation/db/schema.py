"""The tables of the schema, as migrations/schema.sql states them: their columns, keys and foreign keys."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

SCRIPTS = Path(__file__).parents[3] / "migrations"
TABLE = re.compile(r"^CREATE TABLE (\w+) \($(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^    (?!CONSTRAINT)\"?(\w+)\"? ", re.MULTILINE)
KEY = re.compile(r"PRIMARY KEY \(([^)]*)\)")
_REFERENCE = re.compile(r"FOREIGN KEY \(([^)]*)\)\s+REFERENCES (\w+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key: these columns are the primary key of another table."""

    columns: tuple[str, ...]
    table: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    references: tuple[Reference, ...]

    @property
    def of_workspace(self) -> bool:
        """True if each row belongs to a workspace."""
        return "workspace_id" in self.columns

    @property
    def of_user(self) -> bool:
        """True if each row belongs to a user or to nobody."""
        return "user_id" in self.columns


def _tables(statements: str) -> Iterator[Table]:
    for name, body in TABLE.findall(statements):
        references = tuple(Reference(_names(columns), table) for columns, table in _REFERENCE.findall(body))
        (key,) = KEY.findall(body)
        yield Table(name, tuple(_COLUMN.findall(body)), _names(key), references)


def _names(columns: str) -> tuple[str, ...]:
    return tuple(name.strip(' "') for name in columns.split(","))


SCHEMA: Mapping[str, Table] = MappingProxyType(
    {table.name: table for table in _tables((SCRIPTS / "schema.sql").read_text(encoding="utf-8"))}
)
"""The tables by their names, each after those that it refers to."""
