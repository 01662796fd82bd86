"""Plans the lexical arm: which of the query's terms are looked up, and the weight of each. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.db.tables import TERM_DIMENSIONS

DOCUMENT_BUDGET, DOCUMENT_SHARE = 5_000, 150
"""Documents that the rarest terms may bring: DOCUMENT_BUDGET, or one of DOCUMENT_SHARE that there are. 6 ms and 99.8 %
of true BM25's first 12 at 100,000 memories, where 2,000 and 10,000 took 2.5 and 28 ms for 96 % and 100 %; at a million
5,000 found 88 % of them, and 6,667 94 % in 11 ms (docs/retrieval.md)."""
TERM_LIMIT = 64
"""Terms that are looked up: a task text of thousands of words is known by its rarest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A lexeme of the query."""

    lexeme: str
    dimension: int
    """Its place in `lexical.weights`, from 1."""
    document_count: int
    """Live memories of the workspace that have it, by the last statistics; 0 where it is new."""
    languages: frozenset[str]
    """The languages in which the query has this lexeme: each makes its own of a word."""


UNKNOWN_LIMIT = 16
"""Terms without a counted memory that are looked up at most: they cost little, and mostly bring nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalQuery:
    """A query as the lexical arm takes it."""

    match: str
    """A tsquery that finds memories with any of the rarest terms."""
    wider: str | None
    """One that finds memories with any of the terms, where those are more: a filter may keep none with a rare one."""
    weights: str
    """A sparsevec: the idf of every term; its inner product with a memory's weights is the BM25 score."""
    full_match: float
    """The score of a memory of mean length that has each term once."""


def inverse_document_frequency(document_count: int, total: int) -> float:
    """Returns BM25's idf, never negative: ln(1 + (N - n + 0.5) / (n + 0.5)).

    Robertson and Zaragoza 2009, as Lucene has it.
    """
    known = min(document_count, total)
    return math.log1p((total - known + 0.5) / (known + 0.5))


def lexical_query(terms: Sequence[Term], *, total: int) -> LexicalQuery | None:
    """Returns the query for these terms in a workspace of `total` memories; None where there is no term.

    The rarest known terms are looked up until they would bring more documents than there is a budget for, always at
    least one; terms that the statistics do not know are looked up besides, for the latest memories may have them.
    """
    if not terms:
        return None
    unknown = sorted((term for term in terms if not term.document_count), key=lambda term: term.lexeme)[:UNKNOWN_LIMIT]
    known = sorted((term for term in terms if term.document_count), key=lambda term: (term.document_count, term.lexeme))
    known = known[: TERM_LIMIT - len(unknown)]
    ranked = [*known, *unknown]
    wanted = [*_rarest(known, max(DOCUMENT_BUDGET, total // DOCUMENT_SHARE)), *unknown]
    idf = {term.dimension: inverse_document_frequency(term.document_count, total) for term in ranked}
    entries = ",".join(f"{dimension}:{value:.6g}" for dimension, value in sorted(idf.items()))
    return LexicalQuery(
        match=_any_of(wanted),
        wider=_any_of(ranked) if len(ranked) > len(wanted) else None,
        weights=f"{{{entries}}}/{TERM_DIMENSIONS}",
        full_match=_full_match(ranked, idf),
    )


def _any_of(terms: Sequence[Term]) -> str:
    return " | ".join(_quoted(term.lexeme) for term in terms)


def _rarest(known: Sequence[Term], budget: int) -> list[Term]:
    wanted: list[Term] = []
    documents = 0
    for term in known:
        documents += term.document_count
        if wanted and documents > budget:
            break
        wanted.append(term)
    return wanted


def _full_match(terms: Sequence[Term], idf: Mapping[int, float]) -> float:
    """Returns the score of a full match in the query's language: the one whose lexemes the store knows best."""
    languages = frozenset[str]().union(*(term.languages for term in terms))
    return min(sum(idf[term.dimension] for term in terms if language in term.languages) for language in languages)


def _quoted(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
