"""Turns a file's bytes into chunks and rows to write: all the work that needs no database. Pure."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import structlog
from msgspec import structs

from app.errors import InvalidInput
from app.foundation.models.protocols import TokenCounter
from app.foundation.safety.secrets import masked_values
from app.foundation.text.document import Document, decode, read_document
from app.foundation.text.words import count_noun
from app.foundation.values import frozen
from app.intake.cases.extract_text import found_in_report, harmless
from app.intake.cases.judgement import FACET, FoundJudgement, facet_of
from app.intake.reports.chunk import Chunk, has_content, metadata_of_scalars
from app.intake.reports.json_document import chunk_json
from app.intake.reports.log_lines import without_repeated_lines
from app.intake.reports.markdown import chunk_markdown
from app.intake.reports.scan import ReportFile
from app.intake.reports.state import (
    CONCLUSION,
    STATE,
    SUPERSEDES,
    conclusion_of_file,
    replaced_files,
    state_of_file,
    state_of_heading,
    states_conclusion,
)
from app.storage.index.vectors import embedded_text
from app.storage.memories.gate import INJECTION, INVALID, instruction_in, screened_all
from app.storage.memories.memory import TAG_LIMIT, TAGS_LIMIT, MemoryRow, NewMemory, Screened, SourceReference

_CHUNKER_VERSION = 11
"""Version of the chunker. It is part of every file's hash, so a new version chunks all files again."""
HASH_BYTES = 16
_TOKEN_CHARACTERS = 16
"""So many characters count as at least one token. Prose has 4 to 5 a token, a padded table 10. A chunk has at most
4,064."""
_TITLE_PARTS = 3
"""Number of parts of the path, from its end, that make the title of a file without one: folders name the run."""

_RECORD_PATH = re.compile(r"(^|[/_.-])(?:adrs?|decisions?)[/_.-]", re.IGNORECASE)
_DECIDING = re.compile(
    r"^\W*(?:\d+\W+)?(?:(?:accepted |chosen )?decision|chosen option|resolution|entscheidung|beschluss|ergebnis|"
    r"решени[ея]|принятое решение)\b|\bin the context of\b|\bim kontext\b|\bв контексте\b",
    re.IGNORECASE | re.MULTILINE,
)
"""The beginning of a line, such as a heading, or a phrase that a decision record has."""

logger = structlog.get_logger()


class EmptyReport(InvalidInput):
    """A content that states nothing: it is no error, and there is nothing to store."""


@frozen
class Prepared:
    """A file ready to be written."""

    uri: str
    title: str
    """The path that people see."""
    content_hash: bytes
    rows: tuple[MemoryRow, ...]
    """One row for each chunk, without a source yet."""
    judgements: tuple[FoundJudgement, ...] = ()
    """The judgements that the file states."""
    noise: int = 0
    """Chunks of machine output that are not stored."""
    notes: tuple[str, ...] = ()
    """Remarks for a person on how the file was read."""
    skipped: tuple[str, ...] = ()
    """Records that could not be read, each with its reason."""
    records_decision: bool = False
    """True if it looks like a decision record (ADR)."""


def file_hash(content: bytes, language: str, shown: PurePosixPath, dated: datetime | None = None) -> bytes:
    """Returns the hash by which a file is recognised as unchanged, the date that its folder gives it included.

    A name that looks like an instruction is included too, so that a file that is renamed to one is screened again.
    """
    name = str(shown) if instruction_in(str(shown)) else ""
    prefix = f"{_CHUNKER_VERSION}:{language}:{'' if dated is None else dated.isoformat()}{name}".encode()
    return hashlib.blake2b(prefix + content, digest_size=HASH_BYTES).digest()


def prepare(
    content: bytes,
    file: ReportFile,
    *,
    language: str,
    counter: TokenCounter,
    mask: bool = True,
    dated: datetime | None = None,
    tags: Sequence[str] = (),
) -> Prepared:
    """Chunks a file and makes its rows. A chunk with a finding of the injection scan gets a row for quarantine.

    `dated` is the date of chunks that state none. The rows have the names of the file's folders as tags, and `tags`.

    Raises:
        EmptyReport: the content states nothing.
        InvalidInput: the content is not a report; the message says why.
    """
    document = read_report(file.shown, content, mask=mask)
    chunks = [
        chunk if chunk.occurred_at else replace(chunk, occurred_at=dated)
        for chunk in chunk_document(file.shown, document, counter)
    ]
    tags = (*path_tags(file.shown), *tags)
    states = {} if document.is_json else _states(document)
    memories = [_memory(chunk, ordinal, tags, file.shown.parts, states) for ordinal, chunk in enumerate(chunks)]
    if not document.is_json:
        memories = _with_conclusion(memories, conclusion_of_file(document.body))
    passed = _screen_chunks(memories, SourceReference(kind="report", uri=file.uri, title=str(file.shown)))
    tokens = counter.count_many([embedded_text(item.memory.title, item.memory.body) for item in passed])
    return Prepared(
        uri=file.uri,
        title=str(file.shown),
        content_hash=file_hash(content, language, file.shown, dated),
        rows=tuple(
            replace(item, tokens=count).row(source_id=None, language=language)
            for item, count in zip(passed, tokens, strict=True)
        ),
        judgements=_judgements(file.shown, document),
        noise=sum(chunk.left_out for chunk in chunks),
        notes=document.notes,
        skipped=document.skipped,
        records_decision=_looks_like_record(file.shown, document),
    )


def read_report(path: PurePosixPath, content: bytes, *, mask: bool) -> Document:
    """Returns a report's content, without secrets if `mask` says so, and with repeated log lines counted once.

    Raises:
        EmptyReport: there is no text.
        InvalidInput: the content is not what its suffix says, or is no text.
    """
    text = decode(content)
    if not text.strip():
        raise EmptyReport("", "is empty")
    document = read_document(text, path.suffix.lower())
    body, repeated = without_repeated_lines(document.body, is_log=path.suffix.lower() == ".log")
    note = f"{count_noun(repeated, 'repeated log line')} counted once" if repeated else ""
    document = replace(document, body=body, notes=(*document.notes, *filter(None, [note])))
    return masked_values(document) if mask else document


def _looks_like_record(path: PurePosixPath, document: Document) -> bool:
    """Tells by its path or by a heading if a file may record a decision; it is read more closely later."""
    if document.is_json:
        return False
    stated = "\n".join([*map(str, document.facts), document.body])
    return _RECORD_PATH.search(str(path)) is not None or _DECIDING.search(stated) is not None


def judgements_of(content: bytes, file: ReportFile, *, mask: bool) -> tuple[FoundJudgement, ...]:
    """Returns what a file judges, without secrets and without instructions to the reader."""
    return _judgements(file.shown, read_report(file.shown, content, mask=mask))


def _judgements(path: PurePosixPath, document: Document) -> tuple[FoundJudgement, ...]:
    try:
        return tuple(map(harmless, found_in_report(path, document)))
    except Exception:  # one document that nobody thought of must not stop the others
        logger.exception("a report's judgements could not be read", path=str(path))
        return ()


def _states(document: Document) -> dict[str, Any]:
    """Returns the metadata of what a document says of its own state and of files that it replaces."""
    found = {STATE: state_of_file(document.facts, document.body), SUPERSEDES: replaced_files(document.body)}
    # It stands above each passage of the file, also where the chunk that says it is held back.
    return {key: value for key, value in found.items() if value and not instruction_in(str(value))}


def _with_conclusion(memories: Sequence[NewMemory], conclusion: str) -> list[NewMemory]:
    """Returns chunks, the one that states what their file concludes with it, so that it is gone with this chunk."""
    if not conclusion or instruction_in(conclusion):
        return list(memories)
    stating = next((memory for memory in memories if states_conclusion(memory.body, conclusion)), None)
    if stating is None:
        return list(memories)
    noted = structs.replace(stating, metadata={**stating.metadata, CONCLUSION: conclusion})
    return [noted if memory is stating else memory for memory in memories]


def _memory(
    chunk: Chunk, ordinal: int, tags: Sequence[str], path: Sequence[str], states: Mapping[str, Any]
) -> NewMemory:
    metadata = {**metadata_of_scalars(chunk.fields), **states, "trail": list(chunk.heading_path)}
    if own := next(filter(None, map(state_of_heading, reversed(chunk.heading_path))), ""):
        metadata[STATE] = own
    if chunk.pointer:
        metadata["pointer"] = chunk.pointer
    if facet := facet_of(path, chunk.pointer or " ".join(chunk.heading_path[1:])):
        metadata[FACET] = facet
    return NewMemory(
        kind="chunk",
        title=chunk.title,
        body=chunk.text,
        ordinal=ordinal,
        occurred_at=chunk.occurred_at,
        final_score=chunk.final_score,
        tags=tuple(tags),
        metadata=metadata,
    )


def _screen_chunks(memories: Sequence[NewMemory], source: SourceReference) -> list[Screened]:
    """Screens chunks without secrets. Only an injection finding matters here: it quarantines the chunk."""
    # The source is set later, when the row is written. Here only its name is screened.
    named = [structs.replace(memory, ordinal=None, source=source) for memory in memories]
    found = list[Screened]()
    for memory, result in zip(memories, screened_all(named, mask=False), strict=True):
        objection = result.objection
        if objection is not None and objection.code == INVALID:
            raise InvalidInput("", f"chunk {memory.ordinal}: {objection.message}")
        kept = objection if objection is not None and objection.code == INJECTION else None
        own = structs.replace(result.memory, ordinal=memory.ordinal, source=None)
        found.append(replace(result, memory=own, objection=kept))
    return found


def path_tags(path: PurePosixPath) -> tuple[str, ...]:
    """Returns the names of a report's folders, lower-cased, each once: `bads-russia`, `v6`."""
    names = (part.strip().lower()[:TAG_LIMIT] for part in path.parts[:-1])
    return tuple(dict.fromkeys(name for name in names if name.strip("./")))[:TAGS_LIMIT]


def chunk_document(path: PurePosixPath, document: Document, counter: TokenCounter) -> list[Chunk]:
    """Returns the chunks of a document: by headings for Markdown, by structure for JSON.

    The title and text of a chunk have at most `MAX_TOKENS` together. Chunks without content are left out. The same
    document gives the same chunks.

    Raises:
        EmptyReport: nothing in it states anything.
    """
    name, bounded = readable(path), _Bounded(counter)
    if document.is_json:
        found = chunk_json(document.value, name, bounded)
    else:
        found = chunk_markdown(document.facts, document.body, name, bounded)
    if chunks := [chunk for chunk in found if has_content(chunk.text)]:
        return chunks
    raise EmptyReport("", "is empty: nothing in it states anything besides headings and dates")


class _Bounded:
    """Counts tokens, with a least number for the length: a word of a thousand letters is one token to the model."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def count(self, text: str) -> int:
        """Returns the tokens of the text, or the least number for its length if that is greater."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Returns `count` of each text."""
        counts = self._counter.count_many(texts)
        return [max(count, len(text) // _TOKEN_CHARACTERS) for text, count in zip(texts, counts, strict=True)]


def readable(path: PurePosixPath) -> str:
    """Returns the title for a file whose content names none."""
    return "/".join(path.with_suffix("").parts[-_TITLE_PARTS:])
