"""The entry to chunking: bytes in, chunks out. Pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath

import structlog

from app.errors import InvalidInput
from app.intake.reports.chunk import Chunk
from app.intake.reports.json_document import chunk_json
from app.intake.reports.markdown import chunk_markdown
from app.models.protocols import TokenCounter

MAX_TOKENS = 254
"""The model's window of 256, less the two tokens that frame a sequence."""
TOKEN_CHARACTERS = 16
"""Characters that count as a token at least; prose has 4 to 5, a padded table 10. A chunk has at most 4,064."""
TITLE_PARTS = 3
"""Parts of its path that stand for a file without a title: a run's folders say which run it was."""

logger = structlog.get_logger()


def chunk_report(
    path: PurePosixPath, content: bytes, counter: TokenCounter, *, max_tokens: int = MAX_TOKENS
) -> list[Chunk]:
    """The chunks of a report: by headings for Markdown, by structure for JSON, as the suffix says.

    Of each chunk, title and text together have at most `max_tokens`. The same bytes give the same chunks.

    Raises:
        InvalidInput: the content is no such document; the message says why and where.
    """
    text = _decoded(content)
    chunker = chunk_json if path.suffix.lower() == ".json" else chunk_markdown
    try:
        chunks = chunker(text, readable(path), _Bounded(counter), max_tokens)
    except InvalidInput:
        raise
    except Exception as error:  # one document that nobody thought of must not stop the others
        logger.exception("a report could not be chunked", path=str(path))
        raise InvalidInput("", f"could not be chunked ({type(error).__name__}: {error}); please report it") from error
    if not chunks:
        raise InvalidInput("", "is empty: nothing in it says anything")
    return chunks


class _Bounded:
    """Counts tokens, and characters where a token has very many: a word of a thousand letters is one to the model."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def count(self, text: str) -> int:
        """Tokens of the text, or what it is as long as."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text."""
        counts = self._counter.count_many(texts)
        return [max(count, len(text) // TOKEN_CHARACTERS) for text, count in zip(texts, counts, strict=True)]


def readable(path: PurePosixPath) -> str:
    """What a file without a title is called."""
    return "/".join(path.with_suffix("").parts[-TITLE_PARTS:])


def _decoded(content: bytes) -> str:
    if b"\0" in content:
        raise InvalidInput("", f"is binary: a NUL byte at {content.index(0)}; only text can be taken in")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("", f"is not UTF-8: byte {error.start} cannot be read; save it as UTF-8") from None
    if not text.strip():
        raise InvalidInput("", "is empty")
    return text
