"""A session loses no turn by being read again: grown, cut off, compacted, blanked, sent twice, or better read."""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from app.foundation.db.database import Database
from app.intake.sessions import prepare
from app.intake.sessions.browse import Sessions
from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.take_in import TakenIn
from app.intake.sessions.transcript import ToolUse, Transcript, Turn
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

DATA = Path(__file__).parents[4] / "shared" / "data"
LOGS = sorted(path for path in (DATA / "real-logs-dev" / "logs").rglob("*") if path.suffix in {".md", ".jsonl"})
BLANKED = DATA / "field-dev" / "27-log-blanked-by-compaction"
START = datetime(2026, 7, 1, 10, tzinfo=UTC)
Said = tuple[str, str]


class Home(NamedTuple):
    """A workspace and the services over it."""

    services: Services
    workspace: Workspace

    async def take_in(self, transcript: Transcript, *, path: str = "") -> TakenIn:
        return await self.services.session_intake.take_in(self.workspace, transcript, path=path)

    async def append(self, session_id: str, turns: Sequence[Turn]) -> TakenIn:
        return await self.services.session_intake.append(self.workspace, session_id, turns, format="messages")


@pytest.fixture
def home(services: Services, workspace: Workspace) -> Home:
    return Home(services, workspace)


def _turn(number: int, role: str, text: str, **more: Any) -> Turn:
    return Turn(ordinal=number, role=role, text=text, **more)


def _session(*turns: Turn, unspoken: Sequence[Turn] = ()) -> Transcript:
    placed = tuple(replace(turn, ordinal=place) for place, turn in enumerate(turns))
    return Transcript(session_id="s", format="messages", turns=placed, unspoken=tuple(unspoken))


def _conversation(count: int, *, ids: bool = True, dated: bool = True) -> list[Turn]:
    """Returns turns of which every third says only "go on"."""
    return [
        _turn(
            number,
            "user" if number % 2 == 0 else "assistant",
            "go on" if number % 3 == 2 else f"step {number} of the migration is written down here",
            at=START + timedelta(minutes=number) if dated else None,
            message_id=f"u{number}" if ids else "",
        )
        for number in range(count)
    ]


async def _shown(home: Home, session_id: str = "s") -> list[Said]:
    found = await Sessions(database=home.services.database).get(home.workspace, session_id)
    places = [message.ordinal for message in found.messages]
    assert places == sorted(set(places))
    return [(message.role, message.text) for message in found.messages]


def _said(turns: Sequence[Turn]) -> list[Said]:
    return [(turn.role, turn.text) for turn in turns]


@pytest.mark.parametrize(("ids", "dated"), [(True, True), (True, False), (False, True)])
async def test_parts_of_a_session_in_any_order_make_the_whole(home: Home, *, ids: bool, dated: bool) -> None:
    turns = _conversation(30, ids=ids, dated=dated)
    draw = random.Random(7)  # noqa: S311 - a test's choice
    parts = [turns[:4], turns[10:14], turns[:20], turns[8:], turns[:2], draw.sample(turns, 12), turns]
    for part in parts:
        await home.take_in(_session(*sorted(part, key=lambda turn: turn.ordinal)))
    assert sorted(await _shown(home)) == sorted(_said(turns))
    if dated:
        assert await _shown(home) == _said(turns)
    assert (await home.take_in(_session(*turns[3:9]))).missing == 24


async def test_turns_without_id_and_time_grow_at_the_end_and_lose_nothing(home: Home) -> None:
    turns = _conversation(24, ids=False, dated=False)
    for count in (3, 9, 6, 24, 12):
        await home.take_in(_session(*turns[:count]))
    assert await _shown(home) == _said(turns)
    compacted = await home.take_in(_session(*turns[15:], _turn(9, "user", "and one more thing")))
    assert (compacted.stored, compacted.retired, compacted.missing) == (1, 0, 15)
    assert await _shown(home) == [*_said(turns), ("user", "and one more thing")]


async def test_many_at_once_store_each_turn_once_and_in_order(home: Home) -> None:
    turns = _conversation(16, ids=False)
    sizes = [size for number in range(8) for size in (2 * number + 2, 16, 4)]
    await asyncio.gather(*(home.take_in(_session(*turns[:size])) for size in sizes))
    assert await _shown(home) == _said(turns)
    again = [turns[place : place + 2] for place in range(0, 16, 2)]
    named = [[replace(turn, message_id=f"m{turn.ordinal}", at=None) for turn in pair] for pair in again]
    await asyncio.gather(*(home.append("t", pair) for pair in named * 3))
    assert sorted(await _shown(home, "t")) == sorted(_said(turns))


async def test_a_turn_that_was_still_being_written_is_replaced_and_not_by_its_beginning(home: Home) -> None:
    first, second = _conversation(2)
    written = replace(second, text=f"{second.text}\n\nIt is tested, too.", tools=(ToolUse(name="Bash", result="ok"),))
    called = replace(written, tools=(ToolUse(name="Bash"),))
    outcomes = [await home.take_in(_session(first, turn)) for turn in (second, called, written, second, called)]
    assert [(item.stored, item.retired, item.missing) for item in outcomes] == [
        (2, 0, 0),
        (1, 1, 0),
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
    ]
    found = await Sessions(database=home.services.database).get(home.workspace, "s")
    assert [message.text for message in found.messages] == [first.text, written.text]
    assert found.messages[1].tools[0].result == "ok"


async def test_a_growing_turn_without_id_is_one_turn(home: Home) -> None:
    first, second = _conversation(2, ids=False, dated=False)
    grown = replace(second, text=f"{second.text}\n\nIt is tested, too.")
    await home.take_in(_session(first, second))
    taken = await home.take_in(_session(first, grown))
    assert (taken.stored, taken.retired, taken.missing) == (1, 1, 0)
    assert await _shown(home) == _said([first, grown])


async def test_words_that_are_repeated_after_a_compaction_are_said_twice(home: Home) -> None:
    yes = [_turn(place, "user", "yes", message_id=f"y{place}", at=START + timedelta(hours=place)) for place in range(3)]
    for turn in yes:
        await home.take_in(_session(turn))
    assert await _shown(home) == [("user", "yes")] * 3


async def test_a_turn_that_a_person_deleted_stays_deleted(home: Home, database: Database, workspace: Workspace) -> None:
    turns = _conversation(6)
    await home.take_in(_session(*turns))
    found = await Sessions(database=database).get(workspace, "s")
    await Memories(database=database).delete(workspace, ids=[found.messages[3].memory_id])
    for given in (turns, turns[2:], [*turns[:3], replace(turns[3], text="step 3, in other words")]):
        taken = await home.take_in(_session(*given))
        assert taken.stored == 0
    assert await _shown(home) == _said([*turns[:3], *turns[4:]])


def _earlier_reader(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(prepare, "VERSION", prepare.VERSION - 1)
    return monkeypatch


async def test_what_a_better_reader_finds_to_be_no_speech_is_no_turn_any_longer(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = _conversation(8)
    summary = _turn(8, "user", "This session is being continued from a previous conversation. The user likes tabs.")
    notice = _turn(9, "user", "<task-notification>the build is done</task-notification>", message_id="n1")
    old = [replace(turn, message_id="") for turn in (*turns[:4], summary, notice, *turns[4:])]
    with monkeypatch.context() as patched:
        _earlier_reader(patched)
        await home.take_in(_session(*old))
    assert len(await _shown(home)) == 10
    taken = await home.take_in(_session(*turns[2:], unspoken=[replace(summary, message_id="s1"), notice]))
    assert (taken.turns, taken.stored, taken.retired, taken.missing) == (8, 0, 2, 2)
    assert await _shown(home) == _said(turns)
    assert [(await home.take_in(_session(*turns))).status for _ in range(2)] == ["changed", "unchanged"]


async def test_a_better_reader_changes_roles_texts_and_cuts_and_each_turn_stays_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = _conversation(9, ids=False)
    thinking = replace(turns[4], text=f"<thinking-content>{'hm ' * 20}</thinking-content>\n{turns[4].text}")
    halves = [replace(turns[7], text="Now the second half of step 7 is on the way.", at=turns[7].at)]
    joined = replace(turns[7], text=f"{turns[7].text}\n\n{halves[0].text}")
    with monkeypatch.context() as patched:
        _earlier_reader(patched)
        old = [*turns[:3], replace(turns[3], role="user"), thinking, *turns[5:8], *halves, turns[8]]
        await home.take_in(_session(*old))
        before = await Sessions(database=home.services.database).get(home.workspace, "s")
    new = [replace(turn, message_id=f"u{turn.ordinal}") for turn in (*turns[:7], joined, turns[8])]
    taken = await home.take_in(_session(*new))
    assert (taken.turns, taken.stored, taken.retired, taken.missing) == (9, 2, 3, 0)
    assert await _shown(home) == _said(new)
    after = await Sessions(database=home.services.database).get(home.workspace, "s")
    same = (0, 1, 2, 3, 5, 6)
    assert [after.messages[place].memory_id for place in same] == [before.messages[place].memory_id for place in same]


@pytest.mark.skipif(not LOGS, reason="the real logs are not here (shared/data/real-logs-dev)")
@pytest.mark.parametrize("path", LOGS[::3], ids=lambda path: path.name[:40])
async def test_a_real_log_that_grows_gives_each_turn_once_and_in_order(home: Home, path: Path) -> None:
    content = await asyncio.to_thread(path.read_bytes)
    whole = read_log(content, suffix=path.suffix, session_id=str(path))
    assert whole is not None
    draw = random.Random(len(content))  # noqa: S311 - a test's choice
    ends = [place + 1 for place, sign in enumerate(content) if sign == ord("\n") and place > len(content) // 10]
    cuts = sorted(draw.sample(ends, 4))
    for cut in (*cuts, cuts[1], len(content)):
        log = read_log(content[:cut], suffix=path.suffix, session_id=str(path))
        for item in log.transcripts if log else ():
            if item.turns:
                await home.take_in(item, path=str(path))
    for transcript in whole.transcripts:
        shown = await _shown(home, transcript.session_id)
        assert shown == _said([turn for turn in transcript.turns if prepare.body_of(turn).strip()])


@pytest.mark.skipif(not BLANKED.exists(), reason="the field cases are not here (shared/data/field-dev)")
async def test_a_log_that_compaction_blanked_keeps_what_was_said(home: Home) -> None:
    seen = list[list[str]]()
    for name in ("1-whole", "2-blanked", "3-compacted", "1-whole"):
        content = await asyncio.to_thread((BLANKED / f"{name}.jsonl").read_bytes)
        log = read_log(content, suffix=".jsonl", session_id="log")
        assert log is not None
        await home.take_in(log.transcripts[0])
        seen.append([text for _, text in await _shown(home, log.transcripts[0].session_id)])
    assert [len(texts) for texts in seen] == [6, 8, 9, 9]
    assert seen[1][:6] == seen[0]
    assert seen[2] == seen[3] == [*seen[0], "Go on.", "I look at where we are.", "Write the test for the alias."]
    assert json.dumps(seen).count("being continued") == 0
