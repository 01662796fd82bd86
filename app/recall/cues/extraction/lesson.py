"""Writes a cue from a turn that holds a lesson: its kind, the lesson in the turn's own words, and the trigger. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.foundation.text.words import content_words
from app.recall.cues.cue import (
    CORRECTION,
    DECISION,
    DISCOVERY,
    LONGEST_LESSON,
    LONGEST_QUOTE,
    LONGEST_TRIGGER,
    NEGATIVE_RESULT,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    PROJECT,
    USER,
    cut,
)
from app.recall.cues.extraction.features import (
    OPENING,
    SpokenTurn,
    lists_steps,
    names_option,
    offers_options,
    options_in,
    picked_option,
)
from app.recall.cues.signs import STATED, signs_of

RULES = frozenset({"forbids", "always", "standing", "ours", "instead"})
"""Signs by which a sentence states a rule or a wish."""
LEADING = frozenset(
    {"forbids", "always", "standing", "ours", "open_request", "order", "chooses", "settles", "reverses", "dated"}
)
"""Signs of a sentence with which a lesson begins."""
TELLING = RULES | {"order", "chooses", "reason", "past", "harm"}
"""Signs of sentences that belong to a lesson."""
FINDINGS = frozenset({"cause", "failed", "remedy", "generic", "found"})
TAIL = 300
"""Characters at the end of the agent's turn in which it asks."""
BRIEF, SHORT = 3, 9
"""Words of a sentence that says something only by a rule, and of a request that is no lesson without one."""
CLAUSE = re.compile(r",\s+(?!\w+,)")
POINTS = re.compile(r"^\W*(?:that|this|it|its|it's|thats|that's|das|es|eso|это)\b", re.IGNORECASE)
"""The beginning of a sentence that speaks of what the agent has done."""
FORBIDDEN = re.compile(
    r"(?:^|[^\w'’])(?:you )?(?:never|do ?n['’]?t|dont|do not|does ?n['’]t|must ?n['’]?t|must not|nothing|nie(?:mals)?|"
    r"nicht|nunca|никогда|нельзя)\s+(?!\s|(?:need|know|want|have|care|think|like|mind|see)\b)"
    r"(?P<act>[^,;:!?\n]{6,120}?)(?=[,;:!?\n]|\.\s|\.$|$)",
    re.IGNORECASE,
)
"""An act that a sentence forbids."""
CONDITION = re.compile(
    r"^\W*(?:and |so |und |y )?(?P<act>(?:when(?:ever)?|before|after|if|(?:every|each) time|"
    r"(?:for|in|on|with) (?:all|every|any|each)|wenn|bevor|vor jede[mrn]|bei|antes de|cuando|если|когда|"
    r"перед|прежде чем)\s+[^,;!?:\n]{6,90}?)(?=[,;!?:\n]|\.\s|\.$|$)",
    re.IGNORECASE,
)
"""A clause that says when something applies."""
PLAIN_WORDS = 2
"""Content words from which on an act or a condition names a situation."""
NUMBERED = re.compile(r"(?:^|[\s,;:])\d{1,2}[.)]\s+")
THEN = re.compile(
    r",?(?<!\s)\s+(?:and |und |y |и )?(?:only |erst |solo )?"
    r"(?:then|danach|dann|anschließend|luego|después|потом|затем)\s+|,\s+|;\s+",
    re.IGNORECASE,
)
REASON = re.compile(
    r"\b(?:because|since|otherwise|as it|as they|so that|weil|denn|damit|sonst|porque|ya que|потому что|иначе|чтобы)\b"
    r"\s*(?P<what>[^.!?\n]{3,200})",
    re.IGNORECASE,
)
REJECTED = re.compile(
    r"(?:instead of|rather than|as opposed to|, not|\bprefer(?:s|red)?\s[^,.;:!?\n]{1,60}?\sover|"
    r"statt|anstelle von|anstatt|en vez de|en lugar de|вместо|, а не)\s+(?P<what>[^,.;:!?\n]{2,80})",
    re.IGNORECASE,
)
"""A rejected alternative."""
ITEM = re.compile(
    r"(?:^[^\S\n]*(?:[-*•]|\d{1,2}[.)])|(?<=[:,;])\s*\d{1,2}[.)])\s+(?P<what>\S.{1,200}?)(?=[,;]\s*\d{1,2}[.)]\s|$)",
    re.MULTILINE,
)
"""An item of a list, on a line of its own or numbered in a sentence."""
OF_ANY_ORDER = content_words(
    "always following order steps procedure process checklist every time do follow way goes reihenfolge schritte"
    " ablauf immer orden pasos siempre порядок шаги всегда"
)
"""Words that introduce any list of steps."""
MOST_LISTED = 12
BASE, HARM, SEVERE, RULE, MINOR = 0.5, 0.2, 0.15, 0.15, -0.2
"""Consequence of a mistake, 0 to 1: the least, and what signs of damage, of severity, of a forbidden act and of a
trifle add."""


def lesson_of_person(item: SpokenTurn) -> list[str]:
    """Returns the sentences of a person's turn that belong to its lesson, without greetings, thanks and accusations."""
    if lists_steps(item.text):
        steps = [place for place, part in enumerate(item.sentences) if signs_of(part, "person") & {"orders", "order"}]
        first, *others = item.sentences[min(steps, default=0) :]
        return [OPENING.sub("", first) or first, *others]
    kept = [part for place, part in enumerate(item.sentences) if _belongs(part, is_first=place == 0)]
    stated = [place for place, part in enumerate(kept) if signs_of(part, "person") & LEADING]
    # What comes before the first rule is about the agent's work.
    answers = "open_concedes" in signs_of(item.after, "agent")
    if stated and (answers or signs_of(item.text, "person") & {"open_contradicts", "accuses"}):
        kept = kept[stated[0] :]
    if names_option(item) and item.sentences[0] not in kept:
        # The choice itself may be one word: "sqlite."
        kept = [item.sentences[0], *kept]
    told = [text for part in kept or item.sentences if (text := _without_blame(part))]
    return [text for place, part in enumerate(told) if (text := OPENING.sub("", part) if place == 0 else part)] or told


def _belongs(part: str, *, is_first: bool) -> bool:
    signs, words = signs_of(part, "person"), len(part.split())
    has_rule = bool(signs & RULES)
    if part.endswith("?"):
        return False
    if words <= BRIEF and not signs & (RULES | {"order", "chooses"}):
        return False
    if "accuses" in signs and not has_rule:
        return False
    if is_first and POINTS.match(part) and not signs & {"forbids", "standing", "ours", "chooses"}:
        return False
    if "story" in signs and not signs & {"forbids", "standing", "ours", "chooses", "succeeded"}:
        return False
    return bool(signs & TELLING) or "open_request" not in signs or words >= SHORT


def _without_blame(part: str) -> str:
    """Returns a sentence without the clauses that blame or tell what went wrong."""
    if not signs_of(part, "person") & {"accuses", "story"}:
        return part
    clauses = CLAUSE.split(part)
    kept = [
        clause
        for clause in clauses
        if not (own := signs_of(clause, "person")) & {"accuses", "story"} or own & {"forbids", "standing", "ours"}
    ]
    return ", ".join(kept) if kept else part


def lesson_of_agent(item: SpokenTurn) -> list[str]:
    """Returns the sentences of an agent's turn that tell a finding: the cause, what failed, and the remedy."""
    kept = [
        part
        for part in item.sentences
        if signs_of(part, "agent") & FINDINGS and len(part.split()) > BRIEF and not part.endswith("?")
    ]
    return kept or list(item.sentences)


def join_sentences(parts: Sequence[str]) -> str:
    """Returns sentences as one text, with a capital letter; as many as there is room for."""
    text = ""
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        stop = ";" if following[:1].islower() and part[-1:].isalnum() else "."
        ended = part if part[-1:] in ".!?:;," else f"{part}{stop}"
        if text and len(text) + len(ended) > LONGEST_LESSON:
            break
        text = f"{text} {ended}".strip()
    text = cut(re.sub(r"\s+", " ", text), LONGEST_LESSON)
    return text[:1].upper() + text[1:]


def kind_of_person(item: SpokenTurn, features: Mapping[str, float], kept: Sequence[str]) -> str:
    """Returns the kind of a lesson that a person states.

    A decision answers options or a question of the agent, or says that it settles something. A correction answers what
    the agent did: it contradicts, accuses or forbids, or the agent concedes. Every other wish is a preference.
    """
    signs, whole = frozenset[str]().union(*(signs_of(part, "person") for part in kept)), signs_of(item.text, "person")
    if lists_steps(item.text):
        return PROCEDURE
    if states_precedent(item) or ({"dated", "succeeded"} <= whole and "forbids" not in signs):
        return PRECEDENT
    if _decides(item, features, signs, whole):
        return DECISION
    if whole & {"open_contradicts", "accuses"}:
        return CORRECTION
    answers = "open_approves" not in whole and bool(features["conceded"] or "forbids" in signs)
    return CORRECTION if answers and not {"ours", "standing"} <= signs else PREFERENCE


def _decides(item: SpokenTurn, features: Mapping[str, float], signs: frozenset[str], whole: frozenset[str]) -> bool:
    """Tells if a person chooses: of what the agent offered, after a way that failed, or in so many words."""
    if "standing" in signs and signs & {"forbids", "ours", "always"}:
        return False
    if names_option(item):
        return True
    if "accuses" in whole:
        return False
    is_choice = offers_options(item.before) or picked_option(item) is not None or "chooses" in signs
    answers = is_choice and was_asked(item) and "open_contradicts" not in whole and "always" not in signs
    return answers or "settles" in signs or bool(features["failed_before"] and "chooses" in signs)


def states_precedent(item: SpokenTurn) -> bool:
    """Tells if a turn names a precedent outright: "as we did with the invoices page"."""
    return any("precedent" in signs_of(part, STATED) and not part.endswith("?") for part in item.sentences)


def states_procedure(item: SpokenTurn) -> bool:
    """Tells if a turn names a goal and lists its steps: "to release: 1. …"."""
    return lists_steps(item.text) and bool(goal_of(item.text)) and "once" not in signs_of(item.text, "person")


def states_decision(item: SpokenTurn) -> bool:
    """Tells if a turn picks one of the options that the agent offered, and says why."""
    return picked_option(item) is not None and REASON.search(item.text) is not None


def was_asked(item: SpokenTurn) -> bool:
    """Tells if the agent's turn before listed options or asked, or if a person's turn begins with a thing it named."""
    offered = offers_options(item.before) or "offer" in signs_of(item.before[-TAIL:], "agent")
    return offered or item.before.rstrip().endswith("?") or names_option(item) or picked_option(item) is not None


def kind_of_agent(item: SpokenTurn) -> str:
    """Returns the kind of a finding: a way that failed, or a cause."""
    signs = signs_of(item.text, "agent")
    return NEGATIVE_RESULT if "failed" in signs and "diagnosis" not in signs else DISCOVERY


def trigger_of(kind: str, item: SpokenTurn, kept: Sequence[str], asked: Sequence[str]) -> str:
    """Returns the situation in which a lesson applies.

    It is the act that the lesson forbids, or its condition, or its own first rule; a decision's is the question that it
    answers, and a finding's the symptom that was reported. `asked` are the person's sentences before, the latest last.
    """
    has_subject = kind in {DISCOVERY, NEGATIVE_RESULT} or (kind == DECISION and was_asked(item))
    if has_subject and (subject := _subject(item, kept, asked)):
        return cut(OPENING.sub("", subject) or subject, LONGEST_TRIGGER)
    if kind == PROCEDURE:
        goal = goal_of(item.text)
        return cut(goal or _subject(item, kept, asked) or kept[0], LONGEST_TRIGGER)
    if kind == PRECEDENT and states_precedent(item) and asked:
        return cut(asked[-1], LONGEST_TRIGGER)
    if kind == DECISION:
        return cut(choice_in(kept), LONGEST_TRIGGER)
    ordered = sorted(kept, key=lambda part: -_weight(part))
    for part in ordered:
        for pattern in (FORBIDDEN, CONDITION):
            match = pattern.search(part)
            if match and len(content_words(match["act"])) > PLAIN_WORDS:
                return cut(match["act"].strip(), LONGEST_TRIGGER)
    return cut(ordered[0], LONGEST_TRIGGER)


def choice_in(kept: Sequence[str]) -> str:
    """Returns the sentence of a decision that chooses: the first that settles something, or the first of all."""
    holding = [part for part in kept if "reverses" not in signs_of(part, "person")] or list(kept)
    by_sign = [part for sign in ("settles", "chooses") for part in holding if sign in signs_of(part, "person")]
    return kept[0] if len(kept[0].split()) <= BRIEF else next(iter(by_sign), kept[0])


def _choice(kept: Sequence[str], options: Sequence[str], picked: int | None) -> str:
    """Returns what a decision chooses, with the option's own words where the person only says its number."""
    said = choice_in(kept)
    if picked is None or content_words(options[picked]) & content_words(said):
        return said
    return f"{options[picked]} ({said.rstrip('.')})"


def _weight(part: str) -> int:
    """Returns how much the signs of a sentence speak for a rule."""
    signs = signs_of(part, "person")
    return 2 * len(signs & {"forbids", "standing", "ours"}) + len(signs & TELLING) - 2 * len(signs & {"accuses"})


def _subject(item: SpokenTurn, kept: Sequence[str], asked: Sequence[str]) -> str:
    """Returns the latest sentence before that has most words in common with a lesson and the agent's turn before it."""
    lesson, before = content_words(" ".join(kept)), content_words(item.before)
    telling = lesson | before if was_asked(item) else lesson
    scored = [
        (2 * len(words & lesson) + len(words & before), place, part)
        for place, part in enumerate(asked)
        if (words := content_words(part)) & telling
    ]
    return max(scored, default=(0, 0, ""))[2]


def goal_of(text: str) -> str:
    """Returns the words that introduce a list of steps ("month end: first …"); "" if none do."""
    match = NUMBERED.search(text)
    start = text[: match.start()] if match else text
    goal = start.rpartition(":")[0] if ":" in start else (start if match else "")
    goal = OPENING.sub("", goal.strip().rstrip(":,. "))
    return goal if content_words(goal) - OF_ANY_ORDER else ""


def steps_of(text: str) -> list[str]:
    """Returns the steps that a text numbers, or names one after the other; none if there is only one."""
    parts = NUMBERED.split(text)[1:]
    if len(parts) < 2:  # noqa: PLR2004 - one step is no order
        parts = THEN.split(text.partition(": ")[2] or text)
    found = [cut(part.strip(" \n.,;"), LONGEST_QUOTE) for part in parts]
    return [step for step in found if content_words(step)][:MOST_LISTED]


def rejected_way(text: str) -> str:
    """Returns what a sentence turns down."""
    return _first(REJECTED, text)


def details_of(kind: str, item: SpokenTurn, kept: Sequence[str], *, trigger: str, lesson: str) -> Mapping[str, Any]:
    """Returns the further fields of the kind that the turn and its surroundings tell."""
    why = _first(REASON, lesson)
    picked, options = picked_option(item), options_in(item.before)
    chosen = content_words(REASON.sub("", choice_in(kept)))
    names = [option.partition(":")[0].partition(",")[0].partition("(")[0].strip(" *") for option in options]
    others = [
        name
        for place, name in enumerate(names)
        if place != picked and (picked is not None or not chosen & content_words(name))
    ]
    turned_down = rejected_way(lesson)
    made: Mapping[str, Mapping[str, Any]] = {
        PREFERENCE: {"preferred_over": turned_down},
        PRECEDENT: {"situation": trigger},
        PROCEDURE: {"goal": trigger, "steps": steps_of(item.text)},
        DECISION: {
            "subject": trigger,
            "choice": cut(_choice(kept, options, picked), LONGEST_TRIGGER),
            "alternatives": list(dict.fromkeys([*filter(None, [turned_down]), *others]))[:MOST_LISTED],
            "reasoning": why,
        },
        DISCOVERY: {"implications": why},
        NEGATIVE_RESULT: {"failure_reason": why},
    }
    return {name: value for name, value in made.get(kind, {}).items() if value}


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match["what"].strip() if match else ""


def consequence_of(item: SpokenTurn, lesson: str) -> float:
    """Returns the cost of the mistake, 0 to 1, from signs of damage, severity and trifles."""
    tones, signs = signs_of(item.text, "tone"), signs_of(lesson, "person")
    value = BASE + HARM * ("harm" in tones or "harm" in signs_of(item.text, "person")) + SEVERE * ("severe" in tones)
    value += RULE * ("forbids" in signs) + MINOR * ("minor" in tones)
    return round(min(max(value, 0.1), 1.0), 2)


def scope_of(lesson: str) -> str:
    """Tells if a lesson is about the person, wherever it works, or about this project."""
    return USER if "everywhere" in signs_of(lesson, "tone") else PROJECT
