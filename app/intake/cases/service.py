"""The verbs that tell which issues of a case are the same, keep its history as notes, and show it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.models.protocols import EmbeddingProvider, Matrix, TokenCounter, Vector
from app.intake.cases import store
from app.intake.cases.cases import CaseHistory, assemble_history, number_issues, statements
from app.intake.cases.judgement import case_key
from app.intake.cases.store import CaseSummary, KnownCase
from app.intake.cases.told import issues_text, score_text
from app.storage.index.indexing import reindex_memories
from app.storage.index.vectors import embedded_text
from app.storage.links.store import forget_found
from app.storage.memories import changes, sources
from app.storage.memories import store as memories
from app.storage.memories.facets import CALIBRATION, CASE, FACET, RECURRING
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import DELETED, TAG_LIMIT, MemoryRow, NewMemory, SourceReference, content_hash
from app.storage.memories.service import LARGEST_PAGE
from app.storage.memories.write import write
from app.storage.tenants.service import check_room
from app.storage.tenants.workspace import Workspace

_MOST_EMBEDDED = 4_000
"""Vectors of titles that a process keeps: 6 MB at 384 dimensions. A case of 30 versions with 10 issues each is matched
in 0.09 s after a new judgement, and took 0.3 without."""
_embedded: dict[tuple[str, str], Vector] = {}
_ATTEMPTS = 3
"""To match a case whose judgements change meanwhile; then the next job does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The judged test cases of a database."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    mask_secrets: bool = True

    async def match(self, workspace: Workspace) -> list[UUID]:
        """Matches the issues of cases that have new judgements; returns the notes of their history that have changed.

        Notes of cases that have no judgement any more are retired.

        Raises:
            EmbeddingUnavailable: the titles of issues cannot be embedded now; what is left is matched another time.
        """
        async with self.database.session(workspace, transaction=False) as session:
            names = await store.pending(session)
        changed: list[UUID] = []
        for name in names:
            for _ in range(_ATTEMPTS):
                notes = await self._match(workspace, name)
                if notes is not None:
                    changed += notes
                    break
        async with self.database.session(workspace) as session:
            await memories.retire(session, await store.idle_notes(session))
        return changed

    async def workspaces_to_match(self, across: Across) -> Sequence[int]:
        """Returns the workspaces that have cases with new judgements."""
        async with across(transaction=False) as session:
            return await store.pending_of_all(session)

    async def page(self, workspace: Workspace, *, limit: int = LARGEST_PAGE) -> Sequence[CaseSummary]:
        """Returns the test cases that were judged, the latest judged first.

        Raises:
            InvalidInput: a limit out of range.
        """
        if not 1 <= limit <= LARGEST_PAGE:
            raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
        async with self.database.session(workspace, reading=True) as session:
            return await store.cases(session, limit=limit)

    async def get(self, workspace: Workspace, case: str) -> CaseHistory:
        """Returns the history of a test case, named in any spelling; matches issues that no worker has matched yet.

        Raises:
            NotFound: nothing in the workspace was judged under this name.
        """
        name = case_key(case)
        async with self.database.session(workspace, reading=True) as session:
            known = await store.case(session, name)
        if not known.judgements:
            raise NotFound(f"there is no judged case {case!r} in workspace {workspace.name}")
        numbers = known.numbers
        if not known.matched:
            try:
                numbers = await self._numbers(name, known)
            except EmbeddingUnavailable:
                numbers = await asyncio.to_thread(number_issues, name, known.judgements)
        return await asyncio.to_thread(assemble_history, name, known.judgements, numbers)

    async def _match(self, workspace: Workspace, name: str) -> list[UUID] | None:
        """Matches a case; returns its changed notes, and None if its judgements have changed meanwhile."""
        await check_room(self.database, workspace)
        async with self.database.session(workspace, transaction=False) as session:
            known = await store.case(session, name)
        numbers = await self._numbers(name, known)
        history = await asyncio.to_thread(assemble_history, name, known.judgements, numbers)
        notes = await asyncio.to_thread(self._notes, history, workspace)

        async def attempt() -> list[UUID] | None:
            async with self.database.session(workspace) as session:
                now = await store.case(session, name, locked=True)
                if [item.judgement_id for item in now.judgements] != [item.judgement_id for item in known.judgements]:
                    return None
                await store.write_issues(session, history, known)
                # A case that has lost its judgements needs no source for its notes; idle notes are retired afterwards.
                return await _keep(session, name, notes) if now.judgements else []

        return await again_after_deadlock(attempt)

    async def _numbers(self, name: str, known: KnownCase) -> Mapping[tuple[UUID, int], UUID]:
        forms = [issue.forms for _, _, issue in statements(known.judgements)]
        vectors = (
            [await _vectors(self.provider, texts) for texts in zip(*forms, strict=True)]
            if self.provider.enabled
            else ()
        )
        return await asyncio.to_thread(number_issues, name, known.judgements, *vectors)

    def _notes(self, history: CaseHistory, workspace: Workspace) -> Sequence[MemoryRow | None]:
        """Returns the notes of a case: its score history, and its issues; None for one that has nothing to say."""
        texts = {
            "score history and scoring patterns": score_text(history),
            "known and recurring issues": issues_text(history),
        }
        return [
            self._note(history, place, f"{history.title}: {what}", body, workspace) if body else None
            for place, (what, body) in enumerate(texts.items())
        ]

    def _note(self, history: CaseHistory, place: int, title: str, body: str, workspace: Workspace) -> MemoryRow | None:
        source = SourceReference(kind="other", uri=f"{CASE}{history.case}", title=f"history of {history.title}")
        facet = (CALIBRATION, RECURRING)[place]
        memory = NewMemory(
            kind="note",
            title=title,
            body=body,
            source=source,
            ordinal=place,
            tags=(history.case[:TAG_LIMIT], facet),
            metadata={FACET: facet, "case": history.case},
        )
        passed = screen_memory(memory, mask=self.mask_secrets)
        if passed.objection is not None:
            return None
        tokens = self.counter.count(embedded_text(passed.memory.title, passed.memory.body))
        return MemoryRow(memory=passed.memory, source_id=None, language=workspace.language, tokens=tokens)


async def _vectors(provider: EmbeddingProvider, titles: Sequence[str]) -> Matrix:
    """Embeds texts; those that this process has embedded lately are not embedded again."""
    model = provider.model_id
    known = {title: _embedded[model, title] for title in titles if (model, title) in _embedded}
    new = list(dict.fromkeys(title for title in titles if title not in known))
    if new:
        known |= {title: row.copy() for title, row in zip(new, await provider.embed_documents(new), strict=True)}
    for title, vector in known.items():
        # The latest ones stand at the end.
        _embedded.pop((model, title), None)
        _embedded[model, title] = vector
    for key in list(_embedded)[:-_MOST_EMBEDDED]:
        del _embedded[key]
    return np.stack([known[title] for title in titles])


async def _keep(session: Session, name: str, notes: Sequence[MemoryRow | None]) -> list[UUID]:
    """Keeps the notes of a case in place of those that were kept; returns those that say something else now.

    A note keeps its id and its ratings.
    """
    reference = next((row.memory.source for row in notes if row is not None), None)
    if reference is None:
        reference = SourceReference(kind="other", uri=f"{CASE}{name}")
    found = await sources.ensure(session, [reference])
    source_id = found[reference.kind, reference.uri]
    latest, changed = await store.notes(session, source_id), list[UUID]()
    for place, row in enumerate(notes):
        memory_id, retired_as = latest.get(place, (None, None))
        if row is None:
            await memories.retire(session, [] if memory_id is None or retired_as else [memory_id])
        elif memory_id is None or retired_as not in {None, DELETED}:
            changed += [row.memory_id]
            await write(session, [replace(row, source_id=source_id)])
        elif retired_as is None and await _says_anew(session, memory_id, row):
            changed += [memory_id]
    return changed


async def _says_anew(session: Session, memory_id: UUID, row: MemoryRow) -> bool:
    """Gives a note its new text; returns whether it is new."""
    memory = await memories.get(session, memory_id)
    if memory is None or memory.body == row.memory.body:
        return False
    digest = content_hash(NewMemory(kind=memory.kind, title=memory.title, body=row.memory.body), memory.language)
    anew = replace(memory, body=row.memory.body, tokens=row.tokens)
    await changes.extend(session, anew, content_hash=digest, facts=())
    await reindex_memories(session, [memory_id])
    await forget_found(session, [memory_id])
    return True
