"""Compression without a language model. Pure: sentences and their vectors in, the memory's text out."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass

from app.models.protocols import Matrix, Vector
from app.runs.observations.observation import (
    EXTRACTIVE,
    MOST_FACTS,
    MOST_SENTENCES,
    TITLE_CHARACTERS,
    Compressed,
    Outcome,
    in_one_line,
    shortened,
)
from app.text.sentences import Sentence, first_words, heading_of

NARRATIVE_CHARACTERS = 700
FACT_CHARACTERS = 300
MMR_LAMBDA = 0.6
"""Weight of a sentence's likeness to those already chosen, against its centrality (maximal marginal relevance)."""
TASK_SHARE = 0.3
"""Weight of a sentence's likeness to the task: the narrative is of what was asked."""
SAME = 0.6
"""Share of the smaller word set from which on two facts say the same."""
NARRATIVE_WORDS = range(5, 61)
GENERIC_HEADINGS = frozenset(
    {"report", "summary", "results", "result", "output", "overview", "introduction", "findings", "analysis", "answer",
     "executive summary", "final report", "conclusion", "notes", "todo", "contents", "table of contents"}
)  # fmt: skip
"""Headings that say nothing of what stands below them."""

NUMBER = re.compile(r"\d+(?:[.,]\d+)*\s?(?:%|‰|[kKmMbB]n?\b|million|billion|thousand|млн|млрд|тыс|Mio|Mrd)?")
DATE = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|(?:19|20)\d{2}|Q[1-4]\s?\d{4}|"
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)\s+\d{1,4})\b"
)
NAME = re.compile(r"(?<=[\w,;:)»”]\s)[A-ZА-ЯЁÄÖÜ][\w’'-]+(?:\s+[A-ZА-ЯЁÄÖÜ][\w’'-]+)*")
CODE = re.compile(r"\b[A-Z]{2,}[A-Z0-9-]*\b|\b\w+\.(?:ru|com|org|net|io|de|py|md|json)\b|\bv\d+\b|\bP[0-3]\b")
WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weighed:
    """A sentence with what speaks for it."""

    sentence: Sentence
    centrality: float
    """Mean cosine to all sentences."""
    towards_task: float
    vector: Vector | None


def extracted(
    outcome: Outcome, sentences: Sequence[Sentence], vectors: Matrix | None, task: Vector | None
) -> Compressed:
    """The outcome's title, narrative and facts, all in its own words.

    `vectors` has a unit row a sentence, `task` is the task's; without them likeness is that of words.
    """
    weighed = _weighed(outcome, sentences, vectors, task)
    told = _narrative(weighed)
    return Compressed(
        title=extracted_title(outcome),
        narrative=" ".join(item.sentence.text for item in told),
        facts=tuple(_facts(weighed, {item.sentence.place for item in told})),
        compressor=EXTRACTIVE,
    )


def most_central(sentences: Sequence[Sentence], count: int) -> list[Sentence]:
    """The `count` sentences closest to what the whole output speaks of, by their words alone; in their order."""
    if len(sentences) <= count:
        return list(sentences)
    centrality = _word_centrality([sentence.text for sentence in sentences])
    best = sorted(range(len(sentences)), key=lambda place: (-centrality[place], place))[:count]
    return [sentences[place] for place in sorted(best)]


def extracted_title(outcome: Outcome) -> str:
    """From the task and the output's own heading, whichever says more, or both."""
    task, heading = in_one_line(outcome.task), heading_of(outcome.output)
    if not heading or heading.lower().strip(" :") in GENERIC_HEADINGS:
        return shortened(task or first_words(outcome.output), TITLE_CHARACTERS)
    if not task or _share(_words(task), _words(heading)) >= SAME:
        return shortened(max(heading, task, key=lambda text: len(_words(text))), TITLE_CHARACTERS)
    room = TITLE_CHARACTERS - len(heading) - len(": ")
    if room >= TITLE_CHARACTERS // 4:
        return f"{shortened(task, room)}: {heading}"
    return shortened(heading, TITLE_CHARACTERS)


def _weighed(
    outcome: Outcome, sentences: Sequence[Sentence], vectors: Matrix | None, task: Vector | None
) -> list[_Weighed]:
    texts = [sentence.text for sentence in sentences]
    if vectors is None or task is None:
        wanted = _words(outcome.task)
        towards = [_share(wanted, _words(text)) for text in texts]
        centrality = _word_centrality(texts)
    else:
        towards = (vectors @ task).tolist()
        centrality = (vectors @ vectors.mean(axis=0)).tolist() if texts else []
    return [
        _Weighed(
            sentence=sentence,
            centrality=centrality[place],
            towards_task=towards[place],
            vector=None if vectors is None else vectors[place],
        )
        for place, sentence in enumerate(sentences)
    ]


def _word_centrality(texts: Sequence[str]) -> list[float]:
    """Mean cosine of each text's tf-idf weights to all, by their centroid: linear in the words."""
    bags = [Counter(_word_list(text)) for text in texts]
    holders = Counter(word for bag in bags for word in bag)
    weights = [{word: count * math.log1p(len(texts) / holders[word]) for word, count in bag.items()} for bag in bags]
    norms = [math.sqrt(sum(value * value for value in weight.values())) or 1.0 for weight in weights]
    centroid: defaultdict[str, float] = defaultdict(float)
    for weight, norm in zip(weights, norms, strict=True):
        for word, value in weight.items():
            centroid[word] += value / norm / len(texts)
    return [
        sum(value * centroid[word] for word, value in weight.items()) / norm
        for weight, norm in zip(weights, norms, strict=True)
    ]


def _narrative(weighed: Sequence[_Weighed]) -> list[_Weighed]:
    """The most central sentences that are unlike each other, in their order in the output."""
    left = [item for item in weighed if _can_narrate(item.sentence)]
    left = left or [item for item in weighed if item.sentence.is_prose] or list(weighed)
    chosen: list[_Weighed] = []
    length = 0
    while left and len(chosen) < MOST_SENTENCES:
        best = max(left, key=lambda item: (_worth(item, chosen), -item.sentence.place))
        left.remove(best)
        if chosen and length + len(best.sentence.text) > NARRATIVE_CHARACTERS:
            continue
        chosen.append(best)
        length += len(best.sentence.text)
    return sorted(chosen, key=lambda item: item.sentence.place)


def _worth(item: _Weighed, chosen: Sequence[_Weighed]) -> float:
    nearest = max((_likeness(item, other) for other in chosen), default=0.0)
    return item.centrality + TASK_SHARE * item.towards_task - MMR_LAMBDA * nearest


def _likeness(one: _Weighed, other: _Weighed) -> float:
    if one.vector is None or other.vector is None:
        return _share(_words(one.sentence.text), _words(other.sentence.text))
    return float(one.vector @ other.vector)


def _can_narrate(sentence: Sentence) -> bool:
    return sentence.is_prose and len(sentence.text.split()) in NARRATIVE_WORDS


def _facts(weighed: Sequence[_Weighed], told: Set[int]) -> list[str]:
    """The most specific sentences, each once; the narrative's own only where too few others are left."""
    others = [item for item in weighed if item.sentence.place not in told]
    order = sorted(
        others if len(others) >= MOST_FACTS else weighed,
        key=lambda item: (-specificity(item.sentence.text), -item.centrality, item.sentence.place),
    )
    chosen: list[Sentence] = []
    for item in order:
        sentence = item.sentence
        if len(chosen) == MOST_FACTS:
            break
        if WORD.search(sentence.text) and not any(says_the_same(sentence.text, other.text) for other in chosen):
            chosen.append(sentence)
    return [shortened(sentence.text, FACT_CHARACTERS) for sentence in sorted(chosen, key=lambda item: item.place)]


def specificity(text: str) -> float:
    """How much in a sentence can be checked: numbers, dates, names and codes, damped by its length."""
    marks = (
        1.5 * len(NUMBER.findall(text)) + len(DATE.findall(text)) + len(NAME.findall(text)) + len(CODE.findall(text))
    )
    return marks / math.sqrt(8 + len(text.split()))


def says_the_same(one: str, other: str) -> bool:
    """Whether two sentences share most words and every number."""
    return NUMBER.findall(one) == NUMBER.findall(other) and _share(_words(one), _words(other)) >= SAME


def _share(some: frozenset[str], others: frozenset[str]) -> float:
    """Of the smaller set."""
    smaller = min(len(some), len(others))
    return len(some & others) / smaller if smaller else 0.0


def _word_list(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if len(word) > 2 or word.isdigit()]  # noqa: PLR2004 - articles and the like


def _words(text: str) -> frozenset[str]:
    return frozenset(_word_list(text))
