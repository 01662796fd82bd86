"""Adds up weak signs of an order to the reader and the wording of a text, sentence by sentence. Pure.

Measured (benchmarks/injection.md): sentence vectors of the embedding model do not tell such orders from
their look-alikes.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import re2  # type: ignore[import-untyped] # the package has no types
from numpy.typing import NDArray

from app.foundation.safety import words
from app.foundation.safety.normal import Span, fold
from app.foundation.safety.rules import PACKAGE, linear
from app.foundation.text.data import read_toml

LANGUAGES = ("en", "ru", "de", "fr", "es")
"""Languages whose words stand between blanks; Chinese words do not."""
_KEYS = (*LANGUAGES, "zh", "any")
_SENTENCE_START = r"(?:^|[\n.!?。！？]\s*)"
STARTS, ENDS = r"(?:^|[^a-zа-я\d_])", r"(?:$|[^a-zа-я\d_])"
_CLAUSE = (
    r"(?:^[^a-zа-я\n]{0,8}|[\n.!?;:,\"'“”«»()\[\]{}<>*#|~=–—…¡¿-]\s*|"
    + STARTS
    + r"(?:please|kindly|must|should|shall|and|then|now|always|never|also|first|just|simply|immediately|instead|you|"
    r"will|not|n['’]t|can|could|would|or|(?:need|have|has|sure|remember|task is|required|asked|want you|free|told|is|"
    r"are|advised|obliged) to|bitte|und|dann|zuerst|jetzt|nun|immer|nie|niemals|also|nicht|et|puis|ensuite|donc|"
    r"merci de|veuillez|d['’]abord|plutot|toujours|ne|n['’]|y|por favor|luego|despues|primero|siempre|nunca|no|asi que|"
    r"и|а|затем|потом|сначала|пожалуиста|всегда|никогда|не|строго|срочно|так что|просто|теперь)\s+(?:[a-z]+\s+)?)"
)
"""A place at which an order may begin: the start of a clause, or a word that orders follow."""
_BREAK = re.compile(r"[。！？]{1,8}+[\"'”»)]{0,8}+|[.!?]{1,8}+[\"'”»)]{0,8}+(?=\s|$)|\n")
"""The end of a sentence."""
_LONGEST = 300
"""Characters of a stretch of a longer sentence: signs far apart have nothing to do with each other."""
NEAR = 0.8
"""Share of a sign's weight that it has in the sentences next to its own."""
_SYNTAX = re.compile(r"[{}\[\]\"<>|=]|[:,;](?=\s*[\"{\[\d])")
"""Characters that structure data and code."""
_MOST_SYNTAX = 1 / 8
"""Share of such characters from which on a sentence is data: 0.2 to 0.5 in lines of JSON, under 0.1 in quoted prose."""
_LEAST_DATA = 30
"""Characters of the shortest sentence that may be data: a quoted word is none."""
_RUN = re.compile(r"[^{}\[\]\"<>|=\n]{40,}")
"""Text without structure, such as a long value of a JSON object."""
_MOST_OF_A_SIGN = 2_000
"""Places of one sign in one text; later ones do not count."""


class Sign(NamedTuple):
    """A weak sign, with its expression for RE2."""

    name: str
    pattern: Any


@dataclass(frozen=True, slots=True)
class SignWeights:
    """A logistic sum over signs, to which the score of the words is added. `python -m benchmarks.evidence` fits it."""

    bias: float
    suspect: float
    """Score from which on a sentence is suspect."""
    block: float
    """Score from which on a sentence refuses its text."""
    signs: Mapping[str, float]

    def score(self, found: Mapping[str, float]) -> float:
        """Returns the logit of a sentence with these signs, each with its share."""
        return self.bias + sum(self.signs[name] * share for name, share in found.items())

    def most(self, present: Iterable[str]) -> float:
        """Returns a score that no sentence of a text with these signs exceeds, without its words."""
        return self.bias + sum(max(0.0, self.signs[name]) for name in present)


class SuspectSentence(NamedTuple):
    """A sentence that seems to give the reader an order."""

    span: Span
    score: float


@functools.cache
def weights() -> SignWeights:
    """Reads the fitted weights."""
    return read_toml(PACKAGE, "weights.toml", SignWeights)


@functools.cache
def signs() -> tuple[Sign, ...]:
    """Compiles every sign."""
    given = read_toml(PACKAGE, "signs.toml", dict[str, list[dict[str, Any]]])["sign"]
    texts = {sign["name"]: {key: _text(key, sign[key]) for key in _KEYS if key in sign} for sign in given}
    lists = {f"{{{name}.{key}}}": text for name, found in texts.items() for key, text in found.items()}
    lists["{start}"] = _SENTENCE_START
    return tuple(
        Sign(sign["name"], linear(f"(?i:{_pattern(texts[sign['name']], sign.get('clause', ()), lists)})"))
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
    return fold(text.replace("@", "[a-zа-я]*") if key in LANGUAGES else text)


def _pattern(texts: Mapping[str, str], clause: Sequence[str], lists: Mapping[str, str]) -> str:
    parts = []
    for key, text in texts.items():
        for name, alternatives in lists.items():
            text = text.replace(name, alternatives)  # noqa: PLW2901 - filled step by step
        bounded = key in LANGUAGES
        parts.append(f"{(_CLAUSE if key in clause else STARTS) if bounded else ''}(?:{text}){ENDS if bounded else ''}")
    return "|".join(parts)


def evidence(texts: Sequence[str], quoted: Sequence[Callable[[], Sequence[Span]]]) -> list[list[SuspectSentence]]:
    """Returns the suspect sentences of each normalised text. What stands in a `quoted` span of it does not count."""
    found = _suspect(texts)
    spans = {place: quoted[place]() for place, items in enumerate(found) if items}
    again = [place for place, own in spans.items() if own]
    for place, items in zip(again, _suspect([blank_out(texts[place], spans[place]) for place in again]), strict=True):
        found[place] = items
    return found


def _suspect(texts: Sequence[str]) -> list[list[SuspectSentence]]:
    read = [without_data(text) for text in texts]
    spans = [sentence_spans(text) for text in read]
    # An address or a name of a file is read by the rules.
    asked = [place for place, text in enumerate(read) if spans[place] and (" " in text or not text.isascii())]
    wording = words.scores([read[place] for place in asked], [[start for start, _ in spans[place]] for place in asked])
    found: list[list[SuspectSentence]] = [[] for _ in texts]
    for place, scores in zip(asked, wording, strict=True):
        found[place] = _score_sentences(read[place], spans[place], scores)
    return found


def _score_sentences(text: str, spans: Sequence[Span], wording: NDArray[np.float64]) -> list[SuspectSentence]:
    """Returns the suspect sentences of a text, given the score of the words of each sentence."""
    model, present = weights(), present_signs(text)
    if model.most(sign.name for sign in present) + max(wording) < model.suspect:
        return []
    found = zip(spans, shares(text, spans, present), wording, strict=True)
    scored = (SuspectSentence(span, model.score(names) + said) for span, names, said in found)
    return [item for item in scored if item.score >= model.suspect]


def blank_out(text: str, spans: Sequence[Span]) -> str:
    """Returns a text with blanks in these spans."""
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], " " * (end - start)]
        last = end
    return "".join([*parts, text[last:]])


def without_data(text: str) -> str:
    """Returns a text with blanks in place of data and code, which hold words but no orders. Their long values stay."""
    return blank_out(text, list(_data_spans(text))) if _SYNTAX.search(text) else text


def _data_spans(text: str) -> Iterator[Span]:
    last = 0
    for start, end in (*(run.span() for run in _RUN.finditer(text)), (len(text), len(text))):
        between = text[last:start]
        yield from (
            (last + first, last + after) for first, after in sentence_spans(between) if _is_data(between[first:after])
        )
        last = end


def _is_data(sentence: str) -> bool:
    return len(sentence) >= _LEAST_DATA and len(_SYNTAX.findall(sentence)) > _MOST_SYNTAX * len(sentence)


def sentence_spans(text: str) -> list[Span]:
    """Returns the spans of the sentences that say something."""
    spans, start = [], 0
    for end in (*(match.end() for match in _BREAK.finditer(text)), len(text)):
        for first in range(start, end, _LONGEST):
            part = text[first : min(end, first + _LONGEST)]
            if not part.isspace():
                spans.append((first + len(part) - len(part.lstrip()), first + len(part.rstrip())))
        start = end
    return spans


def present_signs(text: str) -> list[Sign]:
    """Returns the signs that occur in a text."""
    return [signs()[place] for place in _filter().Match(text, potential=False) or ()]


def shares(text: str, spans: Sequence[Span], present: Sequence[Sign]) -> Iterator[dict[str, float]]:
    """Yields the signs of each sentence, and with a smaller share those of the sentences next to it."""
    starts = [start for start, _ in spans]
    own: list[set[str]] = [set() for _ in spans]
    for sign in present:
        for match in itertools.islice(sign.pattern.finditer(text), _MOST_OF_A_SIGN):
            own[max(0, bisect.bisect_right(starts, (match.start() + match.end()) // 2) - 1)].add(sign.name)
    for place, names in enumerate(own):
        beside = set().union(*own[max(0, place - 1) : place + 2])
        yield {name: 1.0 if name in names else NEAR for name in beside}
