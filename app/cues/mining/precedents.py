"""The verb that tells precedents how the run that they name was judged."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from app.cues import store as cues
from app.cues.cue import ACTIVE, EXTRACTED, PRECEDENT, Cue
from app.cues.edit import edit_cue
from app.cues.extraction.lesson import LONGEST_LESSON, STATED, cut
from app.cues.outcomes import LOW_SCORE
from app.cues.signs import patterns
from app.cues.store import Asked
from app.errors import InvalidInput, NotFound
from app.intake.sessions import store as sessions
from app.links import store as links
from app.links.relations import DERIVED_FROM, Link
from app.memories.browse import LARGEST_PAGE
from app.memories.gate import screened
from app.memories.memory import Memory, NewMemory
from app.memories.remember import Door
from app.runs import store as runs
from app.runs.judgements.extract import in_run
from app.runs.judgements.judgement import FoundJudgement
from app.runs.observations.observation import shortened
from app.runs.run import Run
from app.text.words import content_words

END = re.compile(r"[,;!?\n(*]|[.:](?=\W|$)|\s[-–—]\s")
"""End of the clause that names a precedent."""
JUDGED = "(final_score IS NOT NULL OR verdict <> '')"
COMPARED = 500
"""Judged runs that a precedent is compared with, the newest."""
ALIKE = 0.6
"""Least share, by rarity, of the words of what a precedent names that are in the task of its run."""
TASK_CHARACTERS, ISSUE_CHARACTERS = 200, 120
HIGH_SCORE = 8.0
"""Score from which on a run without a verdict confirms the precedent."""
TRUE, FALSE = 2.0, 0.5
"""Factors of the odds that a lesson of an accepted run, or of a bad one, lasts."""


async def judge_precedents(door: Door, session_id: str | None = None) -> int:
    """Gives precedents, of a session or of all, the outcome of the judged run that they name; returns their number.

    One that names no run, or whose run nobody has judged yet, is looked at again. What a person edited stays.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        if session_id is None:
            asked = Asked(kinds=(PRECEDENT,), states=(ACTIVE,))
            known: Sequence[Cue] = await cues.page(session, asked, after=None, limit=LARGEST_PAGE)
        else:
            source = await sessions.known_session(session, session_id, revive=False)
            known = [] if source is None else await cues.of_source(session, source.source_id)
        unjudged = [cue for cue in known if _is_unjudged(cue)]
        judged = await runs.page(session, conditions=[JUDGED], values={}, limit=COMPARED) if unjudged else []
    found = await asyncio.to_thread(runs_named, unjudged, judged)
    return sum([await _judge(door, cue, found[cue.cue_id]) for cue in unjudged if cue.cue_id in found])


def _is_unjudged(cue: Cue) -> bool:
    is_own = cue.kind == PRECEDENT and cue.origin == EXTRACTED and cue.state == ACTIVE and not cue.suspect
    return is_own and not cue.edited and not cue.details.get("outcome")


async def _judge(door: Door, cue: Cue, run: Run) -> bool:
    async with door.database.session(door.workspace, transaction=False) as session:
        made = [item for item in await runs.made_of(session, run.run_id) if item.kind == "observation"]
    changed = with_outcome(cue, run, made)
    # The words of a run are no person's: what the scan finds in them must not bar the person's own lesson.
    told = NewMemory(kind="cue", title=changed["details"]["action"], body=changed["lesson"])
    if (await asyncio.to_thread(screened, told, mask=door.mask)).findings:
        return False
    try:
        await edit_cue(door, cue.cue_id, changed, by_person=False)
    except (InvalidInput, NotFound):
        return False  # Another cue says the same, or the cue was deleted meanwhile.
    async with door.database.session(door.workspace) as session:
        await links.add(session, [Link(cue.cue_id, memory.memory_id, DERIVED_FROM) for memory in made[:1]])
    return True


def runs_named(precedents: Sequence[Cue], judged: Sequence[Run]) -> dict[UUID, Run]:
    """Returns the run that each precedent names, by the precedent's id; none for one that fits none. Pure."""
    words = [content_words(run.task[:TASK_CHARACTERS]) for run in judged]
    frequent = Counter(word for own in words for word in own)
    found = {}
    for cue in precedents:
        named = named_words(cue)
        rarity = {word: math.log1p(len(judged) / (frequent[word] or 0.5)) for word in named}
        shares = [sum(rarity[word] for word in named & own) for own in words]
        best = max(shares, default=0.0)
        fitting = [place for place, share in enumerate(shares) if share == best and _earlier(judged[place], cue)]
        if best >= ALIKE * sum(rarity.values()) > 0 and len({words[place] for place in fitting}) == 1:
            found[cue.cue_id] = judged[fitting[0]]
    return found


def _earlier(run: Run, cue: Cue) -> bool:
    return run.started_at is None or run.started_at <= cue.valid_from


def named_words(cue: Cue) -> frozenset[str]:
    """Returns the words of what a precedent names ("as we did with X"), or else of its situation. Pure."""
    said = cue.quote.lower().replace("’", "'")
    match = patterns(STATED)["precedent"].search(said)
    clause = END.split(said[match.start() :], maxsplit=1)[0] if match else ""
    return content_words(patterns(STATED)["fillers"].sub(" ", clause)) or content_words(cue.trigger)


def with_outcome(cue: Cue, run: Run, made: Sequence[Memory]) -> Mapping[str, Any]:
    """Returns the fields of a precedent that its run changes. Pure."""
    judgement = in_run(run.run_id, run)
    assert judgement is not None, "the run was chosen as a judged one"  # noqa: S101
    task = shortened(run.task, TASK_CHARACTERS)
    outcome = outcome_of(run, judgement)
    action = made[0].title if made else task
    return {
        "lesson": cut(f"{cue.lesson} The run “{task}” {outcome}.", LONGEST_LESSON),
        "details": {**cue.details, "situation": cue.trigger, "action": action, "outcome": outcome},
        "confidence": _confidence(cue.confidence, judgement),
    }


def outcome_of(run: Run, judgement: FoundJudgement) -> str:
    """Words how a run was judged: "scored 8.2 of 10, accept; main issue: no currency". Pure."""
    score = "" if run.final_score is None else f"scored {run.final_score:.3g} of 10"
    judged = ", ".join(filter(None, (score, judgement.verdict or run.verdict)))
    return f"{judged}; main issue: {shortened(run.issues[0], ISSUE_CHARACTERS)}" if run.issues else judged


def _confidence(before: float, judgement: FoundJudgement) -> float:
    score, passed = judgement.score, judgement.passed
    is_bad = passed is False or (score is not None and score < LOW_SCORE)
    is_good = passed is True or (score is not None and score >= HIGH_SCORE)
    factor = FALSE if is_bad else TRUE if is_good else 1.0
    return round(factor * before / (factor * before + 1 - before), 3)
