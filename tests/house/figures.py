"""Counts: tokens, code lines, routes, commands, settings, tables, functions that take a database."""

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import msgspec

from tests.house import statements
from tests.house.source import DOORS, FUNCTIONS, House, Module, functions, strings_alone

NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)
OPENS_ELLIPTICALLY = re.compile(r"\s*(?:What|Whether|Where|Whose|Which|Of|Those|How|Why|As)\b")
"""A relative word instead of a statement."""
DATABASE = frozenset({"database", "door", "intake"})
"""Parameters by which a function gets the database without being a method of a service."""
METHODS = frozenset({"get", "put", "post", "delete", "patch"})


def figures(house: House) -> Mapping[str, int]:
    """Returns each figure of the whole house by its name; of all of them, less is better."""
    return {
        "tokens": sum(map(tokens, house.modules.values())),
        "code lines": sum(map(_code_lines, house.modules.values())),
        "routes": _routes(house.repository),
        "commands": _commands(house),
        "settings": _settings(house),
        "tables": len(statements.tables(house)),
        "functions that take a database, outside the doors": len(_given_a_database(house)),
        "syntax nodes of a function, median": _nodes_of_a_function(house),
    }


def rooms(house: House) -> Mapping[str, int]:
    """Returns the tokens of each room, by its name."""
    found = dict.fromkeys(house.rooms, 0)
    for module in house.modules.values():
        if module.room:
            found[module.room] += tokens(module)
    return found


def tokens(module: Module) -> int:
    """Returns the number of Python tokens, without comments, docstrings, line ends and indentation."""
    docstrings = {(node.lineno, node.col_offset) for node in strings_alone(module)}
    # `ast` counts columns in bytes and `tokenize` in characters: before a statement of its own there are only blanks.
    return sum(
        token.type not in NO_CODE and token.start not in docstrings
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
    )


def elliptic_docstrings(house: House) -> list[str]:
    """Returns the places of the docstrings that open with a relative word."""
    return [
        f"{module.path}:{node.lineno}"
        for module in house.modules.values()
        for node in strings_alone(module)
        if OPENS_ELLIPTICALLY.match(str(node.value))
    ]


def _code_lines(module: Module) -> int:
    """Returns the lines that hold code: not blank, not a comment alone, not part of a docstring."""
    said: set[int] = set()
    for node in strings_alone(module):
        said |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in said
        for number, line in enumerate(module.lines, 1)
    )


def _routes(repository: Path) -> int:
    """Returns the number of operations of the OpenAPI document."""
    command = [sys.executable, "-P", "-m", "app.interfaces.http.serving.application"]
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    said = subprocess.run(command, cwd=repository, env=environment, capture_output=True, check=True)
    paths = msgspec.json.decode(said.stdout)["paths"]
    return sum(len(METHODS & set(operations)) for operations in paths.values())


def _commands(house: House) -> int:
    """Returns the number of entries of the table of commands."""
    for node in house.modules["app.interfaces.cli.commands"].nodes:
        match node:
            case ast.AnnAssign(target=ast.Name(id="COMMANDS"), value=ast.Dict(keys=names)):
                return len(names)
    return 0


def _settings(house: House) -> int:
    """Returns the number of fields of the class `Settings`."""
    for node in house.modules["app.settings"].nodes:
        if isinstance(node, ast.ClassDef) and node.name == "Settings":
            return sum(isinstance(item, ast.AnnAssign) for item in node.body)
    return 0


def _given_a_database(house: House) -> list[str]:
    """Returns the public functions, not methods, that get the database by a parameter."""
    return [
        f"{module.path}:{node.lineno}"
        for module in house.modules.values()
        if module.room not in {*DOORS, "db", "postgres"}
        for node in module.tree.body
        if isinstance(node, FUNCTIONS)
        if any(parameter.arg in DATABASE for parameter in [*node.args.args, *node.args.kwonlyargs])
    ]


def _nodes_of_a_function(house: House) -> int:
    counts = [sum(1 for _ in ast.walk(node)) for module in house.modules.values() for node in functions(module)]
    return round(median(counts))
