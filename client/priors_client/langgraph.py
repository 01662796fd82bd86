"""A store for LangGraph whose items Priors keeps: `pip install priors-client[langgraph]`.

It answers as LangGraph's own `InMemoryStore` does, except for what follows. A test compares the two.

- Namespaces without items are not listed. `InMemoryStore` also lists those whose last item was deleted, and those that
  were only read.
- A search over several namespaces without a query gives them in the order of their names, not of their first use. In a
  namespace both give items in the order in which they were made.
- An item keeps its `created_at` when its value changes, as with LangGraph's `PostgresStore`.
- `$gt`, `$gte`, `$lt` and `$lte` never match a value that is no number, and an absent one; `InMemoryStore` raises. They
  do match a text that spells a number, as there.
- True and 1 are different values in a filter.
- Values are JSON: a tuple comes back as a list, every key as a text, and NaN is refused. NUL, half a surrogate pair,
  and more than a megabyte are refused. Secrets are masked, unless the service is told not to (PRIORS_MASK_SECRETS).
- With a query the order is Priors' own (words, meaning, quality, recency), and `score` is its rank. All fields of an
  item are ranked as one text. An item that has nothing to do with the query has no score and follows the ranked ones,
  as do those beyond the first 200, and all are on the pages exactly once.
- A batch has at most 1,000 operations of a kind, and namespaces are checked in it too.
- Items may have a time to live, which `InMemoryStore` does not support. An expired item is not found from that moment.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from priors_client import models
from priors_client.async_client import AsyncClient
from priors_client.client import Client
from priors_client.models import (
    ItemAnswersView,
    ItemGet,
    ItemPut,
    ItemSearch,
    NamespaceSearch,
)

WHOLE = "$"
"""The field that stands for the whole value as JSON."""

logger = logging.getLogger(__name__)


class _Batch(NamedTuple):
    """The operations of a batch by their kinds."""

    get: list[ItemGet]
    search: list[ItemSearch]
    namespaces: list[NamespaceSearch]
    put: list[ItemPut]
    user: str


class PriorsStore(BaseStore):
    """A store of LangGraph over the HTTP API of Priors. It closes no client: who opened one closes it."""

    supports_ttl = True

    def __init__(
        self,
        client: Client,
        async_client: AsyncClient | None = None,
        *,
        fields: Sequence[str] = (WHOLE,),
        ttl: TTLConfig | None = None,
        user: str = "",
    ) -> None:
        """Asynchronous calls take `async_client`; without one they take `client`, in a thread.

        `fields` are the paths of the values' texts by which queries find items, unless a put names others; with none
        no query finds anything. The texts of items are memories of Priors: histories and other searches show them too,
        those of a `user` to this user alone. A user's store holds what was put for this user, and nothing else.
        """
        self._client, self._async_client = client, async_client
        self._fields, self._user = fields, user
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out operations in one request: what it reads is the state before what it writes."""
        operations = list(ops)
        if not operations:
            return []
        return self._results(operations, self._client.admin.batch_items(**self._batch(operations)._asdict()))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Does the same as `batch`."""
        operations = list(ops)
        if not operations:
            return []
        if self._async_client is None:
            return await asyncio.to_thread(self.batch, operations)
        return self._results(
            operations, await self._async_client.admin.batch_items(**self._batch(operations)._asdict())
        )

    def _batch(self, operations: Sequence[Op]) -> _Batch:
        batch = _Batch([], [], [], [], self._user)
        for operation in operations:
            match operation:
                case GetOp():
                    batch.get.append(_get(operation))
                case SearchOp():
                    batch.search.append(_search(operation))
                case ListNamespacesOp():
                    batch.namespaces.append(_namespaces(operation))
                case PutOp():
                    batch.put.append(self._put(operation))
                case _:
                    raise ValueError(f"Unknown operation type: {type(operation)}")
        return batch

    def _put(self, operation: PutOp) -> ItemPut:
        value = operation.value
        if value is not None:
            json.dumps(dict(value), allow_nan=False)  # NaN would be stored as null
        return ItemPut(
            namespace=operation.namespace,
            key=operation.key,
            value=value,
            text="" if value is None else self._text(operation),
            ttl_minutes=operation.ttl,
        )

    def _text(self, operation: PutOp) -> str:
        """Returns the texts of the fields by which an item is found."""
        fields = self._fields if operation.index is None else operation.index or ()
        texts = (
            text
            for field in fields
            for text in get_text_at_path(operation.value, field if field == WHOLE else tokenize_path(field))
        )
        return "\n\n".join(texts)

    def _results(self, operations: Sequence[Op], answers: ItemAnswersView) -> list[Result]:
        """Returns the answers in the order of the operations."""
        for refused in answers.unsearchable:
            logger.warning("no query finds an item of this batch (put %d): %s", refused.index, refused.reason)
        gotten, found, listed = iter(answers.get), iter(answers.search), iter(answers.namespaces)
        results: list[Result] = []
        for operation in operations:
            match operation:
                case GetOp():
                    got = next(gotten)
                    results.append(None if got is None else Item(**_fields_of(got)))
                case SearchOp():
                    results.append([SearchItem(**_fields_of(one), score=one.score) for one in next(found).items])
                case ListNamespacesOp():
                    results.append([tuple(labels) for labels in next(listed)])
                case _:
                    results.append(None)
        return results


def _get(operation: GetOp) -> ItemGet:
    return ItemGet(namespace=operation.namespace, key=operation.key, refresh_ttl=operation.refresh_ttl)


def _search(operation: SearchOp) -> ItemSearch:
    return ItemSearch(
        prefix=operation.namespace_prefix,
        filter=operation.filter or {},
        query=operation.query or "",
        limit=operation.limit,
        offset=operation.offset,
        refresh_ttl=operation.refresh_ttl,
    )


def _namespaces(operation: ListNamespacesOp) -> NamespaceSearch:
    conditions = operation.match_conditions or ()
    for condition in conditions:
        if condition.match_type not in {"prefix", "suffix"}:
            raise ValueError(f"Unsupported match type: {condition.match_type}")
    return NamespaceSearch(
        prefixes=[condition.path for condition in conditions if condition.match_type == "prefix"],
        suffixes=[condition.path for condition in conditions if condition.match_type == "suffix"],
        max_depth=operation.max_depth,
        limit=operation.limit,
        offset=operation.offset,
    )


def _fields_of(item: models.Item) -> Mapping[str, Any]:
    return {
        "namespace": tuple(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
