"""A session for the OpenAI Agents SDK that Priors keeps: `pip install priors-client[openai-agents]`.

It answers as the SDK's own `SQLiteSession` does; a test compares the two. Two things differ: secrets in texts are
masked, unless the service is told not to (PRIORS_MASK_SECRETS), and an item has at most a megabyte of JSON.
"""

from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

from agents.items import TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, resolve_session_limit

from priors_client.async_client import AsyncClient
from priors_client.models import Item, ItemPut, ItemSearch

ROOT = "agent sessions"
"""The first label of the namespaces of sessions; the second is the session's id."""
PAGE = 1_000
"""Items that are read or written at once."""
SPOKEN = {"user", "assistant"}
"""The roles whose texts queries find."""


class PriorsSession(SessionABC):
    """The items of a conversation, which any process may go on with. What was said in it is found by searches."""

    def __init__(
        self,
        session_id: str,
        client: AsyncClient,
        *,
        session_settings: SessionSettings | None = None,
        user: str = "",
    ) -> None:
        """The client belongs to the caller, who closes it. The session of a `user` is found by this user alone."""
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._client, self._user = client, user
        self._namespace = (ROOT, session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the latest items in their order; all for None, unless the settings have a limit."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is None or most < 0:
            return [_item_of(one) for one in await self._stored()]
        return [_item_of(one) for one in reversed(await self._stored(most))]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end, at most 1,000 in one step."""
        puts = [
            ItemPut(namespace=self._namespace, key=uuid4().hex, value={"item": item}, text=_text(item))
            for item in items
        ]
        await self._write(puts)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the latest item and returns it; None if there is none. Of several that pop, each gets another one."""
        while latest := await self._stored(1):
            if await self._write([self._removal(latest[0])]):
                return _item_of(latest[0])
        return None

    async def clear_session(self) -> None:
        """Removes all items."""
        while found := await self._stored(PAGE):
            await self._write([self._removal(one) for one in found])

    async def _stored(self, most: int | None = None) -> list[Item]:
        """Returns all items in their order, or at most the latest, the last one first."""
        found: list[Item] = []
        while most is None or len(found) < most:
            limit = PAGE if most is None else min(PAGE, most - len(found))
            asked = ItemSearch(prefix=self._namespace, limit=limit, offset=len(found), reverse=most is not None)
            page = (await self._client.admin.batch_items(search=[asked], user=self._user)).search[0].items
            found += page
            if len(page) < limit:
                break
        return found

    def _removal(self, stored: Item) -> ItemPut:
        return ItemPut(namespace=self._namespace, key=stored.key, value=None)

    async def _write(self, puts: Sequence[ItemPut]) -> int:
        """Returns the number of items that it removed."""
        removed = 0
        for start in range(0, len(puts), PAGE):
            answer = await self._client.admin.batch_items(put=puts[start : start + PAGE], user=self._user)
            removed += len(answer.removed)
        return removed


def _item_of(stored: Item) -> TResponseInputItem:
    return cast("TResponseInputItem", stored.value["item"])


def _text(item: TResponseInputItem) -> str:
    """Returns what was said in an item; empty for calls of tools and their results."""
    given: dict[str, Any] = dict(item)
    content = given.get("content", "") if given.get("role") in SPOKEN else ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
