"""The floors of the house (law 1 of the design): a module imports from its own floor and those below."""

from collections.abc import Mapping, Sequence

from tests.house.source import House, floor_of, room_of

FLOORS: Sequence[frozenset[str]] = (
    frozenset({"errors", "settings", "tracing"}),
    frozenset({"foundation"}),
    frozenset({"storage"}),
    frozenset({"intake"}),
    frozenset({"recall"}),
    frozenset({"insight"}),
    frozenset({"wiring"}),
    frozenset({"operations"}),
    frozenset({"interfaces"}),
)
"""The files and folders of `app/`, from the ground up. Within a floor the acyclic package graph says who may import
whom."""

FLOOR: Mapping[str, int] = {name: number for number, names in enumerate(FLOORS) for name in names}


def upward_imports(house: House, room: str) -> list[str]:
    """Returns the imports of a room from a floor above its own; what has no floor is in none of them."""
    found = {
        f"{house.modules[item.importer].path}:{item.line} imports {item.target}"
        for item in house.imports
        if room_of(item.importer) == room
        and FLOOR.get(floor_of(item.target), -1) > FLOOR.get(floor_of(item.importer), len(FLOORS))
    }
    return sorted(found)


def without_floor(house: House) -> list[str]:
    """Returns the modules in a folder of `app/` that is no floor."""
    return [module.path for module in house.modules.values() if floor_of(module.name) not in {"", *FLOOR}]
