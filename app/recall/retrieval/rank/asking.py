"""Finds what a request asks for: its needs, the case that it continues, and the role of the agent that asks. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from re import Pattern
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from app.foundation.text.data import read_toml
from app.foundation.text.prose import sentences_of
from app.foundation.text.scores import KINDS
from app.foundation.text.words import STOP_WORDS, WORD, content_words
from app.foundation.values import frozen
from app.intake.cases.judgement import UNNAMED
from app.storage.memories.memory import Name
from app.storage.tenants.workspace import Workspace

_LEAST_SENTENCES = 3
"""Sentences from which a request is searched for its needs."""
LONGEST = 2_000
"""Characters of a request; a longer one is a text that was pasted, and is one need."""
_UNIT = (
    r"(?:words?|lines?|sentences?|bullets?|bullet points?|paragraphs?|pages?|links?|searches|minutes|euros?|dollars)"
)
_NUMBER = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)"
_PERSONA = re.compile(r"(?i)^\W*(?:you are|act as) [\w -]{1,40}[.!]?$")
_FORM = re.compile(
    r"(?i)^\W*(?:be|keep|answer|reply|output|respond|format|stay|stick to|do not|don['’]t|no|not more|at most|write in|"
    r"plain|time is|the (?:reader|budget|tone) (?:is|are|has))\b"
)
"""Beginnings of sentences on the form of an answer and its limits."""
_LIMIT = re.compile(
    rf"(?i)\b{_NUMBER}(?: to {_NUMBER})? {_UNIT}\b|\b(?:in|as|return|output|give) json\b|\bjson only\b"
    r"|\b(?:at most|no more than|as a table|are enough)\b"
)
"""Limits on an answer; a sentence that has more to say than them is a need all the same, and so is a question."""
SHORT, SHORT_FORM, SHORT_PERSONA = 14, 10, 6
"""Words of a sentence that says no more than its limits, than the form, and than who the agent is."""


def needs_of(request: str) -> tuple[str, ...]:
    """Returns the sentences of a request that name what it needs; the whole request if it is short, or has none."""
    if len(request) > LONGEST:
        return (request,)
    sentences = [sentence.strip() for sentence in sentences_of(request)]
    if len(sentences) < _LEAST_SENTENCES:
        return (request,)
    needs = [sentence for sentence in sentences if not _is_form(sentence)]
    return tuple(needs) or (request,)


def _is_form(sentence: str) -> bool:
    words = len(sentence.split())
    if sentence.endswith("?"):
        return False
    return (
        (words <= SHORT and _LIMIT.search(sentence) is not None)
        or (words <= SHORT_FORM and _FORM.match(sentence) is not None)
        or (words <= SHORT_PERSONA and _PERSONA.match(sentence) is not None)
    )


_A_VERSION = rf"(?:(?:{KINDS}|review|report)s?|deliver(?:y|able)|v\d+)"
_OF_A_CASE = re.compile(
    r"(?i)^\W*(?:plan|prepare|set up|schedule|start|begin|score|rate|grade|mark|evaluate|assess|judge)\b"
    rf".{{0,80}}\b{_A_VERSION}\b"
    rf"|\b(?:plan|draw up|lay down|score|grade|before you score|issues? for)\b.{{0,60}}\b{_A_VERSION}\b"
    rf"|\bnext {_A_VERSION}\b|\b(?:issues|complaints|points|problems)\b.{{0,40}}\b(?:still )?open\b"
)
"""Tasks that continue a case: who plans or judges its next version needs the state of its issues."""
_NEGATIVE_RESULTS = (
    r"\btried\b|\bin vain\b|without success|\bfailed\b|\bdone before\b|\bdead ends?|did not work|suggest|propos",
    (
        r"\btried\b|dropped|negative|dead ends?|in vain|did(?: not|n.t) work|failed|mistakes|abandon|given up|lessons|"
        r"without success|retrospect"
    ),
)
_SOURCES = (
    (
        r"\bsources?\b|\b(?:pages?|links?|sites?) (?:were|are|which|that)\b|\bcited?\b"
        r"|^\W*(?:collect|find|fetch|gather|look for|search|obtain)\b"
    ),
    r"\bsources?\b|\blinks?\b|references|trust|penali|reliab|\bregisters?\b",
)
_CALIBRATION = (
    (
        r"^\W*(?:score|rate|grade|mark|evaluate|assess|judge)\b"
        r"|\b(?:score|grade|marks?)\b.{0,60}\b(?:draft|0 to 10|version)\b"
    ),
    r"calibrat|\bjudges?\b|reviewer|scor(?:es?|ing)\b|\bbias|evaluator|grader",
)
_OF_SOURCES = (
    r"sources?|domains?|(?:web)?sites?|pages?|outlets?|publishers?",
    (
        r"avoid(?:ed)?|penali[sz]ed?|reliable|unreliable|trust(?:ed|worthy)?|cited?|quotable|weak|best|worst|banned|blocked|"
        r"allowed|excluded|judges?"
    ),
)
_OF_JUDGES = (
    r"judges?|reviewers?|humans?|people|persons?|founders?",
    (
        r"apart|far|differ(?:s|ent|ence|ences)?|disagree(?:s|ment)?|agree(?:s|ment)?|deviate|strict(?:er)?|lenient|harsh(?:er)?|"
        r"biased?|fair|calibrated"
    ),
)
_ASKS = re.compile(r"(?i)^\W*(?:which|what|who|how|where|are|is|do|does|can)\b")
"""The beginning of a question: "Block the sites" and "Publish the page" are tasks."""
_FORM_WORDS = STOP_WORDS | frozenset(
    ["should", "shall", "can", "could", "would", "must", "may", "much", "often", "one"]
)


class _KeptAt(NamedTuple):
    """A subject of requests, and where reports keep it."""

    asked: Pattern[str]
    place: Pattern[str]
    """The names of files and headings."""
    things: Pattern[str]
    traits: Pattern[str]
    """The words of a question for nothing else: the things, and what is asked of them ("Which domains should I
    avoid?")."""
    words: str
    """The words under which it is kept, by which such a question is searched."""


def _kept_at(patterns: tuple[str, str], question: tuple[str, str] = (r"(?!)", r"(?!)"), words: str = "") -> _KeptAt:
    asked, place, things, traits = (re.compile(pattern, re.IGNORECASE) for pattern in (*patterns, *question))
    return _KeptAt(asked, place, things, traits, words)


_PLACES = (
    _kept_at(_NEGATIVE_RESULTS),
    _kept_at(_SOURCES, _OF_SOURCES, "quality of sources"),
    _kept_at(_CALIBRATION, _OF_JUDGES, "difference between judges"),
)
"""Subjects of requests, and the names of files and headings under which reports keep them: what was tried in vain,
sources and their worth, and how far a judge can be trusted. These share few words with the requests that need them."""
OF_A_PLACE = 0.1
"""The gain of a rank by such a place, a seventh of what the best relevance gives. On six report trees it adds 0.01 to
0.02 to the right answers, 0.1 and 0.2 alike (benchmarks/retrieval.md)."""


def continues_a_case(needs: Iterable[str]) -> bool:
    """Tells if a request plans or judges a version of a case, or asks what is open in it."""
    return any(_OF_A_CASE.search(need) for need in needs)


def places_of(needs: Sequence[str]) -> Sequence[Pattern[str]]:
    """Returns the names of files and headings under which reports keep what a request asks for."""
    return [kept.place for kept in _PLACES if any(kept.asked.search(need) or _asks_for(need, kept) for need in needs)]


def words_of_place(needs: Sequence[str]) -> str:
    """Returns the words under which reports keep what a request asks for, if it asks for nothing else; else ""."""
    return next((kept.words for kept in _PLACES if len(needs) == 1 and _asks_for(needs[0], kept)), "")


def _asks_for(need: str, kept: _KeptAt) -> bool:
    if not _ASKS.match(need):
        return False
    words = [word for word in WORD.findall(need.lower()) if word not in _FORM_WORDS]
    things = [word for word in words if kept.things.fullmatch(word)]
    return 0 < len(things) < len(words) and all(kept.traits.fullmatch(word) for word in words if word not in things)


def gain_of_place(places: Sequence[Pattern[str]], name: str) -> float:
    """Returns what the name of a file, with its heading, adds to the rank of its passages."""
    return OF_A_PLACE if any(place.search(name) for place in places) else 0.0


_SEPARATORS = re.compile(r"[\W_]+")
_LONGEST_CODE = 2
"""Letters of codes like those of countries."""
_NO_NAME = re.compile(
    rf"{_A_VERSION}|plans?|tests?|tasks?|evaluations?|scores?|judge?ments?|notes?|project|study|the|and|for"
)
LEAST_NAMED, LEAST_VOTES = 0.5, 0.5
"""Share of a case's name that a request has, and share of the best passages, from which it is of that case."""


class Case(NamedTuple):
    """The case that a request is of."""

    name: str
    named: bool
    """True if the request has the whole name; else a part of it, or the best passages are of the case."""


def case_of(request: str, cases: Iterable[str], votes: Mapping[str, float]) -> Case | None:
    """Returns the case that a request is of; None if it is of none.

    `votes` are the shares of the best passages that are of each case. A part of a name is enough only with a vote.
    """
    words = _SEPARATORS.sub(" ", request.casefold()).split()
    runs = {"".join(words[at : at + length]) for length in (1, 2, 3) for at in range(len(words))}
    named = {case: share for case in cases if (share := _share_named(case, set(words), runs))}
    ranked = sorted(named, key=lambda case: (named[case], votes.get(case, 0.0), case), reverse=True)
    if ranked and (named[ranked[0]] == 1 or (named[ranked[0]] >= LEAST_NAMED and votes.get(ranked[0]))):
        return Case(ranked[0], named=named[ranked[0]] == 1)
    voted = max((case for case in votes if case != UNNAMED), key=lambda case: votes[case], default="")
    return Case(voted, named=False) if votes.get(voted, 0.0) >= LEAST_VOTES else None


def _share_named(case: str, words: set[str], runs: set[str]) -> float:
    """Returns the share of a case's name that a request has, by letters.

    Codes of countries and the like do not count, nor do words that say what kind of file or task it is.
    """
    parts = [part for part in case.split("-") if len(part) > _LONGEST_CODE and not _NO_NAME.fullmatch(part)]
    if not parts or case == UNNAMED:
        return 0.0
    if "".join(parts) in runs or case.replace("-", "") in runs:
        return 1.0
    return sum(len(part) for part in parts if part in words) / sum(map(len, parts))


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


class RolePart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that a role asks for."""

    title: Annotated[Name, Meta(pattern=r"\S", description="its name, for people")]
    facets: Annotated[tuple[Name, ...], Meta(max_length=20)] = ()
    """judgement, issues, recurring, calibration, sources, decisions, or a kind of memory."""
    words: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()
    weight: Annotated[float, Meta(ge=0, le=2)] = 0.5
    """Share by which a memory that serves it ranks higher: of MOST_OF_A_ROLE."""


RoleParts: TypeAlias = Annotated[tuple[RolePart, ...], Meta(max_length=8)]


@frozen
class Role:
    """The parts of an agent's history, the most important first."""

    name: str
    parts: tuple[RolePart, ...] = ()


DEFAULT_ROLE = Role(name="default")
_ROLES: Mapping[str, Role] = {
    name: Role(name=name, parts=parts)
    for name, parts in read_toml("app.recall.retrieval.rank", "roles.toml", dict[str, RoleParts]).items()
}
"""The roles that every workspace has; its own replace those of the same name."""


def role_of(agent: str | None, known: Mapping[str, Role] = _ROLES) -> Role:
    """Returns the role of an agent: the one of its name, or that its name has as a word (`market-judge-2`)."""
    name = (agent or "").strip().lower()
    words = re.findall(r"[^\W\d_]+", name)
    return next((known[word] for word in (name, *words) if word in known), known[DEFAULT_ROLE.name])


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


def roles_of(workspace: Workspace) -> dict[str, Role]:
    """Returns the roles of a workspace by name: those that every workspace has, or its own in their place."""
    return {**_ROLES, **msgspec.convert(workspace.roles, dict[str, Role])}
