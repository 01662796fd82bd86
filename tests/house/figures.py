"""Counts: code lines, functions, files, docstrings, and how often a tenant is looked up."""

import ast
import random
import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from tests.house.source import DOORS, FUNCTIONS, House, Module

LONG_FILE = 300
"""Lines."""
OPENS_ELLIPTICALLY = re.compile(r"\s*(?:What|Whether|Where|Whose|Which|Of|Those|How|Why|As)\b")
"""A relative word instead of a statement. In the base commit 24 % of all docstrings open so."""


class Docstring(NamedTuple):
    """A string that stands for itself: of a module, a class, a function, or under a field or constant."""

    place: str
    """Path and line."""
    text: str


class Lengths(NamedTuple):
    """Lines of the functions, decorators left out, docstrings counted."""

    middle: int
    nine_of_ten: int
    longest: int


class Tenancy(NamedTuple):
    """How often code looks a tenant up by its name."""

    checks: int
    """`checked_name(`, its definition included."""
    missing: int
    """`if target is None`."""
    verbs: int
    """Public coroutines outside the doors that take `workspace: str`."""


def code_lines(house: House) -> int:
    """Returns the lines that hold code: not blank, not a comment alone, not part of a docstring."""
    return sum(_code_lines(module) for module in house.modules.values())


def lengths(house: House) -> Lengths:
    """Returns the median, the 90th percentile and the maximum of the functions' lengths."""
    found = sorted(_length(node) for module in house.modules.values() for node in functions(module))
    return Lengths(round(median(found)), found[int(len(found) * 0.9)], found[-1])


def long_files(house: House) -> list[Module]:
    """Returns the files over LONG_FILE lines, the longest first."""
    ordered = sorted(house.modules.values(), key=lambda module: -len(module.lines))
    return [module for module in ordered if len(module.lines) > LONG_FILE]


def longest_file(house: House) -> int:
    """Returns the lines of the longest file."""
    return max(len(module.lines) for module in house.modules.values())


def docstrings(house: House) -> list[Docstring]:
    """Returns every docstring and every string under a field or constant."""
    return [found for module in house.modules.values() for found in _docstrings(module)]


def elliptic(house: House) -> list[Docstring]:
    """Returns the docstrings that open with a relative word."""
    return [item for item in docstrings(house) if OPENS_ELLIPTICALLY.match(item.text)]


def drawn(house: House, number: int, seed: int | None) -> list[Docstring]:
    """Draws docstrings at random; a seed draws the same ones again."""
    every = docstrings(house)
    return random.Random(seed).sample(every, min(number, len(every)))  # noqa: S311 - no secret


def tenancy(house: House) -> Tenancy:
    """Counts the look-ups of a tenant by its name."""
    texts = [module.text for module in house.modules.values()]
    verbs = [node for module in house.files if module.room not in {*DOORS, "wiring"} for node in functions(module)]
    return Tenancy(
        checks=sum(text.count("checked_name(") for text in texts),
        missing=sum(text.count("if target is None") for text in texts),
        verbs=sum(_takes_a_name(node) for node in verbs),
    )


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields every function and method, inner ones included."""
    for node in module.nodes:
        if isinstance(node, FUNCTIONS):
            yield node


def strings_alone(module: Module) -> Iterator[ast.Constant]:
    """Yields the strings that are statements of their own."""
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _code_lines(module: Module) -> int:
    said: set[int] = set()
    for node in strings_alone(module):
        said |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in said
        for number, line in enumerate(module.lines, 1)
    )


def _docstrings(module: Module) -> Sequence[Docstring]:
    return [Docstring(f"{module.path}:{node.lineno}", str(node.value)) for node in strings_alone(module)]


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _takes_a_name(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if node.name.startswith("_") or not isinstance(node, ast.AsyncFunctionDef):
        return False
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return any(item.arg == "workspace" and _annotation(item) == "str" for item in given)


def _annotation(item: ast.arg) -> str:
    return "" if item.annotation is None else ast.unparse(item.annotation)
