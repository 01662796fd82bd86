"""Finds cues that contradict a new one, and settles which of them holds."""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.text.prose import statements_in
from app.foundation.text.words import content_words
from app.recall.cues import render, store
from app.recall.cues.cue import (
    ACTIVE,
    CORRECTION,
    DECISION,
    NEGATIVE_RESULT,
    PREFERENCE,
    SUPERSEDED,
    TRIGGER,
    TRUSTS,
    Cue,
    choice_of,
)
from app.recall.cues.index import CueIndexes
from app.recall.cues.signs import patterns
from app.recall.cues.store import CueFilter
from app.recall.cues.ways import rejected_things
from app.storage.links import store as links
from app.storage.links.relations import Link
from app.storage.memories import store as memories
from app.storage.memories.memory import SUPERSEDED as REPLACED
from app.storage.tenants.workspace import Workspace

ALIKE = 0.7
"""Least cosine of the triggers of two cues that may contradict each other. Of the 270 cues of the benchmark none is
superseded, and two are held to dispute each other, wrongly."""
MOST_DECIDED = 200
SETTLED = frozenset({DECISION, CORRECTION, PREFERENCE})
"""Kinds that hold until somebody takes them back."""
REVERSING = SETTLED | {NEGATIVE_RESULT}
NAME_WORDS = 4
"""Content words of a choice that is a name: one of them is enough to take it back, of a longer one two."""
CLAUSE = re.compile(r",\s+|(?<!\s)\s+and\s+|:\s+")
INSTEAD = re.compile(r"\binstead\b(?!\s+of)|\b(?P<to>(?:switch|chang|mov)(?:e|ed|ing)? to|back to)\b", re.IGNORECASE)
"""Words by which a choice says that it takes the place of another one. It stands after the `to`, else beside them."""
BARE = re.compile(r"[^,.:;]+\binstead\W*", re.IGNORECASE)
KEPT = re.compile(r"\b(?:keeps?|kept|stays?|still|also|too(?=[\s.,;:]*$)|as well|remains?)\b", re.IGNORECASE)
"""Words by which a statement lets the other choice stand."""
COMPARED = 8
OF_ANY_WISH = content_words(
    "always never please prefer use want would like keep rather project everywhere immer nie bitte lieber nutze benutze"
    " verwende will möchte projekt überall всегда никогда пожалуйста лучше используй хочу проект везде"
)


class Conflict(NamedTuple):
    """Two cues of one situation that say otherwise."""

    older: Cue
    newer: Cue
    is_clear: bool
    """True if the newer one holds; else both are shown as disputed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicts:
    """Finds cues that are near each other, and settles which of two holds that contradict each other."""

    database: Database
    indexes: CueIndexes

    async def near_pairs(
        self, workspace: Workspace, ids: Iterable[UUID], *, form: int, least: float, most: int
    ) -> list[tuple[Cue, Cue]]:
        """Returns pairs of one of these cues and one near it by its vector in one place; without a model none."""
        if not self.indexes.provider.enabled:
            return []
        index = await self.indexes.of(workspace)
        known, now = [cue_id for cue_id in ids if cue_id in index.places], datetime.now(UTC)
        found = await asyncio.to_thread(index.nearest, known, form=form, least=least, most=most, moment=now)
        async with self.database.session(workspace, transaction=False) as session:
            cues = await store.read(session, sorted({cue_id for pair in found for cue_id in pair}))
        return [(cues[one], cues[other]) for one, other in found if one in cues and other in cues]

    async def settle(self, workspace: Workspace, ids: Sequence[UUID]) -> None:
        """Lets each new cue hold in place of older ones that it contradicts, or notes that they dispute each other."""
        if not self.indexes.provider.enabled or not ids:
            return
        near = await self.near_pairs(workspace, ids, form=TRIGGER, least=ALIKE, most=COMPARED)
        asked = CueFilter(kinds=tuple(SETTLED), states=(ACTIVE,))
        async with self.database.session(workspace, transaction=False) as session:
            new = [cue for cue in (await store.read(session, ids)).values() if cue.kind in REVERSING]
            decided = await store.page(session, asked, after=None, limit=MOST_DECIDED) if new else []
        user_of = {item.cue_id: item.user for item in (await self.indexes.of(workspace)).known}
        known = [cue for cue in new if cue.cue_id in user_of]
        earlier = [(cue, it) for cue in known for it in decided if user_of[cue.cue_id] == user_of.get(it.cue_id)]
        found = await asyncio.to_thread(conflicts_of, near, contradict)
        found += await asyncio.to_thread(conflicts_of, earlier, reverses)
        if not found:
            return
        async with self.database.session(workspace) as session:
            # Other writers of these cues wait for this transaction.
            await store.next_revision(session)
            for item in found:
                if item.is_clear:
                    await supersede(session, [item.older.cue_id], item.newer.cue_id, item.newer.valid_from)
                else:
                    await store.dispute(session, item.older.cue_id, item.newer.cue_id)


async def supersede(session: Session, ids: Sequence[UUID], newer: UUID, moment: datetime) -> None:
    """Lets a cue hold in place of others from a moment on. Until a later moment, they stay as they are."""
    await links.add(session, [Link(newer, older, "supersedes") for older in ids])
    if moment > datetime.now(UTC):
        await store.set_state(session, ids, ACTIVE, superseded_by=newer, valid_until=moment)
        return
    await store.set_state(session, ids, SUPERSEDED, superseded_by=newer, valid_until=moment)
    await memories.retire(session, ids, reason=REPLACED)


async def supersede_due(session: Session) -> None:
    """Supersedes the cues whose successor has begun to hold."""
    for due in await store.due(session):
        await supersede(session, [due.memory_id], due.superseded_by, due.valid_until)


def conflicts_of(pairs: Iterable[tuple[Cue, Cue]], disagree: Callable[[Cue, Cue], bool]) -> list[Conflict]:
    """Returns the pairs of cues of which one takes back, or disputes, what the other says."""
    found: dict[frozenset[UUID], Conflict] = {}
    for pair in pairs:
        older, newer = sorted(pair, key=lambda cue: (cue.valid_from, cue.created_at, cue.cue_id))
        # A record names what it replaces; a word in common does not.
        by_record = any(proof.path for proof in newer.evidence)
        if by_record or any(cue.suspect or cue.state != ACTIVE for cue in pair) or not disagree(*pair):
            continue
        clear = older.valid_from < newer.valid_from and TRUSTS.index(newer.trust) <= TRUSTS.index(older.trust)
        found.setdefault(frozenset({older.cue_id, newer.cue_id}), Conflict(older, newer, clear))
    return list(found.values())


def reverses(one: Cue, other: Cue) -> bool:
    """Returns True if the newer of two cues takes back what the older one says: "quarto is dead, back to word".

    A wish is taken back only by a clause that names most of it and nothing else: "pnpm install failed" does not end
    "use pnpm".
    """
    older, newer = sorted((one, other), key=lambda cue: cue.valid_from)
    if older.kind not in SETTLED or newer.kind not in REVERSING or newer.valid_from <= older.valid_from:
        return False
    if not (clauses := _taken_back(newer.lesson)):
        return False
    chosen = content_words(choice_of(older))
    if older.kind != DECISION:
        own = chosen - OF_ANY_WISH
        return any(words <= chosen and 2 * len(words & own) > len(own) for words in clauses)
    least = 1 if len(chosen) <= NAME_WORDS else 2
    return any(len(chosen & words) >= least for words in clauses)


@lru_cache(maxsize=1_024)
def _taken_back(lesson: str) -> Sequence[frozenset[str]]:
    """Returns what each clause takes back, as words; each new cue is compared with many earlier ones."""
    clauses = [clause for part in statements_in(lesson) for clause in CLAUSE.split(part)]
    reverses_it = patterns("person")["reverses"]
    said = [(clause, reverses_it.sub(" ", clause.lower())) for clause in clauses]
    return [content_words(rest) for clause, rest in said if rest != clause.lower()]


def contradict(one: Cue, other: Cue) -> bool:
    """Returns True if one of two cues of a situation rejects what the other one says or has chosen, or replaces it.

    Two that turn down the same thing do not.
    """
    first, second = (content_words(" ".join(_turned_down(cue))) for cue in (one, other))
    if first & second:
        return False
    return (
        _rejects(one, other) or _rejects(other, one) or _replaces(*sorted((one, other), key=lambda cue: cue.valid_from))
    )


def _replaces(older: Cue, newer: Cue) -> bool:
    """Returns True if a later decision or preference says that it is one in place of another.

    It names what the earlier one chose, apart from what it chooses itself: "three retries are out: backoff instead".
    Two names of one situation need no more than "backoff instead".
    """
    if not {older.kind, newer.kind} <= {DECISION, PREFERENCE} or newer.valid_from <= older.valid_from:
        return False
    chosen = content_words(choice_of(older)) - OF_ANY_WISH
    is_answer = BARE.fullmatch(newer.lesson) and content_words(older.trigger) == content_words(newer.trigger)
    for statement in statements_in(newer.lesson):
        named, own = _in_place_of(statement)
        is_name = is_answer and max(len(chosen), len(own)) <= NAME_WORDS
        if chosen and own and not chosen & own and (chosen <= named or is_name) and not KEPT.search(statement):
            return True
    return False


def _in_place_of(statement: str) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the words that stand beside a choice which takes the place of another one, and its own words."""
    left, taken = list[str](), list[str]()
    for clause in CLAUSE.split(statement):
        found = INSTEAD.search(clause)
        if found is not None and found["to"]:
            left.append(clause[: found.start()])
            taken.append(clause[found.end() :])
        else:
            (left if found is None else taken).append(INSTEAD.sub(" ", clause))
    return content_words(" ".join(left)), content_words(" ".join(taken))


def _turned_down(cue: Cue) -> Sequence[str]:
    return [*rejected_things(cue), str(cue.details.get("preferred_over") or "")]


def _rejects(one: Cue, other: Cue) -> bool:
    if render.contradiction(one, other.lesson) is not None:
        return True
    if one.kind not in {DECISION, PREFERENCE}:
        return False
    # A choice may be a single word ("tabs"), which no plan could be told by.
    chosen = content_words(str(other.details.get("choice") or ""))
    given = one.details.get("alternatives") or one.details.get("preferred_over") or ()
    rejected = [given] if isinstance(given, str) else list(given)
    return bool(chosen) and any(chosen == content_words(text) for text in rejected)
