"""Counts tokens with the bundled model's tokenizer, and makes text well-formed for it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MINILM = Path(__file__).with_name("minilm")
"""Folder of the default model's tokenizer and configuration, as they were published (Apache-2.0)."""
PIECE_CHARACTERS = 32_768
"""Characters of a piece. Counted whole, a text of 3 MB took 1.8 GB of memory; in pieces, 10 MB take 0.1 GB."""
UNBROKEN_CHARACTERS = 262_144
"""Characters after which a run without a blank is cut as well. To the model such a run is one unknown word; each cut
counts one token too many. Counted whole, 10 MB of Hangul without a blank took 20 s and 3.4 GB."""
CACHED_WORDS, CACHED_CHARACTERS = 65_536, 64
"""Words whose token counts are cached, at most 12 MB, and their longest length. Most words of a text have occurred
before: 80 cached words take 29 us, and 350 us as one text; chunking report files takes a third less time."""
_MARKS = r"!-/:-@\\^-`{-~\u4e00-\u9fff"
_CUT = re.compile(rf"[ \t\n\r{_MARKS}]")
"""A place where a cut changes no token: the tokenizer never joins characters across blanks, ASCII punctuation or CJK
ideographs. Square brackets are left out, because `[SEP]` and the like are one token."""
_WORD = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")
"""A run without such a place, or a punctuation mark or ideograph alone."""


def well_formed(text: str) -> str:
    """Replaces each lone surrogate, which no encoder accepts, by a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


class BundledTokenCounter:
    """Counts with the bundled model's WordPiece tokenizer, and caches words. Safe to share between threads."""

    def __init__(self) -> None:
        self._tokenizer = load_tokenizer(MINILM / "tokenizer.json")
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Counts the model tokens of `text`, without the special tokens at both ends: the sum over its words."""
        return sum(self._count(_WORD.findall(piece)) for piece in _pieces(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Counts the tokens of each text. Time grows linearly with the text, memory does not."""
        return [self.count(text) for text in texts]

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
        if len(self._known) + len(counted) > CACHED_WORDS:
            self._known = {}
        self._known.update({word: count for word, count in counted.items() if len(word) <= CACHED_CHARACTERS})
        return counted


def load_tokenizer(path: Path) -> "Tokenizer":
    """Loads a `tokenizer.json`, which then neither pads nor truncates.

    Raises:
        EmbeddingUnavailable: the file is not a tokenizer.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - takes a tenth of a second to import

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise EmbeddingUnavailable(f"{path} is not a tokenizer ({error}); remove it and start again") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _pieces(text: str) -> Iterator[str]:
    """Cuts the text into pieces of about PIECE_CHARACTERS."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + UNBROKEN_CHARACTERS
        cut = _CUT.search(text, start + PIECE_CHARACTERS, limit)
        end = cut.start() if cut else limit
        yield well_formed(text[start:end])
        start = end
    yield well_formed(text[start:])
