"""The process that computes layouts, its messages, and the labels of clusters.

A message is MessagePack behind its length; no pickle is ever read. Jobs come on standard input, answers leave on
standard output, and the process ends when its input ends. Clusters are labelled with their most distinctive words, by
class-based tf-idf.
"""

import math
import os
import re
import signal
import struct
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

import msgspec
from msgspec import Struct

Word = tuple[str, str]
"""The most frequent spelling of a word, and the language of its texts."""

_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+|`[^`\n]*`")
_SHORTEST, _LONGEST = 2, 40
"""Least and most letters of a word that counts."""
CANDIDATES = 300
"""Words kept of a cluster: enough for a label even after all stop words of Postgres' largest list, twice."""
TERMS = 5
"""Most words of a label."""


Counted = tuple[str, Counter[str]]
"""A text: its language, and how often it has each word."""


def count_words(texts: Iterable[tuple[str, str]]) -> list[Counted]:
    """Counts the words of texts, which are pairs of language and text."""
    return [(language, Counter(words_of(text))) for language, text in texts]


def distinctive(texts: Sequence[Counted], clusters: Sequence[int]) -> list[list[Word]]:
    """Ranks each cluster's words, the most distinctive first.

    A word's weight is its share of the cluster's words times ln(1 + A / f); A is the mean number of words of a cluster,
    and f the word's frequency in all clusters. Words of only one text come last.
    """
    count = max(clusters, default=-1) + 1
    by_cluster: list[Counter[str]] = [Counter() for _ in range(count)]
    holders: list[Counter[str]] = [Counter() for _ in range(count)]
    forms: dict[str, Counter[Word]] = defaultdict(Counter)
    for (language, words), cluster in zip(texts, clusters, strict=True):
        for word, times in words.items():
            by_cluster[cluster][word.casefold()] += times
            forms[word.casefold()][word, language] += times
        holders[cluster].update({word.casefold() for word in words})
    overall = sum(by_cluster, Counter[str]())
    mean = overall.total() / max(1, count)
    return [
        [_most_frequent_spelling(forms[word]) for word in _rank_words(words, held, overall, mean)]
        for words, held in zip(by_cluster, holders, strict=True)
    ]


def _rank_words(words: Counter[str], holders: Counter[str], overall: Counter[str], mean: float) -> list[str]:
    def place(word: str) -> tuple[bool, float, str]:
        return holders[word] < 2, -words[word] * math.log1p(mean / overall[word]), word  # noqa: PLR2004 - only one text

    return sorted(words, key=place)[:CANDIDATES]


def _most_frequent_spelling(forms: Counter[Word]) -> Word:
    """Returns the most frequent spelling of a word; of equally frequent ones, the first in the alphabet."""
    return min(forms.items(), key=lambda item: (-item[1], item[0]))[0]


def words_of(text: str) -> list[str]:
    """Lists a text's words, without addresses, code and numbers."""
    return [word for word in _WORD.findall(_ADDRESS.sub(" ", text)) if _SHORTEST <= len(word) <= _LONGEST]


def label(words: Iterable[tuple[str, str]]) -> list[str]:
    """Chooses the first words by their lexemes: no word without one (a stop word), no two with the same one."""
    chosen: dict[str, str] = {}
    for word, lexeme in words:
        if lexeme:
            chosen.setdefault(lexeme, word)
        if len(chosen) == TERMS:
            break
    return list(chosen.values())


HEADER = struct.Struct(">Q")
"""Precedes each message: its length in bytes."""
_NICE = 5
"""Priority of the process: if cores are few, answers to agents come first."""
CACHE = "NUMBA_CACHE_DIR"
"""Variable that names numba's folder for compiled code."""
COMPUTED, PROJECTED = "computed", "projected"
"""Origin of a layout: UMAP was fitted, or new memories were placed into an older layout."""
LEAST_FOR_UMAP = 4
"""Least number of points for UMAP. It fails for 2 and 3 points, because its spectral start needs two points more
than dimensions."""


class Job(Struct, frozen=True, tag=True):
    """Memories to lay out: first those that are shown, then anchors that only hold the map in place."""

    shown: int
    """Number of memories that are shown."""
    dimension: int
    vectors: bytes
    """Concatenated vectors of all memories, in pgvector's binary format of `halfvec`."""
    texts: bytes
    """JSON list: language and text of each memory that is shown."""
    coordinates: bytes
    """Two float32 for each memory: its earlier place, NaN for a new one."""
    fitted: bytes
    """A boolean for each memory: True if UMAP itself gave it that place."""
    clusters: list[int]
    """Earlier cluster of each memory that is shown, -1 for none."""


class Island(Struct, frozen=True):
    """A part of the map that gets a label."""

    cluster: int
    """The cluster of most of its members."""
    middle: int
    """The member in its middle, on which the label stands: its place in the order of the job."""
    size: int
    words: list[Word]
    """Its distinctive words, as those of a cluster."""


class Layout(Struct, frozen=True, tag=True):
    """The memories that are shown, in the order of the job."""

    mode: str
    """COMPUTED or PROJECTED."""
    coordinates: bytes
    fitted: bytes
    clusters: list[int]
    words: list[list[Word]]
    """The distinctive words of each cluster, best first, each with the language of its texts."""
    islands: list[Island]
    """The labelled parts of the map, the largest first."""


class Failure(Struct, frozen=True, tag=True):
    """The answer to a job that could not be computed."""

    reason: str


Message = Layout | Failure
_job_decoder = msgspec.msgpack.Decoder(Job)
_answer_decoder = msgspec.msgpack.Decoder(Message)


def encode_message(message: Job | Message) -> bytes:
    """Encodes a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return HEADER.pack(len(body)) + body


def answer_of(body: bytes) -> Message:
    """Decodes an answer."""
    answer: Message = _answer_decoder.decode(body)
    return answer


def main() -> None:
    """Answers jobs until the service closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    from app.insight.map.layout import laid_out  # noqa: PLC0415 - takes seconds, which the service does not wait for

    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        # Output of a library must not mix with the answers.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while (body := _next(sys.stdin.buffer)) is not None:
            answers.write(encode_message(_answer(body, laid_out)))
            answers.flush()


def _next(jobs: BinaryIO) -> bytes | None:
    header = jobs.read(HEADER.size)
    return jobs.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else None


def _answer(body: bytes, laid_out: Callable[[Job], Layout]) -> Message:
    try:
        return laid_out(_job_decoder.decode(body))
    except Exception as error:  # noqa: BLE001 - the caller gets every error, and the process goes on
        return Failure(reason=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
