"""The verbs that store cues, show, edit and merge them, and take them away and back."""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from msgspec import structs

from app.errors import EmbeddingUnavailable, InvalidInput, NotFound, check
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import EMBED_CUES, Across, Row, Session
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.safety.secrets import masked_values
from app.recall.cues import evidence, store
from app.recall.cues import vectors as stored_vectors
from app.recall.cues.actions import embed_types
from app.recall.cues.conflicts import Conflicts, supersede
from app.recall.cues.cue import (
    ACTIVE,
    EDITABLE,
    PERSON,
    PROPOSED,
    RETIRED,
    SUPERSEDED,
    TAKEN_AWAY,
    Cue,
    Evidence,
    NewCue,
    objections,
)
from app.recall.cues.edit import restore_in, retire_in
from app.recall.cues.keep import (
    MOST_AT_ONCE,
    CheckedCue,
    StoredCues,
    check_cue,
    cue_in,
    embed_texts,
    given_of,
    language_of,
    memory_of,
    with_types,
)
from app.recall.cues.learn import Learnt, Lesson, claims_of, proofs_of, reason_of_trust, with_proof
from app.recall.cues.store import CueFilter
from app.storage.index.following import provider_of_model
from app.storage.index.indexing import reindex_memories
from app.storage.index.service import Embedder
from app.storage.index.vectors import embedded_text
from app.storage.links import store as links
from app.storage.memories import changes
from app.storage.memories import store as memories
from app.storage.memories.gate import screen_memory, unstorable
from app.storage.memories.memory import DELETED, NewMemory, Rejection, content_hash, in_utc
from app.storage.memories.service import check_limit
from app.storage.memories.write import write
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace

EMBEDDED = frozenset({"trigger", "lesson"})
SCANNED = frozenset({"trigger", "lesson", "quote", "details"})
BATCH = 100
"""Cues that are embedded between two writes: a killed worker loses at most 5 s of work."""
MOST_MERGED = 100
EVERY_CUE = CueFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """Stores cues, shows, edits and merges them, and takes them away and back."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    conflicts: Conflicts
    mask: bool = True
    """Masks secrets in what it stores."""

    async def add(self, workspace: Workspace, cues: Sequence[NewCue]) -> StoredCues:
        """Stores cues; known text (same trigger and lesson) is not stored twice, it unites the evidence.

        A cue is rejected with its reason if it cannot be stored; the others are stored. Secrets are masked, unless
        `mask` is off. Where the embedding model gives no vectors, cues are stored without, matched by words, and
        embedded later.

        Raises:
            InvalidInput: there are too many cues.
            DatabaseUnavailable: nothing was stored.
        """
        if not 1 <= len(cues) <= MOST_AT_ONCE:
            raise InvalidInput("", f"1 to {MOST_AT_ONCE:,} cues are taken at once")
        checked = await asyncio.to_thread(
            lambda: [check_cue(cue, at, counter=self.counter, mask=self.mask) for at, cue in enumerate(cues)]
        )
        ready = [item for item in checked if isinstance(item, CheckedCue)]
        model, embedded = await self._embed_new(workspace, ready)
        types = await embed_types(self.provider, workspace)
        named = await asyncio.to_thread(lambda: [with_types(item, types) for item in embedded])
        workspace = await Workspaces(database=self.database).get_or_create(workspace)
        stored, ids = await again_after_deadlock(lambda: self._store(workspace, named, model))
        new = [cue_id for cue_id, item in zip(ids, named, strict=True) if not item.is_known]
        await self.conflicts.settle(workspace, new)
        found = iter(ids)
        outcomes = [next(found) if isinstance(item, CheckedCue) else None for item in checked]
        return StoredCues(
            ids=tuple(outcomes),
            stored=stored,
            known=len(ready) - stored,
            rejected=tuple(item for item in checked if isinstance(item, Rejection)),
        )

    async def _embed_new(self, workspace: Workspace, ready: Sequence[CheckedCue]) -> tuple[str, Sequence[CheckedCue]]:
        """Returns a model, and the cues with its vectors; those that are stored with vectors already get none."""
        provider = self.provider
        if not provider.enabled or not ready:
            return "", ready
        hashes = [content_hash(item.memory.memory, language_of(workspace, item.cue)) for item in ready]
        async with self.database.session(workspace, transaction=False) as session:
            found = await stored_vectors.embedded_among(session, hashes, provider.model_id, provider.dimension)
        items = [item._replace(is_known=digest in found) for item, digest in zip(ready, hashes, strict=True)]
        model, vectors = await embed_texts(provider, [item.cue for item in items if not item.is_known])
        rows = iter(vectors)
        return model, [item if item.is_known else item._replace(vectors=next(rows)) for item in items]

    async def _store(self, workspace: Workspace, ready: Sequence[CheckedCue], model: str) -> tuple[int, list[UUID]]:
        if not ready:
            return 0, []
        async with self.database.session(workspace) as session:
            revision = await store.next_revision(session)
            rows = [item.memory.row(source_id=None, language=language_of(workspace, item.cue)) for item in ready]
            await workspaces.add_languages(session, workspace, {row.language for row in rows})
            written = await write(session, rows)
            cues = await evidence.with_places(session, [item.cue for item in ready])
            new = zip(written.ids, cues, [item.vectors for item in ready], strict=True)
            await store.insert(session, list(new), model, revision)
            if not model:
                await session.enqueue(EMBED_CUES)
        return written.counts["stored"], written.ids

    async def learn(self, workspace: Workspace, lesson: Lesson) -> Learnt:
        """Stores an agent's lesson: with the user's trust if its quote stands in the user's turns of the session.

        A quote that stands in no turn is not stored: it would be a false citation.

        Raises:
            InvalidInput: it does not say when it applies, or what it is.
            DatabaseUnavailable: nothing was stored.
        """
        check([f"{name}: is empty" for name in ("when", "lesson") if not getattr(lesson, name).strip()])
        check(unstorable(structs.asdict(lesson)))
        (cue,) = await self.prove(workspace, [lesson.cue()])
        proof = next(iter(cue.evidence), Evidence())
        reason = "" if cue.trust == PERSON else reason_of_trust(lesson)
        if proof.ordinal is None:
            without = tuple(structs.replace(item, quote="") for item in cue.evidence if item.session)
            cue = replace(cue, quote="", evidence=without)
        message = proof.ordinal if cue.trust == PERSON else None
        return Learnt(kept=await self.add(workspace, [cue]), trust=cue.trust, message=message, reason=reason)

    async def prove(self, workspace: Workspace, cues: Sequence[NewCue]) -> list[NewCue]:
        """Returns the cues; an agent's own has a person's trust if it quotes the user's own words in its session.

        What the user pasted proves nothing. Its evidence names the turn then, and else the agent's turn that says so,
        if any does.
        """
        found = [masked_values(cue) if self.mask else cue for cue in cues]
        claims = claims_of(found)
        if not claims:
            return found
        quotes = [(proof.session, " ".join(proof.quote.split())) for proof in claims.values()]
        async with self.database.session(workspace, reading=True) as session:
            turns = await evidence.turns_with(session, quotes)
        proofs = await asyncio.to_thread(proofs_of, [quote for _, quote in quotes], turns)
        for (place, proof), turn in zip(claims.items(), proofs, strict=True):
            if turn is not None:
                found[place] = with_proof(found[place], proof, turn)
        return found

    async def edit(
        self, workspace: Workspace, cue_id: UUID, changed: Mapping[str, Any], *, by_person: bool = True
    ) -> Cue:
        """Gives a cue new values of some fields; it keeps its id, its evidence and its counts.

        What a person changed is noted, so that no job changes it again.

        Raises:
            InvalidInput: a value is not valid, or the cue would say something that another memory says already.
            NotFound: the workspace has no such cue.
        """
        async with self.database.session(workspace, transaction=False) as session:
            seen = self._with_changes(await cue_in(session, workspace, cue_id), changed)
        model, (vectors,) = await embed_texts(self.provider if EMBEDDED & changed.keys() else None, [seen])
        async with self.database.session(workspace) as session:
            # Writers of a workspace's cues wait for each other from here on.
            revision = await store.next_revision(session)
            before = await cue_in(session, workspace, cue_id)
            new = self._with_changes(before, changed)
            differ = {name for name in EDITABLE if getattr(new, name) != getattr(before, name)}
            own = vectors if all(getattr(new, name) == getattr(seen, name) for name in EMBEDDED) else None
            edited = sorted(differ & changed.keys()) if by_person else []
            await store.edit(
                session, store.row_of(cue_id, new, model, own), revision, edited=edited, same=not differ & EMBEDDED
            )
            if own is None and differ & EMBEDDED:
                await session.enqueue(EMBED_CUES)
            if differ & SCANNED:
                await self._reword(session, cue_id, new)
            return await cue_in(session, workspace, cue_id)

    def _with_changes(self, before: Cue, changed: Mapping[str, Any]) -> NewCue:
        new = given_of(before, changed)
        new = replace(new, details={}) if new.kind != before.kind and "details" not in changed else new
        check(objections(new))
        return masked_values(new) if self.mask else new

    async def _reword(self, session: Session, cue_id: UUID, cue: NewCue) -> None:
        memory = await memories.get(session, cue_id)
        assert memory is not None, "a cue is deleted with its memory"  # noqa: S101
        new = NewMemory(kind="cue", title=cue.trigger, body=cue.lesson)
        passed = screen_memory(memory_of(cue), mask=self.mask)
        if passed.objection is not None:
            raise InvalidInput("lesson", passed.objection.message)
        digest = content_hash(new, memory.language)
        tokens = self.counter.count(embedded_text(new.title, new.body))
        reworded = replace(memory, title=new.title, body=new.body, tokens=tokens)
        if not await changes.reword(session, reworded, content_hash=digest, findings=passed.findings):
            raise InvalidInput("lesson", "another cue has this trigger and lesson already; merge the two")
        if memory.valid_until is None:
            await reindex_memories(session, [cue_id])
            await links.forget_found(session, [cue_id])

    async def embed_lacking(self, across: Across, *, seconds: float = math.inf) -> int:
        """Embeds the cues of all workspaces that have no vectors of the served model; returns their number.

        Until then they are matched by words, files and action types. After `seconds` no further batch is begun. Safe
        to kill and to run twice at once: a cue that was written meanwhile is left for the next batch.

        Raises:
            EmbeddingUnavailable: the model gives no vectors now; those so far are stored.
        """
        done, end = 0, time.monotonic() + seconds
        while not done or time.monotonic() < end:
            async with across(transaction=False) as session:
                batch = await stored_vectors.lacking_of_all(session, limit=BATCH)
            for workspace_id, cues in groupby(batch, key=lambda cue: cue.workspace_id):
                workspace = await Workspaces(database=self.database).resolve_id(workspace_id)
                await self._embed_lacking(workspace, list(cues))
            done += len(batch)
            if len(batch) < BATCH:
                break
        return done

    async def _embed_lacking(self, workspace: Workspace, lacking: Sequence[Row]) -> None:
        """Embeds cues of a workspace; those that never had vectors are compared with others for contradictions."""
        if (model := await Embedder(database=self.database, provider=self.provider).serving_model()) is None:
            raise EmbeddingUnavailable(
                "the stored vectors are of a model that is not configured: cues are not embedded"
            )
        async with self.database.session(workspace, transaction=False) as session:
            found = await store.read(session, [cue.memory_id for cue in lacking])
        cues = [cue for cue in lacking if cue.memory_id in found]
        provider = provider_of_model(self.provider, model.name)
        given, vectors = await embed_texts(provider, [given_of(found[cue.memory_id]) for cue in cues])
        if cues and not given:
            raise EmbeddingUnavailable("the embedding model gives no vectors now: cues are embedded when it does")
        rows = [
            {"memory_id": cue.memory_id, "revision": cue.revision, "vectors": store.halves(own)}
            for cue, own in zip(cues, vectors, strict=True)
            if own is not None
        ]

        async def write_vectors() -> None:
            async with self.database.session(workspace) as session:
                await stored_vectors.set_vectors(session, rows, model.name, await store.next_revision(session))

        await again_after_deadlock(write_vectors)
        await self.conflicts.settle(workspace, [cue.memory_id for cue in cues if not cue.model])

    async def get(self, workspace: Workspace, cue_id: UUID) -> Cue:
        """Returns one cue, of any state.

        Raises:
            NotFound: the workspace has no such cue.
        """
        async with self.database.session(workspace, reading=True) as session:
            return await cue_in(session, workspace, cue_id)

    async def page(
        self,
        workspace: Workspace,
        *,
        asked: CueFilter = EVERY_CUE,
        after: tuple[datetime, UUID] | None = None,
        limit: int = 50,
    ) -> Sequence[Cue]:
        """Returns the cues that meet every condition, the newest first; `after` is the last one of the page before."""
        check_limit(limit)
        check(unstorable(asdict(asked)))
        async with self.database.session(workspace, reading=True) as session:
            return await store.page(session, asked, after=after, limit=limit)

    async def of_source(self, workspace: Workspace, source_id: UUID) -> Sequence[Cue]:
        """Returns the cues that have evidence in a source, the oldest first, without retired and superseded ones."""
        async with self.database.session(workspace, reading=True) as session:
            return [cue for cue in await store.of_source(session, source_id) if cue.state not in TAKEN_AWAY]

    async def set_state(
        self,
        workspace: Workspace,
        cue_id: UUID,
        state: str,
        *,
        superseded_by: UUID | None = None,
        valid_until: datetime | None = None,
    ) -> Cue:
        """Gives a cue a state; the person who makes it active stands behind it.

        A retired cue fires no more and is not found. `superseded_by` names the active cue that holds in its place from
        `valid_until` on, or from now on: so the undo of a restored cue leaves no trace.

        Raises:
            NotFound: the workspace has no such cue.
            InvalidInput: another cue with its text is active, or none is active that could hold in its place.
        """
        async with self.database.session(workspace) as session:
            if state == RETIRED:
                await retire_in(session, [cue_id], reason=DELETED)
            else:
                first = PROPOSED if state == PROPOSED else ACTIVE
                await restore_in(session, workspace, cue_id, release=True, state=first)
            if state == SUPERSEDED or superseded_by is not None:
                newer = None if superseded_by is None else await cue_in(session, workspace, superseded_by)
                if newer is None or newer.state != ACTIVE or newer.cue_id == cue_id:
                    raise InvalidInput("superseded_by", "must name another cue, which is active")
                await supersede(session, [cue_id], newer.cue_id, in_utc(valid_until or datetime.now(UTC)))
            return await cue_in(session, workspace, cue_id)

    async def merge(self, workspace: Workspace, ids: Sequence[UUID], *, into: UUID) -> Cue:
        """Merges cues into one that says the same better: it gets their evidence, days, counts and confidence.

        The merged ones are superseded by it; restoring one makes it active again.

        Raises:
            InvalidInput: there are none or too many, one is the cue that they go into, or that cue is not active.
            NotFound: the workspace lacks one of them.
        """
        if not 1 <= len(ids) <= MOST_MERGED:
            raise InvalidInput("ids", f"1 to {MOST_MERGED} cues are merged at once")
        if into in ids:
            raise InvalidInput("into", "is one of the cues that go into it")
        async with self.database.session(workspace) as session:
            known = await store.read(session, [*ids, into])
            if missing := [str(cue_id) for cue_id in (*ids, into) if cue_id not in known]:
                raise NotFound(f"there is no cue {missing[0]} in workspace {workspace.name}")
            if known[into].state != ACTIVE:
                raise InvalidInput("into", f"is {known[into].state}; restore it first, or merge into an active cue")
            await store.merge(session, ids, into)
            await supersede(session, ids, into, datetime.now(UTC))
            return await cue_in(session, workspace, into)
