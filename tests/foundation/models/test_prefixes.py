"""Tests of the table of prefixes, and of prefixes at a remote provider."""

import pytest
from fastembed import TextEmbedding

from app.foundation.models.providers import (
    NONE,
    prefixes_of,
    provider_from,
    provider_named,
    read_stored_name,
    stored_name,
)
from app.settings import Settings
from tests.fakes.embeddings import DIMENSION, Endpoint


def test_every_model_of_which_fastembed_says_so_gets_prefixes() -> None:
    for model in TextEmbedding.list_supported_models():
        _, stated, needs = model["description"].partition("Prefixes for queries/documents: ")
        if stated and not needs.startswith("not "):
            assert prefixes_of(model["model"]) != NONE, model["model"]
        elif not model["model"].startswith("google/embeddinggemma"):
            assert prefixes_of(model["model"]) == NONE, model["model"]


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("nomic-embed-text:latest", "search_query: ", "search_document: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", ""),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("text-embedding-3-small", "", ""),
        ("BAAI/bge-m3", "", ""),
    ],
)
def test_names_of_hubs_and_of_ollama_are_known(model: str, query: str, passage: str) -> None:
    found = prefixes_of(model)
    assert found.query.startswith(query)
    assert found.passage == passage
    assert bool(found.query) == bool(query)
    assert read_stored_name(stored_name(model, found)) == (model, found)


async def test_a_remote_model_gets_its_prefixes_unless_the_stored_one_has_none() -> None:
    endpoint = Endpoint()
    settings = Settings(
        embedding_provider="ollama",
        embedding_model="nomic-embed-text",
        embedding_base_url=endpoint.url,
        embedding_dimension=DIMENSION,
    )
    try:
        now = provider_from(settings)
        before = provider_named(settings, "ollama:nomic-embed-text", DIMENSION)
        again = provider_named(settings, now.model_id, DIMENSION)
        for provider in (now, before, again):
            await provider.embed_query("actor")
            await provider.embed_documents(["actor"])
            await provider.close()
    finally:
        endpoint.close()
    assert now.model_id == again.model_id != before.model_id == "ollama:nomic-embed-text"
    sent = [text for request in endpoint.requests for text in request["input"]]
    with_prefixes = ["search_query: actor", "search_document: actor"]
    assert sent == [*with_prefixes, "actor", "actor", *with_prefixes]


def test_no_provider_no_prefixes() -> None:
    assert provider_from(Settings(embedding_provider="noop", embedding_model="nomic-embed-text")).model_id == "noop"
