"""The fields, cursors, inputs and views that several routes share; the command line prints the same views.

Inputs refuse unknown fields; views are frozen.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any, TypeVar, cast, get_type_hints
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType, defstruct, field
from msgspec.structs import replace

from app.errors import InvalidInput
from app.recall.retrieval.recall import Hit, IssueState
from app.storage.memories.filters import as_real
from app.storage.memories.memory import (
    Memory,
    StoredObservation,
)
from app.storage.recalls.store import Explanation

T = TypeVar("T")
S = TypeVar("S", bound=Struct)
P = TypeVar("P")
N = TypeVar("N")

_SORT_RANGE = (-10.0, 20.0)
"""The range of scores and qualities, and of the values that stand for missing ones."""


def convert(value: object, kind: type[T], **given: object) -> T:
    """Returns a `kind` with the attributes of `value`, at any depth; a `given` attribute replaces its own."""
    if given:
        names: Iterable[str] = getattr(kind, "__struct_fields__", ()) or getattr(kind, "__dataclass_fields__", ())
        shared = {name: getattr(value, name) for name in names if name not in given and hasattr(value, name)}
        value = SimpleNamespace(**shared, **given)
    return msgspec.convert(value, kind, from_attributes=True)


def view_of(value: type, *, without: Sequence[str] = (), **renamed: str) -> Callable[[type[S]], type[S]]:
    """Gives a view the fields of a room's value, without those of `without`, with the JSON names of `renamed`.

    A field that the view declares itself replaces the value's field of that name, or follows the others.
    """

    def make_view(view: type[S]) -> type[S]:
        fields = {**get_type_hints(value), **get_type_hints(view, include_extras=True)}
        shown = [(name, kind) for name, kind in fields.items() if name not in without]
        namespace = {"__doc__": view.__doc__}
        found = defstruct(
            view.__name__, shown, namespace=namespace, module=view.__module__, frozen=True, rename=renamed
        )
        return cast("type[S]", found)

    return make_view


class DegradedView(Struct, frozen=True):
    """An arm that did not serve in full, and why."""

    arm: str
    reason: str


class SourceView(Struct, frozen=True):
    """The source of a memory."""

    source_id: UUID = field(name="id")
    source_kind: str = field(name="kind")
    source_uri: str = field(name="uri")
    source_title: str = field(name="title")


class MemoryView(Struct, frozen=True):
    """A stored memory."""

    memory_id: UUID = field(name="id")
    kind: str
    title: str
    body: str
    language: str
    source: SourceView | None
    ordinal: int | None
    occurred_at: datetime | None
    tags: Sequence[str]
    metadata: dict[str, Any]
    run_id: str | None
    final_score: float | None
    quality: int
    tokens: int
    uses: int
    created_at: datetime
    valid_until: datetime | None
    retired_as: str | None
    findings: Sequence[dict[str, Any]] | None
    suspect: bool
    user: str
    """The user whom it belongs to; "" for nobody."""
    accessed_at: datetime | None
    access_count: int
    observation: StoredObservation | None


class HitView(Struct, frozen=True):
    """A memory that was found, with every component of its score."""

    memory_id: UUID = field(name="id")
    kind: str
    title: str
    body: str
    score: float
    source: SourceView | None
    ordinal: int | None
    occurred_at: datetime | None
    created_at: datetime
    tags: Sequence[str]
    metadata: dict[str, Any]
    final_score: float | None
    quality: int
    suspect: bool
    user: str
    accessed_at: datetime | None
    access_count: int
    explain: Explanation
    issues: Sequence[IssueState]
    """The issues that it states, and whose present state it does not say."""
    around: Sequence[MemoryView] | UnsetType = UNSET
    """The memories before and after it in its source, where they were asked for."""


def memory_view(memory: Memory) -> MemoryView:
    """Returns the view of a stored memory."""
    return convert(memory, MemoryView, source=_source_of(memory))


def hit_view(hit: Hit, around: Sequence[Memory] | None = None) -> HitView:
    """Returns the view of a hit, with the memories around it where they were asked for."""
    given = {"score": hit.score, "explain": hit.explanation, "issues": hit.issues}
    view = convert(hit.memory, HitView, source=_source_of(hit.memory), **given)
    return view if around is None else replace(view, around=[memory_view(memory) for memory in around])


def _source_of(memory: Memory) -> Memory | None:
    """Returns the memory itself, whose attributes describe its source; None if it has no source."""
    return None if memory.source_id is None else memory


def cursor_of(place: datetime | float, identity: UUID | str) -> str:
    """Returns the cursor for the page after an item; `place` is the item's value in the order of the page."""
    shown = place.isoformat() if isinstance(place, datetime) else repr(float(place))
    return base64.urlsafe_b64encode(f"{shown} {identity}".encode()).decode()


def place_of(cursor: str | None, value: Callable[[str], P], identity: Callable[[str], N]) -> tuple[P, N] | None:
    """Returns the value and the identity of the last item of the page before; None for the first page.

    `value` and `identity` read them; they raise ValueError for a text that they cannot read.

    Raises:
        InvalidInput: it is not a cursor of this service, or belongs to another order.
    """
    if cursor is None:
        return None
    try:
        shown, _, named = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        if "\0" not in named:
            return value(shown), identity(named)
    except ValueError:
        pass
    raise InvalidInput("cursor", "is not one that a page gave; leave it out for the first page")


def sort_value(text: str) -> float:
    """Returns the score or quality in a cursor.

    Raises:
        ValueError: no memory has it.
    """
    value = float(text)
    if not _SORT_RANGE[0] <= value <= _SORT_RANGE[1]:
        raise ValueError(text)
    return as_real(value)
