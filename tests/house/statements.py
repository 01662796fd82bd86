"""Finds SQL in string literals: which room writes which table, and which modules state SQL at all."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.house.source import House, Module, functions

UNKNOWN = "?"
"""A table whose name the parser cannot read from the code."""
_NAME = r"\"?([A-Za-z_]\w*|\{\d*\})\"?"
WRITE = re.compile(
    rf"""\b(?:INSERT\s+INTO|MERGE\s+INTO|DELETE\s+FROM)\s+(?:ONLY\s+)?{_NAME}
    |\bUPDATE\s+(?:ONLY\s+)?{_NAME}(?:\s+(?:AS\s+)?[a-z]\w*)?\s+SET\b
    |\bCOPY\s+{_NAME}\s*(?:\([^)]*\))?\s*FROM\b
    |\bTRUNCATE\s+(?:TABLE\s+)?{_NAME}""",
    re.VERBOSE,
)
STATEMENT = re.compile(
    r"\b(?:SELECT\s|INSERT\s+INTO\s|DELETE\s+FROM\s|UPDATE\s+\w+\s.*?\bSET\s|COPY\s+\S+\s)", re.DOTALL
)
EVERY_TABLE = frozenset({"app/foundation/db/whole.py", "app/foundation/db/phrases.py"})
"""They load and destroy whole workspaces, and take a phrase out of them, whatever tables there are."""
BUILDERS = frozenset({"insert", "update", "delete", "pg_insert"})
"""Functions of SQLAlchemy that write the table given to them."""


class Literal(NamedTuple):
    """A string of the code; each `{n}` in it stands for the expression n."""

    text: str
    values: tuple[ast.expr, ...]
    line: int


class Write(NamedTuple):
    """A statement that writes a table."""

    table: str
    room: str
    place: str
    """Path and line."""


@cache
def tables(house: House) -> set[str]:
    """Returns the names of all tables that the schema defines."""
    statements = (house.repository / "migrations" / "schema.sql").read_text(encoding="utf-8")
    return set(re.findall(r"^CREATE TABLE (\w+)", statements, re.MULTILINE))


@cache
def writes(house: House) -> list[Write]:
    """Returns every statement that writes a table of the schema, or one whose name cannot be read."""
    known = frozenset(tables(house))
    modules = [module for module in house.modules.values() if module.path not in EVERY_TABLE]
    return [found for module in modules for found in _writes(house, module, known)]


@cache
def states_sql(module: Module) -> bool:
    """Returns True for a module with a statement in a string."""
    return any(STATEMENT.search(literal.text) for literal in literals(module))


@cache
def literals(module: Module) -> tuple[Literal, ...]:
    """Returns the strings of a module, joined where they are concatenated, without docstrings."""
    return tuple(_literals(module.tree))


def _writes(house: House, module: Module, known: frozenset[str]) -> Iterator[Write]:
    for literal in literals(module):
        for match in WRITE.finditer(literal.text):
            name = next(filter(None, match.groups()))
            for table in _read(house, module, literal, name, known):
                yield Write(table, module.room, f"{module.path}:{literal.line}")
    for node in module.nodes:
        if isinstance(node, ast.Call) and _called(node) in BUILDERS and node.args:
            table = ast.unparse(node.args[0]).rpartition(".")[2]
            if table in known and "sqlalchemy" in module.text:
                yield Write(table, module.room, f"{module.path}:{node.lineno}")


def _read(house: House, module: Module, literal: Literal, name: str, known: frozenset[str]) -> set[str]:
    if not name.startswith("{"):
        return {name} & known
    number = name.strip("{}")
    values = _values(house, module, literal.values[int(number)]) if number else set()
    return {_table(value, known) for value in values} or {UNKNOWN}


def _table(value: str, known: frozenset[str]) -> str:
    """Returns the table of a name, or that whose partition it names (`embeddings_3` is one of `embeddings`)."""
    fitting = [table for table in known if value == table or value.startswith(f"{table}_")]
    return max(fitting, key=len, default=UNKNOWN)


def _literals(node: ast.AST) -> Iterator[Literal]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    pieces = _pieces(node)
    if any(isinstance(piece, str) for piece in pieces):
        values = tuple(piece for piece in pieces if isinstance(piece, ast.expr))
        yield Literal(_joined(pieces), values, getattr(node, "lineno", 0))
        for value in values:
            yield from _literals(value)
        return
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


def _pieces(node: ast.AST) -> list[str | ast.expr]:
    """Returns the parts of a string expression; nothing for any other."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [piece for value in node.values for piece in _pieces(value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [piece for side in (node.left, node.right) for piece in _pieces(side) or [side]]
    return []


def _joined(pieces: list[str | ast.expr]) -> str:
    parts, number = [], 0
    for piece in pieces:
        parts.append(piece if isinstance(piece, str) else f"{{{number}}}")
        number += isinstance(piece, ast.expr)
    return "".join(parts)


def _values(house: House, module: Module, node: ast.expr) -> set[str]:
    """Returns the strings that an expression may have, each as far as it is constant from its start."""
    pieces = _pieces(node)
    if pieces:
        return {pieces[0]} if isinstance(pieces[0], str) else set()
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return {value for item in node.elts for value in _values(house, module, item)}
    if isinstance(node, ast.Name):
        return {value for given in _given(module, node.id) for value in _values(house, module, given)}
    if isinstance(node, ast.Attribute | ast.Call):
        return _returned(house, _called(node) if isinstance(node, ast.Call) else node.attr)
    return set()


def _given(module: Module, name: str) -> Iterator[ast.expr]:
    """Yields what a module assigns to a name, and what its loops take it from."""
    for node in module.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=given)], value=ast.expr() as value) if given == name:
                yield value
            case ast.AnnAssign(target=ast.Name(id=given), value=ast.expr() as value) if given == name:
                yield value
            case ast.For(target=ast.Name(id=given), iter=value) if given == name:
                yield value
            case ast.comprehension(target=ast.Name(id=given), iter=value) if given == name:
                yield value


def _returned(house: House, name: str) -> set[str]:
    """Returns the constant starts of what the functions and properties of this name return."""
    returned = [
        _pieces(inner.value)[:1]
        for module in house.modules.values()
        for function in functions(module)
        if function.name == name
        for inner in ast.walk(function)
        if isinstance(inner, ast.Return) and inner.value
    ]
    return {piece for pieces in returned for piece in pieces if isinstance(piece, str)}


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]
