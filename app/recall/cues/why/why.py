"""The verb that says why something is as it is: what was decided and why, what failed, and where that is said."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from uuid import UUID

from app.errors import InvalidInput, check
from app.foundation.db.database import Database
from app.foundation.db.session import Row, Session
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.text.passages import passages_of
from app.foundation.text.words import content_words
from app.intake.reports import store as reports
from app.intake.reports.record import CONTEXT, DECIDED, META, REASONS, STATUS, number_of, role_at, role_of_passage
from app.intake.reports.state import STATE, state_of
from app.intake.sessions import store as sessions
from app.recall.cues import evidence, store
from app.recall.cues.cue import Cue
from app.recall.cues.evidence import FileTouch
from app.recall.cues.why.answer import Reason, choose, markdown_of, nearest, reasons_in, sentence
from app.recall.retrieval.log import UnloggedRecall
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.rank.rank import COMPONENTS
from app.recall.retrieval.recall import Hit, HitPassage, Query
from app.recall.retrieval.service import Retrieval
from app.recall.retrieval.texts import standing
from app.storage.memories.filters import Filters
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import Kind, Memory
from app.storage.tenants.workspace import Workspace

BUDGET = 400
"""Tokens of an answer. On invented sessions 0.97 of the answers hold all that they should with 300 and more."""
KINDS: tuple[Kind, ...] = ("message", "chunk", "note", "cue")
LIKELY = 0.85
"""Least probability that the store speaks to the question (`retrieval.rank.presets.probability`). Of 130 questions
of six stores with an answer 0.89 reach it; of 58 about things of these fields that the projects never had 0.17, of
1,000 questions of other stores 0.05. With 0.6 it is 0.94, 0.31 and 0.10; with 0.9 0.88, 0.12 and 0.04."""
NEAR = 0.2
"""Least probability from which the nearest subjects are named where none is known."""
LEXICAL_ALONE = 0.5
"""Least lexical score where there is no probability, because the model is another one or the script is not Latin."""
NAMED_READ = 10
TOUCHES_SHOWN = 50
OF_REASON = 0.9
"""The share of a document's best score that its reason has."""
FIRST_STATED, LESS_EACH = 0.97, 0.04
"""The share of a document's best score that its decision's first passage has, and the difference to the next one."""
RECORDS_READ, MOST_REPLACING = 2, 2
"""The best documents of which the sections are read that state a decision, and the records that a state names."""
MOST_CHUNKS = 100
"""Chunks of a document in which these sections are looked for: no record is longer."""
REPLACED_BY = re.compile(r"(?i)\b(?:by|favou?r of|adr)\W{0,3}(?:adr\W{0,2})?0*(\d{1,5})\b(?!\.\d)")
"""The record that a state names: "deprecated since 3.1" and "rejected on 12 May" name none."""
TURNS_AROUND = 2
"""Turns between an act on a file and a cue of the same session that speaks of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """An answer to a question why."""

    asked: str
    known: bool
    """False if nothing that is stored says why; `answer` then says what is near."""
    probability: float | None
    """The probability that the store speaks to the question; None for a file, and without vectors of the measured
    model."""
    answer: str
    markdown: str
    """The whole answer, with the places where it is said."""
    reasons: tuple[Reason, ...]
    """By source, valid ones first, the newest of them before others."""
    nearest: tuple[str, ...]
    """The nearest subjects, where nothing says why."""
    shaped_by: tuple[FileTouch, ...]


def _check(subject: str, path: str, symbol: str) -> None:
    check(unstorable({"subject": subject, "path": path, "symbol": symbol}))
    if bool(subject) == bool(path or symbol):
        raise InvalidInput("subject", "ask about a subject, or else about a path, a symbol, or both")


async def _with_decisions(session: Session, hits: Sequence[Hit]) -> Sequence[Hit]:
    """Returns the hits with the decisions of the records among the best documents, and of those that replaced them.

    A question finds the words in which a record discusses a matter; what was decided stands in another section, or in
    the record that its status names.
    """
    best = defaultdict[UUID, float](float)
    for hit in hits:
        for item in hit.passages if hit.memory.kind == "chunk" else ():
            if source_id := hit.memory.source_id:
                best[source_id] = max(best[source_id], item.score)
    wanted: dict[UUID, float] = {}
    reasons: set[UUID] = set()
    for source_id in sorted(best, key=lambda source_id: -best[source_id])[:RECORDS_READ]:
        deciding, reasoning = await _deciding(session, source_id)
        for memory_id in (*deciding, *reasoning):
            wanted.setdefault(memory_id, best[source_id])
        reasons.update(reasoning)
    live, _ = await standing(session, list(wanted), Filters()) if wanted else ({}, ())
    found = {hit.memory.memory_id: hit for hit in hits}
    for memory_id, top in wanted.items():
        memory = live.get(memory_id)
        if memory is not None and not memory.suspect:
            hit = found.get(memory_id) or Hit(memory=memory, score=0.0, explain=dict.fromkeys(COMPONENTS))
            passages = boost_parts(memory, hit.passages, top, with_reason=memory_id in reasons)
            found[memory_id] = replace(hit, passages=passages)
    return list(found.values())


async def _deciding(session: Session, source_id: UUID) -> tuple[list[UUID], list[UUID]]:
    """Returns the parts of a document that state its decision and its status, with those of the records that its state
    names, and the parts that state the reasons of what holds, or else its context.
    """
    chunks = await reports.document(session, source_id)
    state = _state_of_file(chunks)
    found = deciding_sections(chunks, {STATUS} if state else {STATUS, DECIDED})
    valid = [] if state else [chunks]
    for other in await _replacing(session, chunks[0].uri, state) if found else ():
        valid.append(await reports.document(session, other))
        found += deciding_sections(valid[-1], {STATUS, DECIDED})
    reasons = [deciding_sections(parts, {REASONS}) or deciding_sections(parts, {CONTEXT}) for parts in valid]
    return found, [memory_id for part in reasons for memory_id in part]


def _state_of_file(chunks: Sequence[Row]) -> str:
    """Returns the state that all parts of a document have: that of one section is not the document's."""
    states = {str(chunk.metadata.get(STATE) or "") for chunk in chunks}
    return next(iter(states)) if len(states) == 1 else ""


async def _replacing(session: Session, uri: str, state: str) -> list[UUID]:
    """Returns the documents of the valid records that a record's state names, in its folder."""
    numbers = {int(number) for number in REPLACED_BY.findall(state)}
    if not numbers:
        return []
    records = await store.records_in(session, str(PurePosixPath(uri).parent))
    named = [cue_id for path, cue_id in records.items() if number_of(path) in numbers]
    cues = await store.read(session, named[:MOST_REPLACING])
    return [proof.source_id for cue in cues.values() for proof in cue.evidence if proof.source_id is not None]


def deciding_sections(chunks: Sequence[Row], wanted: Set[str]) -> list[UUID]:
    """Returns the chunks of a record that have one of the `wanted` sections; none of a document that is no record."""
    roles = {chunk.memory_id: set(_roles(chunk)) for chunk in chunks[:MOST_CHUNKS]}
    told = set[str]().union(*roles.values()) - {META, ""}
    if DECIDED not in told or told == {DECIDED}:
        return []
    return [memory_id for memory_id, its in roles.items() if its & wanted]


def _roles(chunk: Row) -> Iterator[str]:
    return (role_at(chunk.metadata.get("trail") or (), chunk.body, part.start) for part in passages_of(chunk.body))


def boost_parts(
    memory: Memory, known: Sequence[HitPassage], best: float, *, with_reason: bool
) -> tuple[HitPassage, ...]:
    """Returns the `known` passages of a memory with those on its status and, as long as it holds, its decision.

    The first of these counts nearly as much as the `best` passage of the document, each next one a little less. With
    the reason, so does the passage on its reasons or its context that speaks best to the question, or the first one.
    """
    stated = _stating(memory, known, {STATUS} if state_of(memory) else {STATUS, DECIDED})
    least = [(item, FIRST_STATED - LESS_EACH * number) for number, item in enumerate(stated)]
    if with_reason:
        reasons = sorted(_stating(memory, known, {REASONS, CONTEXT}), key=lambda item: -item.score)
        least += [(item, OF_REASON) for item in reasons[:1]]
    raised = [item._replace(score=max(item.score, best * share)) for item, share in least]
    return tuple({item.passage.passage.start: item for item in (*known, *raised)}.values())


def _stating(memory: Memory, known: Sequence[HitPassage], sections: Set[str]) -> list[HitPassage]:
    """Returns the passages of a memory in these sections of its record, in their order; unknown ones have no score."""
    found = {item.passage.passage.start: item for item in known}
    return [
        found.get(part.start) or HitPassage(PassageScore(part, 0.0, 0.0, 0.0), 0.0)
        for part in passages_of(memory.body)
        if role_of_passage(memory, part.start) in sections
    ]


def _is_likely(finding: UnloggedRecall) -> bool:
    if finding.probability is not None:
        return finding.probability >= LIKELY
    return max((hit.explain["lexical"] or 0.0 for hit in finding.hits), default=0.0) >= LEXICAL_ALONE


async def _cues_about(session: Session, hits: Sequence[Hit], named: Sequence[UUID]) -> Mapping[UUID, Cue]:
    """Returns the cues among the hits, those learnt from their sources, the named ones, and what replaced any."""
    own = [*named, *(hit.memory.memory_id for hit in hits if hit.memory.kind == "cue")]
    sources = {hit.memory.source_id for hit in hits if hit.memory.source_id is not None}
    cues = await store.read(session, await store.about(session, own, list(sources)))
    later = {cue.superseded_by for cue in cues.values() if cue.superseded_by is not None} - {*cues}
    return cues | await store.read(session, list(later))


def _whole(memory: Memory) -> Hit:
    passages = tuple(HitPassage(PassageScore(part, 1.0, 0.0, 0.0), 1.0) for part in passages_of(memory.body))
    return Hit(memory=memory, score=1.0, explain=dict.fromkeys(COMPONENTS), passages=passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Says why something is as it is."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter

    async def ask(
        self,
        workspace: Workspace,
        *,
        subject: str = "",
        path: str = "",
        symbol: str = "",
        budget_tokens: int = BUDGET,
    ) -> Why:
        """Returns why a subject was decided as it was, or why a file, function or section is as it is.

        Raises:
            InvalidInput: neither or both are asked for, or it cannot be read.
        """
        subject, path, symbol = subject.strip(), path.strip(), symbol.strip()
        _check(subject, path, symbol)
        touches: Sequence[FileTouch] = ()
        near, probability = tuple[str, ...](), None
        if subject:
            finding, found = await self._of_subject(workspace, subject)
            probability = finding.probability
            near = nearest(finding.hits) if not found and (probability or 0.0) >= NEAR else ()
        else:
            touches, found = await self._of_artifact(workspace, path, symbol)
        asked = subject or ":".join(filter(None, (path, symbol)))
        room = budget_tokens - self.counter.count(markdown_of(asked, (), touches))
        reasons = await asyncio.to_thread(choose, found, room, self.counter, content_words(subject))
        answer = sentence(asked, reasons, near)
        return Why(
            asked=asked,
            known=bool(reasons),
            probability=probability,
            answer=answer,
            markdown=markdown_of(asked, reasons, touches, "" if reasons else answer),
            reasons=tuple(reasons),
            nearest=near,
            shaped_by=tuple(touches),
        )

    async def _of_subject(self, workspace: Workspace, asked: str) -> tuple[UnloggedRecall, list[Reason]]:
        stems = sorted(content_words(asked))
        if not stems:
            raise InvalidInput("subject", "has no words; name what was decided on, such as “API versioning”")
        # The least probability of a hit stands in place of the search's own thresholds: the question's decides here.
        filters = Filters(kinds=KINDS)
        query = Query(text=asked, k=1, filters=filters, purpose="why", rerank=False, min_probability=0.0)
        finding = await Retrieval(database=self.database, provider=self.provider).find(
            workspace, query, suspects=False, passages=True
        )
        async with self.database.session(workspace, reading=True) as session:
            named = await store.naming(session, stems, limit=NAMED_READ)
            if not named and not _is_likely(finding):
                return finding, []
            cues = await _cues_about(session, finding.hits, named)
            hits = await _with_decisions(session, finding.hits) if _is_likely(finding) else ()
        return finding, reasons_in(hits, cues, named)

    async def _of_artifact(
        self, workspace: Workspace, path: str, symbol: str
    ) -> tuple[Sequence[FileTouch], list[Reason]]:
        async with self.database.session(workspace, reading=True) as session:
            names = await sessions.names_of(session, path) if path else []
            touches = await evidence.touches(session, names, symbol, limit=TOUCHES_SHOWN)
            around = await evidence.near_turns(session, [touch.memory_id for touch in touches], turns=TURNS_AROUND)
            own = list({*around, *(await evidence.of_file(session, names) if path else ())})
            cues = await _cues_about(session, (), own) if own else {}
            taught = {item.memory_id for cue_id in own for item in cues[cue_id].evidence if item.memory_id is not None}
            live, _ = await standing(session, list(taught), Filters())
        turns = sorted(
            (turn for turn in live.values() if not turn.suspect), key=lambda turn: turn.created_at, reverse=True
        )
        return touches, reasons_in([_whole(turn) for turn in turns], cues, own)
