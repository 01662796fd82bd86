"""The process that computes layouts, and its messages: jobs on standard input, answers on standard output.

A message is MessagePack behind its length; no pickle is ever read. The process ends when its input ends.
"""

import os
import signal
import struct
import sys
from typing import BinaryIO

import msgspec
import numpy as np
from msgspec import Struct

from app.insight.map.labels import distinctive
from app.insight.map.layout import cluster, place, vectors_of

HEADER = struct.Struct(">Q")
"""Precedes each message: its length in bytes."""
NICE = 5
"""Priority of the process: if cores are few, answers to agents come first."""


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


class Layout(Struct, frozen=True, tag=True):
    """The memories that are shown, in the order of the job."""

    mode: str
    """COMPUTED or PROJECTED."""
    coordinates: bytes
    fitted: bytes
    clusters: list[int]
    words: list[list[tuple[str, str]]]
    """The distinctive words of each cluster, best first, each with the language of its texts."""


class Failure(Struct, frozen=True, tag=True):
    """The answer to a job that could not be computed."""

    reason: str


Message = Layout | Failure
_job_decoder = msgspec.msgpack.Decoder(Job)
_answer_decoder = msgspec.msgpack.Decoder(Message)


def encoded(message: Job | Message) -> bytes:
    """Encodes a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return HEADER.pack(len(body)) + body


def answer_of(body: bytes) -> Message:
    """Decodes an answer."""
    answer: Message = _answer_decoder.decode(body)
    return answer


def laid_out(job: Job) -> Layout:
    """Computes the layout of a job's memories."""
    vectors = vectors_of(job.vectors, job.dimension)
    before = np.frombuffer(job.coordinates, dtype=np.float32).reshape(-1, 2)
    placement = place(vectors, job.shown, before, np.frombuffer(job.fitted, dtype=np.bool_))
    clusters = cluster(vectors[: job.shown], np.array(job.clusters, dtype=np.intp)).tolist()
    texts = msgspec.json.decode(job.texts, type=list[tuple[str, str]])
    if not np.isfinite(placement.coordinates).all():
        raise ValueError("UMAP gave coordinates that are no numbers")
    return Layout(
        mode=placement.mode,
        coordinates=placement.coordinates.astype(np.float32).tobytes(),
        fitted=placement.fitted.tobytes(),
        clusters=clusters,
        words=distinctive(texts, clusters),
    )


def main() -> None:
    """Answers jobs until the service closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        # Output of a library must not mix with the answers.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while (body := _next(sys.stdin.buffer)) is not None:
            answers.write(encoded(_answer(body)))
            answers.flush()


def _next(jobs: BinaryIO) -> bytes | None:
    header = jobs.read(HEADER.size)
    return jobs.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else None


def _answer(body: bytes) -> Message:
    try:
        return laid_out(_job_decoder.decode(body))
    except Exception as error:  # noqa: BLE001 - the caller gets every error, and the process goes on
        return Failure(reason=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
