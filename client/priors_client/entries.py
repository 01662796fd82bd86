"""The entries of memory backends, and the rules for what every backend takes."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from msgspec import Struct

from priors_client.errors import PriorsError

CONTENT_LIMIT, CONTEXT_LIMIT, QUERY_LIMIT = 200_000, 10_000, 300_000
"""Most characters of a content, of a context and of a query."""
TAG_LIMIT, TAGS_LIMIT = 100, 64
"""Most characters of a tag, and most tags of a call."""
LARGEST_K = 200
"""Most entries of one answer."""
CONTEXT = "context"
"""The key of the context in a note's metadata."""


class NotAccepted(PriorsError, ValueError):
    """A backend does not take this, and nothing has changed. The message names the argument and the remedy."""


class Entry(Struct, frozen=True, kw_only=True):
    """A content that a backend keeps."""

    id: UUID
    content: str
    context: str = ""
    """How it was learnt."""
    tags: tuple[str, ...] = ()
    """Sorted, each once."""
    created_at: datetime
    accessed_at: datetime | None = None
    """The latest search that returned it; None if there was none."""
    access_count: int = 0
    """The number of searches that returned it."""


class Noted(Protocol):
    """A note as a service, or its answer, has it; only its id has different names."""

    @property
    def body(self) -> str:
        """The content."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata, with the context."""

    @property
    def tags(self) -> Iterable[str]:
        """The tags in any order."""

    @property
    def created_at(self) -> datetime:
        """The time at which it was stored."""

    @property
    def accessed_at(self) -> datetime | None:
        """The latest search that returned it."""

    @property
    def access_count(self) -> int:
        """The number of searches that returned it."""


class Stored(Struct, frozen=True):
    """The checked arguments of `store`."""

    content: str
    context: str
    tags: tuple[str, ...]

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the note that keeps it."""
        return {CONTEXT: self.context} if self.context else {}


def context_in(metadata: Mapping[str, Any]) -> str:
    """Returns the context that a note's metadata has; a value of another type is none."""
    found = metadata.get(CONTEXT)
    return found if isinstance(found, str) else ""


def entry_of(entry_id: UUID, note: Noted) -> Entry:
    """Returns the entry that a note keeps."""
    return Entry(
        id=entry_id,
        content=note.body,
        context=context_in(note.metadata),
        tags=tuple(sorted(note.tags)),
        created_at=note.created_at,
        accessed_at=note.accessed_at,
        access_count=note.access_count,
    )


def checked(content: str, context: str, tags: Iterable[str]) -> Stored:
    """Returns the arguments of `store`, the tags sorted.

    Raises:
        NotAccepted: one is empty, too long, or holds characters that cannot be stored.
    """
    if not content.strip():
        raise NotAccepted("content: is empty; an entry needs text")
    _check_text("content", content, CONTENT_LIMIT)
    _check_text("context", context, CONTEXT_LIMIT)
    return Stored(content, context, checked_tags(tags))


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Returns the tags sorted, each once.

    Raises:
        NotAccepted: there are too many, or one cannot be stored.
    """
    if isinstance(tags, str):
        raise NotAccepted("tags: are a list of texts, not one text")
    found = tuple(sorted(set(tags)))
    if len(found) > TAGS_LIMIT:
        raise NotAccepted(f"tags: at most {TAGS_LIMIT} are taken")
    for tag in found:
        if not tag.strip():
            raise NotAccepted("tags: one is empty")
        _check_text("tags", tag, TAG_LIMIT)
    return found


def checked_query(query: str) -> str:
    """Returns the query.

    Raises:
        NotAccepted: it is empty, too long, or holds characters that no content has.
    """
    if not query.strip():
        raise NotAccepted("query: is empty; say what to look for")
    _check_text("query", query, QUERY_LIMIT)
    return query


def checked_k(k: int) -> int:
    """Returns the most entries of an answer.

    Raises:
        NotAccepted: it is out of range.
    """
    if not 1 <= k <= LARGEST_K:
        raise NotAccepted(f"k: must be from 1 to {LARGEST_K}")
    return k


def in_utc(moment: datetime) -> datetime:
    """Returns the moment in UTC; one without a zone is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def is_unused(entry: Entry, *, since: datetime, most_accesses: int | None) -> bool:
    """Returns True for an entry that `prune` deletes: made before `since`, not accessed since, and rarely before."""
    is_rare = most_accesses is None or entry.access_count <= most_accesses
    return is_rare and max(entry.created_at, entry.accessed_at or entry.created_at) < in_utc(since)


def _check_text(name: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise NotAccepted(f"{name}: has {len(text):,} characters; at most {limit:,} are taken, so split or shorten it")
    if "\0" in text:
        raise NotAccepted(f"{name}: contains a NUL character, which cannot be stored")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotAccepted(f"{name}: contains half of a surrogate pair, which is no character") from None
