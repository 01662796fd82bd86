"""The verb that makes procedures of the acts that several sessions have in common."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.cues import store as cues
from app.cues.cue import ACTIVE, AGENT, CONSEQUENCES, LIST_LIMIT, PROCEDURE, PROPOSED, RETIRED, Cue, Evidence, NewCue
from app.cues.extraction.lesson import LONGEST_LESSON, LONGEST_TRIGGER, cut
from app.cues.keep import add_cues
from app.cues.mining import store
from app.cues.mining.acts import Act, acts_of
from app.cues.mining.sequences import FEWEST_SESSIONS, FEWEST_STEPS, Names, alike, found_with, places_of
from app.cues.tending import store as proposals
from app.cues.tending.proposals import REPEATED, Proposal
from app.cues.tending.tend import propose
from app.intake.sessions import store as sessions
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import USER, Turn
from app.memories import store as memories
from app.memories.remember import Door
from app.text.speech import speech_of
from app.text.words import content_words

COMPARED = 40
"""Sessions that a new one is compared with: those that share most kinds of acts."""
SHOWN = 10
"""Most sessions whose turns are read for the evidence and the goal of a new procedure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """The outcome for a session."""

    acts: int = 0
    """Number of its acts."""
    proposed: tuple[UUID, ...] = ()
    """The procedures that its acts brought; each fires once a person accepts it."""
    supports: int = 0
    """Number of procedures that were known, and that it has too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
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
        return Evidence(session=self.session_id, ordinal=first.ordinal, quote=first.said)

    def request(self, proof: Evidence) -> str:
        """Returns what the user asked for before that turn."""
        before = [item for item in self.messages if item.role == USER and item.ordinal < (proof.ordinal or 0)]
        asked = [speech_of(item.text).text for item in before]
        said = [" ".join(text.split()) for text in asked if text.strip()]
        return cut(said[-1], LONGEST_TRIGGER) if said else ""


async def mine_procedures(door: Door, session_id: str) -> Mined:
    """Compares the acts of a stored session with those of the sessions that are most like it.

    The same acts in the same order, in FEWEST_SESSIONS sessions or more, are proposed as a procedure, with its evidence
    in each of them. A procedure that was found before gets, or loses, its evidence in this session; one that nobody has
    accepted, and that too few sessions support now, is withdrawn.
    """
    async with door.database.session(door.workspace, transaction=False) as session:
        known = await sessions.known_session(session, session_id, revive=False)
        if known is None:
            return Mined()
        messages = [] if known.deleted else await sessions.messages(session, known.source_id)
    done = await _done(session_id, messages)
    async with door.database.session(door.workspace) as session:
        await store.save(session, known.source_id, done.names)
        others = await store.sharing(session, known.source_id, done.names, fewest=FEWEST_STEPS, limit=COMPARED)
        procedures = await cues.read(session, await store.mined(session))
        await store.forget_proofs(session, known.source_id, list(procedures))
    supported = [item for item in procedures.values() if done.proof(_steps(item)) and item.state in {ACTIVE, PROPOSED}]
    if supported:
        await add_cues(door, [_supported(item, done) for item in supported])
    await _withdraw(door, [item for item in procedures.values() if item not in supported])
    found = await asyncio.to_thread(found_with, done.names, list(others.values()))
    new = [item for item in found if not any(alike(item.steps, _steps(cue)) for cue in procedures.values())]
    ids = [known.source_id, *others]
    proposed = [await _propose(door, done, item.steps, [ids[at] for at in item.sessions[1:]]) for item in new]
    return Mined(acts=len(done.acts), proposed=tuple(filter(None, proposed)), supports=len(supported))


async def _done(session_id: str, messages: Sequence[StoredMessage]) -> _Done:
    turns = [Turn(ordinal=item.ordinal, role=item.role, text=item.text, tools=item.tools) for item in messages]
    return _Done(session_id=session_id, acts=await asyncio.to_thread(acts_of, turns), messages=messages)


def _steps(cue: Cue) -> Names:
    return tuple(cue.details.get("steps") or ())


def _supported(cue: Cue, done: _Done) -> NewCue:
    """Returns a procedure as it is stored, with its evidence in one more session."""
    proof = done.proof(_steps(cue))
    assert proof is not None, "the caller has looked"  # noqa: S101
    others = {item.session for item in cue.evidence} | {done.session_id}
    new = _cue(_steps(cue), (proof,), cue.trigger)
    return replace(new, lesson=cue.lesson, confidence=_confidence(len(others)), action_types=cue.action_types)


async def _withdraw(door: Door, lost: Sequence[Cue]) -> None:
    """Retires the procedures that nobody has accepted, and that too few sessions support."""
    undecided = [cue.cue_id for cue in lost if cue.state == PROPOSED]
    async with door.database.session(door.workspace) as session:
        now = await cues.read(session, undecided)
        gone = [cue_id for cue_id, cue in now.items() if len({item.session for item in cue.evidence}) < FEWEST_SESSIONS]
        if gone:
            await cues.set_state(session, gone, RETIRED, await cues.revised(session))
            await memories.retire(session, gone)
            await proposals.withdraw(session, REPEATED, gone)


async def _propose(door: Door, done: _Done, steps: Names, others: Sequence[UUID]) -> UUID | None:
    """Stores a procedure and proposes it; returns None if it cannot be stored."""
    having = [done, *await _read(door, others[: SHOWN - 1])]
    proofs = {item.session_id: proof for item in having if (proof := item.proof(steps)) is not None}
    goal = _goal([item.request(proofs[item.session_id]) for item in having if item.session_id in proofs])
    count = 1 + len(others)
    new = replace(
        _cue(steps, tuple(proofs.values())[:LIST_LIMIT], goal or f"work that begins with: {steps[0]}"),
        confidence=_confidence(count),
    )
    (cue_id,) = (await add_cues(door, [new])).ids
    if cue_id is None:
        return None
    reason = f"the same {len(steps)} steps in {count} sessions: {' → '.join(steps)}"
    await propose(door, [Proposal(change=REPEATED, cue_ids=(), target_id=cue_id, reason=reason)])
    return cue_id


async def _read(door: Door, ids: Sequence[UUID]) -> list[_Done]:
    async with door.database.session(door.workspace, transaction=False) as session:
        names: Mapping[UUID, str] = await store.names_of(session, ids)
        read = [(names[source_id], await sessions.messages(session, source_id)) for source_id in ids]
    return [await _done(session_id, messages) for session_id, messages in read]


def _cue(steps: Names, proofs: tuple[Evidence, ...], goal: str) -> NewCue:
    told = " ".join(f"({number}) {step}" for number, step in enumerate(steps, 1))
    return NewCue(
        kind=PROCEDURE,
        trigger=goal,
        lesson=cut(f"Take these steps in this order: {told}", LONGEST_LESSON),
        details={"goal": goal, "steps": list(steps)},
        consequence=CONSEQUENCES["low"],
        quote=proofs[0].quote,
        evidence=proofs,
        trust=AGENT,
        origin=PROPOSED,
    )


def _confidence(count: int) -> float:
    """Returns the confidence of a procedure of so many sessions: 0.6 for three, 0.83 for ten."""
    return count / (count + 2)


def _goal(requests: Sequence[str]) -> str:
    """Returns the request that has most words in common with the others; "" if they have none in common."""
    told = {text: content_words(text) for text in requests if text}
    common = Counter(word for text in requests for word in told.get(text, ()))
    shared = {word for word, count in common.items() if count > len(requests) / 2}
    fitting = [text for text, known in told.items() if known & shared]
    return min(fitting, key=lambda text: (-len(told[text] & shared), len(told[text])), default="")
