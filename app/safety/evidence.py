"""Adds up weak signs of an order to the reader. None says much alone; the sum decides, sentence by sentence. Pure.

Measured (docs/injection.md): sentence vectors of the embedding model do not tell such orders from their look-alikes.
"""

import bisect
import functools
import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped] # the package has no types

from app.safety.normal import Span, folded
from app.safety.readings import within
from app.safety.rules import linear

LANGUAGES = ("en", "ru", "de", "fr", "es")
"""Languages whose words stand between blanks; Chinese words do not."""
KEYS = (*LANGUAGES, "zh", "any")
SENTENCE_START = r"(?:^|[\n.!?。！？]\s*)"
STARTS, ENDS = r"(?:^|[^a-zа-я\d_])", r"(?:$|[^a-zа-я\d_])"
CLAUSE = (
    r"(?:^[^a-zа-я\n]{0,8}|[\n.!?;:,\"'“”«»()\[\]{}<>*#|~=–—…¡¿-]\s*|"
    + STARTS
    + r"(?:please|kindly|must|should|shall|and|then|now|always|never|also|first|just|simply|immediately|instead|you|"
    r"will|not|n['’]t|can|could|would|or|(?:need|have|has|sure|remember|task is|required|asked|want you|free|told|is|"
    r"are|advised|obliged) to|bitte|und|dann|zuerst|jetzt|nun|immer|nie|niemals|also|nicht|et|puis|ensuite|donc|"
    r"merci de|veuillez|d['’]abord|plutot|toujours|ne|n['’]|y|por favor|luego|despues|primero|siempre|nunca|no|asi que|"
    r"и|а|затем|потом|сначала|пожалуиста|всегда|никогда|не|строго|срочно|так что|просто|теперь)\s+(?:[a-z]+\s+)?)"
)
"""A place at which an order may begin: the start of a clause, or a word that orders follow."""
SENTENCE = re.compile(
    r"\s*(\S[^\n.!?。！？]{0,300}(?:[.!?](?!\s|$)[^\n.!?。！？]{0,300}){0,4}(?:[.!?。！？]+[\"'”»)]*)?)"
)
"""A sentence, or a stretch of a longer one: signs far apart have nothing to do with each other."""
NEAR = 0.8
"""Share of a sign's weight that it has in the sentences next to its own."""
MOST_OF_A_SIGN = 2_000
"""Places of one sign in one text; later ones do not count."""


class Sign(NamedTuple):
    """A weak sign, with its expression for RE2."""

    name: str
    pattern: Any


@dataclass(frozen=True, slots=True)
class Weights:
    """A logistic sum over signs. `python -m benchmarks.evidence` fits and measures it."""

    bias: float
    suspect: float
    """Score from which on a sentence is suspect."""
    block: float
    """Score from which on a sentence refuses its text."""
    signs: Mapping[str, float]
    pairs: Mapping[tuple[str, str], float]
    """Weights of signs, or groups of signs, that occur together."""
    groups: Mapping[str, Sequence[str]]

    def terms(self, found: Mapping[str, float]) -> Iterator[tuple[str | tuple[str, str], float]]:
        """Yields each sign and pair that a sentence has, with its share."""
        yield from found.items()
        shares = dict(found)
        for name, members in self.groups.items():
            shares[name] = max((found.get(member, 0.0) for member in members), default=0.0)
        for pair in self.pairs:
            one, other = pair
            share = shares.get(one, 0.0) * shares.get(other, 0.0)
            if share:
                yield pair, share

    def weight(self, term: str | tuple[str, str]) -> float:
        """Returns the weight of a sign or a pair."""
        return self.signs.get(term, 0.0) if isinstance(term, str) else self.pairs[term]

    def score(self, found: Mapping[str, float]) -> float:
        """Returns the logit of a sentence with these signs, each with its share."""
        return self.bias + sum(self.weight(term) * share for term, share in self.terms(found))

    def most(self, present: Iterable[str]) -> float:
        """Returns a score that no sentence of a text with these signs exceeds."""
        terms = self.terms(dict.fromkeys(present, 1.0))
        return self.bias + sum(max(0.0, self.weight(term)) for term, _ in terms)


class Evidence(NamedTuple):
    """A sentence that seems to give the reader an order."""

    span: Span
    score: float


def data_of(name: str) -> dict[str, Any]:
    """Reads a file of signs or weights."""
    return tomllib.loads(files("app.safety").joinpath(name).read_text(encoding="utf-8"))


@functools.cache
def weights() -> Weights:
    """Reads the fitted weights."""
    fitted = data_of("weights.toml")
    pairs = {(pair["of"][0], pair["of"][1]): pair["weight"] for pair in fitted.pop("pair")}
    return Weights(**fitted, pairs=pairs, groups=data_of("signs.toml")["groups"])


@functools.cache
def signs() -> tuple[Sign, ...]:
    """Compiles every sign."""
    given: list[dict[str, Any]] = data_of("signs.toml")["sign"]
    texts = {sign["name"]: {key: _text(key, sign[key]) for key in KEYS if key in sign} for sign in given}
    words = {f"{{{name}.{key}}}": text for name, found in texts.items() for key, text in found.items()}
    words["{start}"] = SENTENCE_START
    return tuple(
        Sign(sign["name"], linear(f"(?i:{_pattern(texts[sign['name']], sign.get('clause', ()), words)})"))
        for sign in given
    )


@functools.cache
def _filter() -> Any:  # noqa: ANN401 - re2 has no types
    """Compiles what tells which signs a text has. One set of all is faster, but takes 20 s for a megabyte of signs."""
    found, options = re2.Filter(), re2.Options()
    for sign in signs():
        found.Add(sign.pattern.pattern, options)
    found.Compile()
    return found


def _text(key: str, text: str) -> str:
    return folded(text.replace("@", "[a-zа-я]*") if key in LANGUAGES else text)


def _pattern(texts: Mapping[str, str], clause: Sequence[str], words: Mapping[str, str]) -> str:
    parts = []
    for key, text in texts.items():
        for name, alternatives in words.items():
            text = text.replace(name, alternatives)  # noqa: PLW2901 - filled step by step
        bounded = key in LANGUAGES
        parts.append(f"{(CLAUSE if key in clause else STARTS) if bounded else ''}(?:{text}){ENDS if bounded else ''}")
    return "|".join(parts)


def evidence(text: str, quoted: Callable[[], Sequence[Span]] = tuple) -> list[Evidence]:
    """Returns the suspect sentences of a normalised text. Signs in a `quoted` span do not count."""
    model = weights()
    every = signs()
    present = [every[place] for place in _filter().Match(text, potential=False) or ()]
    if not present or model.most(sign.name for sign in present) < model.suspect:
        return []
    scored = (Evidence(span, model.score(found)) for span, found in sentences(text, present, quoted()))
    return [item for item in scored if item.score >= model.suspect]


def sentences(
    text: str, present: Sequence[Sign], quoted: Sequence[Span] = ()
) -> Iterator[tuple[Span, dict[str, float]]]:
    """Yields each sentence with the signs in it, and those in the sentences next to it with a smaller share."""
    spans = [match.span(1) for match in SENTENCE.finditer(text)]
    starts = [start for start, _ in spans]
    own: list[set[str]] = [set() for _ in spans]
    for sign in present:
        for match in itertools.islice(sign.pattern.finditer(text), MOST_OF_A_SIGN):
            middle = (match.start() + match.end()) // 2
            place = bisect.bisect_right(starts, middle) - 1
            if place >= 0 and not within(quoted, middle, middle + 1):
                own[place].add(sign.name)
    for place, span in enumerate(spans):
        if own[place]:
            beside = set().union(*own[max(0, place - 1) : place + 2])
            yield span, {name: 1.0 if name in own[place] else NEAR for name in beside}
