"""Finds the further fields of a cue's kind in a turn and around it. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from app.cues.cue import DECISION, DISCOVERY, NEGATIVE_RESULT, PRECEDENT, PREFERENCE, PROCEDURE
from app.cues.extraction.features import Heard
from app.cues.extraction.signs import signs_of
from app.cues.extraction.speech import sentences_in

REJECTED = re.compile(
    r"(?:instead of|rather than|as opposed to|, not|\bprefer(?:s|red)?\s[^,.;:!?\n]{1,60}?\sover|"
    r"statt|anstelle von|anstatt|вместо|, а не)\s+"
    r"(?P<what>[^,.;:!?\n]{2,80})",
    re.IGNORECASE,
)
"""A rejected alternative."""
ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?P<what>\S.{1,200})$", re.MULTILINE)
THEN = re.compile(
    r",?\s+(?:and then|then|after that|danach|dann|anschließend|потом|затем|после этого)\s+|;\s+", re.IGNORECASE
)
BECAUSE = re.compile(
    r"(?:because|since|as it|so that|weil|denn|damit|потому что|так как|чтобы)\s+(?P<what>[^.!?\n]{3,200})",
    re.IGNORECASE,
)
FEWEST = 2
"""Steps of a procedure."""
MOST = 12
"""Items of a list that are kept."""


def details_of(kind: str, item: Heard, *, trigger: str, quote: str) -> Mapping[str, Any]:
    """Returns the fields of the kind that the turn and its surroundings tell."""
    why = _first(BECAUSE, item.speech.text)
    made: Mapping[str, Mapping[str, Any]] = {
        PREFERENCE: {"context": trigger, "preferred_over": rejected(quote)},
        PRECEDENT: {"situation": trigger, "action": quote},
        PROCEDURE: {"goal": trigger, "steps": steps(item.speech.text)},
        DECISION: {"subject": trigger, "choice": quote, "alternatives": alternatives(item, quote), "reasoning": why},
        DISCOVERY: {"domain": trigger, "implications": why},
        NEGATIVE_RESULT: {"attempted": trigger, "failure_reason": why, "led_to": instead(item.speech.text)},
    }
    return {name: value for name, value in made.get(kind, {}).items() if value}


def rejected(text: str) -> str:
    """Returns what a sentence turns down."""
    return _first(REJECTED, text)


def steps(text: str) -> list[str]:
    """Returns the steps that a text lists, or names one after the other; none if there is only one."""
    listed = [match["what"].strip() for match in ITEM.finditer(text)]
    found = (
        listed if len(listed) >= FEWEST else max((THEN.split(part) for part in sentences_in(text)), key=len, default=[])
    )
    return [part.strip(" ,.") for part in found[:MOST]] if len(found) >= FEWEST else []


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
