"""What goes to the process that computes layouts and what comes back: MessagePack behind its length, no pickles."""

import struct

import msgspec
from msgspec import Struct

HEADER = struct.Struct(">Q")
"""Before each message: how many bytes it has."""

COMPUTED, PROJECTED, STORED = "computed", "projected", "stored"
"""How a layout came about: UMAP was fitted, new memories were placed into an older one, or nothing was to be done."""


class Job(Struct, frozen=True, tag=True):
    """Memories to be laid out: those that are shown, and behind them others that only hold the map in place."""

    shown: int
    dimension: int
    vectors: bytes
    """One behind the other, as pgvector sends `halfvec`."""
    texts: bytes
    """JSON: language and text of each memory that is shown."""
    coordinates: bytes
    """Two float32 each: where it stood so far, NaN for one that is new."""
    fitted: bytes
    """A boolean each: whether UMAP itself gave it that place."""
    clusters: list[int]
    """Of those that are shown: the cluster so far, -1 for none."""


class Layout(Struct, frozen=True, tag=True):
    """The memories that are shown, in the order of the job."""

    mode: str
    coordinates: bytes
    fitted: bytes
    clusters: list[int]
    words: list[list[tuple[str, str]]]
    """For each cluster the words that set it apart, best first, each with the language of its texts."""


class Failure(Struct, frozen=True, tag=True):
    """It could not be computed."""

    reason: str


Message = Layout | Failure
_job_decoder = msgspec.msgpack.Decoder(Job)
_answer_decoder = msgspec.msgpack.Decoder(Message)


def encoded(message: Job | Message) -> bytes:
    """The message behind its length."""
    body = msgspec.msgpack.encode(message)
    return HEADER.pack(len(body)) + body


def job_of(body: bytes) -> Job:
    """The job of a message's body."""
    return _job_decoder.decode(body)


def answer_of(body: bytes) -> Message:
    """The answer of a message's body."""
    answer: Message = _answer_decoder.decode(body)
    return answer
