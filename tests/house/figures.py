"""Counts: code lines, functions, files, docstrings, names, imports inside functions."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from tests.house import glossary, imports
from tests.house.source import FUNCTIONS, House, Module

OPENS_ELLIPTICALLY = re.compile(r"\s*(?:What|Whether|Where|Whose|Which|Of|Those|How|Why|As)\b")
"""A relative word instead of a statement."""


class Size(NamedTuple):
    """Code lines and modules; `__init__.py` files are no modules."""

    code_lines: int
    modules: int


class Lengths(NamedTuple):
    """Lines of the functions, decorators left out, docstrings counted."""

    middle: int
    nine_of_ten: int
    longest: int


def figures(house: House) -> Mapping[str, int]:
    """Returns each figure of the whole house by its name; of all of them, less is better."""
    size, lengths = _size(list(house.modules.values())), _lengths(house)
    return {
        "code lines": size.code_lines,
        "modules": size.modules,
        "public names": sum(1 for module in house.modules.values() for _ in _public_names(module)),
        "lines of a function, median": lengths.middle,
        "lines of a function, 9 of 10": lengths.nine_of_ten,
        "lines of a function, longest": lengths.longest,
        "lines of a file, longest": max(len(module.lines) for module in house.modules.values()),
        "imports inside functions, outside cli": sum(item.room != "cli" for item in imports.inner_imports(house)),
        "modules outside the doors with one importer": len(imports.lonely(house)),
        "functions named by a bare participle": len(glossary.bare_participles(house)),
        "class names of several classes": len(glossary.ambiguous_classes(house)),
        "docstrings without a verb first": len(_elliptic(house)),
    }


def rooms(house: House) -> Mapping[str, Size]:
    """Returns the size of each room, by its name."""
    found: dict[str, list[Module]] = {room: [] for room in house.rooms}
    for module in house.modules.values():
        if module.room:
            found[module.room].append(module)
    return {room: _size(modules) for room, modules in found.items()}


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


def _size(modules: Sequence[Module]) -> Size:
    return Size(sum(map(_code_lines, modules)), sum(not module.is_package for module in modules))


def _code_lines(module: Module) -> int:
    """Returns the lines that hold code: not blank, not a comment alone, not part of a docstring."""
    said: set[int] = set()
    for node in strings_alone(module):
        said |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in said
        for number, line in enumerate(module.lines, 1)
    )


def _lengths(house: House) -> Lengths:
    """Returns the median, the 90th percentile and the maximum of the functions' lengths."""
    nodes = [node for module in house.modules.values() for node in functions(module)]
    found = sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes) or [0]
    return Lengths(round(median(found)), found[int(len(found) * 0.9)], found[-1])


def _public_names(module: Module) -> Iterator[str]:
    """Yields the functions, classes and constants at the top of a module that another module may import."""
    for node in module.tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))


def _elliptic(house: House) -> list[str]:
    """Returns the docstrings that open with a relative word."""
    texts = [str(node.value) for module in house.modules.values() for node in strings_alone(module)]
    return [text for text in texts if OPENS_ELLIPTICALLY.match(text)]
