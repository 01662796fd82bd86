"""The process that computes layouts: jobs on standard input, answers on standard output, until the input ends."""

import os
import signal
import sys
from typing import BinaryIO

import msgspec
import numpy as np

from app.insight.map.labels import distinctive
from app.insight.map.layout import cluster, place, vectors_of
from app.insight.map.messages import HEADER, Failure, Job, Layout, Message, encoded, job_of

NICE = 5
"""Answers to agents come first where cores are few."""


def laid_out(job: Job) -> Layout:
    """The layout of a job's memories."""
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
    """Answer until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        # What a library prints must not get among the answers.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while (body := _next(sys.stdin.buffer)) is not None:
            answers.write(encoded(_answer(body)))
            answers.flush()


def _next(jobs: BinaryIO) -> bytes | None:
    header = jobs.read(HEADER.size)
    return jobs.read(HEADER.unpack(header)[0]) if len(header) == HEADER.size else None


def _answer(body: bytes) -> Message:
    try:
        return laid_out(job_of(body))
    except Exception as error:  # noqa: BLE001 - whatever it is, the one who asks is told and the process goes on
        return Failure(reason=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
