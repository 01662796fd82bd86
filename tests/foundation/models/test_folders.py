"""Tests of models whose files a setting names."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.errors import EmbeddingUnavailable
from app.foundation.models.late import TokenCodes
from app.foundation.models.local import LocalProvider
from app.foundation.models.protocols import EmbeddingProvider, Matrix, Vector
from app.foundation.models.providers import provider_from, provider_named, with_model
from app.foundation.models.tokens import MINILM, load_tokenizer
from app.settings import Settings
from tests.fakes.embedding_models import TABLE, WIDTH, WINDOW, write_model

TEXT = "the scout found an actor in the north"
CLS, SEP = 101, 102


def tokens(text: str) -> list[int]:
    words = load_tokenizer(MINILM / "tokenizer.json").encode(text, add_special_tokens=False).ids
    return [CLS, *words[: WINDOW - 2], SEP]


def unit(vector: Vector) -> Vector:
    return vector / np.linalg.norm(vector)


def mean_of(text: str) -> Vector:
    return unit(TABLE[tokens(text)].mean(axis=0))


def first_of(text: str) -> Vector:
    return unit(TABLE[tokens(text)[0]])


OF_MEAN, OF_FIRST = "thenlper/gte-base", "snowflake/snowflake-arctic-embed-xs"
"""Models that fastembed knows: one gives the mean of its tokens, the other the first, and wants a prefix."""


def settings_of(folder: Path, model: str = OF_MEAN) -> Settings:
    return Settings(
        data_dir=folder.parent / "data",
        embedding_model=model,
        embedding_folder=str(folder),
        embedding_dimension=WIDTH,
    )


@asynccontextmanager
async def opened(provider: EmbeddingProvider) -> AsyncIterator[EmbeddingProvider]:
    try:
        yield provider
    finally:
        await provider.close()


async def refusal(settings: Settings) -> str:
    async with opened(provider_from(settings)) as provider:
        with pytest.raises(EmbeddingUnavailable) as refused:
            await provider.start()
    return str(refused.value)


@pytest.mark.parametrize(("model", "expected"), [(OF_MEAN, mean_of), (OF_FIRST, first_of)])
async def test_a_model_gives_the_vectors_that_fastembed_knows(
    tmp_path: Path, model: str, expected: Callable[[str], Vector]
) -> None:
    async with opened(provider_from(settings_of(write_model(tmp_path / "model"), model))) as provider:
        texts = [TEXT, "bread", f"{TEXT} " * 40]
        found = await provider.embed_documents(texts)
        for text, vector in zip(texts, found, strict=True):
            assert np.allclose(vector, expected(text), atol=1e-5)
            assert np.allclose(await provider.embed_query(text), vector, atol=1e-5)


async def test_stored_vectors_without_prefixes_are_served_without_them(tmp_path: Path) -> None:
    model = "nomic-ai/nomic-embed-text-v1"
    settings = settings_of(write_model(tmp_path / "model"), model)
    now = provider_from(settings).model_id
    assert now == f'{model} ["search_query: ", "search_document: "]'
    for name, prefixes in ((now, ("search_query: ", "search_document: ")), (model, ("", ""))):
        async with opened(provider_named(settings, name, WIDTH)) as provider:
            assert provider.model_id == name
            assert np.allclose(await provider.embed_query(TEXT), mean_of(f"{prefixes[0]}{TEXT}"), atol=1e-5)
            assert np.allclose((await provider.embed_documents([TEXT]))[0], mean_of(f"{prefixes[1]}{TEXT}"), atol=1e-5)


async def test_a_folder_may_hold_a_folder_for_each_model(tmp_path: Path) -> None:
    for model in (OF_MEAN, OF_FIRST):
        write_model(tmp_path / "models" / model.replace("/", "--"))
    settings = settings_of(tmp_path / "models")
    second = provider_from(with_model(settings, OF_FIRST, WIDTH))
    for provider, expected in ((provider_from(settings), mean_of), (second, first_of)):
        async with opened(provider):
            assert np.allclose(await provider.embed_query(TEXT), expected(TEXT), atol=1e-5)
    default = Settings()
    assert with_model(settings, default.embedding_model, default.embedding_dimension).embedding_folder == ""
    elsewhere = replace(settings, embedding_model=default.embedding_model)
    assert with_model(elsewhere, default.embedding_model, 384).embedding_folder == ""


def test_the_folder_of_the_configured_model_is_no_other_models(tmp_path: Path) -> None:
    settings = settings_of(write_model(tmp_path / "model"))
    assert with_model(settings, OF_FIRST, WIDTH).embedding_folder == ""
    assert with_model(settings, OF_MEAN, WIDTH).embedding_folder == settings.embedding_folder


async def test_a_wrong_dimension_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    settings = settings_of(write_model(tmp_path / "model"))
    assert f"PRIORS_EMBEDDING_DIMENSION={WIDTH}" in await refusal(replace(settings, embedding_dimension=7))
    known = Settings(data_dir=tmp_path, embedding_model="nomic-ai/nomic-embed-text-v1.5")
    assert "PRIORS_EMBEDDING_DIMENSION=768" in await refusal(known)


async def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    assert "own/model cannot be loaded" in await refusal(settings_of(folder, "own/model"))
    settings = settings_of(folder)
    (folder / "tokenizer.json").unlink()
    assert "tokenizer.json" in await refusal(settings)
    (folder / "onnx" / "model.onnx").write_bytes(b"no model")
    assert f"{OF_MEAN} cannot be loaded" in await refusal(settings)


async def test_batches_are_sized_by_the_models_own_tokens_and_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_model(tmp_path / "model")
    _without_words(folder / "tokenizer.json")
    sizes: list[int] = []
    monkeypatch.setattr("app.foundation.models.local.BATCH_TOKENS", 4 * WINDOW)
    monkeypatch.setattr("app.foundation.models.local.usable_cores", lambda: 1)
    provider = provider_from(settings_of(folder))
    assert isinstance(provider, LocalProvider)
    run = provider._run

    def counted(texts: Sequence[str], *, words: bool) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        sizes.append(len(texts))
        return run(texts, words=words)

    monkeypatch.setattr(provider, "_run", counted)
    async with opened(provider):
        await provider.embed_documents(["word " * 100] * 8)
        assert sizes == [4, 4]
        sizes.clear()
        await provider.embed_documents(["abcdef"] * 8)
    assert sizes == [8]


def _without_words(path: Path) -> None:
    """Takes every piece but special tokens and `[UNK]` out of a tokenizer, so that each word is one token."""
    tokenizer = json.loads(path.read_bytes())
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {piece: place for piece, place in vocabulary.items() if piece.startswith("[")}
    path.write_text(json.dumps(tokenizer))
