"""Describes a turn by numbers: the signs in its own words, what stands before it and what came of it. Pure.

The expressions of the signs are data of each language, and so are the fitted weights of the numbers.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple

from app.foundation.text.data import read_toml
from app.foundation.text.prose import speech_of, statements_in
from app.foundation.text.words import content_words
from app.intake.sessions.transcript import ASSISTANT, USER, Turn

STATED = "stated"
OPENING = "open_"
PACKAGE = "app.recall.cues.extraction.languages"
LONGEST = 3_000
"""Characters of a text that are read: what a person says to an agent is shorter."""
BEGINNING = 400
"""Characters of the agent's turn before in which options are announced."""
BRIEF, PLAIN = 6, 16
"""Words up to which a turn only names something, and below which a sentence states a rule without its reasons."""
WIDE = 40
"""Words of the sentences that may teach, from which on more of them say no more. It is set by hand."""
TAIL = 300
"""Characters at the end of an agent's turn in which it offers something."""
NAMING = 3
ANSWERS = 3
"""Turns of the other speaker in which a finding may be taken back. It is set by hand."""
STEPS = 3
MOST_OPTIONS = 12
MARK = r"^[^\S\n]*(?:[-*•]|\d{1,2}[.)]|[A-Da-d][.)])"
OPTION = re.compile(rf"{MARK}[^\S\n]+(?P<what>\S[^\n]{{0,60}})", re.MULTILINE)
STEP = re.compile(
    r"\d[.)]\s|\b(?:first|then|erst|zuerst|dann|danach|primero|luego|después|сначала|сперва|потом|затем)\b",
    re.IGNORECASE,
)
TOKEN = re.compile(r"(?<![\w.+#-])[\w.+#-]*\w")
GREETING = re.compile(
    r"^(?:\W*(?:\b(?:and|ok(?:ay)?|but|so|nice|great|yes|also|oh|hm+|ugh|please|pls|then|excellent|thanks|thx|perfect|ah+|"
    r"nope|nee|nein|und|aber|bitte|ja|danke|y|pero|bueno|buenísimo|sí|а|и|но|так|ок)\b(?!-)[\s,.!:]*|"
    r"\b(?:no+|нет|what|good|right|clear|stop|wait|well|gut)\b\s*[,.!:]+\s*))+",
    re.IGNORECASE,
)
PLACES = ("1", "2", "3", "4", "a", "b", "c", "d", "first", "second", "third", "fourth", "erste", "zweite", "dritte",
          "vierte", "primera", "segunda", "tercera", "cuarta")  # fmt: skip
PICKED = re.compile(
    r"^\W*(?:(?:let'?s|we|i(?:'d| would)?|i'll|nehmen wir|vamos con)\s+)?"
    r"(?:(?:take|go with|use|pick|do|nehme|die|the|la)\s+)*"
    rf"(?:option|variant|number|no\.?|nr\.?)?\s*(?P<place>{'|'.join(PLACES)})(?=\W|$)",
    re.IGNORECASE,
)
NAME = re.compile(r"`[^`\n]{1,80}`|\w[./_]\w|[a-z][A-Z]|--[a-z]")
"""A mark by which a sentence names code: a file, a function or an option."""
BINDING = frozenset({"forbids", "obliges", "standing", "lasting"})
"""Signs of a sentence that binds: it forbids or demands something, once or always."""
STRICT = frozenset({"forbids", "lasting"})
"""Signs that bind even in a request or a report: "update the rule: never ask me"."""
TEACHING = BINDING | {"contrasts", "ours", "reason", "chooses", "settles", "informs", "dated", "succeeded"}
"""Signs of which a sentence that may hold a lesson has one."""
UNLESS: Mapping[str, Set[str]] = {
    "open_task": STRICT,
    "reports": STRICT,
    "specifies": STRICT,
    "open_specifies": STRICT | {"standing"},
    "open_rejects": TEACHING - {"forbids", "informs", "reason"},
    "muses": STRICT,
}
"""Signs of a request for this once, a report or blame, a specification, and an idea, each with those of which a
sentence has one that teaches all the same: "that's not right, use the CLI", and not "that's wrong" alone."""
PERSON_SIGNS = (
    "forbids", "standing", "lasting", "contrasts", "ours", "chooses", "accuses", "dated", "once", "reports",
    "open_rule", "obliges", "cites", "deictic",
)  # fmt: skip
RULE = re.compile(
    r"(?:(?<=,)\s*(?:(?:and|but|also|then|so)\s+)*|(?<!\s)\s+(?:and|but|also)\s+(?:also\s+)?)"
    r"(?=(?:make sure|be sure to|(?:never|always)(?=\s)|ensure|please (?:do ?n|never)|do(?: not|n't|nt))\b)",
    re.IGNORECASE,
)
"""The place in a sentence at which a rule of its own begins: "start the work, make sure to test first"."""
COMMAND = re.compile(r"^[^\S\n]{0,4}/[\w:-]+(?=\s|$)", re.MULTILINE)
"""The name of a command to the program, before what a person says."""
READ, ALONE = "read", "alone"
"""The fitted models: of sentences that an embedding model has read, and of their signs alone."""
READ_SENTENCE, READ_BEFORE, READ_TURN = 260, 120, 300
"""Characters of a sentence, of the agent's turn before and of its own turn that the embedding model reads."""
TABLES = {USER: "person", ASSISTANT: "agent"}
"""The signs that a turn's sentences are looked through for, by the role."""


def signs_of(text: str, table: str) -> frozenset[str]:
    """Returns the names of the signs of a table that a text has."""
    low = text[:LONGEST].lower().replace("’", "'")
    return frozenset(name for name, pattern in patterns(table).items() if pattern.search(low))


@functools.cache
def patterns(table: str) -> Mapping[str, re.Pattern[str]]:
    """Reads the expressions of a table in all languages; a language is added by adding its file."""
    found: dict[str, list[str]] = {}
    for path in sorted(files(PACKAGE).iterdir(), key=lambda item: item.name):
        if path.name.endswith(".toml"):
            for name, expressions in read_toml(PACKAGE, path.name, dict[str, dict[str, list[str]]])[table].items():
                found.setdefault(name, []).extend(expressions)
    starts = {name: r"^\W*" if name.startswith(OPENING) else r"(?<!\w)" for name in found}
    return {name: re.compile(f"{starts[name]}(?:{'|'.join(own)})(?!\\w)") for name, own in found.items()}


class TurnModel(NamedTuple):
    """A fitted logistic function."""

    bias: float
    shown: float
    """Probability from which on a turn is a cue that may be shown, 0 to 1."""
    candidate: float
    """Probability from which on it is a candidate for a person, 0 to 1."""
    weights: Mapping[str, float]

    @property
    def reads(self) -> bool:
        """True if it weighs what an embedding model reads."""
        return "read" in self.weights

    def probability(self, features: Mapping[str, float]) -> float:
        """Returns the probability that a turn with these features holds a lesson; an unknown feature weighs nothing."""
        odds = self.bias + sum(self.weights.get(name, 0.0) * value for name, value in features.items())
        return 1 / (1 + math.exp(-odds))


@functools.cache
def fitted_model(form: str) -> TurnModel:
    """Reads the model of a person's sentences that an embedding model has read, or of the signs alone."""
    return TurnModel(**read_toml("app.recall.cues.extraction", "weights.toml", dict[str, dict[str, Any]])[form])


class SaidPart(NamedTuple):
    """A sentence, or a statement in one, with the signs that it has."""

    text: str
    signs: frozenset[str]
    odds: float | None = None
    """The log-odds that it is a lesson, but for a constant, by the embedding model; None if that has not read it."""


class SpokenTurn(NamedTuple):
    """A turn with its own words and what surrounds it."""

    turn: Turn
    text: str
    sentences: tuple[SaidPart, ...]
    signs: frozenset[str]
    place: int
    """Its place among the turns that say something."""
    before: str
    """The last turn of the other speaker before it; "" without one."""
    after: str
    """The answer of the other speaker; "" without one. To an agent's turn, only the next one is an answer."""
    answers: tuple[str, ...] = ()
    """The next turns of the other speaker, with that answer if there is one."""


def spoken_turns(turns: Sequence[Turn]) -> list[SpokenTurn]:
    """Returns the turns of persons and agents that say something, each with its surroundings."""
    spoken = [(turn, COMMAND.sub("", speech_of(turn.text).text)) for turn in turns if turn.role in TABLES]
    spoken = [(turn, text) for turn, text in spoken if statements_in(text)]
    found: list[SpokenTurn] = []
    latest = {USER: "", ASSISTANT: ""}
    for place, (turn, text) in enumerate(spoken):
        # A person may send several messages before the agent answers.
        later = islice(spoken, place + 1, None if turn.role == USER else place + 2)
        answers = (answer for other, answer in islice(spoken, place + 1, None) if other.role != turn.role)
        parts = [piece for part in statements_in(text) for piece in _rules_in(part)]
        sentences = tuple(SaidPart(part, signs_of(part, TABLES[turn.role])) for part in parts)
        found.append(
            SpokenTurn(
                turn=turn,
                text=text,
                sentences=sentences,
                signs=frozenset().union(*(part.signs for part in sentences)),
                place=place,
                before=latest[ASSISTANT if turn.role == USER else USER],
                after=next((answer for other, answer in later if other.role != turn.role), ""),
                answers=tuple(islice(answers, ANSWERS)),
            )
        )
        latest[turn.role] = text
    return found


def texts_to_read(spoken: Sequence[SpokenTurn]) -> list[str]:
    """Returns the persons' sentences that are read, each with the end of the agent's turn before and its own turn."""
    found: list[str] = []
    for item in (each for each in spoken if each.turn.role == USER):
        around = _surroundings(item)
        for place, part in enumerate(item.sentences):
            if _is_read(item, place, part):
                found.append(f"{' '.join(part.text.split())[:READ_SENTENCE]} [SEP] {around}")
    return found


def with_odds(spoken: Sequence[SpokenTurn], odds: Iterable[float]) -> list[SpokenTurn]:
    """Returns the turns with the log-odds of the sentences that were read, in the order of `texts_to_read`."""
    each = iter(odds)

    def read(item: SpokenTurn, place: int, part: SaidPart) -> SaidPart:
        return part._replace(odds=next(each)) if _is_read(item, place, part) else part

    return [
        item._replace(sentences=tuple(read(item, place, part) for place, part in enumerate(item.sentences)))
        for item in spoken
    ]


def _is_read(item: SpokenTurn, place: int, part: SaidPart) -> bool:
    """Tells if a sentence is read: one that may teach, and the first of a turn, which may pick an option."""
    return item.turn.role == USER and (not place or may_be_read(part))


def _surroundings(item: SpokenTurn) -> str:
    before, text = " ".join(item.before.split()), " ".join(item.text.split())
    person = f"person: {text[:READ_TURN]}"
    return f"agent: {before[-READ_BEFORE:]} {person}" if before else person


def _rules_in(sentence: str) -> list[str]:
    """Splits a sentence before a rule of its own, if what stands before it is more than a few words."""
    first, *others = RULE.split(sentence, maxsplit=1) if len(sentence) < LONGEST else [sentence]
    return [first, *others] if others and len(first.split()) > NAMING else [sentence]


def may_teach(part: SaidPart) -> bool:
    """Tells if a sentence may hold a lesson by its signs: no question, idea, request or report, or it binds."""
    if _asks(part):
        return {"accuses", "contrasts"} <= part.signs
    needed = [TEACHING, *(UNLESS[name] for name in part.signs & UNLESS.keys())]
    return all(part.signs & wanted for wanted in needed) and "withholds" not in part.signs


def may_be_read(part: SaidPart) -> bool:
    """Tells if a sentence may hold a lesson where an embedding model reads it.

    A question and a request for this once need the signs that they need without a model; any other needs none.
    """
    return may_teach(part) or not (_asks(part) or part.signs & {"open_task", "withholds"})


def _asks(part: SaidPart) -> bool:
    return part.text.endswith("?") or "open_asks" in part.signs


def redirects(part: SaidPart) -> bool:
    """Tells if a sentence orders a way in place of another: "use A instead of B", "that's not right, use A"."""
    stops = {"open_contradicts", "forbids"} <= part.signs or {"open_rejects", "chooses"} <= part.signs
    is_order = (_orders_a_way(part) or stops) and not part.signs & {"once", "open_task", "reports"}
    return is_order and len(part.text.split()) >= NAMING


def _orders_a_way(part: SaidPart) -> bool:
    return "open_rule" in part.signs and bool(part.signs & {"contrasts", "forbids"})


def of_person(item: SpokenTurn) -> list[dict[str, float]]:
    """Returns the features of each sentence of a person's turn, by their names."""
    around: dict[str, float] = {
        "first": item.place == 0,
        "conceded": "open_concedes" in signs_of(item.after, "agent"),
        "names_option": names_option(item),
        "breadth": math.log1p(min(sum(len(part.text.split()) for part in item.sentences if may_teach(part)), WIDE)),
    }
    return [_of_sentence(part) | around for part in item.sentences]


def _of_sentence(part: SaidPart) -> dict[str, float]:
    words = len(part.text.split())
    found: dict[str, float] = {name: name in part.signs for name in PERSON_SIGNS}
    read = {} if part.odds is None else {"read": part.odds}
    return (
        found
        | read
        | {
            "length": math.log1p(min(words, PLAIN)),
            "redirects": _orders_a_way(part),
            "names": bool(NAME.search(part.text)),
        }
    )


def tells_finding(item: SpokenTurn, part: SaidPart) -> bool:
    """Tells if a sentence of an agent's turn says a cause or a failure that the turn announces, no plan or report."""
    told = part.signs & {"cause", "found", "failed"} and not part.signs & {"plans", "reports", "concedes"}
    return bool(told and item.signs & {"found", "failed"}) and not part.text.endswith("?")


def is_accepted(item: SpokenTurn) -> bool:
    """Tells if a person agrees with what an agent found: it praises it, or chooses in the words of the finding.

    To go on with the next request is no agreement, and no later turn must take it back.
    """
    if not item.answers or any(_takes_back(item, answer) for answer in item.answers[1:]):
        return False
    answer = signs_of(item.after, "person")
    if answer & {"open_contradicts", "doubts"}:
        return False
    first = ". ".join(statements_in(item.after)[:2])
    told = signs_of(first, "person")
    goes_on = told & {"open_task", "open_request", "open_asks", "open_rejects"} or "?" in first
    chooses = told & {"chooses", "settles", "reason"} and not goes_on
    return "open_agrees" in answer or bool(chooses and content_words(first) & content_words(item.text))


def _takes_back(item: SpokenTurn, answer: str) -> bool:
    doubts = signs_of(answer, "person") & {"open_contradicts", "doubts"}
    return bool(doubts) and len(content_words(answer) & content_words(item.text)) > 1


def was_asked(item: SpokenTurn) -> bool:
    """Tells if the turn of the other speaker before ends with a question or an offer."""
    return item.before.endswith("?") or "offer" in signs_of(item.before[-TAIL:], "agent")


def options_in(text: str) -> list[str]:
    """Returns the options that an agent's turn lists to choose from, each by its beginning."""
    found = [match["what"].strip(" *-–—") for match in OPTION.finditer(text)]
    is_offer = len(found) > 1 and "options" in signs_of(text[:BEGINNING], "agent")
    return found[:MOST_OPTIONS] if is_offer else []


def picked_option(item: SpokenTurn) -> int | None:
    """Returns the place of the option that a person picks, by its number or by words of its own; None if none."""
    options = options_in(item.before)
    first = GREETING.sub("", item.sentences[0].text) if options else ""
    if match := PICKED.match(first):
        place = PLACES.index(match["place"].lower()) % 4
        return place if place < len(options) else None
    named = [content_words(option) for option in options]
    own = [words - frozenset().union(*(other for other in named if other is not words)) for words in named]
    shares = [len(words & content_words(first)) for words in own]
    best = max(shares, default=0)
    return shares.index(best) if best and shares.count(best) == 1 else None


def names_option(item: SpokenTurn) -> bool:
    """Tells if a person's turn begins with the name of something that the agent's turn before it named."""
    first = GREETING.sub("", item.sentences[0].text).split()
    known = {word.lower() for word in TOKEN.findall(item.before)}
    named = [word for word in TOKEN.findall(" ".join(first[:NAMING]).lower()) if content_words(word)]
    return bool(named) and known.issuperset(named) and len(first) <= BRIEF


def lists_steps(text: str) -> bool:
    """Tells if a text names the steps of a procedure in their order."""
    lead, _, listed = text.partition(":")
    is_introduced = (
        bool(signs_of(lead, "person") & {"orders", "open_recurs"}) and listed.partition("\n")[0].count(",") >= STEPS
    )
    return is_introduced or len(STEP.findall(text)) >= STEPS
