"""Finds the further fields of a cue's kind in a turn and around it. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from app.cues.cue import DECISION, DISCOVERY, NEGATIVE_RESULT, PRECEDENT, PREFERENCE, PROCEDURE
from app.cues.extraction.features import Heard
from app.cues.extraction.signs import signs_of
from app.cues.extraction.speech import sentences_in
from app.cues.extraction.wording import LONGEST_TRIGGER, cut

STATED = "stated"
"""The table of a language's expressions that state a kind outright."""
REJECTED = re.compile(
    r"(?:instead of|rather than|as opposed to|, not|\bprefer(?:s|red)?\s[^,.;:!?\n]{1,60}?\sover|"
    r"statt|anstelle von|anstatt|вместо|, а не)\s+"
    r"(?P<what>[^,.;:!?\n]{2,80})",
    re.IGNORECASE,
)
"""A rejected alternative."""
ITEM = re.compile(
    r"(?:^\s*(?:[-*•]|\d{1,2}[.)])|(?<=[:,;])\s*\d{1,2}[.)])\s+(?P<what>\S.{1,200}?)(?=[,;]\s*\d{1,2}[.)]\s|$)",
    re.MULTILINE,
)
"""An item of a list, on a line of its own or numbered in a sentence."""
THEN = re.compile(
    r",?\s+(?:and then|then|after that|danach|dann|anschließend|потом|затем|после этого)\s+|;\s+", re.IGNORECASE
)
BECAUSE = re.compile(
    r"(?:because|since|as it|so that|weil|denn|damit|потому что|так как|чтобы)\s+(?P<what>[^.!?\n]{3,200})",
    re.IGNORECASE,
)
FEWEST, PLAIN = 2, 3
"""Steps of a procedure, and those from which on a turn that introduces them is one."""
MOST = 12
"""Items of a list that are kept."""


def details_of(kind: str, item: Heard, *, trigger: str, quote: str) -> Mapping[str, Any]:
    """Returns the fields of the kind that the turn and its surroundings tell."""
    why = _first(BECAUSE, item.speech.text)
    made: Mapping[str, Mapping[str, Any]] = {
        PREFERENCE: {"context": trigger, "preferred_over": rejected(quote)},
        PRECEDENT: {"situation": trigger, "action": quote},
        PROCEDURE: {"goal": goal_of(item.speech.text) or trigger, "steps": steps(item.speech.text)},
        DECISION: {"subject": trigger, "choice": quote, "alternatives": alternatives(item, quote), "reasoning": why},
        DISCOVERY: {"domain": trigger, "implications": why},
        NEGATIVE_RESULT: {"attempted": trigger, "failure_reason": why, "led_to": instead(item.speech.text)},
    }
    return {name: value for name, value in made.get(kind, {}).items() if value}


def stated_kind(item: Heard, quote: str) -> str:
    """Returns the kind that a turn states outright: "as we did with X", or a list of steps; "" if it states none."""
    if PRECEDENT in signs_of(quote, STATED) and not quote.endswith("?"):
        return PRECEDENT
    text = item.speech.text
    return PROCEDURE if PROCEDURE in signs_of(text, STATED) and len(steps(text)) >= PLAIN else ""


def goal_of(text: str) -> str:
    """Returns the words that introduce a list of steps ("Beim Release: erst …"); "" if none do."""
    return _procedure(text)[0]


def rejected(text: str) -> str:
    """Returns what a sentence turns down."""
    return _first(REJECTED, text)


def steps(text: str) -> list[str]:
    """Returns the steps that a text lists, or names one after the other; none if there is only one."""
    return _procedure(text)[1]


def _procedure(text: str) -> tuple[str, list[str]]:
    """Returns the words that introduce the steps of a text, and the steps."""
    listed = list(ITEM.finditer(text))
    if len(listed) >= FEWEST:
        told = sentences_in(text[: listed[0].start()])[-1:]
        return _bare(" ".join(told)), [_bare(match["what"]) for match in listed[:MOST]]
    first, *others = max((THEN.split(part) for part in sentences_in(text)), key=len, default=[""])
    goal, _, step = first.rpartition(": ")
    return (_bare(goal), [_bare(part) for part in (step, *others)[:MOST]]) if others else ("", [])


def _bare(text: str) -> str:
    return cut(text.lstrip(" \n*#").rstrip(" \n.,:*#"), LONGEST_TRIGGER)


def alternatives(item: Heard, quote: str) -> list[str]:
    """Returns what was turned down, and the options that the agent had listed."""
    turned_down = rejected(quote)
    listed = [match["what"].strip("* ") for match in ITEM.finditer(item.before)][:MOST]
    return [turned_down, *listed] if turned_down else listed


def instead(text: str) -> str:
    """Returns the sentence that says what to do in place of what failed."""
    told = [part for part in sentences_in(text) if signs_of(part) & {"failed", "contrast", "mend", "decide"}]
    return told[-1] if told else ""


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match["what"].strip() if match else ""
