"""The prefixes that some embedding models want before a query and before a passage, and the provider that adds them.

Without them, such a model compares texts of another form than it was trained on. No server adds them by itself.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector, Window


class Prefixes(NamedTuple):
    """The texts before each query and before each passage."""

    query: str = ""
    passage: str = ""


NONE = Prefixes()
_SEARCHING = Prefixes("Represent this sentence for searching relevant passages: ")
_INSTRUCTED = "Instruct: Given a web search query, retrieve relevant passages that answer the query"
_FAMILIES: tuple[tuple[re.Pattern[str], Prefixes], ...] = tuple(
    (re.compile(rf"(?:^|/){name}", re.IGNORECASE), prefixes)
    for name, prefixes in (
        (r"snowflake-arctic-embed(?:2|-[ml]-v2)", Prefixes("query: ")),
        (r"snowflake-arctic-embed", _SEARCHING),
        (r"mxbai-embed-large", _SEARCHING),
        (r"bge-(?:small|base|large)-en$", _SEARCHING),
        (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
        (r"(?:multilingual-)?e5-[\w-]*instruct", Prefixes(f"{_INSTRUCTED}\nQuery: ")),
        (r"(?:multilingual-)?e5-(?:small|base|large)", Prefixes("query: ", "passage: ")),
        (r"embedding-?gemma", Prefixes("task: search result | query: ", "title: none | text: ")),
        (r"qwen3-embedding", Prefixes(f"{_INSTRUCTED}\nQuery:")),
        (r"stella[-_]en", Prefixes(f"{_INSTRUCTED}.\nQuery: ")),
    )
)
"""Families of models, by the beginning of the name after its owner's, and their prefixes; the first that fits counts.
Each is from the model's card, as `docs/reference/figures.md` lists them. bge-*-v1.5 is left out: its card and fastembed
call the prefix unnecessary."""


def prefixes_of(model: str) -> Prefixes:
    """Returns the prefixes that a model wants, by its name at its provider."""
    return next((prefixes for family, prefixes in _FAMILIES if family.search(model)), NONE)


def stored_name(model: str, prefixes: Prefixes) -> str:
    """Returns the name under which vectors are stored; vectors with other prefixes are another model's."""
    return f"{model} {json.dumps(prefixes, ensure_ascii=False)}" if any(prefixes) else model


def read_stored_name(name: str) -> tuple[str, Prefixes]:
    """Returns the model and the prefixes that a stored name states."""
    model, found, prefixes = name.partition(" [")
    return (model, Prefixes(*json.loads(f"[{prefixes}"))) if found else (name, NONE)


class _Prefixed:
    """Adds a model's prefixes to what its provider embeds."""

    def __init__(self, provider: EmbeddingProvider, prefixes: Prefixes) -> None:
        self._provider, self._prefixes = provider, prefixes
        self.model_id, self.dimension = stored_name(provider.model_id, prefixes), provider.dimension
        self.enabled = provider.enabled
        self.start, self.close = provider.start, provider.close

    async def embed_query(self, text: str) -> Vector:
        """Embeds one query with its prefix.

        Raises:
            EmbeddingUnavailable: the provider gives no vector.
        """
        return await self._provider.embed_query(self._prefixes.query + text)

    async def window(self) -> Window | None:
        """Returns the window of the model without the prefix of a passage."""
        found = await self._provider.window()
        return found and found._replace(tokens=found.tokens - found.counter.count(self._prefixes.passage))

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Embeds many texts, each with the prefix of a passage.

        Raises:
            EmbeddingUnavailable: the provider gives no vectors.
        """
        return await self._provider.embed_documents([self._prefixes.passage + text for text in texts])


def with_prefixes(provider: EmbeddingProvider, prefixes: Prefixes) -> EmbeddingProvider:
    """Returns the provider that adds these prefixes; the same one if there are none."""
    return _Prefixed(provider, prefixes) if any(prefixes) else provider
