"""Decides whether a memory is stored: sizes and ranges, worthless text, injections; and masks its secrets. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from app.foundation.safety.scan import FLAG, Finding, blocking, scan, scan_all, without_refusal
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import faults_in, read_toml
from app.foundation.text.data import unstorable as unstorable  # noqa: PLC0414 - some rooms take it from here
from app.foundation.text.words import SPEAKS
from app.storage.memories.memory import (
    BODY_LIMIT,
    TAG_LIMIT,
    URI_LIMIT,
    NewMemory,
    Objection,
    ObservationDetail,
    Screened,
)
from app.storage.tenants.workspace import impossible_user, unknown_language

_METADATA_LIMIT = 100_000
"""Most bytes of the metadata as JSON."""
_SMALLEST_SCORE, _LARGEST_SCORE = 1e-6, 10
"""Limits of a score other than 0; a `real` column cannot hold much smaller numbers."""


def reason_to_reject(memory: NewMemory) -> str | None:
    """Returns the reason why a memory cannot be stored, with the field and the remedy; None if it can."""
    return next(_reasons(memory), None)


def _reasons(memory: NewMemory) -> Iterator[str]:
    if not memory.body.strip():
        yield "body: is empty; a memory needs text"
    if memory.final_score is not None:
        yield from score_reasons("final_score", memory.final_score)
    yield from faults_in(structs.replace(memory, observation=None, embedding=None))
    yield from tag_reasons(memory.tags)
    yield from _source_reasons(memory)
    if reason := unknown_language(memory.language or ""):
        yield f"language: {reason}"
    if reason := impossible_user(memory.user):
        yield f"user: {reason}"
    if memory.metadata and (size := len(msgspec.json.encode(memory.metadata))) > _METADATA_LIMIT:
        yield f"metadata: has {size:,} bytes as JSON; at most {_METADATA_LIMIT:,} are taken"
    if memory.observation is not None:
        yield from _detail_reasons(memory.observation)


def _detail_reasons(detail: ObservationDetail) -> Iterator[str]:
    yield from faults_in(detail, "observation")
    for name in ("facts", "queries"):
        if (size := sum(map(len, getattr(detail, name)))) > BODY_LIMIT:
            yield f"observation.{name}: has {size:,} characters; at most {BODY_LIMIT:,} are taken, so split it"


def score_reasons(field: str, score: float) -> Iterator[str]:
    """Yields the reason why a number cannot be an evaluator's score."""
    if not (score == 0 or _SMALLEST_SCORE <= score <= _LARGEST_SCORE):
        yield f"{field}: must be from {_SMALLEST_SCORE:f} to {_LARGEST_SCORE}, or 0"


def too_long_uri(uri: str) -> str:
    """Returns the reason why no index can hold this URI; "" if it can."""
    size = len(uri.encode(errors="replace"))
    return f"has {size:,} bytes; at most {URI_LIMIT:,} are taken, so shorten it" if size > URI_LIMIT else ""


def _source_reasons(memory: NewMemory) -> Iterator[str]:
    if memory.source is None:
        if memory.ordinal is not None:
            yield "ordinal: is a place in a source, so it needs a source"
    elif not memory.source.uri.strip():
        yield "source.uri: is empty; it names the source"
    elif reason := too_long_uri(memory.source.uri):
        yield f"source.uri: {reason}"


def tag_reasons(tags: Sequence[str]) -> Iterator[str]:
    """Yields the reason why a memory cannot have these tags."""
    if any(not tag.strip() or len(tag) > TAG_LIMIT for tag in tags):
        yield f"tags: each has 1 to {TAG_LIMIT} characters"


_BOILERPLATE_CHARACTERS = 160
"""Most characters of boilerplate; a longer text has more to say."""

INVALID, INJECTION = "invalid", "injection"
_EMPTY, _PUNCTUATION, _NUMBER = "empty", "punctuation", "number"
BOILERPLATE_ONLY, _STACK_TRACE, ECHO = "boilerplate", "stack_trace", "echo"
MEANINGS = {
    _EMPTY: "is empty; a memory needs text",
    _PUNCTUATION: "has no letter and no digit, so nothing could find it",
    _NUMBER: "is a bare number; say what it counts or measures",
    BOILERPLATE_ONLY: "says only that nothing was found or done; say what was tried, and it is worth keeping",
    _STACK_TRACE: "is a stack trace without a message; add what failed and why",
}


def _boilerplate(apologies: Sequence[str], phrases: Sequence[str]) -> re.Pattern[str]:
    """Returns the expression for texts that only say that nothing was found or done."""
    pattern = rf"\A\W* (?:(?:{'|'.join(apologies)})\b\W*)* (?:{'|'.join(phrases)}) \W*\Z"
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_SAID = frozenset({"message", "cue"})
"""Kinds that are stored even with a finding, which only keeps them out of histories."""
_BARE_NUMBER = re.compile(r"[\W_]*\d+(?:[.,]\d+)*[\W_]*")
_WORTHLESS = read_toml("app.storage.memories", "worthless.toml", dict[str, dict[str, Any]])
_BOILERPLATE = _boilerplate(**_WORTHLESS["boilerplate"])
_TRACE_HEAD, _TRACE_LINE, _TRACE_MESSAGE = (
    re.compile(_WORTHLESS["trace"][name], re.MULTILINE | re.VERBOSE) for name in ("head", "line", "message")
)


def worthless(text: str) -> str | None:
    """Returns the reason to refuse a text as worthless; None if there is none."""
    if not text.strip():
        return _EMPTY
    if not SPEAKS.search(text):
        return _PUNCTUATION
    if len(text) <= _BOILERPLATE_CHARACTERS and _BARE_NUMBER.fullmatch(text):
        return _NUMBER
    if len(text) <= _BOILERPLATE_CHARACTERS and _BOILERPLATE.match(text):
        return BOILERPLATE_ONLY
    if _only_a_trace(text):
        return _STACK_TRACE
    return None


def _only_a_trace(text: str) -> bool:
    if not _TRACE_HEAD.search(text) or _TRACE_MESSAGE.search(text):
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    if not any(_TRACE_LINE.match(line) for line in lines):
        return False
    frames = sum(bool(_TRACE_LINE.match(line) or _TRACE_HEAD.match(line)) for line in lines)
    # A line of source follows each frame.
    return 2 * frames >= len(lines) and not any(_is_prose(line) for line in lines)


def _is_prose(line: str) -> bool:
    """Returns whether a line is prose: words at the margin, not a line of source."""
    return line[0].isalpha() and len(line.split()) > 2 and not (_TRACE_HEAD.match(line) or _TRACE_LINE.match(line))  # noqa: PLR2004 - words


_PATH_PARTS, _HYPHENS = re.compile(r"[./\\]+"), re.compile(r"[-_]+")
_SEAM = "\n\n"
"""The separator between a title and a body that are read as one text."""


class _Readable(NamedTuple):
    """A text of a memory that readers see, with its field."""

    field: str
    text: str
    start: int = 0
    """The place in the text at which the title ends."""
    is_name: bool = False
    """True for names, paths and tasks. A task is an order by nature, so only what is sure to be an injection counts."""


def screen_memory(memory: NewMemory, *, mask: bool) -> Screened:
    """Returns a memory after the gate: without its secrets, and with its findings and its objection, if any."""
    return screened_all([memory], mask=mask)[0]


def screened_all(memories: Sequence[NewMemory], *, mask: bool) -> list[Screened]:
    """Returns memories after the gate, as `screen_memory` does; together they are scanned in half the time."""
    cleaned = [_remove_secrets(memory, mask=mask) for memory in memories]
    texts = [[] if item.objection else list(_readable(item.memory)) for item in cleaned]
    scanned = iter(scan_all([(text.text, text.start) for own in texts for text in own]))
    found = [[finding for text in own for finding in _scan_fields(text, next(scanned))] for own in texts]
    return [item if item.objection else _judge_text(item.memory, own) for item, own in zip(cleaned, found, strict=True)]


def _remove_secrets(memory: NewMemory, *, mask: bool) -> Screened:
    """Returns a memory without its secrets, with the objection to its fields or its body, if any."""
    reason = reason_to_reject(memory)
    if reason is not None:
        return Screened(memory=memory, objection=Objection(message=reason, code=INVALID))
    clean = _without_secrets(memory) if mask else memory
    # Even a worthless message is stored: without it, other messages of its source would have wrong neighbours.
    useless = None if memory.kind == "message" else worthless(clean.body)
    if useless is not None:
        return Screened(memory=clean, objection=Objection(message=f"body: {MEANINGS[useless]}", code=useless))
    return Screened(memory=clean)


def _judge_text(memory: NewMemory, found: Sequence[tuple[str, Finding]]) -> Screened:
    if memory.kind in _SAID:
        # What somebody said, and what was learnt from it, is kept; it does not stand in a history.
        found = [(field, without_refusal(finding)) for field, finding in found]
    details = tuple({"field": field, **finding._asdict()} for field, finding in found)
    return Screened(memory=memory, findings=details, objection=_injection(found, details))


def _injection(found: Sequence[tuple[str, Finding]], details: tuple[dict[str, Any], ...]) -> Objection | None:
    """Returns the objection to the first finding that instructs the reader."""
    field, first = next(((field, finding) for field, finding in found if blocking((finding,))), ("", None))
    if first is None:
        return None
    message = (
        f"{field}: characters {first.start} to {first.end} look like an instruction to the reader (rule {first.rule});"
        " quote it in a code block or a block quote if it is what you report on"
    )
    return Objection(message=message, code=INJECTION, details=details)


def _readable(memory: NewMemory) -> Iterator[_Readable]:
    """Yields the texts of a memory: the title and the body as one, as a reader sees them, the others, and names."""
    top = f"{memory.title}{_SEAM}" if memory.title else ""
    yield _Readable("body", top + memory.body, start=len(top))
    yield from (_Readable(field, text) for field, text in _texts(memory))
    yield from (_Readable(field, text, is_name=True) for field, text in _names(memory))


def _scan_fields(text: _Readable, findings: Sequence[Finding]) -> Iterator[tuple[str, Finding]]:
    """Yields what the injection scan found in a text, each with its field."""
    for finding in blocking(findings) if text.is_name else findings:
        if not text.start:
            yield text.field, finding
        elif finding.start < (title := text.start - len(_SEAM)):
            yield "title", finding._replace(end=min(finding.end, title))
        else:
            start = max(finding.start - text.start, 0)
            yield text.field, finding._replace(start=start, end=finding.end - text.start)


def instruction_in(name: str) -> Finding | None:
    """Returns what looks like an instruction to the reader in a path or a tag; None if nothing does."""
    found = (finding for text in (name, _spelled_out(name)) for finding in scan(text))
    return next((finding for finding in found if finding.severity != FLAG), None)


def _spelled_out(name: str) -> str:
    """Returns the words of a path or a tag, which stand between hyphens, with blanks between them."""
    return _HYPHENS.sub(" ", _PATH_PARTS.sub("\n", name))


def _names(memory: NewMemory) -> Iterator[tuple[str, str]]:
    """Yields names, paths and tasks, each with its place."""
    if memory.source is not None:
        yield "source.title", _spelled_out(memory.source.title)
        yield "source.uri", _spelled_out(memory.source.uri)
    yield from ((f"tags[{place}]", _spelled_out(tag)) for place, tag in enumerate(memory.tags))
    yield "run_id", memory.run_id or ""
    if memory.observation is not None:
        for name in ("task", "task_type", "verdict", "output_path"):
            yield name, getattr(memory.observation, name) or ""


def _texts(memory: NewMemory) -> Iterator[tuple[str, str]]:
    """Yields the other readable texts of a memory, each with its place."""
    if memory.source is not None:
        yield from (("source.title", memory.source.title), ("source.uri", memory.source.uri))
    if memory.observation is not None:
        yield from _leaves("facts", memory.observation.facts)
        if memory.observation.narrative not in memory.body:
            yield "narrative", memory.observation.narrative
    yield from (*_leaves("tags", memory.tags), *_leaves("metadata", memory.metadata))


def _leaves(field: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    """Yields the texts of a JSON value, keys included, each with its place."""
    match value:
        case str():
            yield field, value
        case Mapping():
            for key, item in value.items():
                yield field, key
                yield from _leaves(f"{field}.{key}", item)
        case list() | tuple():
            for place, item in enumerate(value):
                yield from _leaves(f"{field}[{place}]", item)


def _without_secrets(memory: NewMemory) -> NewMemory:
    bare = structs.replace(memory, embedding=None)
    masked = masked_values(bare)
    if masked is bare:
        return memory
    clean = structs.replace(masked, user=memory.user)
    if (clean.title, clean.body) != (memory.title, memory.body):
        # The given vector was made from the unmasked text.
        return clean
    return structs.replace(clean, embedding=memory.embedding)
