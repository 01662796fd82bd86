"""The verbs that export judgements as training data."""

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from app.db.database import Database
from app.index.models import active_model
from app.runs.feedback import store
from app.runs.observations.compress import compression_prompt
from app.runs.observations.observation import Outcome, is_issue_fact
from app.workspaces.workspace import Workspace

NEAR = 0.8
"""Least cosine of two observations that are compressions of similar things (docs/learning.md)."""
MOST_RATED = 5_000
"""The newest rated observations, up to this many, are paired; their similarities to each other take 100 MB."""
PARTNERS = 4
"""Most pairs in which the same compression is the better one."""
PAGE = 1_000
NOTHING_TO_PAIR = "nothing to pair: rate two compressions of one task differently first"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRating:
    """A rating that was not undone, with its memory."""

    feedback_id: UUID
    memory_id: UUID
    kind: str
    title: str
    body: str
    rating: int
    comment: str
    run_id: str | None
    created_at: datetime
    quality: int
    final_score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePair:
    """Two compressions, one of which people prefer, in the form that preference trainers read."""

    prompt: str
    chosen: str
    rejected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """The pairs, and the numbers of observations that were left out."""

    pairs: tuple[PreferencePair, ...]
    left_out: int
    """Rated observations whose prompt and output are both missing."""
    replaced: int = 0
    """Rated observations whose own output is not stored, because their run has another output now."""

    @property
    def note(self) -> str:
        """The note for the reader of the pairs; "" if none is needed."""
        reasons = {"is not stored": self.left_out, "was replaced by another": self.replaced}
        left_out = (
            f"left out {count:,} rated observations whose output {reason}" for reason, count in reasons.items() if count
        )
        return "; ".join(part for part in ("" if self.pairs else NOTHING_TO_PAIR, *left_out) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """A rated observation with the fields that a pair needs."""

    memory_id: UUID
    task: str
    prompt: str
    reply: str
    quality: int
    vector: tuple[float, ...] | None = None


async def exported_ratings(database: Database, *, workspace: Workspace) -> AsyncIterator[ExportedRating]:
    """Yields every rating that was not undone, in the order of the log, which is read page by page."""
    after: int | None = 0
    while after is not None:
        async with database.session(workspace) as session:
            rows = await store.standing(session, after=after, limit=PAGE)
            session.note_export("rating", len(rows))
        for row in rows:
            yield ExportedRating(**{name: getattr(row, name) for name in ExportedRating.__slots__})
        after = rows[-1].position if len(rows) == PAGE else None


async def preference_pairs(database: Database, *, workspace: Workspace, evaluator: str) -> Preferences:
    """Returns pairs of differently rated compressions of one task, or else of near neighbours.

    The issues that the `evaluator` added to a compression are left out, because no model should learn to write them. A
    compression whose prompt and output are both missing is left out too, because there is no input to learn from.
    """
    async with database.session(workspace) as session:
        model = await active_model(session)
        rows = await store.rated_observations(session, model, limit=MOST_RATED)
        session.note_export("observation", len(rows))
    return await asyncio.to_thread(_preferences, rows, evaluator)


def _preferences(rows: Sequence[Any], evaluator: str) -> Preferences:
    prompts = [_prompt(row) for row in rows]
    made = [_compression(row, prompt, evaluator) for row, prompt in zip(rows, prompts, strict=True) if prompt]
    replaced = sum(row.replaced for row, prompt in zip(rows, prompts, strict=True) if not prompt)
    return Preferences(pairs=tuple(paired(made)), left_out=len(rows) - len(made) - replaced, replaced=replaced)


def _prompt(row: Any) -> str | None:  # noqa: ANN401 - a row
    """Returns the prompt that made the compression, or would have; None if its output is not known."""
    if row.prompt is not None:
        return str(row.prompt)
    if row.request is not None:
        return compression_prompt(msgspec.convert(row.request, Outcome))
    if not row.output:
        return None
    return compression_prompt(Outcome(task=row.task, task_type=row.task_type, output=row.output))


def _compression(row: Any, prompt: str, evaluator: str) -> Compression:  # noqa: ANN401 - a row
    return Compression(
        memory_id=row.memory_id,
        task=row.task,
        prompt=prompt,
        reply=_reply(row.title, row.narrative, [fact for fact in row.facts if not is_issue_fact(fact, evaluator)]),
        quality=row.quality,
        vector=None if row.vector is None else tuple(msgspec.json.decode(row.vector)),
    )


def _reply(title: str, narrative: str, facts: Sequence[str]) -> str:
    """Returns the compression in the form of a model's reply."""
    return f"Title: {title}\nNarrative: {narrative}\nFacts: {msgspec.json.encode(list(facts)).decode()}"


def paired(compressions: Sequence[Compression]) -> Iterator[PreferencePair]:
    """Pairs observations of one task that were rated differently. Pure.

    If a task has no such pair, each observation is paired with the nearest one that was rated differently.
    """
    by_task: dict[str, list[Compression]] = defaultdict(list)
    for item in compressions:
        by_task[item.task].append(item)
    alone: list[Compression] = []
    for task, group in by_task.items():
        pairs = list(_of_one_task(group)) if task else []
        yield from pairs
        if not pairs:
            alone += group
    yield from _neighbours(alone)


def _of_one_task(group: Sequence[Compression]) -> Iterator[PreferencePair]:
    """Pairs each observation with the worst rated ones, at most PARTNERS, so that no task outweighs the others."""
    worst_first = sorted(group, key=lambda item: (item.quality, item.memory_id))
    for item in reversed(worst_first):
        worse = (other for other in worst_first if other.quality < item.quality and other.reply != item.reply)
        yield from (_pair(item, other) for other in itertools.islice(worse, PARTNERS))


def _neighbours(alone: Sequence[Compression]) -> Iterator[PreferencePair]:
    located = [item for item in alone if item.vector is not None]
    if len(located) < 2:  # noqa: PLR2004 - a pair
        return
    matrix = np.asarray([item.vector for item in located], np.float32)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    likeness = matrix @ matrix.T
    done: set[frozenset[UUID]] = set()
    better: Counter[str] = Counter()
    for place, item in enumerate(located):
        order = np.argsort(-likeness[place], kind="stable")
        near = (located[at] for at in order if at != place and likeness[place, at] >= NEAR)
        partner = next((other for other in near if _differ(item, other)), None)
        if partner is not None and (key := frozenset({item.memory_id, partner.memory_id})) not in done:
            done.add(key)
            pair = _pair(item, partner)
            better[pair.chosen] += 1
            if better[pair.chosen] <= PARTNERS:
                yield pair


def _differ(one: Compression, other: Compression) -> bool:
    return one.quality != other.quality and one.reply != other.reply


def _pair(one: Compression, other: Compression) -> PreferencePair:
    """Returns the pair, with the prompt of the better compression."""
    chosen, rejected = (one, other) if one.quality > other.quality else (other, one)
    return PreferencePair(prompt=chosen.prompt, chosen=chosen.reply, rejected=rejected.reply)
