"""The verb that shows a workspace's memories on a map."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.errors import InvalidInput
from app.index.vectors import active_model
from app.insight.map import store
from app.insight.map.drawing import (
    View,
    anchors_beyond,
    fingerprint_of,
    graph_of,
    job_of,
    known,
    places_of,
    projected_of,
    usable,
)
from app.insight.map.labels import label
from app.insight.map.messages import COMPUTED, STORED, Layout
from app.insight.map.values import Graph, Known, Point, Shown, StoredLayout
from app.insight.map.worker import LayoutWorker
from app.memories.memory import KINDS
from app.models.protocols import EmbeddingProvider
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

FEW, MOST = 600, 5_000
"""Memories of a map, unless more are asked for, and at most."""
EVERY_KIND = ""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked for."""

    workspace: str
    kind: str
    limit: int


async def graph(
    database: Database,
    provider: EmbeddingProvider,
    worker: LayoutWorker,
    *,
    workspace: str,
    kind: str = EVERY_KIND,
    limit: int = FEW,
    refresh: bool = False,
) -> Graph:
    """The newest `limit` live memories that have a vector, with their places and clusters.

    Unchanged memories are where they were; new ones are placed among them, unless `refresh` asks for another map.

    Raises:
        InvalidInput: an unknown kind, or a limit out of range.
        GraphUnavailable: a layout is needed and cannot be computed now.
    """
    question = Question(workspace=checked_name(workspace), kind=kind, limit=limit)
    _check(question)
    async with database.transaction() as connection:
        view = await _view(connection, question)
    if view is None or not view.shown:
        return _empty(view, question, enabled=provider.enabled)
    if view.stored and not refresh:
        return _stored(view)
    name = (view.workspace_id, kind, limit, view.fingerprint, refresh)
    found = await worker.underway.once(name, lambda: _drawn(database, worker, question, refresh=refresh))
    # The same memories may have been asked for before others came to wait.
    return replace(found, reason=_missing(view.waiting)) if found.nodes else found


def _check(question: Question) -> None:
    if question.kind not in {EVERY_KIND, *KINDS}:
        raise InvalidInput("kind", f"{question.kind!r} is not a kind; there are {', '.join(KINDS)}")
    if not 1 <= question.limit <= MOST:
        raise InvalidInput("limit", f"must be from 1 to {MOST:,}")


async def _view(connection: AsyncConnection, question: Question) -> View | None:
    """What there is; None where nothing was ever written to the workspace."""
    await store.freeze(connection)
    target = await workspaces.find(connection, question.workspace)
    if target is None:
        return None
    workspace_id, model = target.workspace_id, await active_model(connection)
    shown: tuple[Shown, ...] = ()
    if model is not None:
        shown = await store.newest(connection, workspace_id, model, kind=question.kind, limit=question.limit)
    fingerprint = fingerprint_of("" if model is None else model.name, shown)
    layout = await store.find_layout(
        connection, workspace_id, fingerprint=fingerprint, kind=question.kind, limit=question.limit
    )
    return View(
        workspace_id=workspace_id,
        model=model,
        shown=shown,
        waiting=await store.waiting(connection, workspace_id),
        fingerprint=fingerprint,
        layout=layout,
        places={} if layout is None else await store.points(connection, workspace_id, layout),
    )


async def _drawn(database: Database, worker: LayoutWorker, question: Question, *, refresh: bool) -> Graph:
    """Compute what is missing and store it."""
    started = time.perf_counter()
    async with database.transaction() as connection:
        view = await _view(connection, question)
        if view is None or view.model is None or not view.shown:
            return _empty(view, question, enabled=True)
        if view.stored and not refresh:
            return _stored(view)
        base = {} if refresh else usable(view)
        wanted = [known(item) for item in view.shown]
        material = await store.material(
            connection, view.workspace_id, view.model, wanted, beyond=anchors_beyond(base, wanted)
        )
    layout = await worker.compute(job_of(view, base, material))
    graph = await _kept(database, view, base, layout, question)
    logger.info(
        "graph laid out",
        mode=graph.mode,
        memories=len(graph.nodes),
        ms=round((time.perf_counter() - started) * 1000),
    )
    return graph


async def _kept(
    database: Database, view: View, base: Mapping[Known, Point], layout: Layout, question: Question
) -> Graph:
    """Name the clusters and store the layout."""
    async with database.transaction() as connection:
        terms = await _terms(connection, layout)
        graph = graph_of(view, layout, terms, reason=_missing(view.waiting), now=datetime.now(UTC))
        assert view.model is not None, "there are no vectors without a model"  # noqa: S101
        assert graph.computed_at is not None, "there are memories"  # noqa: S101
        stored = StoredLayout(
            kind=question.kind,
            node_limit=question.limit,
            fingerprint=view.fingerprint,
            model=view.model.name,
            clusters=graph.clusters,
            computed_at=graph.computed_at,
        )
        await store.save(connection, view.workspace_id, stored, places_of(graph, base))
    return graph


async def _terms(connection: AsyncConnection, layout: Layout) -> list[tuple[str, ...]]:
    """The label of each cluster."""
    words = [word for found in layout.words for word in found]
    lexemes = iter(await store.lexemes(connection, words))
    indexed = [[(word, next(lexemes)) for word, _ in found] for found in layout.words]
    return [tuple(label(found)) for found in indexed]


def _stored(view: View) -> Graph:
    assert view.layout is not None, "it was found"  # noqa: S101
    nodes = tuple((item, view.places[known(item)]) for item in view.shown)
    return Graph(
        nodes=nodes,
        clusters=view.layout.clusters,
        fingerprint=view.fingerprint.hex(),
        computed_at=view.layout.computed_at,
        mode=STORED,
        projected=projected_of(nodes),
        reason=_missing(view.waiting),
    )


def _empty(view: View | None, question: Question, *, enabled: bool) -> Graph:
    fingerprint = fingerprint_of("", ()) if view is None else view.fingerprint
    if view is not None and view.waiting and not enabled:
        reason = "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop), and no memory has a vector"
    elif view is not None and view.waiting:
        reason = f"no memory{_of(question.kind)} has its vector yet; {view.waiting:,} wait for theirs"
    else:
        reason = f"there is no memory{_of(question.kind)} in workspace {question.workspace}"
    return Graph(nodes=(), clusters=(), fingerprint=fingerprint.hex(), computed_at=None, mode=COMPUTED, reason=reason)


def _of(kind: str) -> str:
    return f" of the kind {kind}" if kind else ""


def _missing(waiting: int) -> str:
    if waiting == 1:
        return "1 memory waits for its vector and is not shown"
    return f"{waiting:,} memories wait for their vector and are not shown" if waiting else ""
