"""The verb that shows a workspace's memories on a map."""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from uuid import UUID

import msgspec
import structlog

from app.errors import GraphUnavailable, InvalidInput, Unavailable
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.values import frozen
from app.insight.child import run_child
from app.insight.map import store
from app.insight.map.drawing import Cluster, DrawnMap, Graph, Point, ShownMemory
from app.insight.map.labels import label
from app.insight.map.layout import CACHE, Layout
from app.storage.index.indexing import pending_count
from app.storage.index.models import active_model
from app.storage.memories.memory import KINDS
from app.storage.tenants.workspace import Workspace

FEW, MOST = 600, 4_000
"""Default number of memories of a map, and the largest one. UMAP compares fewer than 4,096 with each other; for more it
would compile another search for half a minute."""
_EVERY_KIND = ""
_LACKING = 0.1
"""Share of the memories that may be missing from a map; with more missing it is drawn again when it is asked for."""
_LONGEST_SECONDS = 300.0
"""Seconds that a map may take; 5,000 memories took 20 s on two busy cores."""
_MOST_PROCESSES = 2
"""Processes at once: one draws a map, and meanwhile one computes a sketch, each on a core of its own."""
_PARTS = ("umap-learn", "pynndescent", "numba")
_LACKS_UMAP = "the map of memories is an extra: pip install 'priors[map]', and start the service again"

logger = structlog.get_logger()


@frozen
class MapQuestion:
    """The options of a map."""

    kind: str = _EVERY_KIND
    limit: int = FEW
    refresh: bool = False
    """True for another map than the stored one."""
    sketch: bool = False
    """True for a map in moments where none is stored: its places are rough, and it is not stored."""


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Draws maps, one at a time, each in a process of its own: UMAP takes seconds to import, and 400 MB.

    A sketch needs neither UMAP nor its turn among the maps, but one of the processes.
    """

    database: Database
    provider: EmbeddingProvider
    cache: Path
    """The folder for compiled machine code: the first map compiles for half a minute."""
    drawing: asyncio.Lock = field(default_factory=asyncio.Lock)
    processes: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_PROCESSES))

    async def show(self, workspace: Workspace, question: MapQuestion) -> Graph:
        """Returns the newest live memories that have a vector, with their places and clusters.

        A stored map is shown with its age as long as it has nearly all of them, unless `refresh` asks for another one.

        Raises:
            InvalidInput: an unknown kind, or a limit out of range.
            GraphUnavailable: a map is to be drawn, and cannot be drawn now.
        """
        _check(question)
        since = datetime.now(UTC) if question.refresh else None
        if found := await self._find_stored(workspace, question, since=since):
            return found
        if question.sketch:
            return await self._sketch(workspace, question)
        async with self.drawing:
            # Who has waited may find it drawn by now.
            if found := await self._find_stored(workspace, question, since=since):
                return found
            await self._draw(workspace, question)
        found = await self._find_stored(workspace, question, least=0.0)
        assert found is not None, "it was drawn"  # noqa: S101
        return found

    async def _find_stored(
        self,
        workspace: Workspace,
        question: MapQuestion,
        *,
        since: datetime | None = None,
        least: float = 1 - _LACKING,
    ) -> Graph | None:
        """Returns the stored map, drawn `since` a moment, or an empty one; None where another one is to be drawn."""
        async with self.database.session(workspace, reading=True) as session:
            model, pending = await active_model(session), await pending_count(session)
            kind, limit = question.kind, question.limit
            shown = [] if model is None else await store.newest(session, model, kind=kind, limit=limit)
            drawn = await store.find(session, kind=_view_name(workspace, question), limit=limit)
        if not shown:
            return Graph(reason=_reason_of_nothing(pending, question, workspace, enabled=self.provider.enabled))
        if drawn is None or (since is not None and drawn.computed_at < since):
            return None
        nodes = [(item, drawn.places[item.memory_id]) for item in shown if item.memory_id in drawn.places]
        if len(nodes) < least * len(shown):
            return None
        reasons = (
            _missing(pending, "waiting for a vector"),
            _missing(len(shown) - len(nodes), "newer than it"),
        )
        return Graph(
            nodes=nodes,
            clusters=drawn.clusters,
            computed_at=drawn.computed_at,
            reason=", ".join(filter(None, reasons)),
        )

    async def _sketch(self, workspace: Workspace, question: MapQuestion) -> Graph:
        shown, ids, layout = await self._compute(workspace, question)
        memories = {item.memory_id: item for item in shown}
        async with self.database.session(workspace, reading=True) as session:
            drawn = await _map_of(session, ids, layout)
        nodes = [(memories[identity], point) for identity, point in drawn.places.items()]
        return Graph(nodes=nodes, clusters=drawn.clusters, computed_at=drawn.computed_at)

    async def _draw(self, workspace: Workspace, question: MapQuestion) -> None:
        """Draws and stores the map."""
        if find_spec("umap") is None:
            raise GraphUnavailable(_LACKS_UMAP)
        started = time.perf_counter()
        _, ids, layout = await self._compute(workspace, question, **self._cache_environment())
        async with self.database.session(workspace) as session:
            drawn = await _map_of(session, ids, layout)
            if not await store.all_exist(session, ids):
                raise GraphUnavailable("memories were destroyed while the map was drawn: ask for it again")
            await store.save(session, drawn, kind=_view_name(workspace, question), limit=question.limit)
        logger.info("map drawn", memories=len(ids), ms=round((time.perf_counter() - started) * 1000))

    async def _compute(
        self, workspace: Workspace, question: MapQuestion, **environment: str
    ) -> tuple[Sequence[ShownMemory], Sequence[UUID], Layout]:
        """Returns the memories asked for, those of them that are placed, and their places."""
        async with self.database.session(workspace, reading=True) as session:
            model = await active_model(session)
            assert model is not None, "there are memories with vectors"  # noqa: S101
            shown = await store.newest(session, model, kind=question.kind, limit=question.limit)
            ids, job = await store.material(session, model, [item.memory_id for item in shown])
        try:
            sent = msgspec.msgpack.encode(msgspec.structs.replace(job, sketch=question.sketch))
            async with self.processes:
                answer = await run_child(
                    "app.insight.map.layout", sent, "the map", seconds=_LONGEST_SECONDS, **environment
                )
        except Unavailable as error:
            raise GraphUnavailable(str(error)) from error
        return shown, ids, msgspec.msgpack.decode(answer, type=Layout)

    def _cache_environment(self) -> dict[str, str]:
        """Returns the variable of the folder for compiled code; where that is read-only, numba chooses its own."""
        # The name has the versions: numba notices a change in a function, not in what it calls.
        folder = Path(os.environ.get(CACHE) or self.cache / "-".join(map(version, _PARTS)))
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            return {}
        return {CACHE: str(folder)} if os.access(folder, os.W_OK) else {}


def _check(question: MapQuestion) -> None:
    if question.kind not in {_EVERY_KIND, *KINDS}:
        raise InvalidInput("kind", f"{question.kind!r} is not a kind; there are {', '.join(KINDS)}")
    if not 1 <= question.limit <= MOST:
        raise InvalidInput("limit", f"must be from 1 to {MOST:,}")


def _view_name(workspace: Workspace, question: MapQuestion) -> str:
    """Returns the name under which a map is stored: that of nobody's memories alone is not that of everyone's."""
    return f"{workspace.sees} {question.kind}".strip()


async def _map_of(session: Session, ids: Sequence[UUID], layout: Layout) -> DrawnMap:
    points = map(Point, layout.xs, layout.ys, layout.members)
    return DrawnMap(
        places=dict(zip(ids, points, strict=True)),
        clusters=await _label_clusters(session, layout),
        computed_at=datetime.now(UTC),
    )


async def _label_clusters(session: Session, layout: Layout) -> list[Cluster]:
    """Returns the clusters with their labels."""
    lexemes = iter(await store.lexemes(session, [word for item in layout.clusters for word in item.words]))
    return [
        Cluster(
            id=number,
            terms=label([(word, next(lexemes)) for word, _ in item.words]),
            size=item.size,
            x=item.x,
            y=item.y,
        )
        for number, item in enumerate(layout.clusters)
    ]


def _missing(count: int, why: str) -> str:
    if not count:
        return ""
    return f"1 memory is {why} and is not shown" if count == 1 else f"{count:,} memories are {why} and are not shown"


def _reason_of_nothing(pending: int, question: MapQuestion, workspace: Workspace, *, enabled: bool) -> str:
    of_kind = f" of the kind {question.kind}" if question.kind else ""
    if pending and not enabled:
        return "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop), and no memory has a vector"
    if pending:
        return f"no memory{of_kind} has its vector yet; {pending:,} wait for theirs"
    return f"there is no memory{of_kind} in workspace {workspace.name}"
