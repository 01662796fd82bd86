"""`python -m tests.house`: prints the figures of the house."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.house import figures, ratchets
from tests.house.crossing import Crossing, crossings
from tests.house.source import House

HERE = Path(__file__).parents[2]
HEADINGS = ("figure", "now", "at most", "aim")
AIMS: Mapping[str, int] = {
    "tokens": 310_000,
    "code lines": 33_000,
    "routes": 80,
    "commands": 25,
    "settings": 32,
    "tables": 40,
    "functions that take a database, outside the doors": 0,
}
"""The value that each figure of the whole house is to reach."""
Row = tuple[str, int, int | None, int | None]
"""A figure's name, its value, the most that it may be and its aim."""


def main() -> None:
    """Prints the figures and the tokens of the rooms, or stores these tokens."""
    options = _options()
    house = House(options.repo.resolve())
    if options.write:
        ratchets.write(house)
        return
    _print_table([*_of_house(house), *_of_rooms(house)])
    if options.trace:
        for name, crossing in crossings(house).items():
            _print_crossing(name, crossing)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description="The figures of the code in app/.")
    parser.add_argument("--repo", type=Path, default=HERE, help="another checkout to measure")
    parser.add_argument("--trace", action="store_true", help="start the service, and print what requests pass through")
    parser.add_argument("--write", action="store_true", help="lower the tokens of the rooms to those of today")
    return parser.parse_args()


def _of_house(house: House) -> Iterator[Row]:
    for name, value in figures.figures(house).items():
        yield name, value, None, AIMS.get(name)


def _of_rooms(house: House) -> Iterator[Row]:
    limits = ratchets.stored()
    for room, count in figures.rooms(house).items():
        yield f"tokens of {room}", count, limits.get(room), None


def _print_table(rows: Sequence[Row]) -> None:
    lines = [HEADINGS, *((name, *map(_number, numbers)) for name, *numbers in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for number, line in enumerate(lines):
        print(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |")
        if not number:
            print(f"| {' | '.join('-' * width for width in widths)} |")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _print_crossing(name: str, crossing: Crossing) -> None:
    """Prints the modules in the order of their first call, each with its entries; `+` marks those passed through."""
    passing = set(crossing.passing)
    print(f"\n{name}: {len(crossing.modules)} modules, {len(passing)} of them call others")
    for module in crossing.modules:
        print(f"  {'+' if module in passing else ' '} {module} {crossing.entries.get(module, 0)}")


if __name__ == "__main__":
    main()
