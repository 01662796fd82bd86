"""The verbs that find what should change in a store of cues, and take a person's decisions."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.db.database import Database
from app.foundation.db.session import Across, Session
from app.recall.cues import conflicts, edit
from app.recall.cues import store as cues
from app.recall.cues.cue import ACTIVE, AGENT, PERSON, PROPOSED
from app.recall.cues.review import store
from app.recall.cues.review.rules import (
    BROADEN,
    CANDIDATE,
    CONTRADICTS,
    GRADUATE,
    HARMFUL,
    MERGE,
    NOTE,
    REPEATED,
    RETIRE,
    STALE,
    Proposal,
    ReviewedStore,
    proposals,
)
from app.recall.cues.review.store import StoredProposal
from app.recall.cues.service import Cues
from app.recall.cues.store import CueFilter
from app.storage.index.indexing import index_memories
from app.storage.links import store as links
from app.storage.links.relations import DERIVED_FROM, SUPERSEDES, Link
from app.storage.memories import changes
from app.storage.memories.memory import DELETED
from app.storage.tenants.workspace import Workspace

OPEN, ACCEPTED, DECLINED, UNDONE = DECISIONS = ("open", "accepted", "declined", "undone")
COUNTS = ("fired", "heeded", "ignored")
BY_TARGET = frozenset({BROADEN, REPEATED, CANDIDATE})
"""Changes that propose a new cue, their target."""
MOST_CUES = 20_000
PATH_LIMIT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The outcome of looking through a store of cues."""

    cues: int
    proposed: Mapping[str, int]
    proposals: tuple[StoredProposal, ...]
    """The new ones. Merges are done already; the others wait for a person's decision."""


async def owners_of_cues(across: Across) -> Sequence[tuple[int, str]]:
    """Returns the workspaces that have cues, with each user who has some, "" for nobody."""
    async with across(transaction=False) as session:
        return await store.owners(session)


async def _look(session: Session) -> ReviewedStore:
    found = await cues.page(session, CueFilter(states=(ACTIVE,)), after=None, limit=MOST_CUES)
    active = {cue.cue_id: cue for cue in found}
    links = await store.similar_pairs(session)
    ends = [*links, *((other, one, near) for one, other, near in links)]
    notes = await store.notes_among(session, sorted({other for _, other, _ in ends} - active.keys()))
    return ReviewedStore(
        cues=active,
        pairs=[(active[one], active[other], near) for one, other, near in links if {one, other} <= active.keys()],
        notes=[(active[one], notes[other]) for one, other, _ in ends if one in active and other in notes],
        idle=await store.idle_of(session, list(active)),
    )


async def _lock(session: Session, workspace: Workspace, proposal_id: UUID, *states: str) -> StoredProposal:
    item = await store.lock(session, proposal_id)
    if item is None:
        raise NotFound(f"there is no proposal {proposal_id} in workspace {workspace.name}")
    if states and item.state not in states:
        raise InvalidInput("", f"the proposal is {item.state}, and not {' or '.join(states)}")
    return item


async def _lost_cue(session: Session, item: StoredProposal) -> UUID | None:
    """Returns a cue that a proposal changes, or lets hold, and that is not active; None if all are."""
    if item.change in BY_TARGET or item.change == HARMFUL:
        return None
    ids = [*item.cue_ids, *([_target(item)] if item.change in {MERGE, STALE} else [])]
    found = await cues.read(session, ids)
    return next((cue_id for cue_id in ids if cue_id not in found or found[cue_id].state != ACTIVE), None)


def _target(item: StoredProposal) -> UUID:
    assert item.target_id is not None, "this kind of proposal has a target"  # noqa: S101
    return item.target_id


async def _accept(session: Session, item: StoredProposal, artifact: str = "") -> Mapping[str, Any]:
    """Changes the cues of a proposal; returns what an undo needs beside the proposal."""
    # Whoever else changes these cues waits here.
    await cues.next_revision(session)
    before = dict[str, Any]()
    if item.change == MERGE:
        before = await store.snapshot(session, _target(item))
        await cues.merge(session, item.cue_ids, _target(item))
        after = await store.snapshot(session, _target(item))
        before |= {name: after[name] - before[name] for name in COUNTS} | {"last_after": after["last"]}
    if item.change in {MERGE, STALE}:
        await conflicts.supersede(session, item.cue_ids, _target(item), datetime.now(UTC))
    elif item.change in {RETIRE, HARMFUL}:
        await edit.retire_in(session, item.cue_ids, reason=DELETED)
    elif item.change == NOTE:
        await links.add(session, [_note_link(item)])
    elif item.change == GRADUATE:
        files = (await store.snapshot(session, item.cue_ids[0]))["files"]
        before = {"files": list(files)}
        await store.set_values(session, item.cue_ids[0], files=tuple(dict.fromkeys((*files, artifact))))
    else:
        known = await cues.read(session, [_target(item)])
        before = {"trust": known[_target(item)].trust} if known else {}
        await cues.set_state(session, [_target(item)], ACTIVE)
        # A person who accepts a procedure or a candidate stands behind it; a broader cue has the trust of its cues.
        await store.set_values(session, _target(item), trust=None if item.change == BROADEN else PERSON)
    return before


async def _undo(session: Session, workspace: Workspace, item: StoredProposal) -> None:
    await cues.next_revision(session)
    if item.change in BY_TARGET:
        trust = None if item.change == BROADEN else item.before.get("trust", AGENT)
        await store.set_values(session, _target(item), trust=trust)
    elif item.change == GRADUATE:
        await store.set_values(session, item.cue_ids[0], files=item.before["files"])
    elif item.change == NOTE:
        await links.remove(session, [_note_link(item)])
    elif item.change == HARMFUL and not await cues.read(session, item.cue_ids):
        live, _ = await changes.restore(session, item.cue_ids, release=False)
        await index_memories(session, live)
    else:
        if item.change == MERGE:
            await store.put_back(session, _target(item), item.before)
        for cue_id in item.cue_ids:
            await edit.restore_in(session, workspace, cue_id)


def _note_link(item: StoredProposal) -> Link:
    relation = SUPERSEDES if item.relation == CONTRADICTS else DERIVED_FROM
    return Link(item.cue_ids[0], _target(item), relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """Finds what should change in a store of cues, and takes a person's decisions."""

    database: Database
    cues: Cues

    async def review(self, workspace: Workspace) -> Review:
        """Looks through the cues of a workspace: merges near-duplicates, and proposes the other changes.

        What was declined or undone is not proposed again.
        """
        async with self.database.session(workspace) as session:
            await conflicts.supersede_due(session)
        async with self.database.session(workspace, transaction=False) as session:
            seen = await _look(session)
            known = await store.keys(session)
        found = [item for item in await asyncio.to_thread(proposals, seen) if (item.change, item.key) not in known]
        new = await self.propose(workspace, await self._with_cues(workspace, found))
        return Review(cues=len(seen.cues), proposed=Counter(item.change for item in new), proposals=new)

    async def propose(self, workspace: Workspace, found: Sequence[Proposal]) -> tuple[StoredProposal, ...]:
        """Stores proposals, and does the merges among them at once; returns those that are new."""
        if not found:
            return ()
        async with self.database.session(workspace) as session:
            # Whoever else looks through these cues, or changes them, waits here.
            await cues.next_revision(session)
            ids = set(await store.add(session, found))
            for proposal_id in sorted(ids):
                item = await store.lock(session, proposal_id)
                if item is None or item.change != MERGE:
                    continue
                if await _lost_cue(session, item) is None:
                    await store.decide(session, proposal_id, ACCEPTED, await _accept(session, item))
                else:
                    await store.forget(session, proposal_id)
            return tuple(item for item in await store.page(session, "", len(ids)) if item.proposal_id in ids)

    async def _with_cues(self, workspace: Workspace, found: Sequence[Proposal]) -> list[Proposal]:
        new = [(item, item.cue) for item in found if item.cue is not None]
        ids = (await self.cues.add(workspace, [cue for _, cue in new])).ids if new else ()
        stored = [replace(item, target_id=cue_id) for (item, _), cue_id in zip(new, ids, strict=True) if cue_id]
        return [*(item for item in found if item.cue is None), *stored]

    async def page(self, workspace: Workspace, *, state: str = OPEN, limit: int = 100) -> Sequence[StoredProposal]:
        """Returns the proposals in this state, the newest first; those in any state if it is empty.

        Raises:
            InvalidInput: there is no such state.
        """
        if state and state not in DECISIONS:
            raise InvalidInput("state", f"must be one of {', '.join(DECISIONS)}, or empty for all")
        async with self.database.session(workspace, reading=True) as session:
            return await store.page(session, state, limit)

    async def decide(
        self, workspace: Workspace, proposal_id: UUID, *, accept: bool, artifact: str = ""
    ) -> StoredProposal:
        """Accepts a proposal, and changes its cues accordingly, or declines it.

        Raises:
            NotFound: the workspace has no such proposal.
            InvalidInput: it was decided already, its cues have changed since, or a cue becomes a convention and
                `artifact` does not name the file that holds it.
        """
        artifact = artifact.strip()
        async with self.database.session(workspace) as session:
            item = await _lock(session, workspace, proposal_id, OPEN)
            if accept and item.change == GRADUATE and not 0 < len(artifact) <= PATH_LIMIT:
                raise InvalidInput("artifact", "name the file that holds the convention, such as docs/conventions.md")
            before: Mapping[str, Any] = {}
            if accept:
                if (gone := await _lost_cue(session, item)) is not None:
                    raise InvalidInput("", f"the cue {gone} is no longer active; decline the proposal")
                before = await _accept(session, item, artifact)
            elif item.change in BY_TARGET:
                await edit.retire_in(session, [_target(item)], reason=DELETED)
            await store.decide(session, proposal_id, ACCEPTED if accept else DECLINED, before)
            return await _lock(session, workspace, proposal_id)

    async def undo(self, workspace: Workspace, proposal_id: UUID) -> StoredProposal:
        """Takes back the decision on a proposal: what accepting it changed is as before.

        It is open again; a merge, which the service decided, stays undone.

        Raises:
            NotFound: the workspace has no such proposal.
            InvalidInput: nobody has decided on it, or its decision was taken back already.
        """
        async with self.database.session(workspace) as session:
            item = await _lock(session, workspace, proposal_id, ACCEPTED, DECLINED)
            if item.state == ACCEPTED:
                await _undo(session, workspace, item)
            if item.change in BY_TARGET:
                await edit.restore_in(session, workspace, _target(item), state=PROPOSED)
            await store.decide(session, proposal_id, UNDONE if item.change == MERGE else OPEN, item.before)
            return await _lock(session, workspace, proposal_id)
