"""`python -m tests.house`: prints the figures of the house."""

import argparse
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from textwrap import indent

from tests.house import figures
from tests.house.crossing import Crossing, crossings
from tests.house.source import House
from tests.house.table import Row, rows, shared

HERE = Path(__file__).parents[2]
HEADINGS = ("figure", "base", "now", "target", "met")
MET: Mapping[bool | None, str] = {True: "met", False: "missed", None: ""}


def main() -> None:
    """Prints the table, or docstrings drawn at random."""
    options = _options()
    house = House(options.repo.resolve())
    if options.random:
        for item in figures.drawn(house, options.random, options.seed):
            print(f"{item.place}\n{indent(cleandoc(item.text), '    ')}\n")
        return
    crossed = None if options.no_trace else crossings(house)
    _print_table(rows(house, crossed))
    for table, rooms in shared(house).items():
        print(f"{table}: written by {rooms}")
    for name, crossing in (crossed or {}).items():
        _print_crossing(name, crossing)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description="The figures of the code in app/.")
    parser.add_argument("--repo", type=Path, default=HERE, help="another checkout to measure")
    parser.add_argument("--no-trace", action="store_true", help="leave out the requests; nothing is started then")
    parser.add_argument("--random", type=int, metavar="N", help="print N docstrings drawn at random instead")
    parser.add_argument("--seed", type=int, help="draw the same docstrings again")
    return parser.parse_args()


def _print_table(found: Sequence[Row]) -> None:
    lines = [HEADINGS, *((row.name, row.before, row.now, row.target, MET[row.met]) for row in found)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(HEADINGS))]
    for number, line in enumerate(lines):
        print(f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |")
        if not number:
            print(f"| {' | '.join('-' * width for width in widths)} |")
    missed = sum(row.met is False for row in found)
    print(f"\n{sum(row.met is True for row in found)} met, {missed} missed")


def _print_crossing(name: str, crossing: Crossing) -> None:
    """Prints the modules in the order of their first call, each with its entries; `+` marks those passed through."""
    print(f"\n{name}: {len(crossing.modules)} modules, {len(crossing.behind_the_doors)} of them outside the doors")
    passing = set(crossing.passing)
    for module in crossing.modules:
        print(f"  {'+' if module in passing else ' '} {module} {crossing.entries.get(module, 0)}")


if __name__ == "__main__":
    main()
