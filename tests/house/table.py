"""The table of the house: each figure with what it was, what it is to be, and whether it is met."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tests.house import figures, imports, sessions, statements
from tests.house.crossing import HISTORY, INGEST, REPORT, Crossing
from tests.house.source import House

MOST_MODULES, MOST_CODE_LINES = 130, 16_500
FUNCTION_LENGTHS = figures.Lengths(middle=7, nine_of_ten=18, longest=53)
MOST_LONG_FILES, LONGEST_FILE = 6, 400
MOST_CROSSED, MOST_ENTRIES = 12, 1
RARE_PERCENT = 2.0
"""Docstrings that open with a relative word; forty drawn at random then hold fewer than one."""
MOST_CHECKS = 2
"""The definition of a check and its one call."""
WATCHED = ("memories", "links", "observations", "compressions")
"""The tables that several rooms wrote."""


class Row(NamedTuple):
    """One figure."""

    name: str
    before: str
    """In the base commit, as its readers counted."""
    now: str
    target: str
    met: bool | None
    """None for a figure without a target."""


def rows(house: House, crossed: Mapping[str, Crossing] | None) -> list[Row]:
    """Returns the whole table; without `crossed` the figures of the requests are left out."""
    made: list[Callable[[House], Iterator[Row]]] = [_modules, _sizes, _imports]
    found = [row for make in made for row in make(house)]
    found += _crossed(crossed) if crossed is not None else []
    later: list[Callable[[House], Iterator[Row]]] = [_tables, _connections, _tenancy, _docstrings]
    return found + [row for make in later for row in make(house)]


def _modules(house: House) -> Iterator[Row]:
    number, lonely = len(house.files), imports.lonely(house)
    small = imports.small_and_lonely(house)
    yield Row("modules, `__init__.py` aside", "198", str(number), f"≤ {MOST_MODULES}", number <= MOST_MODULES)
    yield Row("modules outside the doors with one importer", "53", str(len(lonely)), "", None)
    yield Row("… of these under 100 lines and not pure", "", str(len(small)), "0", not small)


def _sizes(house: House) -> Iterator[Row]:
    lines, lengths = figures.code_lines(house), figures.lengths(house)
    long, longest = len(figures.long_files(house)), figures.longest_file(house)
    short = all(now <= most for now, most in zip(lengths, FUNCTION_LENGTHS, strict=True))
    yield Row("code lines", "18,659", f"{lines:,}", f"≤ {MOST_CODE_LINES:,}", lines <= MOST_CODE_LINES)
    yield Row("functions: median, p90, longest (lines)", "7, 18, 53", _listed(lengths), "as before", short)
    yield Row("files over 300 lines", "15", str(long), f"≤ {MOST_LONG_FILES}", long <= MOST_LONG_FILES)
    yield Row("longest file (lines)", "523", str(longest), f"≤ {LONGEST_FILE}", longest <= LONGEST_FILE)


def _imports(house: House) -> Iterator[Row]:
    cycles = len(imports.cycles(imports.package_graph(house)))
    inner = imports.inner_imports(house)
    bare = sum(not item.reason for item in inner)
    yield Row("package cycles", "2", str(cycles), "0", not cycles)
    yield Row("imports inside functions", "86", str(len(inner)), "", None)
    yield Row("… of these without a reason beside them", "", str(bare), "0", not bare)


def _crossed(crossed: Mapping[str, Crossing]) -> Iterator[Row]:
    for name, before, most in ((HISTORY, "19 of 39", MOST_CROSSED), (REPORT, "", None), (INGEST, "", None)):
        crossing = crossed[name]
        passing, every = len(crossing.passing), len(crossing.modules)
        met = None if most is None else passing <= most
        target = "" if most is None else f"≤ {most}"
        yield Row(f"modules that `{name}` passes through", before, f"{passing} of {every}", target, met)
    history = crossed[HISTORY]
    entries, own = history.entries.get(history.search, 0), history.own_tasks.get(history.search, 0)
    now = f"{entries} ({own} tasks of its own)" if own else str(entries)
    yield Row(f"times {HISTORY} enters `{history.search}`", "8", now, "1", entries - own <= MOST_ENTRIES)


def _tables(house: House) -> Iterator[Row]:
    writers = statements.writers(house)
    before = {"memories": "5", "links": "3", "observations": "3", "compressions": "3"}
    for table in WATCHED:
        rooms = writers.get(table, set())
        yield Row(f"rooms that write `{table}`", before[table], _rooms(rooms), "1", len(rooms) == 1)
    others = [name for name in shared(house) if name not in WATCHED]
    yield Row("other tables that several rooms write", "", str(len(others)), "0", not others)


def shared(house: House) -> dict[str, str]:
    """Returns the tables that several rooms write, with those rooms."""
    return {name: _rooms(rooms) for name, rooms in sorted(statements.writers(house).items()) if len(rooms) > 1}


def _connections(house: House) -> Iterator[Row]:
    kinds, styles = sorted(sessions.kinds_seen(house)), statements.parameter_styles(house)
    both = sessions.of_two_libraries(house)
    yield Row("kinds of connection that rooms see", "3", f"{len(kinds)} ({_listed(kinds)})", "1", len(kinds) <= 1)
    yield Row("parameter styles in SQL", "2", str(len(styles)), "1", len(styles) <= 1)
    yield Row("files with two kinds of `AsyncConnection`", "1", str(len(both)), "0", not both)


def _tenancy(house: House) -> Iterator[Row]:
    found = figures.tenancy(house)
    yield Row("`checked_name(`", "34", str(found.checks), f"≤ {MOST_CHECKS}", found.checks <= MOST_CHECKS)
    yield Row("`if target is None`", "28", str(found.missing), "≤ 1", found.missing <= 1)
    yield Row("verbs that take `workspace: str`", "50", str(found.verbs), "≤ 1", found.verbs <= 1)


def _docstrings(house: House) -> Iterator[Row]:
    share = 100 * len(figures.elliptic(house)) / max(1, len(figures.docstrings(house)))
    now, target = f"{share:.1f} %", f"≤ {RARE_PERCENT:.0f} %"
    yield Row("docstrings that open with What, Whether, Where, Of …", "24 %", now, target, share <= RARE_PERCENT)


def _listed(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list | tuple) else str(values)


def _rooms(rooms: set[str]) -> str:
    return f"{len(rooms)} ({', '.join(sorted(rooms))})" if rooms else "0"
