"""The ratchets of the house: figures that may fall and not rise, with the aim of each.

`ratchets.toml` has the largest value that each figure may have. A change that needs more raises the number by hand, and
says in its commit what it replaces. `python -m tests.house --write` lowers the numbers to those of today.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from tests.house import figures
from tests.house.source import House

FILE = Path(__file__).with_name("ratchets.toml")
HEADING = "# The largest value that each figure may have (ratchets.py). They may fall and not rise."
AIMS: Mapping[str, int] = MappingProxyType(
    {
        "code lines": 33_000,
        "modules": 210,
        "public names": 3_000,
        "lines of a function, median": 6,
        "lines of a function, 9 of 10": 16,
        "lines of a function, longest": 40,
        "lines of a file, longest": 400,
        "imports inside functions, outside cli": 10,
        "functions named by a bare participle": 0,
        "class names of several classes": 0,
    }
)
"""The value that each figure of the whole house is to reach."""
Ratchets = dict[str, dict[str, int]]


def measured(house: House) -> Ratchets:
    """Returns today's value of every ratchet, by its table and name."""
    sizes = figures.rooms(house)
    return {
        "house": dict(figures.figures(house)),
        "code lines of rooms": {room: size.code_lines for room, size in sizes.items()},
        "modules of rooms": {room: size.modules for room, size in sizes.items()},
    }


def stored() -> Ratchets:
    """Returns the stored ratchets."""
    return tomllib.loads(FILE.read_text())


def exceeded(house: House) -> Iterator[str]:
    """Yields each figure that is larger than its ratchet, or has none."""
    limits = stored()
    for table, values in measured(house).items():
        for name, value in values.items():
            most = limits.get(table, {}).get(name)
            if most is None:
                yield f"{table}, {name}: {value:,}, which has no ratchet yet"
            elif value > most:
                yield f"{table}, {name}: {value:,} instead of {most:,}"


def write(house: House) -> None:
    """Stores today's values; one that is larger than its ratchet leaves the ratchet as it is."""
    before = stored() if FILE.exists() else {}
    lines = [HEADING]
    for table, values in measured(house).items():
        lines += ["", f'["{table}"]']
        lines += [f'"{name}" = {min(value, before.get(table, {}).get(name, value))}' for name, value in values.items()]
    FILE.write_text("\n".join([*lines, ""]))
