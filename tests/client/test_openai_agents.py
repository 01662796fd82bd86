"""The session for the OpenAI Agents SDK: another session keeps the items, and Priors finds what was said."""

from typing import Any

from agents import SQLiteSession
from agents.memory.session import Session
from priors_client import AsyncClient
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


async def test_the_turns_of_a_user_are_found_by_this_user_alone(server: str, workspace_name: str) -> None:
    async with AsyncClient(server, workspace=workspace_name) as client:
        session = PriorsSession(SQLiteSession("s"), client, user="ann")
        await session.add_items([{"role": "user", "content": "The beam drifts at night."}])
        assert (await client.search("drifting beam")).hits == []
        assert [hit.body for hit in (await client.search("drifting beam", user="ann")).hits]
