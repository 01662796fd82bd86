"""Finds the words and names of a text, and tells if two texts say the same. Pure.

Stop words and stems are our own. Measured: with stopwordsiso 6 of 214 tests fail, because its list has "test", "case"
and "system". Snowball stems change no recall figure (LoCoMo is identical), need the language, and take 0.2 µs a word,
while cutting a word takes 0.05 µs. Texts are compared by shingles, words, numbers and negations; thresholds are the
callers'.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple, TypeVar

STEM = 7
"""Letters that count as a word's stem: enough to tell most words apart in the languages of STOP_WORDS."""

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+")
"""A word; in scripts without blanks between words, each character."""
UNSPACED = f"{IDEOGRAPHS}\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3"
"""The characters of scripts in which a name has other words beside it without a blank."""
PAIR = re.compile(f"[{UNSPACED}]{{2}}")
"""A pair of characters, by which texts in scripts without blanks are indexed (`priors_spaced` in the database)."""
_LATIN = re.compile("[^\\W\\d_\u0250-\U0010ffff]")
_LETTER = re.compile(r"[^\W\d_]")
READ = 2_000
"""Characters of a text by which its script is told; the bundled model reads no more. All of 300,000 take 50 ms."""
_PATH_MARKS = re.compile(r"[/_.-]+")
STOP_WORDS = frozenset(
    """the a an and or but of in on at to for from by with without as is are was were be been it its this that these
    those not no than then so such into over under more most less least very can could will would should may might has
    have had do does did they their them he she his her we our you your i me my which who what when where how и в на с
    по для из от до не что это как к у о за но или же был была были есть der die das und oder ein eine ist le la les et
    un une de des est el los las y que en""".split()  # noqa: SIM905 - a hundred quoted words cannot be read
)
_DROPPED = dict.fromkeys(
    map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff")
)
_AS = {ord("\u2122"): " ", ord("\u2120"): " "}
_HYPHENS = {ord("\u2010"): "-", ord("\u2011"): "-"}
_GROUPED = re.compile("(?<=\\d)[\u00a0\u2007\u2009\u202f](?=\\d{3}(?!\\d))")
SPEAKS = re.compile(r"[^\W_]")
"""A letter or a digit: a text without one is bare punctuation."""


def fold(text: str) -> str:
    """Returns a text in the form in which it is compared, as `priors_folded` does in the database.

    What looks the same is the same (NFKC), without soft hyphens, zero-width characters and marks of direction.
    """
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKC", _GROUPED.sub("", text).translate(_DROPPED | _AS))
    return normal.translate(_HYPHENS)


def in_one_line(text: str) -> str:
    """Returns a text in one line, with one blank between words."""
    return " ".join(text.split())


def path_in_words(path: str) -> str:
    """Returns a path with blanks between its words: `adr 0032 event stream md`."""
    return _PATH_MARKS.sub(" ", path)


def content_words(text: str) -> frozenset[str]:
    """Returns the stems of a text's words without stop words and numbers."""
    return frozenset(
        word[:STEM]
        for word in WORD.findall(fold(text).lower())
        if word not in STOP_WORDS and not word.isdigit() and (len(word) > 1 or not word.isascii())
    )


def is_latin(text: str) -> bool:
    """Tells if at least half of the letters at a text's beginning are Latin; True for a text without letters."""
    beginning = text[:READ]
    return beginning.isascii() or 2 * len(_LATIN.findall(beginning)) >= len(_LETTER.findall(beginning))


# Names are found by capitals that no sentence begins with, without a model.
_NAME_WORD = re.compile(r"[^\W\d_][\w’'-]*")
SENTENCE_BEGINS = re.compile(r"(?:^|\n\s*|[.!?:;…][\"”’»)\]]*\s+|[-*#>|]\s+)[\"“„«(\[*_]*$")
BEFORE = 8
"""Characters before a word that tell whether it begins a sentence."""
LINKING = frozenset({"of", "de", "du", "der", "von", "van", "la", "le"})
"""Words in lower case that stand inside a name; "and" stands between two."""
AFTER_LINKING = LINKING | {"the"}
"""After one of them an article may follow too: "Bank of the West" is one name, "In March the Kestrel …" has two."""
MOST_LINKING = 2
"""Most linking words between two other words of a name, as in "Banco de la Plata"."""
SHORTEST_NAME, LONGEST_NAME = 3, 100
"""Least and most characters of a name."""
MOST_NAMES = 32
"""Most names of a text that are looked up, the first ones."""
_NOUNS_HAVE_CAPITALS = frozenset({"german"})
"""Languages in which one word with a capital is any noun: only runs of several are names."""


def names(text: str, language: str) -> Sequence[str]:
    """Returns the names in a text, each once: runs of capitalised words, except a word that only begins a sentence.

    "In March the Kestrel gateway met Ada Lovelace." has March, Kestrel and Ada Lovelace. A stop word at the front of a
    run belongs to the sentence ("The Kestrel"); a text in a script without capitals has none.
    """
    least = 2 if language in _NOUNS_HAVE_CAPITALS else 1
    found: dict[str, None] = {}
    for run in _runs(text):
        first = run[0]
        begins = SENTENCE_BEGINS.search(text[max(0, first.start() - BEFORE) : first.start()])
        kept = _without_stop_words(run)
        if len(kept) < least or (begins and len(run) == 1):
            continue
        name = _bare(text[kept[0].start() : kept[-1].end()])
        if SHORTEST_NAME <= len(name) <= LONGEST_NAME:
            found[name] = None
    return list(found)[:MOST_NAMES]


def says(text: str, name: str) -> bool:
    """Returns True if the text has this name, written like this."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _runs(text: str) -> Iterator[list[re.Match[str]]]:
    """Yields runs of words with capitals, one blank between two of them, with the linking words inside a run."""
    run: list[re.Match[str]] = []
    linking: list[re.Match[str]] = []
    for word in _NAME_WORD.finditer(text):
        before = (linking or run)[-1:]
        joined = bool(before) and text[before[0].end() : word.start()] == " "
        if word.group()[0].isupper():
            if run and not joined:
                yield run
                run = []
            run += [*(linking if run else ()), word]
            linking = []
        elif run and joined and len(linking) < MOST_LINKING and word.group() in (AFTER_LINKING if linking else LINKING):
            linking = [*linking, word]
        elif run:
            yield run
            run, linking = [], []
    if run:
        yield run


def _without_stop_words(run: Sequence[re.Match[str]]) -> Sequence[re.Match[str]]:
    for place, word in enumerate(run):
        if word.group().casefold() not in STOP_WORDS and len(word.group()) > 1:
            return run[place:]
    return ()


def _bare(name: str) -> str:
    return re.sub(r"(?:['’]s)?['’-]*$", "", name)


def count_noun(count: int, noun: str) -> str:
    """Returns a number with a regular noun in its singular or plural: `1 run`, `2,000 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_TITLES_KNOWN = 20_000
"""Titles whose words are cached: the next query has many of the same titles in its pool."""


_title_words = lru_cache(maxsize=_TITLES_KNOWN)(content_words)


def titles_in_query(query: str, titles: Sequence[str]) -> list[bool]:
    """Returns, for each title, whether the query has all its content words; False for a title without any."""
    asked = content_words(query)
    return [bool(words) and words <= asked for words in map(_title_words, titles)]


T = TypeVar("T")
SHINGLE_WORDS = 4
"""Words of a shingle (Broder 1997): unrelated texts share runs of three, an edited sentence loses runs of five."""
NEGATION = re.compile(
    r"\b(?:not?|never|none|neither|nor|without|cannot|hardly|fails? to|failed to|не|нет|ни|без|nicht|kein\w*|nie|ohne|"
    r"ne|pas|sans|jamais|sin|nunca)\b|n['’]t\b|[不没]",
    re.IGNORECASE,
)
_NEUTRAL = frozenset(
    word[:STEM]
    for word in """
    the a an and of in on at to for from by with as is are was were be been it its this that these those has
    have had do does did so they their them he she his her we our you your i my me which who can will could
    should would may might must shall also because since hence thus therefore there here see note noted earlier
    previous previously already again according memory history reported states stated says said и в на с по для
    из от что это как к у о за же был была были есть der die das und ein eine ist war le la les et un une des
    est el los las y en
    """.split()  # noqa: SIM905 - as above
)
"""Stems of words that do not change a statement: articles, copulas, conjunctions, and words for its author.
Comparisons (more, over, before, only) are not among them."""
_MEASURE = re.compile(r"((?:[<>≤≥]=?\s?|[-+−])?\d+(?:[.,]\d+)*)\s?(%|‰|[^\W\d_]{1,3}\b)?")
"""A number with its sign or comparison, and its unit."""
COMPARED_CHARACTERS = 4_000
"""Characters at each end of a text that are compared; a text longer than both is compared by its ends and its
length. A chunk, an observation and a turn are shorter. Comparing 250 whole texts of 20,000 characters took 5 s."""
_REMEMBERED = 2_048
"""Texts whose wording is remembered: those that are hits again and again."""
SHORTEST_REWORDED = 8
"""Least words of a text that is compared in other words: a shorter text is too short for a sure result."""


def shingles(text: str) -> frozenset[str]:
    """Returns the case-folded runs of SHINGLE_WORDS words; of a shorter text, all its words as one run."""
    words = WORD.findall(fold(text).casefold())
    if len(words) <= SHINGLE_WORDS:
        return frozenset({" ".join(words)} if words else ())
    return frozenset(map(" ".join, zip(*(words[at:] for at in range(SHINGLE_WORDS)), strict=False)))


def resemblance(one: frozenset[T], other: frozenset[T]) -> float:
    """Returns the Jaccard index of two sets of shingles, 0 to 1; 0 if both are empty."""
    shared = len(one & other)
    together = len(one) + len(other) - shared
    return shared / together if together else 0.0


def share_of_smaller(one: Set[T], other: Set[T]) -> float:
    """Returns the share of the smaller of two sets that both have; 0 if one is empty."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def same_figures(one: str, other: str) -> bool:
    """Tells if two texts have the same numbers and equally many negations."""
    return measures(one) == measures(other) and len(NEGATION.findall(one)) == len(NEGATION.findall(other))


class Wording(NamedTuple):
    """The words of a text, as near-identical texts are told by them."""

    length: int
    """Length of the text in characters."""
    runs: frozenset[int]
    """Its runs of words as hashes, which take half the memory."""

    def is_near(self, other: "Wording", least: float) -> bool:
        """Tells if another text is near-identical: by the Jaccard index of both, and by the lengths of long texts.

        The sizes of the two sets alone exclude most pairs.
        """
        shortest, longest = len(self.runs), len(other.runs)
        if shortest < least * longest or longest < least * shortest or resemblance(self.runs, other.runs) < least:
            return False
        shortest, longest = sorted((self.length, other.length))
        return longest <= 2 * COMPARED_CHARACTERS or shortest >= least * longest


@lru_cache(maxsize=_REMEMBERED)
def wording(body: str) -> Wording:
    """Returns the form in which `body` is compared; a text without words, like a smile, is one run."""
    body = body.strip()
    shown = body
    if len(body) > 2 * COMPARED_CHARACTERS:
        shown = f"{body[:COMPARED_CHARACTERS]} {body[-COMPARED_CHARACTERS:]}"
    return Wording(len(body), frozenset(map(hash, shingles(shown) or {shown})))


class Statement(NamedTuple):
    """The statement of a text, in a form that is compared with others."""

    measures: frozenset[tuple[str, str]]
    words: frozenset[str]
    """The stems of its words without numbers."""
    negations: int

    def adds_nothing(self, known: "Statement") -> bool:
        """Tells if `known` has all measures and words, except neutral words, and equally many negations.

        Vectors cannot tell this: two texts of which one says "accepted" and the other "rejected" have a cosine of up to
        0.99. So one new word or a different number of negations makes a text new.
        """
        if self.negations != known.negations or not self.measures <= known.measures:
            return False
        return self.words - known.words <= _NEUTRAL


def statement_of(text: str) -> Statement:
    """Returns what a text states."""
    return Statement(measures(text), _stems(text), len(NEGATION.findall(text)))


def adds_nothing(text: str, known: str) -> bool:
    """Tells if a text states nothing that `known` does not state."""
    return statement_of(text).adds_nothing(statement_of(known))


def measures(text: str) -> frozenset[tuple[str, str]]:
    """Returns the numbers of a text with their signs and units."""
    return frozenset((value.replace(" ", ""), unit.lower()) for value, unit in _MEASURE.findall(text))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in WORD.findall(text.lower()) if not word[0].isdigit())
