"""Fits the weights of the ranking to the development sets, with each set and each store left out in turn.

The candidates of every question are found once, through the product's own functions, and ranked again with each weight
changed alone. A fit takes the changes that gain on what it sees and cost no set that it sees more than a little; what
was left out judges them together. With fewer questions it is faster and says less.
"""

import asyncio
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from rich.console import Console
from rich.table import Table

from app.recall.retrieval.candidates import SPARE, candidates, lexical_hits, question_of, survey
from app.recall.retrieval.rank.features import drop_duplicates
from app.recall.retrieval.rank.presets import DEFAULT, Preset
from app.recall.retrieval.rank.rank import Asking, Candidate, HitText, rank_pool, reread
from app.recall.retrieval.recall import Query
from app.storage.index.vectors import as_literal
from app.storage.memories.memory import NewMemory
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.ablation import Question, Work, asked_for, stored
from benchmarks.figures import Figure, write
from benchmarks.locomo import recall_at
from benchmarks.stage import stage, workspace_of

DEPTHS = (5, 10)
FACTORS = (0.0, 0.5, 1.5)
"""Factors of each weight that are tried; 0 shows what the weight brings."""
LEAST = 0.0015
"""Least gain of the mean over the sets for which a change is taken."""
HOLD = 0.004
"""Most that a set may lose by one change."""
_PARTS = ("blend", "text_features")
"""The parts of a preset whose numbers say how relevant a memory is. Quality and age count as they do for all."""


class Known(NamedTuple):
    """A stored memory, as ranking and dedupe read it."""

    name: str
    kind: str
    title: str
    body: str
    source: str | None
    ordinal: int | None


class Asked(NamedTuple):
    """A question with its candidates."""

    group: str
    """The set that it belongs to."""
    store: str
    question: Question
    asking: Asking
    pool: Sequence[Candidate]
    full_match: float
    known: Mapping[UUID, Known]


Change = tuple[str, float]
"""The name of a weight, and its factor."""
Scores = Sequence[tuple[float, ...]]
"""The recall of each question at the depths."""


def recalls(item: Asked, preset: Preset) -> tuple[float, ...]:
    """Returns the recall at the depths; the candidates are ranked, read and deduplicated as in an answer."""
    ranking = rank_pool(item.pool, preset, item.asking, full_match=item.full_match)
    best = list(islice(ranking, max(DEPTHS) + SPARE))
    read = [item.known[hit.candidate.memory_id] for hit in best]
    texts = [HitText(it.title, it.body, it.source, it.ordinal if it.kind == "message" else None) for it in read]
    again = [item.known[hit.candidate.memory_id] for hit in reread(best, texts, preset, item.asking)]
    hits = drop_duplicates(again, title_kinds=preset.title_kinds)
    names = [hit.name for hit in hits if hit.name != item.question.exclude]
    return tuple(recall_at(DEPTHS, item.question.evidence, names).values())


def weights_of(preset: Preset) -> dict[str, float]:
    """Returns every weight of a preset's relevance by its name, like `blend.lexical` and `blend.links.mentions`."""
    return dict(_numbers(preset))


def with_weights(preset: Preset, weights: Mapping[str, float]) -> Preset:
    """Returns the preset with these weights; names that it does not have are of another version, and left out."""
    changed = {name: getattr(preset, name) for name in _PARTS}
    for name in weights_of(preset).keys() & weights.keys():
        part, field, *entry = name.split(".")
        before, value = getattr(changed[part], field), weights[name]
        changed[part] = replace(changed[part], **{field: {**before, entry[0]: value} if entry else value})
    return replace(preset, **changed)


def _numbers(preset: Preset) -> Iterator[tuple[str, float]]:
    for name in _PARTS:
        part: Any = getattr(preset, name)
        for field in fields(part) if part is not None else ():
            value = getattr(part, field.name)
            if isinstance(value, Mapping):
                yield from ((f"{name}.{field.name}.{entry}", number) for entry, number in value.items())
            elif isinstance(value, float):
                yield f"{name}.{field.name}", value


def changes() -> list[Change]:
    """Returns every change of one weight, and first none at all."""
    return [("", 1.0), *((name, factor) for name in sorted(weights_of(DEFAULT)) for factor in FACTORS)]


def changed(taken: Sequence[Change]) -> Preset:
    """Returns the defaults with these changes; the share of words is at most 1."""
    before = weights_of(DEFAULT)
    after = {name: before[name] * factor for name, factor in taken if name}
    return with_weights(DEFAULT, {name: min(1.0, v) if name == "blend.lexical" else v for name, v in after.items()})


def fitted(items: Sequence[Asked], tried: Mapping[Change, Scores], seen: Callable[[Asked], bool]) -> list[Change]:
    """Returns for each weight the change that gains most on the questions that are seen, where one gains."""
    best: dict[str, tuple[float, Change]] = {}
    sets = sorted({item.group for item in items if seen(item)})
    base = _means(items, tried["", 1.0], seen)
    for change, scores in tried.items():
        means = _means(items, scores, seen)
        gains = [means[name] - base[name] for name in sets]
        gain = statistics.mean(gains)
        if gain >= LEAST and min(gains) >= -HOLD and gain > best.get(change[0], (0.0, change))[0]:
            best[change[0]] = gain, change
    return [change for _, change in best.values()]


def _means(items: Sequence[Asked], scores: Scores, seen: Callable[[Asked], bool]) -> dict[str, float]:
    """Returns the mean recall of each set over its seen questions and the depths."""
    found: dict[str, list[float]] = {}
    for item, score in zip(items, scores, strict=True):
        if seen(item):
            found.setdefault(item.group, []).append(statistics.mean(score))
    return {name: statistics.mean(values) for name, values in found.items()}


async def asked(given: Sequence[Work]) -> list[Asked]:
    """Stores the sets, and finds the candidates of every question."""
    async with stage() as services:
        return [item for work in given for item in await _of_work(services, work)]


async def _of_work(services: Services, work: Work) -> list[Asked]:
    workspace = await workspace_of(services, work.workspace)
    memories = dict(work.memories)
    names = await stored(services, workspace, work)
    known = {memory_id: _known(name, memories[name]) for memory_id, name in names.items()}
    # Those about last month are the same questions, asked otherwise.
    wanted = [question for question in work.questions if question.groups[0] != "told"]
    return [await _of_question(services, workspace, question, known) for question in wanted]


def _known(name: str, memory: NewMemory) -> Known:
    source = memory.source.uri if memory.source else None
    return Known(name, memory.kind, memory.title, memory.body, source, memory.ordinal)


async def _of_question(
    services: Services, workspace: Workspace, question: Question, known: Mapping[UUID, Known]
) -> Asked:
    query = Query(text=question.text, k=max(DEPTHS), now=question.now)
    vector = await services.provider.embed_query(query.text)
    async with services.database.session(workspace, transaction=False) as session:
        surveyed = await survey(session, query.text, filters=query.filters, language=None)
        if surveyed is None:
            raise RuntimeError(f"the workspace {workspace.name} is empty")
        found = replace(question_of(surveyed, query, DEFAULT), vector=as_literal(vector))
        pool = await candidates(session, replace(found, lexical_hits=await lexical_hits(session, found)))
    full_match = found.words.full_match if found.words else 0.0
    asking = Asking(query.text, query.moment)
    return Asked(question.groups[0], workspace.name, question, asking, pool, full_match, known)


def measure(items: Sequence[Asked]) -> list[Figure]:
    """Tries every change, fits with each set and each store left out, and prints what was left out."""
    tried = {change: _scores(items, [change]) for change in changes()}
    table = Table("left out", "recall@5, @10", "fitted to the others", "changes taken", title="weights fitted")
    figures = []
    for name, is_out in _parts(items):
        taken = fitted(items, tried, lambda item, is_out=is_out: not is_out(item))  # type: ignore[misc] # bound now
        out = [item for item in items if is_out(item)]
        before, after = (_means_at(_scores(out, changes)) for changes in ((), taken))
        shown = [" / ".join(f"{value:.3f}" for value in part) for part in (before, after)]
        table.add_row(name, *shown, ", ".join(f"{weight} × {factor:g}" for weight, factor in taken) or "none")
        for depth, old, new in zip(DEPTHS, before, after, strict=True):
            figures += [Figure(name=f"{name} @{depth}", value=old), Figure(name=f"{name} @{depth}, fitted", value=new)]
    Console(width=200).print(table)
    return figures


def _parts(items: Sequence[Asked]) -> Iterator[tuple[str, Callable[[Asked], bool]]]:
    """Yields each set, and each store of a set that has several, with what tells its questions."""
    stores = {(item.group.partition(",")[0], item.store) for item in items}
    for group in sorted({group for group, _ in stores}):
        yield group, partial(_is_of, group)
        its = sorted(store for other, store in stores if other == group)
        yield from ((store, partial(_is_in, store)) for store in its if len(its) > 1)


def _is_of(group: str, item: Asked) -> bool:
    return item.group.startswith(group)


def _is_in(store: str, item: Asked) -> bool:
    return item.store == store


def _scores(items: Sequence[Asked], taken: Sequence[Change]) -> Scores:
    preset = changed(taken)
    return [recalls(item, preset) for item in items]


def _means_at(scores: Scores) -> list[float]:
    return [statistics.mean(values) for values in zip(*scores, strict=True)]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Fits and reports; returns nothing where the data is absent."""
    if not (found := asked_for(arguments, __doc__)):
        return []
    figures = measure(asyncio.run(asked(found)))
    write("fit", figures)
    return figures


if __name__ == "__main__":
    main()
