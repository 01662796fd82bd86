"""The entry to chunking: bytes in, chunks out. Pure."""

from pathlib import PurePosixPath

from app.embeddings.provider import TokenCounter
from app.errors import InvalidInput
from app.reports.chunk import Chunk
from app.reports.json_document import chunk_json
from app.reports.markdown import chunk_markdown

MAX_TOKENS = 254
"""The model's window of 256, less the two tokens that frame a sequence."""
TITLE_PARTS = 3
"""Parts of its path that stand for a file without a title: a run's folders say which run it was."""


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
    return chunker(text, readable(path), counter, max_tokens)


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
