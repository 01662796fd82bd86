"""Session logs below the given paths: stored as sessions beside the reports, and only what is new of them again."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.errors import DatabaseUnavailable, InvalidInput, NotFound
from app.foundation.db.database import Database
from app.intake.reports.store import FileOutcome, IngestionOptions
from app.intake.sessions.browse import SessionDetail, SessionFilters, Sessions
from app.intake.sessions.take_in import SessionIntake, TakenIn
from app.intake.sessions.transcript import ToolUse, Transcript, Turn
from app.storage.memories.filters import Filters
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.intake.sessions import logs


class Home(NamedTuple):
    """A workspace and the services over it."""

    services: Services
    workspace: Workspace

    @property
    def database(self) -> Database:
        return self.services.database

    async def ingest(self, path: Path, options: IngestionOptions | None = None) -> Sequence[FileOutcome]:
        return (await self.services.ingestions.ingest(self.workspace, [path], options)).outcomes

    async def take_in(self, transcript: Transcript) -> TakenIn:
        return await self.services.session_intake.take_in(self.workspace, transcript)


@pytest.fixture
def home(services: Services, workspace: Workspace) -> Home:
    return Home(services, workspace)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "claude.jsonl": logs.CLAUDE_CODE,
        "rollout-1.jsonl": logs.CODEX,
        ".specstory/history/2026-03-04_11-00Z-round.md": logs.SPECSTORY,
        ".aider.chat.history.md": logs.AIDER,
        "conversations.json": logs.CHATGPT,
        "plain.jsonl": logs.MESSAGES,
        "runs.jsonl": '{"run_id": "r1"}\n',
        "report.md": "# A report\n\nThe market grew by nine percent in March.\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


async def _ingested(home: Home, path: Path, options: IngestionOptions | None = None) -> dict[str, FileOutcome]:
    return {Path(outcome.path).name: outcome for outcome in await home.ingest(path, options)}


async def _shown(home: Home, session_id: str) -> SessionDetail:
    return await Sessions(database=home.database).get(home.workspace, session_id)


async def _texts(home: Home, session_id: str) -> list[str]:
    return [message.text for message in (await _shown(home, session_id)).messages]


async def test_every_format_is_taken_in_beside_reports(home: Home, folder: Path) -> None:
    outcomes = await _ingested(home, folder, IngestionOptions(tags=("north",)))
    assert {name: (outcome.status, outcome.chunks) for name, outcome in outcomes.items()} == {
        "claude.jsonl": ("new", 4),
        "rollout-1.jsonl": ("new", 3),
        "2026-03-04_11-00Z-round.md": ("new", 3),
        ".aider.chat.history.md": ("new", 4),
        "conversations.json": ("new", 3),
        "plain.jsonl": ("new", 3),
        "runs.jsonl": ("new", 1),
        "report.md": ("new", 1),
    }
    assert [reason.split(":")[0] for reason in outcomes["plain.jsonl"].skipped] == ["line 4", "line 5"]
    found = await Sessions(database=home.database).page(home.workspace)
    formats = {"messages", "aider", "chatgpt", "specstory", "codex", "claude-code"}
    assert {item.format for item in found} == formats
    assert len(found) == 7
    filters = Filters(kinds=("message",), tags=("north",))
    tagged = await Memories(database=home.database).list_live(home.workspace, filters=filters)
    assert len(tagged) == sum(item.turns for item in found)
    again = await _ingested(home, folder)
    assert {outcome.status for outcome in again.values()} == {"unchanged"}
    touching = SessionFilters(path="app/tax.py")
    (codex,) = await Sessions(database=home.database).page(home.workspace, filters=touching)
    assert codex.session_id == "cx-1"


async def test_an_appended_log_adds_its_new_turns_only(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    first = json.dumps({"role": "user", "text": "use tabs"})
    path.write_text(f'{first}\n{{"role": "assistant", "te')
    outcome = (await _ingested(home, path))["chat.jsonl"]
    assert (outcome.stored, outcome.skipped) == (1, ())
    before = (await _shown(home, str(path))).messages[0].memory_id
    path.write_text(f'{first}\n{{"role": "assistant", "text": "done"}}\n')
    outcome = (await _ingested(home, path))["chat.jsonl"]
    assert (outcome.status, outcome.stored, outcome.chunks) == ("changed", 1, 2)
    shown = await _shown(home, str(path))
    assert [message.text for message in shown.messages] == ["use tabs", "done"]
    assert shown.messages[0].memory_id == before


async def test_a_watch_reads_a_log_again_when_its_size_or_time_is_another(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    watch = IngestionOptions()
    path.write_text('{"role": "user", "text": "use tabs"}\n')
    await _ingested(home, path, watch)
    changed_at = path.stat().st_mtime_ns
    path.write_text('{"role": "user", "text": "use dots"}\n')
    os.utime(path, ns=(changed_at, changed_at))
    assert (await _ingested(home, path, watch))["chat.jsonl"].status == "unchanged"
    assert (await _ingested(home, path))["chat.jsonl"].status == "changed"
    os.utime(path)
    assert (await _ingested(home, path, watch))["chat.jsonl"].status == "unchanged"
    assert await _texts(home, str(path)) == ["use tabs", "use dots"]


def _record(number: int, text: str) -> str:
    message = {"role": "user", "content": text}
    return json.dumps({"type": "user", "sessionId": "cc-1", "uuid": f"u{number}", "message": message})


async def test_an_older_copy_of_a_log_takes_no_turns_away(home: Home, tmp_path: Path) -> None:
    lines = [_record(number, f"step {number}") for number in range(4)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("\n".join(lines[:2]))
    assert (await _ingested(home, tmp_path))["b.jsonl"].status == "unchanged"
    assert await _texts(home, "cc-1") == [f"step {number}" for number in range(4)]


async def test_two_logs_of_one_session_lose_no_turn(home: Home, tmp_path: Path) -> None:
    lines = [_record(number, f"step {number}") for number in range(4)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text("\n".join([*lines[:2], _record(9, "another way")]))
    outcomes = await _ingested(home, tmp_path)
    assert {name: (outcome.stored, outcome.notes) for name, outcome in outcomes.items()} == {
        "a.jsonl": (4, ()),
        "b.jsonl": (1, ("kept 2 turns that it no longer has",)),
    }
    both = [*(f"step {number}" for number in range(4)), "another way"]
    assert await _texts(home, "cc-1") == both
    with (tmp_path / "b.jsonl").open("a") as log:
        log.write("\n" + _record(10, "and on"))
    assert (await _ingested(home, tmp_path))["b.jsonl"].stored == 1
    assert await _texts(home, "cc-1") == [*both, "and on"]


async def test_a_log_that_goes_on_in_another_file_is_one_session(home: Home, tmp_path: Path) -> None:
    lines = [_record(number, f"step {number}") for number in range(4)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines[:2]))
    await _ingested(home, tmp_path)
    (tmp_path / "b.jsonl").write_text("\n".join(lines))
    outcome = (await _ingested(home, tmp_path))["b.jsonl"]
    assert (outcome.stored, outcome.notes) == (2, ())
    assert len(await Sessions(database=home.database).page(home.workspace)) == 1


async def test_a_log_that_is_cut_in_a_line_is_read_to_there_and_then_on(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = "\n".join(_record(number, f"step {number}") for number in range(3)).replace("step 2", "größer").encode()
    path.write_bytes(whole[: whole.rindex("ö".encode()) + 1])
    outcome = (await _ingested(home, path))["a.jsonl"]
    assert (outcome.stored, outcome.skipped) == (2, ())
    path.write_bytes(whole)
    assert (await _ingested(home, path))["a.jsonl"].stored == 1


async def test_a_turn_that_only_used_a_tool_without_a_name_is_a_turn(home: Home) -> None:
    def given(*tools: ToolUse) -> Transcript:
        turn = Turn(ordinal=0, role="tool", text=" ", tools=tools)
        return Transcript(session_id="wordless", format="messages", turns=(turn,))

    assert (await home.take_in(given(ToolUse(name="")))).stored == 1
    with pytest.raises(InvalidInput, match="none of them says or does anything"):
        await home.take_in(given())


async def test_a_title_that_a_log_gets_later_is_stored(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(_record(0, "round the totals"))
    await _ingested(home, path)
    path.write_text(_record(0, "round the totals") + '\n{"type": "summary", "summary": "Rounding"}')
    assert (await _ingested(home, path))["a.jsonl"].status == "unchanged"
    assert (await _shown(home, "cc-1")).session.title == "Rounding"


def _conversation(name: str) -> dict[str, object]:
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [f"hello from {name}"]}}
    return {"conversation_id": name, "current_node": "a", "mapping": {"a": {"message": message, "children": []}}}


async def test_a_session_that_cannot_be_stored_is_a_failure_and_stops_nothing(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([_conversation(name) for name in ("c1", "..", "c3")]))
    outcome = (await _ingested(home, path))["conversations.json"]
    assert (outcome.status, outcome.stored) == ("failed", 2)
    assert outcome.reason.startswith("1 of 3 sessions could not be stored: session 2: ")
    assert await _texts(home, "c3") == ["hello from c3"]


async def test_a_log_that_was_read_half_is_read_again(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([_conversation(name) for name in ("c1", "c2")]))

    take_in = SessionIntake.take_in

    async def interrupted(service: SessionIntake, target: Workspace, transcript: Transcript, **given: Any) -> TakenIn:
        if transcript.session_id == "c2":
            raise DatabaseUnavailable("it stopped")
        return await take_in(service, target, transcript, **given)

    with monkeypatch.context() as patched:
        patched.setattr(SessionIntake, "take_in", interrupted)
        with pytest.raises(DatabaseUnavailable):
            await home.ingest(path)
    await _ingested(home, path)
    assert await _texts(home, "c2") == ["hello from c2"]


async def test_a_tools_input_may_be_nested_deep(home: Home) -> None:
    nested: dict[str, object] = {}
    for _ in range(900):
        nested = {"a": nested}
    turn = Turn(ordinal=0, role="user", text="hello", tools=(ToolUse(name="x", input=nested),))
    await home.take_in(Transcript(session_id="deep", format="messages", turns=(turn,)))
    shown = await Sessions(database=home.database).get(home.workspace, "deep")
    assert shown.messages[0].tools[0].name == "x"


async def test_a_session_outlives_its_log(home: Home, folder: Path) -> None:
    await _ingested(home, folder)
    (folder / "claude.jsonl").unlink()
    assert "claude.jsonl" not in await _ingested(home, folder)
    assert len(await _texts(home, "cc-47")) == 4


async def test_a_deleted_session_stays_deleted_though_its_log_grows(home: Home, folder: Path) -> None:
    path = folder / "plain.jsonl"
    await _ingested(home, folder)
    await Sessions(database=home.database).delete(home.workspace, str(path))
    path.write_text(logs.MESSAGES.rpartition("\n")[0] + '\n{"role": "user", "text": "more"}\n')
    assert (await _ingested(home, folder))["plain.jsonl"].status == "unchanged"
    with pytest.raises(NotFound):
        await _shown(home, str(path))


async def test_a_log_that_was_taken_for_a_report_becomes_a_session(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n\nThe totals are rounded to cents.\n")
    await _ingested(home, path)
    path.write_text(logs.SPECSTORY)
    outcomes = await home.ingest(path)
    assert [(outcome.status, outcome.notes) for outcome in outcomes] == [
        ("new", ("was taken for a report before: 1 chunk retired",))
    ]


async def test_json_lines_that_are_no_log_are_records(home: Home, folder: Path) -> None:
    outcome = (await _ingested(home, folder / "runs.jsonl"))["runs.jsonl"]
    assert (outcome.status, outcome.chunks) == ("new", 1)
    (record,) = await Memories(database=home.database).list_live(home.workspace, filters=Filters(kinds=("chunk",)))
    assert record.body == "run_id: r1"


async def test_a_dry_run_stores_nothing(home: Home, folder: Path) -> None:
    outcomes = await _ingested(home, folder, IngestionOptions(dry_run=True))
    assert outcomes["claude.jsonl"].status == "new"
    assert await Sessions(database=home.database).page(home.workspace) == []


def _transcript(count: int, *, prefix: str = "turn") -> Transcript:
    turns = tuple(
        Turn(ordinal=place, role="user" if place % 2 == 0 else "assistant", text=f"{prefix} {place} of many")
        for place in range(count)
    )
    return Transcript(session_id="long", format="messages", turns=turns)


async def test_two_at_once_store_a_session_once(home: Home) -> None:
    given = [_transcript(40), _transcript(60), _transcript(50), _transcript(60)]
    await asyncio.gather(*(home.take_in(transcript) for transcript in given))
    shown = await Sessions(database=home.database).get(home.workspace, "long")
    assert [message.ordinal for message in shown.messages] == list(range(60))
    assert [message.text for message in shown.messages] == [turn.text for turn in _transcript(60).turns]


async def test_more_turns_than_a_statement_takes(home: Home) -> None:
    taken = await home.take_in(_transcript(2_100))
    assert (taken.status, taken.stored, len(taken.pending)) == ("new", 2_100, 2_100)
    taken = await home.take_in(_transcript(2_101))
    assert (taken.status, taken.stored, taken.retired) == ("changed", 1, 0)
    shown = await Sessions(database=home.database).get(home.workspace, "long")
    assert len(shown.messages) == 2_101
