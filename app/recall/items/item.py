"""The values of items, of the operations on them and of their answers, and the checks of operations. Pure."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta, Struct

from app.errors import check
from app.foundation.text.data import check_value
from app.recall.retrieval.recall import QUERY_LIMIT, Recall
from app.storage.memories.memory import NewMemory, Rejection, SourceReference

Labels: TypeAlias = tuple[str, ...]
END = "\x01"
"""The character after each label of a stored namespace. No other that a label may have sorts before it, so stored
namespaces sort as their labels do, and those that begin with the same labels stand together."""
MOST_LABELS = 100
_NAMESPACE_BYTES = _KEY_BYTES = 1_000
"""Most bytes of a namespace and of a key: an index row holds at most 2,700."""
_VALUE_BYTES = 1_000_000
"""Most bytes of a value as JSON."""
_MOST_OPERATIONS = 1_000
_LARGEST_PAGE = 10_000
_LONGEST_TTL = 5_256_000
"""Minutes: ten years."""
_ORDINALS = 2**31
"""Number of places in a source."""

Label = Annotated[str, Meta(min_length=1, max_length=_NAMESPACE_BYTES)]
Path = Annotated[Sequence[Label], Meta(max_length=MOST_LABELS)]
Namespace = Annotated[Sequence[Label], Meta(min_length=1, max_length=MOST_LABELS)]
Key = Annotated[str, Meta(max_length=_KEY_BYTES)]
Limit = Annotated[int, Meta(ge=0, le=_LARGEST_PAGE)]
Offset = Annotated[int, Meta(ge=0, le=10_000_000)]
_Patterns = Annotated[Sequence[Path], Meta(max_length=10, description="each must match; `*` stands for any label")]
_RefreshTtl = Annotated[bool, Meta(description="true: the ends of what is read are put off")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A stored value."""

    namespace: Labels
    key: str
    value: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    """The moment from which it is not found; None for an item that stays."""
    score: float | None = None
    """The rank of its text for a query; None without a query, and for an item that the query does not find."""


class ItemGet(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A look-up of one item."""

    namespace: Namespace
    key: Key
    refresh_ttl: _RefreshTtl = True


class ItemSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search for the items in all namespaces that begin with a prefix.

    Without a query they come in the order of their namespaces, in a namespace as they were made.
    """

    prefix: Path = []
    filter: Annotated[
        dict[str, Any],
        Meta(description="values by key, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` with one; all must be met"),
    ] = {}
    query: Annotated[str, Meta(max_length=QUERY_LIMIT, description="what has to do with it comes first")] = ""
    limit: Limit = 10
    offset: Offset = 0
    reverse: Annotated[bool, Meta(description="true: the newest of a namespace come first")] = False
    refresh_ttl: _RefreshTtl = True


class NamespaceSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search for namespaces that have items."""

    prefixes: _Patterns = []
    suffixes: _Patterns = []
    max_depth: Annotated[int, Meta(ge=0, description="labels after which namespaces are cut off")] | None = None
    limit: Limit = 100
    offset: Offset = 0


class ItemPut(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new value of an item."""

    namespace: Namespace
    key: Key
    value: Annotated[dict[str, Any] | None, Meta(description="null removes the item")]
    text: Annotated[str, Meta(description="the text by which queries find it; empty: none does")] = ""
    ttl_minutes: (
        Annotated[float, Meta(gt=0, le=_LONGEST_TTL, description="minutes after the last access at which it ends")]
        | None
    ) = None

    def memory(self) -> NewMemory:
        """Returns the memory that makes the item's text searchable.

        The source is the namespace. The place in it comes of the key, so that equal texts of two items stay apart.
        """
        path = "/".join(label.replace("%", "%25").replace("/", "%2F") for label in self.namespace)
        digest = hashlib.blake2b(self.key.encode(), digest_size=4).digest()
        return NewMemory(
            kind="note",
            body=self.text,
            source=SourceReference(kind="other", uri=f"items/{path}", title=" / ".join(self.namespace)),
            ordinal=int.from_bytes(digest) % _ORDINALS,
            metadata={"item": self.key},
        )


class Batch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Operations that are carried out together: what it reads is the state before what it writes."""

    get: Annotated[Sequence[ItemGet], Meta(max_length=_MOST_OPERATIONS)] = []
    search: Annotated[Sequence[ItemSearch], Meta(max_length=_MOST_OPERATIONS)] = []
    namespaces: Annotated[Sequence[NamespaceSearch], Meta(max_length=_MOST_OPERATIONS)] = []
    put: Annotated[
        Sequence[ItemPut],
        Meta(max_length=_MOST_OPERATIONS, description="of several values for one key the last one counts"),
    ] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The answer to a search."""

    items: tuple[Item, ...]
    recall: Recall | None = None
    """The logged recall behind a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAnswers:
    """The answers to a batch, each in the order of its operations."""

    get: tuple[Item | None, ...] = ()
    search: tuple[SearchAnswer, ...] = ()
    namespaces: tuple[tuple[Labels, ...], ...] = ()
    removed: tuple[int, ...] = ()
    """The places in `put` of the nulls that removed an item: of several writers one alone removes it."""
    unsearchable: tuple[Rejection, ...] = ()
    """The items whose text no query finds, by their place in `put`, and why; their values are stored."""


def path_of(labels: Sequence[str]) -> str:
    """Returns a namespace as it is stored."""
    return "".join(label + END for label in labels)


def labels_of(path: str) -> Labels:
    """Returns the labels of a stored namespace."""
    return tuple(path.split(END)[:-1])


def check_batch(batch: Batch) -> None:
    """Checks that a batch can be carried out.

    Raises:
        InvalidInput: an operation is not valid.
    """
    check_value(batch)
    check(_reasons(batch))


def _reasons(batch: Batch) -> Iterator[str]:
    """Yields the reasons against sizes that count bytes, and against labels that would end in two."""
    keys: dict[str, Sequence[ItemGet | ItemPut]] = {"get": batch.get, "put": batch.put}
    for name, items in keys.items():
        for place, item in enumerate(items):
            yield from _label_reasons(item.namespace, f"{name}[{place}].namespace")
            yield from _size_reasons(item.key, _KEY_BYTES, f"{name}[{place}].key")
    for place, put in enumerate(batch.put):
        if put.value is not None and (size := len(msgspec.json.encode(dict(put.value)))) > _VALUE_BYTES:
            yield f"put[{place}].value: has {size:,} bytes as JSON; at most {_VALUE_BYTES:,} are taken, so split it"
    for place, search in enumerate(batch.search):
        yield from _label_reasons(search.prefix, f"search[{place}].prefix")
    for place, spaces in enumerate(batch.namespaces):
        for labels in (*spaces.prefixes, *spaces.suffixes):
            yield from _label_reasons(labels, f"namespaces[{place}]")


def _label_reasons(labels: Sequence[str], within: str) -> Iterator[str]:
    if any(END in label for label in labels):
        yield f"{within}: contains the character U+0001, which separates labels"
    yield from _size_reasons("".join(labels), _NAMESPACE_BYTES, within)


def _size_reasons(text: str, limit: int, within: str) -> Iterator[str]:
    if (size := len(text.encode(errors="replace"))) > limit:
        yield f"{within}: has {size:,} bytes; at most {limit:,} are taken"
