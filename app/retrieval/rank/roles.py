"""Roles: which memories serve which agent, as data. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from app.memories.facets import CALIBRATION, DECISIONS, ISSUES, JUDGEMENT, RECURRING, SOURCES
from app.text.words import content_words

FAILURES = re.compile(
    r"(?i)\b(?:wrong|fail(?:s|ed|ing|ures?)?|issues?|problems?|mistakes?|errors?|penali[sz]\w*|weakness\w*|lessons?|"
    r"avoid|complain\w*|criticis\w*|flaws?|low score|why .{0,40}\b(?:bad|low)|schief\w*|fehler\w*|probleme?|"
    r"échecs?|erreurs?|fall[oó]s?|errores|ошиб\w*|проблем\w*|провал\w*|не так)\b|失败|错误|问题"
)
"""A query that asks what went wrong: the runs that failed are what it asks for."""
SAMPLE = 4_000
"""Characters of a text in which the words of a role are looked for."""
BY_TITLE, BY_TEXT, MANY = 0.6, 0.5, 3
"""Share of a part's weight for a title with one of its words, and for a text with as many of them as MANY."""
LEAST_OF_A_PART = 0.25
"""Relevance from which a place is kept for a memory because of the part that it serves. The note of a case's issues,
which speaks of many things, has 0.29 for "market sizing"."""
OTHER = "Other history"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something that a role asks for."""

    title: str
    """The line above it in the section."""
    facets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    weight: float = 0.5
    """Share by which a memory that serves it ranks higher, 0 to 2."""
    leads: bool = False
    """True if the best memory that serves it comes before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The parts of an agent's history, the most important first."""

    name: str
    parts: tuple[Part, ...] = ()


DEFAULT_ROLE = Role(name="default")
ROLES: Mapping[str, Role] = MappingProxyType({
    role.name: role
    for role in (
        DEFAULT_ROLE,
        Role(name="director", parts=(
            Part(title="What failed and was passed on", facets=(DECISIONS,), weight=0.6,
                 words=("failed", "failure", "escalate", "passed on", "empty", "stop rule", "abort", "omitted")),
            Part(title="Judgements and issues", facets=(RECURRING, ISSUES, JUDGEMENT), weight=0.3),
        )),
        Role(name="scout", parts=(
            Part(title="Sources that were penalised or praised", facets=(SOURCES,), weight=0.6,
                 words=("source", "sources", "cited", "citation", "listicle", "link", "links", "registry", "trust")),
        )),
        Role(name="researcher", parts=(
            Part(title="Recurring issues", facets=(RECURRING,), weight=0.5, leads=True),
            Part(title="Issues of method", facets=(ISSUES,), weight=0.5,
                 words=("method", "methodology", "calculation", "derived", "reproducible", "sizing", "sample")),
            Part(title="Judgements", facets=(JUDGEMENT,), weight=0.3),
        )),
        Role(name="judge", parts=(
            Part(title="Score history and calibration", facets=(CALIBRATION,), weight=0.6,
                 words=("calibration", "rubric", "scoring", "score history", "pass mark")),
            Part(title="Judgements and known issues", facets=(JUDGEMENT, RECURRING, ISSUES), weight=0.4),
        )),
    )
})  # fmt: skip
"""The roles that every workspace has; its own replace those of the same name."""


def role_of(agent: str | None, known: Mapping[str, Role] = ROLES) -> Role:
    """Returns the role of an agent: the one of its name, or that its name has as a word (`market-judge-2`)."""
    name = (agent or "").strip().lower()
    words = re.findall(r"[^\W\d_]+", name)
    found = next((known[word] for word in (name, *words) if word in known), None)
    return found or known[DEFAULT_ROLE.name]


def asks_for_failures(query: str) -> bool:
    """Tells whether a query asks what went wrong."""
    return FAILURES.search(query[:SAMPLE]) is not None


def fit(role: Role, facet: str, title: str, body: str = "") -> tuple[float, Part | None]:
    """Returns the factor by which a memory ranks higher for a role, 1 for none, and the part that it serves."""
    if not role.parts:
        return 1.0, None
    in_title, in_body = _stems((title,)), content_words(body[:SAMPLE]) if body else frozenset[str]()
    found = [(part.weight * _share(part, facet, in_title, in_body), part) for part in role.parts]
    share, part = max(found, key=lambda item: item[0])
    return 1 + share, part if share else None


def _share(part: Part, facet: str, in_title: frozenset[str], in_body: frozenset[str]) -> float:
    words = _stems(part.words)
    by_words = BY_TITLE if words & in_title else 0.0
    by_text = BY_TEXT * min(1.0, len(words & in_body) / MANY)
    return min(1.5, (1.0 if facet in part.facets else by_words) + by_text)


@lru_cache(maxsize=4_096)
def _stems(texts: tuple[str, ...]) -> frozenset[str]:
    """Returns the words of a part, or of a title: each of the hundreds of candidates is weighed twice."""
    return frozenset(stem for text in texts for stem in content_words(text))


def with_parts(role: Role, ranking: Iterable[T], most: int, part_of: Callable[[T], Part | None]) -> Iterator[T]:
    """Yields a ranking; among its first `most` are the best that serves each part, in half of these places at most.

    The best that serves a part which leads comes first.
    """
    if not role.parts:
        yield from ranking
        return
    items = list(ranking)
    best: dict[Part, int] = {}
    for place, item in enumerate(items):
        part = part_of(item)
        if part is not None:
            best.setdefault(part, place)
    served = [part for part in role.parts if part in best][: max(1, most // 2)]
    reserved, leading = {best[part] for part in served}, [best[part] for part in served if part.leads]
    free = [place for place in range(len(items)) if place not in reserved]
    room = max(0, most - len(reserved))
    rest = sorted({*reserved, *free[:room]} - {*leading})
    yield from (items[place] for place in (*leading, *rest, *free[room:]))


def by_part(role: Role, items: Iterable[tuple[T, str, str, str]]) -> Iterator[tuple[str, Sequence[T]]]:
    """Yields the parts of a section with their items, each in the given order; items come with facet, title and body.

    Those that serve no part come last. A role without parts, or a section of one part, has none.
    """
    parts: dict[str, list[T]] = {title: [] for title in (*(part.title for part in role.parts), OTHER)}
    for item, facet, title, body in items:
        part = fit(role, facet, title, body)[1]
        parts[OTHER if part is None else part.title].append(item)
    yield from ((title, found) for title, found in parts.items() if found)
