"""Builds the embedding provider and the token counter that the settings name."""

from dataclasses import replace
from typing import cast

from app.models.local import LocalProvider
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.models.remote import NoopProvider, RemoteProvider
from app.models.tokenizer import BundledTokenCounter
from app.settings import ProviderKind, Settings


def provider_named(settings: Settings, name: str, dimension: int) -> EmbeddingProvider:
    """Builds the provider of a stored model: `kind:model` for a remote one, the model's own name for a local one."""
    kind, _, model = name.partition(":")
    if kind not in {"openai", "ollama"}:
        kind, model = "local", name
    base_url = settings.embedding_base_url if kind == settings.embedding_provider else ""
    return provider_from(
        replace(
            settings,
            embedding_provider=cast("ProviderKind", kind),
            embedding_model=model,
            embedding_dimension=dimension,
            embedding_base_url=base_url,
        )
    )


def provider_from(settings: Settings) -> EmbeddingProvider:
    """Builds the configured provider, not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    match settings.embedding_provider:
        case "noop":
            return NoopProvider()
        case "local":
            return LocalProvider(
                settings.data_dir,
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                threads=settings.embedding_threads,
            )
    return RemoteProvider(
        kind=settings.embedding_provider,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key,
        timeout=settings.embedding_timeout,
    )


def counter() -> TokenCounter:
    """Builds the counter of the default model's tokens, whichever provider is configured.

    Raises:
        EmbeddingUnavailable: the bundled tokenizer is not installed.
    """
    return BundledTokenCounter()
