"""The SQL of links: the waiting list, the dictionary of titles, finding what names what, and writing it down."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.index.pending import VECTORS, WORDS, wait_for_links
from app.index.vectors import StoredModel
from app.links import titles
from app.links.link import MENTIONS, NEXT, RELATIONS, SAME_ENTITY, SIMILAR, Link, Linked

OTHERS_AT_MOST = 64
"""Memories that are read to see whether they have a phrase: more have it than any phrase that links."""
READ_CHARACTERS = 10_000
"""Of each text: who names something only after as many speaks of something else. A chunk has 1,500 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What a memory is linked by."""

    memory_id: UUID
    kind: str
    title: str
    body: str
    """Its first READ_CHARACTERS."""
    language: str
    asked: int = 0
    """How often it was asked to be linked when it was read."""


class Phrase(NamedTuple):
    """Words that are looked for in every text."""

    text: str
    rare: int
    """It is looked for where its rarest word stands in no more memories than this."""


WAITING_WORKSPACE = text("""
SELECT workspace_id FROM pending_links WHERE step = :step AND workspace_id <> ALL(CAST(:without AS bigint[])) LIMIT 1
""")

MORE_WAIT = text("""
SELECT count(*) > :count FROM (
    SELECT 1 FROM pending_links WHERE NOT (step = :vectors AND workspace_id = ANY(CAST(:without AS bigint[])))
    LIMIT CAST(:count AS integer) + 1
) AS few
""")

WAITING_TEXTS = text("""
SELECT p.memory_id, m.kind, m.title, left(m.body, :characters) AS body, m.language, p.asked
FROM pending_links p JOIN memories m USING (workspace_id, memory_id)
WHERE p.workspace_id = :workspace_id AND p.step = :step ORDER BY p.memory_id LIMIT :limit
""")

# A memory whose vector was dropped again comes back on the list with its next one.
WAITING_VECTORS = text("""
SELECT memory_id, asked FROM pending_links
WHERE workspace_id = :workspace_id AND step = :step ORDER BY memory_id LIMIT :limit
""")

DONE = text("""
DELETE FROM pending_links p USING unnest(CAST(:ids AS uuid[]), CAST(:asked AS integer[])) AS read(memory_id, asked)
WHERE p.workspace_id = :workspace_id AND p.step = :step AND p.memory_id = read.memory_id AND p.asked = read.asked
RETURNING p.memory_id
""")


async def waiting_workspace(connection: AsyncConnection, step: str, *, without: Collection[int] = ()) -> int | None:
    """A workspace, `without` these, in which memories wait for this step; None where nothing waits."""
    given = {"step": step, "without": list(without)}
    found = (await connection.execute(WAITING_WORKSPACE, given)).scalar_one_or_none()
    return None if found is None else int(found)


async def more_wait(connection: AsyncConnection, count: int, *, without: Collection[int] = ()) -> bool:
    """Whether more than so many steps wait, those by vectors `without` these workspaces."""
    given = {"count": count, "vectors": VECTORS, "without": list(without)}
    return bool((await connection.execute(MORE_WAIT, given)).scalar_one())


async def waiting_texts(connection: AsyncConnection, workspace_id: int, limit: int) -> list[Text]:
    """Memories that wait to be linked by their words, oldest first."""
    given = {"workspace_id": workspace_id, "step": WORDS, "limit": limit, "characters": READ_CHARACTERS}
    return [_text_of(row) for row in await connection.execute(WAITING_TEXTS, given)]


async def waiting_vectors(connection: AsyncConnection, workspace_id: int, limit: int) -> dict[UUID, int]:
    """Memories that wait to be linked by their vectors, oldest first, with how often that was asked."""
    given = {"workspace_id": workspace_id, "step": VECTORS, "limit": limit}
    return {row.memory_id: row.asked for row in await connection.execute(WAITING_VECTORS, given)}


async def done(connection: AsyncConnection, workspace_id: int, asked: Mapping[UUID, int], *, step: str) -> set[UUID]:
    """Take memories off the waiting list: those that were not asked for again since they were read."""
    given = {"workspace_id": workspace_id, "ids": list(asked), "asked": list(asked.values()), "step": step}
    return set((await connection.execute(DONE, given)).scalars())


TEXTS = text("""
SELECT memory_id, kind, title, left(body, :characters) AS body, language FROM memories
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND valid_until IS NULL
""")


async def texts(connection: AsyncConnection, workspace_id: int, ids: Collection[UUID]) -> dict[UUID, Text]:
    """The live ones of these memories, by id."""
    given = {"workspace_id": workspace_id, "ids": list(ids), "characters": READ_CHARACTERS}
    rows = await connection.execute(TEXTS, given)
    return {row.memory_id: _text_of(row) for row in rows}


def _text_of(row: Any) -> Text:  # noqa: ANN401 - a row of the statements above
    return Text(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name for it


# What is called something else now, or nothing, is no longer meant by those who named it.
RENAMED = text("""
WITH renamed AS (
    DELETE FROM titles t USING unnest(CAST(:ids AS uuid[]), CAST(:keys AS text[])) AS given(memory_id, key)
    WHERE t.workspace_id = :workspace_id AND t.memory_id = given.memory_id AND t.key IS DISTINCT FROM given.key
    RETURNING t.memory_id
)
DELETE FROM links
WHERE workspace_id = :workspace_id AND relation = :mentions AND to_id IN (SELECT memory_id FROM renamed)
""")


ADD_TITLES = text("""
INSERT INTO titles (workspace_id, memory_id, key, common)
SELECT l.workspace_id, l.memory_id, given.key, EXISTS (
    SELECT 1 FROM titles k WHERE k.workspace_id = l.workspace_id AND k.key = given.key AND k.common
)
FROM unnest(CAST(:ids AS uuid[]), CAST(:keys AS text[])) AS given(memory_id, key)
JOIN lexical l ON l.workspace_id = :workspace_id AND l.memory_id = given.memory_id
WHERE given.key IS NOT NULL ORDER BY l.memory_id
ON CONFLICT (workspace_id, memory_id) DO NOTHING
""")

# Borne by too many: none of them is named any more.
CROWDED = text("""
WITH crowded AS (
    UPDATE titles t SET common = true
    WHERE t.workspace_id = :workspace_id AND NOT t.common AND t.key = ANY(CAST(:keys AS text[])) AND (
        SELECT count(*) FROM (
            SELECT 1 FROM titles o WHERE o.workspace_id = t.workspace_id AND o.key = t.key LIMIT :bearers + 1
        ) AS few
    ) > :bearers
    RETURNING t.workspace_id, t.memory_id
)
DELETE FROM links l USING crowded c
WHERE l.workspace_id = c.workspace_id AND l.to_id = c.memory_id AND l.relation = :mentions
""")

BEARERS_OF = text("""
SELECT key, array_agg(memory_id ORDER BY memory_id) AS bearers FROM titles
WHERE workspace_id = :workspace_id AND NOT common AND key = ANY(CAST(:keys AS text[])) GROUP BY key
""")

HAS_TITLES = text("SELECT EXISTS (SELECT 1 FROM titles WHERE workspace_id = :workspace_id AND NOT common)")


async def write_titles(connection: AsyncConnection, workspace_id: int, keys: Mapping[UUID, str | None]) -> None:
    """Make the dictionary say what these live memories are called; a title that too many bear is common from now on."""
    given = {"workspace_id": workspace_id, "ids": list(keys), "keys": list(keys.values())}
    await connection.execute(RENAMED, {**given, "mentions": MENTIONS})
    await connection.execute(ADD_TITLES, given)
    counted = {"workspace_id": workspace_id, "keys": sorted({key for key in keys.values() if key is not None})}
    await connection.execute(CROWDED, {**counted, "mentions": MENTIONS, "bearers": titles.BEARERS})


async def has_titles(connection: AsyncConnection, workspace_id: int) -> bool:
    """Whether any memory of the workspace can be named."""
    return bool((await connection.execute(HAS_TITLES, {"workspace_id": workspace_id})).scalar_one())


async def bearers_of(connection: AsyncConnection, workspace_id: int, keys: Collection[str]) -> dict[str, list[UUID]]:
    """The memories that bear these titles, where they are not common."""
    rows = await connection.execute(BEARERS_OF, {"workspace_id": workspace_id, "keys": list(keys)})
    return {row.key: row.bearers for row in rows}


# A phrase of frequent words alone is not looked for: the index would have to read all that have any of them.
HAVING = text("""
WITH asked AS MATERIALIZED (
    SELECT given.place, phraseto_tsquery(CAST(language AS regconfig), translate(given.phrase, '/\\', '  ')) AS phrase
    FROM unnest(CAST(:places AS integer[]), CAST(:phrases AS text[]), CAST(:rare AS integer[]))
        AS given(place, phrase, rare)
    CROSS JOIN (SELECT unnest(languages) AS language FROM workspaces WHERE workspace_id = :workspace_id) AS spoken
    WHERE (
        SELECT min(coalesce(s.document_count, 0))
        FROM unnest(tsvector_to_array(priors_terms(CAST(language AS regconfig), given.phrase))) AS word(lexeme)
        LEFT JOIN lexeme_statistics s ON s.workspace_id = :workspace_id AND s.lexeme = word.lexeme
    ) <= given.rare
)
SELECT DISTINCT asked.place, found.memory_id
FROM asked CROSS JOIN LATERAL (
    SELECT l.memory_id FROM lexical l
    WHERE l.workspace_id = :workspace_id
        AND l.terms @@ (CAST(quote_literal('workspace:' || :workspace_id) AS tsquery) && asked.phrase)
    LIMIT :limit
) AS found
""")


async def having(connection: AsyncConnection, workspace_id: int, phrases: Sequence[Phrase]) -> list[list[UUID]]:
    """For each phrase the memories whose words have it, at most OTHERS_AT_MOST, in any form of its words."""
    found: list[list[UUID]] = [[] for _ in phrases]
    if phrases:
        given = {
            "workspace_id": workspace_id,
            "places": list(range(len(phrases))),
            "phrases": [phrase.text for phrase in phrases],
            "rare": [phrase.rare for phrase in phrases],
            "limit": OTHERS_AT_MOST,
        }
        for row in await connection.execute(HAVING, given):
            found[row.place].append(row.memory_id)
    return found


ADD = text("""
INSERT INTO links (workspace_id, from_id, to_id, relation, weight)
SELECT :workspace_id, given.from_id, given.to_id, given.relation, given.weight
FROM unnest(CAST(:froms AS uuid[]), CAST(:tos AS uuid[]), CAST(:relations AS text[]), CAST(:weights AS real[]))
    AS given(from_id, to_id, relation, weight)
JOIN memories a ON a.workspace_id = :workspace_id AND a.memory_id = given.from_id
JOIN memories b ON b.workspace_id = :workspace_id AND b.memory_id = given.to_id
ORDER BY given.from_id, given.relation, given.to_id
ON CONFLICT (workspace_id, from_id, relation, to_id) DO UPDATE SET weight = EXCLUDED.weight
WHERE links.weight <> EXCLUDED.weight
RETURNING xmax = 0 AS new
""")

# Named by too many: a word of everybody's, which says nothing of who uses it.
FAMOUS = text("""
WITH famous AS (
    SELECT to_id FROM links
    WHERE workspace_id = :workspace_id AND relation = :mentions AND to_id = ANY(CAST(:tos AS uuid[]))
    GROUP BY to_id HAVING count(*) > :mentioned
), marked AS (
    UPDATE titles t SET common = true FROM titles o, famous f
    WHERE o.workspace_id = :workspace_id AND o.memory_id = f.to_id AND t.workspace_id = o.workspace_id AND t.key = o.key
    RETURNING t.memory_id
)
DELETE FROM links
WHERE workspace_id = :workspace_id AND relation = :mentions AND to_id IN (SELECT memory_id FROM marked)
""")


async def add(connection: AsyncConnection, workspace_id: int, links: Collection[Link]) -> tuple[int, int]:
    """Write links between memories that are there; a known one takes the new weight.

    How many are new, and how many got another weight.
    """
    if not links:
        return 0, 0
    written = (await connection.execute(ADD, _columns(workspace_id, links))).scalars().all()
    return sum(written), len(written) - sum(written)


REMOVE = text("""
DELETE FROM links l
USING unnest(CAST(:froms AS uuid[]), CAST(:tos AS uuid[]), CAST(:relations AS text[]))
    AS given(from_id, to_id, relation)
WHERE l.workspace_id = :workspace_id AND l.from_id = given.from_id AND l.to_id = given.to_id
    AND l.relation = given.relation
""")


async def remove(connection: AsyncConnection, workspace_id: int, links: Collection[Link]) -> int:
    """Take links away, whatever weight they have. How many there were."""
    if not links:
        return 0
    return (await connection.execute(REMOVE, _columns(workspace_id, links))).rowcount


NO_LONGER_NAMED = text("""
DELETE FROM links l
WHERE l.workspace_id = :workspace_id AND l.relation = :mentions AND l.from_id = ANY(CAST(:readers AS uuid[]))
    AND NOT EXISTS (
        SELECT 1 FROM unnest(CAST(:froms AS uuid[]), CAST(:tos AS uuid[])) AS given(from_id, to_id)
        WHERE given.from_id = l.from_id AND given.to_id = l.to_id
    )
""")

FORGET_FOUND = text("""
DELETE FROM links WHERE workspace_id = :workspace_id AND (
    (relation = ANY(:both) AND to_id = ANY(CAST(:ids AS uuid[])))
    OR (relation = ANY(:outward) AND from_id = ANY(CAST(:ids AS uuid[])))
)
""")


async def write_mentions(
    connection: AsyncConnection, workspace_id: int, texts: Collection[UUID], links: Collection[Link]
) -> None:
    """Make `links` all that these texts mention."""
    named = [link for link in links if link.relation == MENTIONS]
    given = {"workspace_id": workspace_id, "readers": list(texts), "mentions": MENTIONS}
    ends = {"froms": [link.from_id for link in named], "tos": [link.to_id for link in named]}
    await connection.execute(NO_LONGER_NAMED, {**given, **ends})
    await add(connection, workspace_id, named)
    await forget_famous(connection, workspace_id, {link.to_id for link in named})


async def forget_found(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Have memories whose text has changed, and whose words are indexed anew, linked anew.

    Who mentions one is kept: its title may be the same.
    """
    await wait_for_links(connection, workspace_id, ids, step=VECTORS)
    given = {"workspace_id": workspace_id, "ids": list(ids), "both": [SAME_ENTITY, SIMILAR]}
    await connection.execute(FORGET_FOUND, {**given, "outward": [MENTIONS, SAME_ENTITY, SIMILAR]})


def _columns(workspace_id: int, links: Collection[Link]) -> dict[str, Any]:
    return {
        "workspace_id": workspace_id,
        "froms": [link.from_id for link in links],
        "tos": [link.to_id for link in links],
        "relations": [link.relation for link in links],
        "weights": [link.weight for link in links],
    }


async def forget_famous(connection: AsyncConnection, workspace_id: int, ids: Collection[UUID]) -> None:
    """Of these memories, those that too many texts name are named by none from now on."""
    given = {"workspace_id": workspace_id, "tos": list(ids), "mentions": MENTIONS, "mentioned": titles.MENTIONED}
    await connection.execute(FAMOUS, given)


async def nearest(
    connection: AsyncConnection,
    model: StoredModel,
    workspace_id: int,
    ids: Sequence[UUID],
    *,
    count: int,
    least: float,
    indexed: bool,
) -> list[tuple[UUID, UUID, float]]:
    """For each memory the `count` nearest others of at least this cosine similarity, as (memory, other, similarity)."""
    distance = f"o.embedding::halfvec({model.dimension:d}) <=> e.embedding::halfvec({model.dimension:d})"
    # The index is the workspace's own, so its number stands in the text; adding 0 keeps the planner from using it.
    order = distance if indexed else f"({distance}) + 0"
    statement = text(f"""
        SELECT e.memory_id, found.memory_id AS other, 1 - found.distance AS similarity
        FROM {model.partition} e CROSS JOIN LATERAL (
            SELECT o.memory_id, {distance} AS distance FROM {model.partition} o
            WHERE o.workspace_id = {workspace_id:d} ORDER BY {order} LIMIT :count + 1
        ) AS found
        WHERE e.workspace_id = {workspace_id:d} AND e.memory_id = ANY(CAST(:ids AS uuid[]))
            AND found.memory_id <> e.memory_id AND found.distance <= :furthest
    """)  # noqa: S608 - the partition's name and the workspace are numbers
    rows = await connection.execute(statement, {"ids": list(ids), "count": count, "furthest": 1 - least})
    return [(row.memory_id, row.other, float(row.similarity)) for row in rows]


# Live memories alone, as a recall gives them: what was replaced tells by its own links what replaced it.
OF = text("""
WITH own AS (
    SELECT workspace_id, memory_id, source_id, ordinal FROM memories
    WHERE workspace_id = :workspace_id AND memory_id = :memory_id
), tied AS (
    SELECT l.relation, 'out' AS direction, l.to_id AS other, l.weight, l.created_at
    FROM links l JOIN own o ON l.workspace_id = o.workspace_id AND l.from_id = o.memory_id
    UNION ALL
    SELECT l.relation, 'in', l.from_id, l.weight, l.created_at
    FROM links l JOIN own o ON l.workspace_id = o.workspace_id AND l.to_id = o.memory_id
    UNION ALL
    (SELECT :next, 'out', m.memory_id, 1, m.created_at FROM memories m JOIN own o USING (workspace_id, source_id)
    WHERE m.ordinal > o.ordinal AND m.valid_until IS NULL ORDER BY m.ordinal, m.memory_id LIMIT 1)
    UNION ALL
    (SELECT :next, 'in', m.memory_id, 1, m.created_at FROM memories m JOIN own o USING (workspace_id, source_id)
    WHERE m.ordinal < o.ordinal AND m.valid_until IS NULL ORDER BY m.ordinal DESC, m.memory_id LIMIT 1)
)
SELECT t.relation, t.direction, m.memory_id, m.title, m.kind, t.weight
FROM tied t JOIN memories m ON m.workspace_id = :workspace_id AND m.memory_id = t.other
WHERE m.valid_until IS NULL
ORDER BY array_position(CAST(:order AS text[]), t.relation), t.direction DESC, t.weight DESC, t.created_at, m.memory_id
LIMIT :limit
""")

KNOWN = text("""
SELECT memory_id FROM memories WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
    AND coalesce(retired_as, '') NOT IN ('deleted', 'quarantined')
ORDER BY memory_id FOR KEY SHARE
""")


async def links_of(connection: AsyncConnection, workspace_id: int, memory_id: UUID, limit: int) -> list[Linked]:
    """The memories that a memory is linked with, those next to it in its source first; at most `limit`."""
    given = {"workspace_id": workspace_id, "memory_id": memory_id, "limit": limit, "order": list(RELATIONS)}
    rows = await connection.execute(OF, {**given, "next": NEXT})
    return [Linked(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's documented name for it


async def known(connection: AsyncConnection, workspace_id: int, ids: Collection[UUID]) -> set[UUID]:
    """Those of these memories that can be linked; they are not destroyed before the transaction ends."""
    return set((await connection.execute(KNOWN, {"workspace_id": workspace_id, "ids": list(ids)})).scalars())
