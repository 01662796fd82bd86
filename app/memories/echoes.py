"""What a run was given and says again: not new knowledge, but a use of the memory that it came from."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple
from uuid import UUID

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.errors import EmbeddingUnavailable
from app.index import vectors
from app.memories.gate import ECHO, Given, Objection, Screened, echo_by_meaning, echo_of, may_be_reworded
from app.models.protocols import EmbeddingProvider
from app.text.pieces import Piece, is_short, line_pieces, lines, lines_left, sentence_pieces, sentences_left, unframed
from app.text.words import adds_nothing
from app.workspaces import store as workspaces

MOST_DOUBTFUL = 200
"""Texts of one output that are embedded to tell echoes; what is beyond them is kept."""
MOST_GIVEN = 500
"""Memories of one run that are looked at; a run is given a few dozen."""

logger = structlog.get_logger()

# What a run itself wrote and was given back is no echo: sent again it is known, corrected it is news.
GIVEN = text("""
SELECT given.run_id, m.memory_id, m.title, m.body
FROM (
    SELECT r.run_id, h.memory_id, row_number() OVER (PARTITION BY r.run_id ORDER BY min(h.rank), h.memory_id) AS place
    FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
    WHERE r.workspace_id = :workspace_id AND r.run_id = ANY(CAST(:run_ids AS text[]))
    GROUP BY r.run_id, h.memory_id
) AS given JOIN memories m ON m.workspace_id = :workspace_id AND m.memory_id = given.memory_id
WHERE given.place <= :limit AND m.run_id IS DISTINCT FROM given.run_id
ORDER BY given.run_id, m.memory_id
""")

# Each giving can be used once, however often the run's output or notes are sent. All locks are taken in order of ids.
USED = text("""
WITH given AS MATERIALIZED (
    SELECT h.recall_id, h.rank, h.memory_id FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
    WHERE r.workspace_id = :workspace_id AND r.run_id = :run_id AND h.memory_id = ANY(CAST(:ids AS uuid[]))
        AND NOT h.used
    ORDER BY h.memory_id, h.recall_id, h.rank FOR UPDATE OF h
), noted AS (
    UPDATE recall_hits h SET used = true FROM given
    WHERE h.workspace_id = :workspace_id AND h.recall_id = given.recall_id AND h.rank = given.rank
), used AS MATERIALIZED (
    SELECT memory_id FROM memories
    WHERE workspace_id = :workspace_id AND memory_id IN (SELECT memory_id FROM given) ORDER BY memory_id FOR UPDATE
)
UPDATE memories m SET uses = m.uses + 1 FROM used
WHERE m.workspace_id = :workspace_id AND m.memory_id = used.memory_id
""")


async def given_to(connection: AsyncConnection, workspace_id: int, run_ids: Iterable[str]) -> dict[str, list[Given]]:
    """The memories of others that recalls gave to these runs, by run."""
    values = {"workspace_id": workspace_id, "run_ids": sorted(set(run_ids)), "limit": MOST_GIVEN}
    found: dict[str, list[Given]] = defaultdict(list)
    for row in await connection.execute(GIVEN, values):
        found[row.run_id].append(Given(memory_id=row.memory_id, text=f"{row.title}\n{row.body}"))
    return found


async def count_uses(connection: AsyncConnection, workspace_id: int, run_id: str, ids: Iterable[UUID]) -> None:
    """Note that memories which a run was given came back in what it wrote; said again, it is still one use."""
    if used := sorted(set(ids)):
        await connection.execute(USED, {"workspace_id": workspace_id, "run_id": run_id, "ids": used})


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a text without what it repeats."""

    text: str
    """"" where it repeats something as a whole, or in all its pieces."""
    repeats: frozenset[UUID]
    """The given memories that it repeats, wholly or in part."""


class _Way(NamedTuple):
    """A way to take a text apart, and to put together what is left of it."""

    apart: Callable[[str], list[Piece]]
    together: Callable[[Sequence[Piece], Sequence[str]], str]


WAYS = (_Way(line_pieces, lines_left), _Way(sentence_pieces, sentences_left))


async def rests(
    database: Database,
    provider: EmbeddingProvider | None,
    workspace_id: int,
    texts: Sequence[str],
    given: Sequence[Given],
    ways: Sequence[_Way] = WAYS,
) -> list[Rest]:
    """What each text says besides what it repeats as a whole, line by line, or sentence by sentence."""
    if not given:
        return [Rest(text, frozenset()) for text in texts]
    wholes = await _repeated(database, provider, workspace_id, texts, given)
    found = [
        Rest(text, frozenset()) if memory_id is None else Rest("", frozenset({memory_id}))
        for text, memory_id in zip(texts, wholes, strict=True)
    ]
    if not ways:
        return found
    way, *further = ways
    cut = {place: way.apart(texts[place]) for place, memory_id in enumerate(wholes) if memory_id is None}
    said = [piece.said for several in cut.values() for piece in several if piece.said]
    told = iter(await rests(database, provider, workspace_id, said, given, further) if said else ())
    for place, several in cut.items():
        left = [next(told) if piece.said else Rest("", frozenset()) for piece in several]
        found[place] = _together(way, texts[place], several, left)
    return found


def _together(way: _Way, text: str, several: Sequence[Piece], left: Sequence[Rest]) -> Rest:
    repeats = frozenset[UUID]().union(*(rest.repeats for rest in left))
    if not repeats:
        return Rest(text, repeats)
    if not any(rest.text for rest in left):
        return Rest("", repeats)
    kept = [piece.said if is_short(piece.said) else rest.text for piece, rest in zip(several, left, strict=True)]
    return Rest(way.together(several, kept), repeats)


async def _repeated(
    database: Database,
    provider: EmbeddingProvider | None,
    workspace_id: int,
    texts: Sequence[str],
    given: Sequence[Given],
) -> list[UUID | None]:
    """For each text the given memory it repeats: word for word, nearly so, or (with a provider) put another way."""
    found = await asyncio.to_thread(lambda: [echo_of(text, given) for text in texts])
    doubtful = await asyncio.to_thread(_doubtful, texts, found, given)
    nearest = await _nearest(database, provider, workspace_id, [texts[place] for place in doubtful], given)
    known = {item.memory_id: item for item in given}
    for place, (memory_id, similarity) in zip(doubtful, nearest, strict=False):
        if memory_id is not None and echo_by_meaning(texts[place], known[memory_id], similarity):
            found[place] = memory_id
    return found


def _doubtful(texts: Sequence[str], found: Sequence[UUID | None], given: Sequence[Given]) -> list[int]:
    """Places of texts of which only their meaning can tell whether they repeat something: they say no new word."""
    unknown = (place for place, memory_id in enumerate(found) if memory_id is None and may_be_reworded(texts[place]))
    repeating = (place for place in unknown if any(adds_nothing(texts[place], item.text) for item in given))
    return list(islice(repeating, MOST_DOUBTFUL))


async def _nearest(
    database: Database,
    provider: EmbeddingProvider | None,
    workspace_id: int,
    texts: Sequence[str],
    given: Sequence[Given],
) -> list[tuple[UUID | None, float]]:
    """For each text the given memory that is nearest in meaning; nothing at all where no vector can be had."""
    if provider is None or not provider.enabled or not texts or not given:
        return []
    try:
        literals = vectors.as_literals(await provider.embed_documents(texts))
    except EmbeddingUnavailable as error:
        logger.warning("echoes are told by words alone", reason=str(error))
        return []
    async with database.statements() as connection:
        model = await vectors.active_model(connection)
        if model is None or (model.name, model.dimension) != (provider.model_id, provider.dimension):
            return []
        return await vectors.nearest_of(connection, model, workspace_id, [item.memory_id for item in given], literals)


async def note_echoes(
    database: Database, provider: EmbeddingProvider | None, workspace: str, batch: Sequence[Screened]
) -> list[Screened]:
    """The batch with an objection to each memory that only repeats what its run was given.

    Whatever is repeated counts as used, also by a note that says more: that is kept whole, in its writer's words.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(batch):
        # A turn of a conversation is kept as it was said.
        if item.memory.run_id and item.objection is None and item.memory.kind != "message":
            places[item.memory.run_id].append(place)
    if not places:
        return list(batch)
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
        given = {} if target is None else await given_to(connection, target.workspace_id, places)
    noted = list(batch)
    for run_id in given:
        assert target is not None, "without a workspace nothing was given"  # noqa: S101
        texts = [batch[place].memory.body for place in places[run_id]]
        echoes = await rests(database, provider, target.workspace_id, texts, given[run_id])
        for place, rest in zip(places[run_id], echoes, strict=True):
            if not rest.text:
                noted[place] = replace(batch[place], objection=_objection(sorted(rest.repeats)))
        async with database.transaction() as connection:
            used = frozenset[UUID]().union(*(rest.repeats for rest in echoes))
            await count_uses(connection, target.workspace_id, run_id, used)
    return noted


def _objection(repeats: Sequence[UUID]) -> Objection:
    names = ", ".join(map(str, repeats))
    message = f"body: repeats memory {names}, which this run was given; it counts as a use of it"
    return Objection(message=message, code=ECHO, details=tuple({"memory_id": str(item)} for item in repeats))


def without(parts: Sequence[str], rests: Sequence[Rest]) -> str:
    """What an output says besides what its parts repeat, and the frame that they were given in."""
    left = [part if not rest.repeats else rest.text for part, rest in zip(parts, rests, strict=True)]
    kept = unframed([part for part, rest in zip(left, rests, strict=True) if part or not rest.repeats])
    if any(rest.repeats for rest in rests) and not any(lines(part) for part in kept):
        return ""
    return "\n\n".join(kept)
