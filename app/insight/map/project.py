"""The verb that shows a workspace's memories on a map."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import structlog

from app.errors import InvalidInput
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider
from app.insight.map import store
from app.insight.map.drawing import (
    Graph,
    Known,
    Material,
    Point,
    StoredLayout,
    Terms,
    View,
    anchors_beyond,
    fingerprint_of,
    graph_of,
    job_of,
    layout_key,
    places_of,
    stored_graph,
    usable,
)
from app.insight.map.process import COMPUTED, Layout, label
from app.insight.map.worker import LayoutWorker
from app.storage.index.indexing import pending_count
from app.storage.index.models import active_model
from app.storage.memories.memory import KINDS
from app.storage.tenants.workspace import Workspace

FEW, MOST = 600, 5_000
"""Default number of memories of a map, and the largest one."""
_EVERY_KIND = ""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapQuestion:
    """The options of a map."""

    workspace: Workspace
    kind: str = _EVERY_KIND
    limit: int = FEW
    refresh: bool = False
    """True for another map than the stored one."""


class _Gathered(NamedTuple):
    """All that a job is made of."""

    view: View
    base: Mapping[Known, Point]
    """The places that are kept."""
    material: Material


async def graph(database: Database, provider: EmbeddingProvider, worker: LayoutWorker, question: MapQuestion) -> Graph:
    """Returns the newest live memories that have a vector, with their places and clusters.

    Unchanged memories keep their places; new ones are placed among them, unless `refresh` asks for another map.

    Raises:
        InvalidInput: an unknown kind, or a limit out of range.
        GraphUnavailable: a layout is needed and cannot be computed now.
    """
    _check(question)
    async with database.session(question.workspace, reading=True) as session:
        view = await _view(session, question)
    ready = _ready(view, question, enabled=provider.enabled)
    if ready is not None:
        return ready
    name = (question.workspace.workspace_id, question.kind, question.limit, question.refresh, view.fingerprint)
    found = await worker.in_progress.once(name, lambda: _draw_map(database, worker, question))
    # The same memories may have been asked for before others were queued.
    return replace(found, reason=view.missing) if found.nodes else found


def _check(question: MapQuestion) -> None:
    if question.kind not in {_EVERY_KIND, *KINDS}:
        raise InvalidInput("kind", f"{question.kind!r} is not a kind; there are {', '.join(KINDS)}")
    if not 1 <= question.limit <= MOST:
        raise InvalidInput("limit", f"must be from 1 to {MOST:,}")


async def _view(session: Session, question: MapQuestion) -> View:
    """Returns the part of the store that answers the question."""
    asked: dict[str, Any] = {"kind": question.kind, "limit": question.limit}
    model = await active_model(session)
    shown = () if model is None else await store.newest(session, model, **asked)
    fingerprint = fingerprint_of("" if model is None else model.name, shown)
    return View(
        model=model,
        shown=shown,
        pending=await pending_count(session),
        fingerprint=fingerprint,
        layout=await store.find_layout(session, fingerprint=fingerprint, **asked),
    )


def _ready(view: View, question: MapQuestion, *, enabled: bool = True) -> Graph | None:
    """Returns the map if it needs no computation; otherwise None."""
    if not view.shown:
        return _empty(view, question, enabled=enabled)
    return None if question.refresh else stored_graph(view)


async def _draw_map(database: Database, worker: LayoutWorker, question: MapQuestion) -> Graph:
    """Computes and stores the map."""
    started = time.perf_counter()
    found = await _gather_data(database, question)
    if isinstance(found, Graph):
        return found
    layout = await worker.compute(job_of(*found))
    graph = await _store_layout(database, found, layout, question)
    logger.info(
        "graph laid out",
        mode=graph.mode,
        memories=len(graph.nodes),
        ms=round((time.perf_counter() - started) * 1000),
    )
    return graph


async def _gather_data(database: Database, question: MapQuestion) -> _Gathered | Graph:
    """Returns the data for the job, or the map if it needs no computation.

    If memories change while they are read, it reads again.
    """
    async with database.session(question.workspace, transaction=False) as session:
        while True:
            view = await _view(session, question)
            ready = _ready(view, question)
            if ready is not None:
                return ready
            assert view.model is not None, "there are no vectors without a model"  # noqa: S101
            base = {} if question.refresh else usable(view)
            wanted = [layout_key(item) for item in view.shown]
            material = await store.material(session, view.model, wanted, beyond=anchors_beyond(base, wanted))
            if material is not None:
                return _Gathered(view, base, material)


async def _store_layout(database: Database, found: _Gathered, layout: Layout, question: MapQuestion) -> Graph:
    """Labels the clusters and stores the layout."""
    view, base, _ = found
    async with database.session(question.workspace) as session:
        graph = graph_of(view, layout, await _terms(session, layout), now=datetime.now(UTC))
        assert view.model is not None, "there are no vectors without a model"  # noqa: S101
        assert graph.computed_at is not None, "there are memories"  # noqa: S101
        stored = StoredLayout(
            kind=question.kind,
            node_limit=question.limit,
            fingerprint=view.fingerprint,
            model=view.model.name,
            clusters=graph.clusters,
            computed_at=graph.computed_at,
            places=places_of(graph, base),
        )
        await store.save(session, stored)
    return graph


async def _terms(session: Session, layout: Layout) -> list[Terms]:
    """Returns the terms of each cluster, and then those of each island."""
    groups = layout.words + [island.words for island in layout.islands]
    lexemes = iter(await store.lexemes(session, [word for found in groups for word in found]))
    return [tuple(label([(word, next(lexemes)) for word, _ in found])) for found in groups]


def _empty(view: View, question: MapQuestion, *, enabled: bool) -> Graph:
    of_kind = f" of the kind {question.kind}" if question.kind else ""
    if view.pending and not enabled:
        reason = "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop), and no memory has a vector"
    elif view.pending:
        reason = f"no memory{of_kind} has its vector yet; {view.pending:,} wait for theirs"
    else:
        reason = f"there is no memory{of_kind} in workspace {question.workspace.name}"
    return Graph(
        nodes=(), clusters=(), fingerprint=view.fingerprint.hex(), computed_at=None, mode=COMPUTED, reason=reason
    )
