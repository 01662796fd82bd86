"""Describes a turn by numbers: the signs in its own words, what stands before it and what came of it. Pure."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from app.foundation.text.speech import Speech, speech_of, statements_in
from app.foundation.text.words import content_words
from app.intake.sessions.transcript import ASSISTANT, USER, Turn
from app.recall.cues.signs import signs_of

BEGINNING = 400
"""Characters of the agent's turn before in which options are announced."""
BRIEF, PLAIN = 6, 16
"""Words below which a turn is brief, and below which it states a rule without its reasons."""
MOST_SENTENCES = 6
MARK = r"^[^\S\n]*(?:[-*•]|\d{1,2}[.)]|[A-Da-d][.)])"
"""The mark of an item of a list."""
LISTED = re.compile(rf"{MARK}\s+", re.MULTILINE)
NUMBERED = re.compile(r"\d[.)]\s")
THEN = re.compile(r"\b(?:then|danach|dann|luego|después|потом|затем)\b", re.IGNORECASE)
FIRST = re.compile(r"\b(?:first|erst|zuerst|primero|сначала|сперва)\b", re.IGNORECASE)
MEASURED = re.compile(r"\d[.,]?\s?(?:%|€|(?:[mnµ]?s|[kmg]b|h|min|minutes?|hours?|seconds?|times|usd)\b)", re.IGNORECASE)
TOKEN = re.compile(r"(?<![\w.+#-])[\w.+#-]*\w")
NAMING = 3
"""Words of a turn that name an option."""
OPENING = re.compile(
    r"^(?:\W*(?:\b(?:and|ok(?:ay)?|but|so|nice|great|yes|also|oh|hm+|ugh|please|pls|then|excellent|thanks|thx|perfect|ah+|"
    r"nope|nee|nein|und|aber|bitte|ja|danke|y|pero|bueno|buenísimo|sí|а|и|но|так|ок)\b(?!-)[\s,.!:]*|"
    r"\b(?:no+|нет|good|right|clear|stop|wait|well|gut)\b\s*[,.!:]+\s*))+",
    re.IGNORECASE,
)
"""Words that a person says before the lesson begins."""
OPTION = re.compile(rf"{MARK}[^\S\n]+(?P<what>\S[^\n]{{0,60}})", re.MULTILINE)
NUMERALS = ("1", "2", "3", "4")
PLACES = (*NUMERALS, "a", "b", "c", "d", "first", "second", "third", "fourth", "erste", "zweite", "dritte", "vierte",
          "primera", "segunda", "tercera", "cuarta")  # fmt: skip
PICKED = re.compile(
    r"^\W*(?:(?:let'?s|we|i(?:'d| would)?|i'll|nehmen wir|vamos con)\s+)?"
    r"(?:(?:take|go with|use|pick|do|nehme|die|the|la)\s+)*"
    rf"(?:option|variant|number|no\.?|nr\.?)?\s*(?P<place>{'|'.join(PLACES)})(?=\W|$)",
    re.IGNORECASE,
)
"""The beginning of a turn that picks an option by its number."""
ANSWER = 60
"""Characters at the beginning of a turn in which a person approves of the one before."""
MOST_OPTIONS = 12
STEPS = 3
"""Steps from which on a turn lists a procedure."""
PERSON_SIGNS = (
    "forbids", "always", "standing", "ours", "instead", "order", "reason", "harm", "chooses", "past", "accuses",
    "lasting", "once", "open_request", "open_approves", "open_denies", "open_asks",
)  # fmt: skip
WITH_STANDING = ("forbids", "always", "ours", "instead", "order", "reason")
WITH_REASON = ("chooses", "forbids", "always", "instead")
AGENT_SIGNS = ("cause", "found", "failed", "tried", "remedy", "generic", "status", "guess", "open_concedes", "offer")
WITH_CAUSE = ("remedy", "generic", "guess", "tried")
WITH_FAILURE = ("cause", "tried", "remedy")


class SpokenTurn(NamedTuple):
    """A turn with its own words and what surrounds it."""

    turn: Turn
    text: str
    """Its own words."""
    pasted: float
    """Share of the turn's characters that nobody said."""
    sentences: tuple[str, ...]
    place: int
    """Its place among the turns that say something."""
    before: str
    """The last turn of the other speaker before it; "" without one."""
    after: str
    """The next turn of the other speaker; "" without one."""
    used_tools: bool
    """True if the turn, or the one before it, called tools."""


def spoken_turns(turns: Sequence[Turn]) -> list[SpokenTurn]:
    """Returns the turns of persons and agents that say something, each with its surroundings."""
    spoken = [(turn, speech_of(turn.text)) for turn in turns if turn.role in {USER, ASSISTANT}]
    answers = _answers(spoken)
    found: list[SpokenTurn] = []
    latest = {USER: "", ASSISTANT: ""}
    for place, (turn, speech) in enumerate(spoken):
        before = latest[ASSISTANT if turn.role == USER else USER]
        latest[turn.role] = speech.text or latest[turn.role]
        sentences = tuple(statements_in(speech.text))
        if not sentences:
            continue
        found.append(
            SpokenTurn(
                turn=turn,
                text=speech.text,
                pasted=speech.pasted,
                sentences=sentences,
                place=place,
                before=before,
                after=answers[place],
                used_tools=bool(turn.tools) or (place > 0 and bool(spoken[place - 1][0].tools)),
            )
        )
    return found


def _answers(spoken: Sequence[tuple[Turn, Speech]]) -> Sequence[str]:
    """Returns what the other one says after each turn; "" if nothing.

    A person may send several messages before the agent answers. To an agent's turn, only the next one is an answer.
    """
    found = list[str]()
    agents, following = "", (USER, "")
    for turn, speech in reversed(spoken):
        found.append(agents if turn.role == USER else following[1] if following[0] == USER else "")
        if speech.text:
            agents = speech.text if turn.role == ASSISTANT else agents
            following = turn.role, speech.text
    return found[::-1]


def of_person(item: SpokenTurn) -> dict[str, float]:
    """Returns the features of a person's turn, by their names."""
    signs = [signs_of(part, "person") for part in item.sentences if not _is_question(part)]
    every = frozenset[str]().union(*signs)
    words = len(item.text.split())
    listed = offers_options(item.before)
    found = {name: float(name in every) for name in PERSON_SIGNS}
    found |= {f"standing_{name}": float(any({"standing", name} <= own for own in signs)) for name in WITH_STANDING}
    found |= {f"reason_{name}": float({"reason", name} <= every) for name in WITH_REASON}
    found |= {
        "length": math.log1p(words),
        "brief": float(words < BRIEF),
        "plain_rule": float(words < PLAIN and "lasting" in every and not every & {"once", "open_asks"}),
        "asks_only": float(all(part.endswith("?") for part in item.sentences)),
        "asks": float("?" in item.text),
        "first": float(item.place == 0),
        "conceded": float("open_concedes" in signs_of(item.after, "agent")),
        "options": float(listed),
        "names_option": float(names_option(item)),
        "picks_reason": float(picked_option(item) is not None and "reason" in every and words >= BRIEF),
        "options_reason": float(listed and "reason" in every),
        "failed_before": float("failed" in signs_of(item.before, "agent")),
        "steps": float(lists_steps(item.text)),
        "pasted": item.pasted,
        "requests_only": float(
            "standing" not in every and all(own & {"open_request", "open_approves", "open_asks"} for own in signs)
        ),
        "exclaims": float("!" in item.text),
    }
    return found


def of_agent(item: SpokenTurn) -> dict[str, float]:
    """Returns the features of an agent's turn, by their names."""
    signs = [signs_of(part, "agent") for part in item.sentences]
    every = frozenset[str]().union(*signs)
    answer, has_number = signs_of(item.after, "person"), MEASURED.search(item.text) is not None
    found = {name: float(name in every) for name in AGENT_SIGNS}
    explains = bool(every & {"cause", "found"})
    found |= {f"cause_{name}": float(explains and name in every) for name in WITH_CAUSE}
    found |= {f"failed_{name}": float({"failed", name} <= every) for name in WITH_FAILURE}
    found |= {
        "measured": float(has_number),
        "cause_measured": float(explains and has_number),
        "failed_measured": float("failed" in every and has_number),
        "causes": min(3, sum("cause" in own for own in signs)) / 3,
        "length": math.log1p(len(item.text.split())),
        "sentences": min(len(item.sentences), MOST_SENTENCES) / MOST_SENTENCES,
        "accepted": float(is_accepted(item)),
        "rejected": float("open_denies" in answer),
        "asks": float(item.text.rstrip().endswith("?")),
        "symptom_before": float("?" in item.before or "symptom" in signs_of(item.before, "topic")),
        "used_tools": float(item.used_tools),
        "lists": float(len(LISTED.findall(item.text)) > 1),
    }
    return found


def is_accepted(item: SpokenTurn) -> bool:
    """Tells if a person's next turn begins by approving what an agent said, without a doubt."""
    answer = signs_of(item.after, "person")
    approves = "approves" in signs_of(item.after[:ANSWER], "person")
    return approves and not answer & {"open_denies", "doubts"}


def offers_options(text: str) -> bool:
    """Tells if an agent's turn lists options to choose from."""
    return "options" in signs_of(text[:BEGINNING], "agent") and len(LISTED.findall(text)) > 1


def options_in(text: str) -> list[str]:
    """Returns the options that an agent's turn lists, each by its beginning."""
    found = [match["what"].strip(" *-–—") for match in OPTION.finditer(text)] if offers_options(text) else []
    return found[:MOST_OPTIONS]


def picked_option(item: SpokenTurn) -> int | None:
    """Returns the place of the option that a person picks, by its number or by words of its own; None if none."""
    options = options_in(item.before)
    first = item.sentences[0] if options and item.sentences else ""
    if match := PICKED.match(OPENING.sub("", first)):
        place = PLACES.index(match["place"].lower()) % len(NUMERALS)
        return place if place < len(options) else None
    said = content_words(first)
    named = [content_words(option) for option in options]
    own = [words - frozenset().union(*(other for other in named if other is not words)) for words in named]
    shares = [len(words & said) for words in own]
    best = max(shares, default=0)
    return shares.index(best) if best and shares.count(best) == 1 else None


def names_option(item: SpokenTurn) -> bool:
    """Tells if a person's turn begins with the name of something that the agent's turn before it named."""
    first = OPENING.sub("", item.sentences[0] if item.sentences else "").split()
    known = {word.lower() for word in TOKEN.findall(item.before)}
    named = [word.lower() for word in TOKEN.findall(" ".join(first[:NAMING]))]
    return (
        bool(content_words(" ".join(named)))
        and all(word in known for word in named if content_words(word))
        and len(first) <= BRIEF
    )


def lists_steps(text: str) -> bool:
    """Tells if a text names the steps of a procedure in their order."""
    following = len(THEN.findall(text)) + (FIRST.search(text) is not None)
    if len(NUMBERED.findall(text)) >= STEPS or following >= STEPS:
        return True
    lead, colon, listed = text.partition(":")
    return bool(colon) and "orders" in signs_of(lead, "person") and listed.partition("\n")[0].count(",") >= STEPS


def _is_question(part: str) -> bool:
    return part.endswith("?") and "open_asks" in signs_of(part, "person")
