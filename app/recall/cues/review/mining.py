"""The verbs that compare a session with others and with runs: its procedures, its wishes and its precedents."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np

from app.errors import InvalidInput, NotFound
from app.foundation.text.speech import speech_of
from app.foundation.text.words import content_words
from app.intake.cases.extract import in_run
from app.intake.cases.judgement import FoundJudgement
from app.intake.runs import store as runs
from app.intake.runs.observations.observation import cut_line
from app.intake.runs.run import Run
from app.intake.sessions import store as sessions
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import USER, Turn
from app.recall.cues import evidence as evidence_store
from app.recall.cues import store as cues
from app.recall.cues.conflicts import contradict
from app.recall.cues.cue import (
    ACTIVE,
    AGENT,
    CONSEQUENCES,
    CORRECTION,
    EXTRACTED,
    LIST_LIMIT,
    LONGEST_LESSON,
    LONGEST_TRIGGER,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    PROPOSED,
    RETIRED,
    TOGETHER,
    Cue,
    Evidence,
    NewCue,
    cut,
)
from app.recall.cues.edit import edit_cue
from app.recall.cues.index import index_of
from app.recall.cues.keep import add_cues
from app.recall.cues.outcomes import LOW_SCORE
from app.recall.cues.render import rejected_things
from app.recall.cues.review import store
from app.recall.cues.review.acts import (
    FEWEST_SESSIONS,
    FEWEST_STEPS,
    Act,
    Names,
    acts_of,
    are_one_procedure,
    places_of,
    sequences_with,
)
from app.recall.cues.review.review import propose
from app.recall.cues.review.rules import MERGE, REPEATED, Proposal
from app.recall.cues.signs import STATED, patterns
from app.recall.cues.store import CueFilter
from app.storage.links import store as links
from app.storage.links.relations import DERIVED_FROM, Link
from app.storage.memories import store as memories
from app.storage.memories.browse import LARGEST_PAGE
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import Memory, NewMemory
from app.storage.memories.remember import Door

COMPARED_SESSIONS = 40
"""Sessions that a new one is compared with: those that share most kinds of acts."""
READ_SESSIONS = 10
"""Most sessions whose turns are read for the evidence and the goal of a new procedure."""
SAME_WISH = 0.65
"""Cosine of the texts of two cues from which they are one wish. Of 70 invented sessions the pairs above it are one, and
the nearest pair that is not lies at 0.52; wishes in other words may lie lower."""
OF_ANY_WISH = content_words(
    "always never please prefer use want would like keep rather project everywhere immer nie bitte lieber nutze benutze"
    " verwende will möchte projekt überall всегда никогда пожалуйста лучше используй хочу проект везде"
)
"""Words of any wish: they say nothing of what is chosen."""
END = re.compile(r"[,;!?\n(*]|[.:](?=\W|$)|\s[-–—]\s")
"""End of the clause that names a precedent."""
JUDGED = "(final_score IS NOT NULL OR verdict <> '')"
COMPARED_RUNS = 500
"""Judged runs that a precedent is compared with, the newest."""
NAMED_SHARE = 0.6
"""Least share, by rarity, of the words of what a precedent names that are in the task of its run."""
TASK_CHARACTERS, ISSUE_CHARACTERS = 200, 120
HIGH_SCORE = 8.0
"""Score from which on a run without a verdict confirms the precedent."""
TRUE, FALSE = 2.0, 0.5
"""Factors of the odds that a lesson of an accepted run, or of a bad one, lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """The outcome for a session."""

    acts: int = 0
    """Number of its acts."""
    proposed: tuple[UUID, ...] = ()
    """The procedures that its acts brought; each fires once a person accepts it."""
    supports: int = 0
    """Number of procedures that were stored before, and that it has too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ActedSession:
    """A session with what its agent did."""

    session_id: str
    acts: Sequence[Act]
    messages: Sequence[StoredMessage]

    @property
    def names(self) -> Names:
        return tuple(item.name for item in self.acts)

    def proof(self, steps: Names) -> Evidence | None:
        """Returns the turn at which it begins these steps; None if it does not take them."""
        places = places_of(self.names, steps)
        if places is None:
            return None
        first = self.acts[places[0]]
        return Evidence(session=self.session_id, ordinal=first.ordinal, quote=first.quote)

    def request(self, proof: Evidence) -> str:
        """Returns what a person asked for before these steps; "" if nothing."""
        before = [item for item in self.messages if item.role == USER and item.ordinal < (proof.ordinal or 0)]
        spoken = [" ".join(speech_of(item.text).text.split()) for item in before]
        return cut(next(filter(None, reversed(spoken)), ""), LONGEST_TRIGGER)


async def mine_session(door: Door, session_id: str) -> Mined:
    """Compares a session with others: repeated acts, wishes that are one, and precedents whose run was judged."""
    mined = await _mine_procedures(door, session_id)
    await _unite_wishes(door, session_id)
    await judge_precedents(door, session_id)
    return mined


async def _mine_procedures(door: Door, session_id: str) -> Mined:
    """Proposes the procedures that a session shares with others.

    Acts that FEWEST_SESSIONS have in the same order, with others between them, are proposed as a procedure, with its
    evidence in each of them. A procedure that was found before gets, or loses, its evidence in this session; one that
    nobody has accepted, and that too few sessions support now, is withdrawn.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id, revive=False)
        if known is None:
            return Mined()
        messages = [] if known.deleted else await sessions.messages(session, known.source_id)
    acted = await _find_acts(session_id, messages)
    async with door.database.session(door.workspace) as session:
        await evidence_store.save_acts(session, known.source_id, acted.names)
        others = await evidence_store.sessions_sharing(
            session, known.source_id, acted.names, fewest=FEWEST_STEPS, limit=COMPARED_SESSIONS
        )
        procedures = await cues.read(session, await cues.mined_ids(session))
        await evidence_store.forget_proofs(session, known.source_id, list(procedures))
    supported = [item for item in procedures.values() if acted.proof(_steps(item)) and item.state in {ACTIVE, PROPOSED}]
    if supported:
        await add_cues(door, [_with_proof(item, acted) for item in supported])
    await _withdraw(door, [item for item in procedures.values() if item not in supported])
    found = await asyncio.to_thread(sequences_with, acted.names, list(others.values()))
    new = [item for item in found if not any(are_one_procedure(item.steps, _steps(cue)) for cue in procedures.values())]
    ids = [known.source_id, *others]
    proposed = [await _propose(door, acted, item.steps, [ids[at] for at in item.sessions[1:]]) for item in new]
    return Mined(acts=len(acted.acts), proposed=tuple(filter(None, proposed)), supports=len(supported))


async def _find_acts(session_id: str, messages: Sequence[StoredMessage]) -> _ActedSession:
    turns = [Turn(ordinal=item.ordinal, role=item.role, text=item.text, tools=item.tools) for item in messages]
    return _ActedSession(session_id=session_id, acts=await asyncio.to_thread(acts_of, turns), messages=messages)


def _steps(cue: Cue) -> Names:
    return tuple(cue.details.get("steps") or ())


def _with_proof(cue: Cue, acted: _ActedSession) -> NewCue:
    """Returns a procedure as it is stored, with its evidence in one more session."""
    proof = acted.proof(_steps(cue))
    assert proof is not None, "the caller has looked"  # noqa: S101
    others = {item.session for item in cue.evidence} | {acted.session_id}
    new = _procedure(_steps(cue), (proof,), cue.trigger, len(others))
    return replace(new, lesson=cue.lesson, action_types=cue.action_types)


async def _withdraw(door: Door, lost: Sequence[Cue]) -> None:
    """Retires the procedures that nobody has accepted, and that too few sessions support."""
    undecided = [cue.cue_id for cue in lost if cue.state == PROPOSED]
    async with door.database.session(door.workspace) as session:
        now = await cues.read(session, undecided)
        gone = [cue_id for cue_id, cue in now.items() if len({item.session for item in cue.evidence}) < FEWEST_SESSIONS]
        if gone:
            await cues.set_state(session, gone, RETIRED, await cues.next_revision(session))
            await memories.retire(session, gone)
            await store.withdraw(session, REPEATED, gone)


async def _propose(door: Door, acted: _ActedSession, steps: Names, others: Sequence[UUID]) -> UUID | None:
    """Stores a procedure and proposes it; returns None if it cannot be stored."""
    shown = [acted, *await _read(door, others[: READ_SESSIONS - 1])]
    proofs = [(item, proof) for item in shown if (proof := item.proof(steps)) is not None]
    goal = _goal([item.request(proof) for item, proof in proofs]) or f"work that begins with: {steps[0]}"
    count = 1 + len(others)
    new = _procedure(steps, tuple(proof for _, proof in proofs)[:LIST_LIMIT], goal, count)
    (cue_id,) = (await add_cues(door, [new])).ids
    if cue_id is None:
        return None
    reason = f"the same {len(steps)} steps in {count} sessions: {' → '.join(steps)}"
    await propose(door, [Proposal(change=REPEATED, cue_ids=(), target_id=cue_id, reason=reason)])
    return cue_id


async def _read(door: Door, ids: Sequence[UUID]) -> list[_ActedSession]:
    async with door.database.session(door.workspace, transaction=False) as session:
        names = await evidence_store.session_names(session, ids)
        read = [(names[source_id], await sessions.messages(session, source_id)) for source_id in ids]
    return [await _find_acts(session_id, messages) for session_id, messages in read]


def _procedure(steps: Names, proofs: tuple[Evidence, ...], goal: str, count: int) -> NewCue:
    """Returns a procedure of so many sessions: with a confidence of 0.6 for three of them, and of 0.83 for ten."""
    numbered = " ".join(f"({number}) {step}" for number, step in enumerate(steps, 1))
    return NewCue(
        kind=PROCEDURE,
        trigger=goal,
        lesson=cut(f"Take these steps in this order: {numbered}", LONGEST_LESSON),
        details={"goal": goal, "steps": list(steps)},
        confidence=count / (count + 2),
        consequence=CONSEQUENCES["low"],
        quote=proofs[0].quote,
        evidence=proofs,
        trust=AGENT,
        origin=PROPOSED,
    )


def _goal(requests: Sequence[str]) -> str:
    """Returns the request that has most words in common with the others; "" if they have none in common."""
    words = {text: content_words(text) for text in requests if text}
    common = Counter(word for text in requests for word in words.get(text, ()))
    shared = {word for word, count in common.items() if count > len(requests) / 2}
    fitting = [text for text, own in words.items() if own & shared]
    return min(fitting, key=lambda text: (-len(words[text] & shared), len(words[text])), default="")


async def _unite_wishes(door: Door, session_id: str) -> None:
    """Merges the wishes of a session into those of others that mean the same; without vectors, none.

    The one with the most evidence gets that of all sessions, and more confidence. What a person parted is not merged
    again.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id, revive=False)
        own = [] if known is None else [cue for cue in await cues.of_source(session, known.source_id) if _is_wish(cue)]
    near = await _near_wishes(door, [cue.cue_id for cue in own]) if own else {}
    if not near:
        return
    async with door.database.session(door.workspace, transaction=False) as session:
        others = await cues.read(session, sorted({other for found in near.values() for other in found}))
    same = [
        (cue, [others[key] for key in near.get(cue.cue_id, ()) if key in others and is_one_wish(cue, others[key])])
        for cue in own
    ]
    await propose(door, [_merge([cue, *found]) for cue, found in same if found])


async def _near_wishes(door: Door, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[UUID]]:
    """Returns the other cues of the same user whose texts mean what those of each of these cues do."""
    if door.provider is None or not door.provider.enabled:
        return {}
    index = await index_of(door.database, door.provider, door.workspace)
    places = [index.places[cue_id] for cue_id in ids if cue_id in index.places and index.embedded[index.places[cue_id]]]
    vectors = index.vectors[: len(index.known), TOGETHER].astype(np.float32)
    return {
        index.known[place].cue_id: [
            index.known[other].cue_id
            for other in np.flatnonzero(vectors @ vectors[place] >= SAME_WISH).tolist()
            if other != place and index.known[other].user == index.known[place].user
        ]
        for place in places
    }


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
            source = await sessions.known_session(session, session_id, revive=False)
            known = [] if source is None else await cues.of_source(session, source.source_id)
        unjudged = [cue for cue in known if _is_unjudged(cue)]
        judged = await runs.page(session, conditions=[JUDGED], values={}, limit=COMPARED_RUNS) if unjudged else []
    found = await asyncio.to_thread(runs_named, unjudged, judged)
    return sum([await _judge(door, cue, found[cue.cue_id]) for cue in unjudged if cue.cue_id in found])


def _is_unjudged(cue: Cue) -> bool:
    is_own = cue.kind == PRECEDENT and cue.origin == EXTRACTED and cue.state == ACTIVE and not cue.suspect
    return is_own and not cue.edited and not cue.details.get("outcome")


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
        fitting = [place for place, share in enumerate(shares) if share == best and _is_earlier(judged[place], cue)]
        if best >= NAMED_SHARE * sum(rarity.values()) > 0 and len({words[place] for place in fitting}) == 1:
            found[cue.cue_id] = judged[fitting[0]]
    return found


def _is_earlier(run: Run, cue: Cue) -> bool:
    return run.started_at is None or run.started_at <= cue.valid_from


def _named_words(cue: Cue) -> frozenset[str]:
    """Returns the words of what a precedent names ("as we did with X"), or else of its situation."""
    quote = cue.quote.lower().replace("’", "'")
    match = patterns(STATED)["precedent"].search(quote)
    clause = END.split(quote[match.start() :], maxsplit=1)[0] if match else ""
    return content_words(patterns(STATED)["fillers"].sub(" ", clause)) or content_words(cue.trigger)


def _with_outcome(cue: Cue, run: Run, written: Sequence[Memory]) -> Mapping[str, Any]:
    """Returns the fields of a precedent that its run changes."""
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
    """Returns how a run was judged in words: "scored 8.2 of 10, accept; main issue: no currency"."""
    score = "" if run.final_score is None else f"scored {run.final_score:.3g} of 10"
    judged = ", ".join(filter(None, (score, judgement.verdict or run.verdict)))
    return f"{judged}; main issue: {cut_line(run.issues[0], ISSUE_CHARACTERS)}" if run.issues else judged


def _confidence(before: float, judgement: FoundJudgement) -> float:
    score, passed = judgement.score, judgement.passed
    is_bad = passed is False or (score is not None and score < LOW_SCORE)
    is_good = passed is True or (score is not None and score >= HIGH_SCORE)
    factor = FALSE if is_bad else TRUE if is_good else 1.0
    return round(factor * before / (factor * before + 1 - before), 3)
