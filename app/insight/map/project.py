"""The verb that shows a workspace's memories on a map."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from app.db.database import Database
from app.db.session import Session
from app.errors import InvalidInput
from app.index.models import StoredModel, active_model
from app.index.pending import pending_count
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
from app.insight.map.process import Layout
from app.insight.map.values import COMPUTED, STORED, Graph, Known, Material, Point, Shown, StoredLayout
from app.insight.map.worker import LayoutWorker
from app.memories.memory import KINDS
from app.models.protocols import EmbeddingProvider
from app.workspaces.workspace import Workspace

FEW, MOST = 600, 5_000
"""Memories of a map, unless more are asked for, and at most."""
EVERY_KIND = ""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The options of a map."""

    workspace: Workspace
    kind: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """All that a job is made of."""

    view: View
    base: Mapping[Known, Point]
    """The places that are kept."""
    material: Material


async def graph(
    database: Database,
    provider: EmbeddingProvider,
    worker: LayoutWorker,
    *,
    workspace: Workspace,
    kind: str = EVERY_KIND,
    limit: int = FEW,
    refresh: bool = False,
) -> Graph:
    """Returns the newest `limit` live memories that have a vector, with their places and clusters.

    Unchanged memories are where they were; new ones are placed among them, unless `refresh` asks for another map.

    Raises:
        InvalidInput: an unknown kind, or a limit out of range.
        GraphUnavailable: a layout is needed and cannot be computed now.
    """
    question = Question(workspace=workspace, kind=kind, limit=limit)
    _check(question)
    async with database.session(workspace, transaction=False) as session:
        view = await _view(session, question)
    if not view.shown:
        return _empty(view, question, enabled=provider.enabled)
    if view.stored and not refresh:
        return _stored(view)
    name = (workspace.workspace_id, kind, limit, view.fingerprint, refresh)
    found = await worker.in_progress.once(name, lambda: _drawn(database, worker, question, refresh=refresh))
    # The same memories may have been asked for before others came to wait.
    return replace(found, reason=_missing(view.pending)) if found.nodes else found


def _check(question: Question) -> None:
    if question.kind not in {EVERY_KIND, *KINDS}:
        raise InvalidInput("kind", f"{question.kind!r} is not a kind; there are {', '.join(KINDS)}")
    if not 1 <= question.limit <= MOST:
        raise InvalidInput("limit", f"must be from 1 to {MOST:,}")


async def _view(session: Session, question: Question) -> View:
    """Returns the part of the store that answers the question."""
    model = await active_model(session)
    shown: tuple[Shown, ...] = ()
    if model is not None:
        shown = await store.newest(session, model, kind=question.kind, limit=question.limit)
    fingerprint = fingerprint_of("" if model is None else model.name, shown)
    found = await store.find_layout(session, fingerprint=fingerprint, kind=question.kind, limit=question.limit)
    layout, places = (None, {}) if found is None else found
    return View(
        model=model,
        shown=shown,
        pending=await pending_count(session),
        fingerprint=fingerprint,
        layout=layout,
        places=places,
    )


async def _drawn(database: Database, worker: LayoutWorker, question: Question, *, refresh: bool) -> Graph:
    """Computes what is missing and stores it."""
    started = time.perf_counter()
    found = await _gathered(database, question, refresh=refresh)
    if isinstance(found, Graph):
        return found
    layout = await worker.compute(job_of(found.view, found.base, found.material))
    graph = await _kept(database, found, layout, question)
    logger.info(
        "graph laid out",
        mode=graph.mode,
        memories=len(graph.nodes),
        ms=round((time.perf_counter() - started) * 1000),
    )
    return graph


async def _gathered(database: Database, question: Question, *, refresh: bool) -> _Gathered | Graph:
    """Returns what the job is made of, or the map where nothing is to be computed.

    Where memories change while they are read, it reads anew.
    """
    async with database.session(question.workspace, transaction=False) as session:
        while True:
            view = await _view(session, question)
            if view.model is None or not view.shown:
                return _empty(view, question, enabled=True)
            if view.stored and not refresh:
                return _stored(view)
            base = {} if refresh else usable(view)
            material = await _material(session, view, view.model, base)
            if material is not None:
                return _Gathered(view=view, base=base, material=material)


async def _material(session: Session, view: View, model: StoredModel, base: Mapping[Known, Point]) -> Material | None:
    """Returns vectors and texts of the shown memories; None where one of them has changed."""
    wanted = [known(item) for item in view.shown]
    material = await store.material(session, model, wanted, beyond=anchors_beyond(base, wanted))
    complete = material.ids[: len(wanted)] == tuple(memory_id for memory_id, _ in wanted)
    return material if complete else None


async def _kept(database: Database, found: _Gathered, layout: Layout, question: Question) -> Graph:
    """Names the clusters and stores the layout."""
    view = found.view
    async with database.session(question.workspace) as session:
        terms = await _terms(session, layout)
        graph = graph_of(view, layout, terms, reason=_missing(view.pending), now=datetime.now(UTC))
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
        await store.save(session, stored, places_of(graph, found.base))
    return graph


async def _terms(session: Session, layout: Layout) -> list[tuple[str, ...]]:
    """Returns the label of each cluster."""
    words = [word for found in layout.words for word in found]
    lexemes = iter(await store.lexemes(session, words))
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
        reason=_missing(view.pending),
    )


def _empty(view: View, question: Question, *, enabled: bool) -> Graph:
    if view.pending and not enabled:
        reason = "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop), and no memory has a vector"
    elif view.pending:
        reason = f"no memory{_of(question.kind)} has its vector yet; {view.pending:,} wait for theirs"
    else:
        reason = f"there is no memory{_of(question.kind)} in workspace {question.workspace.name}"
    return Graph(
        nodes=(), clusters=(), fingerprint=view.fingerprint.hex(), computed_at=None, mode=COMPUTED, reason=reason
    )


def _of(kind: str) -> str:
    return f" of the kind {kind}" if kind else ""


def _missing(pending: int) -> str:
    if pending == 1:
        return "1 memory waits for its vector and is not shown"
    return f"{pending:,} memories wait for their vector and are not shown" if pending else ""
