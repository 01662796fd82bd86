"""A session for the OpenAI Agents SDK whose words Priors remembers: `pip install priors-client[openai-agents]`.

Another session of the SDK keeps the items, such as its `SQLAlchemySession`, in the database of Priors if you like. What
the user and the assistant say is also stored as turns of a session of Priors: searches find it, and lessons come of it.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from agents.items import TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings

from priors_client.async_client import AsyncClient
from priors_client.errors import NotFound
from priors_client.models import MessageInput

SPOKEN = {"user", "assistant"}
"""The roles whose texts are turns."""
MOST_ITEMS = 1_000_000
"""Items that are asked for where the settings of a session limit them otherwise."""
ID_CHARACTERS = 32
"""Hexadecimal characters of a turn's id: 128 bits, as a UUID has."""


class PriorsSession(SessionABC):
    """A session of the SDK that stores what is said in it as turns, too."""

    def __init__(self, session: SessionABC, client: AsyncClient, *, user: str = "") -> None:
        """`session` keeps the items, and its id names the session. The client belongs to the caller, who closes it.

        The turns of a `user` are found by this user alone.
        """
        self._session, self._client, self._user = session, client, user
        self.session_id = session.session_id

    @property
    def session_settings(self) -> SessionSettings | None:  # type: ignore[override]  # they are the other session's
        """The settings of the session that keeps the items."""
        return self._session.session_settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the latest items in their order; all for None, unless the settings have a limit."""
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Stores what is said in items, and adds them at the end.

        Where the turns cannot be stored, no item is added. The same call made again stores no turn twice.
        """
        turns = _turns(await self._session.get_items(self._all()), items)
        if turns:
            await self._client.admin.append_messages(self.session_id, turns, user=self._user or None)
        await self._session.add_items(items)

    def _all(self) -> int | None:
        """Returns the limit that gets all items, or more than any session has where the settings have a limit."""
        settings = self._session.session_settings
        return MOST_ITEMS if settings is not None and settings.limit is not None else None

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the latest item and returns it; None if there is none. Its turn stays: it was said."""
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        """Removes all items, and the turns."""
        await self._session.clear_session()
        with suppress(NotFound):
            await self._client.admin.delete_session(self.session_id, user=self._user)


def _turns(before: Sequence[TResponseInputItem], items: Sequence[TResponseInputItem]) -> list[MessageInput]:
    """Returns what is said in items. The id of a turn follows from its item and all before it."""
    turns, hashed = list[MessageInput](), sha256()
    for number, given in enumerate([*before, *items]):
        item: dict[str, Any] = dict(given)
        hashed.update(json.dumps(item, sort_keys=True, default=str).encode())
        text = _text(item.get("content", "")) if item.get("role") in SPOKEN else ""
        if number >= len(before) and text.strip():
            turns.append(MessageInput(id=hashed.hexdigest()[:ID_CHARACTERS], role=item["role"], text=text))
    return turns


def _text(content: Any) -> str:  # noqa: ANN401 - the SDK's types differ by the kind of item
    """Returns the text of a message's content."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
