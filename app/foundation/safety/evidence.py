"""Adds up weak signs of an order to the reader and the wording of a text, sentence by sentence. Pure.

The wording is the words, pairs of words and parts of words that orders to a reader are made of: a feature is a number
below `BUCKETS`, made by hashing, so that no list of words is kept. Everything runs on arrays, in time linear in the
text. Measured (benchmarks/injection.md): sentence vectors of the embedding model do not tell such orders from their
look-alikes.
"""

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import re2  # type: ignore[import-untyped] # the package has no types
from numpy.typing import NDArray

from app.foundation.safety.rules import PACKAGE, Span, fold, linear
from app.foundation.text.data import read_toml
from app.foundation.text.passages import groups_within

_BUCKETS_BITS = 18
BUCKETS = 1 << _BUCKETS_BITS
_PARTS = (3, 4, 5)
"""Lengths of the parts of words, in letters: they tell forms and compounds of a word that is known."""
_LONGEST_WORD = 40
"""Letters of the longest word whose parts count: what is longer is no word."""
_STEM = 4
"""Letters at the beginning of a word that stand for all of its forms."""
_FEWEST = 64
"""Features of about eight words."""
_PORTION = 32_768
"""Characters that are read together."""
LETTER, _DIGIT, _SINGLE = 1, 2, 3
"""Kinds of characters: letters and digits form runs, a Chinese character or a mark stands alone."""
_MARKS = '!?:<>[]{}@#/`"«“'
_ODD = np.uint64(0x9E3779B97F4A7C15)
_POWERS = np.cumprod(np.full(64, 0x100000001B3, np.uint64))

Hashes = NDArray[np.uint64]


class Features(NamedTuple):
    """The features of a text, in no order."""

    places: NDArray[np.int64]
    """Place of each feature in the text, in characters."""
    buckets: NDArray[np.int64]


@functools.cache
def _kinds() -> NDArray[np.uint8]:
    """Returns the kind of each character of the first plane, after folding and in lower case."""
    kinds = np.zeros(1 << 16, np.uint8)
    for first, last in ("az", "ая"):
        kinds[ord(first) : ord(last) + 1] = LETTER
    kinds[ord("0") : ord("9") + 1] = _DIGIT
    kinds[0x3400:0xA000] = _SINGLE
    kinds[[ord(mark) for mark in _MARKS]] = _SINGLE
    return kinds


def features(texts: Sequence[str]) -> Features:
    """Returns the features of normalised texts, as if they were one; none has words of two texts."""
    read = "\n".join(map(_lower, texts))
    codes = np.frombuffer(read.encode("utf-32-le", "replace"), np.uint32)
    kinds = _kinds()[np.minimum(codes, 0xFFFF)]
    places = np.flatnonzero(kinds)
    if not len(places):
        return Features(places, places)
    letters, kinds = codes[places].astype(np.uint64), kinds[places]
    first = np.ones(len(places), bool)
    first[1:] = (kinds[1:] != kinds[:-1]) | (kinds[1:] == _SINGLE) | (np.diff(places) > 1)
    letters[kinds == _DIGIT] = np.where(first[kinds == _DIGIT], ord("0"), 0)
    starts = np.flatnonzero(first)
    word = np.cumsum(first) - 1
    within, size = np.arange(len(places)) - starts[word], np.bincount(word)[word]
    spelled = letters * _POWERS[np.minimum(within, len(_POWERS) - 1)]
    words = np.add.reduceat(spelled, starts)
    stems = np.add.reduceat(np.where(within < _STEM, spelled, 0), starts)
    owners = np.searchsorted(_starts_of(texts), places[starts], side="right")
    parts = [*_sequences(words, stems, owners), *_parts(letters, first, (kinds == LETTER) & (size <= _LONGEST_WORD))]
    found = [(places[starts[item] if of_words else item], hashes) for of_words, item, hashes in parts]
    return Features(np.concatenate([place for place, _ in found]), np.concatenate([_bucket(item) for _, item in found]))


def _starts_of(texts: Sequence[str]) -> list[int]:
    """Returns the place of each text among the features of all."""
    return list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))


def _lower(text: str) -> str:
    """Returns a text in lower case, each character at its place."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(min(letter.lower(), letter, key=len) for letter in text)


Part = tuple[bool, NDArray[np.int64], Hashes]
"""True if the places are those of words, the places, and the hashes."""


def _sequences(words: Hashes, stems: Hashes, owners: NDArray[np.int64]) -> list[Part]:
    """Returns the words, pairs of words and of stems that follow each other, pairs with a gap, and triples.

    Those of a sequence have one owner.
    """
    every = np.arange(len(words))
    two, three = np.flatnonzero(owners[1:] == owners[:-1]), np.flatnonzero(owners[2:] == owners[:-2])
    return [
        (True, every, words),
        (True, two + 1, words[two] * _POWERS[1] + words[two + 1] + _POWERS[11]),
        (True, two + 1, stems[two] * _POWERS[2] + stems[two + 1] + _POWERS[12]),
        (True, three + 2, words[three] * _POWERS[3] + words[three + 2] + _POWERS[13]),
        (True, three + 2, words[three] * _POWERS[4] + words[three + 1] * _POWERS[5] + words[three + 2] + _POWERS[14]),
    ]


def _parts(letters: Hashes, first: NDArray[np.bool_], of_words: NDArray[np.bool_]) -> list[Part]:
    """Returns the runs of letters inside a word. One at an edge of the word differs from one in the middle.

    A run's hash continues that of the run of one letter less.
    """
    found: list[Part] = []
    last = np.append(first[1:], True)
    hashes, inside = letters * _POWERS[0], of_words
    for step in range(1, min(_PARTS[-1], len(letters))):
        size = len(letters) - step
        hashes = hashes[:size] + letters[step:] * _POWERS[step]
        inside = inside[:size] & of_words[step:] & ~first[step:]
        if (length := step + 1) in _PARTS:
            kept = np.flatnonzero(inside)
            at_edges = first[kept] * _POWERS[30] + last[kept + step] * _POWERS[31]
            found.append((False, kept, hashes[kept] + _POWERS[20 + length] + at_edges))
    return found


def _bucket(hashes: Hashes) -> NDArray[np.int64]:
    mixed = (hashes ^ (hashes >> np.uint64(29))) * _ODD
    return (mixed >> np.uint64(64 - _BUCKETS_BITS)).astype(np.int64)


@functools.cache
def table() -> NDArray[np.float32]:
    """Reads the weight of each bucket. `python -m benchmarks.evidence --write` fits them."""
    stored = np.load(BytesIO(files("app.foundation.safety").joinpath("words.npz").read_bytes()))
    return np.asarray(stored["weights"] * stored["unit"], np.float32)


def wording_scores(texts: Sequence[str], starts: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Returns the score of each sentence together with those beside it, text by text.

    `starts` has the places of each text's sentences. The sum of the weights is divided by the root of their number, so
    that a long sentence has no advantage. Fewer features than _FEWEST say nothing.

    Texts are read together, because a step of numpy's takes longer to begin than to read a paragraph.
    """
    portions = groups_within(map(len, texts), _PORTION)
    return [score for portion in portions for score in _scores(texts[portion], starts[portion])]


def _scores(texts: Sequence[str], starts: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    found = features(texts)
    # What stands before a text's first sentence belongs to it.
    places = [start + place for start, own in zip(_starts_of(texts), starts, strict=True) for place in (0, *own[1:])]
    counts = [len(own) for own in starts]
    owners = np.searchsorted(places, found.places, side="right") - 1
    text_of = np.repeat(np.arange(len(texts)), counts)
    sums = _beside(np.bincount(owners, table()[found.buckets], len(places)), text_of)
    numbers = _beside(np.bincount(owners, minlength=len(places)), text_of)
    scored = np.where(numbers < _FEWEST, -np.inf, sums / np.sqrt(np.maximum(numbers, 1)))
    return np.split(scored, np.cumsum(counts)[:-1])


def _beside(values: NDArray[np.float64] | NDArray[np.int64], texts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the sum of each value and its two neighbours in the same text; `texts` has the text of each value."""
    summed = np.array(values, np.float64)
    joined = texts[1:] == texts[:-1]
    summed[1:] += np.where(joined, values[:-1], 0)
    summed[:-1] += np.where(joined, values[1:], 0)
    return summed


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
_EMAIL = re.compile(r"[\w.+-]{1,60}@[\w-]{1,60}\.[a-z][\w.-]{1,60}")
_ORDERS = frozenset({"send", "do", "say"})
"""Signs of an order, whose target an address may be. Of paragraphs of 17 real repositories with an address appended
0.10 were suspect, and 0.03 are; 11 of 2,910 injections that were caught are not (benchmarks/injection.md)."""
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
    wording = wording_scores(
        [read[place] for place in asked], [[start for start, _ in spans[place]] for place in asked]
    )
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
    """Returns a text with blanks in place of data and code, which hold words but no orders. Their long values stay.

    So does an e-mail address in a sentence that orders something; one in another sentence only says whose it is.
    """
    read = blank_out(text, list(_data_spans(text))) if _SYNTAX.search(text) else text
    return blank_out(read, list(_named_addresses(read))) if "@" in read else read


def _named_addresses(text: str) -> Iterator[Span]:
    """Yields the e-mail addresses in sentences without an order."""
    orders = [sign.pattern for sign in signs() if sign.name in _ORDERS]
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        found = [match.span() for match in _EMAIL.finditer(sentence)]
        if found and not any(order.search(sentence) for order in orders):
            yield from ((start + first, start + after) for first, after in found)


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
