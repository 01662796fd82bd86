"""Words a text otherwise, so that a question about it is not the text itself. Pure and deterministic.

Lower case; stop words and marks left out; words of a small table exchanged for others; every third word that is left is
dropped, as nobody remembers all; at most twelve words; the second half before the first. Names with a digit in them
(`t3`, `run_01`) are not counted and stay: they say which of many like texts is meant.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from app.text.words import IDEOGRAPHS

WORD = re.compile(rf"[{IDEOGRAPHS}]{{1,2}}|[^\W\d_{IDEOGRAPHS}][^\W{IDEOGRAPHS}]*(?:'[^\W\d_]+)?")
"""A word; in scripts without blanks between words, two characters."""
NAME = re.compile(r".*\d")
QUESTION_WORDS = 12
DROPPED = 3
"""Every third word."""
STOP_WORDS = frozenset(
    """
    a an and are as at be but by for from has have in into is it its no not of on or so such than that the
    their then there these this to was were which while will with
    """.split()  # noqa: SIM905 - forty quoted words cannot be read
)
SYNONYMS = {
    "accurate": "right", "added": "put in", "agent": "assistant", "all": "every", "build": "compile", "check": "test",
    "clean": "tidy", "clear": "plain", "code": "program", "commands": "calls", "complete": "whole", "confirms": "shows",
    "contains": "holds", "correct": "right", "correctly": "rightly", "cost": "price", "created": "made",
    "criteria": "standards", "deduction": "penalty", "directory": "folder", "directories": "folders",
    "documentation": "docs", "duration": "time", "empty": "blank", "error": "fault", "errors": "faults",
    "excellent": "very good", "executed": "ran", "exists": "is present", "expected": "wanted", "explanation": "reasons",
    "extra": "additional", "failed": "broke", "file": "document", "files": "documents", "follows": "obeys",
    "functions": "routines", "grade": "mark", "imports": "modules", "issues": "problems", "judge": "evaluator",
    "line": "row", "minimal": "smallest", "minor": "small", "missing": "absent", "only": "just", "output": "result",
    "passed": "succeeded", "prints": "writes", "proper": "suitable", "quality": "standard", "remain": "are left",
    "required": "needed", "requirements": "demands", "result": "outcome", "results": "outcomes", "root": "top",
    "run": "attempt", "script": "program", "score": "rating", "shows": "tells", "simple": "plain", "single": "lone",
    "solution": "answer", "summary": "overview", "successfully": "with success", "task": "job", "tests": "checks",
    "unused": "needless", "uses": "employs", "valid": "well formed", "variables": "names", "verified": "proven",
    "workspace": "working folder",
}  # fmt: skip
"""Other words for those of reports and judgements."""


EVERYDAY: Mapping[str, str] = MappingProxyType(SYNONYMS | {
    "agreed": "settled", "answer": "reply", "asked": "inquired", "bad": "poor", "begin": "start", "best": "finest",
    "big": "large", "bought": "purchased", "buy": "purchase", "car": "vehicle", "change": "alteration",
    "changed": "altered", "chose": "picked", "decided": "resolved", "decision": "choice", "delay": "lateness",
    "doctor": "physician", "enough": "sufficient", "family": "relatives", "fast": "quick", "fix": "repair",
    "fixed": "repaired", "found": "discovered", "friend": "companion", "happy": "glad", "help": "support",
    "home": "house", "idea": "notion", "important": "vital", "kids": "children", "large": "big", "loved": "adored",
    "many": "numerous", "meeting": "gathering", "money": "funds", "movie": "film", "need": "require",
    "people": "persons", "picture": "photo", "plan": "scheme", "problem": "trouble", "problems": "troubles",
    "reason": "cause", "report": "account", "sick": "ill", "slow": "sluggish", "small": "little", "start": "begin",
    "started": "began", "stop": "halt", "stopped": "halted", "talk": "speak", "team": "group", "think": "believe",
    "tired": "weary", "told": "informed", "town": "city", "trip": "journey", "try": "attempt", "use": "employ",
    "used": "employed", "want": "wish", "wrong": "mistaken",
})  # fmt: skip
"""Other words for those of reports, and for everyday ones."""


def reworded(text: str, others: Mapping[str, str] = SYNONYMS) -> str:
    """Returns the text in other words, by the rule above."""
    words = [word for word in WORD.findall(text.lower()) if word not in STOP_WORDS]
    places = {place for place, word in enumerate(words) if not NAME.match(word)}
    dropped = sorted(places)[DROPPED - 1 :: DROPPED]
    cut = [others.get(word, word) for place, word in enumerate(words) if place not in dropped][:QUESTION_WORDS]
    middle = len(cut) // 2
    return " ".join([*cut[middle:], *cut[:middle]])
