"""Memory backends that wait for a service. `backend.py` is made from this file by `client/generate.py`."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from msgspec import UNSET

from priors_client.async_client import AsyncClient
from priors_client.entries import (
    LARGEST_K,
    Entry,
    NotAccepted,
    checked,
    checked_k,
    checked_query,
    checked_tags,
    entry_of,
    in_utc,
    is_unused,
)
from priors_client.errors import InvalidRequest, Refused
from priors_client.models import Filters

P = TypeVar("P")

MOST_AT_ONCE = 10_000
"""Most notes that a service deletes at once."""
NOBODY = ""
"""The user of notes that belong to no user."""


class AsyncMemoryBackend(Protocol):
    """Keeps what an agent learns, in one workspace. Every backend passes the same tests (docs/how-to/clients.md)."""

    async def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        """Stores a content and, as its context, how it was learnt; returns its id.

        A known content is not stored twice: its entry gains the tags, and takes the context if one is given.

        Raises:
            NotAccepted: it cannot be stored, or is not worth or safe to keep.
        """
        ...

    async def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        """Returns at most `k` entries that matter for a query and have all these tags, best first.

        Of near-identical ones it may return one. Each returned entry is accessed once more, as its next answers say.

        Raises:
            NotAccepted: the query is empty, or an argument out of range.
        """
        ...

    async def recent(self, k: int = 10) -> list[Entry]:
        """Returns the `k` entries that were stored last, the newest first."""
        ...

    async def by_tag(self, tag: str, k: int = 10) -> list[Entry]:
        """Returns the `k` entries with this tag that were stored last, the newest first."""
        ...

    async def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        """Deletes the entries that were stored before a moment, not accessed since, and at most so often before.

        Returns their ids, in the order in which they were stored.
        """
        ...

    async def delete(self, entry_id: UUID) -> bool:
        """Deletes an entry; returns False if there is none of this id."""
        ...


class AsyncNotes(Generic[P]):
    """The part of a backend over a service that lists and deletes the notes of a workspace.

    A `P` names the place of a page in a list.
    """

    async def recent(self, k: int = 10) -> list[Entry]:
        """Returns the `k` notes that were stored last, the newest first."""
        return (await self._page((), checked_k(k)))[0]

    async def by_tag(self, tag: str, k: int = 10) -> list[Entry]:
        """Returns the `k` notes with this tag that were stored last, the newest first."""
        return (await self._page(checked_tags([tag]), checked_k(k)))[0]

    async def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        """Moves notes to the trash: stored before a moment, not accessed since, and at most so often before.

        Returns their ids, in the order in which they were stored.
        """
        moment, found = in_utc(unused_since), list[UUID]()
        entries, following = await self._page((), LARGEST_K, oldest=True)
        while entries:
            found += [one.id for one in entries if is_unused(one, since=moment, most_accesses=most_accesses)]
            if following is None or entries[-1].created_at >= moment:
                break
            entries, following = await self._page((), LARGEST_K, oldest=True, after=following)
        gone = [await self._delete(found[start : start + MOST_AT_ONCE]) for start in range(0, len(found), MOST_AT_ONCE)]
        return [entry_id for ids in gone for entry_id in ids]

    async def delete(self, entry_id: UUID) -> bool:
        """Moves a note to the trash; returns False if there is none of this id."""
        return bool(await self._delete([entry_id]))

    async def _page(
        self, tags: Sequence[str], limit: int, *, oldest: bool = False, after: P | None = None
    ) -> tuple[list[Entry], P | None]:
        """Returns notes that have these tags, and the place after which the next ones are; None at the end."""
        raise NotImplementedError

    async def _delete(self, ids: Sequence[UUID]) -> Sequence[UUID]:
        """Moves notes to the trash; returns those that were there."""
        raise NotImplementedError


class AsyncRemote(AsyncNotes[str]):
    """The notes of a service's workspace that belong to no user. The client is the caller's, who closes it."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        """Stores a note; its context stands in the metadata, and secrets in it are masked.

        Raises:
            NotAccepted: it cannot be stored, or is not worth or safe to keep.
        """
        given = checked(content, context, tags)
        try:
            stored = await self._client.store("note", body=given.content, metadata=given.metadata, tags=given.tags)
        except (InvalidRequest, Refused) as error:
            raise NotAccepted(str(error)) from error
        (entry_id,) = stored.ids
        assert entry_id is not None, "the service answers a refusal with an error"  # noqa: S101
        return entry_id

    async def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        """Returns at most `k` notes that matter for a query and have all these tags, best first.

        Raises:
            NotAccepted: the query is empty, or an argument out of range.
        """
        filters = Filters(kinds=["note"], tags=checked_tags(tags))
        found = await self._client.search(checked_query(query), k=checked_k(k), filters=filters)
        return [entry_of(hit.id, hit) for hit in found.hits]

    async def _page(
        self, tags: Sequence[str], limit: int, *, oldest: bool = False, after: str | None = None
    ) -> tuple[list[Entry], str | None]:
        page = await self._client.admin.memories(
            user=NOBODY, kind=["note"], tag=tags, order="asc" if oldest else "desc", limit=limit, cursor=after or UNSET
        )
        return [entry_of(memory.id, memory) for memory in page.memories], page.next

    async def _delete(self, ids: Sequence[UUID]) -> Sequence[UUID]:
        return (await self._client.admin.change_memories(ids, user=NOBODY, state="deleted")).changed
