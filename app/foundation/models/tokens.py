"""Counts tokens: as the bundled model does, and as a named model does, by its own tokenizer or else by an estimate.

Nothing is downloaded: tokenizers are files of a folder.
"""

import asyncio
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from app.errors import EmbeddingUnavailable, TokenizerUnavailable
from app.foundation.models.protocols import TokenCounter

MINILM = Path(__file__).with_name("minilm")
"""Folder of the default model's tokenizer and configuration, as they were published (Apache-2.0)."""
_PIECE_CHARACTERS = 32_768
"""Characters of a piece. Counted whole, a text of 3 MB took 1.8 GB of memory; in pieces, 10 MB take 0.1 GB."""
_UNBROKEN_CHARACTERS = 262_144
"""Characters after which a run without a blank is cut as well. To the model such a run is one unknown word; each cut
counts one token too many. Counted whole, 10 MB of Hangul without a blank took 20 s and 3.4 GB."""
_CACHED_WORDS, _CACHED_CHARACTERS = 65_536, 64
"""Words whose token counts are cached, at most 12 MB, and their longest length. Most words of a text have occurred
before: 80 cached words take 29 us, and 350 us as one text; chunking report files takes a third less time."""
_MARKS = r"!-/:-@\\^-`{-~\u4e00-\u9fff"
_CUT = re.compile(rf"[ \t\n\r{_MARKS}]")
"""A place where a cut changes no token: the tokenizer never joins characters across blanks, ASCII punctuation or CJK
ideographs. Square brackets are left out, because `[SEP]` and the like are one token."""
_WORD = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")
"""A run without such a place, or a punctuation mark or ideograph alone."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
"""A model's name that may be the name of a file; a slash in it is written as `--` there."""


def well_formed(text: str) -> str:
    """Replaces each lone surrogate, which no encoder accepts, by a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


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


class BundledTokenCounter(NamedCounter):
    """Counts with the bundled model's WordPiece tokenizer, and caches words. Safe to share between threads."""

    name, exact = "embedding", True

    def __init__(self) -> None:
        self._tokenizer = load_tokenizer(MINILM / "tokenizer.json")
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Counts the model tokens of `text`, without the special tokens at both ends: the sum over its words.

        Time grows linearly with the text, memory does not.
        """
        return sum(self._count(_WORD.findall(piece)) for piece in _pieces(text))

    def _count(self, words: Sequence[str]) -> int:
        # Read once, because another thread may replace the cache at any moment.
        known = self._known
        try:
            return sum(map(known.__getitem__, words))
        except KeyError:
            counted = self._count_new({word for word in words if word not in known})
            return sum(known[word] if count is None else count for word in words for count in (counted.get(word),))

    def _count_new(self, words: Iterable[str]) -> dict[str, int]:
        """Counts the tokens of words that are not cached, and caches the short ones."""
        unknown = list(words)
        encodings = self._tokenizer.encode_batch_fast(unknown, add_special_tokens=False)
        counted = dict(zip(unknown, map(len, encodings), strict=True))
        if len(self._known) + len(counted) > _CACHED_WORDS:
            self._known = {}
        self._known.update({word: count for word, count in counted.items() if len(word) <= _CACHED_CHARACTERS})
        return counted


def load_tokenizer(path: Path) -> Tokenizer:
    """Loads a `tokenizer.json`, which then neither pads nor truncates.

    Raises:
        EmbeddingUnavailable: the file is not a tokenizer.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise EmbeddingUnavailable(f"{path} is not a tokenizer ({error}); remove it and start again") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _pieces(text: str) -> Iterator[str]:
    """Cuts the text into pieces of about _PIECE_CHARACTERS."""
    start = 0
    while len(text) - start > _PIECE_CHARACTERS:
        limit = start + _UNBROKEN_CHARACTERS
        cut = _CUT.search(text, start + _PIECE_CHARACTERS, limit)
        end = cut.start() if cut else limit
        yield well_formed(text[start:end])
        start = end
    yield well_formed(text[start:])


class TokenizerFile:
    """A provider's own `tokenizer.json`."""

    exact = True

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
        self.name, self._tokenizer = name, tokenizer

    def count(self, text: str) -> int:
        """Counts the tokens of `text`, without the special tokens at both ends."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text."""
        found = self._tokenizer.encode_batch_fast([well_formed(text) for text in texts], add_special_tokens=False)
        return list(map(len, found))


def _table(classes: Mapping[str, Iterable[int]]) -> bytes:
    """Returns the translation of each byte to the letter of its class; other bytes become blanks."""
    table = bytearray(b" " * 256)
    for letter, members in classes.items():
        for member in members:
            table[member] = ord(letter)
    return bytes(table)


_UPPER, _LOWER, _DIGITS = range(0x41, 0x5B), range(0x61, 0x7B), range(0x30, 0x3A)
MARKS = (*range(0x21, 0x30), *range(0x3A, 0x41), *range(0x5B, 0x61), *range(0x7B, 0x7F))
_CLASSES = _table(
    {"A": _UPPER, "a": _LOWER, "0": _DIGITS, ".": MARKS, "n": b"\n", "l": range(0xC2, 0xC9), "c": range(0xC9, 0xE0),
     "k": range(0xE0, 0xF0), "x": range(0xF0, 0xF8)}
)  # fmt: skip
"""The class of each byte of UTF-8: ASCII, and the first bytes of letters with marks (Latin), of Cyrillic and the other
scripts of two bytes, of those of three, and of four."""
_LETTERS, _RUNS = _table({"a": (*_UPPER, *_LOWER)}), _table({".": MARKS})
_TOKENS = {
    "words": 0.89, "further letters": 0.2, "capitalised": 0.94, "inner capitals": 0.16, "digits": 1.09, "marks": 0.14,
    "runs of marks": 0.87, "lines": 1.31, "latin": 2.65, "cyrillic": 0.673, "three bytes": 1.185, "four bytes": 3.1,
}  # fmt: skip
"""Tokens of each feature. A linear programme found the least ones by which no 1,000 characters of texts in English,
German, Russian, of Python, JavaScript, JSON and Markdown have fewer tokens than the most that cl100k_base, o200k_base,
Anthropic's published tokenizer and Mistral's Tekken give them; 3 % are added. Further letters then went from 0.168 to
0.2: in Spanish and German prose with few marked letters, single pieces were 8 % too low, and are 4 % too low now. In
English it adds 3 %. `python -m benchmarks.tokens` prints the table for texts that the programme did not see."""
_LONG = 3
"""Letters of a word beyond which they count as further ones."""


class Estimate(NamedCounter):
    """An estimate for models without a tokenizer at hand. It is rather too high than too low."""

    name, exact = "estimate", False

    def count(self, text: str) -> int:
        """Estimates the tokens of `text`, in one pass of the interpreter for each feature."""
        encoded = b" " + text.encode(errors="replace")
        classes, letters = encoded.translate(_CLASSES), encoded.translate(_LETTERS)
        starts = [letters.count(b" " + b"a" * length) for length in range(1, _LONG + 1)]
        found = {
            "words": starts[0],
            "further letters": letters.count(b"a") - sum(starts),
            "capitalised": classes.count(b" Aa") + classes.count(b".Aa") + classes.count(b"nAa"),
            "inner capitals": classes.count(b"aA") + classes.count(b"AA"),
            "digits": classes.count(b"0"),
            "marks": classes.count(b"."),
            "runs of marks": encoded.translate(_RUNS).count(b" ."),
            "lines": classes.count(b"n"),
            "latin": classes.count(b"l"),
            "cyrillic": classes.count(b"c"),
            "three bytes": classes.count(b"k"),
            "four bytes": classes.count(b"x"),
        }
        return math.ceil(sum(_TOKENS[name] * number for name, number in found.items()))


class Counting:
    """Finds the counter of a model."""

    def __init__(self, folder: Path, embedding: NamedCounter, *, embedding_model: str) -> None:
        self._folder, self._embedding, self._embedding_model = folder, embedding, embedding_model

    async def of(self, model: str) -> NamedCounter:
        """Returns the counter of a model: the embedding model's own for no name, an estimate for an unknown one.

        Raises:
            TokenizerUnavailable: a file of the folder is not the tokenizer that its name says.
        """
        if not model or model == self._embedding_model:
            return self._embedding
        name = model.replace("/", "--")
        path = self._folder / f"{name}.json"
        if not (_NAME.fullmatch(name) and path.is_file()):
            return Estimate()
        return await asyncio.to_thread(_from_file, path, model, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _from_file(path: Path, model: str, _changed: int) -> NamedCounter:
    try:
        return TokenizerFile(model, load_tokenizer(path))
    except EmbeddingUnavailable as error:
        raise TokenizerUnavailable(str(error)) from error
