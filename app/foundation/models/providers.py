"""Builds the models that the settings name: the embedding provider (local, remote or none) and the chat model.

Some embedding models want a prefix before a query and before a passage: without it, they compare texts of another form
than they were trained on. No server adds one by itself.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from app.foundation.models.local import LocalProvider
from app.foundation.models.protocols import Chat, EmbeddingProvider, Matrix, Vector, Window
from app.foundation.text.data import read_toml
from app.settings import ProviderKind, Settings


class Prefixes(NamedTuple):
    """The texts before each query and before each passage."""

    query: str = ""
    passage: str = ""


NONE = Prefixes()
_FAMILIES = [
    (re.compile(rf"(?:^|/){family.pop('name')}", re.IGNORECASE), Prefixes(**family))
    for family in read_toml("app.foundation.models", "prefixes.toml", dict[str, list[dict[str, str]]])["family"]
]
"""The families of models, each with its prefixes."""


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


def _with_prefixes(provider: EmbeddingProvider, prefixes: Prefixes) -> EmbeddingProvider:
    """Returns the provider that adds these prefixes; the same one if there are none."""
    return _Prefixed(provider, prefixes) if any(prefixes) else provider


_TIMEOUT_SECONDS = 10.0
"""Longest wait for a remote provider."""


class NoopProvider:
    """Switches the vector arm off: its vectors are zeros, which nothing compares."""

    model_id = "noop"
    dimension = 384
    enabled = False

    async def start(self) -> None:
        """Does nothing."""

    async def embed_query(self, text: str) -> Vector:
        """Returns a zero vector."""
        del text
        return np.zeros(self.dimension, np.float32)

    async def window(self) -> Window | None:
        """Returns None: no text is read."""
        return None

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Returns a zero vector for each text."""
        return np.zeros((len(texts), self.dimension), np.float32)

    async def close(self) -> None:
        """Does nothing."""


def provider_named(settings: Settings, name: str, dimension: int) -> EmbeddingProvider:
    """Builds the provider of a stored model, with the prefixes that its vectors were made with.

    The stored name of a remote model begins with its provider, as in `openai:model`; a local one's is its own.
    """
    model, prefixes = read_stored_name(name)
    kind, _, remote = model.partition(":")
    if kind in {"openai", "ollama"}:
        model = remote
    else:
        kind = "local"
    base_url = settings.embedding_base_url if kind == settings.embedding_provider else ""
    named = replace(
        with_model(settings, model, dimension),
        embedding_provider=cast("ProviderKind", kind),
        embedding_base_url=base_url,
    )
    return _with_prefixes(_provider(named), prefixes)


def with_model(settings: Settings, model: str, dimension: int) -> Settings:
    """Returns the settings of another model of the same provider; it does not get the configured model's folder."""
    folder = _folder_of(settings.embedding_folder, model, configured=model == settings.embedding_model)
    return replace(
        settings,
        embedding_model=model,
        embedding_dimension=dimension,
        embedding_folder="" if folder is None else str(folder),
    )


def _folder_of(setting: str, model: str, *, configured: bool) -> Path | None:
    """Returns the folder of a model's files: the one named after it (`--` for a slash) in the folder of the setting, or
    else, for the configured model, that folder itself; None if there is neither."""
    if not setting:
        return None
    folder = Path(setting).expanduser()
    named = folder / model.replace("/", "--")
    if named.is_dir():
        return named
    holds_models = next(folder.glob("*/tokenizer.json"), None) is not None
    return folder if configured and not holds_models else None


def provider_from(settings: Settings) -> EmbeddingProvider:
    """Builds the configured provider, which adds the prefixes that its model wants; not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    provider = _provider(settings)
    return _with_prefixes(provider, prefixes_of(settings.embedding_model)) if provider.enabled else provider


def _provider(settings: Settings) -> EmbeddingProvider:
    match settings.embedding_provider:
        case "noop":
            return NoopProvider()
        case "local":
            return LocalProvider(
                settings.data_dir,
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                given=_folder_of(settings.embedding_folder, settings.embedding_model, configured=True),
            )
    from app.foundation.models.remote import RemoteProvider  # noqa: PLC0415 - openai takes a second to import

    return RemoteProvider(
        kind=settings.embedding_provider,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key,
        timeout=_TIMEOUT_SECONDS,
    )


def chat_from(settings: Settings) -> Chat | None:
    """Builds the chat model that the settings name; None if they name none."""
    if not settings.llm_base_url:
        return None
    from app.foundation.models.chat import OpenAIChat  # noqa: PLC0415 - openai takes a second to import

    return OpenAIChat(
        model=settings.compress_model,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        timeout=settings.llm_timeout,
    )
