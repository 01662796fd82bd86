"""Memory backends that are broken on purpose, each in one way that the contract must find."""

import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from msgspec.structs import replace
from priors_client import Entry, InMemory, NotAccepted
from priors_client.entries import LARGEST_K, checked_tags


class Forgetful(InMemory):
    """Loses the entry before the last."""

    def store(self, content: str, **given: Any) -> UUID:
        found = super().store(content, **given)
        for lost in self.recent(LARGEST_K)[1:2]:
            self.delete(lost.id)
        return found


class Twofold(InMemory):
    """Stores a known content twice."""

    def store(self, content: str, **given: Any) -> UUID:
        self._ids.pop(content, None)
        return super().store(content, **given)


class Renaming(InMemory):
    """Gives a known content another id."""

    def store(self, content: str, **given: Any) -> UUID:
        super().store(content, **given)
        return uuid4()


class Normalising(InMemory):
    """Changes the letters of a content."""

    def store(self, content: str, **given: Any) -> UUID:
        return super().store(unicodedata.normalize("NFKD", content), **given)


class Shouting(InMemory):
    """Gives contents in another form than it stored."""

    def recent(self, k: int = 10) -> list[Entry]:
        return [replace(one, content=one.content.upper()) for one in super().recent(k)]


class Contextless(InMemory):
    """Does not keep how a content was learnt."""

    def store(self, content: str, *, tags: Iterable[str] = (), **_: Any) -> UUID:
        return super().store(content, tags=tags)


class Overwriting(InMemory):
    """Loses the context when a content is stored again without one."""

    def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        found = super().store(content, context=context, tags=tags)
        self._entries[found] = replace(self._entries[found], context=context)
        return found


class Untagging(InMemory):
    """Loses the tags of a content that is stored again."""

    def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        found = super().store(content, context=context, tags=tags)
        self._entries[found] = replace(self._entries[found], tags=tuple(sorted(set(tags))))
        return found


class Swallowing(InMemory):
    """Takes what nobody may take."""

    def store(self, content: str, **given: Any) -> UUID:
        try:
            return super().store(content, **given)
        except NotAccepted:
            return uuid4()


class Generous(InMemory):
    """Gives one entry more than it is asked for."""

    def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        return super().search(query, k=k + 1 if 1 <= k < LARGEST_K else k, tags=tags)


class Unlimited(InMemory):
    """Lists more entries than it is asked for."""

    def recent(self, k: int = 10) -> list[Entry]:
        found = super().recent(k)
        return super().recent(k + 1) if k < len(self._entries) else found


class Boundless(InMemory):
    """Answers for any number."""

    def recent(self, k: int = 10) -> list[Entry]:
        return super().recent(min(max(k, 1), LARGEST_K))


class Repeating(InMemory):
    """Gives the best hit twice."""

    def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        found = super().search(query, k=k, tags=tags)
        return [*found, *found[:1]][:k]


class Worst(InMemory):
    """Gives what shares nothing with the query first."""

    def _likeness(self, query: str) -> dict[UUID, float]:
        return {entry_id: 2.0 - likeness for entry_id, likeness in super()._likeness(query).items()}


class Blind(InMemory):
    """Finds nothing."""

    def _likeness(self, query: str) -> dict[UUID, float]:
        return dict.fromkeys(super()._likeness(query), 0.0)


class AnyTag(InMemory):
    """Finds what has the first of the tags."""

    def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        return super().search(query, k=k, tags=checked_tags(tags)[:1])


class Folding(InMemory):
    """Does not tell `red` from `Red`."""

    def by_tag(self, tag: str, k: int = 10) -> list[Entry]:
        super().by_tag(tag, k)
        return [one for one in self.recent(LARGEST_K) if tag.lower() in map(str.lower, one.tags)][:k]


class OldestFirst(InMemory):
    """Lists in the wrong order."""

    def recent(self, k: int = 10) -> list[Entry]:
        return super().recent(k)[::-1]


class Bumping(InMemory):
    """Takes a content that is stored again for a new one."""

    def store(self, content: str, **given: Any) -> UUID:
        found = super().store(content, **given)
        self._entries[found] = self._entries.pop(found)
        return found


class Redating(InMemory):
    """Dates a content that is stored again anew."""

    def store(self, content: str, **given: Any) -> UUID:
        found = super().store(content, **given)
        self._entries[found] = replace(self._entries[found], created_at=datetime.now().astimezone())
        return found


class Zoneless(InMemory):
    """Gives moments without a zone."""

    def recent(self, k: int = 10) -> list[Entry]:
        return [replace(one, created_at=one.created_at.replace(tzinfo=None)) for one in super().recent(k)]


class Undead(InMemory):
    """Finds what was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self._buried: list[Entry] = []

    def delete(self, entry_id: UUID) -> bool:
        self._buried += [self._entries[entry_id]] if entry_id in self._entries else []
        return super().delete(entry_id)

    def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        found = super().search(query, k=k, tags=tags)
        return [*found, *(one for one in self._buried if set(tags) <= set(one.tags))][:k]


class Agreeing(InMemory):
    """Says that it deleted what it never had."""

    def delete(self, entry_id: UUID) -> bool:
        super().delete(entry_id)
        return True


class Keeping(InMemory):
    """Does not delete."""

    def delete(self, entry_id: UUID) -> bool:
        return entry_id in self._entries


class Eager(InMemory):
    """Prunes what is as young as the limit."""

    def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        found = super().prune(unused_since=unused_since, most_accesses=most_accesses)
        return [*found, *(one.id for one in self.recent(1) if self.delete(one.id))]


class Lazy(InMemory):
    """Prunes one entry at most."""

    def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        left = list(self._entries.values())
        found = super().prune(unused_since=unused_since, most_accesses=most_accesses)
        for entry in left:
            if entry.id in found[1:]:
                self._add(entry)
        return found[:1]


class Careless(InMemory):
    """Prunes without a look at the accesses."""

    def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        del most_accesses
        return super().prune(unused_since=unused_since)


class Ungrateful(InMemory):
    """Prunes by the time of storing alone."""

    def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        kept = self._entries
        self._entries = {entry_id: replace(one, accessed_at=None) for entry_id, one in kept.items()}
        found = super().prune(unused_since=unused_since, most_accesses=most_accesses)
        self._entries = {entry_id: one for entry_id, one in kept.items() if entry_id in self._entries}
        return found


class Silent(InMemory):
    """Prunes and does not say what."""

    def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        super().prune(unused_since=unused_since, most_accesses=most_accesses)
        return []


class Uncounting(InMemory):
    """Does not count accesses."""

    def _accessed(self, entry_id: UUID) -> Entry:
        return self._entries[entry_id]


class Overcounting(InMemory):
    """Counts a look at a list as an access."""

    def by_tag(self, tag: str, k: int = 10) -> list[Entry]:
        return [self._accessed(one.id) for one in super().by_tag(tag, k)]


class Undated(InMemory):
    """Counts accesses and does not date them."""

    def _accessed(self, entry_id: UUID) -> Entry:
        found = replace(super()._accessed(entry_id), accessed_at=None)
        self._entries[entry_id] = found
        return found


class Shared(InMemory):
    """Keeps the entries of all workspaces together."""

    together: InMemory | None = None

    def __init__(self) -> None:
        super().__init__()
        first = type(self).together or self
        type(self).together = None if first is not self else self
        self._entries, self._ids, self._words = first._entries, first._ids, first._words


COUNTED = "searches are counted, and nothing else"
PRUNED = "prune tells what its rule says"
BROKEN: dict[type[InMemory], str] = {
    Forgetful: "what is stored is listed",
    Twofold: "a known content has its id",
    Renaming: "what is stored is listed|a known content has its id",
    Normalising: "a content is kept letter by letter",
    Shouting: "a content is kept letter by letter",
    Contextless: "a context is kept",
    Overwriting: "a context is kept",
    Untagging: "tags are kept",
    Swallowing: "the argument (content|context|tags) is checked",
    Generous: "no list is longer than k",
    Unlimited: "no list is longer than k",
    Boundless: "the argument k is checked",
    Repeating: "a hit comes once",
    Worst: "no stranger comes before an exact copy",
    Blind: "a copy is found",
    AnyTag: "a hit has all tags",
    Folding: "by_tag gives what has the tag",
    OldestFirst: "recent entries come newest first",
    Bumping: "recent entries come newest first",
    Redating: "the time of storing stays",
    Zoneless: "moments have a zone",
    Undead: "what is gone is not found",
    Agreeing: "an entry is deleted once",
    Keeping: "an entry is deleted once|what is gone is not listed",
    Eager: PRUNED,
    Lazy: PRUNED,
    Careless: PRUNED,
    Ungrateful: PRUNED,
    Silent: PRUNED,
    Uncounting: COUNTED,
    Overcounting: COUNTED,
    Undated: "what was accessed has a time",
    Shared: "workspaces are apart|nothing else is listed",
}
"""Each with the law that it breaks; where the order of calls decides which one shows first, with both."""
