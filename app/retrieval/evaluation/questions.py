"""The questions of an evaluation: a user's own, known items made from the store, and questions about nothing. Pure."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import msgspec

from app.errors import InvalidInput
from app.memories.gate import unstorable
from app.text.pieces import lines, sentences
from app.text.reworded import EVERYDAY, reworded
from app.text.words import IDEOGRAPH, content_words

LEAST_WORDS = 4
"""Least words of a known item's question: a shorter one asks for too little."""
SENTENCE_WORDS = range(8, 61)
"""Words of a sentence that makes a question."""
HEADING_WORDS = 3
SUBJECTS: tuple[str, ...] = tuple(
    """
    bassoon marzipan stalactite falconry origami tapioca glacier gondola zeppelin sauerkraut trombone walrus
    yodelling igloo haggis kayak lighthouse mandolin nougat obsidian pelican quicksand rhubarb sundial
    tarantula ukulele volcano weaving xylophone yurt zucchini armadillo bonsai cathedral dandelion eclipse
    flamingo gargoyle hovercraft juggling
    """.split()  # noqa: SIM905 - forty quoted words cannot be read
)
"""Subjects far from each other. One of which the store has a word is left out."""
ABOUT = (
    "What did we decide about the {}?",
    "When did the {} go wrong last time, and why?",
    "How much does a {} cost, and who paid for it?",
    "Which {} is the best for beginners?",
    "Who is responsible for the {}?",
)
"""Questions about a subject. Their other words are common, so that they match where an answer does not look."""


class Wanted(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A line of a user's questions: a question, and the memories that answer it; without any, it is about nothing."""

    question: str
    ids: tuple[UUID, ...] = ()
    texts: tuple[str, ...] = ()
    """Whole texts of memories."""
    sources: tuple[str, ...] = ()
    """Paths or titles of sources, of which any memory answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question with its answers."""

    question: str
    answers: tuple[frozenset[UUID], ...] = ()
    """The memories that should be found; of each set one is enough. Empty for a question about nothing."""
    group: str = ""
    """The source of its answer, which is left out of a fit as a whole."""


class Stored(NamedTuple):
    """A memory from which a question can be made."""

    memory_id: UUID
    kind: str
    title: str
    body: str
    source: UUID | None


def read_questions(content: bytes) -> list[Wanted]:
    """Reads the lines of a file of questions.

    Raises:
        InvalidInput: a line is not a question; it is named by its number.
    """
    found = []
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            wanted = msgspec.json.decode(line, type=Wanted)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            example = '{"question": "…", "ids": ["…"], "texts": ["…"], "sources": ["…"]}'
            raise InvalidInput(f"line {number}", f"{error}; a line is {example}") from None
        if not wanted.question.strip():
            raise InvalidInput(f"line {number}", "the question is empty")
        texts = {"question": wanted.question, "texts": wanted.texts, "sources": wanted.sources}
        if reason := next(unstorable(texts), None):
            raise InvalidInput(f"line {number}", reason)
        found.append(wanted)
    if not found:
        raise InvalidInput("questions", "the file has no line")
    return found


def known_items(memories: Sequence[Stored], most: int) -> list[Item]:
    """Makes at most so many questions, each of which one memory answers; the same ones of the same store.

    Every second memory gives its heading, if it is a chunk's, and the others their rarest sentence; both in other
    words. A text that another memory has too makes no question.
    """
    rarity = _rarity(memories)
    made: dict[str, Item] = {}
    twice: set[str] = set()
    for place, memory in enumerate(memories):
        said = _said(memory, rarity, heading=place % 2 == 0)
        question = reworded(said, EVERYDAY) if said else ""
        if len(question.split()) < LEAST_WORDS or question == said.lower() or _is_elsewhere(said, memory, memories):
            continue
        if question in made:
            twice.add(question)
        source = str(memory.source or memory.memory_id)
        made[question] = Item(question=question, answers=(frozenset({memory.memory_id}),), group=source)
        if len(made) - len(twice) == most:
            break
    return [item for question, item in made.items() if question not in twice]


def about_nothing(is_known: Mapping[str, bool]) -> list[Item]:
    """Returns the questions about subjects that the store does not know."""
    unknown = [subject for subject in SUBJECTS if not is_known[subject]]
    return [Item(question=asked.format(subject), group=subject) for asked in ABOUT for subject in unknown]


def _rarity(memories: Sequence[Stored]) -> dict[str, float]:
    """Returns the inverse document frequency of each stem."""
    counts = Counter(word for memory in memories for word in content_words(memory.body))
    return {word: math.log(len(memories) / count) for word, count in counts.items()}


def _said(memory: Stored, rarity: Mapping[str, float], *, heading: bool) -> str:
    """Returns the heading or the rarest sentence of a memory; empty if it has none that would make a question."""
    if heading and memory.kind == "chunk" and len(memory.title.split()) >= HEADING_WORDS:
        return memory.title
    return max(_sentences(memory.body), key=lambda said: _mean_rarity(said, rarity), default="")


def _sentences(body: str) -> Iterator[str]:
    for line in lines(body):
        yield from (
            said for said in sentences(line) if len(said.split()) + len(IDEOGRAPH.findall(said)) in SENTENCE_WORDS
        )


def _mean_rarity(said: str, rarity: Mapping[str, float]) -> float:
    found = [rarity.get(word, 0.0) for word in content_words(said)]
    return sum(found) / len(found) if found else 0.0


def _is_elsewhere(said: str, memory: Stored, memories: Sequence[Stored]) -> bool:
    return any(said in (other.title, other.body) or said in other.body for other in memories if other is not memory)
