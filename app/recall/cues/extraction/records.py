"""Reads the decision that a record (ADR) states, and makes a cue of it."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID

from app.errors import InvalidInput
from app.foundation.db.session import Row, Session
from app.foundation.text.markdown import plain
from app.foundation.text.speech import sentences_in
from app.foundation.text.words import content_words
from app.intake.reports import store as reports
from app.recall.cues import store
from app.recall.cues.conflicts import supersede
from app.recall.cues.cue import (
    ACTIVE,
    DECISION,
    EXTRACTED,
    IMPORTED,
    LONGEST_LESSON,
    LONGEST_QUOTE,
    LONGEST_TRIGGER,
    Cue,
    Evidence,
    NewCue,
    cut,
)
from app.recall.cues.edit import drop_stale, edit_cue
from app.recall.cues.extraction.lesson import REASON, rejected_way
from app.recall.cues.extraction.sections import (
    ALTERNATIVES,
    CHOSEN,
    CONSEQUENCES,
    CONTEXT,
    DECIDED,
    DECIDES,
    NUMBER,
    REASONS,
    STATUS,
    RecordBlock,
    blocks_of,
    by_wording,
)  # fmt: skip
from app.recall.cues.keep import add_cues
from app.recall.cues.signs import patterns
from app.storage.memories.remember import Door

ACCEPTED, SUPERSEDED, DEPRECATED, REJECTED, UNDECIDED = "accepted", "superseded", "deprecated", "rejected", "proposed"
STATES = (SUPERSEDED, DEPRECATED, REJECTED, ACCEPTED, UNDECIDED)
"""The states of a record; of several that its status names, the first counts. A record without a status is accepted."""
TOLD, BY_WORDING = 0.9, 0.6
"""Confidence of a decision under its heading, and of one that only its wording gives away."""
LONGEST_REASON = 600
LONGEST_OPTION = 160
MOST_OPTIONS = 12
ITEM = re.compile(
    r"(?:^[^\S\n]*(?:[-*•]|\d{1,2}[.)])|(?<=[:,;])\s*\d{1,2}[.)])\s+(?P<what>\S.{1,200}?)(?=[,;]\s*\d{1,2}[.)]\s|$)",
    re.MULTILINE,
)
"""An item of a list, on a line of its own or numbered in a sentence."""
PROS = re.compile(r"^\W*(?:good|bad|neutral|gut|schlecht|pros?|cons?|плюс|минус)\b", re.IGNORECASE)
BETWEEN = re.compile(r"\s[-–—]\s|:\s|\.\s|\s\(")
"""Separators between the name of an option and its description."""
PLACEHOLDER = re.compile(r"^\W*(?:chosen option\W+)?(?:\{[^}]{3,}\}|\[[^\]]{3,}\](?!\())", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d-\d\d")
REFERENCE = re.compile(r"\b(?:adr\W{0,2})?0*(\d{1,5})\b", re.IGNORECASE)
RECORD_PATH = re.compile(
    r"(^|/)(?:adrs?|decisions?|decision[-_ ]records?)/(?:.*/)?\D{0,8}\d{1,5}\D[^/]*$|(^|/)adr\W?\d[^/]*$", re.IGNORECASE
)


class RecordStatus(NamedTuple):
    """The status of a record."""

    state: str
    """One of STATES."""
    superseded_by: tuple[int, ...]
    """Numbers of the records that hold in its place."""
    supersedes: tuple[int, ...]


class Record(NamedTuple):
    """A decision as its file states it: a cue without its evidence, and the status of the file."""

    cue: NewCue
    status: RecordStatus


def record_in(text: str, path: str) -> Record | None:
    """Returns the decision that a document records; None if it records none, or is a template.

    Without headings, only a file whose path is that of a record is read, by its wording.
    """
    title, blocks = blocks_of(text)
    roles = {block.role for block in blocks}
    subject = cut(plain(NUMBER.sub("", title)) or PurePosixPath(path).stem, LONGEST_TRIGGER)
    if DECIDED in roles and roles & {CONTEXT, CONSEQUENCES, STATUS, ALTERNATIVES, REASONS}:
        return _record(subject, blocks, TOLD)
    return _record(subject, by_wording(title, blocks), BY_WORDING) if RECORD_PATH.search(path) else None


def _record(subject: str, blocks: Sequence[RecordBlock], confidence: float) -> Record | None:
    decision = [block.text for block in blocks if block.role == DECIDED]
    if not decision or PLACEHOLDER.match(decision[0]) or PLACEHOLDER.match(subject):
        return None
    whole = "\n\n".join(decision)
    quote = quote_in(blocks)
    chosen = CHOSEN.search(whole)
    choice = plain(chosen["what"] if chosen else quote).rstrip(" .:")
    details = {
        "subject": subject,
        "choice": cut(choice, LONGEST_LESSON),
        "alternatives": list(_options(blocks, choice, whole)),
        "reasoning": cut(_reasoning(blocks, whole), LONGEST_REASON),
    }
    cue = NewCue(
        kind=DECISION,
        trigger=subject,
        lesson=cut(plain(quote), LONGEST_LESSON),
        details={name: value for name, value in details.items() if value},
        confidence=confidence,
        quote=quote,
        trust=IMPORTED,
        origin=EXTRACTED,
    )
    return Record(cue, _status_of(blocks))


def quote_in(blocks: Sequence[RecordBlock]) -> str:
    """Returns the sentence in which the decision is taken, or else the first one of its section; "" without any."""
    parts = [part for block in blocks if block.role == DECIDED for part in sentences_in(block.text)]
    takes = patterns("record_words")[DECIDES]
    chosen = next((part for part in parts if CHOSEN.search(part) or takes.search(part.lower())), (parts or [""])[0])
    return cut(chosen, LONGEST_QUOTE)


def _reasoning(blocks: Sequence[RecordBlock], decision: str) -> str:
    """Returns the reasons: a section of them, a clause of the decision, or the context."""
    told = " ".join(plain(block.text) for block in blocks if block.role == REASONS)
    because = REASON.search(plain(decision))
    given = told or (because["what"] if because else "")
    return given or next((plain(block.text) for block in blocks if block.role == CONTEXT), "")


def _options(blocks: Sequence[RecordBlock], choice: str, decision: str) -> Iterator[str]:
    """Yields the names of what was not chosen, each once."""
    named = [option for block in blocks if block.role == ALTERNATIVES for option in _option_names(block)]
    turned_down = "" if CHOSEN.search(decision) else rejected_way(plain(decision))
    seen: set[frozenset[str]] = {content_words(choice)}
    for option in [*named, *([turned_down] if turned_down else [])][: 2 * MOST_OPTIONS]:
        words = content_words(option)
        if not words or any(_same(words, other) for other in seen):
            continue
        if len(seen) <= MOST_OPTIONS:
            yield cut(option, LONGEST_OPTION)
        seen.add(words)


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Returns True if two names of options have most of their words in common."""
    return 2 * len(one & other) > max(len(one), len(other))


def _option_names(block: RecordBlock) -> list[str]:
    """Returns the names of the options in a block: its heading, its items, or the beginning of its first sentence."""
    if not block.named and block.heading:
        return [block.heading]
    items = [match["what"] for match in ITEM.finditer(block.text) if not match[0].startswith((" ", "\t"))]
    texts = items or sentences_in(block.text)[:1]
    return [
        name for text in texts if not PROS.match(text) and (name := plain(BETWEEN.split(plain(text))[0]).rstrip(".:,"))
    ]


def _status_of(blocks: Sequence[RecordBlock]) -> RecordStatus:
    """Returns the state that the status of a record names, and the records that it refers to."""
    low = DATE.sub("", "\n".join(block.text for block in blocks if block.role == STATUS).lower())
    known = patterns("record_states")
    state = next((name for name in STATES if known[name].search(low)), ACCEPTED)
    return RecordStatus(state, _numbers(known[SUPERSEDED], low), _numbers(known["replaces"], low))


def _numbers(verb: re.Pattern[str], status: str) -> tuple[int, ...]:
    lines = [line[match.end() :] for line in status.splitlines() if (match := verb.search(line))]
    return tuple(sorted({int(number) for line in lines for number in REFERENCE.findall(line)}))


def number_of(path: str) -> int | None:
    """Returns the number in the name of a record's file; None if it has none."""
    found = re.search(r"\d{1,5}", PurePosixPath(path).stem)
    return int(found[0]) if found else None


FOLLOWS = ("lesson", "trigger", "details", "quote", "confidence", "files")
"""The fields that follow the record when it changes; what people set besides them stays."""


async def extract_decision(door: Door, source_id: UUID) -> None:
    """Makes the cues of a file those of its present content: one for a decision that it records.

    A changed record changes its cue, which keeps its id. The cue of a record that was deleted, deprecated or never
    accepted is retired; that of a superseded one names the cue of the record that holds in its place.

    Raises:
        DatabaseUnavailable: the file is read again by the next job.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        chunks = await reports.document(session, source_id)
        known = [cue for cue in await store.of_source(session, source_id) if cue.origin == EXTRACTED]
    record = await asyncio.to_thread(record_in, _text(chunks), chunks[0].path) if chunks else None
    proofs: list[tuple[UUID, Evidence]] = []
    stored: UUID | None = None
    if record is not None and record.status.state in {ACCEPTED, SUPERSEDED}:
        cue = _of_file(record.cue, chunks, source_id)
        same = [item for item in known if (item.trigger, item.lesson) == (cue.trigger, cue.lesson) or item.edited]
        proofs = [(item.cue_id, proof) for item in same if item.state != ACTIVE for proof in item.evidence]
        if all(item.state == ACTIVE for item in same):
            stored = await _store_cue(door, cue, [item for item in known if item.state == ACTIVE])
            proofs = [] if stored is None else [(stored, cue.evidence[0])]
    async with door.database.session(door.workspace) as session:
        await drop_stale(session, source_id, proofs)
        if record and stored and not await _replace_others(session, record, stored, chunks[0].uri):
            await drop_stale(session, source_id, [])


def _text(chunks: Sequence[Row]) -> str:
    """Returns the document that these chunks were made from, with its headings."""
    parts: list[str] = []
    above: list[str] = []
    for chunk in chunks:
        heading_path = chunk.metadata.get("trail", [])
        new = (place for place in range(len(heading_path)) if heading_path[: place + 1] != above[: place + 1])
        parts += [f"{'#' * min(place + 1, 6)} {heading_path[place]}" for place in new]
        parts.append(chunk.body)
        above = heading_path
    return "\n\n".join(parts)


def _of_file(cue: NewCue, chunks: Sequence[Row], source_id: UUID) -> NewCue:
    """Returns a decision with the chunk that states it."""
    said = plain(cue.quote)
    chunk = next((item for item in chunks if said and said in plain(item.body)), chunks[0])
    proof = Evidence(
        source_id=source_id, memory_id=chunk.memory_id, ordinal=chunk.ordinal, quote=cue.quote, at=chunk.occurred_at
    )
    return replace(cue, evidence=(proof,), valid_from=chunk.occurred_at, files=(chunks[0].path,))


async def _store_cue(door: Door, cue: NewCue, known: Sequence[Cue]) -> UUID | None:
    """Stores the cue, in place of the known one of its file, of which what a person changed stays.

    Returns None if it cannot be stored.
    """
    if known:
        cue = replace(cue, **{name: getattr(known[0], name) for name in FOLLOWS if name in known[0].edited})
    changed = {name: getattr(cue, name) for name in FOLLOWS}
    if known and any(getattr(known[0], name) != value for name, value in changed.items()):
        # If another cue says this already, that one gets the evidence, and the known one is retired.
        with suppress(InvalidInput):
            await edit_cue(door, known[0].cue_id, changed, by_person=False)
    return (await add_cues(door, [cue])).ids[0]


async def _replace_others(session: Session, record: Record, cue_id: UUID, uri: str) -> bool:
    """Lets a cue hold in place of those that its record supersedes; returns False if it is superseded itself by a
    record that is not stored, so that it holds no more.
    """
    status = record.status
    if status.state != SUPERSEDED and not status.supersedes:
        return True
    others = await store.records_in(session, str(PurePosixPath(uri).parent))
    by_number = {number_of(path): other for path, other in others.items() if other != cue_id}
    moment = datetime.now(UTC)
    older = [by_number[number] for number in status.supersedes if number in by_number]
    if older and status.state != SUPERSEDED:
        await supersede(session, older, cue_id, moment, await store.next_revision(session))
    newer = next((by_number[number] for number in status.superseded_by if number in by_number), None)
    if status.state == SUPERSEDED and newer is not None:
        await supersede(session, [cue_id], newer, moment, await store.next_revision(session))
    return status.state != SUPERSEDED or newer is not None
