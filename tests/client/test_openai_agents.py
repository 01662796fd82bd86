"""The session for the OpenAI Agents SDK over Priors: it answers as the SDK's own `SQLiteSession` does."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import SQLiteSession
from agents.memory.session import Session, SessionABC
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from priors_client import AsyncClient
from priors_client.openai_agents import PriorsSession

TEXTS = st.sampled_from(["hello", "", "Привет", "line\nbreak", "42", "ü'%s{}"])
ITEMS = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXTS}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": st.lists(st.fixed_dictionaries({"text": TEXTS}))}),
    st.fixed_dictionaries({"type": st.just("function_call"), "arguments": TEXTS, "n": st.sampled_from([1e23, None])}),
)
STEPS = st.one_of(
    st.tuples(st.just("add_items"), st.lists(ITEMS, max_size=4)),
    st.tuples(st.just("add_items"), st.lists(ITEMS, min_size=1, max_size=4)),
    st.tuples(st.just("get_items"), st.sampled_from([None, -1, 0, 1, 2, 100])),
    st.tuples(st.just("pop_item")),
    st.tuples(st.just("clear_session")),
)
CONVERSATIONS = st.lists(STEPS, min_size=4, max_size=14)
FIRST: list[Any] = [("add_items", [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])]


async def compare(session: SessionABC, steps: list[Any]) -> None:
    """Takes steps in both sessions and requires the same answers."""
    reference = SQLiteSession("reference")
    try:
        for name, *arguments in [*FIRST, *steps, ("get_items", None)]:
            wanted = await getattr(reference, name)(*arguments)
            assert await getattr(session, name)(*arguments) == wanted, (name, arguments)
    finally:
        reference.close()


def judge(server: str, workspace: str, session_of: Callable[[str, AsyncClient], SessionABC]) -> None:
    """Compares generated conversations, the same ones each time."""
    numbers = iter(range(1_000))

    def check(steps: list[Any]) -> None:
        async def work() -> None:
            async with AsyncClient(server, workspace=workspace) as client:
                await compare(session_of(f"s-{next(numbers)}", client), steps)

        asyncio.run(work())

    settings(
        max_examples=15,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(CONVERSATIONS)(check))()


async def test_it_answers_as_the_reference_does(server: str, workspace_name: str) -> None:
    await asyncio.to_thread(judge, server, workspace_name, PriorsSession)


class Reversed(PriorsSession):
    async def get_items(self, limit: int | None = None) -> list[Any]:
        return (await super().get_items(limit))[::-1]


class Oldest(PriorsSession):
    async def get_items(self, limit: int | None = None) -> list[Any]:
        found = await super().get_items(-1)
        return found if limit is None or limit < 0 else found[:limit]


class NeverCleared(PriorsSession):
    async def clear_session(self) -> None:
        """Removes nothing."""


class PopsNothing(PriorsSession):
    async def pop_item(self) -> Any:
        return next(iter(await self.get_items(1)), None)


@pytest.mark.parametrize("broken", [Reversed, Oldest, NeverCleared, PopsNothing])
async def test_a_broken_session_fails(server: str, workspace_name: str, broken: type[PriorsSession]) -> None:
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        await asyncio.to_thread(judge, server, workspace_name, broken)


async def test_two_that_pop_at_once_get_different_items(server: str, workspace_name: str) -> None:
    async with AsyncClient(server, workspace=workspace_name) as client:
        session, other = PriorsSession("s", client), PriorsSession("s", client)
        await session.add_items([{"role": "user", "content": str(number)} for number in range(6)])
        popped = await asyncio.gather(*(each.pop_item() for each in (session, other) * 3))
        assert sorted(str(dict(one or {})["content"]) for one in popped) == list("012345")
        assert await session.pop_item() is None


async def test_what_was_said_is_found(server: str, workspace_name: str) -> None:
    async with AsyncClient(server, workspace=workspace_name) as client:
        session = PriorsSession("s", client)
        assert isinstance(session, Session)
        await session.add_items([{"role": "user", "content": "The beam drifts at night."}])
        assert "The beam drifts at night." in (await client.history("drifting beam")).markdown
        await session.clear_session()
        assert (await client.search("drifting beam")).hits == []
