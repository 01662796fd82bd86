"""The process that computes layouts, and its messages: jobs on standard input, answers on standard output.

A message is MessagePack behind its length; no pickle is ever read. The process ends when its input ends.
"""

import os
import signal
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import msgspec
import numpy as np
from msgspec import Struct

from app.foundation.models.protocols import Matrix
from app.insight.map.islands import Numbers, middle_of, number_dense_parts
from app.insight.map.labels import Counted, Word, count_words, distinctive
from app.insight.map.layout import LEAST_FOR_UMAP, cluster, place, vectors_of

HEADER = struct.Struct(">Q")
"""Precedes each message: its length in bytes."""
NICE = 5
"""Priority of the process: if cores are few, answers to agents come first."""
DIMENSION = 8
"""Dimension of the made-up vectors of a rehearsal."""


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


def laid_out(job: Job) -> Layout:
    """Computes the layout of a job's memories."""
    vectors = vectors_of(job.vectors, job.dimension)
    before = np.frombuffer(job.coordinates, dtype=np.float32).reshape(-1, 2)
    placement = place(vectors, job.shown, before, np.frombuffer(job.fitted, dtype=np.bool_))
    clusters = cluster(vectors[: job.shown], np.array(job.clusters, dtype=np.intp))
    texts = count_words(msgspec.json.decode(job.texts, type=list[tuple[str, str]]))
    if not np.isfinite(placement.coordinates).all():
        raise ValueError("UMAP gave coordinates that are no numbers")
    return Layout(
        mode=placement.mode,
        coordinates=placement.coordinates.astype(np.float32).tobytes(),
        fitted=placement.fitted.tobytes(),
        clusters=clusters.tolist(),
        words=distinctive(texts, clusters.tolist()),
        islands=_islands(placement.coordinates, clusters, texts),
    )


def _islands(coordinates: Matrix, clusters: Numbers, texts: Sequence[Counted]) -> list[Island]:
    names = number_dense_parts(coordinates, clusters)
    inside = np.flatnonzero(names >= 0)
    words = distinctive([texts[place] for place in inside.tolist()], names[inside].tolist())
    islands = []
    for name, found in enumerate(words):
        members = np.flatnonzero(names == name)
        most = int(np.bincount(clusters[members]).argmax())
        islands.append(Island(most, middle_of(coordinates, members), len(members), found))
    return sorted(islands, key=lambda island: -island.size)


def rehearsals() -> Iterator[Job]:
    """Yields a fit and a projection of made-up memories, which compile the code of all others."""
    vectors = np.random.default_rng(0).normal(size=(2 * LEAST_FOR_UMAP, DIMENSION)).astype(np.float32)
    sent = np.zeros((len(vectors), DIMENSION + 2), dtype=">f2")
    sent[:, 2:] = vectors
    for placed in (0, LEAST_FOR_UMAP):
        coordinates = np.full((len(vectors), 2), np.nan, dtype=np.float32)
        coordinates[:placed] = vectors[:placed, :2]
        yield Job(
            shown=len(vectors),
            dimension=DIMENSION,
            vectors=sent.tobytes(),
            texts=msgspec.json.encode([("english", "")] * len(vectors)),
            coordinates=coordinates.tobytes(),
            fitted=(np.arange(len(vectors)) < placed).tobytes(),
            clusters=[-1] * len(vectors),
        )


def main() -> None:
    """Answers jobs until the service closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        # Output of a library must not mix with the answers.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while (body := _next(sys.stdin.buffer)) is not None:
            answers.write(encode_message(_answer(body)))
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
