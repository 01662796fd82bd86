"""Which texts name which memory: titles as a dictionary, found word by word. Pure.

A title names its memory where it is specific enough. What decides is in this file, but for two counts that the store
takes: a title that more than BEARERS memories have ("Introduction") or more than MENTIONED texts name ("Alice", where
everybody speaks of her) is common, and links nothing.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from app.text.words import BEFORE, SENTENCE_BEGINS, content_words

BEARERS = 3
"""Live memories that may share a title: two men of one name are told apart by what else the text says; the sections
of a hundred reports that are called the same are no subject."""
MENTIONED = 32
"""Texts that may name a title; HotpotQA's most famous has 9 of 994 paragraphs."""
MOST_MENTIONS = 16
"""Titles that one text links to, the first ones: a list of contents is about none of them."""
LONGEST_TITLE = 8
"""Words: a longer title is a sentence, which no other text repeats."""
LONGEST_KEY = 200
"""Characters."""
SHORTEST_WORD = 3
"""Letters of a title that is one word."""
TITLELESS_KINDS = frozenset({"message"})
"""A message's title is who speaks, not what it is about."""

WORD = re.compile(r"\w+")
BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")

T = TypeVar("T")


class Mention(NamedTuple):
    """A place where a text may name something."""

    at: int
    """The place of its first word among the text's."""
    words: int
    key: str


def title_key(title: str, kind: str) -> str | None:
    """Returns a title as the dictionary has it: words in lower case, without brackets at the end.

    None where the title is too little or too much to name one memory: nothing but stop words or digits, a single
    word of fewer than SHORTEST_WORD letters, more than LONGEST_TITLE words, or the speaker of a message.
    """
    if kind in TITLELESS_KINDS:
        return None
    words = WORD.findall(without_brackets(title).casefold())
    if not 1 <= len(words) <= LONGEST_TITLE or (len(words) == 1 and len(words[0]) < SHORTEST_WORD):
        return None
    key = " ".join(words)
    return key if len(key) <= LONGEST_KEY and content_words(key) else None


def without_brackets(title: str) -> str:
    """Returns a title as texts write it: "Big Stone Gap (film)" is called Big Stone Gap."""
    return BRACKETS.sub("", title)


def possible_mentions(text: str) -> Iterator[Mention]:
    """Yields every run of words in the text that may be a title, longest first at each place.

    A title is written as a name is: it begins with a capital, a digit, or a sign of a script without capitals. One word
    alone is none where it begins a sentence, for there every word has a capital.
    """
    found = list(WORD.finditer(text))
    words = [match.group().casefold() for match in found]
    for at, match in enumerate(found):
        if not _begins_a_name(match.group()):
            continue
        shortest = 2 if SENTENCE_BEGINS.search(text[max(0, match.start() - BEFORE) : match.start()]) else 1
        for count in range(min(LONGEST_TITLE, len(words) - at), shortest - 1, -1):
            yield Mention(at, count, " ".join(words[at : at + count]))


def mentioned(possible: Sequence[Mention], known: Mapping[str, Collection[T]], *, own: str | None) -> list[T]:
    """Returns what the text names, in the order of the text, at most MOST_MENTIONS; the longest title wins its place.

    `known` are the bearers of each title that names one; `own` is the title of the memory whose text it is.
    """
    named: dict[T, None] = {}
    behind = 0
    for mention in possible:
        if mention.at < behind or mention.key not in known:
            continue
        behind = mention.at + mention.words
        if mention.key != own:
            named |= dict.fromkeys(known[mention.key])
    return list(named)[:MOST_MENTIONS]


def _begins_a_name(word: str) -> bool:
    first = word[0]
    return first.isupper() or first.isdigit() or first.lower() == first.upper()
