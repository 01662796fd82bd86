"""The values of a recall: hits, each with every component of its score, and how they were found."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from app.index.models import StoredModel
from app.memories.memory import Memory
from app.models.protocols import EmbeddingProvider
from app.text.words import WORD

HYBRID, LEXICAL, VECTOR = "hybrid", "lexical", "vector"
RERANKER = "reranker"
"""Named like an arm where it was wanted and did not serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """An arm that did not serve an answer, or not in full, and why."""

    arm: str
    reason: str
    silent: bool
    """True where the arm was left out altogether."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitLink:
    """The link that brought a hit, or boosts it."""

    relation: str
    direction: str
    """`out` where the hit mentions, is derived from, supersedes … the other memory; else `in`."""
    memory_id: UUID
    """The memory at its other end, which speaks to the query itself."""
    title: str = ""
    """Its title; empty in the log, which keeps no text of memories."""


Explanation = dict[str, float | HitLink | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A memory that was found."""

    memory: Memory
    score: float
    explain: Mapping[str, float | None]
    """Every component of the score, by name (docs/retrieval.md says how they make it)."""
    link: HitLink | None = None
    """The link that `links` among the components comes from."""

    @property
    def explanation(self) -> Explanation:
        """The components with the link, as answers give them."""
        return {**self.explain, **({} if self.link is None else {"link": self.link})}

    @property
    def logged(self) -> Explanation:
        """The components with the link, as the log keeps them."""
        return {**self.explain, **({} if self.link is None else {"link": replace(self.link, title="")})}

    @property
    def kind(self) -> str:
        """The memory's kind."""
        return self.memory.kind

    @property
    def title(self) -> str:
        """The memory's title."""
        return self.memory.title

    @property
    def body(self) -> str:
        """The memory's text."""
        return self.memory.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The answer to a query, best hit first."""

    recall_id: UUID
    hits: tuple[Hit, ...]
    mode: str
    """The arms that answered: hybrid, lexical or vector."""
    degraded: tuple[Degradation, ...]
    took_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """The block at which the previous section of a run could not be continued."""

    memory_id: UUID
    """The memory of the first block that no longer stands where it stood."""
    reason: Literal["withdrawn", "edited", "filtered", "budget"]
    """Its memory is no longer live; its text, title, date or source is another; the query's filters leave it out; or
    the query's hits need the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """The part of a section with which the previous one of the run began, byte for byte."""

    tokens: int
    share: float
    """Share of the section's tokens; 0 for a first call."""
    kept: tuple[UUID, ...]
    """The memories of the blocks that stand where they stood, in that order, found again or not."""
    broken: Broken | None
    """The block that ended it; None: the whole previous section stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A recall as the section that an agent reads."""

    markdown: str
    """`## Relevant History …`; empty where nothing is relevant."""
    tokens: int
    """Model tokens of `markdown`."""
    recall: Recall
    """With the hits of this query that the section shows."""
    reuse: Reuse | None = None
    """None where the section stands alone."""


TOLERATED_PENDING = 0.1
"""Share of memories without a vector up to which the vector arm still answers: beyond it, those that have one would
win by having it."""


def vector_degradation(
    provider: EmbeddingProvider, stored: StoredModel | None, *, pending: int, live: int, refusal: str | None = None
) -> Degradation | None:
    """Returns what is wrong with the vector arm; None if nothing is.

    `stored` is the model whose vectors the database serves, `pending` the number of the workspace's `live` memories
    that have none, `refusal` the reason why the query could not be embedded.
    """
    if not provider.enabled:
        return _silent("embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)")
    if refusal is not None:
        return _silent(f"the query could not be embedded: {refusal}")
    if stored is None:
        return _silent("no memory has been embedded yet; a worker does it, or `priors backfill`")
    if stored.name != provider.model_id:
        return _silent(
            f"the stored vectors are of {stored.name} and the configured model is {provider.model_id}; vectors"
            " of different models are never compared, so configure the stored one, or move with `priors reembed`"
        )
    if stored.dimension != provider.dimension:
        return _silent(
            f"the stored vectors of {stored.name} have {stored.dimension} numbers and the configured model gives"
            f" {provider.dimension}: set PRIORS_EMBEDDING_DIMENSION={stored.dimension}"
        )
    return _unembedded(pending, live) if pending else None


def _unembedded(pending: int, live: int) -> Degradation:
    reason = f"{pending:,} of {max(live, pending):,} memories have no vector yet and are found by their words alone"
    return Degradation(arm=VECTOR, reason=reason, silent=pending > TOLERATED_PENDING * live)


def nothing_stored(workspace: str) -> tuple[Degradation, ...]:
    """Says that neither arm has anything to search: often a workspace whose name was mistyped."""
    reason = f"the workspace {workspace!r} holds no memories"
    return tuple(Degradation(arm=arm, reason=reason, silent=True) for arm in (VECTOR, LEXICAL))


def lexical_degradation(query: str) -> Degradation:
    """Says that the lexical arm has nothing to look up."""
    reason = "the query has no words besides stop words" if WORD.search(query) else "the query has no words"
    return Degradation(arm=LEXICAL, reason=reason, silent=True)


def _silent(reason: str) -> Degradation:
    return Degradation(arm=VECTOR, reason=reason, silent=True)
