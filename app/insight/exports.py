"""The verbs that export judgements as training data."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from app.foundation.db.database import Database
from app.foundation.text.words import count_noun
from app.foundation.values import frozen
from app.intake.runs.feedback import store
from app.intake.runs.observations.compress import OUTPUT_CHARACTERS, compression_prompt
from app.intake.runs.observations.observation import Outcome, is_issue_fact
from app.storage.memories.store import as_json
from app.storage.tenants.workspace import Workspace

_MOST_RATED = 20_000
"""Rated compressions that are read, the newest first: with 2 kB each they take 40 MB."""
_PAGE = 1_000
_DPO, _KTO = "dpo", "kto"
Trainer: TypeAlias = Literal["dpo", "kto"]
_NOTHING: Mapping[str, str] = {
    _DPO: "nothing to pair: rate an observation up, and another one of the same task down, first",
    _KTO: "nothing to label: rate an observation first",
}
_RATING = (
    *("feedback_id", "memory_id", "kind", "title", "body", "rating", "comment", "run_id"),
    *("created_at", "quality", "final_score"),
)
"""The fields of an exported rating."""
TrainingRow: TypeAlias = Mapping[str, Any]
"""A row as TRL's trainers read it: texts in its conversational format, and the label of one that has no pair."""


@frozen
class TrainingRows:
    """The rows for a trainer, and what was left out."""

    rows: Sequence[TrainingRow]
    note: str
    """The note for the reader of the rows; "" if none is needed."""


class RatedCompression(NamedTuple):
    """A rated compression with the fields that a row needs."""

    task: str
    prompt: str
    reply: str
    quality: int


@frozen
class Exports:
    """Gives away what people judged, for other programs and for trainers."""

    database: Database
    evaluator: str
    """The name by which runs call who judges them."""

    async def ratings(self, workspace: Workspace) -> AsyncIterator[Mapping[str, Any]]:
        """Yields every rating that was not undone, in the order of the log, which is read page by page."""
        after: int | None = 0
        while after is not None:
            async with self.database.session(workspace) as session:
                rows = await store.standing(session, after=after, limit=_PAGE)
                session.changes.note_export("rating", len(rows))
            for row in rows:
                yield {name: getattr(row, name) for name in _RATING}
            after = rows[-1].position if len(rows) == _PAGE else None

    async def training_rows(self, workspace: Workspace, trainer: Trainer) -> TrainingRows:
        """Returns what people's ratings of compressions teach a trainer: pairs for _DPO, labelled texts for _KTO.

        A pair holds two observations of one task with ratings of opposite sign. The issues that the evaluator added to
        a compression are left out, because no model should learn to write them. A compression whose prompt and output
        are both missing is left out too, because there is no input to learn from.
        """
        async with self.database.session(workspace) as session:
            rows = await store.rated_compressions(session, shown=OUTPUT_CHARACTERS, limit=_MOST_RATED)
            session.changes.note_export("observation", len(rows))
        return await asyncio.to_thread(_training_rows, rows, self.evaluator, trainer)


def _training_rows(rows: Sequence[Any], evaluator: str, trainer: Trainer) -> TrainingRows:
    prompted = [(row, _prompt(row)) for row in rows]
    rated = [_rated_compression(row, prompt, evaluator) for row, prompt in prompted if prompt]
    unknown = [row for row, prompt in prompted if not prompt]
    made = list(pairs_of(rated) if trainer == _DPO else label_by_quality(rated))
    replaced = sum(row.replaced for row in unknown)
    left_out = {"whose output is not stored": len(unknown) - replaced, "whose output was replaced by another": replaced}
    if trainer == _KTO:
        left_out["whose ratings cancel out"] = sum(not item.quality for item in rated)
    notes = [
        f"left out {count_noun(count, 'rated compression')} {reason}" for reason, count in left_out.items() if count
    ]
    if len(rows) == _MOST_RATED:
        notes.append(f"only the newest {_MOST_RATED:,} rated compressions are exported")
    return TrainingRows(rows=made, note="; ".join([*([] if made else [_NOTHING[trainer]]), *notes]))


def _prompt(row: Any) -> str | None:  # noqa: ANN401 - a row
    """Returns the prompt that made the compression, or would have; None if its output is not known."""
    if row.prompt is not None:
        return str(row.prompt)
    if row.request is not None and row.request["output"]:
        return compression_prompt(msgspec.convert(row.request, Outcome))
    if not row.output:
        return None
    size = {"lines": row.lines, "bytes": row.bytes}
    return compression_prompt(Outcome(task=row.task, task_type=row.task_type, output=row.output, **size))


def _rated_compression(row: Any, prompt: str, evaluator: str) -> RatedCompression:  # noqa: ANN401 - a row
    """Returns a compression in the form of a model's reply."""
    facts = [fact for fact in row.facts if not is_issue_fact(fact, evaluator)]
    return RatedCompression(
        task=row.task,
        prompt=prompt,
        reply=f"Title: {row.title}\nNarrative: {row.narrative}\nFacts: {as_json(facts)}",
        quality=store.replay_quality(row.ratings),
    )


def pairs_of(rated: Sequence[RatedCompression]) -> Iterator[TrainingRow]:
    """Pairs the best with the worst observations of each task, where ratings speak for one and against the other.

    Each stands in one pair at most. The prompt is that of the better one. Pure.
    """
    by_task: dict[str, list[RatedCompression]] = {}
    for item in rated:
        if item.task.strip():
            by_task.setdefault(item.task.strip(), []).append(item)
    for items in by_task.values():
        best_first = sorted(items, key=lambda item: -item.quality)
        for better, worse in zip(best_first, reversed(best_first), strict=True):
            if better.quality > 0 > worse.quality:
                yield _messages(prompt=better.prompt, chosen=better.reply, rejected=worse.reply)


def label_by_quality(rated: Sequence[RatedCompression]) -> Iterator[TrainingRow]:
    """Labels each compression by the sign of its quality; one whose ratings cancel out has no label. Pure."""
    for item in rated:
        if item.quality:
            yield {**_messages(prompt=item.prompt, completion=item.reply), "label": item.quality > 0}


def _messages(**texts: str) -> TrainingRow:
    return {
        name: [{"role": "user" if name == "prompt" else "assistant", "content": text}] for name, text in texts.items()
    }
