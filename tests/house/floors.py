"""The floors of the house (law 1 of the design): a room imports from its own floor and from those below."""

from collections.abc import Mapping, Sequence

from tests.house.source import House, room_of

FLOORS: Sequence[frozenset[str]] = (
    frozenset({"version", "errors", "settings", "logs", "tracing"}),
    frozenset({"text", "models", "safety", "db", "postgres", "panel"}),
    frozenset({"workspaces", "keys"}),
    frozenset({"memories", "index", "links"}),
    frozenset({"intake", "runs", "cues", "retrieval", "context", "insight", "items"}),
    frozenset({"wiring"}),
    frozenset({"operations"}),
    frozenset({"worker", "mcp", "api", "cli", "backend"}),
)
"""From the ground up. Within a floor the acyclic package graph says who may import whom."""

FLOOR: Mapping[str, int] = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def upward_imports(house: House, room: str) -> list[str]:
    """Returns the imports of a room from a floor above its own; a room without a floor is in none of them."""
    found = {
        f"{house.modules[item.importer].path}:{item.line} imports {item.target}"
        for item in house.imports
        if room_of(item.importer) == room and FLOOR.get(room_of(item.target), -1) > FLOOR.get(room, len(FLOORS))
    }
    return sorted(found)
