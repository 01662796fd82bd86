"""Extracts the lessons of a session: those that a person states, and those that the agent found. Pure.

A cue of a turn has the lesson in the turn's own words, its kind, and the trigger.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.foundation.text.words import content_words
from app.intake.sessions.transcript import USER, Turn
from app.recall.cues import cue as of_cue
from app.recall.cues.cue import (
    AGENT,
    CORRECTION,
    DECISION,
    DISCOVERY,
    EXTRACTED,
    FOUND_BY,
    LONGEST_LESSON,
    LONGEST_QUOTE,
    LONGEST_TRIGGER,
    NEGATIVE_RESULT,
    PERSON,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    PROJECT,
    Evidence,
    NewCue,
    cut,
)
from app.recall.cues.signs import (
    GREETING,
    STATED,
    SaidPart,
    SpokenTurn,
    TurnModel,
    is_accepted,
    lists_steps,
    models,
    names_option,
    of_agent,
    of_person,
    options_in,
    picked_option,
    signs_of,
    spoken_turns,
)

_SUBJECTS = 12
"""Sentences of the person before a turn among which its subject is looked for."""
RULES = frozenset({"forbids", "standing", "ours", "lasting"})
_BLAME = frozenset({"accuses", "story"})
_BRIEF = 3
"""Words up to which a sentence that approves says nothing else."""
_REPLIES = frozenset({"open_contradicts", "open_points"})
"""Signs of a first sentence that speaks of what the agent did: "no no no", "that only works on your box"."""
_TAIL = 300
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
_OF_ANY_ORDER = content_words(
    "always following order steps procedure process checklist every time do follow way goes reihenfolge schritte"
    " ablauf immer orden pasos siempre порядок шаги всегда"
)
_MOST_LISTED = 12
BASE, HARM, SEVERE, RULE, MINOR = 0.5, 0.2, 0.15, 0.15, -0.2
"""Consequence of a mistake, 0 to 1: the least, and what signs of damage, of severity, of a forbidden act and of a
trifle add."""


def extract(turns: Sequence[Turn], by_author: Mapping[str, TurnModel] | None = None) -> list[NewCue]:
    """Returns the cues of a session in the order of its turns, at most one of a turn, with its number as evidence."""
    by_author = by_author or models()
    asked: list[str] = []
    found: list[NewCue] = []
    for item in spoken_turns(turns):
        author, features = describe(item)
        model = by_author[author]
        likely = model.probability(features)
        if author == PERSON and _states_lesson(item):
            likely = max(likely, model.shown)
        is_refuted = author == AGENT and "open_contradicts" in signs_of(item.after, "person")
        if likely >= model.candidate and not is_refuted:
            found.append(_cue(item, asked[-_SUBJECTS:], likely, is_candidate=likely < model.shown))
        asked += [part.text for part in item.sentences] if author == PERSON else []
    return found


def ordinal_of(cue: NewCue) -> int:
    """Returns the number of the turn that a cue was extracted from."""
    return cue.evidence[0].ordinal or 0


def likely_turns(turns: Sequence[Turn], least: float) -> list[int]:
    """Returns the places of the turns that hold a lesson with this probability or more, the likeliest first."""
    places = {turn.ordinal: place for place, turn in enumerate(turns)}
    described = [(places[item.turn.ordinal], *describe(item)) for item in spoken_turns(turns)]
    found = [(models()[author].probability(features), place) for place, author, features in described]
    return [place for likely, place in sorted(found, key=lambda item: -item[0]) if likely >= least]


def describe(item: SpokenTurn) -> tuple[str, dict[str, float]]:
    """Returns the author of a turn, whose model judges it, and its features."""
    return (PERSON, of_person(item)) if item.turn.role == USER else (AGENT, of_agent(item))


def _cue(item: SpokenTurn, asked: Sequence[str], likely: float, *, is_candidate: bool) -> NewCue:
    """Returns the cue of a turn. What the person approves of in an agent's turn has the person's trust."""
    by_person = item.turn.role == USER
    kept = _lesson_of(item)
    kind = _kind_of_person(item, kept) if by_person else _kind_of_agent(item)
    lesson, trigger = _join_sentences(kept), _trigger_of(kind, item, kept, asked)
    details = _details_of(kind, item, kept, trigger=trigger, lesson=lesson)
    confirmed = {FOUND_BY: AGENT} if not by_person and is_accepted(item) else {}
    # The first sentence of a lesson as it stands in its turn.
    quote = cut(next(part for part, _ in item.sentences if kept[0].text in part), LONGEST_QUOTE)
    return NewCue(
        kind=kind,
        trigger=trigger,
        lesson=lesson,
        details={**details, **confirmed},
        confidence=round(likely, 3),
        consequence=_consequence_of(item, lesson),
        scope=scope_of(lesson) if by_person else PROJECT,
        quote=quote,
        evidence=(Evidence(ordinal=item.turn.ordinal, quote=quote),),
        trust=PERSON if by_person or confirmed else AGENT,
        origin=EXTRACTED,
        is_candidate=is_candidate,
    )


def _lesson_of(item: SpokenTurn) -> list[SaidPart]:
    """Returns the sentences of a turn that belong to its lesson, without greetings, questions and blame."""
    kept = [part for part in item.sentences if _belongs(part)] or list(item.sentences)
    if len(kept) > 1 and kept[0].signs & _REPLIES and not kept[0].signs & (RULES | {"chooses"}):
        kept = kept[1:]
    first = GREETING.sub("", kept[0].text) or kept[0].text
    return [kept[0]._replace(text=first), *kept[1:]]


def _belongs(part: SaidPart) -> bool:
    is_brief = "open_approves" in part.signs and len(part.text.split()) <= _BRIEF
    is_other = (part.signs & _BLAME or is_brief) and not part.signs & RULES
    return not part.text.endswith("?") and not is_other and bool(GREETING.sub("", part.text))


def _join_sentences(parts: Sequence[SaidPart]) -> str:
    """Returns sentences as one text, with a capital letter; as many as there is room for."""
    text = ""
    for part, _ in parts:
        ended = part if part[-1:] in ".!?:;," else f"{part}."
        if text and len(text) + len(ended) > LONGEST_LESSON:
            break
        text = f"{text} {ended}".strip()
    text = cut(re.sub(r"\s+", " ", text), LONGEST_LESSON)
    return text[:1].upper() + text[1:]


def _kind_of_person(item: SpokenTurn, kept: Sequence[SaidPart]) -> str:
    """Returns the kind of a lesson that a person states.

    A decision picks what the agent offered, answers its question, or says that it settles something. A correction
    contradicts, accuses or forbids. Every other wish is a preference.
    """
    signs = frozenset[str]().union(*(part.signs for part in kept))
    if lists_steps(item.text):
        return PROCEDURE
    if _states_precedent(item) or {"dated", "succeeded"} <= item.signs:
        return PRECEDENT
    whole = signs_of(item.text, "person")
    if names_option(item) or ("accuses" not in whole and ("settles" in signs or _answers(item, signs))):
        return DECISION
    contradicts = whole & {"open_contradicts", "accuses"} or ("forbids" in signs and "open_approves" not in whole)
    return CORRECTION if contradicts else PREFERENCE


def _answers(item: SpokenTurn, signs: frozenset[str]) -> bool:
    asked = item.before.endswith("?") or "offer" in signs_of(item.before[-_TAIL:], "agent")
    return picked_option(item) is not None or (asked and "chooses" in signs)


def _states_precedent(item: SpokenTurn) -> bool:
    """Tells if a turn names a precedent outright: "as we did with the invoices page"."""
    return any("precedent" in signs_of(part, STATED) and not part.endswith("?") for part, _ in item.sentences)


def _states_lesson(item: SpokenTurn) -> bool:
    """Tells if a turn is a lesson by its form.

    It says "as we did with X", lists the steps of something ("to release: 1. …"), or picks an option and says why.
    """
    if lists_steps(item.text) and _goal_of(item.text) and "once" not in item.signs:
        return True
    return _states_precedent(item) or (picked_option(item) is not None and REASON.search(item.text) is not None)


def _kind_of_agent(item: SpokenTurn) -> str:
    """Returns the kind of a finding: a way that failed, or a cause, whichever the turn tells first."""
    told = next((part.signs for part in item.sentences if part.signs & {"cause", "failed"}), ())
    return NEGATIVE_RESULT if "failed" in told else DISCOVERY


def _trigger_of(kind: str, item: SpokenTurn, kept: Sequence[SaidPart], asked: Sequence[str]) -> str:
    """Returns the situation in which a lesson applies.

    It is the first rule of a correction or a preference, the words that introduce the steps of a procedure, and of
    others what was asked before: the question that a decision answers, or the symptom that was reported. `asked` are
    the person's sentences before, the latest last.
    """
    rule = max(kept, key=lambda part: len(part.signs & RULES)).text
    if kind in {CORRECTION, PREFERENCE}:
        return cut(rule, LONGEST_TRIGGER)
    goal = _goal_of(item.text) if kind == PROCEDURE else ""
    return cut(goal or _subject(item, kept, asked) or rule, LONGEST_TRIGGER)


def _subject(item: SpokenTurn, kept: Sequence[SaidPart], asked: Sequence[str]) -> str:
    """Returns the latest sentence before that has most words in common with a lesson and the agent's turn before it."""
    lesson, before = content_words(" ".join(part.text for part in kept)), content_words(item.before)
    scored = [
        (2 * len(words & lesson) + len(words & before), place, part)
        for place, part in enumerate(asked)
        if (words := content_words(part)) & (lesson | before)
    ]
    return max(scored, default=(0, 0, ""))[2]


def _goal_of(text: str) -> str:
    """Returns the words that introduce a list of steps ("month end: first …"); "" if none do."""
    match = NUMBERED.search(text)
    start = text[: match.start()] if match else text
    goal = start.rpartition(":")[0] if ":" in start else (start if match else "")
    goal = GREETING.sub("", goal.strip().rstrip(":,. "))
    return goal if content_words(goal) - _OF_ANY_ORDER else ""


def steps_of(text: str) -> list[str]:
    """Returns the steps that a text numbers, or names one after the other; none if there is only one."""
    parts = NUMBERED.split(text)[1:]
    if len(parts) < 2:  # noqa: PLR2004 - one step is no order
        parts = THEN.split(text.partition(": ")[2] or text)
    found = [cut(part.strip(" \n.,;"), LONGEST_QUOTE) for part in parts]
    return [step for step in found if content_words(step)][:_MOST_LISTED]


def rejected_way(text: str) -> str:
    """Returns what a sentence turns down."""
    return _first(REJECTED, text)


def _details_of(
    kind: str, item: SpokenTurn, kept: Sequence[SaidPart], *, trigger: str, lesson: str
) -> Mapping[str, Any]:
    """Returns the further fields of the kind that the turn and its surroundings tell."""
    why = _first(REASON, lesson)
    made: Mapping[str, Mapping[str, Any]] = {
        PREFERENCE: {"preferred_over": rejected_way(lesson)},
        PRECEDENT: {"situation": trigger},
        PROCEDURE: {"goal": trigger, "steps": steps_of(item.text)},
        DECISION: {"subject": trigger, "reasoning": why, **_choice(item, kept[0].text, rejected_way(lesson))},
        DISCOVERY: {"implications": why},
        NEGATIVE_RESULT: {"failure_reason": why},
    }
    return {name: value for name, value in made.get(kind, {}).items() if value}


def _choice(item: SpokenTurn, said: str, turned_down: str) -> Mapping[str, Any]:
    """Returns what a decision chooses, with the option's words where the person only gives its number, and what not."""
    options, picked, words = options_in(item.before), picked_option(item), content_words(REASON.sub("", said))
    names = [re.split(r"[:,(]", option)[0].strip(" *") for option in options]
    others = [
        name
        for place, name in enumerate(names)
        if place != picked and (picked is not None or not words & content_words(name))
    ]
    if picked is not None and not content_words(options[picked]) & words:
        said = f"{options[picked]} ({said.rstrip('.')})"
    alternatives = list(dict.fromkeys(filter(None, [turned_down, *others])))[:_MOST_LISTED]
    return {"choice": cut(said, LONGEST_TRIGGER), "alternatives": alternatives}


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match["what"].strip() if match else ""


def _consequence_of(item: SpokenTurn, lesson: str) -> float:
    """Returns the cost of the mistake, 0 to 1, from signs of damage, severity and trifles."""
    tones = signs_of(item.text, "tone")
    value = BASE + HARM * ("harm" in tones) + SEVERE * ("severe" in tones) + MINOR * ("minor" in tones)
    value += RULE * ("forbids" in signs_of(lesson, "person"))
    return round(min(max(value, 0.1), 1.0), 2)


def scope_of(lesson: str) -> str:
    """Tells if a lesson is about the person, wherever it works, or about this project."""
    return of_cue.USER if "everywhere" in signs_of(lesson, "tone") else PROJECT
