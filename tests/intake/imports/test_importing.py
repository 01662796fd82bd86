"""What an earlier harness stored comes over whole, and once."""

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.models.protocols import TokenCounter
from app.foundation.models.providers import NoopProvider
from app.intake.imports.service import Imported
from app.intake.runs.feedback.service import Ratings
from app.intake.runs.feedback.store import FeedbackEntry
from app.intake.runs.observations.observation import Outcome
from app.intake.runs.observations.service import Observations
from app.intake.runs.run import NewRun, Run
from app.intake.runs.service import Runs
from app.operations.status import Overview
from app.storage.memories.memory import Memory, NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

Importing = Callable[[Path], Awaitable[Imported]]
Stored = Callable[[], Awaitable[dict[str, Memory]]]


@pytest.fixture
def importing(services: Services, workspace: Workspace) -> Importing:
    async def run(path: Path) -> Imported:
        return await services.imports.import_file(workspace, path)

    return run


@pytest.fixture
def observations(services: Services) -> Observations:
    return services.observations


async def test_runs_come_over_and_bad_lines_are_named(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace
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
    run = (await Runs(database=database).get(workspace, "r1")).run
    assert run is not None
    assert (run.final_score, run.round_scores, run.verdict) == (8.0, (5.5, 8.0), "PASS")
    assert run.metadata == {"memory_hits": 2, "memory_context_titles": ["a", "b"], "extra": {"x": 1}}
    assert (await importing(path)).runs == 2
    assert len(await Runs(database=database).page(workspace)) == 2


async def test_a_run_knows_the_memories_that_it_was_given_and_what_it_cost(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, counter: TokenCounter
) -> None:
    by_id, by_title, other = (
        NewMemory(kind="observation", title=title, body=f"{title}: a finding.", metadata={"imported_id": str(number)})
        for number, title in ((7, "Market of 2024"), (8, "Actors"), (9, "Prices"))
    )
    remembered = await WriteGate(database=database, counter=counter).remember(workspace, [by_id, by_title, other])
    lines = [
        {"run_id": "r1", "task": "Market", "agent": "scout", "memory_hits": [7, "gone"], "total_tokens": 1200,
         "memory_context_titles": ["Market, renamed", "Actors", "Never stored"], "cost_usd": "0.02"},
        {"run_id": "r2", "memory_hits": 2, "input_tokens": 100, "output_tokens": 20, "tokens": {"a": 1}},
        {"run_id": "r3", "tokens": 9, "stages": {"scout": {"tokens": 5}}},
    ]  # fmt: skip
    for _ in range(2):
        assert (await importing(jsonl(tmp_path / "runs.jsonl", *lines))).failed == []
    story = await Runs(database=database).get(workspace, "r1")
    assert [(given.memory_id, given.rank, given.agent, given.query) for given in story.given] == [
        (remembered.ids[0], 1, "scout", "Market"), (remembered.ids[1], 2, "scout", "Market"),
    ]  # fmt: skip
    spent = [await run_of(database, workspace, name) for name in ("r1", "r2", "r3")]
    assert [(item.tokens, item.cost) for item in spent] == [(1200, 0.02), (120, None), (5, None)]
    assert (await Runs(database=database).get(workspace, "r2")).given == ()
    status = await Overview(database=database).status(workspace, NoopProvider(), model_loaded=True)
    assert (status.recalls, status.latencies) == (1, ())


@pytest.fixture
def stored(database: Database, workspace: Workspace) -> Stored:
    async def found() -> dict[str, Memory]:
        return {memory.title: memory for memory in await Memories(database=database).list_live(workspace)}

    return found


async def run_of(database: Database, workspace: Workspace, run_id: str) -> Run:
    run = (await Runs(database=database).get(workspace, run_id)).run
    assert run is not None
    return run


def jsonl(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def test_a_view_is_no_table_of_a_harness(importing: Importing, tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'x' AS title FROM n"
    change(tmp_path / "memory.db", f"CREATE VIEW observations AS {endless}")
    with pytest.raises(InvalidInput, match="observations is no table"):
        await importing(tmp_path / "memory.db")


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
    workspace: Workspace,
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    result = await importing(path)
    assert (result.stored, result.ratings, result.failed) == (3, 3, ["observation 3: has neither narrative nor facts"])
    found = {memory.title: memory for memory in await Memories(database=database).list_live(workspace)}
    market = found["Market of supplements"]
    assert (market.quality, market.run_id, market.tags) == (2, "r1", ("bads",))
    assert market.final_score == pytest.approx(8.2)
    assert market.body == "It grew.\n- 221 billion rubles\n- 58 % pharmacies"
    assert market.occurred_at is not None
    assert found["Actors"].body == "None was found.\n- broken\n- list"
    assert (found["Actors"].quality, found["Carried"].quality, found["Carried"].run_id) == (-1, 3, None)
    log = await Ratings(database=database).of_memory(workspace, market.memory_id)
    assert [(entry.rating, entry.comment, entry.created_at.date().isoformat()) for entry in log] == [
        (1, "good", "2026-02-01"),
        (1, "", "2026-02-02"),
    ]
    again = await importing(path)
    assert (again.stored, again.known, again.ratings) == (0, 3, 0)
    assert len(await Ratings(database=database).of_memory(workspace, found["Carried"].memory_id)) == 3


async def test_observations_come_over(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace
) -> None:
    path = tmp_path / "observations.jsonl"
    flat = {"title": "BM25", "narrative": "It holds up.", "facts": ["k1 is 1.2"], "task": "review", "final_score": 8}
    empty = {"kind": "observation", "title": "x"}
    path.write_text(f"{json.dumps(flat)}\n\n{json.dumps(empty)}\n")
    result = await importing(path)
    assert (result.stored, len(result.failed)) == (1, 1)
    (memory,) = await Memories(database=database).list_live(workspace)
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


LATER = ("INSERT INTO memory_feedback_log VALUES (4, 1, -1, 'later', '2026-03-01')",
         "UPDATE observations SET quality = 1 WHERE id = 1")  # fmt: skip


async def test_feedback_that_the_harness_gains_later_comes_over(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, stored: Stored
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    await importing(path)
    change(path, *LATER)
    assert (await importing(path)).ratings == 1
    market = (await stored())["Market of supplements"]
    log = await Ratings(database=database).of_memory(workspace, market.memory_id)
    assert (market.quality, [entry.rating for entry in log], log[-1].comment) == (1, [1, 1, -1], "later")
    assert (await importing(path)).ratings == 0
    assert len(await Ratings(database=database).of_memory(workspace, market.memory_id)) == 3


async def test_what_people_rated_here_since_is_kept(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, stored: Stored
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    await importing(path)
    market = (await stored())["Market of supplements"].memory_id
    (first, _) = await Ratings(database=database).of_memory(workspace, market)
    await Ratings(database=database).undo(workspace, first.feedback_id)
    await Ratings(database=database).rate(workspace, FeedbackEntry(memory_id=market, rating=-1))
    await importing(path)
    assert (await stored())["Market of supplements"].quality == 0
    change(path, *LATER)
    await importing(path)
    await importing(path)
    assert (await stored())["Market of supplements"].quality == -1
    assert len(await Ratings(database=database).of_memory(workspace, market)) == 4


async def test_the_difference_is_carried_over_anew(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, stored: Stored
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    await importing(path)
    carried = (await stored())["Carried"].memory_id
    change(path, "INSERT INTO memory_feedback_log VALUES (4, 4, 1, '', '2026-03-01')")
    await importing(path)
    assert (await stored())["Carried"].quality == 3
    change(path, "UPDATE observations SET quality = 1 WHERE id = 4")
    await importing(path)
    await importing(path)
    assert (await stored())["Carried"].quality == 1
    log = await Ratings(database=database).of_memory(workspace, carried)
    assert [entry.rating for entry in log] == [1, 1, 1, 1, -1, -1]


async def test_a_log_speaks_for_itself_where_there_is_no_quality(
    importing: Importing, tmp_path: Path, stored: Stored
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    change(path, "UPDATE observations SET quality = NULL", "UPDATE memory_feedback_log SET id = 1 WHERE id = 1")
    await importing(path)
    assert [(await stored())[name].quality for name in ("Market of supplements", "Actors", "Carried")] == [2, -1, 0]


async def test_what_a_person_deleted_stays_out(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, stored: Stored
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    change(
        path, "UPDATE observations SET narrative = 'It grew; see postgres://me:s3cr3tPass@db.example/x' WHERE id = 1"
    )
    await importing(path)
    ids = [memory.memory_id for memory in (await stored()).values()]
    await Memories(database=database).delete(workspace, ids=ids)
    change(path, *LATER)
    result = await importing(path)
    assert (result.stored, result.known, result.ratings, await stored()) == (0, 3, 0, {})
    await Memories(database=database).restore(workspace, ids=ids)
    assert (await importing(path)).ratings == 1
    flat = {"title": "BM25", "narrative": "It holds up.", "facts": ["k1 is 1.2"]}
    lines = jsonl(tmp_path / "observations.jsonl", flat)
    await importing(lines)
    await Memories(database=database).delete(workspace, ids=[(await stored())["BM25"].memory_id])
    assert ((await importing(lines)).known, "BM25" in await stored()) == (1, False)


async def test_a_later_judgement_of_an_observation_stands(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, stored: Stored
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    await importing(path)
    await Runs(database=database).record(workspace, NewRun(run_id="r1", final_score=3.0))
    await importing(path)
    assert (await stored())["Market of supplements"].final_score == 3.0


async def test_a_later_judgement_of_a_run_stands(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace
) -> None:
    line = {"run_id": "r1", "task": "Market", "wiggum_scores": [5.5, 8.0], "final": "PASS", "extra": 1}
    path = jsonl(tmp_path / "runs.jsonl", line)
    await importing(path)
    later = NewRun(run_id="r1", final_score=3.0, verdict="FAIL", metadata={"extra": 2})
    judged, _ = await Runs(database=database).record(workspace, later)
    assert (await importing(path)).runs == 1
    assert await run_of(database, workspace, "r1") == judged
    await importing(jsonl(path, {**line, "agent": "Scout", "more": 3}))
    run = await run_of(database, workspace, "r1")
    assert (run.final_score, run.verdict, run.agent, run.metadata) == (3.0, "FAIL", "Scout", {"extra": 2, "more": 3})


async def test_a_later_judgement_without_a_stored_run_stands(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, observations: Observations
) -> None:
    outcome = Outcome(task="Market", output="It grew by 12 % to 221 billion.", run_id="r1", final_score=9, verdict="A")
    asked = await observations.request(workspace, outcome)
    await observations.make(workspace, asked)
    given = NewMemory(kind="observation", body="It fell by 3 %.", run_id="r2", final_score=8)
    await WriteGate(database=database, counter=observations.counter).remember(workspace, [given])
    lines = [{"run_id": run_id, "task": "Market", "final_score": 2, "final": "F"} for run_id in ("r1", "r2")]
    await importing(jsonl(tmp_path / "runs.jsonl", *lines))
    found = {memory.run_id: memory for memory in await Memories(database=database).list_live(workspace)}
    assert [found[run_id].final_score for run_id in ("r1", "r2")] == [9, 8]
    assert found["r1"].observation is not None
    assert found["r1"].observation.verdict == "A"
    assert (await run_of(database, workspace, "r1")).task == "Market"


async def test_tags_in_a_text_are_taken(importing: Importing, tmp_path: Path, stored: Stored) -> None:
    await importing(jsonl(tmp_path / "x.jsonl", {"title": "T", "narrative": "It grew well.", "tags": "a, b"}))
    assert (await stored())["T"].tags == ("a", "b")


async def test_a_later_line_of_a_file_completes_an_earlier_one(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace
) -> None:
    path = jsonl(
        tmp_path / "runs.jsonl",
        {"run_id": "r1", "final": "RUNNING"},
        {"run_id": "r1", "final": "PASS", "final_score": 8},
    )
    await importing(path)
    await importing(path)
    run = await run_of(database, workspace, "r1")
    assert (run.verdict, run.final_score) == ("PASS", 8)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"run_id": "a", "lines": True}, "lines: must be a whole number"),
        ({"run_id": "a", "bytes": 2**70}, "bytes"),
        ({"run_id": "a", "final_score": 10**400}, "final_score: is too large"),
        ({"run_id": "a", "final_score": "very good"}, "final_score: must be a number"),
        ({"run_id": "a", "timestamp": "0001-01-01T00:00:00+14:00"}, "finished_at"),
        ({"run_id": "a", "task": "a\0b"}, "task: contains a NUL"),
        ({"narrative": "It grew well.", "task": "a\0b"}, "task: contains a NUL"),
        ({"narrative": "It grew well.", "verdict": "\0"}, "verdict: contains a NUL"),
        ({"narrative": "It grew well.", "facts": '["half \\ud83d"]'}, "facts: contains half"),
        ({"narrative": "It grew well.", "final_score": "good"}, "final_score: must be a number"),
        ({"run_id": "a", "final": True}, "final: must be a text"),
        ({"narrative": "It grew well.", "final": True}, "final: must be a text"),
        ({"narrative": "It grew well.", "tags": {"a": 1}}, "tags: must be a list"),
        ({"narrative": "It grew well.", "tags": [["a"]]}, "tags: must be a list"),
        ({"narrative": "It grew well.", "metadata": "a"}, "metadata: must be an object"),
        ({"narrative": "It grew well.", "metadata": []}, "metadata: must be an object"),
        ({"narrative": "It grew well.", "final_score": True}, "final_score: must be a number"),
        ({"run_id": "a", "total_tokens": 10**400}, "total_tokens: is too large"),
    ],
)
async def test_a_line_that_cannot_be_stored_is_named(
    importing: Importing, tmp_path: Path, line: dict[str, object], named: str
) -> None:
    result = await importing(jsonl(tmp_path / "x.jsonl", line, {"run_id": "after"}))
    assert result.runs == 1
    assert [reason.startswith(f"line 1: {named}") for reason in result.failed] == [True]


async def test_the_cost_by_its_own_name_counts_before_others(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace
) -> None:
    run = {"run_id": "a", "cost": 3.0, "total_cost": 2.0, "cost_usd": 1.0}
    assert (await importing(jsonl(tmp_path / "x.jsonl", run))).failed == []
    assert (await run_of(database, workspace, "a")).cost == 3.0


async def test_a_list_that_is_zero_or_false_is_empty(importing: Importing, tmp_path: Path, stored: Stored) -> None:
    lines = [
        {"title": "A", "narrative": "It grew well.", "facts": 0, "queries": 0},
        {"title": "B", "narrative": "It fell again.", "facts": False, "queries": False},
    ]
    assert (await importing(jsonl(tmp_path / "x.jsonl", *lines))).failed == []
    found = await stored()
    assert (found["A"].body, found["B"].body) == ("It grew well.", "It fell again.")


async def test_numbers_in_text_are_taken(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, stored: Stored
) -> None:
    run = {"run_id": "a", "final_score": "8.5", "lines": "12"}
    observation = {"title": "A", "narrative": "It grew well.", "final_score": " 7 "}
    assert (await importing(jsonl(tmp_path / "x.jsonl", run, observation))).failed == []
    found = await run_of(database, workspace, "a")
    assert (found.final_score, found.lines, (await stored())["A"].final_score) == (8.5, 12, 7)


async def test_a_run_with_empty_fields_of_an_observation_is_a_run(importing: Importing, tmp_path: Path) -> None:
    lines = [{"run_id": "a", "observation": None}, {"run_id": "b", "narrative": None, "facts": None}]
    result = await importing(jsonl(tmp_path / "runs.jsonl", *lines))
    assert (result.runs, result.failed) == (2, [])


async def test_a_mark_before_the_first_line_is_no_part_of_it(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"run_id": "a"}\r\n{"run_id": "b"}\r\n')
    result = await importing(path)
    assert (result.runs, result.failed) == (2, [])


async def test_a_line_too_long_is_one_line(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b'{"run_id": "big", "output": "' + b"x" * 25_000_000 + b'"}\n{bad\n{"run_id": "after"}')
    result = await importing(path)
    assert [reason.split(":")[0] for reason in result.failed] == ["line 1", "line 2"]
    assert result.runs == 1


BAD_ROWS = {
    "facts": b'["a"]',
    "quality": float("inf"),
    "final_score": "good",
    "task": "a\0b",
    "task_type": "a\0b",
    "narrative": "a\0b",
    "final": "a\0b",
    "output_path": "a\0b",
    "run_id": "a\0b",
    "title": b"\1",
    "tags": "a\0b",
}


@pytest.mark.parametrize("column", BAD_ROWS)
async def test_a_row_that_cannot_be_stored_is_named(
    importing: Importing, tmp_path: Path, stored: Stored, column: str
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM observations WHERE id > 2")
        connection.execute(f"UPDATE observations SET {column} = ? WHERE id = 1", (BAD_ROWS[column],))
        connection.commit()
    result = await importing(path)
    assert (result.stored, list(await stored())) == (1, ["Actors"])
    assert [reason.startswith("observation 1: ") for reason in result.failed] == [True]


async def test_a_score_in_text_is_a_score(importing: Importing, tmp_path: Path, stored: Stored) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    change(path, "CREATE TABLE o AS SELECT * FROM observations", "UPDATE o SET final_score = '8.2', quality = '2'")
    change(path, "DROP TABLE observations", "ALTER TABLE o RENAME TO observations")
    await importing(path)
    assert (await stored())["Actors"].final_score == pytest.approx(8.2)


async def test_a_rating_that_cannot_be_taken_is_named(importing: Importing, tmp_path: Path, stored: Stored) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    rows = [
        (11, 999, 1, "of nothing", "2026-01-01"),
        (12, 2, 0, "neither", "2026-01-01"),
        (13, 2, "weird", "no sign", "2026-01-01"),
        (14, 2, None, "none", "2026-01-01"),
        (15, 2, 1, "a\0b", "2026-01-01"),
        (16, 2, 1, "too early", "0001-01-01T00:00:00+14:00"),
        (17, None, 1, "of none", "2026-01-01"),
        (18, 2, -1, b"\1", "2026-01-01"),
        (19, 2, -1, "fine", "2026-01-01"),
    ]
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO memory_feedback_log VALUES (?,?,?,?,?)", rows)
        connection.execute("UPDATE observations SET quality = -2 WHERE id = 2")
        connection.commit()
    result = await importing(path)
    assert (result.stored, result.ratings, (await stored())["Actors"].quality) == (3, 4, -2)
    named = sorted(reason.split(":")[0] for reason in result.failed)
    assert named == ["observation 3", *(f"rating {number}" for number in range(11, 19))]


async def test_a_log_in_other_columns_is_named(importing: Importing, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    change(path, "DROP TABLE memory_feedback_log", "CREATE TABLE memory_feedback_log (id, obs, thumbs)")
    assert [reason.split(":")[0] for reason in (await importing(path)).failed] == ["observation 3"]
    change(path, "INSERT INTO memory_feedback_log VALUES (1, 1, 1), (2, 1, 1)")
    (reason,) = [reason for reason in (await importing(path)).failed if "observation 3" not in reason]
    assert reason.startswith("memory_feedback_log: its columns (id, obs, thumbs)")


async def test_ids_of_any_kind_are_kept_apart(importing: Importing, tmp_path: Path, stored: Stored) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    change(path, "DROP TABLE memory_feedback_log",
           "CREATE TABLE memory_feedback_log (id TEXT, observation_id, rating, comment, timestamp)",
           "UPDATE observations SET quality = NULL",
           f"INSERT INTO memory_feedback_log VALUES ('x', 1, 1, '', NULL), ('x', 1, 1, '', NULL),"
           f" (NULL, 1, 1, '', NULL), ('{'y' * 3000}', 2, 1, '', NULL), ('a:b', 2, 1, '', NULL)")  # fmt: skip
    result = await importing(path)
    assert result.ratings == 5
    assert ((await stored())["Market of supplements"].quality, (await stored())["Actors"].quality) == (3, 2)
    assert (await importing(path)).ratings == 0


async def test_ids_that_look_like_secrets_are_kept_apart(
    importing: Importing, tmp_path: Path, stored: Stored, database: Database, workspace: Workspace
) -> None:
    path = tmp_path / "memory.db"
    harness(path)
    one, other = (f"sk-proj-{'abcdefghijklmnopqrstuvwxyz' + end}" for end in ("0123", "4567"))
    change(path, "DROP TABLE memory_feedback_log",
           "CREATE TABLE memory_feedback_log (id TEXT, observation_id, rating, comment, timestamp)",
           "UPDATE observations SET quality = NULL",
           f"INSERT INTO memory_feedback_log VALUES ('{one}', 1, 1, 'by {one}', NULL), ('{other}', 1, 1, '', NULL)",
           )  # fmt: skip
    assert (await importing(path)).ratings == 2
    market = (await stored())["Market of supplements"]
    log = await Ratings(database=database).of_memory(workspace, market.memory_id)
    assert (market.quality, any(one in entry.comment for entry in log)) == (2, False)


async def test_given_memories_are_logged_for_two_hundred_runs_at_a_time(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace, counter: TokenCounter
) -> None:
    await WriteGate(database=database, counter=counter).remember(
        workspace, [NewMemory(kind="observation", title="Actors", body="Nobody sells it yet.")]
    )
    runs = [{"run_id": f"r{number}", "memory_context_titles": ["Actors"]} for number in range(201)]
    assert (await importing(jsonl(tmp_path / "runs.jsonl", *runs))).failed == []
    async with database.session(workspace) as session:
        counts = await session.column("SELECT count(*) FROM recalls GROUP BY xmin::text ORDER BY count(*)")
    assert counts == [1, 200]


async def test_a_list_without_a_name_is_metadata(
    importing: Importing, tmp_path: Path, database: Database, workspace: Workspace
) -> None:
    assert (await importing(jsonl(tmp_path / "runs.jsonl", {"run_id": "a", "": [1]}))).failed == []
    assert (await run_of(database, workspace, "a")).metadata == {"": [1]}
