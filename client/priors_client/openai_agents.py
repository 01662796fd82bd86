"""A session for the OpenAI Agents SDK that Priors keeps: `pip install priors-client[openai-agents]`.

It answers as the SDK's own `SQLiteSession` does; a test compares the two. Three things differ: secrets in texts are
masked, unless the service is told not to (PRIORS_MASK_SECRETS); an item has at most a megabyte of JSON; and two
processes that pop at the same moment may get the same item.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast
from uuid import uuid4

from agents.items import TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, resolve_session_limit

from priors_client.async_client import AsyncClient
from priors_client.models import ItemPutInput, ItemSearchInput, ItemView

ROOT = "agent sessions"
"""The first label of the namespaces of sessions; the second is the session's id."""
PAGE = 1_000
"""Items that are read or written at once."""
SPOKEN = {"user", "assistant"}
"""The roles whose texts queries find."""


class PriorsSession(SessionABC):
    """The items of a conversation, which any process may go on with. What was said in it is found by searches."""

    def __init__(
        self, session_id: str, client: AsyncClient, *, session_settings: SessionSettings | None = None
    ) -> None:
        """The client belongs to the caller, who closes it."""
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._client = client
        self._namespace = (ROOT, session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the latest items in their order; all for None, unless the settings have a limit."""
        most = resolve_session_limit(limit, self.session_settings)
        found = [_item_of(one) async for one in self._stored()]
        return found if most is None or most < 0 else found[len(found) - min(most, len(found)) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end, at most 1,000 in one step."""
        puts = [
            ItemPutInput(namespace=self._namespace, key=uuid4().hex, value={"item": item}, text=_text(item))
            for item in items
        ]
        await self._write(puts)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the latest item and returns it; None if there is none."""
        stored = [one async for one in self._stored()]
        if not stored:
            return None
        await self._write([self._removal(stored[-1])])
        return _item_of(stored[-1])

    async def clear_session(self) -> None:
        """Removes all items."""
        await self._write([self._removal(one) async for one in self._stored()])

    async def _stored(self) -> AsyncIterator[ItemView]:
        offset = 0
        while True:
            asked = ItemSearchInput(prefix=self._namespace, limit=PAGE, offset=offset)
            page = (await self._client.batch_items(search=[asked])).search[0].items
            for item in page:
                yield item
            offset += len(page)
            if len(page) < PAGE:
                return

    def _removal(self, stored: ItemView) -> ItemPutInput:
        return ItemPutInput(namespace=self._namespace, key=stored.key, value=None)

    async def _write(self, puts: Sequence[ItemPutInput]) -> None:
        for start in range(0, len(puts), PAGE):
            await self._client.batch_items(put=puts[start : start + PAGE])


def _item_of(stored: ItemView) -> TResponseInputItem:
    return cast("TResponseInputItem", stored.value["item"])


def _text(item: TResponseInputItem) -> str:
    """Returns what was said in an item; empty for calls of tools and their results."""
    given: dict[str, Any] = dict(item)
    content = given.get("content", "") if given.get("role") in SPOKEN else ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
