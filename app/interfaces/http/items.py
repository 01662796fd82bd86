"""`POST /api/items:batch`."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from app.interfaces.http.context import ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import DegradedView, convert
from app.recall.items.batch import run_batch
from app.recall.items.item import Batch, BatchAnswers, Item, SearchAnswer
from app.storage.memories.memory import Rejection
from app.storage.memories.remember import Door
from app.storage.tenants.keys import READ, WRITE
from app.storage.tenants.workspace import User


class ItemBatchInput(Batch, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Operations that are carried out together."""

    user: Annotated[User, Meta(description="the user whose items they are; without it they belong to no user")] = ""


class FoundItemsView(Struct, frozen=True):
    """The answer to a search."""

    items: Sequence[Item]
    recall_id: UUID | None
    """The logged recall behind a query; null where nothing was ranked."""
    mode: str | None
    degraded: Sequence[DegradedView]


class ItemAnswersView(Struct, frozen=True):
    """The answers to a batch, each in the order of its operations."""

    get: Sequence[Item | None]
    search: Sequence[FoundItemsView]
    namespaces: Sequence[Sequence[Sequence[str]]]
    removed: Sequence[int]
    """The places in `put` of the nulls that removed an item."""
    unsearchable: Sequence[Rejection]


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
        found = await run_batch(door, data, provider=services.provider, reranker=services.reranker)
        for one in found.search:
            if one.recall is not None:
                call.note_recall(one.recall)
        return answers_view(found)
