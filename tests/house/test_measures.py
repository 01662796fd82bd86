"""The measures of the house, on a small one made for the purpose."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.house import figures, glossary, imports, sessions, statements
from tests.house.crossing import Call, Crossing
from tests.house.floors import upward_imports
from tests.house.source import House

TABLES = 'memories = Table("memories", metadata)\nvectors = Table("vectors", metadata)\n'
Build = Callable[[Mapping[str, str]], House]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Writes files below `app/` and reads them as a house."""

    def built(files: Mapping[str, str]) -> House:
        for name, text in files.items():
            path = tmp_path / "app" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return House(tmp_path)

    return built


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ('S = "INSERT INTO memories (title) VALUES (:title) ON CONFLICT (id) DO UPDATE SET title = 1"', {"memories"}),
        ('S = "UPDATE memories AS m SET title = 1"', {"memories"}),
        ('S = "DELETE " "FROM memories m USING vectors v"', {"memories"}),
        ('S = "WITH v AS (DELETE FROM vectors) UPDATE ONLY memories SET title = 1"', {"memories", "vectors"}),
        ('S = "COPY vectors (id) FROM STDIN"', {"vectors"}),
        ('S = "COPY vectors (id) TO STDOUT"', set()),
        ('S = "SELECT 1 FROM memories FOR NO KEY UPDATE"', set()),
        ('"""UPDATE memories SET title = 1"""', set()),
        (
            'for table in ("memories", "vectors"):\n    run(f"DELETE FROM {table} WHERE id = 1")',
            {"memories", "vectors"},
        ),
        ('T = "vectors"\nS = "DELETE FROM " + T + " WHERE id = 1"', {"vectors"}),
        ('def part(n):\n    return f"vectors_{n}"\n\nS = f"DELETE FROM {model.part}"', {"vectors"}),
        ('def remove(table):\n    run(f"DELETE FROM {table}")', {statements.UNKNOWN}),
        ("from sqlalchemy import insert\nS = insert(tables.memories)", {"memories"}),
    ],
)
def test_the_written_tables_are_read_from_the_statement(build: Build, code: str, written: set[str]) -> None:
    house = build({"db/tables.py": TABLES, "links/store.py": code})
    assert {item.table for item in statements.writes(house)} == written
    assert {item.room for item in statements.writes(house)} <= {"links"}


def test_imports_from_above_and_cycles_are_found(build: Build) -> None:
    house = build(
        {
            "links/store.py": "from app.retrieval import search",
            "retrieval/search.py": "def find():\n    from app.links.store import edges  # noqa: PLC0415\n",
        }
    )
    assert upward_imports(house, "links") == ["app/links/store.py:1 imports app.retrieval.search"]
    assert upward_imports(house, "retrieval") == []
    assert imports.cycles(imports.package_graph(house)) == [["app.links", "app.retrieval"]]


def test_a_small_module_with_one_importer_is_named_unless_it_is_pure(build: Build) -> None:
    house = build(
        {
            "links/give.py": "async def give(): ...",
            "links/names.py": "def names(): ...",
            "links/store.py": "from app.links import give, names",
        }
    )
    assert [module.name for module in imports.lonely(house)] == ["app.links.give", "app.links.names"]
    assert [module.name for module in imports.small_and_lonely(house)] == ["app.links.give"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import umap  # noqa: PLC0415", ""),
        ("import umap  # noqa: PLC0415 - takes up to 20 s", "takes up to 20 s"),
        ("# Takes up to 20 s.\n    import umap  # noqa: PLC0415", "Takes up to 20 s."),
        ("# Takes up to 20 s.\n    import numba  # noqa: PLC0415\n    import umap", "Takes up to 20 s."),
    ],
)
def test_the_reason_of_an_inner_import_is_beside_or_above_it(build: Build, line: str, reason: str) -> None:
    house = build({"text/words.py": f"def load():\n    {line}\n"})
    assert imports.inner_imports(house)[-1].reason == reason


def test_sessions_are_found_by_their_kind(build: Build) -> None:
    database = "class Database:\n    @asynccontextmanager\n    async def direct(self): ...\n"
    verb = "async def find(database):\n    async with database.direct(): ...\n    async with database.across(): ...\n"
    house = build({"db/engine.py": database, "links/find.py": verb, "operations/status.py": verb})
    assert sessions.kinds(house) == {"direct"}
    assert sessions.kinds_seen(house) == {"direct": {"links"}, "across": {"links"}}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("take_hint", ["hint"]),
        ("LinkedHint", ["hint"]),
        ("LOOK_ALIKES", ["look alikes"]),
        ("returned", []),
        ("patience", []),
    ],
)
def test_words_are_matched_whole(name: str, words: list[str]) -> None:
    assert glossary.forbidden(name) == words


def test_only_code_counts_as_code(build: Build) -> None:
    house = build(
        {"text/words.py": '"""Words.\n\nMore."""\n\n# A comment.\nWORDS = (\n    1,  # one\n)\n"""Words."""\n'}
    )
    assert figures.code_lines(house) == 3


def test_entries_are_calls_from_other_modules_and_tasks() -> None:
    crossing = Crossing(
        [
            Call("app.api.retrieval", "history", None),
            Call("app.retrieval.search", "find", "app.api.retrieval"),
            Call("app.retrieval.search", "_embedded", None),
            Call("app.text.words", "words", "app.retrieval.search"),
            Call("app.retrieval.search", "_read", "app.retrieval.search"),
        ]
    )
    assert crossing.entries == {"app.api.retrieval": 1, "app.retrieval.search": 2, "app.text.words": 1}
    assert crossing.own_tasks["app.retrieval.search"] == 1
    assert crossing.passing == ["app.api.retrieval", "app.retrieval.search"]
    assert crossing.behind_the_doors == ["app.retrieval.search", "app.text.words"]
