"""A backend in the process's own memory, for tests and notebooks."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from math import fsum, hypot, log, sqrt
from operator import mul
from uuid import UUID, uuid4

from msgspec.structs import replace

from priors_client.entries import Entry, checked, checked_k, checked_query, checked_tags, is_unused

Embed = Callable[[Sequence[str]], Iterable[Sequence[float]]]
"""Returns a vector for each text."""
WORD = re.compile(r"\w+")


class InMemory:
    """Keeps entries for as long as it lives; for tests and notebooks. The same calls always give the same order.

    It searches by words, each with the weight of its rarity, or by the vectors of the function `embed`.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed
        self._entries: dict[UUID, Entry] = {}
        """In the order in which they were stored."""
        self._ids: dict[str, UUID] = {}
        """The id of each content."""
        self._words: dict[UUID, Counter[str]] = {}
        self._vectors: dict[UUID, Sequence[float]] = {}
        """Of unit length; only with `embed`."""

    def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        """Stores a content; a known one gains the tags, and takes the context if one is given.

        Raises:
            NotAccepted: it cannot be stored.
        """
        given = checked(content, context, tags)
        if content not in self._ids:
            self._add(Entry(id=uuid4(), content=content, created_at=datetime.now(UTC)))
        known = self._entries[self._ids[content]]
        together = tuple(sorted({*known.tags, *given.tags}))
        self._entries[known.id] = replace(known, context=given.context or known.context, tags=together)
        return known.id

    def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        """Returns at most `k` entries that are like the query and have all these tags, the most alike first.

        Raises:
            NotAccepted: the query is empty, or an argument out of range.
        """
        wanted, most = set(checked_tags(tags)), checked_k(k)
        likeness = self._likeness(checked_query(query))
        alike = [one.id for one in self._newest() if likeness[one.id] > 0 and wanted <= set(one.tags)]
        best = sorted(alike, key=likeness.__getitem__, reverse=True)
        return [self._accessed(entry_id) for entry_id in best[:most]]

    def recent(self, k: int = 10) -> list[Entry]:
        """Returns the `k` entries that were stored last, the newest first."""
        return list(islice(self._newest(), checked_k(k)))

    def by_tag(self, tag: str, k: int = 10) -> list[Entry]:
        """Returns the `k` entries with this tag that were stored last, the newest first."""
        (wanted,) = checked_tags([tag])
        return list(islice((one for one in self._newest() if wanted in one.tags), checked_k(k)))

    def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        """Deletes the entries that were stored before a moment, not accessed since, and at most so often before.

        Returns their ids, in the order in which they were stored.
        """
        entries = list(self._entries.values())
        unused = [one.id for one in entries if is_unused(one, since=unused_since, most_accesses=most_accesses)]
        return [entry_id for entry_id in unused if self.delete(entry_id)]

    def delete(self, entry_id: UUID) -> bool:
        """Deletes an entry; returns False if there is none of this id."""
        gone = self._entries.pop(entry_id, None)
        if gone is None:
            return False
        del self._ids[gone.content]
        (self._vectors if self._embed else self._words).pop(entry_id)
        return True

    def _add(self, entry: Entry) -> None:
        if self._embed is None:
            self._words[entry.id] = _words(entry.content)
        else:
            self._vectors[entry.id] = _vector(self._embed, entry.content)
        self._entries[entry.id], self._ids[entry.content] = entry, entry.id

    def _newest(self) -> Iterator[Entry]:
        return reversed(self._entries.values())

    def _accessed(self, entry_id: UUID) -> Entry:
        known = self._entries[entry_id]
        found = replace(known, accessed_at=datetime.now(UTC), access_count=known.access_count + 1)
        self._entries[entry_id] = found
        return found

    def _likeness(self, query: str) -> dict[UUID, float]:
        """Returns the cosine of the query and each entry, -1 to 1."""
        if self._embed is not None:
            asked = _vector(self._embed, query)
            return {entry_id: fsum(map(mul, asked, vector)) for entry_id, vector in self._vectors.items()}
        entries = Counter(word for words in self._words.values() for word in words)
        rarity = {word: log(1 + len(self._words) / count) for word, count in entries.items()}
        words = _words(query)
        return {entry_id: _cosine(words, known, rarity) for entry_id, known in self._words.items()}


class AsyncInMemory:
    """`InMemory` in the form for asyncio; `memory` is where it keeps its entries."""

    def __init__(self, memory: InMemory | None = None) -> None:
        self.memory = memory or InMemory()

    async def store(self, content: str, *, context: str = "", tags: Iterable[str] = ()) -> UUID:
        """Stores a content."""
        return self.memory.store(content, context=context, tags=tags)

    async def search(self, query: str, *, k: int = 10, tags: Iterable[str] = ()) -> list[Entry]:
        """Returns at most `k` entries that are like the query and have all these tags, the most alike first."""
        return self.memory.search(query, k=k, tags=tags)

    async def recent(self, k: int = 10) -> list[Entry]:
        """Returns the `k` entries that were stored last, the newest first."""
        return self.memory.recent(k)

    async def by_tag(self, tag: str, k: int = 10) -> list[Entry]:
        """Returns the `k` entries with this tag that were stored last, the newest first."""
        return self.memory.by_tag(tag, k)

    async def prune(self, *, unused_since: datetime, most_accesses: int | None = None) -> list[UUID]:
        """Deletes entries that are not used any more."""
        return self.memory.prune(unused_since=unused_since, most_accesses=most_accesses)

    async def delete(self, entry_id: UUID) -> bool:
        """Deletes an entry; returns False if there is none of this id."""
        return self.memory.delete(entry_id)


def _words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text.casefold()))


def _cosine(one: Counter[str], other: Counter[str], rarity: dict[str, float]) -> float:
    shared = fsum(rarity[word] ** 2 * one[word] * other[word] for word in one.keys() & other.keys())
    lengths = (fsum((rarity.get(word, 0) * count) ** 2 for word, count in words.items()) for words in (one, other))
    return shared / sqrt(next(lengths) * next(lengths)) if shared else 0.0


def _vector(embed: Embed, text: str) -> Sequence[float]:
    (vector,) = embed([text])
    length = hypot(*vector) or 1.0
    return [number / length for number in vector]
