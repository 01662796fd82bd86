"""The verbs that compare a session with others and with runs: its procedures, its wishes and its precedents."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.text.words import content_words
from app.intake.cases.extract import in_run
from app.intake.cases.judgement import FoundJudgement
from app.intake.runs import store as runs
from app.intake.runs.observations.observation import cut_line
from app.intake.runs.run import Run
from app.intake.sessions import store as sessions
from app.recall.cues import evidence as evidence_store
from app.recall.cues import store as stored_cues
from app.recall.cues.conflicts import OF_ANY_WISH, contradict
from app.recall.cues.cue import (
    ACTIVE,
    AGENT,
    CONSEQUENCES,
    CORRECTION,
    EXTRACTED,
    LIST_LIMIT,
    LONGEST_LESSON,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    PROPOSED,
    TOGETHER,
    Cue,
    Evidence,
    NewCue,
    cut,
)
from app.recall.cues.edit import retire_in
from app.recall.cues.keep import given_of
from app.recall.cues.outcomes import LOW_SCORE
from app.recall.cues.review import store as proposal_store
from app.recall.cues.review.procedures import (
    FEWEST_SESSIONS,
    FEWEST_STEPS,
    ActedSession,
    Names,
    acts_of,
    are_one_procedure,
    sequences_with,
)
from app.recall.cues.review.review import Reviews
from app.recall.cues.review.rules import MERGE, REPEATED, Proposal
from app.recall.cues.service import Cues
from app.recall.cues.signs import STATED, patterns
from app.recall.cues.store import CueFilter
from app.recall.cues.ways import rejected_things
from app.storage.links import store as links
from app.storage.links.relations import DERIVED_FROM, Link
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import Memory, NewMemory
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.workspace import Workspace

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
COMPARED_SESSIONS = 40
"""Sessions that a new one is compared with: those that share most kinds of acts."""
READ_SESSIONS = 10
"""Most sessions whose turns are read for the evidence and the goal of a new procedure."""
MOST_STORED = 1_000
DOUBTED = 2
"""Sessions that count as much as the doubt: the confidence is 0.6 for three of them, 0.83 for ten."""
TRUE, FALSE = 2.0, 0.5
"""Factors of the odds that a lesson of an accepted run, or of a bad one, lasts."""


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


async def _cues_of(session: Session, session_id: str) -> list[Cue]:
    known = await sessions.known_session(session, session_id)
    return [] if known is None else await stored_cues.of_source(session, known.source_id)


def _steps(cue: Cue) -> Names:
    return tuple(cue.details.get("steps") or ())


def _with_proof(cue: Cue, acted: ActedSession, proof: Evidence) -> NewCue:
    """Returns a procedure as it is stored, with its evidence in one more session."""
    count = len({item.session for item in cue.evidence} | {acted.session_id})
    return replace(given_of(cue, {"confidence": count / (count + DOUBTED)}), evidence=(proof,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mining:
    """Compares sessions with others and with runs."""

    database: Database
    cues: Cues
    reviews: Reviews

    async def mine(self, workspace: Workspace, session_id: str) -> list[UUID]:
        """Compares a session with others: repeated acts, wishes that are one, and precedents whose run was judged.

        Returns the procedures that its acts show.
        """
        procedures = await self._mine_procedures(workspace, session_id)
        await self._unite_wishes(workspace, session_id)
        await self.judge_precedents(workspace, session_id)
        return procedures

    async def _unite_wishes(self, workspace: Workspace, session_id: str) -> None:
        """Merges the wishes of a session into those of others that mean the same; without vectors, none.

        The one with the most evidence gets that of all sessions, and more confidence. What a person parted is not
        merged again.
        """
        async with self.database.session(workspace, transaction=False) as session:
            own = [cue for cue in await _cues_of(session, session_id) if _is_wish(cue)]
        pairs = await self.cues.conflicts.near_pairs(
            workspace, [cue.cue_id for cue in own], form=TOGETHER, least=SAME_WISH, most=LIST_LIMIT
        )
        same = groupby((pair for pair in pairs if is_one_wish(*pair)), itemgetter(0))
        await self.reviews.propose(workspace, [_merge([one, *(other for _, other in near)]) for one, near in same])

    async def judge_precedents(self, workspace: Workspace, session_id: str | None = None) -> int:
        """Gives precedents, of a session or of all, the outcome of the judged run that they name; returns their number.

        One that names no run, or whose run nobody has judged yet, is looked at again. What a person edited stays.
        """
        async with self.database.session(workspace, transaction=False) as session:
            if session_id is None:
                asked = CueFilter(kinds=(PRECEDENT,), states=(ACTIVE,))
                known = await stored_cues.page(session, asked, after=None, limit=LARGEST_PAGE)
            else:
                known = await _cues_of(session, session_id)
            own = [cue for cue in known if cue.kind == PRECEDENT and cue.origin == EXTRACTED and cue.state == ACTIVE]
            unjudged = [cue for cue in own if not (cue.suspect or cue.edited or cue.details.get("outcome"))]
            judged = await runs.page(session, conditions=[JUDGED], values={}, limit=COMPARED_RUNS) if unjudged else []
        found = await asyncio.to_thread(runs_named, unjudged, judged)
        return sum([await self._judge(workspace, cue, found[cue.cue_id]) for cue in unjudged if cue.cue_id in found])

    async def _judge(self, workspace: Workspace, cue: Cue, run: Run) -> bool:
        async with self.database.session(workspace, transaction=False) as session:
            written = [item for item in await runs.made_of(session, run.run_id) if item.kind == "observation"]
        changed = _with_outcome(cue, run, written)
        # The words of a run are no person's: what the scan finds in them must not bar the person's own lesson.
        text = NewMemory(kind="cue", title=changed["details"]["action"], body=changed["lesson"])
        if (await asyncio.to_thread(screen_memory, text, mask=self.cues.mask)).findings:
            return False
        try:
            await self.cues.edit(workspace, cue.cue_id, changed, by_person=False)
        except (InvalidInput, NotFound):
            return False  # Another cue says the same, or the cue was deleted meanwhile.
        async with self.database.session(workspace) as session:
            await links.add(session, [Link(cue.cue_id, memory.memory_id, DERIVED_FROM) for memory in written[:1]])
        return True

    async def _mine_procedures(self, workspace: Workspace, session_id: str) -> list[UUID]:
        """Proposes the procedures that a session shares with others; returns those that it has.

        Acts that FEWEST_SESSIONS have in the same order, with others between them, are proposed as a procedure, with
        its evidence in each of them. A procedure that was found before gets, or loses, its evidence in this session;
        one that nobody has accepted, and that too few sessions support now, is withdrawn.
        """
        async with self.database.session(workspace, transaction=False) as session:
            known = await sessions.known_session(session, session_id)
            if known is None:
                return []
            messages = [] if known.deleted else await sessions.messages(session, known.source_id)
        acted = ActedSession(session_id, await asyncio.to_thread(acts_of, messages), messages)
        async with self.database.session(workspace) as session:
            await evidence_store.save_acts(session, known.source_id, acted.names)
            others = await evidence_store.sessions_sharing(
                session, known.source_id, acted.names, fewest=FEWEST_STEPS, limit=COMPARED_SESSIONS
            )
            stored = await stored_cues.page(session, CueFilter(kinds=(PROCEDURE,)), after=None, limit=MOST_STORED)
            procedures = [cue for cue in stored if cue.origin == PROPOSED]
            await evidence_store.forget_proofs(session, known.source_id, [cue.cue_id for cue in procedures])
        valid = [(cue, acted.proof(_steps(cue))) for cue in procedures if cue.state in {ACTIVE, PROPOSED}]
        supported = {cue.cue_id: _with_proof(cue, acted, proof) for cue, proof in valid if proof}
        if supported:
            await self.cues.add(workspace, list(supported.values()))
        await self._withdraw(workspace, [cue.cue_id for cue, proof in valid if not proof and cue.state == PROPOSED])
        found = await asyncio.to_thread(sequences_with, acted.names, list(others.values()))
        ids = [known.source_id, *others]
        proposed = [
            await self._propose_procedure(workspace, acted, item.steps, [ids[at] for at in item.sessions[1:]])
            for item in found
            if not any(are_one_procedure(item.steps, _steps(cue)) for cue in procedures)
        ]
        return [*supported, *filter(None, proposed)]

    async def _withdraw(self, workspace: Workspace, undecided: Sequence[UUID]) -> None:
        async with self.database.session(workspace) as session:
            now = await stored_cues.read(session, undecided)
            gone = [
                cue_id for cue_id, cue in now.items() if len({item.session for item in cue.evidence}) < FEWEST_SESSIONS
            ]
            await retire_in(session, gone)
            await proposal_store.withdraw(session, REPEATED, gone)

    async def _propose_procedure(
        self, workspace: Workspace, acted: ActedSession, steps: Names, others: Sequence[UUID]
    ) -> UUID | None:
        """Stores a procedure and proposes it; returns None if it cannot be stored."""
        shown = [acted, *await self._read_acts(workspace, others[: READ_SESSIONS - 1])]
        proofs = [(item, proof) for item in shown if (proof := item.proof(steps)) is not None]
        count = 1 + len(others)
        # The shortest request says least of its own case.
        requests = filter(None, (item.request(proof) for item, proof in proofs))
        goal = min(requests, key=len, default=f"work that begins with: {steps[0]}")
        evidence = tuple(proof for _, proof in proofs)[:LIST_LIMIT]
        numbered = " ".join(f"({number}) {step}" for number, step in enumerate(steps, 1))
        new = NewCue(
            kind=PROCEDURE,
            trigger=goal,
            lesson=cut(f"Take these steps in this order: {numbered}", LONGEST_LESSON),
            details={"goal": goal, "steps": list(steps)},
            confidence=count / (count + DOUBTED),
            consequence=CONSEQUENCES["low"],
            quote=evidence[0].quote,
            evidence=evidence,
            trust=AGENT,
            origin=PROPOSED,
        )
        (cue_id,) = (await self.cues.add(workspace, [new])).ids
        if cue_id is None:
            return None
        reason = f"the same {len(steps)} steps in {count} sessions: {' → '.join(steps)}"
        await self.reviews.propose(workspace, [Proposal(change=REPEATED, cue_ids=(), target_id=cue_id, reason=reason)])
        return cue_id

    async def _read_acts(self, workspace: Workspace, ids: Sequence[UUID]) -> list[ActedSession]:
        async with self.database.session(workspace, transaction=False) as session:
            names = await evidence_store.session_names(session, ids)
            read = [(names[source_id], await sessions.messages(session, source_id)) for source_id in ids]
        return [
            ActedSession(session_id, await asyncio.to_thread(acts_of, messages), messages)
            for session_id, messages in read
        ]
