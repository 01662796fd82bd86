"""Makes the provider and the token counter that the settings name. Nothing heavy is imported before it is wanted."""

from dataclasses import replace

from app.models.protocols import EmbeddingProvider, Reranker, TokenCounter
from app.settings import Settings


def provider_named(settings: Settings, name: str, dimension: int) -> EmbeddingProvider:
    """Returns the provider of a stored model: `kind:model` for a remote one, the model's own name for a local one."""
    kind, _, model = name.partition(":")
    if kind not in {"openai", "ollama"}:
        kind, model = "local", name
    base_url = settings.embedding_base_url if kind == settings.embedding_provider else ""
    return provider_from(
        replace(
            settings,
            embedding_provider=kind,
            embedding_model=model,
            embedding_dimension=dimension,
            embedding_base_url=base_url,
        )
    )


def provider_from(settings: Settings) -> EmbeddingProvider:
    """Returns the configured provider, not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    match settings.embedding_provider:
        case "noop":
            from app.models.remote import NoopProvider  # noqa: PLC0415 - the others are not wanted

            return NoopProvider()
        case "local":
            from app.models.local import LocalProvider  # noqa: PLC0415 - the others are not wanted

            return LocalProvider(
                settings.data_dir,
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                threads=settings.embedding_threads,
            )
    from app.models.remote import RemoteProvider  # noqa: PLC0415 - the others are not wanted

    return RemoteProvider(
        kind=settings.embedding_provider,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key,
        timeout=settings.embedding_timeout,
    )


def reranker_from(settings: Settings) -> Reranker | None:
    """Returns the configured re-ranker, loaded with the first query that wants it; None where none is configured."""
    if not settings.reranker:
        return None
    from app.models.reranker import CrossEncoder  # noqa: PLC0415 - hardly anybody wants it

    return CrossEncoder(settings.data_dir, model=settings.reranker, folder=settings.reranker_folder)


def counter() -> TokenCounter:
    """Returns a counter that counts as the default model's tokenizer does, whichever provider is configured.

    Raises:
        EmbeddingUnavailable: the bundled tokenizer is not installed.
    """
    from app.models.tokenizer import BundledTokenCounter  # noqa: PLC0415 - loads the tokenizer's library

    return BundledTokenCounter()
