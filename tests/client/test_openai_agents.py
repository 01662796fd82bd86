"""The session for the OpenAI Agents SDK: another session keeps the items, and Priors finds what was said."""

from typing import Any

import pytest
from agents import SQLiteSession
from agents.memory.session import Session
from agents.memory.session_settings import SessionSettings
from priors_client import AsyncClient, ConnectionFailed
from priors_client.openai_agents import PriorsSession

CALL: Any = {"type": "function_call", "arguments": "{}", "call_id": "c", "name": "weather"}


async def test_what_was_said_is_found_until_the_session_is_cleared(server: str, workspace_name: str) -> None:
    kept = SQLiteSession("s")
    async with AsyncClient(server, workspace=workspace_name) as client:
        session = PriorsSession(kept, client)
        assert isinstance(session, Session)
        await session.clear_session()
        said: list[Any] = [
            {"role": "user", "content": "The beam drifts at night."},
            CALL,
            {"role": "assistant", "content": [{"text": "Calibrate the beam before noon."}, {"type": "refusal"}]},
            {"role": "user", "content": ""},
        ]
        await session.add_items(said)
        assert await session.get_items() == await kept.get_items() == said
        assert await session.get_items(1) == said[-1:]
        turns = (await client.admin.session_messages("s")).messages
        assert [(turn.role, turn.text) for turn in turns] == [
            ("user", "The beam drifts at night."),
            ("assistant", "Calibrate the beam before noon."),
        ]
        assert "The beam drifts at night." in (await client.history("drifting beam")).markdown
        assert await session.pop_item() == said[-1]
        await session.clear_session()
        assert await session.get_items() == []
        assert (await client.search("drifting beam")).hits == []
    kept.close()


async def test_a_call_that_failed_stores_each_turn_once_when_it_is_made_again(
    server: str, workspace_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = SQLiteSession("s", session_settings=SessionSettings(limit=1))
    said: list[Any] = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Done."}]
    async with AsyncClient("http://127.0.0.1:9", workspace=workspace_name, retries=0) as away:
        with pytest.raises(ConnectionFailed):
            await PriorsSession(kept, away).add_items(said)
    assert await kept.get_items(9) == [], "what is not stored is added by the next try"
    async with AsyncClient(server, workspace=workspace_name) as client:
        session = PriorsSession(kept, client)
        add = kept.add_items

        async def refuse(_items: list[Any]) -> None:
            raise OSError("the disk is full")

        monkeypatch.setattr(kept, "add_items", refuse)
        with pytest.raises(OSError, match="full"):
            await session.add_items(said)
        monkeypatch.setattr(kept, "add_items", add)
        await session.add_items(said)
        await session.add_items(said)
        turns = (await client.admin.session_messages("s")).messages
        assert [turn.text for turn in turns] == ["Go on.", "Done."] * 2, "the same words later are other turns"
    kept.close()


async def test_the_turns_of_a_user_are_found_by_this_user_alone(server: str, workspace_name: str) -> None:
    async with AsyncClient(server, workspace=workspace_name) as client:
        session = PriorsSession(SQLiteSession("s"), client, user="ann")
        await session.add_items([{"role": "user", "content": "The beam drifts at night."}])
        assert (await client.search("drifting beam")).hits == []
        assert [hit.body for hit in (await client.search("drifting beam", user="ann")).hits]
