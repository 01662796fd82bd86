"""The laws of the house: floors, packages, tables, sessions, tokens of a room, names, imports inside functions.

`python -m tests.house` prints the figures that go with them.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house import figures, glossary, imports, ratchets, sessions, statements
from tests.house.floors import upward_imports, without_floor
from tests.house.source import DOORS, House, Module

HOUSE = House(Path(__file__).parents[1])
LIBRARIES = ("sqlalchemy", "psycopg")
SEES_ALL_WORKSPACES = "worker"
"""The door that opens sessions itself, across workspaces; the others call verbs only."""

every_room = pytest.mark.parametrize("room", HOUSE.rooms)


def _modules(room: str) -> list[Module]:
    return [module for module in HOUSE.files if module.room == room]


def _none(found: Iterable[str], law: str) -> None:
    if listed := sorted(found):
        pytest.fail("\n  ".join([law, *listed]), pytrace=False)


def test_every_module_stands_on_a_floor() -> None:
    _none(without_floor(HOUSE), "move them to a folder that is a floor (tests/house/floors.py)")


@every_room
def test_imports_go_down(room: str) -> None:
    _none(upward_imports(HOUSE, room), f"{room} imports from a floor above its own")


def test_no_room_grows() -> None:
    _none(
        ratchets.exceeded(HOUSE),
        "make it smaller, or raise the number in tests/house/tokens.toml and say in the commit what it replaces;"
        " `python -m tests.house --write` notes a new room",
    )


def test_packages_have_no_cycle() -> None:
    for cycle in imports.cycles(imports.package_graph(HOUSE)):
        _none(imports.edges_within(HOUSE, cycle), f"{', '.join(cycle)} import each other")


@pytest.mark.parametrize("table", sorted(statements.tables(HOUSE)))
def test_one_room_writes_a_table(table: str) -> None:
    found = [item for item in statements.writes(HOUSE) if item.table == table]
    rooms = sorted({item.room for item in found})
    if len(rooms) > 1:
        _none({item.place for item in found}, f"{table} is written by {', '.join(rooms)}: let one room write it")


def test_every_written_table_can_be_read_from_its_statement() -> None:
    found = {item.place for item in statements.writes(HOUSE) if item.table == statements.UNKNOWN}
    _none(found, "the name of the written table is computed: state it, or take it from a constant")


def test_the_database_gives_two_kinds_of_session() -> None:
    others = sessions.kinds(HOUSE) - {sessions.SESSION, sessions.ACROSS}
    _none(others, "Database gives other connections than session(workspace) and across()")


@every_room
def test_statements_run_in_a_session_of_a_workspace(room: str) -> None:
    allowed = {sessions.SESSION, sessions.ACROSS} if room in sessions.ACROSS_ROOMS else {sessions.SESSION}
    found = [
        f"{item.place}: {item.kind}"
        for item in sessions.openings(HOUSE)
        if item.room == room and (item.kind not in allowed or (item.kind == sessions.SESSION and not item.arguments))
    ]
    _none(found, f"{room} may open {' and '.join(sorted(allowed))} only, a session with its workspace")


@pytest.mark.parametrize("room", sorted(DOORS & set(HOUSE.rooms)))
def test_doors_state_no_sql_and_open_no_session(room: str) -> None:
    openings = [item for item in sessions.openings(HOUSE) if item.room == room and room != SEES_ALL_WORKSPACES]
    stated = [module.path for module in _modules(room) if statements.states_sql(module)]
    _none([*(item.place for item in openings), *stated], f"{room} is a door: it calls verbs")


@every_room
def test_only_stores_import_the_database_libraries(room: str) -> None:
    found = [
        module.path
        for module in _modules(room)
        if any(imports.imports_of(HOUSE, module, library) for library in LIBRARIES)
        if room not in sessions.CELLAR and (room in DOORS or not statements.states_sql(module))
    ]
    _none(
        found, f"sqlalchemy and psycopg are for db/, postgres/ and the stores, which state SQL: not for these of {room}"
    )


@every_room
def test_stores_take_a_session_and_open_none(room: str) -> None:
    if room in sessions.CELLAR | sessions.ACROSS_ROOMS:
        return
    opening = {item.module: item.place for item in sessions.openings(HOUSE)}
    found = [
        opening[module.name] for module in _modules(room) if module.name in opening and statements.states_sql(module)
    ]
    _none(found, "a module that states SQL opens no session: the verb does")


@every_room
def test_names_are_the_glossarys(room: str) -> None:
    _none(glossary.offences(HOUSE, room), "words that section 2 of the design replaces")


@pytest.mark.parametrize(("room", "name"), sorted(glossary.ALLOWED))
def test_an_exception_to_the_glossary_is_still_needed(room: str, name: str) -> None:
    defined = {item.name for module in _modules(room) for item in glossary.names(module)}
    assert name in defined, f"nothing in {room} is called {name}: remove it from ALLOWED"


def test_no_function_is_named_by_a_bare_participle() -> None:
    _none(glossary.bare_participles(HOUSE), "name them by a verb")


def test_no_class_name_stands_for_two_things() -> None:
    found = glossary.ambiguous_classes(HOUSE)
    _none((f"{name}: {', '.join(places)}" for name, places in found.items()), "one name for several classes")


def test_docstrings_begin_with_a_sentence() -> None:
    _none(figures.elliptic_docstrings(HOUSE), "these open with a relative word instead of a verb")


def test_files_and_folders_say_what_they_hold() -> None:
    _none(glossary.empty_names(HOUSE), "names that say nothing")


@every_room
def test_imports_inside_functions_have_a_reason(room: str) -> None:
    found = [
        f"{item.place}: {item.statement}"
        for item in imports.inner_imports(HOUSE)
        if item.room == room and not item.reason
    ]
    _none(found, "an import inside a function says beside it why it stands there")
