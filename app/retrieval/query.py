"""The query of an agent, and its check."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from app.errors import InvalidInput, check
from app.memories import filters
from app.memories.admission import NAME_LIMIT, unstorable
from app.memories.filters import Filters
from app.memories.memory import in_utc
from app.retrieval.rank.presets import DEFAULT, PRESETS, Preset
from app.retrieval.rank.quality import Weights
from app.workspaces.workspace import check_language

QUERY_LIMIT = 300_000
"""Characters, in whatever bytes: a task text of 10,000 long words is taken, though it has more than 100 kB; a pasted
log is not (docs/retrieval.md)."""
LARGEST_K = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The query of an agent, with its options."""

    text: str
    k: int
    filters: Filters = field(default_factory=Filters)
    preset: str = DEFAULT.name
    language: str | None = None
    """Text search language of the query; None: every language that the workspace's memories are written in."""
    agent: str | None = None
    run_id: str | None = None
    purpose: str = "search"
    weights: Weights | None = None
    """Weights in place of the preset's own."""
    now: datetime | None = None
    """The moment from which `last week` is told, in its zone (UTC where it names none), and to which ages are counted;
    None: the present."""
    rerank: bool | None = None
    """True: the re-ranker reads the best hits once more; None: it does where one is configured."""

    @property
    def moment(self) -> datetime:
        """The moment at which it is asked."""
        if self.now is None:
            return datetime.now(UTC)
        return self.now if self.now.tzinfo else in_utc(self.now)


def checked_preset(query: Query) -> Preset:
    """Returns the preset that the query names.

    Raises:
        InvalidInput: this or anything else in the query cannot be taken.
    """
    if not query.text.strip():
        raise InvalidInput("query", "is empty; say what the history should be about")
    if len(query.text) > QUERY_LIMIT:
        raise InvalidInput("query", f"has {len(query.text):,} characters; at most {QUERY_LIMIT:,} are taken")
    _check_moment(query)
    if not 1 <= query.k <= LARGEST_K:
        raise InvalidInput("k", f"must be from 1 to {LARGEST_K}")
    _check_names(query)
    given = {"query": query.text, "agent": query.agent, "run_id": query.run_id, "language": query.language}
    check(list(unstorable(given)))
    if query.filters:
        filters.check(query.filters)
    if query.preset not in PRESETS:
        raise InvalidInput("preset", f"{query.preset!r} is none; there are {', '.join(PRESETS)}")
    preset = PRESETS[query.preset]
    return preset if query.weights is None else replace(preset, weights=_checked(query.weights))


def _check_names(query: Query) -> None:
    for name in ("agent", "run_id", "language"):
        if len(getattr(query, name) or "") > NAME_LIMIT:
            raise InvalidInput(name, f"has more than {NAME_LIMIT} characters")
    check_language(query.language)


def _check_moment(query: Query) -> None:
    try:
        in_utc(query.moment)
    except (OverflowError, ValueError) as error:
        raise InvalidInput("now", "is outside the years 1 to 9999") from error


def _checked(weights: Weights) -> Weights:
    for name in ("relevance", "quality"):
        if not 0 <= getattr(weights, name) <= 1:
            raise InvalidInput(f"weights.{name}", "must be from 0 to 1")
    return weights
