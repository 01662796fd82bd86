"""Says why an arm does not serve an answer, or not in full. Nothing fails silently."""

from app.index.models import StoredModel
from app.models.protocols import EmbeddingProvider
from app.retrieval.recall import LEXICAL, VECTOR, Degradation
from app.text.words import WORD

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
