"""Reads what a lesson turns down and what it asks for, and which of the two a plan does. Pure."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from app.foundation.text.prose import statements_in
from app.foundation.text.words import STEM, WORD, content_words, in_one_line
from app.recall.cues.actions import known_acts
from app.recall.cues.commands import has_command, shell_words, spoken_form
from app.recall.cues.cue import DECISION, DISCOVERY, NEGATIVE_RESULT, PREFERENCE, Cue, choice_of
from app.recall.cues.rarity import rarity, words_of

FORBIDDEN = re.compile(
    r"\b(?:(?P<act>never|do not|don['’]?t|must not)|not|instead of|rather than|avoid|no)\s+"
    r"(?P<what>[^;:!?\n]{1,119}?[^\s;:!?])(?=[;:!?\n]|\.(?!\w)|$)",
    re.IGNORECASE,
)
"""Finds an act that a text forbids, or a thing that it turns down."""
ENDED = re.compile(
    r"\b(?:kill|ditch|scrap|dump|abandon|retire|get rid of|stop using|move off|moving off|away from)\s+(?:the\s+)?"
    r"(?P<what>[\w.-]+)|(?P<dead>[\w.-]+) (?:is|are) (?:dead|gone|out|banned)\b",
    re.IGNORECASE,
)
"""A thing that a decision ends. Only a name counts: “retire the old flag” is an act, “retire quarto” ends a thing."""
_FAILS = r"\s(?:failed|broke|(?:did|does)(?:n['’]t| not) work|was a mistake)\b"
FAILS = re.compile(_FAILS, re.IGNORECASE)
"""Looked for before FAILED, which tries each place of a text: 12 µs a lesson in place of 303, as few have one."""
FAILED = re.compile(rf"(?P<what>[^.,;:!?\n]{{2,80}}?)\s*{_FAILS}", re.IGNORECASE)
"""A way that a text says has failed."""
LABEL = re.compile(r"\b(?i:approach|option|variant|plan|method)\s+(?:[A-Z]|\d+)\b")
"""A way that has a letter or a number for its name."""
LEFT_OUT = re.compile(
    r"\b(?:without|skip(?:ping)?|omit(?:ting)?|leav(?:e|ing) out)\s+(?P<what>[^.;:!?\n]{2,60})\b", re.IGNORECASE
)
LEFT_ALONE = re.compile(
    r"\bleav(?:e|ing)\s+(?P<what>[^,;:!?\n]{2,40}?)\s+(?:out|alone|aside|as (?:it|they) (?:is|are))\b", re.IGNORECASE
)
PLACE = re.compile(r"\s+(?:in|on|to|for|at|from|with|by)\s+", re.IGNORECASE)
"""Divides a thing that is turned down from the place where: “no emojis in mails” is nothing against mails."""
CONDITION = re.compile(r"\b(?:without|before|unless|until|till)\b", re.IGNORECASE)
"""Divides a forbidden act from the act that is to be done first."""
EITHER = re.compile(r"\s+or\s+", re.IGNORECASE)
REASON = re.compile(r",\s+(?=(?:\S+\s+){3})|\s+[-–—]\s+|,?\s+(?:because|since|as it|so that)\s+", re.IGNORECASE)
"""Divides a rejected way from the reason, or whatever else follows it."""
CALL = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*\([^()\s]*\)")
"""A call in code. “datetime.now()” is another one than “datetime.now(timezone.utc)”."""
HEADER = re.compile(r"\bX-[A-Z][\w-]+")
"""The name of a header of HTTP."""
PATH = re.compile(r"(?<![\w@])[\w.-]+(?:/[\w.*-]+)+/?")
USES = re.compile(r"(?:use|using|add|install|touch|import|call|mock|run|introduce|bring|put|start)\b", re.IGNORECASE)
"""Acts by which a thing that is named is used: who must never delete a branch may delete a file."""
NAMED, EXACT = 1.5, 5.0
"""Log-odds added for a name that the lesson turns down and the plan has, and taken where it has only the one that is
asked for. Of 13 such pairs of the labelled sets 10 are right, of the 4 with the asked name none. A line that is a
command, or a call in code, leaves no doubt about what is meant; a command in a sentence does, and adds nothing where
the plan has no word of the situation. NAMED is also taken where a command lacks the option that makes it what is
forbidden."""
RARE, COMMON = 1.1, 0.9
"""Rarity from which a word is a name: no whole word of the tokenizer's vocabulary. A plural whose singular is commoner
("migrations", "mails") is none either; "pandas" is one."""
SHORTEST_NAME = 3
LEAST_SHARED, LEAST_WORDS = 0.6, 2
"""Share of the words of a rejected way that a plan must have to contain it, and their least number."""
RIGHT_SHARED, RIGHT_WORDS = 0.5, 2
"""Share of the words of the established way, without those of the situation, from which a plan does it right already,
and their least number; one more where an act is forbidden, as the other words are the situation then. Of 14 such pairs
of the labelled sets none applies."""
FOUND = frozenset({DISCOVERY, NEGATIVE_RESULT})
"""Kinds that tell what happened, not what to do: the words of a plan that has them say nothing of the way it takes."""
FIRST_SHARED = 0.5
"""Share of the words of what is to be done first that a plan must have."""


class PlanWords(NamedTuple):
    """The words of a plan, without what it rules out itself."""

    text: str
    words: frozenset[str]
    names: frozenset[str]
    ruled_out: frozenset[str]
    """The words of what it rules out."""
    is_command: bool
    """True if a line of it is a command."""


def names_in(text: str) -> frozenset[str]:
    """Returns the calls in a text, and its words that are in no dictionary: names of programs, packages and parts.

    The parts of a path are no names.
    """
    calls = [name.lower() for pattern in (CALL, LABEL) for name in pattern.findall(text)]
    words = (word.lower() for word in WORD.findall(PATH.sub(" ", CALL.sub(" ", text))))
    named = (word for word in words if len(word) >= SHORTEST_NAME and not word.isdigit() and _is_rare(word))
    return frozenset([*calls, *(word for word in named if word[:STEM] not in known_acts())])


def _is_rare(word: str) -> bool:
    return rarity(word) >= RARE and (word[-1] != "s" or rarity(word[:-1]) >= COMMON)


@lru_cache(maxsize=16)
def read_plan(plan: str) -> PlanWords:
    """Returns the words of a plan that it means to do; many cues are compared with one plan.

    A call of a method has the name of its method too, as a lesson may name it alone.
    """
    whole = spoken_form(plan)
    ruled, meant = list[str](), whole
    for pattern in (FORBIDDEN, LEFT_OUT, LEFT_ALONE):
        ruled += [match["what"] for match in pattern.finditer(whole)]
        meant = pattern.sub(" ", meant)
    names = names_in(meant)
    methods = {re.sub(r"^[\w.]*\.", "", name) for name in names if name.endswith(")")}
    headers = " header" * bool(HEADER.search(meant))
    return PlanWords(
        meant, content_words(meant + headers), names | methods, content_words(" ".join(ruled)), has_command(plan)
    )


class NamedThings(NamedTuple):
    """The names in a lesson."""

    rejected: frozenset[str]
    asked: frozenset[str]
    """The names in a statement with a rejected one: “pnpm, not npm”."""


@lru_cache(maxsize=4_096)
def names_of(lesson: str) -> NamedThings:
    """Returns the names that a lesson turns down, and those that it asks for instead."""
    rejected, asked = set[str](), set[str]()
    for statement in statements_in(lesson):
        against = _names_against(statement)
        others = names_in(_asked_in(statement))
        rejected |= against
        asked |= others if against - others else set()
    if any(name.endswith(")") for name in rejected):
        asked |= {call.lower() for call in CALL.findall(lesson)} - rejected
    return NamedThings(frozenset(rejected - asked), frozenset(asked - rejected))


def _names_against(statement: str) -> frozenset[str]:
    ended = [match["what"] or match["dead"] for match in ENDED.finditer(statement)]
    turned_down = [
        PLACE.split(part, maxsplit=1)[0]
        for match in FORBIDDEN.finditer(statement)
        if not match["act"] or USES.match(match["what"]) or names_in(match["what"].split()[0])
        for part in _acts_of(match["what"])
    ]
    failed = [match["what"] for match in FAILED.finditer(statement)] if FAILS.search(statement) else []
    return names_in(" ".join([*ended, *turned_down, *failed]))


def _acts_of(forbidden: str) -> Sequence[str]:
    """Returns what a text turns down, without what is to be done first, and without what follows."""
    return EITHER.split(REASON.split(CONDITION.split(forbidden)[0])[0].strip(" ,"))


class LessonWords(NamedTuple):
    """The words by which a lesson asks for things and turns them down, found once for all plans."""

    names: NamedThings
    asked: Mapping[str, float]
    """The stems of what it asks for, without what it turns down, each with its rarity."""
    forbidden: Sequence[frozenset[str]]
    """The stems of each act that it forbids."""
    situation: frozenset[str]
    """The stems of its trigger, if the lesson does not say that too."""


def read_lesson(lesson: str, trigger: str = "") -> LessonWords:
    """Returns what a lesson asks for and turns down, and in which situation."""
    forbidden = tuple(map(content_words, acts_forbidden(lesson)))
    situation = content_words(trigger)
    if situation <= content_words(lesson):
        situation = frozenset()
    return LessonWords(names_of(lesson), words_of(_asked_in(lesson)), forbidden, situation)


def naming(lesson: LessonWords, plan: PlanWords) -> float:
    """Returns the log-odds that the names in a plan add to a lesson that turns one of them down, or asks for it."""
    if plan.is_command and any(_contains(plan, act) for act in lesson.forbidden):
        return EXACT
    if plan.is_command and any(_lacks_option(plan, act) for act in lesson.forbidden):
        return -NAMED
    found = lesson.names.rejected & plan.names
    if lesson.names.asked & plan.names:
        return 0.0 if found else -NAMED
    if plan.is_command or any(name.endswith(")") for name in found):
        return EXACT * bool(found)
    is_situation = not lesson.situation or bool(lesson.situation & plan.words)
    return NAMED * (bool(found) and is_situation)


def _asked_in(text: str) -> str:
    """Returns a text without what it turns down."""
    rest = ENDED.sub(" ", LEFT_ALONE.sub(" ", FORBIDDEN.sub(" ", text)))
    return FAILED.sub(" ", rest) if FAILS.search(rest) else rest


def acts_forbidden(lesson: str) -> Sequence[str]:
    """Returns the acts that a lesson forbids."""
    found = [match["what"] for match in FORBIDDEN.finditer(lesson) if match["act"]]
    return [in_one_line(part) for text in found for part in _acts_of(text)]


def _contains(plan: PlanWords, wanted: frozenset[str]) -> bool:
    return len(wanted & plan.words) >= max(LEAST_WORDS, LEAST_SHARED * len(wanted))


def _lacks_option(plan: PlanWords, forbidden: frozenset[str]) -> bool:
    """Tells if a command does what a forbidden act does, but for the option that makes it that act: no force-push."""
    lacking = forbidden - plan.words
    return bool(lacking) and lacking < forbidden and lacking <= option_words()


@cache
def option_words() -> frozenset[str]:
    """Returns the words for what options of commands do."""
    return content_words(" ".join(shell_words().meanings.values()))


def rejected_ways(cue: Cue) -> Sequence[str]:
    """Returns the ways that a cue turns down, each alternative by itself."""
    forbidden = [part for match in FORBIDDEN.finditer(cue.lesson) for part in _acts_of(match["what"])]
    return [*alternatives_of(cue), *(text for text in map(in_one_line, forbidden) if text)]


def alternatives_of(cue: Cue) -> Sequence[str]:
    """Returns the alternatives that the fields of a cue turn down."""
    fields = {NEGATIVE_RESULT: "attempted", DECISION: "alternatives", PREFERENCE: "preferred_over"}
    given = cue.details.get(fields.get(cue.kind, "")) or ()
    found = [part for text in ([given] if isinstance(given, str) else given) for part in EITHER.split(text)]
    return [text for text in map(in_one_line, found) if text]


def rejected_things(cue: Cue) -> Sequence[str]:
    """Returns what the lesson of a cue turns down for another thing ("tabs, not spaces"), no acts that it forbids."""
    return [match["what"] for match in FORBIDDEN.finditer(cue.lesson) if not match["act"]]


def rejected_in(cue: Cue, plan: str, *, applies: bool = False) -> str:
    """Returns the way that a cue turns down and a plan takes; "" if it takes none.

    What the plan itself rules out ("do not …", "instead of …") it does not contain. If the cue `applies` to the plan,
    an alternative of one word is enough, unless the plan has the words of the choice.
    """
    meant, names = read_plan(plan), names_of(cue.lesson)
    found = names.rejected & meant.names
    if applies and not content_words(choice_of(cue)) <= meant.words:
        for text in alternatives_of(cue):
            if len(words := content_words(text)) == 1 and words <= meant.words:
                return text
    for rejected in rejected_ways(cue):
        if _contains(meant, content_words(rejected)) or found & names_in(rejected):
            return rejected
    return "" if names.asked & meant.names else min(found, default="")


def does_right(cue: Cue, plan: str, way: str) -> bool:
    """Tells if a plan has the words of the way that a cue asks for, or rules out what it forbids, and nothing that it
    rejects.
    """
    meant = read_plan(plan)
    forbidden = [match["what"] for match in FORBIDDEN.finditer(cue.lesson)]
    if (not forbidden and cue.kind in FOUND) or rejected_in(cue, plan):
        return False
    lesson = read_lesson(cue.lesson, cue.trigger)
    if naming(lesson, meant) < 0 or any(_first_is_done(text, meant) for text in forbidden):
        return True
    if any(words and words <= meant.ruled_out for words in map(content_words, rejected_ways(cue))):
        return True
    right = content_words(FORBIDDEN.sub(_what_follows, LEFT_ALONE.sub(" ", way))) - lesson.situation
    return len(right & meant.words) >= max(RIGHT_WORDS + bool(lesson.forbidden), RIGHT_SHARED * len(right))


def _what_follows(forbidden: re.Match[str]) -> str:
    """Returns what follows an act that is forbidden: the reason, or what to do instead."""
    return " ".join([" ", *REASON.split(forbidden["what"], maxsplit=1)[1:]])


def _first_is_done(forbidden: str, plan: PlanWords) -> bool:
    """Tells if a plan does what is to be done before an act, and that before the act."""
    act, *conditions = CONDITION.split(forbidden, maxsplit=1)
    wanted = content_words(REASON.split(conditions[0])[0]) - content_words(act) if conditions else frozenset()
    order = [word[:STEM] for word in WORD.findall(plan.text.lower())]
    found = [order.index(word) for word in wanted if word in order]
    if len(found) < max(LEAST_WORDS, FIRST_SHARED * len(wanted)):
        return False
    acts = [place for place, word in enumerate(order) if word in content_words(act)]
    return not acts or min(found) < max(acts)
