"""Loads embedding models into ONNX Runtime, by fastembed: by name, or without a hub from a folder that a setting names.

fastembed, which takes a second to import, knows the shape of the models that it lists. An endpoint serves others.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped] # the package has no types
from fastembed import TextEmbedding
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from app.errors import EmbeddingUnavailable
from app.foundation.models.bundled import DEFAULT_MODEL, SPECIAL_TOKENS, WINDOW
from app.foundation.models.late import TokenCodes, codes_of, means_something
from app.foundation.models.protocols import LESSONS, PLANS, Matrix, QueryVectors, Window
from app.foundation.models.tokens import BundledTokenCounter, TokenizerFile

THREADS_A_RUN = 1
"""Threads of one run of the model. Two threads that share a run busy-wait for each other: they use half as much
processor time again, and any delay on one core stops both. Two runs of one thread are as fast on an idle machine and
faster on a busy one. On two threads a query is 2 ms faster, and the search after it 7 ms slower."""
QUERY_FILE = "queries.onnx"
"""The default model's graph for queries. Its 8-bit weights are in the data file, too, beside the embeddings that all
graphs read."""
ADAPTED_FILES = {PLANS: "plans.onnx", LESSONS: "lessons.onnx"}
"""The graphs of the default model with an adapter."""
_POOLED = "sentence_embedding"
"""The output in which exports give the vector of the whole text."""


class TextModel:
    """A model that is loaded."""

    def __init__(
        self,
        model: TextEmbedding,
        window: Window,
        encoder: "_Encoder | None" = None,
        adapted: "Mapping[str, _Encoder] | None" = None,
        documents: "_Encoder | None" = None,
    ) -> None:
        self.window, self._model, self._encoder, self._adapted = window, model, encoder, adapted or {}
        self._documents = documents

    def embed_queries(self, texts: Sequence[str]) -> list[QueryVectors]:
        """Returns the vectors of unit length of these queries, and of their words if this model gives them."""
        if self._encoder is None:
            return [(row, None) for row in _unit(self._model.query_embed(texts, batch_size=len(texts)))]
        vectors, tokens = self._encoder.embed_tokens(texts)
        return [(row, found if len(found) else None) for row, (_, found) in zip(vectors, tokens, strict=True)]

    def embed_adapted(self, texts: Sequence[str], adapter: str) -> Matrix | None:
        """Returns what this model with an adapter gives for texts, a row each; None if it has no such adapter."""
        if (encoder := self._adapted.get(adapter)) is None:
            return None
        return encoder.embed(texts)

    def embed_documents(self, texts: Sequence[str], *, words: bool) -> tuple[Matrix, Sequence[TokenCodes | None]]:
        """Returns the vectors of unit length of documents, and the codes of their tokens; None for each without
        `words`, or if this model gives none."""
        if self._documents is None or not words:
            return _unit(self._model.passage_embed(texts, batch_size=len(texts))), [None] * len(texts)
        vectors, tokens = self._documents.embed_tokens(texts)
        return vectors, [TokenCodes(ends, codes_of(found)) for ends, found in tokens]


def _unit(rows: Iterable[Any]) -> Matrix:
    vectors: Matrix = np.stack(list(rows)).astype(np.float32, copy=False)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors


def load_bundled(folder: Path, dimension: int) -> TextModel:
    """Loads the default model from the folder that it was written to.

    Raises:
        EmbeddingUnavailable: a file is damaged.
    """
    model = _open(DEFAULT_MODEL, dimension, specific_model_path=str(folder))
    try:
        tokenizer: Tokenizer = model.model.tokenizer  # type: ignore[attr-defined] # each kind has one
        encoder = _Encoder(open_session(folder / QUERY_FILE), tokenizer)
        adapted = {name: _Encoder(open_session(folder / file), tokenizer) for name, file in ADAPTED_FILES.items()}
        for graph in (encoder, *adapted.values()):
            graph.embed(["warm up"])
        documents = _Encoder(model.model.model, tokenizer)  # type: ignore[attr-defined] # as above
    except Exception as error:
        raise EmbeddingUnavailable(
            f"{DEFAULT_MODEL} cannot be loaded for queries, plans and lessons: {error}"
        ) from error
    return TextModel(model, Window(WINDOW - SPECIAL_TOKENS, BundledTokenCounter()), encoder, adapted, documents)


def load_model(model: str, dimension: int, *, given: Path | None, cache: Path) -> TextModel:
    """Loads a model from the folder of its files; without one, from fastembed's `cache` or hub.

    Raises:
        EmbeddingUnavailable: it cannot be downloaded or loaded, or its vectors have another dimension.
    """
    place = {"cache_dir": str(cache)} if given is None else {"specific_model_path": str(given)}
    opened = _open(model, dimension, **place)
    return TextModel(opened, _window(opened))


def _open(model: str, dimension: int, **place: str) -> TextEmbedding:
    options: dict[str, Any] = {"threads": THREADS_A_RUN, **place}
    try:
        if "cache_dir" in place:
            # Checked before a download, which may take an hour.
            _check_dimension(model, TextEmbedding.get_embedding_size(model), dimension)
        opened = TextEmbedding(model, **options)
        _check_dimension(model, len(next(iter(opened.embed(["warm up"])))), dimension)
    except EmbeddingUnavailable:
        raise
    except Exception as error:
        remedy = "name a model that fastembed knows and can reach, or PRIORS_EMBEDDING_FOLDER with its files"
        raise EmbeddingUnavailable(f"{model} cannot be loaded: {error}; {remedy}") from error
    return opened


def _check_dimension(model: str, width: int, dimension: int) -> None:
    if width != dimension:
        raise EmbeddingUnavailable(f"{model} gives {width} numbers a vector: set PRIORS_EMBEDDING_DIMENSION={width}")


_OF_TOKENS = "last_hidden_state"
"""The output in which exports give the vector of each token."""


class _Encoder:
    """Embeds texts by a graph of the bundled model, each run in one thread."""

    def __init__(self, session: Any, tokenizer: Tokenizer) -> None:  # noqa: ANN401 - onnxruntime has no types
        self._session, self._tokenizer = session, tokenizer

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Returns the vectors of unit length of these texts, a row each; by a graph with a head its number."""
        vectors: Matrix = self._run(self._tokenizer.encode_batch(list(texts)), [_POOLED])[0]
        return vectors

    def embed_tokens(self, texts: Sequence[str]) -> tuple[Matrix, list[tuple[NDArray[np.int64], Matrix]]]:
        """Returns the same, and the vectors of each text's tokens that mean something, with where each ends."""
        read = self._tokenizer.encode_batch(list(texts))
        vectors, states = self._run(read, [_POOLED, _OF_TOKENS])
        found = []
        for item, rows in zip(read, states, strict=True):
            kept = [place for place, token in enumerate(item.tokens) if _is_kept(item, place, token)]
            ends = np.array([item.offsets[place][1] for place in kept], np.int64)
            found.append((ends, rows[kept]))
        return vectors, found

    def _run(self, read: Sequence[Encoding], outputs: list[str]) -> Any:  # noqa: ANN401 - as above
        tokens, mask = np.array([item.ids for item in read]), np.array([item.attention_mask for item in read])
        return self._session.run(outputs, inputs_of(tokens, mask))


def _is_kept(read: Encoding, place: int, token: str) -> bool:
    return not read.special_tokens_mask[place] and means_something(token)


def open_session(graph: Path) -> Any:  # noqa: ANN401 - onnxruntime has no types
    """Opens a graph, whose runs take one thread each."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(graph), options, ["CPUExecutionProvider"])


def inputs_of(tokens: NDArray[np.int64], mask: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Returns the inputs of the encoder's graphs."""
    return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}


def _window(model: TextEmbedding) -> Window:
    """Returns what a model reads of a text, counted with its own tokenizer."""
    tokenizer = Tokenizer.from_str(model.model.tokenizer.to_str())  # type: ignore[attr-defined] # each kind of model has one
    assert tokenizer.truncation is not None, "fastembed sets it"  # noqa: S101
    tokens = tokenizer.truncation["max_length"] - tokenizer.num_special_tokens_to_add(is_pair=False)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Window(tokens, TokenizerFile(model.model_name, tokenizer))
