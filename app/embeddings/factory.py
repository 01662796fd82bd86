"""temporary"""
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.settings import Settings


def provider_from(settings: Settings) -> EmbeddingProvider:
    from app.embeddings.local import LocalProvider
    from app.embeddings.noop import NoopProvider
    return NoopProvider() if settings.embedding_provider == "noop" else LocalProvider(settings.data_dir, 0)

def counter() -> TokenCounter:
    from app.embeddings.tokens import BundledTokenCounter
    return BundledTokenCounter()
