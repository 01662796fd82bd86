"""What texts are compared by: words, runs of words, numbers, names. Pure."""

import re

SHINGLE_WORDS = 4
"""Words of a shingle (Broder 1997): three are found in unrelated texts, five miss an edited sentence."""
STEM = 7
"""Letters that two forms of a word share, roughly: enough to tell most words apart in the languages of STOP_WORDS."""

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+")
"""Where no blanks stand between words, each sign is one."""
NEGATION = re.compile(
    r"\b(?:not?|never|none|neither|nor|without|cannot|hardly|fails? to|failed to|не|нет|ни|без|nicht|kein\w*|nie|ohne|"
    r"ne|pas|sans|jamais|sin|nunca)\b|n['’]t\b|[不没]",
    re.IGNORECASE,
)
STOP_WORDS = frozenset(
    """the a an and or but of in on at to for from by with without as is are was were be been it its this that these
    those not no than then so such into over under more most less least very can could will would should may might has
    have had do does did they their them he she his her we our you your i me my which who what when where how и в на с
    по для из от до не что это как к у о за но или же был была были есть der die das und oder ein eine ist le la les et
    un une de des est el los las y que en""".split()  # noqa: SIM905 - a hundred quoted words cannot be read
)
NEUTRAL = frozenset(
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
"""Words that may come or go without changing what is stated: articles, copulas, links, and who said so. Comparisons
(more, over, before, only) are none of them."""
MEASURE = re.compile(r"((?:[<>≤≥]=?\s?|[-+−])?\d+(?:[.,]\d+)*)\s?(%|‰|[^\W\d_]{1,3}\b)?")
"""A number with its sign, its comparison and its unit."""
SPEAKS = re.compile(r"[^\W_]")
"""A letter or a digit: a text without one is bare punctuation."""
SHORTEST_REWORDED = 8
"""Words: a shorter text is too little to be sure that it says the same as another."""


def shingles(text: str) -> frozenset[str]:
    """The runs of SHINGLE_WORDS words in a text, case apart; of a shorter text all its words as one."""
    words = WORD.findall(text.casefold())
    if len(words) <= SHINGLE_WORDS:
        return frozenset({" ".join(words)} if words else ())
    return frozenset(map(" ".join, zip(*(words[at:] for at in range(SHINGLE_WORDS)), strict=False)))


def resemblance(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's share of common shingles, 0 to 1; 0 where there are none."""
    shared = len(one & other)
    together = len(one) + len(other) - shared
    return shared / together if together else 0.0


def content_words(text: str) -> frozenset[str]:
    """Words that carry content, cut to their stems' length."""
    return frozenset(
        word[:STEM]
        for word in WORD.findall(text.lower())
        if word not in STOP_WORDS and not word.isdigit() and (len(word) > 1 or not word.isascii())
    )


def same_words(one: str, other: str) -> bool:
    """Whether two texts are one but for case, punctuation and white space."""
    return WORD.findall(one.casefold()) == WORD.findall(other.casefold())


def adds_nothing(text: str, known: str) -> bool:
    """Whether every measure and every word of `text` but the neutral ones stands in `known`, and it denies as often.

    Whether a thing was accepted or rejected, more or less, is beyond a comparison of meanings: two such texts have a
    cosine of up to 0.99. A word that is new, or a "not" more or less, makes a text news.
    """
    if not measures(text) <= measures(known) or _stated(text) - _stated(known) - NEUTRAL:
        return False
    return len(NEGATION.findall(text)) == len(NEGATION.findall(known))


def measures(text: str) -> frozenset[tuple[str, str]]:
    """Every number of a text with its sign and unit."""
    return frozenset((value.replace(" ", ""), unit.lower()) for value, unit in MEASURE.findall(text))


def _stated(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in WORD.findall(text.lower()) if not word[0].isdigit())
