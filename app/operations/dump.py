"""The verbs that move a workspace, or one of its users, from one server to another: `dump` and `load`.

A dump is lines of JSON: a header, then for each table its columns and its rows, and at the end their number and a hash
of everything before.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from app.errors import InvalidInput
from app.foundation.db import whole
from app.foundation.db.audit import SILENT
from app.foundation.db.database import Database
from app.foundation.db.migrations import current, known_revisions
from app.foundation.db.session import EMBED, EMBED_CUES, INDEX, LINK, Session
from app.foundation.text.data import read_json
from app.foundation.values import frozen
from app.settings import VERSION
from app.storage.index.indexing import index_words_again
from app.storage.index.models import active_model, register
from app.storage.tenants.workspace import UNMADE, Workspace, checked_name

_FORMAT = 1
"""The form of the lines. A server reads the forms up to its own."""
_BATCH_CHARACTERS, _BATCH_ROWS = 4_000_000, 500
"""Rows that are written at once."""
_OF_USERS = frozenset({"language", "languages", "has_users", "mean_length"})
"""Columns of the workspace that a dump of one user has."""

_EMBEDDINGS = "embeddings"

S = TypeVar("S", bound=msgspec.Struct)


class _Model(msgspec.Struct, frozen=True):
    """The model of the vectors."""

    name: str
    dimension: int


class _DumpHeader(msgspec.Struct, frozen=True):
    """The first line of a dump."""

    priors: str
    format: int
    schema: str
    version: str
    workspace: dict[str, Any]
    model: _Model | None
    """None where no vector was ever stored."""
    user: str | None = None
    """The only user whose rows it has; None for the whole workspace."""


class _TableLine(msgspec.Struct, frozen=True):
    """The line before the rows of a table."""

    table: str
    columns: list[str]


class _EndLine(msgspec.Struct, frozen=True):
    """The last line."""

    end: int
    """The number of rows."""
    sha256: str
    """The hash of all lines before, in hexadecimal digits."""


@frozen
class Loaded:
    """The result of a load."""

    workspace: str
    rows: Mapping[str, int]
    """Numbers of rows by table."""


def rows_of(last_line: bytes) -> int:
    """Returns the number of rows that the last line of a dump tells."""
    return _decode_line(last_line, _EndLine).end


async def _lines(session: Session, schema: str, user: str | None) -> AsyncIterator[tuple[int, bytes]]:
    """Yields the lines before the last, each with the number of its rows."""
    found = await whole.workspace(session)
    served = await active_model(session)
    model = None if served is None else _Model(served.name, served.dimension)
    kept = found if user is None else {name: value for name, value in found.items() if name in _OF_USERS | {"name"}}
    header = _DumpHeader("dump", _FORMAT, schema, VERSION, kept, model, user)
    yield 0, _line(header)
    for part in (await whole.parts(session)).values():
        started = False
        async for page in whole.rows(session, part, user=user is not None):
            if not started:
                yield 0, _line(_TableLine(part.table, list(part.columns)))
            started = True
            yield len(page), "".join(f"{row}\n" for row in page).encode()


def _line(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def _header(line: bytes, known: Sequence[str]) -> _DumpHeader:
    header = read_json(line, _DumpHeader)
    if isinstance(header, str):
        reason = "this is no dump: its first line is not the header that `priors workspace dump` writes"
        raise InvalidInput("", reason)
    if header.priors != "dump" or header.format < 1:
        raise InvalidInput("", "this is no dump of Priors")
    if header.format > _FORMAT or header.schema not in known:
        reason = f"it was made by Priors {header.version} at the schema {header.schema}, which is newer: upgrade Priors"
        raise InvalidInput("", reason)
    return header


@dataclass
class _Checked:
    """The lines after the first, as far as they are whole: the last one must fit all the others."""

    first: bytes
    rest: Iterator[bytes]
    rows: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[bytes | _TableLine]:
        digest, ended = sha256(self.first), False
        for line in self.rest:
            if ended:
                raise InvalidInput("", "the dump goes on after its end")
            if line.startswith(b'{"end":'):
                end = _decode_line(line, _EndLine)
                if (end.end, end.sha256) != (self.rows, digest.hexdigest()):
                    raise InvalidInput("", "the dump is damaged: its lines are not those that were written")
                ended = True
                continue
            digest.update(line)
            if line.startswith(b'{"table":'):
                yield _decode_line(line, _TableLine)
            else:
                self.rows += 1
                yield line
        if not ended:
            raise InvalidInput("", "the dump is cut off: its last line is missing")


def _decode_line(line: bytes, kind: type[S]) -> S:
    read = read_json(line, kind)
    if isinstance(read, str):
        raise InvalidInput("", f"the dump is damaged: {read}")
    return read


def _batches(
    lines: "_Checked", known: Mapping[str, whole.DumpedTable], *, is_older: bool
) -> Iterator[tuple[whole.DumpedTable, list[str]]]:
    """Yields rows that are written at once, with their table. Of an older dump, without what this schema lacks."""
    part, batch, size = None, list[str](), 0
    for line in lines:
        if part is not None and batch and (isinstance(line, _TableLine) or _is_full(batch, size)):
            yield part, batch
            batch, size = [], 0
        if isinstance(line, _TableLine):
            part = _part(line, known, is_older=is_older)
        elif part is None:
            raise InvalidInput("", "the dump is damaged: it has a row before any table")
        elif part.columns:
            batch.append(_text(line))
            size += len(line)
    if part is not None and batch:
        yield part, batch


def _is_full(batch: Sequence[str], size: int) -> bool:
    return len(batch) >= _BATCH_ROWS or size >= _BATCH_CHARACTERS


async def _served_model(session: Session, given: _Model | None) -> int | None:
    """Returns the id of the dump's model here; None if this store serves another, for which a worker embeds anew."""
    if given is None:
        return None
    served = await register(session, given.name, given.dimension)
    return served.model_id if (served.name, served.dimension) == (given.name, given.dimension) else None


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise InvalidInput("", "the dump is damaged: a line is not UTF-8") from None


def _part(line: _TableLine, known: Mapping[str, whole.DumpedTable], *, is_older: bool) -> whole.DumpedTable:
    """Returns the columns of a table that the dump has. A newer schema may have more: they get their defaults.

    A newer schema may also lack some, or the table: then no row of it is loaded.
    """
    part = known.get(line.table, whole.DumpedTable(line.table, ()))
    lacking = [name for name in line.columns if name not in part.columns]
    if lacking and not is_older:
        raise InvalidInput(line.table, f"this version has no {', '.join(lacking)} in {line.table}: the dump is damaged")
    if not line.columns or len(set(line.columns)) < len(line.columns):
        raise InvalidInput(line.table, "has no columns, or one of them twice: the dump is damaged")
    return whole.DumpedTable(line.table, tuple(name for name in line.columns if name in part.columns))


async def _make_workspace(session: Session, name: str, header: _DumpHeader, *, is_older: bool) -> int:
    given = header.workspace
    if header.user is not None:
        given = {key: value for key, value in given.items() if key in _OF_USERS}
    if is_older:
        # The counts are those of the words as that version read them.
        given = {**given, "statistics_at": "-infinity"}
    workspace_id = await whole.make(session, name, given)
    if not await whole.is_empty(session, workspace_id):
        raise InvalidInput("workspace", f"{name} has something already: load into another (`--workspace`), or erase it")
    return workspace_id


@frozen
class Dumps:
    """Dumps workspaces, and loads what was dumped."""

    database: Database

    async def dump(self, workspace: Workspace, *, user: str | None = None) -> AsyncIterator[bytes]:
        """Yields the lines of a dump of a workspace, or of one of its users, as it is at one moment.

        Raises:
            InvalidInput: nothing was ever written to the workspace.
        """
        seen = workspace.of_everyone() if user is None else workspace.of(user)
        if workspace.workspace_id == UNMADE:
            raise InvalidInput("workspace", f"nothing was ever written to {workspace.name}")
        async with self.database.session(seen) as session:
            session.changes.note_export("workspace" if user is None else "user", 1)
        async for line in self._dump_lines(seen, user):
            yield line

    async def load(self, lines: Iterable[bytes], *, name: str | None = None) -> Loaded:
        """Loads a dump into a workspace that nothing was written to: all of it, or nothing.

        Raises:
            InvalidInput: it is no dump, or one of a newer version, or damaged or cut off; or the workspace has
                something.
        """
        given = iter(lines)
        first = next(given, b"")
        header = _header(first, known_revisions())
        target = checked_name(name or str(header.workspace.get("name", "")))
        counts, is_older = Counter[str](), header.schema != await current(self.database)
        async with self.database.across() as session:
            with whole.storable("workspace"):
                workspace_id = await _make_workspace(session, target, header, is_older=is_older)
                model_id = await _served_model(session, header.model)
            await session.execute(SILENT)
            values = {"workspace": workspace_id, "model": model_id or 0}
            known = await whole.parts(session)
            for table, batch in _batches(_Checked(first, given), known, is_older=is_older):
                if table.table != _EMBEDDINGS or model_id is not None:
                    counts[table.table] += await whole.write(session, table, batch, values)
            session.changes.note("add", "workspace", 1, workspace_id=workspace_id)
            if is_older:
                await index_words_again(session, workspace_id)
            for task in (EMBED, LINK, INDEX, EMBED_CUES):
                await session.enqueue(task)
        return Loaded(workspace=target, rows=dict(counts))

    async def _dump_lines(self, workspace: Workspace, user: str | None) -> AsyncIterator[bytes]:
        """Yields the lines, and notes nothing in the log."""
        schema, digest, count = await current(self.database) or "", sha256(), 0
        async with self.database.session(workspace, snapshot=True) as session:
            async for number, line in _lines(session, schema, user):
                digest.update(line)
                count += number
                yield line
        yield _line(_EndLine(end=count, sha256=digest.hexdigest()))
