"""The verb that probes a store: does each cue fire for the plans that its trigger means, and for these alone."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from app.cues import store
from app.cues.activate import DEFAULT_BUDGET
from app.cues.arbitrate import CONSIDERED, chosen, ranked
from app.cues.cue import ACTIVE
from app.cues.index import index_of
from app.cues.keep import list_cues
from app.cues.match import Plan, matched
from app.cues.store import Asked
from app.cues.tending.probes import ProbeReport, probed, probes_of, report
from app.cues.tending.proposals import is_stale
from app.db.database import Database
from app.errors import EmbeddingUnavailable
from app.memories.browse import LARGEST_PAGE
from app.models.protocols import EmbeddingProvider, TokenCounter, Vector
from app.workspaces.workspace import Workspace

MOST_PROBED = LARGEST_PAGE
"""Cues that one call probes, the newest."""


async def run_probes(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, *, workspace: Workspace, limit: int
) -> ProbeReport:
    """Returns whether the newest cues fire for plans in other words, and stay silent for their neighbours.

    Nothing is logged, and no count changes.

    Raises:
        InvalidInput: a limit out of range.
    """
    asked = Asked(states=(ACTIVE,))
    cues = await list_cues(database, workspace=workspace, asked=asked, limit=limit)
    asked_of = {cue.cue_id: probes_of(cue.trigger) for cue in cues}
    texts = [text for probes in asked_of.values() for text in (*probes.plans, *probes.neighbours)]
    fired = await _fired(database, provider, counter, workspace, texts)
    now = datetime.now(UTC)
    found = [probed(cue.cue_id, cue.trigger, asked_of[cue.cue_id], fired) for cue in cues]
    return report(found, stale=sum(is_stale(cue, now) for cue in cues))


async def _fired(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    workspace: Workspace,
    texts: Sequence[str],
) -> Mapping[str, Mapping[UUID, float]]:
    """Returns the cues that each plan is told within the default budget, with their scores."""
    index = await index_of(database, provider, workspace)
    vectors = await _vectors(provider, texts)
    plans = [Plan(text, (), vector) for text, vector in zip(texts, vectors, strict=True)]
    now = datetime.now(UTC)
    matches = await asyncio.to_thread(lambda: [matched(index, plan, moment=now, most=CONSIDERED) for plan in plans])
    async with database.session(workspace, transaction=False) as session:
        known = await store.read(session, list({item.cue_id for found in matches for item in found}))
    active = {cue_id: cue for cue_id, cue in known.items() if cue.state == ACTIVE}

    def told() -> Mapping[str, Mapping[UUID, float]]:
        found = {}
        for plan, items in zip(plans, matches, strict=True):
            best = ranked(items, active, now=now)
            kept, _ = chosen(best, plan=plan.text, budget=DEFAULT_BUDGET, counter=counter)
            found[plan.text] = {item.fired.cue.cue_id: item.fired.score for item in kept}
        return found

    return await asyncio.to_thread(told)


async def _vectors(provider: EmbeddingProvider, texts: Sequence[str]) -> Sequence[Vector | None]:
    if not provider.enabled or not texts:
        return [None] * len(texts)
    try:
        return list(await provider.embed_documents(texts))
    except EmbeddingUnavailable:
        return [None] * len(texts)
