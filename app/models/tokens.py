"""Counts tokens as a named model does: by its own tokenizer where its tables are at hand, else by an estimate.

Nothing is downloaded: tables are files of a folder that a setting names.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from app.errors import ConfigurationError, EmbeddingUnavailable
from app.models.protocols import TokenCounter
from app.models.tokenizer import load_tokenizer, well_formed

if TYPE_CHECKING:
    from tiktoken import Encoding
    from tokenizers import Tokenizer

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
"""A model's name that may be the name of a file; a slash in it is written as `--` there."""
ENCODINGS = frozenset({"o200k_base", "cl100k_base", "p50k_base", "r50k_base"})
SAME_WORDS = {"o200k_harmony": "o200k_base", "p50k_edit": "p50k_base"}
"""Encodings that differ from another in special tokens only, which no text has."""


class NamedCounter(TokenCounter, Protocol):
    """A token counter that says by what it counts."""

    @property
    def name(self) -> str:
        """The name of the tokenizer."""
        ...

    @property
    def exact(self) -> bool:
        """False for an estimate."""
        ...


class Embedding:
    """The embedding model's own tokenizer."""

    name, exact = "embedding", True

    def __init__(self, counter: TokenCounter) -> None:
        self.count, self.count_many = counter.count, counter.count_many


class Tiktoken:
    """A byte-pair encoding with its tables."""

    exact = True

    def __init__(self, name: str, encoding: "Encoding") -> None:
        self.name, self._encoding = name, encoding

    def count(self, text: str) -> int:
        """Counts the tokens of `text`; what looks like a special token is text."""
        return len(self._encoding.encode_ordinary(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text."""
        return [self.count(text) for text in texts]


class File:
    """A provider's own `tokenizer.json`."""

    exact = True

    def __init__(self, name: str, tokenizer: "Tokenizer") -> None:
        self.name, self._tokenizer = name, tokenizer

    def count(self, text: str) -> int:
        """Counts the tokens of `text`, without the special tokens at both ends."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text."""
        found = self._tokenizer.encode_batch_fast([well_formed(text) for text in texts], add_special_tokens=False)
        return list(map(len, found))


class Estimate:
    """An estimate for models without a tokenizer at hand."""

    name, exact = "estimate", False

    def count(self, text: str) -> int:
        """Estimates the tokens of `text`."""
        return len(text.encode(errors="replace")) // 2

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Estimates the tokens of each text."""
        return [self.count(text) for text in texts]


class Counting:
    """Finds the counter of a model."""

    def __init__(self, folder: Path, embedding: TokenCounter, *, embedding_model: str) -> None:
        self._folder, self._embedding, self._embedding_model = folder, Embedding(embedding), embedding_model

    async def of(self, model: str) -> NamedCounter:
        """Returns the counter of a model: the embedding model's own for no name, an estimate for an unknown one.

        Raises:
            ConfigurationError: a file of the folder is not the tokenizer that its name says.
        """
        if not model or model == self._embedding_model:
            return self._embedding
        return await asyncio.to_thread(self.counter, model)

    def counter(self, model: str) -> NamedCounter:
        """Does the same in this thread: tables take up to a second to load, once."""
        name = model.replace("/", "--")
        if not NAME.fullmatch(name):
            return Estimate()
        for path in (self._folder / f"{name}.json", self._folder / name / "tokenizer.json"):
            if path.is_file():
                return _from_file(path, model, path.stat().st_mtime_ns)
        encoding = _encoding_of(model)
        path = self._folder / f"{encoding}.tiktoken"
        return _from_tables(path, path.stat().st_mtime_ns) if encoding and path.is_file() else Estimate()


@lru_cache(maxsize=8)
def _from_file(path: Path, model: str, _changed: int) -> NamedCounter:
    try:
        return File(model, load_tokenizer(path))
    except EmbeddingUnavailable as error:
        raise ConfigurationError(str(error)) from error


@lru_cache(maxsize=8)
def _from_tables(path: Path, _changed: int) -> NamedCounter:
    """Returns the encoding whose tables a file holds, once its hash is found to be the published one."""
    from tiktoken import Encoding  # noqa: PLC0415 - only where tables are at hand
    from tiktoken_ext import openai_public  # type: ignore[import-untyped] # noqa: PLC0415 - the package has no types

    def read(_url: str, expected_hash: str) -> dict[bytes, int]:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected_hash:
            raise ConfigurationError(f"{path} is not the published table of {path.stem}; remove it, or copy it again")
        pairs = (line.split() for line in content.splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in pairs}

    # The library's own definition, with its tables from this file in place of a download.
    known: Any = openai_public.ENCODING_CONSTRUCTORS[path.stem]
    made = FunctionType(known.__code__, {**vars(openai_public), "load_tiktoken_bpe": read})
    return Tiktoken(path.stem, Encoding(**made()))


def _encoding_of(model: str) -> str | None:
    """Returns the name of the encoding of a model, or of the encoding itself; None if it is unknown."""
    from tiktoken.model import encoding_name_for_model  # noqa: PLC0415 - takes a moment to import

    if model in ENCODINGS:
        return model
    try:
        found = encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return None
    found = SAME_WORDS.get(found, found)
    return found if found in ENCODINGS else None
