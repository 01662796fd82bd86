"""Roles: which memories serve which agent, as data. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from app.foundation.text.words import content_words
from app.intake.cases.judgement import CALIBRATION, DECISIONS, ISSUES, JUDGEMENT, RECURRING, SOURCES
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import NAME_LIMIT
from app.storage.tenants.workspace import Workspace

_FAILURES = re.compile(
    r"(?i)\b(?:wrong|fail(?:s|ed|ing|ures?)?|issues?|problems?|mistakes?|errors?|penali[sz]\w*|weakness\w*|lessons?|"
    r"avoid|complain\w*|criticis\w*|flaws?|low score|why .{0,40}\b(?:bad|low)|schief\w*|fehler\w*|probleme?|"
    r"échecs?|erreurs?|fall[oó]s?|errores|ошиб\w*|проблем\w*|провал\w*|не так)\b|失败|错误|问题"
)
"""A query that asks what went wrong: the runs that failed are what it asks for."""
_SAMPLE = 4_000
"""Characters of a text in which the words of a role are looked for."""
BY_TITLE, BY_TEXT, MANY = 0.6, 0.5, 3
"""Share of a part's weight for a title with one of its words, and for a text with as many of them as MANY."""
MOST_OF_A_ROLE = 0.07
"""Most that a role adds to a score: a tenth of what the best relevance gives. It decides among near-equals: with half
as much again, or leading places, the history for a role held less evidence than one without
(benchmarks/retrieval.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePart:
    """Something that a role asks for."""

    title: str
    """Its name, for people who read the role."""
    facets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    weight: float = 0.5
    """Share of MOST_OF_A_ROLE that a memory of one of its facets gets, 0 to 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The parts of an agent's history, the most important first."""

    name: str
    parts: tuple[RolePart, ...] = ()


DEFAULT_ROLE = Role(name="default")
_ROLES: Mapping[str, Role] = MappingProxyType({
    role.name: role
    for role in (
        DEFAULT_ROLE,
        Role(name="director", parts=(
            RolePart(title="What failed and was passed on", facets=(DECISIONS,), weight=0.6,
                 words=("failed", "failure", "escalate", "passed on", "empty", "stop rule", "abort", "omitted")),
            RolePart(title="Judgements and issues", facets=(RECURRING, ISSUES, JUDGEMENT), weight=0.3),
        )),
        Role(name="scout", parts=(
            RolePart(title="Sources that were penalised or praised", facets=(SOURCES,), weight=0.6,
                 words=("source", "sources", "cited", "citation", "listicle", "link", "links", "registry", "trust")),
        )),
        Role(name="researcher", parts=(
            RolePart(title="Recurring issues", facets=(RECURRING,), weight=0.5),
            RolePart(title="Issues of method", facets=(ISSUES,), weight=0.5,
                 words=("method", "methodology", "calculation", "derived", "reproducible", "sizing", "sample")),
            RolePart(title="Judgements", facets=(JUDGEMENT,), weight=0.3),
        )),
        Role(name="judge", parts=(
            RolePart(title="Score history and calibration", facets=(CALIBRATION,), weight=0.6,
                 words=("calibration", "rubric", "scoring", "score history", "pass mark")),
            RolePart(title="Judgements and known issues", facets=(JUDGEMENT, RECURRING, ISSUES), weight=0.4),
        )),
    )
})  # fmt: skip
"""The roles that every workspace has; its own replace those of the same name."""


def role_of(agent: str | None, known: Mapping[str, Role] = _ROLES) -> Role:
    """Returns the role of an agent: the one of its name, or that its name has as a word (`market-judge-2`)."""
    name = (agent or "").strip().lower()
    words = re.findall(r"[^\W\d_]+", name)
    found = next((known[word] for word in (name, *words) if word in known), None)
    return found or known[DEFAULT_ROLE.name]


def asks_for_failures(query: str) -> bool:
    """Tells whether a query asks what went wrong."""
    return _FAILURES.search(query[:_SAMPLE]) is not None


def fit(role: Role, facet: str, title: str, body: str = "") -> float:
    """Returns what a role adds to the score of a memory, 0 to MOST_OF_A_ROLE."""
    if not role.parts:
        return 0.0
    in_title, in_body = _stems((title,)), content_words(body[:_SAMPLE]) if body else frozenset[str]()
    return MOST_OF_A_ROLE * min(1.0, max(part.weight * _share(part, facet, in_title, in_body) for part in role.parts))


def _share(part: RolePart, facet: str, in_title: frozenset[str], in_body: frozenset[str]) -> float:
    words = _stems(part.words)
    by_words = BY_TITLE if words & in_title else 0.0
    by_text = BY_TEXT * min(1.0, len(words & in_body) / MANY)
    return min(1.5, (1.0 if facet in part.facets else by_words) + by_text)


@lru_cache(maxsize=4_096)
def _stems(texts: tuple[str, ...]) -> frozenset[str]:
    """Returns the words of a part, or of a title: each of the hundreds of candidates is weighed twice."""
    return frozenset(stem for text in texts for stem in content_words(text))


MOST_ROLES, MOST_PARTS, MOST_WORDS, LARGEST_WEIGHT = 50, 8, 50, 2


def roles_of(workspace: Workspace) -> dict[str, Role]:
    """Returns the roles of a workspace by name: those that every workspace has, or its own in their place."""
    return {**_ROLES, **msgspec.convert(workspace.roles, dict[str, Role])}


def role_reasons(role: Role, known: Mapping[str, object]) -> Iterator[str]:
    """Yields the reasons why a workspace that has these roles cannot have this one."""
    if not role.name or role.name != role.name.strip().lower() or len(role.name) > NAME_LIMIT:
        yield f"name: is in lower case and has 1 to {NAME_LIMIT} characters"
    if len({*known, role.name}) > MOST_ROLES:
        yield f"name: a workspace has at most {MOST_ROLES} roles of its own"
    if len(role.parts) > MOST_PARTS:
        yield f"parts: at most {MOST_PARTS} are taken"
    for part in role.parts:
        if not part.title.strip() or len(part.title) > NAME_LIMIT:
            yield f"parts.title: has 1 to {NAME_LIMIT} characters"
        if not 0 <= part.weight <= LARGEST_WEIGHT:
            yield f"parts.weight: must be from 0 to {LARGEST_WEIGHT}"
        if max(map(len, (*part.words, *part.facets)), default=0) > NAME_LIMIT or len(part.words) > MOST_WORDS:
            yield f"parts.words: at most {MOST_WORDS}, of at most {NAME_LIMIT} characters"
    yield from unstorable({"name": role.name, "parts": _texts(role)})


def _texts(role: Role) -> Sequence[Any]:
    return [text for part in role.parts for text in (part.title, *part.facets, *part.words)]
