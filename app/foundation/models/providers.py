"""Builds the embedding provider that the settings name: local, remote (OpenAI's protocol, Ollama's too) or none."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from app.foundation.models.local import LocalProvider
from app.foundation.models.prefixes import prefixes_of, read_stored_name, with_prefixes
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector, Window
from app.settings import ProviderKind, Settings

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
    return with_prefixes(_provider(named), prefixes)


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
    return with_prefixes(provider, prefixes_of(settings.embedding_model)) if provider.enabled else provider


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
