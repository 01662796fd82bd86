"""Finds the names in a text by capitals that no sentence begins with. Pure, and without a model."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from app.text.words import STOP_WORDS, content_words

WORD = re.compile(r"[^\W\d_][\w’'-]*")
SENTENCE_BEGINS = re.compile(r"(?:^|\n\s*|[.!?:;…][\"”’»)\]]*\s+|[-*#>|]\s+)[\"“„«(\[*_]*$")
BEFORE = 8
"""Characters before a word that tell whether it begins a sentence."""
LINKING = frozenset({"of", "de", "du", "der", "von", "van", "la", "le"})
"""Words in lower case that stand inside a name; "and" stands between two."""
AFTER_LINKING = LINKING | {"the"}
"""Behind one of them also an article: "Bank of the West", where "In March the Kestrel …" has two names."""
MOST_LINKING = 2
"""Of them between two words of a name: "Banco de la Plata"."""
SHORTEST_NAME, LONGEST_NAME = 3, 100
"""Characters."""
BEARERS = 4
"""Memories with a name in common, of which each pair is linked: a name that more have is no rare one. On the dev sets
4 finds as much as 8, with a third of the links."""
MOST_NAMES = 32
"""Names of a text that are looked up, the first ones."""
NOUNS_HAVE_CAPITALS = frozenset({"german"})
"""Languages in which one word with a capital is any noun: only runs of several are names."""


def names(text: str, language: str) -> Sequence[str]:
    """Returns the names in a text, each once: runs of words with capitals that do not just begin a sentence.

    "In March the Kestrel gateway met Ada Lovelace." has March, Kestrel and Ada Lovelace. A stop word at the front of a
    run belongs to the sentence ("The Kestrel"); a text in a script without capitals has none.
    """
    least = 2 if language in NOUNS_HAVE_CAPITALS else 1
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
    """Returns True where the text has this name, written like this."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _runs(text: str) -> Iterator[list[re.Match[str]]]:
    """Yields runs of words with capitals, one blank between two of them, with the linking words inside a run."""
    run: list[re.Match[str]] = []
    linking: list[re.Match[str]] = []
    for word in WORD.finditer(text):
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


TITLES_KNOWN = 20_000
"""Titles whose words are remembered: those of a pool come again with the next query."""


@lru_cache(maxsize=TITLES_KNOWN)
def _words(title: str) -> frozenset[str]:
    return content_words(title)


def named(query: str, titles: Sequence[str]) -> list[bool]:
    """Returns for each title whether the query has all its content words; a title without one names nothing."""
    asked = content_words(query)
    known: dict[str, bool] = {}
    for title in titles:
        if title not in known:
            words = _words(title)
            known[title] = bool(words) and words <= asked
    return [known[title] for title in titles]
