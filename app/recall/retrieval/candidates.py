"""The SQL of a search: the survey of a workspace, the pool of candidates from both arms, and the texts of the best.

The lexical arm needs no vector, so it runs while the query is embedded; a second statement makes the pool.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from msgspec import structs

from app.foundation.db.session import Row, Session
from app.foundation.db.wire import UuidArray
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector
from app.foundation.text.words import WORD
from app.foundation.values import frozen
from app.recall.retrieval.arms import (
    LexicalQuery,
    Shape,
    Term,
    inverse_document_frequency,
    lexical_arm,
    lexical_query,
    pool_statement,
)
from app.recall.retrieval.rank.passages import Terms
from app.recall.retrieval.rank.presets import Preset
from app.recall.retrieval.rank.rank import Candidate
from app.recall.retrieval.recall import LEXICAL, VECTOR, Query
from app.storage.index.models import StoredModel
from app.storage.memories.filters import OF_USERS, Filters, conditions
from app.storage.memories.store import JOINED
from app.storage.recalls.store import Degradation

_ARM_LIMIT = 60
"""Candidates from each arm, unless the answer needs more. On LoCoMo dev 100, 60 and 30 find nearly the same
(recall@10 0.766, 0.771 and 0.775 with the neighbours of the best 10); each candidate costs two look-ups."""
SPARE = 12
"""Candidates in addition to the wanted hits, because dedupe leaves some out."""
_KEPT_AT_MOST = 5_000
"""If at most this many memories pass a filter, the survey finds them, and both arms score all of them without an
index."""
COUNTED_EXACTLY = 2_000
"""Live memories are counted up to this number, which takes 0.2 ms; the statistics of a larger store are precise
enough."""
_TOLERATED_PENDING = 0.1
"""Largest share of memories without a vector at which the vector arm answers: with more, any vector would be an
advantage."""
_BEARABLE = round(1 / _TOLERATED_PENDING)
"""Live memories that are counted for each pending one, so that old statistics cannot switch the vector arm off. This
reads 10 rows of an index for each pending memory."""
TAGGED = "m.memory_id = ANY(ARRAY(SELECT priors_tagged(%(tags)s::text[], NULL)))"
"""The condition of tags by their index, which a plain condition cannot use under row-level security."""


class Survey(NamedTuple):
    """The state of a workspace that must be known before the arms are asked."""

    workspace_id: int
    model: StoredModel | None
    """The model whose vectors the database serves."""
    pending: int
    """Live memories of the workspace that have no vector of this model yet."""
    live: int
    """Live memories of the workspace: exact up to COUNTED_EXACTLY, and as far as needed to decide whether too many
    are `pending`; from the last statistics above."""
    indexed: bool
    """True if the workspace's vectors have an HNSW index."""
    has_passages: bool
    """True if a memory of the workspace has several vectors."""
    kept: UuidArray | None
    """The memories that pass the filters; None if they are more than KEPT_AT_MOST, or if there are no filters."""
    users: tuple[str, ...] | None
    """The users whose memories may be candidates, "" for nobody; None if no memory of the workspace is of others."""
    linked: bool
    """True if the workspace has links that spread evidence."""
    terms: tuple[Term, ...]


# Each term is looked up by itself: a join reads the whole vocabulary where the planner has no statistics of it yet.
_SURVEY = """
SELECT w.workspace_id, pending.pending,
    CASE WHEN e.active THEN json_build_object('model_id', e.model_id, 'name', e.name, 'dimension', e.dimension) END
        AS model,
    priors_is_indexed(e.model_id, w.workspace_id) AS indexed,
    EXISTS (
        SELECT 1 FROM embeddings v
        WHERE v.workspace_id = %(workspace_id)s AND v.model_id = e.model_id AND v.passage > 0
    ) AS has_passages,
    counted.live, {kept} AS kept, w.has_users, EXISTS (
        SELECT 1 FROM links l WHERE l.workspace_id = %(workspace_id)s AND l.relation <> 'similar'
    ) AS linked,
    (
        SELECT json_agg(json_build_array(
            t.lexeme, priors_dimension(t.lexeme), coalesce((
                SELECT s.document_count FROM lexeme_statistics s
                WHERE s.workspace_id = %(workspace_id)s AND s.lexeme = t.lexeme
            ), 0), t.languages
        ))
        FROM (
            SELECT parsed.lexeme, array_agg(language) AS languages
            FROM unnest({languages}) AS language,
                unnest(priors_terms(CAST(language AS regconfig), %(query)s)) AS parsed
            GROUP BY parsed.lexeme
        ) AS t
    ) AS terms
FROM workspaces w LEFT JOIN embedding_models e ON e.active
CROSS JOIN LATERAL (
    SELECT count(*) AS pending FROM pending_embeddings p WHERE p.workspace_id = %(workspace_id)s AND NOT p.partial
) AS pending
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN count(*) <= {exactly} THEN count(*)
        WHEN pending.pending * {bearable} <= {exactly} THEN greatest(count(*), w.document_count)
        ELSE (
            SELECT CASE WHEN count(*) < pending.pending * {bearable} THEN count(*)
                ELSE greatest(count(*), w.document_count) END
            FROM (
                SELECT 1 FROM lexical l WHERE l.workspace_id = %(workspace_id)s LIMIT pending.pending * {bearable}
            ) AS more
        )
    END AS live
    FROM (SELECT 1 FROM lexical l WHERE l.workspace_id = %(workspace_id)s LIMIT {exactly} + 1) AS few
) AS counted
{few}
WHERE w.workspace_id = %(workspace_id)s
"""

KEPT = f"CASE WHEN few.count <= {_KEPT_AT_MOST} {{only_if}} THEN few.ids END"
_IF_USERS = "AND w.has_users"
"""Leaves an unfiltered query as it is in a workspace without users."""
FEW = """CROSS JOIN LATERAL (
    SELECT count(*), coalesce(array_agg(memory_id), ARRAY[]::uuid[]) AS ids FROM ({passing}) AS kept
) AS few"""
_PASSING_TAGS = f"SELECT memory_id FROM priors_tagged(%(tags)s::text[], {_KEPT_AT_MOST} + 1) AS tagged(memory_id)"  # noqa: S608 - constants
PASSING = f"""SELECT m.memory_id FROM {JOINED}
    WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL AND {{conditions}} LIMIT {_KEPT_AT_MOST} + 1"""  # noqa: S608 - constants


async def survey(session: Session, query: str, *, filters: Filters, language: str | None) -> Survey | None:
    """Returns the survey for a query; None if nothing was ever written to the workspace.

    The query is parsed by `language`, or by every language that the workspace's memories are written in.
    """
    _, values = conditions(filters)
    given = {**values, "query": query, "language": language}
    if session.users is not None:
        given["users"] = session.users
    statement = _survey_statement(filters, session.users, is_given=language is not None)
    row = await session.row(statement, given, binary=True)
    return None if row is None else _survey_of(row, session.users)


def _survey_statement(filters: Filters, users: Sequence[str] | None, *, is_given: bool) -> str:
    """Returns the statement of a survey; `is_given` tells if the query names its language."""
    languages = "ARRAY[%(language)s::text]" if is_given else "w.languages"
    kept, few = "NULL::uuid[]", ""
    if filters or users is not None:
        only_if = "" if filters else _IF_USERS
        kept, few = KEPT.format(only_if=only_if), FEW.format(passing=_passing(filters, users, only_if))
    return _SURVEY.format(kept=kept, few=few, languages=languages, exactly=COUNTED_EXACTLY, bearable=_BEARABLE)


def _indexed_conditions(filters: Filters, users: Sequence[str] | None = None) -> Sequence[str]:
    """Returns the filters' conditions for a search among all memories of these users (None: all).

    It looks tags up in their index.
    """
    of_users = [] if users is None else [OF_USERS]
    if not filters.tags:
        return [*conditions(filters)[0], *of_users]
    return [TAGGED, *conditions(structs.replace(filters, tags=()))[0], *of_users]


def _passing(filters: Filters, users: Sequence[str] | None, only_if: str) -> str:
    if filters.tags and not structs.replace(filters, tags=()):
        return _PASSING_TAGS
    return PASSING.format(conditions=f"{' AND '.join(_indexed_conditions(filters, users))} {only_if}")


def _survey_of(row: Row, users: tuple[str, ...] | None) -> Survey:
    model = None if row.model is None else StoredModel(**row.model)
    terms = tuple(
        Term(lexeme, dimension, count, frozenset(languages)) for lexeme, dimension, count, languages in row.terms or ()
    )
    values = {**row._asdict(), "model": model, "terms": terms}
    has_users = values.pop("has_users")
    return Survey(**values, users=users if has_users else None)


class _LexicalHits(NamedTuple):
    """The lexical arm's candidates, best first, as Postgres writes arrays."""

    ids: str
    scores: str


@frozen
class ArmQuery:
    """A query in the form that the arms take. An arm without its representation of the query is left out."""

    survey: Survey
    words: LexicalQuery | None
    kept: UuidArray | None
    """The memories that pass the filters, if they are few."""
    clauses: tuple[str, ...]
    """The filters' conditions over `memories m LEFT JOIN sources s`, to check single memories."""
    scanned: tuple[str, ...]
    """The same conditions, to find all memories that pass."""
    values: Mapping[str, Any]
    least: int
    """Least number of candidates that the answer needs."""
    linked: bool
    """True if links count."""
    vector: str | None = None
    embedded: Sequence[Vector] = ()
    """The numbers of `vector`, and of the vectors of the query's needs."""
    tokens: Matrix | None = None
    """The vectors of the query's words, if passages are asked for and the model gives some."""
    lexical_hits: _LexicalHits | None = None
    """The lexical arm's candidates; None if this arm is left out."""

    @property
    def terms(self) -> Terms:
        """The words of the query, as passages are scored by them."""
        known = self.survey
        weights = {term.lexeme: inverse_document_frequency(term.document_count, known.live) for term in known.terms}
        languages = sorted({language for term in known.terms for language in term.languages})
        stored = frozenset(term.lexeme for term in known.terms if term.document_count)
        full = self.words.full_match if self.words else 0.0
        return Terms(weights, full, tuple(languages), stored)

    def full_match(self, pool: Sequence[Candidate]) -> float:
        """Returns the BM25 score of a full match; 0 without words.

        For a query of one word it is the score of the best memory of the pool, if that is less: a long memory that has
        a rare word once is what such a query asks for.
        """
        if self.words is None:
            return 0.0
        languages = [language for term in self.survey.terms for language in term.languages]
        best = max((item.bm25 for item in pool), default=0.0)
        is_one_word = min(map(languages.count, languages)) == 1
        return min(self.words.full_match, best or self.words.full_match) if is_one_word else self.words.full_match


def question_of(survey: Survey, query: Query, preset: Preset, *, least: int = 0) -> ArmQuery:
    """Returns the question for at least so many candidates, without the vector and the lexical arm's hits."""
    clauses, values = conditions(query.filters)
    if survey.users is not None:
        clauses, values["users"] = [*clauses, OF_USERS], survey.users
    return ArmQuery(
        survey=survey,
        words=lexical_query(survey.terms, total=survey.live, most=preset.most_terms),
        kept=survey.kept,
        clauses=tuple(clauses),
        scanned=tuple(_indexed_conditions(query.filters, survey.users)),
        values=values,
        least=max(least, query.k + SPARE),
        linked=survey.linked and bool(preset.blend.links),
    )


def shape_of(question: ArmQuery) -> Shape:
    """Returns the shape of the statement for a question.

    An HNSW scan under a filter misses memories, so a query with a filter is always answered exactly.
    """
    use_index = question.survey.indexed and not question.clauses
    return Shape(
        model=None if question.vector is None else question.survey.model,
        vector_workspace=question.survey.workspace_id if use_index else None,
        lexical=question.lexical_hits is not None,
        kept=question.kept is not None,
        clauses=question.clauses,
        scanned=question.scanned,
        has_passages=question.survey.has_passages,
        limit=_ARM_LIMIT * math.ceil(question.least / _ARM_LIMIT),
        linked=question.linked,
    )


def values_of(question: ArmQuery) -> dict[str, Any]:
    """Returns the statement's parameters; it ignores those that its shape has no use for."""
    return {
        **question.values,
        **(question.words._asdict() if question.words else {}),
        **(question.lexical_hits._asdict() if question.lexical_hits else {}),
        "vector": question.vector,
        "kept": question.kept,
    }


async def lexical_hits(session: Session, question: ArmQuery) -> _LexicalHits | None:
    """Returns the lexical arm's candidates; None if the question has no terms.

    The search uses the rarest terms of the workspace; if too few memories with these pass the filter, it uses all
    terms.
    """
    if question.words is None:
        return None
    shape, values, wider = shape_of(question), values_of(question), question.words.wider
    statement = _lexical_statement(shape)
    ((ids, scores, count),) = await session.tuples(statement, values)
    if count < shape.limit and question.clauses and question.kept is None and wider is not None:
        ((ids, scores, _),) = await session.tuples(statement, {**values, "match": wider})
    return _LexicalHits(ids or "{}", scores or "{}")


def _lexical_statement(shape: Shape) -> str:
    return f"SELECT array_agg(memory_id)::text, array_agg(bm25)::text, count(*) FROM ({lexical_arm(shape)}) AS arm"  # noqa: S608 - as below


async def plans(session: Session, question: ArmQuery, query: Query) -> dict[str, str]:
    """Returns the plans of a question's statements, by step; a question has a vector if its vector arm answers."""
    words = None if question.words is None else _LexicalHits("{}", "{}")
    shape = shape_of(replace(question, lexical_hits=words))
    statements = {"survey": _survey_statement(query.filters, session.users, is_given=query.language is not None)}
    if shape.lexical:
        statements["lexical"] = _lexical_statement(shape)
    if shape.lexical or shape.model is not None:
        statements["candidates"] = pool_statement(shape)
    return {step: await session.plan(statement) for step, statement in statements.items()}


async def candidates(session: Session, question: ArmQuery) -> list[Candidate]:
    """Returns the candidates of both arms, and the neighbours and linked memories of the best, all with both scores."""
    rows = await session.tuples(pool_statement(shape_of(question)), values_of(question))
    return list(map(Candidate._make, rows))


def nothing_stored(workspace: str) -> tuple[Degradation, ...]:
    """Returns the reason why neither arm has anything to search; often the workspace's name is mistyped."""
    reason = f"the workspace {workspace!r} holds no memories"
    return tuple(Degradation(arm=arm, reason=reason, silent=True) for arm in (VECTOR, LEXICAL))


def degradations_of(
    provider: EmbeddingProvider, question: ArmQuery, query: str, refusal: str | None
) -> tuple[Degradation, ...]:
    """Returns the arms that do not serve a question in full, each with its reason."""
    known = question.survey
    vector = vector_degradation(provider, known.model, pending=known.pending, live=known.live, refusal=refusal)
    reason = "the query has no words besides stop words" if WORD.search(query) else "the query has no words"
    lexical = None if question.words else Degradation(arm=LEXICAL, reason=reason, silent=True)
    return tuple(item for item in (vector, lexical) if item is not None)


def vector_degradation(
    provider: EmbeddingProvider, stored: StoredModel | None, *, pending: int, live: int, refusal: str | None = None
) -> Degradation | None:
    """Returns the degradation of the vector arm; None if it serves in full.

    `stored` is the model whose vectors the database serves, `pending` the number of the workspace's `live` memories
    that have none, `refusal` the reason why the query could not be embedded.
    """
    silent = None if refusal is None else f"the query could not be embedded: {refusal}"
    silent = silent or _mismatch(provider, stored)
    if silent is None and not pending:
        return None
    reason = f"{pending:,} of {max(live, pending):,} memories have no vector yet and are found by their words alone"
    is_silent = silent is not None or pending > _TOLERATED_PENDING * live
    return Degradation(arm=VECTOR, reason=silent or reason, silent=is_silent)


def _mismatch(provider: EmbeddingProvider, stored: StoredModel | None) -> str | None:
    """Returns the reason why stored vectors cannot be compared with the provider's; None if they can."""
    if not provider.enabled:
        return "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)"
    if stored is None:
        return "no memory has been embedded yet; a worker does it, or `priors store backfill`"
    if stored.name != provider.model_id:
        return (
            f"the stored vectors are of {stored.name} and the configured model is {provider.model_id}; vectors"
            " of different models are never compared, so configure the stored one, or move with `priors store reembed`"
        )
    if stored.dimension != provider.dimension:
        return (
            f"the stored vectors of {stored.name} have {stored.dimension} numbers and the configured model gives"
            f" {provider.dimension}: set PRIORS_EMBEDDING_DIMENSION={stored.dimension}"
        )
    return None
