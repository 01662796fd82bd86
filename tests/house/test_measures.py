"""The measures of the house, on a small one made for the purpose."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.house import figures, glossary, imports, ratchets, sessions, statements
from tests.house.crossing import Call, Crossing
from tests.house.floors import upward_imports
from tests.house.source import House

SCHEMA = "CREATE TABLE memories (\nCREATE TABLE vectors (\n"
Build = Callable[[Mapping[str, str]], House]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Writes files below `app/` and reads them as a house."""

    def built(files: Mapping[str, str]) -> House:
        for name, text in files.items():
            path = tmp_path / "app" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "migrations").mkdir(exist_ok=True)
        (tmp_path / "migrations" / "schema.sql").write_text(SCHEMA)
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
    house = build({"storage/links/store.py": code})
    assert {item.table for item in statements.writes(house)} == written
    assert {item.room for item in statements.writes(house)} <= {"links"}


def test_imports_from_above_and_cycles_are_found(build: Build) -> None:
    house = build(
        {
            "storage/links/store.py": "from app.recall.retrieval import search",
            "recall/retrieval/search.py": "def find():\n    from app.storage.links.store import x  # noqa: PLC0415\n",
        }
    )
    assert upward_imports(house, "links") == ["app/storage/links/store.py:1 imports app.recall.retrieval.search"]
    assert upward_imports(house, "retrieval") == []
    assert imports.cycles(imports.package_graph(house)) == [["app.recall.retrieval", "app.storage.links"]]


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
    house = build({"foundation/text/words.py": f"def load():\n    {line}\n"})
    assert imports.inner_imports(house)[-1].reason == reason


def test_sessions_are_found_by_their_kind(build: Build) -> None:
    database = "class Database:\n    @asynccontextmanager\n    async def direct(self): ...\n"
    verb = "async def find(database):\n    async with database.direct(): ...\n    async with database.across(): ...\n"
    house = build({"foundation/db/engine.py": database, "storage/links/find.py": verb, "operations/status.py": verb})
    assert sessions.kinds(house) == {"direct"}
    assert {(item.kind, item.room) for item in sessions.openings(house)} == {
        ("direct", "links"),
        ("across", "links"),
        ("direct", "operations"),
        ("across", "operations"),
    }


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


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('"""A.\n\nMore."""\n\n# A comment.\nWORDS = (\n    1,  # one\n)\n"""Words."""\n', 6),
        ("WORDS = (1,)\n", 6),
        ('def say(words):\n    """Says."""\n    print("é", words)\n', 12),
        ("def say(words): print('é', words)\n", 12),
        ('class É:\n    """É."""; say = "a"\n', 7),
    ],
)
def test_only_code_counts_as_tokens_however_it_is_packed(build: Build, code: str, count: int) -> None:
    assert figures.rooms(build({"foundation/text/words.py": code})) == {"text": count}


def test_a_participle_alone_names_no_function(build: Build) -> None:
    code = "def made(): ...\ndef embed(): ...\ndef _listed(): ...\nclass A:\n    @property\n    def found(self): ...\n"
    found = glossary.bare_participles(build({"foundation/text/words.py": code}))
    assert [item.split()[1] for item in found] == ["made", "_listed"]


def test_a_class_name_of_two_classes_is_found(build: Build) -> None:
    house = build({"storage/links/a.py": "class Part: ...\nclass Edge: ...", "storage/links/b.py": "class _Part: ..."})
    assert list(glossary.ambiguous_classes(house)) == ["Part"]


def test_a_ratchet_holds_what_rises_and_falls_with_what_falls(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ratchets, "FILE", tmp_path / "tokens.toml")
    ratchets.write(build({"storage/links/a.py": "A = 1\nB = 2\n"}))
    grown = build({"storage/links/a.py": "A = 1\nB = 2\nC = 3\n"})
    assert list(ratchets.exceeded(grown)) == ["links: 9 tokens instead of 6"]
    ratchets.write(grown)
    assert ratchets.stored() == {"links": 6}
    ratchets.write(build({"storage/links/a.py": "A = 1\n"}))
    assert ratchets.stored() == {"links": 3}
    assert list(ratchets.exceeded(build({"storage/index/b.py": "B = 1\n"}))) == [
        "index: 3 tokens, which has no number yet"
    ]


def test_entries_are_calls_from_other_modules_and_tasks() -> None:
    crossing = Crossing(
        [
            Call("app.interfaces.http.retrieval", "history", None),
            Call("app.recall.retrieval.search", "find", "app.interfaces.http.retrieval"),
            Call("app.recall.retrieval.search", "_embedded", None),
            Call("app.foundation.text.words", "words", "app.recall.retrieval.search"),
            Call("app.recall.retrieval.search", "_read", "app.recall.retrieval.search"),
        ]
    )
    assert crossing.entries == {
        "app.interfaces.http.retrieval": 1,
        "app.recall.retrieval.search": 2,
        "app.foundation.text.words": 1,
    }
    assert crossing.passing == ["app.interfaces.http.retrieval", "app.recall.retrieval.search"]
