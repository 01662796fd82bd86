"""What an earlier harness stored comes over whole, and once."""

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.db.engine import Database
from app.embeddings.provider import TokenCounter
from app.errors import InvalidInput
from app.feedback.rate import list_ratings
from app.memories.browse import list_memories
from app.observations.importing import Imported, import_file
from app.runs.browse import get_run, list_runs

Importing = Callable[[Path], Awaitable[Imported]]


@pytest.fixture
def importing(database: Database, counter: TokenCounter, workspace: str) -> Importing:
    async def run(path: Path) -> Imported:
        return await import_file(database, counter, workspace=workspace, language="english", path=path)

    return run


async def test_runs_come_over_and_bad_lines_are_named(
    importing: Importing, tmp_path: Path, database: Database, workspace: str
) -> None:
    lines = [
        json.dumps({
            "run_id": "r1", "task": "Market", "task_type": "research", "wiggum_scores": [5.5, 8.0], "final": "PASS",
            "memory_hits": 2, "memory_context_titles": ["a", "b"], "extra": {"x": 1},
        }),
        "{ broken",
        json.dumps({"task": "no id"}),
        json.dumps({"run_id": 7, "final_score": 6.5}),
        json.dumps({"run_id": "r3", "final_score": 17}),
        json.dumps([1]),
    ]  # fmt: skip
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(lines))
    result = await importing(path)
    assert result.runs == 2
    assert [reason.split(":")[0] for reason in result.failed] == ["line 2", "line 3", "line 5", "line 6"]
    run = (await get_run(database, workspace=workspace, run_id="r1")).run
    assert run is not None
    assert (run.final_score, run.round_scores, run.verdict) == (8.0, (5.5, 8.0), "PASS")
    assert run.metadata == {"memory_hits": 2, "memory_context_titles": ["a", "b"], "extra": {"x": 1}}
    assert (await importing(path)).runs == 2
    assert len(await list_runs(database, workspace=workspace)) == 2


def harness(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE observations (id INTEGER PRIMARY KEY, timestamp TEXT, task TEXT, task_type TEXT, title TEXT,
                narrative TEXT, facts TEXT, output_path TEXT, final_score REAL, final TEXT, run_id TEXT,
                quality INTEGER, tags TEXT);
            CREATE TABLE memory_feedback_log (id INTEGER PRIMARY KEY, observation_id INTEGER, rating INTEGER,
                comment TEXT, timestamp TEXT);
        """)
        rows = [
            (1, "2026-01-02T03:04:05", "Market", "research", "Market of supplements", "It grew.",
             '["221 billion rubles", "58 % pharmacies"]', "out/1.md", 8.2, "PASS", "r1", 2, '["bads"]'),
            (2, "2026-01-03T03:04:05", "Market", "research", "Actors", "None was found.", "['broken', 'list',]", None,
             None, None, None, -1, "a, b"),
            (3, None, "t", "", "Empty", "", "", None, None, None, None, 0, None),
            (4, "2026-01-04", "t", "", "Carried", "A lesson that was rated before the log.", "[]", None, 5.0, "FAIL",
             "none", 3, ""),
        ]  # fmt: skip
        connection.executemany("INSERT INTO observations VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
        ratings = [(1, 1, 1, "good", "2026-02-01"), (2, 1, 1, "", "2026-02-02"), (3, 2, -1, "wrong", "2026-02-03")]
        connection.executemany("INSERT INTO memory_feedback_log VALUES (?,?,?,?,?)", ratings)
        connection.commit()


async def test_a_harness_store_comes_over_with_its_judgement(
    importing: Importing,
    tmp_path: Path,
    database: Database,
    workspace: str,
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    result = await importing(path)
    assert (result.stored, result.ratings, result.failed) == (3, 3, ["observation 3: has neither narrative nor facts"])
    found = {memory.title: memory for memory in await list_memories(database, workspace=workspace)}
    market = found["Market of supplements"]
    assert (market.quality, market.run_id, market.tags) == (2, "r1", ("bads",))
    assert market.final_score == pytest.approx(8.2)
    assert market.body == "It grew.\n- 221 billion rubles\n- 58 % pharmacies"
    assert market.occurred_at is not None
    assert found["Actors"].body == "None was found.\n- broken\n- list"
    assert (found["Actors"].quality, found["Carried"].quality, found["Carried"].run_id) == (-1, 3, None)
    log = await list_ratings(database, workspace=workspace, memory_id=market.memory_id)
    assert [(entry.rating, entry.comment, entry.created_at.date().isoformat()) for entry in log] == [
        (1, "good", "2026-02-01"),
        (1, "", "2026-02-02"),
    ]
    again = await importing(path)
    assert (again.stored, again.known, again.ratings) == (0, 3, 0)
    assert len(await list_ratings(database, workspace=workspace, memory_id=found["Carried"].memory_id)) == 3


async def test_observations_come_over(importing: Importing, tmp_path: Path, database: Database, workspace: str) -> None:
    path = tmp_path / "observations.jsonl"
    flat = {"title": "BM25", "narrative": "It holds up.", "facts": ["k1 is 1.2"], "task": "review", "final_score": 8}
    empty = {"kind": "observation", "title": "x"}
    path.write_text(f"{json.dumps(flat)}\n\n{json.dumps(empty)}\n")
    result = await importing(path)
    assert (result.stored, len(result.failed)) == (1, 1)
    (memory,) = await list_memories(database, workspace=workspace)
    assert (memory.kind, memory.body) == ("observation", "It holds up.\n- k1 is 1.2")


async def test_a_database_of_another_kind_is_named(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE x (y)")
        connection.commit()
    with pytest.raises(InvalidInput, match="no such table"):
        await importing(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        await importing(tmp_path / "missing.jsonl")
