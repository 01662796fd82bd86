"""`POST /api/items:batch`."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from app.interfaces.http.context import ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import DegradedView, User, convert, view_of
from app.recall.items.batch import run_batch
from app.recall.items.item import (
    KEY_BYTES,
    LARGEST_PAGE,
    LONGEST_TTL,
    MOST_LABELS,
    MOST_OPERATIONS,
    NAMESPACE_BYTES,
    Batch,
    BatchAnswers,
    Item,
    SearchAnswer,
)
from app.recall.retrieval.recall import QUERY_LIMIT
from app.storage.memories.memory import Rejection
from app.storage.memories.remember import Door
from app.storage.tenants.keys.key import READ, WRITE

Label = Annotated[str, Meta(min_length=1, max_length=NAMESPACE_BYTES)]
Path = Annotated[list[Label], Meta(max_length=MOST_LABELS)]
Namespace = Annotated[list[Label], Meta(min_length=1, max_length=MOST_LABELS)]
Key = Annotated[str, Meta(max_length=KEY_BYTES)]
Limit = Annotated[int, Meta(ge=0, le=LARGEST_PAGE)]
Offset = Annotated[int, Meta(ge=0, le=10_000_000)]
Patterns = Annotated[list[Path], Meta(max_length=10, description="each must match; `*` stands for any label")]
RefreshTtl = Annotated[bool, Meta(description="true: the ends of what is read are put off")]


class ItemGetInput(Struct, forbid_unknown_fields=True):
    """A look-up of one item."""

    namespace: Namespace
    key: Key
    refresh_ttl: RefreshTtl = True


class ItemSearchInput(Struct, forbid_unknown_fields=True):
    """A search for the items in all namespaces that begin with a prefix."""

    prefix: Path = []
    filter: Annotated[
        dict[str, Any],
        Meta(description="values by key, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` with one; all must be met"),
    ] = {}
    query: Annotated[str, Meta(max_length=QUERY_LIMIT, description="what has to do with it comes first")] = ""
    limit: Limit = 10
    offset: Offset = 0
    reverse: Annotated[bool, Meta(description="true: the newest of a namespace come first")] = False
    refresh_ttl: RefreshTtl = True


class NamespaceSearchInput(Struct, forbid_unknown_fields=True):
    """A search for namespaces that have items."""

    prefixes: Patterns = []
    suffixes: Patterns = []
    max_depth: Annotated[int, Meta(ge=0, description="labels after which namespaces are cut off")] | None = None
    limit: Limit = 100
    offset: Offset = 0


class ItemPutInput(Struct, forbid_unknown_fields=True):
    """A new value of an item."""

    namespace: Namespace
    key: Key
    value: Annotated[dict[str, Any] | None, Meta(description="null removes the item")]
    text: Annotated[str, Meta(description="the text by which queries find it; empty: none does")] = ""
    ttl_minutes: (
        Annotated[float, Meta(gt=0, le=LONGEST_TTL, description="minutes after the last access at which it ends")]
        | None
    ) = None


class ItemBatchInput(Struct, forbid_unknown_fields=True):
    """Operations that are carried out together."""

    get: Annotated[list[ItemGetInput], Meta(max_length=MOST_OPERATIONS)] = []
    search: Annotated[list[ItemSearchInput], Meta(max_length=MOST_OPERATIONS)] = []
    namespaces: Annotated[list[NamespaceSearchInput], Meta(max_length=MOST_OPERATIONS)] = []
    put: Annotated[
        list[ItemPutInput],
        Meta(max_length=MOST_OPERATIONS, description="of several values for one key the last one counts"),
    ] = []
    user: Annotated[User, Meta(description="the user whose items they are; without it they belong to no user")] = ""


@view_of(Item)
class ItemView(Struct):
    """A stored value."""


class FoundItemsView(Struct, frozen=True):
    """The answer to a search."""

    items: Sequence[ItemView]
    recall_id: UUID | None
    """The logged recall behind a query; null where nothing was ranked."""
    mode: str | None
    degraded: Sequence[DegradedView]


@view_of(Rejection)
class UnsearchableItemView(Struct):
    """An item whose text no query finds, and why; its value is stored."""


class ItemAnswersView(Struct, frozen=True):
    """The answers to a batch, each in the order of its operations."""

    get: Sequence[ItemView | None]
    search: Sequence[FoundItemsView]
    namespaces: Sequence[Sequence[Sequence[str]]]
    removed: Sequence[int]
    """The places in `put` of the nulls that removed an item."""
    unsearchable: Sequence[UnsearchableItemView]


def answers_view(found: BatchAnswers) -> ItemAnswersView:
    """Returns the view of a batch's answers."""
    return convert(found, ItemAnswersView, search=[_found_view(one) for one in found.search])


def _found_view(found: SearchAnswer) -> FoundItemsView:
    recall = found.recall
    given: dict[str, Any] = {"recall_id": None, "mode": None, "degraded": ()}
    if recall is not None:
        given = {"recall_id": recall.recall_id, "mode": recall.mode, "degraded": recall.degraded}
    return convert(found, FoundItemsView, **given)


class ItemsController(Controller):
    """Stores and finds values by namespace and key."""

    path = "/api"
    tags = ("items",)

    @post("/items:batch", status_code=200, responses=PROBLEMS)
    async def batch(self, call: ThisCall, data: JSONBody[ItemBatchInput]) -> ItemAnswersView:
        """Look items up, search them, list their namespaces and store them: reads see the state before the writes."""
        if data.put:
            call.key.demand(WRITE)
        if data.get or data.search or data.namespaces:
            call.key.demand(READ)
        services = call.services
        mask = call.settings.mask_secrets
        workspace = (await call.tenant()).of(data.user)
        door = Door(call.database, services.counter, workspace, mask, services.provider)
        batch = convert(data, Batch)
        found = await run_batch(door, batch, provider=services.provider, reranker=services.reranker)
        for one in found.search:
            if one.recall is not None:
                call.note_recall(one.recall)
        return answers_view(found)
