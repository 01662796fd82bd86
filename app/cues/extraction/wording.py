"""Finds the words of a turn that say its lesson, and writes lesson and trigger from them. Pure."""

import functools
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

from app.cues.extraction.features import Heard
from app.cues.extraction.model import words_weigh
from app.cues.extraction.signs import signs_of
from app.cues.extraction.situation import LEANS, ONE_THING, REPORTS, REQUESTS, act_in, condition_in, forbidden_in
from app.cues.extraction.speech import sentences_in, speech_of

LONGEST_QUOTE = 300
"""Characters."""
LONGEST_LESSON, LONGEST_TRIGGER = 400, 200
POINTS = re.compile(r"^(?:this|that|it|its|these|those|they|their|both|das|dies|es|это|так|оно)\b", re.IGNORECASE)
"""Words of a sentence that means something said before it."""
FEWEST_WORDS = 4
"""A lesson of fewer words leans on the sentence after it."""
MARKUP = re.compile(r"[*#`]{1,3}|(?<!\w)_{1,3}|_{1,3}(?!\w)|^\s*[-•]\s+", re.MULTILINE)
"""Emphasis, headings, code marks and bullets; an underscore inside a name is none."""


def quote_of(item: Heard) -> str:
    """Returns the sentence of the turn that speaks most for a cue, verbatim; a single word if there is no other."""
    parts = sentences_in(item.speech.text) or sentences_in(item.turn.text) or [item.turn.text.strip()]
    best = max(range(len(parts)), key=lambda place: (" " in parts[place], words_weigh(signs_of(parts[place])), -place))
    return cut(parts[best], LONGEST_QUOTE)


def cut(text: str, longest: int) -> str:
    """Shortens a text to its first characters, at the end of a word."""
    if len(text) <= longest:
        return text
    return text[:longest].rsplit(maxsplit=1)[0]


def reasoned(item: Heard, quote: str) -> str:
    """Returns a quote with the sentence after it, if that one tells the harm that was done."""
    parts = sentences_in(item.speech.text)
    place = next((number for number, part in enumerate(parts) if part.startswith(quote)), len(parts))
    after = next(iter(parts[place + 1 :]), "")
    whole = re.search(rf"{re.escape(quote)}\s+{re.escape(after)}", item.turn.text)
    harm = not after.endswith("?") and "harm" in signs_of(after, "tone")
    return whole[0] if whole and harm and len(whole[0]) <= LONGEST_QUOTE else quote


def lesson_of(item: Heard, quote: str) -> str:
    """Writes the lesson: the quote as an instruction, and what follows it if the quote alone is too short."""
    parts = sentences_in(item.speech.text)
    place = next((number for number, part in enumerate(parts) if part.startswith(quote)), None)
    text = _instruction(quote)
    if place is not None and len(quote.split()) < FEWEST_WORDS and place + 1 < len(parts):
        text = f"{text} {_sentence(parts[place + 1])}"
    elif place and POINTS.match(quote):
        text = f"{_instruction(parts[place - 1])} {text}"
    return cut(text, LONGEST_LESSON)


def _instruction(quote: str) -> str:
    said = quote.replace("’", "'")
    for pattern, wording in rewrites():
        if match := pattern.match(said):
            return _sentence(match.expand(wording))
    return _sentence(said)


def _sentence(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip().rstrip(".?,;: ")
    text = text[:1].upper() + text[1:]
    return text if text.endswith("!") else f"{text}."


@functools.cache
def rewrites() -> Sequence[tuple[re.Pattern[str], str]]:
    """Reads the languages' expressions for sentences, each with the wording of the instruction."""
    folder = files("app.cues.extraction").joinpath("languages")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
    tables = [tomllib.loads(path.read_text(encoding="utf-8"))["lessons"]["rewrites"] for path in paths]
    return [(re.compile(pattern, re.IGNORECASE), wording) for table in tables for pattern, wording in table]


def trigger_of(item: Heard, quote: str) -> str:
    """Writes the situation: a condition that the turn names, or the act that was asked for or done before it."""
    said = condition_in(quote) or condition_in(item.speech.text)
    if said:
        return cut(said, LONGEST_TRIGGER)
    told = _done(item, quote) or _act(item.before) or _request(item.previous)
    return cut(told or _plain(item.speech.text) or quote, LONGEST_TRIGGER)


def _done(item: Heard, quote: str) -> str:
    """Returns the act that was asked for or done before a turn; one whose object stands elsewhere only without another.

    What the lesson forbids is told in place of an act on one thing: it holds for others too.
    """
    places = ((item.previous, REQUESTS), (item.before, REPORTS), (item.asked, REQUESTS), (item.speech.text, REQUESTS))
    acts = [act for text, lead in places if (act := act_in(text, lead))]
    done = next((act for act in acts if not LEANS.match(act)), next(iter(acts), ""))
    return (ONE_THING.fullmatch(done) and forbidden_in(quote)) or done


def named_request(text: str) -> str:
    """Returns the act that a person asked for, or else the beginning of what they said; "" if they said little."""
    said = speech_of(text).text
    first = next((part for part in sentences_in(said) if len(part.split()) >= FEWEST_WORDS), "")
    return act_in(said, REQUESTS) or cut(_plain(re.split(r"[:;]\s", first, maxsplit=1)[0]), LONGEST_TRIGGER)


def _request(previous: str) -> str:
    """Returns what the person had asked for; "" if that says nothing of its own."""
    parts = sentences_in(previous)
    parts = [part for part in parts if not part.endswith("?") and len(part.split()) >= FEWEST_WORDS - 1]
    told = [part for part in parts if not signs_of(part) & {"go_bare", "open_no", "you_did", "complaint"}]
    return cut(_plain(told[0]), LONGEST_TRIGGER // 2) if told else ""


def _act(before: str) -> str:
    """Returns the sentence in which the agent said last what it had done, found or asked."""
    for part in reversed(sentences_in(before)):
        if signs_of(part, "replies") & {"claimed", "found", "took_up"} and len(part.split()) >= FEWEST_WORDS:
            return cut(_plain(part), LONGEST_TRIGGER // 2)
    return ""


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", MARKUP.sub("", text)).strip().strip(".:;,?").strip()
