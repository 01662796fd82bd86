"""Words the situation in which a lesson applies: "adding a column", "the report has no source". Pure.

A situation reads on after "WHEN" or, if it is an act, after "BEFORE" (`app.cues.say`).
"""

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files

from app.cues.extraction.signs import patterns
from app.cues.extraction.speech import sentences_in
from app.cues.tending.probes import gerund

REQUESTS, REPORTS, FORBIDS, CONDITIONS = "requests", "reports", "forbids", "conditions"
"""Leads of an act: of what a person asks for, of what an agent says that it did or would do, of what is forbidden, and
of a clause's subject."""
LONGEST = 100
"""Characters of a situation."""
FEWEST_WORDS = 3
"""Words of a clause that is told as it stands."""
END = re.compile(
    r"[,;!?\n(*]|[.:](?=\W|$)|\s[-–—]\s|\s(?:so that|so we|so i|because|as this|as it|then|or if|and then|and ask)\s",
    re.IGNORECASE,
)
"""End of a clause."""
POINTS = re.compile(
    r"^(?:this|that|it|its|it's|these|those|they|there|both|he|she|so|not|needed|necessary|possible|any|done|"
    r"das|dies|es|da|nötig|möglich|это|так|оно|он|она|там|нужно|можно|надо)\b",
    re.IGNORECASE,
)
"""Words of a clause that means something said before it."""
BARE = re.compile(
    r"(?:with|by|for|at|as|when|if)\b|(?:this|that|it|these|those|them|so|both|done)(?:$|\s(?!\w))", re.IGNORECASE
)
"""Rest of an act that names no object."""
HANGS = re.compile(
    r"\b(?:a|an|the|of|to|in|on|for|with|and|or|that|which|i|we|you|is|are|no|my|our|your)$", re.IGNORECASE
)
LEANS = re.compile(
    r"\w+(?: (?:up|out|on|with|in))? "
    r"(?:(?:it|them)\b|(?:this|that|these|those) (?:in|into|to|on|with|for|from|by|as|at)\b)"
)
"""An act whose object was named before it."""
ONE_THING = re.compile(r"\w+(?: (?:up|out|on|with|in))? \S*\w[._/]\w\S*")
"""An act whose object is the name of one thing, such as a column, a function or a file."""
MANNER = re.compile(
    r"\s(?:\w+ly|in|on|to|into|for|with|without|from|by|at|as|when|before|after|unless|until|again)\b", re.IGNORECASE
)
"""Rest of an act after its object."""
IRREGULAR = {
    "made": "make", "wrote": "write", "written": "write", "ran": "run", "found": "find", "built": "build",
    "took": "take", "taken": "take", "kept": "keep", "gave": "give", "given": "give", "sent": "send", "chose": "choose",
    "chosen": "choose", "hid": "hide", "hidden": "hide", "shown": "show",
}  # fmt: skip
TOLD = re.compile(r"(?:prompted|asked|told|requested|instructed) to \w", re.IGNORECASE)
DONE = re.compile(r"\w+ed\b", re.IGNORECASE)
VOWEL_Y = re.compile(r"[aeiou]y$")


def condition_in(text: str) -> str:
    """Returns the situation that a clause names ("when you add a column": adding a column); "" if there is none."""
    for part in sentences_in(text):
        low = part.lower()
        clauses = [] if part.endswith("?") else [*patterns("conditions")["when"].finditer(low)]
        for match in clauses:
            if found := _situation(part[match.end() :]):
                return found
        for match in patterns("conditions")["before"].finditer(low):
            if found := act_after(part[match.end() :].strip(), CONDITIONS):
                return found
    return ""


def _situation(said: str) -> str:
    clause = _clause(said)
    if TOLD.match(clause):
        return f"being {clause}"
    if act := act_after(clause, CONDITIONS):
        return act
    if POINTS.match(clause) or HANGS.search(clause) or len(clause.split()) < FEWEST_WORDS:
        return ""
    return clause


def _clause(said: str) -> str:
    clause = END.split(said.strip(), maxsplit=1)[0].strip()
    return clause if len(clause) <= LONGEST else clause[:LONGEST].rsplit(maxsplit=1)[0]


def act_in(text: str, lead: str) -> str:
    """Returns the last act that a text names after such a lead, as "adding a column"."""
    return next(filter(None, (act_after(part, lead) for part in reversed(sentences_in(text)))), "")


def act_after(said: str, lead: str) -> str:
    """Returns the act with which a sentence begins after such a lead; "" if it begins with none."""
    for start in _leads(lead):
        if (match := start.match(said)) and (found := _act(said[match.end() :])):
            return found
    return "" if lead == REPORTS and not DONE.match(said) else _act(said)


def forbidden_in(text: str) -> str:
    """Returns the act that a sentence forbids, with its object alone: "dropping columns"; "" if it forbids none."""
    for start in _leads(FORBIDS):
        match = start.match(text)
        act = _act(text[match.end() :]) if match else ""
        if act and not LEANS.match(act):
            verb, _, told = act.partition(" ")
            return f"{verb} {MANNER.split(told, maxsplit=1)[0]}"
    return ""


def _act(said: str) -> str:
    clause = _clause(said.lstrip("*_# "))
    for count in (2, 1):
        first, rest = " ".join(clause.split()[:count]).lower(), clause.split()[count:]
        verb = next((verb for pattern, verb in _forms() if pattern.fullmatch(first)), "")
        told = " ".join(rest)
        if verb and rest and not BARE.match(told) and not HANGS.search(told):
            return f"{verb} {_also(rest)}"
    return ""


def _also(rest: list[str]) -> str:
    """Returns the rest of an act, with the form in "ing" of a second verb ("committing and pushing")."""
    if rest[0].lower() == "and" and len(rest) > 1:
        second = next((verb for pattern, verb in _forms() if pattern.fullmatch(rest[1].lower())), rest[1])
        return " ".join(["and", second, *rest[2:]])
    return " ".join(rest)


@functools.cache
def _leads(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(lead, re.IGNORECASE) for lead in _acts()[name])


@functools.cache
def _forms() -> list[tuple[re.Pattern[str], str]]:
    """Returns expressions for the forms of each verb, with its form in "ing"."""
    return [(re.compile("|".join(_of(verb))), gerund(verb.replace("[sz]", "s"))) for verb in _acts()["verbs"]]


def _of(verb: str) -> Iterator[str]:
    first, _, particle = verb.partition(" ")
    after = f" {particle}" if particle else ""
    doing = gerund(first)
    past = f"{first[:-1]}ied" if first.endswith("y") and not VOWEL_Y.search(first) else f"{doing[:-3]}ed"
    irregular = [form for form, base in IRREGULAR.items() if base == first]
    yield from (f"{form}{after}" for form in (first, doing, past, *irregular))


@functools.cache
def _acts() -> Mapping[str, list[str]]:
    path = files("app.cues.extraction").joinpath("languages", "en.toml")
    acts: Mapping[str, list[str]] = tomllib.loads(path.read_text(encoding="utf-8"))["acts"]
    return acts
