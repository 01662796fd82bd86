"""The process that computes layouts, and its messages: jobs on standard input, answers on standard output.

A message is MessagePack behind its length; no pickle is ever read. The process ends when its input ends.
"""

import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO

import msgspec
from msgspec import Struct

from app.insight.map.labels import Word

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
