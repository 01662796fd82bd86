"""The verbs that compare a session with others and with runs: its procedures, its wishes and its precedents."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.text.words import content_words
from app.intake.cases.extract import in_run
from app.intake.cases.judgement import FoundJudgement
from app.intake.runs import store as runs
from app.intake.runs.observations.observation import cut_line
from app.intake.runs.run import Run
from app.intake.sessions import store as sessions
from app.recall.cues import store as cues
from app.recall.cues.conflicts import OF_ANY_WISH, contradict, near_pairs
from app.recall.cues.cue import (
    ACTIVE,
    CORRECTION,
    EXTRACTED,
    LIST_LIMIT,
    LONGEST_LESSON,
    PRECEDENT,
    PREFERENCE,
    TOGETHER,
    Cue,
    cut,
)
from app.recall.cues.edit import edit_cue
from app.recall.cues.outcomes import LOW_SCORE
from app.recall.cues.review.procedures import mine_procedures
from app.recall.cues.review.review import propose
from app.recall.cues.review.rules import MERGE, Proposal
from app.recall.cues.signs import STATED, patterns
from app.recall.cues.store import CueFilter
from app.recall.cues.ways import rejected_things
from app.storage.links import store as links
from app.storage.links.relations import DERIVED_FROM, Link
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import Memory, NewMemory
from app.storage.memories.remember import Door
from app.storage.memories.service import LARGEST_PAGE

SAME_WISH = 0.65
"""Cosine of the texts of two cues from which they are one wish. Of 70 invented sessions the pairs above it are one, and
the nearest pair that is not lies at 0.52; wishes in other words may lie lower."""
END = re.compile(r"[,;!?\n(*]|[.:](?=\W|$)|\s[-–—]\s")
JUDGED = "(final_score IS NOT NULL OR verdict <> '')"
COMPARED_RUNS = 500
NAMED_SHARE = 0.6
"""Least share, by rarity, of the words of what a precedent names that are in the task of its run."""
TASK_CHARACTERS, ISSUE_CHARACTERS = 200, 120
HIGH_SCORE = 8.0
"""Score from which on a run without a verdict confirms the precedent."""
TRUE, FALSE = 2.0, 0.5
"""Factors of the odds that a lesson of an accepted run, or of a bad one, lasts."""


async def mine_session(door: Door, session_id: str) -> list[UUID]:
    """Compares a session with others: repeated acts, wishes that are one, and precedents whose run was judged.

    Returns the procedures that its acts show.
    """
    procedures = await mine_procedures(door, session_id)
    await _unite_wishes(door, session_id)
    await judge_precedents(door, session_id)
    return procedures


async def _unite_wishes(door: Door, session_id: str) -> None:
    """Merges the wishes of a session into those of others that mean the same; without vectors, none.

    The one with the most evidence gets that of all sessions, and more confidence. What a person parted is not merged
    again.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id)
        own = [] if known is None else [cue for cue in await cues.of_source(session, known.source_id) if _is_wish(cue)]
    pairs = await near_pairs(door, [cue.cue_id for cue in own], form=TOGETHER, least=SAME_WISH, most=LIST_LIMIT)
    groups = [(one, [other for _, other in near]) for one, near in groupby(pairs, itemgetter(0))]
    same = [(one, [other for other in others if is_one_wish(one, other)]) for one, others in groups]
    await propose(door, [_merge([one, *others]) for one, others in same if others])


def _is_wish(cue: Cue) -> bool:
    return cue.kind in {PREFERENCE, CORRECTION} and cue.state == ACTIVE and not cue.suspect


def is_one_wish(one: Cue, other: Cue) -> bool:
    """Returns True if cues with near texts are one wish of two sessions; if both reject a way, it is one way. Pure."""
    elsewhere = {proof.session for proof in one.evidence} != {proof.session for proof in other.evidence}
    if not (_is_wish(other) and one.trust == other.trust and elsewhere) or contradict(one, other):
        return False
    against = [content_words(" ".join(rejected_things(cue))) for cue in (one, other)]
    chosen = [content_words(cue.lesson) - words - OF_ANY_WISH for cue, words in zip((one, other), against, strict=True)]
    return not all(against) or bool(against[0] & against[1] and chosen[0] & chosen[1])


def _merge(same: Sequence[Cue]) -> Proposal:
    target, *rest = sorted(same, key=lambda item: (-len(item.evidence), item.created_at, item.cue_id))
    return Proposal(
        change=MERGE,
        cue_ids=tuple(item.cue_id for item in rest),
        target_id=target.cue_id,
        reason=f"the same wish in several sessions: “{target.lesson}”",
    )


async def judge_precedents(door: Door, session_id: str | None = None) -> int:
    """Gives precedents, of a session or of all, the outcome of the judged run that they name; returns their number.

    One that names no run, or whose run nobody has judged yet, is looked at again. What a person edited stays.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        if session_id is None:
            asked = CueFilter(kinds=(PRECEDENT,), states=(ACTIVE,))
            known: Sequence[Cue] = await cues.page(session, asked, after=None, limit=LARGEST_PAGE)
        else:
            source = await sessions.known_session(session, session_id)
            known = [] if source is None else await cues.of_source(session, source.source_id)
        own = [cue for cue in known if cue.kind == PRECEDENT and cue.origin == EXTRACTED and cue.state == ACTIVE]
        unjudged = [cue for cue in own if not (cue.suspect or cue.edited or cue.details.get("outcome"))]
        judged = await runs.page(session, conditions=[JUDGED], values={}, limit=COMPARED_RUNS) if unjudged else []
    found = await asyncio.to_thread(runs_named, unjudged, judged)
    return sum([await _judge(door, cue, found[cue.cue_id]) for cue in unjudged if cue.cue_id in found])


async def _judge(door: Door, cue: Cue, run: Run) -> bool:
    async with door.database.session(door.workspace, transaction=False) as session:
        written = [item for item in await runs.made_of(session, run.run_id) if item.kind == "observation"]
    changed = _with_outcome(cue, run, written)
    # The words of a run are no person's: what the scan finds in them must not bar the person's own lesson.
    text = NewMemory(kind="cue", title=changed["details"]["action"], body=changed["lesson"])
    if (await asyncio.to_thread(screen_memory, text, mask=door.mask)).findings:
        return False
    try:
        await edit_cue(door, cue.cue_id, changed, by_person=False)
    except (InvalidInput, NotFound):
        return False  # Another cue says the same, or the cue was deleted meanwhile.
    async with door.database.session(door.workspace) as session:
        await links.add(session, [Link(cue.cue_id, memory.memory_id, DERIVED_FROM) for memory in written[:1]])
    return True


def runs_named(precedents: Sequence[Cue], judged: Sequence[Run]) -> dict[UUID, Run]:
    """Returns the run that each precedent names, by the precedent's id; none for one that fits none. Pure."""
    words = [content_words(run.task[:TASK_CHARACTERS]) for run in judged]
    frequent = Counter(word for own in words for word in own)
    found = {}
    for cue in precedents:
        rarity = {word: math.log1p(len(judged) / (frequent[word] or 0.5)) for word in _named_words(cue)}
        shares = [sum(rarity[word] for word in rarity.keys() & own) for own in words]
        best = max(shares, default=0.0)
        fitting = [
            place
            for place, share in enumerate(shares)
            if share == best and (judged[place].started_at or cue.valid_from) <= cue.valid_from
        ]
        if best >= NAMED_SHARE * sum(rarity.values()) > 0 and len({words[place] for place in fitting}) == 1:
            found[cue.cue_id] = judged[fitting[0]]
    return found


def _named_words(cue: Cue) -> frozenset[str]:
    quote = cue.quote.lower().replace("’", "'")
    match = patterns(STATED)["precedent"].search(quote)
    clause = END.split(quote[match.start() :], maxsplit=1)[0] if match else ""
    return content_words(patterns(STATED)["fillers"].sub(" ", clause)) or content_words(cue.trigger)


def _with_outcome(cue: Cue, run: Run, written: Sequence[Memory]) -> Mapping[str, Any]:
    judgement = in_run(run.run_id, run)
    assert judgement is not None, "the run was chosen as a judged one"  # noqa: S101
    task = cut_line(run.task, TASK_CHARACTERS)
    outcome = _outcome(run, judgement)
    action = written[0].title if written else task
    return {
        "lesson": cut(f"{cue.lesson} The run “{task}” {outcome}.", LONGEST_LESSON),
        "details": {**cue.details, "situation": cue.trigger, "action": action, "outcome": outcome},
        "confidence": _confidence(cue.confidence, judgement),
    }


def _outcome(run: Run, judgement: FoundJudgement) -> str:
    score = "" if run.final_score is None else f"scored {run.final_score:.3g} of 10"
    judged = ", ".join(filter(None, (score, judgement.verdict or run.verdict)))
    return f"{judged}; main issue: {cut_line(run.issues[0], ISSUE_CHARACTERS)}" if run.issues else judged


def _confidence(before: float, judgement: FoundJudgement) -> float:
    score, passed = judgement.score, judgement.passed
    is_bad = passed is False or (score is not None and score < LOW_SCORE)
    is_good = passed is True or (score is not None and score >= HIGH_SCORE)
    factor = FALSE if is_bad else TRUE if is_good else 1.0
    return round(factor * before / (factor * before + 1 - before), 3)
