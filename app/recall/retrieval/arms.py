"""Plans the lexical arm, and writes the SQL of both arms and of their pool of candidates. Pure.

Under row-level security an operator that is not leakproof cannot use an index, which applies to text search's `@@` and
to a sum of columns. So `priors_lexical` looks up the words as the owner, and a materialised row holds the sums.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.foundation.text.words import PAIR
from app.recall.retrieval.rank.features import SPREADING
from app.storage.index.embedding import MOST_PASSAGES
from app.storage.index.models import StoredModel
from app.storage.links.relations import SIMILAR, SUPERSEDES
from app.storage.memories.store import HAPPENED, JOINED

_WITH_NEIGHBOURS = 10
"""Best candidates of each arm whose neighbours join the pool. Recall@10 is 0.771 with 10, 0.766 with all, 0.753 with
none."""
_NEIGHBOURHOOD = 2
"""Distance of the farthest neighbours in a source, in ordinals."""
_SEEDS = 5
"""Best candidates of each arm whose links count."""
_LINKS_OF_A_SEED = 16
"""Strongest links of a seed that count, for each relation and direction: a hub with thousands of links costs no
more."""
_LOOKED_THROUGH = 1_000
"""Strongest links of a memory that are searched for live memories that pass the filters."""
_READ_PASSAGES = 4
"""Passages that are read first for each memory wanted, where memories have several."""
_BROUGHT_BY_LINKS = 16
"""Most memories that join the pool only by links, the ones with the strongest links."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The options that change the text of the statement; all other values are parameters."""

    model: StoredModel | None
    vector_workspace: int | None
    """The workspace whose HNSW index answers; None for an exact scan."""
    lexical: bool
    kept: bool
    """True if the memories that pass the filters are given by their ids."""
    clauses: tuple[str, ...]
    scanned: tuple[str, ...]
    has_passages: bool
    """True if a memory may have several vectors."""
    limit: int
    """Candidates from each arm. The number is in the text, because the planner takes a parameter for a tenth of the
    table."""
    linked: bool


_LEXICAL_HITS = "SELECT * FROM unnest(%(ids)s::uuid[], %(scores)s::float8[]) AS arm(memory_id, bm25)"


@lru_cache(maxsize=256)
def pool_statement(shape: Shape) -> str:
    """Returns the statement for a question of this shape."""
    arms = {"vector_arm": vector_arm(shape)} if shape.model is not None else {}
    if shape.lexical:
        arms["lexical_arm"] = _LEXICAL_HITS
    found = ", ".join(f"{name} AS MATERIALIZED ({arm})" for name, arm in arms.items())
    joins = "".join(f" LEFT JOIN {name} USING (memory_id)" for name in arms)
    return f"""
    WITH {found}, best AS ({_first(arms, _WITH_NEIGHBOURS)}), place AS MATERIALIZED (
        SELECT c.source_id, c.ordinal::bigint - {_NEIGHBOURHOOD} AS first, c.ordinal::bigint + {_NEIGHBOURHOOD} AS last
        FROM best JOIN memories c ON c.workspace_id = %(workspace_id)s AND c.memory_id = best.memory_id
    ), neighbour AS MATERIALIZED (
        SELECT m.memory_id FROM place
        JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.source_id = place.source_id
            AND m.ordinal BETWEEN place.first AND place.last AND m.valid_until IS NULL
        {_SOURCES if shape.clauses else ""}
        WHERE {_all(shape.clauses)}
    ), near AS MATERIALIZED ({_first(arms)} UNION SELECT memory_id FROM neighbour)
    {_links_part(shape, _first(arms, _SEEDS)) if shape.linked else _UNLINKED}
    SELECT m.memory_id, m.title, m.source_id, m.ordinal, m.final_score, m.quality,
        {HAPPENED} AS happened_at, {_similarity(shape)} AS similarity,
        {_bm25(shape)} AS bm25, seeds.seed, linked.edges, coalesce(m.metadata ->> 'facet', m.kind) AS facet,
        {_passage(shape)} AS passage
    FROM pool {joins} {_best_passage(shape)} LEFT JOIN seeds USING (memory_id) LEFT JOIN linked USING (memory_id)
    JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = pool.memory_id
    """  # noqa: S608 - built of constants and numbers; every value is a parameter


def _first(arms: Iterable[str], count: int | str = "ALL") -> str:
    """Returns the part that reads the first candidates of each arm."""
    return " UNION ".join(f"(SELECT memory_id FROM {name} LIMIT {count})" for name in arms)  # noqa: S608 - constants


_SOURCES = "LEFT JOIN sources s ON s.workspace_id = m.workspace_id AND s.source_id = m.source_id"
_UNLINKED = """, pool AS (SELECT memory_id FROM near),
    seeds AS (SELECT NULL::uuid AS memory_id, NULL::integer AS seed WHERE false),
    linked AS (SELECT NULL::uuid AS memory_id, NULL::json AS edges WHERE false)"""


def _links_part(shape: Shape, seeds: str) -> str:
    """Returns the part that adds memories linked with the best ones to the pool, and reads the links of the pool."""
    shares = " ".join(f"WHEN '{relation}' THEN {share}" for relation, share in SPREADING.items())
    outward = [relation for relation in SPREADING if relation != SUPERSEDES]
    return f""", seeds AS MATERIALIZED (
        SELECT memory_id, row_number() OVER (ORDER BY memory_id)::integer AS seed FROM ({seeds}) AS best
    ), read AS MATERIALIZED (
        {_read(shape, outward, "in", seed="from_id", other="to_id")}
        UNION ALL {_read(shape, list(SPREADING), "out", seed="to_id", other="from_id")}
    ), edge AS MATERIALIZED (
        SELECT read.*, d.degree, read.weight * CASE relation {shares} END / sqrt(d.degree) AS passed
        FROM read JOIN (
            SELECT seed, relation, greatest(1, sum(weight)) AS degree FROM read GROUP BY 1, 2
        ) AS d USING (seed, relation)
    ), brought AS MATERIALIZED (
        SELECT other AS memory_id FROM edge WHERE other NOT IN (SELECT memory_id FROM near)
        GROUP BY other ORDER BY max(passed) DESC, other LIMIT {_BROUGHT_BY_LINKS}
    ), pool AS MATERIALIZED (SELECT memory_id FROM near UNION ALL SELECT memory_id FROM brought),
    linked AS MATERIALIZED (
        SELECT other AS memory_id,
            json_agg(json_build_array(seed, relation, direction, weight, degree) ORDER BY seed) AS edges
        FROM edge JOIN pool ON pool.memory_id = edge.other GROUP BY other
    )"""  # noqa: S608 - constants and the filters' conditions


def _read(shape: Shape, relations: Sequence[str], direction: str, *, seed: str, other: str) -> str:
    """Returns the part that reads the strongest links of each seed and relation to memories that can be hits.

    `direction` is the one that these memories see. An index that has all needed columns gives the order of the links;
    OFFSET prevents another join order.
    """
    return f"""SELECT g.seed, strongest.other, r.relation, '{direction}' AS direction, strongest.weight
        FROM seeds g CROSS JOIN unnest(ARRAY[{", ".join(f"'{relation}'" for relation in relations)}]) AS r(relation)
        CROSS JOIN LATERAL (
            SELECT l.other, l.weight FROM (
                SELECT l.{other} AS other, l.weight FROM links l
                WHERE l.workspace_id = %(workspace_id)s AND l.{seed} = g.memory_id AND l.relation = r.relation
                    AND l.relation <> '{SIMILAR}'
                ORDER BY l.weight DESC, l.{other} LIMIT {_LOOKED_THROUGH}
            ) AS l CROSS JOIN LATERAL (
                SELECT 1 FROM memories m {_SOURCES if shape.clauses else ""}
                WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = l.other AND m.valid_until IS NULL
                    AND {_all(shape.clauses)} OFFSET 0
            ) AS found
            ORDER BY l.weight DESC, l.other LIMIT {_LINKS_OF_A_SEED}
        ) AS strongest"""  # noqa: S608 - constants and the filters' conditions


def vector_arm(shape: Shape) -> str:
    """Returns the part that finds the nearest memories, nearest first, by the index or by an exact scan."""
    assert shape.model is not None, "the caller asks for it only with a model"  # noqa: S101
    distance = _distance(shape.model)
    workspace = "%(workspace_id)s" if shape.vector_workspace is None else f"{shape.vector_workspace:d}"
    source, kept = f"{shape.model.partition} e", "true"
    if shape.kept:
        kept = "e.memory_id = ANY(%(kept)s::uuid[])"
    elif shape.clauses:
        source, kept = f"{JOINED} JOIN {source} USING (workspace_id, memory_id)", _all(shape.scanned)
    measured = f"""SELECT e.memory_id, e.passage, {distance} AS distance
        FROM {source} WHERE e.workspace_id = {workspace} AND {kept}"""  # noqa: S608 - constants and numbers
    # OFFSET keeps the planner from an index that would drop memories that pass the filter; each is measured once.
    fence, then = ("", "") if shape.vector_workspace is not None else ("OFFSET 0", ", memory_id")
    nearest = f"""SELECT memory_id, 1 - distance AS similarity, passage FROM ({measured} {fence}) AS arm
        ORDER BY distance{then} LIMIT {{most:d}}"""  # noqa: S608 - as above
    return _best(nearest, shape.limit) if shape.has_passages else nearest.format(most=shape.limit)


def _best(nearest: str, limit: int) -> str:
    """Returns the part that finds the memories of the nearest passages, each once, with its best passage.

    A few times as many passages usually have enough memories. Where they have not, as many are read as `limit` memories
    can have.
    """
    few, most = (nearest.format(most=limit * times) for times in (_READ_PASSAGES, MOST_PASSAGES))
    return f"""WITH few AS MATERIALIZED ({few}), crowded AS MATERIALIZED (
            SELECT count(*) = {limit * _READ_PASSAGES} AND count(DISTINCT memory_id) < {limit} AS yes FROM few
        ), best AS (
            SELECT DISTINCT ON (memory_id) * FROM (
                SELECT * FROM few WHERE NOT (SELECT yes FROM crowded)
                UNION ALL SELECT * FROM ({most}) AS most WHERE (SELECT yes FROM crowded)
            ) AS passages ORDER BY memory_id, similarity DESC, passage
        )
        SELECT * FROM best ORDER BY similarity DESC, memory_id LIMIT {limit}"""  # noqa: S608 - constants and numbers


def lexical_arm(shape: Shape) -> str:
    """Returns the statement that finds the best memories by BM25, best first.

    Without a filter it searches the memories that have one of the rarest terms; with a filter that few pass, all of
    these.
    """
    if shape.kept:
        return f"""SELECT memory_id, -score AS bm25 FROM (
            SELECT l.memory_id, l.weights <#> %(weights)s::sparsevec AS score FROM lexical l
            WHERE l.workspace_id = %(workspace_id)s AND l.memory_id = ANY(%(kept)s::uuid[]) OFFSET 0
        ) AS scored WHERE score < 0 ORDER BY score, memory_id LIMIT {shape.limit:d}"""  # noqa: S608 - constants and numbers
    matching = "SELECT memory_id, bm25 FROM priors_lexical(%(match)s::tsquery, %(weights)s::sparsevec, {most})"
    if not shape.clauses:
        return matching.format(most=shape.limit)
    return f"""SELECT found.memory_id, found.bm25 FROM ({matching.format(most="NULL")}) AS found
        JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = found.memory_id {_SOURCES}
        WHERE {_all(shape.clauses)} ORDER BY found.bm25 DESC, found.memory_id LIMIT {shape.limit:d}"""  # noqa: S608 - as above


def _passage(shape: Shape) -> str:
    if shape.model is None or not shape.has_passages:
        return "NULL::smallint"
    return "coalesce(vector_arm.passage, best_passage.passage)"


def _best_passage(shape: Shape) -> str:
    """Returns the part that finds the best passage of each memory of the pool that the vector arm did not find."""
    if shape.model is None or not shape.has_passages:
        return ""
    return f"""LEFT JOIN LATERAL (
            SELECT e.passage, 1 - ({_distance(shape.model)}) AS similarity FROM {shape.model.partition} e
            WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = pool.memory_id AND vector_arm.memory_id IS NULL
            ORDER BY 2 DESC, 1 LIMIT 1
        ) AS best_passage ON true"""  # noqa: S608 - constants and numbers


def _similarity(shape: Shape) -> str:
    if shape.model is None:
        return "NULL::float8"
    if shape.has_passages:
        return "coalesce(vector_arm.similarity, best_passage.similarity)"
    return f"""coalesce(vector_arm.similarity, (
            SELECT 1 - ({_distance(shape.model)}) FROM {shape.model.partition} e
            WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = pool.memory_id
        ))"""  # noqa: S608 - constants and numbers


def _bm25(shape: Shape) -> str:
    if not shape.lexical:
        return "0::float8"
    return """coalesce(lexical_arm.bm25, (
            SELECT -(l.weights <#> %(weights)s::sparsevec) FROM lexical l
            WHERE l.workspace_id = %(workspace_id)s AND l.memory_id = pool.memory_id
        ), 0)"""


def _distance(model: StoredModel) -> str:
    return f"e.embedding::halfvec({model.dimension:d}) <=> %(vector)s::halfvec({model.dimension:d})"


def _all(clauses: Sequence[str]) -> str:
    return " AND ".join(clauses) or "true"


DOCUMENT_BUDGET, DOCUMENT_SHARE = 5_000, 150
"""Most documents that the rarest terms may match: DOCUMENT_BUDGET, or one in DOCUMENT_SHARE of the workspace's. At
100,000 memories 5,000 take 6 ms and find 99.8 % of true BM25's first 12; 2,000 and 10,000 take 2.5 and 28 ms and
find 96 % and 100 %. At a million 5,000 find 88 %, and 6,667 find 94 % in 11 ms (benchmarks/retrieval.md)."""
_TERM_DIMENSIONS = 536_870_912
"""2**29: a lexeme's dimension in `lexical.weights`; two of 1,000 terms share one with a probability of 0.1 %."""
TERM_LIMIT = 64
"""Most terms that are looked up: the rarest ones identify a task text of thousands of words."""


class Term(NamedTuple):
    """A lexeme of the query."""

    lexeme: str
    dimension: int
    """The dimension of the term in `lexical.weights`, from 1."""
    document_count: int
    """Live memories of the workspace that have it, by the last statistics; 0 for a new term."""
    languages: frozenset[str]
    """The languages in which the query has this lexeme: languages may make different lexemes of one word."""


_UNKNOWN_LIMIT = 16
"""Most terms unknown to the statistics that are looked up: they cost little, and usually match nothing."""


class LexicalQuery(NamedTuple):
    """A query in the form that the lexical arm takes."""

    match: str
    """A tsquery that finds memories with any of the rarest terms."""
    wider: str | None
    """A tsquery that finds memories with any of the terms, if there are more: a filter may exclude all rare ones."""
    weights: str
    """The idf of every term, as a sparsevec: its inner product with a memory's weights is the BM25 score."""
    full_match: float
    """The score of a memory of mean length that has each term once."""


def inverse_document_frequency(document_count: int, total: int) -> float:
    """Returns BM25's idf, never negative: ln(1 + (N - n + 0.5) / (n + 0.5)).

    The formula is of Robertson and Zaragoza 2009, in Lucene's form.
    """
    known = min(document_count, total)
    return math.log1p((total - known + 0.5) / (known + 0.5))


def lexical_query(terms: Sequence[Term], *, total: int, most: int | None = None) -> LexicalQuery | None:
    """Returns the query for these terms in a workspace of `total` memories; None without terms.

    The rarest known terms, at least one, are looked up as long as they match no more documents than the budget. Terms
    that the statistics do not know are looked up too, because the latest memories may have them.
    `most` limits the number of terms.
    """
    if not terms:
        return None
    unknown = sorted((term for term in terms if not term.document_count), key=lambda term: term.lexeme)[:_UNKNOWN_LIMIT]
    known = sorted((term for term in terms if term.document_count), key=lambda term: (term.document_count, term.lexeme))
    if most is not None:
        known = known[:most]
        unknown = unknown[: most - len(known)]
    known = known[: TERM_LIMIT - len(unknown)]
    ranked = [*known, *unknown]
    wanted = [*_rarest(known, max(DOCUMENT_BUDGET, total // DOCUMENT_SHARE)), *unknown]
    idf = {term.dimension: inverse_document_frequency(term.document_count, total) for term in ranked}
    entries = ",".join(f"{dimension}:{value:.6g}" for dimension, value in sorted(idf.items()))
    return LexicalQuery(
        match=_any_of(wanted),
        wider=_any_of(ranked) if len(ranked) > len(wanted) else None,
        weights=f"{{{entries}}}/{_TERM_DIMENSIONS}",
        full_match=_full_match(ranked, idf),
    )


def _any_of(terms: Sequence[Term]) -> str:
    return " | ".join(_quote(term.lexeme) for term in terms)


def _rarest(known: Sequence[Term], budget: int) -> list[Term]:
    wanted: list[Term] = []
    documents = 0
    for term in known:
        documents += term.document_count
        if wanted and documents > budget:
            break
        wanted.append(term)
    return wanted


_PAIR_SHARE = 0.6
"""Share of its idf that a pair of characters has in a full match: every second pair is the end of a word and the
beginning of the next. Of 100 Chinese questions 70 find their memory by words with 1.0, 91 with 0.75, 95 with 0.6 and 96
with 0.5; of 30 about something else 5, 5, 8 and 13 get an answer (15 Russian ones: 4)."""


def _full_match(terms: Sequence[Term], idf: Mapping[int, float]) -> float:
    """Returns the score of a full match in the language whose lexemes the store knows best."""
    languages = frozenset[str]().union(*(term.languages for term in terms))
    parts = [_PAIR_SHARE if PAIR.fullmatch(term.lexeme) else 1 for term in terms]
    shares = [(term.languages, idf[term.dimension] * part) for term, part in zip(terms, parts, strict=True)]
    return min(sum(share for spoken, share in shares if language in spoken) for language in languages)


def _quote(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
