"""Makes an answer to a question why of the passages that decide and those that give a reason. Pure."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, islice
from textwrap import shorten
from uuid import UUID

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import FRAME
from app.foundation.text.words import adds_nothing, content_words, in_one_line, path_in_words
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.state import state_of
from app.recall.context.blocks import ELLIPSIS, cut_at, fence_around, heading_of
from app.recall.cues.cue import PROPOSED, RETIRED, SUPERSEDED, Cue, Evidence, choice_of, moment_of
from app.recall.cues.evidence import FileTouch
from app.recall.retrieval.recall import Hit
from app.storage.memories.memory import Memory, in_utc

CUE, MESSAGE, DISPUTED = "cue", "message", "disputed"
ROLES: Mapping[object, str] = {"user": "user", "assistant": "agent", "caller": "calling agent"}
REASON = re.compile(
    r"\b(?:because|since|causes?d?|reasons?|so that|due to|turns out|hence|therefore|otherwise|fail(?:s|ed|ure)?"
    r"|(?:does|did|do)(?:n['’]?t| not) work|went wrong|mistake|weil|damit|sonst|ursache|grund|deshalb|porque|causa"
    r"|motivo|falló|parce que|raison|потому|причина|иначе)\b",
    re.IGNORECASE,
)
"""Words that give a reason, or tell that something failed."""
GAIN = 0.1
"""The gain of a turn's score, which is 0.8 at most, by such a word or by a cue that was learnt from the turn. Of the
answers on invented sessions, 0.71 instead of 0.56 hold within 120 tokens all that they should; with 0.15 it is 0.74,
but answers on real sessions lose within 300. In documents it costs."""
OF_FIRST, OF_OTHERS = 0.4, 0.7
"""Shares of the best score below which a passage of the best source, or of another one, is not shown. Without them
answers are a fifth longer and hold as much; with 0.5 and 0.8, those on decision records lose 0.08."""
CLOSE = 0.8
"""Share of the best score from which a newer source stands first."""
MOST_SOURCES = 4
"""With 2, of 34 answers on invented sessions one less holds all."""
EARLIER = " · earlier"
LATEST = datetime.max.replace(tzinfo=UTC)
MOST_NEAREST = 3
SUBJECT_CHARACTERS, CHOICE_CHARACTERS, ANSWER_CHARACTERS = 80, 120, 300
FIELDS: Mapping[str, str] = {
    "choice": "Chosen", "alternatives": "Alternatives", "reasoning": "Because", "attempted": "Tried",
    "failure_reason": "Failed because", "led_to": "Led to", "implications": "So", "steps": "Steps",
    "preferred_over": "Rather than", "outcome": "Outcome",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A passage that decides, or gives a reason."""

    memory_id: UUID
    source_id: UUID
    """Its session or document; for a cue that stands in no stored text, the cue."""
    source: str
    """The id of the session, or the path of the document."""
    is_session: bool
    at: datetime | None
    ordinal: int | None = None
    role: str = ""
    """user or agent; "" for a text that is no turn."""
    section: str = ""
    subject: str = ""
    """The title of its document; "" for a turn and a cue."""
    place: tuple[int, int] = (0, 0)
    """The number of its memory in the source, and its first character there."""
    text: str
    head: str = ""
    """The line of its text that introduces it: a sentence above a list, or the header of a table."""
    score: float
    """The better it speaks to the question, the greater."""
    kinds: tuple[str, ...] = ()
    state: str = ""
    """superseded, disputed, or what its file says of itself; "" where nothing stored says so."""
    replaced_by: str = ""
    """The choice that holds in its place."""


def reasons_in(hits: Sequence[Hit], cues: Mapping[UUID, Cue], named: Sequence[UUID] = ()) -> list[Reason]:
    """Returns the passages of hits, and the cues that stand in no stored text, the best first.

    Of `cues` those are shown that are hits, are `named`, or were replaced by one of these. The others, and those whose
    turn or document is a hit, say what was learnt there and what became of it: one sentence must not stand for it. A
    turn that says no more than its cue is no hit beside it, and then the cue stands for it.
    """
    read = {place for hit in hits if hit.memory.kind != CUE for place in (hit.memory.memory_id, hit.memory.source_id)}
    best = max((hit.score for hit in hits), default=1.0)
    scores = {hit.memory.memory_id: hit.score for hit in hits if hit.memory.kind == CUE} | dict.fromkeys(named, best)
    learnt: dict[UUID, list[Cue]] = defaultdict(list)
    found: list[Reason] = []
    for cue in cues.values():
        if cue.state in {PROPOSED, RETIRED} or cue.suspect:
            continue
        for proof in cue.evidence:
            if place := proof.source_id if proof.path else proof.memory_id:
                learnt[place].append(cue)
        score = scores.get(cue.cue_id) or (cue.superseded_by and scores.get(cue.superseded_by))
        if score and not any(_is_read(proof, read) for proof in cue.evidence):
            found.append(_of_cue(cue, score, cues))
    found += [item for hit in hits if hit.memory.kind != CUE for item in _of_hit(hit, learnt, cues)]
    return sorted(found, key=lambda item: -item.score)


def _is_read(proof: Evidence, read: Collection[UUID | None]) -> bool:
    """Tells whether the text in which a cue was found is read: its turn, or any part of its document."""
    return (proof.source_id if proof.path else proof.memory_id) in read and proof.memory_id is not None


def _of_cue(cue: Cue, score: float, cues: Mapping[UUID, Cue]) -> Reason:
    proof = next(iter(cue.evidence), Evidence())
    fields = ((word, cue.details.get(name)) for name, word in FIELDS.items())
    said = ((word, value if isinstance(value, str) else "; ".join(value)) for word, value in fields if value)
    lines = [f"{word}: {value}" for word, value in said if not adds_nothing(value, cue.lesson)]
    quotes = [
        f"“{quote}”" for quote in (proof.quote or cue.quote,) if in_one_line(quote) not in in_one_line(cue.lesson)
    ]
    reason = Reason(
        memory_id=cue.cue_id,
        source_id=proof.source_id or cue.cue_id,
        source=proof.session or proof.path,
        is_session=bool(proof.session),
        at=moment_of(cue),
        ordinal=proof.ordinal,
        section=proof.section,
        place=(proof.ordinal or 0, 0),
        # A turn stands in its session, after the words that led to it.
        text="\n".join([cue.lesson if proof.memory_id else f"{cue.trigger}: {cue.lesson}", *lines, *quotes]),
        score=score,
    )
    return _judge(reason, [cue], cues, all_of=[cue])


def _of_hit(hit: Hit, learnt: Mapping[UUID, Sequence[Cue]], cues: Mapping[UUID, Cue]) -> Iterator[Reason]:
    memory, is_turn = hit.memory, hit.memory.kind == MESSAGE
    source_id = memory.source_id or memory.memory_id
    taught = learnt.get(memory.memory_id if is_turn else source_id, ())
    for item in hit.passages:
        passage = item.passage.passage
        reason = Reason(
            memory_id=memory.memory_id,
            source_id=source_id,
            source=(memory.source_uri if is_turn else memory.source_title) or memory.title,
            is_session=is_turn,
            at=memory.occurred_at,
            ordinal=memory.ordinal if is_turn else None,
            role=ROLES.get(memory.metadata.get("role"), "") if is_turn else "",
            section="" if is_turn else heading_of(hit).removeprefix("› "),
            subject="" if is_turn else _subject_of(memory),
            place=(memory.ordinal or 0, passage.start),
            text=passage.of(memory.body).strip(),
            head=passage.head_of(memory.body).strip(),
            score=item.score,
            state=state_of(memory),
        )
        text = in_one_line(reason.text)
        quoted = [cue for cue in taught if in_one_line(cue.quote or cue.lesson) in text]
        reason = _judge(reason, quoted, cues, all_of=quoted if is_turn else taught)
        gains = is_turn and (reason.kinds or REASON.search(reason.text))
        yield replace(reason, score=reason.score + GAIN) if gains else reason


def _subject_of(memory: Memory) -> str:
    """Returns the title of a memory's document and its path, whose words name what the document is on."""
    title = memory.title.partition(HEADING_SEPARATOR)[0]
    return f"{path_in_words(memory.source_title or '')} {title}"


def _judge(reason: Reason, quoted: Sequence[Cue], cues: Mapping[UUID, Cue], *, all_of: Sequence[Cue]) -> Reason:
    """Returns a passage with the kinds of the cues that were learnt from it, and what became of those `all_of` it."""
    reason = replace(reason, kinds=tuple(dict.fromkeys(cue.kind for cue in quoted)))
    if not all_of or any(cue.state != SUPERSEDED for cue in all_of):
        return replace(reason, state=DISPUTED) if any(cue.disputed_by for cue in all_of) else reason
    later = (cues[cue.superseded_by] for cue in all_of if cue.superseded_by and cue.superseded_by in cues)
    choices = [_begin(choice_of(cue), CHOICE_CHARACTERS) for cue in later]
    return replace(reason, state=SUPERSEDED, replaced_by="".join(choices[:1]))


def choose(found: Sequence[Reason], budget: int, counter: TokenCounter, words: Set[str] = frozenset()) -> list[Reason]:
    """Returns the best passages that fit into a budget of tokens, by source: valid ones first, newest before others.

    Of documents, those come first whose title has most of the question's `words`. The best passage is shown in any
    case, cut where it is too long.
    """
    sources: dict[UUID, list[Reason]] = {}
    for item in found:
        best, others = found[0], sources.get(item.source_id, [])
        share = OF_FIRST if item.source_id == best.source_id else OF_OTHERS
        if item.score < share * best.score or (not others and len(sources) == MOST_SOURCES):
            continue
        if any(adds_nothing(item.text, other.text) for shown in sources.values() for other in shown):
            continue
        cost = counter.count(_block([*others, item], LATEST)) - (counter.count(_block(others, LATEST)) if others else 0)
        if item is best and cost > budget:
            room = budget - counter.count(_block([replace(item, text="")], LATEST))
            item = replace(item, text=f"{item.text[: cut_at(item.text, room, counter)]} {ELLIPSIS}")  # noqa: PLW2901
        elif cost > budget:
            continue
        sources[item.source_id] = [*others, item]
        budget -= cost
    off_titles = _off_titles(sources, words)
    ranked = sorted(sources.items(), key=lambda source: _rank(source[1], found[0], off_titles[source[0]]))
    return [item for _, items in ranked for item in sorted(items, key=lambda item: item.place)]


def _rank(items: Sequence[Reason], best: Reason, off_title: float) -> tuple[bool, bool, float, float]:
    """Returns the place of a source; `off_title` is the share of the question's words that its title lacks."""
    taught = [item.state not in {"", DISPUTED} for item in items if item.kinds or item.state]
    at = items[0].at
    is_close = items[0].score >= CLOSE * best.score
    return bool(taught) and all(taught), not is_close, off_title, -(0.0 if at is None else in_utc(at).timestamp())


def _off_titles(sources: Mapping[UUID, Sequence[Reason]], words: Set[str]) -> Mapping[UUID, float]:
    """Returns the share of the question's words that the title of each source lacks.

    A session has no title: it stands among the documents whose titles fit best.
    """
    lacking = {
        source_id: len(words - content_words(items[0].subject)) / len(words)
        for source_id, items in sources.items()
        if items[0].subject and words
    }
    return dict.fromkeys(sources, min(lacking.values(), default=0.0)) | lacking


def _begin(text: str, characters: int) -> str:
    return shorten(text, characters, placeholder=f" {ELLIPSIS}")


def nearest(hits: Sequence[Hit]) -> tuple[str, ...]:
    """Returns the beginnings of the texts that are nearest to a subject that is not known, each in one line."""
    subjects = (_begin(hit.memory.title or hit.memory.body, SUBJECT_CHARACTERS) for hit in hits)
    return tuple(islice(dict.fromkeys(subjects), MOST_NEAREST))


def sentence(asked: str, reasons: Sequence[Reason], near: Sequence[str]) -> str:
    """Returns the answer in short: the passage of the first source that says most, or that nothing says why."""
    if reasons:
        own = [item for item in reasons if item.source_id == reasons[0].source_id]
        best = max(own, key=lambda item: (bool(REASON.search(item.text)), item.score))
        return f"{_begin(best.text, ANSWER_CHARACTERS)} ({_heading(best)})"
    unknown = f"Not known: no decision on “{asked}” is stored."
    return f"{unknown} Nearest: {'; '.join(near)}." if near else unknown


def markdown_of(asked: str, reasons: Sequence[Reason], touches: Sequence[FileTouch], unknown: str = "") -> str:
    """Returns the whole answer: what a text says stands in a fence, so that none of it reads as an order."""
    newest = reasons[0].at if reasons else None
    blocks = [_block(list(items), newest) for _, items in groupby(reasons, key=lambda item: item.source_id)]
    lines = [
        f"- {touch.at:%Y-%m-%d} session {touch.session}, message {touch.ordinal}: {_act(touch)}" for touch in touches
    ]
    shaped = ["## Sessions that shaped it", "\n".join(lines)] if lines else []
    return "\n\n".join([f"# Why: {asked}", unknown or FRAME, *blocks, *shaped])


def _act(touch: FileTouch) -> str:
    return f"{touch.action} {touch.path}:{touch.symbol}" if touch.symbol else f"{touch.action} {touch.path}"


def _block(reasons: Sequence[Reason], newest: datetime | None) -> str:
    """Returns the passages of one source in a fence, marked as earlier if the newest source is newer."""
    at = reasons[0].at
    earlier = EARLIER if at is not None and newest is not None and in_utc(at) < in_utc(newest) else ""
    lines = [_line(reason, before) for before, reason in zip([None, *reasons], reasons, strict=False)]
    body = "\n".join([f"# {_heading(reasons[0])}{earlier}", *lines])
    fence = fence_around(body)
    return f"{fence}\n{body}\n{fence}"


def _heading(reason: Reason) -> str:
    name = in_one_line(reason.source) or "told by a person"
    day = "" if reason.at is None else f" · {reason.at:%Y-%m-%d}"
    return f"{f'session {name}' if reason.is_session else name}{day}"


def _line(reason: Reason, before: Reason | None) -> str:
    """Returns a passage with its place and facts, without those that the passage `before` it has in common with it."""
    stated, text = _facts(reason), reason.text
    if before is not None and before.memory_id == reason.memory_id:
        stated = "" if _facts(before) == stated else stated
        text = text.removeprefix(reason.head).lstrip("\n") if before.head == reason.head else text
    return f"{stated}: {text}" if stated else text


def _facts(reason: Reason) -> str:
    place = reason.section if reason.ordinal is None else f"message {reason.ordinal}"
    kinds = (kind.replace("_", " ") for kind in reason.kinds)
    state = f"{reason.state} ({reason.replaced_by})" if reason.replaced_by else reason.state
    facts = [place, reason.role, *(kind for kind in kinds if kind != place.lower()), state]
    return ", ".join(fact for fact in facts if fact)
