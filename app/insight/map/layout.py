"""The process that computes a map: places by UMAP, clusters by KMeans, and their words.

A job comes as MessagePack on standard input, and its layout leaves on standard output; no pickle is ever read.
"""

import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from app.foundation.models.protocols import Matrix
from app.insight.map.labels import Word, count_words, distinctive

CACHE = "NUMBA_CACHE_DIR"
"""Variable that names numba's folder for compiled code."""
_SEED = 42
_MOST_CLUSTERS, _MEMORIES_A_CLUSTER = 8, 3
_NICE = 5
"""Priority of the process: if cores are few, answers to agents come first."""
_LEAST_FOR_UMAP = 4
"""Least number of points for UMAP. It fails for 2 and 3 points, because its spectral start needs two points more
than dimensions."""
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_DECIMALS = 4
"""Decimal places of a coordinate; a map is some 30 units wide."""


class Job(Struct, frozen=True):
    """The memories of a map."""

    dimension: int
    vectors: bytes
    """Concatenated vectors in pgvector's binary format of `halfvec`."""
    texts: Sequence[tuple[str, str]]
    """Language and beginning of the text of each memory."""
    sketch: bool = False
    """True for places in moments: by principal components, in one cluster."""


class ComputedCluster(Struct, frozen=True):
    """A cluster: the place of the member in its middle, and its distinctive words, best first."""

    x: float
    y: float
    size: int
    words: Sequence[Word]


class Layout(Struct, frozen=True):
    """The places of the memories, in the order of the job, and their clusters."""

    xs: Sequence[float]
    ys: Sequence[float]
    members: Sequence[int]
    """The cluster of each memory, by its place among `clusters`."""
    clusters: Sequence[ComputedCluster]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences UMAP's warnings of single threads and few neighbours, and KMeans' of equal vectors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def lay_out(job: Job) -> Layout:
    """Computes the map of a job's memories."""
    vectors = vectors_of(job.vectors, job.dimension)
    places, members = sketch(vectors) if job.sketch else (place(vectors), cluster(vectors))
    words = distinctive(count_words(job.texts), members.tolist())
    clusters = [_cluster(places[members == number], words[number]) for number in range(len(words))]
    xs, ys = places.T.tolist()
    return Layout(xs, ys, members.tolist(), clusters)


def vectors_of(sent: bytes, dimension: int) -> Matrix:
    """Decodes concatenated `halfvec`s in pgvector's binary format: a header of four bytes, then big-endian halves."""
    rows = np.frombuffer(sent, dtype=">u2").reshape(-1, dimension + 2)[:, 2:]
    return np.ascontiguousarray(rows).view(">f2").astype(np.float32)


@_quiet()
def place(vectors: Matrix) -> NDArray[np.float64]:
    """Places memories by UMAP; those that are too few or all equal form a sunflower."""
    if len(vectors) < _LEAST_FOR_UMAP or (vectors == vectors[:1]).all():
        return _sunflower(len(vectors)).round(_DECIMALS)
    from app.insight.map.reducer import UMAP  # noqa: PLC0415 - it takes seconds, and few memories need none

    places = UMAP(n_components=2, random_state=_SEED, low_memory=True).fit_transform(vectors)
    if not np.isfinite(places).all():
        raise ValueError("UMAP gave coordinates that are no numbers")
    rounded: NDArray[np.float64] = np.asarray(places, dtype=np.float64).round(_DECIMALS)
    return rounded


def sketch(vectors: Matrix) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Places memories by the two directions in which they differ most, in one cluster: scikit-learn takes seconds."""
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    places: NDArray[np.float64] = (centred @ directions[:, -2:]).astype(np.float64).round(_DECIMALS)
    return places, np.zeros(len(places), dtype=np.intp)


def _sunflower(count: int) -> NDArray[np.float64]:
    """Places point i at the radius √(i + ½) and i golden angles, like a sunflower's seeds: none hides another."""
    places = np.arange(count, dtype=np.float64)
    radius, angle = np.sqrt(places + 0.5), places * _GOLDEN_ANGLE
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


@_quiet()
def cluster(vectors: Matrix) -> NDArray[np.intp]:
    """Numbers the clusters of memories from 0, the largest first."""
    # The process that asks reads this module, and does without scikit-learn.
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]  # noqa: PLC0415 - it has no types

    count = min(_MOST_CLUSTERS, max(1, len(vectors) // _MEMORIES_A_CLUSTER))
    found = KMeans(count, random_state=_SEED, n_init=10).fit_predict(vectors)
    _, compact, sizes = np.unique(found, return_inverse=True, return_counts=True)
    numbers: NDArray[np.intp] = np.argsort(np.argsort(-sizes, kind="stable"))[compact]
    return numbers


def _cluster(places: NDArray[np.float64], words: Sequence[Word]) -> ComputedCluster:
    middle = places[np.hypot(*(places - np.median(places, axis=0)).T).argmin()]
    return ComputedCluster(x=float(middle[0]), y=float(middle[1]), size=len(places), words=words)


def main() -> None:
    """Answers one job."""
    os.nice(_NICE)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        # Output of a library must not mix with the answer.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answers.write(msgspec.msgpack.encode(lay_out(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Job))))


if __name__ == "__main__":
    main()
