"""`python -m tests.house`: prints the figures of the house."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.house import ratchets
from tests.house.crossing import HISTORY, REPORT, Crossing, crossings
from tests.house.source import House

HERE = Path(__file__).parents[2]
HEADINGS = ("figure", "now", "may be", "aim", "met")
MOST_CROSSED: Mapping[str, int] = {HISTORY: 20, REPORT: 24}
"""Modules that a request is to pass through at most."""
MET: Mapping[bool | None, str] = {True: "met", False: "missed", None: ""}
Row = tuple[str, int, int | None, int | None]
"""A figure's name, its value, its ratchet and its aim."""


def main() -> None:
    """Prints the figures and the sizes of the rooms, or stores the ratchets."""
    options = _options()
    house = House(options.repo.resolve())
    if options.write:
        ratchets.write(house)
        return
    crossed = {} if options.no_trace else crossings(house)
    _print_table([*_of_house(house), *_of_requests(crossed), *_of_rooms(house)])
    for name, crossing in crossed.items():
        _print_crossing(name, crossing)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description="The figures of the code in app/.")
    parser.add_argument("--repo", type=Path, default=HERE, help="another checkout to measure")
    parser.add_argument("--no-trace", action="store_true", help="leave out the requests; nothing is started then")
    parser.add_argument("--write", action="store_true", help="lower the ratchets to the figures of today")
    return parser.parse_args()


def _of_house(house: House) -> Iterator[Row]:
    limits = ratchets.stored()["house"]
    for name, value in ratchets.measured(house)["house"].items():
        yield name, value, limits.get(name), ratchets.AIMS.get(name)


def _of_requests(crossed: Mapping[str, Crossing]) -> Iterator[Row]:
    for name, crossing in crossed.items():
        yield f"modules that `{name}` passes through", len(crossing.passing), None, MOST_CROSSED.get(name)


def _of_rooms(house: House) -> Iterator[Row]:
    limits, values = ratchets.stored(), ratchets.measured(house)
    for room in house.rooms:
        for table in ("code lines of rooms", "modules of rooms"):
            yield f"{room}: {table.split(' of ', maxsplit=1)[0]}", values[table][room], limits[table].get(room), None


def _print_table(rows: Sequence[Row]) -> None:
    lines = [HEADINGS, *((name, *map(_number, numbers), _met(*numbers)) for name, *numbers in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for number, line in enumerate(lines):
        print(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |")
        if not number:
            print(f"| {' | '.join('-' * width for width in widths)} |")


def _met(value: int | None, _limit: int | None, aim: int | None) -> str:
    return MET[None if aim is None or value is None else value <= aim]


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _print_crossing(name: str, crossing: Crossing) -> None:
    """Prints the modules in the order of their first call, each with its entries; `+` marks those passed through."""
    print(f"\n{name}: {len(crossing.modules)} modules, {len(crossing.behind_the_doors)} of them outside the doors")
    passing = set(crossing.passing)
    for module in crossing.modules:
        print(f"  {'+' if module in passing else ' '} {module} {crossing.entries.get(module, 0)}")


if __name__ == "__main__":
    main()
