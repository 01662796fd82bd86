"""A store for LangGraph over the notes of Priors: `pip install priors-client[langgraph]`.

A value is a note with the value in its metadata; each namespace above it is a tag. Histories and searches show these
notes as they show others. The store answers as LangGraph's own `InMemoryStore` does, with these differences:

- A namespace is listed while it has items, and namespaces stand in the order of their names.
- An item keeps its `created_at` when its value changes, as with LangGraph's `PostgresStore`.
- Values are JSON, up to 100 kB: a tuple comes back as a list, and NaN is refused. Secrets are masked.
- What the write gate refuses, such as a text that instructs its reader, is an error (`Refused`) and not stored.
- With a query the order is Priors' own, and `score` is its rank. Items beyond the first 200, and those that have
  nothing to do with the query, follow without a score.
- A batch reads before it writes, but its writes are stored one by one.

Each read loads all items below its prefix. For many items, times to live or batches that are written as a whole, take
LangGraph's `PostgresStore`, in the same database if you like.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)
from langgraph.store.memory import InMemoryStore

from priors_client.client import Client
from priors_client.errors import Refused
from priors_client.models import Filters, ListedMemory, SourceReference

WHOLE = "$"
"""The field that stands for the whole value as JSON."""
MOST_RANKED = 200
LONGEST_TAG = 100
ORDINALS = 2**31
"""Number of places in a source."""


class PriorsStore(BaseStore):
    """A store of LangGraph over the HTTP API of Priors. It closes no client: who opened one closes it."""

    def __init__(self, client: Client, *, fields: Sequence[str] = (WHOLE,), user: str = "") -> None:
        """`fields` are the paths of the texts by which queries find an item, unless a put names others.

        An item without such a text is found by its whole value. A `user`'s store has the items of this user alone.
        """
        self._client, self._fields, self._user = client, fields, user

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Does the same as `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out operations: what it reads is the state before what it writes."""
        operations = list(ops)
        puts = {(one.namespace, one.key): one for one in operations if isinstance(one, PutOp)}
        results = [self._read(one) for one in operations]
        for put in puts.values():
            self._put(put)
        return results

    def _read(self, operation: Op) -> Result:
        match operation:
            case GetOp(namespace, key):
                return _latest(self._notes(_tag(namespace, key))).get((namespace, key))
            case SearchOp():
                return self._search(operation)
            case ListNamespacesOp():
                return _in_memory(_latest(self._notes(_tag(()))).values()).batch([operation])[0]
            case PutOp():
                return None
        raise ValueError(f"Unknown operation type: {type(operation)}")

    def _search(self, operation: SearchOp) -> list[SearchItem]:
        """Lets LangGraph's own store filter the items, and puts those first that the query finds."""
        tag = _tag(operation.namespace_prefix)
        notes = list(self._notes(tag))
        items, scores = _latest(notes), self._scores(operation.query, tag, notes)
        every = operation._replace(query=None, offset=0, limit=max(len(items), 1))
        found = cast("list[SearchItem]", _in_memory(items.values()).batch([every])[0])
        places = [(one.namespace, one.key) for one in found]
        places.sort(key=lambda place: (place not in scores, -scores.get(place, 0.0)))
        page = places[operation.offset : operation.offset + operation.limit]
        return [SearchItem(**_fields_of(items[place]), score=scores.get(place)) for place in page]

    def _scores(
        self, query: str | None, tag: str, notes: Sequence[ListedMemory]
    ) -> dict[tuple[tuple[str, ...], str], float]:
        if not query or not query.strip() or not notes:
            return {}
        filters = Filters(kinds=["note"], tags=[tag])
        hits = {
            hit.id: hit.score
            for hit in self._client.search(query, k=MOST_RANKED, filters=filters, user=self._user).hits
        }
        return {_place(note): hits[note.id] for note in notes if note.id in hits}

    def _put(self, put: PutOp) -> None:
        before = list(self._notes(_tag(put.namespace, put.key)))
        kept = None if put.value is None else self._store(put, _latest(before).get((put.namespace, put.key)))
        if gone := [note.id for note in before if note.id != kept]:
            self._client.admin.change_memories(gone, user=self._user, state="deleted")

    def _store(self, put: PutOp, known: Item | None) -> UUID | None:
        """Stores a note; the whole value is its text where the write gate refuses the text of the fields."""
        now, value = datetime.now(UTC), json.loads(json.dumps(put.value, allow_nan=False))
        times = {"created_at": (known.created_at if known else now).isoformat(), "updated_at": now.isoformat()}
        item = {"namespace": put.namespace, "key": put.key, "value": value, **times}
        note = partial(
            self._client.store,
            "note",
            tags=[
                *(_tag(put.namespace[:depth]) for depth in range(len(put.namespace) + 1)),
                _tag(put.namespace, put.key),
            ],
            metadata={"item": item},
            source=SourceReference(kind="other", uri=_tag(put.namespace), title=" / ".join(put.namespace)),
            ordinal=int.from_bytes(hashlib.blake2b(put.key.encode(), digest_size=4).digest()) % ORDINALS,
            user=self._user,
        )
        try:
            (stored,) = note(body=self._text(put)).ids
        except Refused:
            (stored,) = note(body=json.dumps({put.key: value}, ensure_ascii=False)).ids
        return stored

    def _text(self, put: PutOp) -> str:
        """Returns the texts of the fields by which an item is found; the whole value where there are none."""
        fields = self._fields if put.index is None else put.index or ()
        paths = [field if field == WHOLE else tokenize_path(field) for field in fields]
        texts = [text for path in paths for text in get_text_at_path(put.value, path)]
        return "\n\n".join(texts).strip() or json.dumps(put.value, ensure_ascii=False)

    def _notes(self, tag: str) -> Iterable[ListedMemory]:
        return self._client.admin.iter_memories(
            user=self._user, kind=["note"], tag=[tag], order="asc", limit=MOST_RANKED
        )


def _tag(namespace: Sequence[str], key: str | None = None) -> str:
    """Returns the tag of a namespace, or of a key in it."""
    path = "/".join(quote(label, safe="") for label in namespace)
    tag = f"langgraph:{path}" if key is None else f"langgraph:{path}#{quote(key, safe='')}"
    return tag if len(tag) <= LONGEST_TAG else f"langgraph:{hashlib.blake2b(tag.encode(), digest_size=16).hexdigest()}"


def _place(note: ListedMemory) -> tuple[tuple[str, ...], str]:
    return tuple(note.metadata["item"]["namespace"]), note.metadata["item"]["key"]


def _latest(notes: Iterable[ListedMemory]) -> dict[tuple[tuple[str, ...], str], Item]:
    """Returns the items by namespace and age; of two that were written at once the later one."""
    given = sorted((note.metadata["item"] for note in notes), key=lambda item: item["updated_at"])
    items = {
        (tuple(one["namespace"]), one["key"]): Item(**{**one, "namespace": tuple(one["namespace"])}) for one in given
    }
    return dict(sorted(items.items(), key=lambda entry: (entry[0][0], entry[1].created_at)))


def _in_memory(items: Iterable[Item]) -> InMemoryStore:
    """Returns LangGraph's own store with these items."""
    store = InMemoryStore()
    store.batch([PutOp(item.namespace, item.key, item.value) for item in items])
    return store


def _fields_of(item: Item) -> Mapping[str, Any]:
    return {name: getattr(item, name) for name in ("namespace", "key", "value", "created_at", "updated_at")}
