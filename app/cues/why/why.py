"""The verb that says why something is as it is: decisions with their reasons, what failed, and the sessions behind."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.cues import store
from app.cues.cue import Cue
from app.cues.why import backlinks
from app.cues.why.backlinks import Touch
from app.cues.why.threads import Thread, likeness, moment_of, named_in, subject_of, threads
from app.cues.why.told import lines, sentence
from app.db.database import Database
from app.errors import EmbeddingUnavailable, InvalidInput, check
from app.intake.sessions import store as sessions
from app.memories.filters import Filters
from app.memories.gate import unstorable
from app.models.protocols import EmbeddingProvider, Matrix
from app.retrieval.recall import Query
from app.retrieval.search import find
from app.text.words import content_words
from app.workspaces.workspace import Workspace

CUES_READ = 40
"""Most cues that are read for a subject: more would be of other subjects."""
TOUCHES_SHOWN = 50
"""Most turns that are shown for a file, the latest."""
ABOUT = 0.45
"""Likeness of a cue to the asked subject from which it is about it, by meaning and words."""
TURNS_AROUND = 2
"""Turns between an act on a file and a cue of the same session that speaks of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """An answer to a question why."""

    asked: str
    known: bool
    """False if nothing that is stored says why; `answer` then says what is missing."""
    answer: str
    markdown: str
    """The whole answer, with the turns that say so."""
    threads: tuple[Thread, ...]
    """The one that is most about it first; for a file the latest."""
    others: tuple[Cue, ...]
    """Cues on the subject that belong to no decision."""
    shaped_by: tuple[Touch, ...]
    """The turns that created or changed the file or function, the latest first."""


async def ask_why(
    database: Database,
    provider: EmbeddingProvider,
    *,
    workspace: Workspace,
    subject: str = "",
    path: str = "",
    symbol: str = "",
) -> Why:
    """Returns why a subject was decided as it was, or why a file, function or section is as it is.

    Raises:
        InvalidInput: neither or both are asked for, or it cannot be read.
    """
    check(unstorable({"subject": subject, "path": path, "symbol": symbol}))
    subject, path, symbol = subject.strip(), path.strip(), symbol.strip()
    if bool(subject) == bool(path or symbol):
        raise InvalidInput("subject", "give a subject, or a path and a symbol, or one of these two; not both kinds")
    if subject:
        return await _why_subject(database, provider, workspace, subject)
    return await _why_artifact(database, provider, workspace, path, symbol)


async def _why_subject(database: Database, provider: EmbeddingProvider, workspace: Workspace, asked: str) -> Why:
    stems = sorted(content_words(asked))
    if not stems:
        raise InvalidInput("subject", "has no words; name what was decided on, such as “API versioning”")
    query = Query(text=asked, k=CUES_READ, filters=Filters(kinds=("cue",)), purpose="why", rerank=False)
    finding = await find(database, provider, workspace=workspace, query=query)
    near = {hit.memory.memory_id: hit.explain.get("vector") or 0.0 for hit in finding.hits}
    async with database.session(workspace, reading=True) as session:
        named = await backlinks.naming(session, stems, limit=CUES_READ)
        cues = await store.read(session, list({*near, *named}))
        near |= {cue_id: max(near.get(cue_id, 0.0), named_in(cues[cue_id], stems)) for cue_id in named}
        meant = [cue_id for cue_id, likely in near.items() if likely >= ABOUT]
        earlier = [cue_id for cue_id in await backlinks.predecessors(session, meant) if cue_id not in cues]
        near |= dict.fromkeys(earlier, 1.0)
        cues |= await store.read(session, earlier)
    about, alike = await _about(provider, asked, sorted(cues.values(), key=lambda cue: -near[cue.cue_id]), near)
    return await asyncio.to_thread(_answered, asked, about, alike, ())


async def _why_artifact(
    database: Database, provider: EmbeddingProvider, workspace: Workspace, path: str, symbol: str
) -> Why:
    async with database.session(workspace, reading=True) as session:
        names = await sessions.names_of(session, path) if path else []
        touches = await backlinks.touches(session, names, symbol, limit=TOUCHES_SHOWN)
        around = await backlinks.near_turns(session, [touch.memory_id for touch in touches], turns=TURNS_AROUND)
        named = await backlinks.of_file(session, names) if path else []
        found = await store.read(session, list({*named, *around}))
    cues = sorted(found.values(), key=moment_of, reverse=True)
    subjects = [subject_of(cue) for cue in cues]
    alike = likeness(subjects, await _vectors(provider, subjects))
    asked = f"{path}:{symbol}" if path and symbol else path or symbol
    return await asyncio.to_thread(_answered, asked, cues, alike, touches)


async def _about(
    provider: EmbeddingProvider, asked: str, cues: Sequence[Cue], near: Mapping[UUID, float]
) -> tuple[list[Cue], Matrix]:
    """Returns the cues about what was asked, by subject or as `near` says (0 to 1), and their subjects' likeness."""
    subjects = [asked, *map(subject_of, cues)]
    alike = likeness(subjects, await _vectors(provider, subjects))
    kept = [
        at for at, cue in enumerate(cues, 1) if max(float(alike[0, at]), near[cue.cue_id]) >= ABOUT
    ]  # fmt: skip
    return [cues[at - 1] for at in kept], alike[kept][:, kept]


async def _vectors(provider: EmbeddingProvider, texts: Sequence[str]) -> Matrix | None:
    if not provider.enabled or not texts:
        return None
    try:
        return await provider.embed_documents(texts)
    except EmbeddingUnavailable:
        return None


def _answered(asked: str, cues: Sequence[Cue], alike: Matrix, touches: Sequence[Touch]) -> Why:
    found = threads(cues, alike)
    inside = {cue.cue_id for thread in found for cue in (*thread.decisions, *thread.around)}
    others = tuple(cue for cue in cues if cue.cue_id not in inside)
    answer = sentence(asked, found, others, touches)
    return Why(
        asked=asked,
        known=bool(found),
        answer=answer,
        markdown=lines(asked, answer, found, others, touches),
        threads=tuple(found),
        others=others,
        shaped_by=tuple(touches),
    )
