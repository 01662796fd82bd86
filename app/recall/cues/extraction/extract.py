"""Extracts the lessons of a session: those that a person states, and those that the agent found. Pure.

A cue of a turn has the lesson in the turn's own words, its kind, and the trigger.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.foundation.text.words import content_words
from app.intake.sessions.transcript import USER
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
    ALONE,
    BINDING,
    GREETING,
    READ,
    STATED,
    TEACHING,
    UNLESS,
    SaidPart,
    SpokenTurn,
    TurnModel,
    fitted_model,
    is_accepted,
    lists_steps,
    may_be_read,
    may_teach,
    names_option,
    of_person,
    options_in,
    picked_option,
    redirects,
    signs_of,
    tells_finding,
    was_asked,
)

STATED_FORM = 0.45
"""Confidence of a lesson that a person states in a form of its own, 0 to 1. It is set by hand."""
FINDING = 0.6
"""Confidence of a finding with which a person agrees, 0 to 1. It is set by hand."""
_FEWEST_NAMED = 5
"""Words of a sentence that names its situation by itself."""
_SUBJECTS = 12
"""Sentences of the person before a turn among which its subject is looked for."""
RULES = frozenset({"forbids", "standing", "ours", "lasting"})
_BLAME = frozenset({"accuses", "story"})
_BRIEF = 3
"""Words up to which a sentence that approves says nothing else."""
_MOST_WORDS, _NEAR = 50, 0.6
"""Words of a lesson that is taken whole, and the share of the best sentence's probability that one has in a longer one.
Both are set by hand."""
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
_TRIED = re.compile(
    r"\b(?:tried|attempted)\s+(?P<what>[^.;:!?\n]{3,160}?),?\s+(?:and|but)\s+(?:it|that|this)\s[^.:;,\n]{3,60}"
    r"(?:[:,;]\s*(?:because\s+)?(?P<why>[^.;\n]{3,200}?))?(?:,?\s+so\s+(?P<then>[^.;\n]{3,160}))?(?=[.;\n]|$)",
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


def extract(spoken: Sequence[SpokenTurn], model: TurnModel | None = None) -> list[NewCue]:
    """Returns the cues of a session in the order of its turns, at most one of a turn, with its number as evidence."""
    model = model or _model_of(spoken)
    asked: list[str] = []
    found: list[NewCue] = []
    for item in spoken:
        likely, by_person = _likelihoods(item, model), item.turn.role == USER
        if by_person and _states_lesson(item):
            likely[0] = max(likely[0], STATED_FORM)
        if max(likely) >= model.candidate and (by_person or is_accepted(item)):
            found.append(_cue(item, asked[-_SUBJECTS:], likely, is_candidate=max(likely) < model.shown))
        asked += [part.text for part in item.sentences] if by_person else []
    return found


def ordinal_of(cue: NewCue) -> int:
    """Returns the number of the turn that a cue was extracted from."""
    return cue.evidence[0].ordinal or 0


def likely_turns(spoken: Sequence[SpokenTurn], least: float) -> list[int]:
    """Returns the ordinals of the turns that hold a lesson with this probability or more, the likeliest first."""
    model = _model_of(spoken)
    found = [(max(_likelihoods(item, model)), item.turn.ordinal) for item in spoken]
    return [ordinal for likely, ordinal in sorted(found, key=lambda item: -item[0]) if likely >= least]


def _model_of(spoken: Sequence[SpokenTurn]) -> TurnModel:
    is_read = any(part.odds is not None for item in spoken for part in item.sentences)
    return fitted_model(READ if is_read else ALONE)


def _likelihoods(item: SpokenTurn, model: TurnModel) -> list[float]:
    """Returns the probability of each sentence of a turn that it holds a lesson."""
    if item.turn.role != USER:
        return [FINDING * tells_finding(item, part) for part in item.sentences]
    is_named = names_option(item) and "open_task" not in item.sentences[0].signs
    picks = is_named or picked_option(item) is not None
    may = may_be_read if model.reads else may_teach
    found: list[float] = []
    for place, (row, part) in enumerate(zip(of_person(item), item.sentences, strict=True)):
        is_choice = picks and not place
        fitted = model.probability(row) * (may(part) or is_choice)
        stated = STATED_FORM * (redirects(part) and (may_teach(part) or is_choice))
        found.append(max(fitted, stated))
    return found


def _cue(item: SpokenTurn, asked: Sequence[str], likely: Sequence[float], *, is_candidate: bool) -> NewCue:
    """Returns the cue of a turn. What the person approves of in an agent's turn has the person's trust."""
    by_person = item.turn.role == USER
    kept = _lesson_of(item, likely)
    kind = _kind_of_person(item, kept) if by_person else _kind_of_agent(item)
    lesson, trigger = _join_sentences(kept), _trigger_of(kind, item, kept, asked)
    subject = _subject(item, kept, asked) or trigger
    details = _details_of(kind, item, kept, trigger=trigger, subject=subject, lesson=lesson)
    confirmed = {FOUND_BY: AGENT} if not by_person and is_accepted(item) else {}
    # The likeliest sentence as it stands in its turn.
    quote = cut(item.sentences[likely.index(max(likely))].text, LONGEST_QUOTE)
    return NewCue(
        kind=kind,
        trigger=trigger,
        lesson=lesson,
        details={**details, **confirmed},
        confidence=round(max(likely), 3),
        consequence=_consequence_of(item, lesson),
        scope=scope_of(lesson) if by_person else PROJECT,
        quote=quote,
        evidence=(Evidence(ordinal=item.turn.ordinal, quote=quote),),
        trust=PERSON if by_person or confirmed else AGENT,
        origin=EXTRACTED,
        is_candidate=is_candidate,
    )


def _lesson_of(item: SpokenTurn, likely: Sequence[float]) -> list[SaidPart]:
    """Returns the sentences of a turn that belong to its lesson, without greetings, questions and blame.

    Of a long turn they are the likeliest ones, with the reason that follows.
    """
    best = likely.index(max(likely))
    kept = [part for at, part in enumerate(item.sentences) if at == best or _belongs(part)]
    if sum(len(part.text.split()) for part in kept) > _MOST_WORDS:
        kept = [part for part in _likeliest(item, likely) if part in kept] or kept
    # A reply to what the agent did comes before the lesson: "no no no", "it's working now, thanks!".
    if kept[0].signs & {"open_contradicts", "open_points"} and not kept[0].signs & (RULES | {"chooses"}):
        kept = kept[1:] or kept
    first = GREETING.sub("", kept[0].text) or kept[0].text
    return [kept[0]._replace(text=first), *kept[1:]]


def _likeliest(item: SpokenTurn, likely: Sequence[float]) -> list[SaidPart]:
    """Returns the sentences that are nearly as likely as the best one, each with the reason that follows.

    A finding comes with all that the agent says after it: there stands the remedy.
    """
    near = [one >= _NEAR * max(likely) for one in likely]
    if item.turn.role != USER:
        return list(item.sentences[near.index(True) :])
    places = enumerate(item.sentences)
    return [part for at, part in places if near[at] or (at and near[at - 1] and "reason" in part.signs)]


def _belongs(part: SaidPart) -> bool:
    is_brief = "open_approves" in part.signs and len(part.text.split()) <= _BRIEF
    is_other = (part.signs & _BLAME or is_brief) and not part.signs & RULES
    return not part.text.endswith("?") and not is_other and bool(GREETING.sub("", part.text))


def _join_sentences(parts: Sequence[SaidPart]) -> str:
    """Returns sentences as one text, with a capital letter; as many as there is room for."""
    text = ""
    for part in parts:
        ended = part.text if part.text[-1:] in ".!?:;," else f"{part.text}."
        if text and len(text) + len(ended) > LONGEST_LESSON:
            break
        text = f"{text} {ended}".strip()
    text = cut(re.sub(r"\s+", " ", text), LONGEST_LESSON)
    return text[:1].upper() + text[1:]


def _kind_of_person(item: SpokenTurn, kept: Sequence[SaidPart]) -> str:
    """Returns the kind of a lesson that a person states, by its form.

    A decision picks what the agent offered, settles something, or answers the agent's question by a choice. A
    correction contradicts, accuses or forbids. What was tried and failed is a negative result, and a fact without a
    rule a discovery. Every other wish is a preference.
    """
    signs = frozenset[str]().union(*(part.signs for part in kept))
    if _recurs(item.text):
        return PROCEDURE
    if _states_precedent(item) or {"dated", "succeeded"} <= item.signs:
        return PRECEDENT
    if "attempts" in signs:
        return NEGATIVE_RESULT
    whole = signs_of(item.text, "person")
    corrects = whole & {"open_contradicts", "accuses"} or ("forbids" in signs and "open_approves" not in whole)
    is_settled = "settles" in signs and "accuses" not in whole
    is_answer = was_asked(item) and "chooses" in signs and not corrects
    if names_option(item) or picked_option(item) is not None or is_settled or is_answer:
        return DECISION
    if corrects:
        return CORRECTION
    is_wish = signs & (BINDING | {"ours", "contrasts", "open_rule", "open_prefers", "chooses"})
    is_fact = "informs" in signs or not signs & TEACHING
    return DISCOVERY if is_fact and not is_wish else PREFERENCE


def _recurs(text: str) -> bool:
    """Tells if a text lists the steps of something that comes again: "to release: 1. …" and no request of once."""
    lead = NUMBERED.split(text, maxsplit=1)[0] if NUMBERED.search(text) else text.partition(":")[0]
    told = signs_of(lead, "person")
    return (
        lists_steps(text) and bool(told & {"orders", "standing", "lasting", "open_recurs"}) and "open_task" not in told
    )


def _states_precedent(item: SpokenTurn) -> bool:
    """Tells if a turn names a precedent outright: "as we did with the invoices page"."""
    return any("precedent" in signs_of(part.text, STATED) and not part.text.endswith("?") for part in item.sentences)


def _states_lesson(item: SpokenTurn) -> bool:
    """Tells if a turn is a lesson by its form.

    It says "as we did with X", lists the steps of something that comes again ("to release: 1. …"), picks an option and
    says why, calls what the agent did wrong and says how it is, says what it prefers, or what was tried and failed.
    """
    names_occasion = _goal_of(item.text) or "lasting" in item.sentences[0].signs
    if _recurs(item.text) and names_occasion and "once" not in item.signs:
        return True
    if "open_rejects" in item.sentences[0].signs and any(map(_tells, item.sentences[1:])):
        return True
    is_told = bool(item.signs & {"attempts", "open_prefers"}) or _states_precedent(item)
    return is_told or (picked_option(item) is not None and REASON.search(item.text) is not None)


def _tells(part: SaidPart) -> bool:
    """Tells if a sentence says how something is or shall be, without a question, a report or blame."""
    return not (part.signs & {"accuses", "open_asks", "once", *UNLESS} or part.text.endswith("?"))


def _kind_of_agent(item: SpokenTurn) -> str:
    """Returns the kind of a finding: a way that failed, or a cause, whichever the turn tells first."""
    told = next((part.signs for part in item.sentences if part.signs & {"cause", "failed"}), ())
    return NEGATIVE_RESULT if "failed" in told else DISCOVERY


def _trigger_of(kind: str, item: SpokenTurn, kept: Sequence[SaidPart], asked: Sequence[str]) -> str:
    """Returns the situation in which a lesson applies: what somebody is about to do when it matters.

    It is the rule of a correction or a preference, the words that introduce the steps of a procedure, and of others
    what was asked before. What names too little is completed by the other: "which queue: redis and rq then".
    `asked` are the person's sentences before, the latest last.
    """
    rule = max(kept, key=lambda part: len(part.signs & RULES)).text
    if kind == PROCEDURE and (goal := _goal_of(item.text)):
        return cut(goal, LONGEST_TRIGGER)
    asked_for = _subject(item, kept, asked)
    if kind in {CORRECTION, PREFERENCE}:
        is_enough = not asked_for or len(content_words(rule)) >= _FEWEST_NAMED
        return cut(rule if is_enough else f"{asked_for.rstrip('.?!: ')}: {rule}", LONGEST_TRIGGER)
    said = content_words(" ".join(part.text for part in kept))
    is_enough = bool(content_words(asked_for) & said) or not content_words(rule)
    return cut(asked_for if is_enough else f"{asked_for.rstrip('.?!: ')}: {rule}".strip(": "), LONGEST_TRIGGER)


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
    kind: str, item: SpokenTurn, kept: Sequence[SaidPart], *, trigger: str, subject: str, lesson: str
) -> Mapping[str, Any]:
    """Returns the further fields of the kind that the turn and its surroundings tell."""
    why = _first(REASON, lesson)
    made: Mapping[str, Mapping[str, Any]] = {
        PREFERENCE: {"preferred_over": rejected_way(lesson)},
        PRECEDENT: {"situation": trigger},
        PROCEDURE: {"goal": trigger, "steps": steps_of(item.text)},
        DECISION: {
            "subject": cut(subject, LONGEST_TRIGGER),
            "reasoning": why,
            **_choice(item, kept[0].text, rejected_way(lesson)),
        },
        DISCOVERY: {"implications": why},
        NEGATIVE_RESULT: _attempt_in(lesson, why),
    }
    return {name: value for name, value in made.get(kind, {}).items() if value}


def _attempt_in(lesson: str, why: str) -> Mapping[str, Any]:
    """Returns what was tried, why it failed, and what it led to, as far as a lesson says so."""
    tried = _TRIED.search(lesson)
    if tried is None:
        return {"failure_reason": why}
    found = {"attempted": tried["what"], "failure_reason": tried["why"] or why, "led_to": tried["then"] or ""}
    return {name: value.strip(" ,.:;") for name, value in found.items()}


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
