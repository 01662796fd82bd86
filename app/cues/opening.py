"""Turns a trigger, however a person wrote it, into the opening of an imperative: BEFORE, WHEN, FOR. Pure."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

CONNECTIVE = re.compile(
    r"^(when(?:ever)?|before|after|while|if|once|as soon as|until|unless|where|during|on|upon|for|in case)\b[\s,]+",
    re.IGNORECASE,
)
ANNOUNCED = (
    r"(?:can|could|would|will) (?:you|we|i)|let['’]?s|let me|let us|(?:you are |i am )?about to|going to|"
    r"(?:i|we|you)(?:['’](?:ll|d|m|re)| will| would| am| are| want| need| have| should| must| plan)+"
    r"(?: (?:like|about|going))?(?: to)?"
)
REQUEST = re.compile(
    rf"^(?:(?:please|now|ok(?:ay)?|so|and|then|also),?\s+)*(?:(?:{ANNOUNCED})\s+)?(?:(?:please|just|now|also)\s+)*",
    re.IGNORECASE,
)
"""Words around the act that somebody asks for, or announces."""
ASKED = re.compile(
    r"^(?:(?:what|why|how|who|which|where|do(?:es)?|did|is|are|was|were|ha(?:s|ve)|should)\b.*\?"
    r"|why (?:do|did|is|are|was|were|ha[sd]|have)\w*\b.*)$",
    re.IGNORECASE,
)
NO_REFERENT = re.compile(r"^(?:it|its|this|that|these|those|they|them|he|she|there)(?:['’]s)?\s", re.IGNORECASE)


class Words(msgspec.Struct, frozen=True):
    """The words of `opening.toml`."""

    verbs: frozenset[str]
    ambiguous: frozenset[str]
    auxiliaries: frozenset[str]
    finite: frozenset[str]
    no_gerunds: frozenset[str]
    determiners: frozenset[str]
    prepositions: frozenset[str]
    particles: frozenset[str]
    relative: frozenset[str]
    leading: frozenset[str]


@cache
def known() -> Words:
    """Returns the words by which openings are told apart."""
    return msgspec.toml.decode(files("app.cues").joinpath("opening.toml").read_text(encoding="utf-8"), type=Words)


def opening(trigger: str) -> str:
    """Returns the clause that tells when a lesson applies, without a colon."""
    text = " ".join(trigger.split()).rstrip(".:;,! ")
    joined = CONNECTIVE.match(text)
    if joined is not None:
        return f"{joined[1].upper()} {small(text[joined.end() :])}"
    if ASKED.match(text) or not REQUEST.sub("", text.rstrip("? "), count=1):
        return f"WHEN asked “{text}”"
    if NO_REFERENT.match(text):
        return f"WHEN “{text}” is the situation"
    return _act(text.rstrip("? ")) or _situation(text.rstrip("? "))


def _act(text: str) -> str:
    """Returns the opening of a text that names an act; empty for others."""
    act = REQUEST.sub("", text, count=1)
    words = act.lower().split()
    if _is_gerund(words):
        return f"BEFORE {small(act)}"
    others = known().determiners | known().auxiliaries
    announced = act != text and len(words) > 1 and words[0] not in others
    return f"BEFORE you {small(act)}" if announced or is_act(act) else ""


def _situation(text: str) -> str:
    words = text.lower().split()
    if not text.isascii() or _is_clause(words):
        return f"WHEN {small(text)}"
    named = words[0] in known().determiners or not words[0][:1].isalpha()
    return f"FOR {small(text)}" if named else f"FOR any {small(text)}"


def _is_gerund(words: Sequence[str]) -> bool:
    """Returns True if a text begins with a verb's form in "ing" that is no noun."""
    follows = words[1] if len(words) > 1 else ""
    noun = words[0] in known().no_gerunds and follows not in known().determiners | known().particles
    return words[0].endswith("ing") and not noun and follows not in known().finite | known().auxiliaries


def is_act(text: str) -> bool:
    """Returns True if a text begins with a verb as one tells somebody to do it."""
    words = text.lower().split()
    if not words[1:] or words[0] not in known().verbs:
        return False
    return words[0] not in known().ambiguous or words[1] in known().determiners


def _is_clause(words: Sequence[str]) -> bool:
    """Returns True if a text has a verb of its own, or begins with a participle: "asked to …"."""
    if words[0].endswith("ed") or words[0] in {"told", "again", "unsure"}:
        return True
    places = zip(words, words[1:], [*words[2:], ""], strict=False)
    return sum(_is_verb(*place) for place in places) > any(word in known().relative for word in words[1:])


def _is_verb(before: str, word: str, after: str) -> bool:
    if before in known().determiners | known().prepositions:
        return False
    if {word, word.removesuffix("s"), word.removesuffix("es")} & (known().finite | known().auxiliaries):
        return True
    inflected = word.endswith("s") and not word.endswith("ss")
    return inflected and bool(after) and after not in known().prepositions | known().relative


def continued(text: str) -> str:
    """Returns a sentence as it stands after a colon: its first letter is small if its first word is no name."""
    words = known()
    first = text.partition(" ")[0].lower()
    common = words.verbs | words.determiners | words.auxiliaries | words.prepositions | words.leading
    return text[:1].lower() + text[1:] if first in common else text


def small(text: str) -> str:
    """Returns a text whose first letter is small, unless its first word is a name or an abbreviation."""
    first = text.partition(" ")[0]
    named = first[1:] != first[1:].lower() or (len(first) == 1 and first != "A")
    return text if named else text[:1].lower() + text[1:]
