"""The provider and the token counter that the settings name. Nothing heavy is imported before it is wanted."""

from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.settings import Settings


def provider_from(settings: Settings) -> EmbeddingProvider:
    """The configured provider, not started yet.

    Raises:
        ConfigurationError: the provider's own settings do not fit.
    """
    match settings.embedding_provider:
        case "noop":
            from app.embeddings.noop import NoopProvider  # noqa: PLC0415 - the others are not wanted

            return NoopProvider()
        case "local":
            from app.embeddings.local import LocalProvider  # noqa: PLC0415 - the others are not wanted

            return LocalProvider(
                settings.data_dir,
                model=settings.embedding_model,
                dimension=settings.embedding_dimension,
                threads=settings.embedding_threads,
            )
    from app.embeddings.remote import RemoteProvider  # noqa: PLC0415 - the others are not wanted

    return RemoteProvider(
        kind=settings.embedding_provider,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        base_url=settings.embedding_base_url,
        api_key=settings.embedding_api_key,
        timeout=settings.embedding_timeout,
    )


def counter() -> TokenCounter:
    """Counts as the default model's tokenizer does, whichever provider is configured.

    Raises:
        EmbeddingUnavailable: the bundled tokenizer is not installed.
    """
    from app.embeddings.tokens import BundledTokenCounter  # noqa: PLC0415 - loads the tokenizer's library

    return BundledTokenCounter()
