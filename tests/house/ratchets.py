"""The ratchet of the house: the Python tokens of each room, which may fall and not rise.

`tokens.toml` has the most tokens that a room may have, one line a room. A change that needs more raises the number by
hand, and says in its commit what it replaces. `python -m tests.house --write` lowers the numbers to those of today.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house import figures
from tests.house.source import House

FILE = Path(__file__).with_name("tokens.toml")
HEADING = "# The most Python tokens that a room may have (ratchets.py). They may fall and not rise."


def stored() -> Mapping[str, int]:
    """Returns the most tokens of each room."""
    return tomllib.loads(FILE.read_text())


def exceeded(house: House) -> Iterator[str]:
    """Yields each room with more tokens than it may have, and each that has no number yet."""
    limits = stored()
    for room, count in figures.rooms(house).items():
        if room not in limits:
            yield f"{room}: {count:,} tokens, which has no number yet"
        elif count > limits[room]:
            yield f"{room}: {count:,} tokens instead of {limits[room]:,}"


def write(house: House) -> None:
    """Stores today's numbers; a room that has grown leaves its number as it is."""
    before = stored() if FILE.exists() else {}
    lines = [f"{room} = {min(count, before.get(room, count)):_}" for room, count in figures.rooms(house).items()]
    FILE.write_text("\n".join([HEADING, *lines, ""]))
