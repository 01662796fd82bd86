"""One connection to Postgres: sends statements together in one round trip, and returns libpq's results.

psycopg gives the connection, its adaptation of values and its generators; only its cursor is not used. BEGIN, the
session's workspace, a statement and COMMIT take 75 µs on a local socket. A statement alone takes the same time through
a cursor; all four take 290 µs through psycopg's own pipeline.
"""

import asyncio
import re
from collections import OrderedDict, namedtuple
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias, cast
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import adapters, capabilities, generators
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper, Loader, PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult

_PARAMETER = re.compile(r"%(?:\((\w+)\)s|(%)|)")
_PREPARED_AFTER = 2
"""Times that a connection has sent a statement before it is prepared."""
PREPARED_AT_MOST = 200
"""Prepared statements of a connection; each takes some 50 kB of the server's memory, as its plan is kept."""
MAKES_ROOM = capabilities.has_send_close_prepared()
"""False with a libpq older than 17, which cannot close a statement: once there are PREPARED_AT_MOST, no more come."""
_KNOWN_AT_MOST = 1_000
"""Statements whose uses a connection counts."""

_SYNCED = ExecStatus.PIPELINE_SYNC
_FAILED = frozenset({ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED, ExecStatus.BAD_RESPONSE})

Values = Mapping[str, Any]
_Key = tuple[bytes, tuple[int, ...]]
"""A statement's text and the types of its values."""
_Send = Callable[[], None]
_Fresh = dict[_Key, tuple[bytes, int]]
"""The statements that an exchange prepares, each with its name and the position of its preparation."""

_UUID_ARRAY, _UUID_TYPE = adapters.types["uuid"].array_oid, adapters.types["uuid"].oid
HALFVEC_TYPE = "SELECT 'halfvec'::regtype::oid::bigint"
"""Reads the OID of pgvector's type in this database, which is part of the header of an array of vectors."""

Matrix: TypeAlias = npt.NDArray[np.floating[Any]]


class _CompiledStatement(NamedTuple):
    """A statement in the form that libpq expects."""

    text: bytes
    names: tuple[str, ...]
    """The names of its parameters, `$1` first."""


@lru_cache(maxsize=1_000)
def compile_statement(statement: str) -> _CompiledStatement:
    """Returns the statement with `$1` for the first `%(name)s`, and so on; `%%` stands for a percent sign.

    Raises:
        psycopg.ProgrammingError: it holds another kind of placeholder.
    """
    places: dict[str, int] = {}

    def as_place(match: re.Match[str]) -> str:
        if match[2]:
            return "%"
        if not match[1]:
            raise psycopg.ProgrammingError(f"only %(name)s and %% are allowed: {statement[match.start() :][:20]!r}")
        return f"${places.setdefault(match[1], len(places) + 1)}"

    text = _PARAMETER.sub(as_place, statement)
    return _CompiledStatement(text.encode(), tuple(places))


class Command(NamedTuple):
    """A statement with its values, in the form in which they are sent."""

    text: bytes
    values: Sequence[Any] = ()
    types: tuple[int, ...] = ()
    formats: Sequence[Format] = ()
    binary: bool = False
    """True if the result is to be sent in the binary format."""


class Wire:
    """The statements of a connection; repeated ones are prepared. It runs one exchange at a time."""

    def __init__(self, driver: psycopg.AsyncConnection) -> None:
        self.driver = driver
        self.secured = False
        """True if the connection has taken the service's role."""
        self.distributed = False
        """True if the tables are distributed over the nodes of a Citus cluster."""
        self._pgconn = driver.pgconn
        self._adapter = Transformer(driver)
        self._uses: OrderedDict[_Key, int] = OrderedDict()
        self._prepared: OrderedDict[_Key, bytes] = OrderedDict()
        self._made = 0

    @property
    def broken(self) -> bool:
        """True if the connection was lost."""
        return self._pgconn.status != ConnStatus.OK

    @property
    def idle(self) -> bool:
        """True if the connection is outside of any transaction and waits for no result."""
        quiet = self._pgconn.pipeline_status == PipelineStatus.OFF
        return quiet and self._pgconn.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        """Closes the connection at once; the pool makes another when it is asked for one."""
        self._pgconn.finish()

    def command(self, statement: str, values: Values, *, binary: bool = False) -> Command:
        """Returns the statement with these values; any collection is an array.

        Raises:
            psycopg.ProgrammingError: a value is missing, or Postgres has no type for it.
        """
        text, names = compile_statement(statement)
        try:
            given = [_as_sent(values[name]) for name in names]
        except KeyError as error:
            raise psycopg.ProgrammingError(f"there is no value for %({error.args[0]})s") from None
        sent = self._adapter.dump_sequence(given, [PyFormat.AUTO] * len(given))
        return Command(text, sent, self._adapter.types or (), self._adapter.formats or (), binary)

    async def exchange(self, commands: Sequence[Command]) -> list[PGresult]:
        """Sends these commands in one round trip; returns the result of each.

        Outside of a transaction, the commands of one call form one transaction.

        Raises:
            psycopg.Error: a command failed; the commands after it were not run.
        """
        async with self.driver.lock:
            fresh: _Fresh = {}
            sends = self._closings()
            places: list[int] = []
            for command in commands:
                sends += self._sends(command, fresh, len(sends))
                places.append(len(sends) - 1)
            results: list[PGresult] = []
            sending = self._together(sends, results) if len(sends) > 1 else self._alone(sends[0], results)
            try:
                await self.driver.wait(sending)
            finally:
                # What was prepared stays so, even if a later command failed or the exchange was cancelled.
                self._prepared.update({key: name for key, (name, place) in fresh.items() if _is_done(results, place)})
        self._check(results)
        return [results[place] for place in places]

    def rows(self, result: PGresult, make: Callable[[Sequence[Any]], Any] = tuple) -> list[Any]:
        """Returns the rows of a result, each made by `make`."""
        self._adapter.set_pgresult(result)
        rows: list[Any] = self._adapter.load_rows(0, result.ntuples, make)
        # A large result is not kept until the next one comes.
        self._adapter.set_pgresult(None)
        return rows

    def named_rows(self, result: PGresult) -> list[Any]:
        """Returns the rows of a result as named tuples."""
        return self.rows(result, _maker_of(tuple(result.fname(i) for i in range(result.nfields))))

    def _closings(self) -> list[_Send]:
        """Closes the statements beyond PREPARED_AT_MOST, least recently used first.

        A protocol message closes them, because DEALLOCATE would fail in a failed transaction and begin another one.
        """
        sends: list[_Send] = []
        while len(self._prepared) > PREPARED_AT_MOST:
            sends.append(partial(self._pgconn.send_close_prepared, self._prepared.popitem(last=False)[1]))
        return sends

    def _sends(self, command: Command, fresh: _Fresh, place: int) -> Iterator[_Send]:
        """Yields the calls of libpq for a command: its preparation, if the command is repeated, and its values."""
        text, values, types, formats, binary = command
        result_format = Format.BINARY if binary else Format.TEXT
        key = (text, types)
        name = self._prepared.get(key)
        if name is not None:
            self._prepared.move_to_end(key)
        elif key in fresh:
            name = fresh[key][0]
        elif (MAKES_ROOM or len(self._prepared) + len(fresh) < PREPARED_AT_MOST) and self._comes_again(key):
            self._made += 1
            name = f"priors_{self._made}".encode()
            fresh[key] = (name, place)
            yield partial(self._pgconn.send_prepare, name, text, types)
        if name is None:
            yield partial(self._pgconn.send_query_params, text, values, types, formats, result_format)
        else:
            yield partial(self._pgconn.send_query_prepared, name, values, formats, result_format)

    def _comes_again(self, key: _Key) -> bool:
        uses = self._uses.pop(key, 0)
        if uses == _PREPARED_AFTER:
            return True
        self._uses[key] = uses + 1
        if len(self._uses) > _KNOWN_AT_MOST:
            self._uses.popitem(last=False)
        return False

    def _alone(self, send: _Send, results: list[PGresult]) -> PQGen[None]:
        send()
        found: list[PGresult] = yield from generators.execute(self._pgconn)
        results += found[-1:]

    def _together(self, sends: Sequence[_Send], results: list[PGresult]) -> PQGen[None]:
        """Sends all commands and one Sync; collects the results until that of the Sync."""
        self._pgconn.enter_pipeline_mode()
        try:
            for send in (*sends, self._pgconn.pipeline_sync):
                send()
            yield from generators.send(self._pgconn)
            while (more := (yield from generators.fetch_many(self._pgconn))) and more[0].status != _SYNCED:
                results.append(more[0])
        finally:
            # The exchange was interrupted: the connection stays in pipeline mode, and therefore is closed.
            with suppress(psycopg.OperationalError):
                self._pgconn.exit_pipeline_mode()

    def _check(self, results: Sequence[PGresult]) -> None:
        for result in results:
            if result.status in _FAILED:
                raise error_from_result(result)
        if self.broken:
            raise psycopg.OperationalError("the connection was lost")


def _as_sent(value: Any) -> Any:  # noqa: ANN401 - of any parameter
    return value if isinstance(value, str | bytes) or not isinstance(value, Iterable) else list(value)


@lru_cache(maxsize=512)
def _maker_of(names: tuple[bytes | None, ...]) -> Callable[[Sequence[Any]], Any]:
    make_class: Any = namedtuple
    row = make_class("Row", [(name or b"").decode() for name in names], rename=True)
    return cast("Callable[[Sequence[Any]], Any]", row._make)


def _is_done(results: Sequence[PGresult], place: int) -> bool:
    return place < len(results) and results[place].status == ExecStatus.COMMAND_OK


# Arrays travel in the form in which Postgres sends them: a thousand ids, read into Python's objects and written again,
# take longer than the search for them.
@dataclass(frozen=True, slots=True)
class UuidArray:
    """A `uuid[]` in Postgres' binary format."""

    array: bytes


@dataclass(frozen=True, slots=True)
class VectorArray:
    """A `halfvec[]`. The statement names the type (`%(vectors)s::halfvec[]`), because its OID is not fixed."""

    array: bytes


class _IdsLoader(Loader):
    """Loads the ids of results in the binary format; others have theirs as UUIDs."""

    format = Format.BINARY

    def load(self, data: Buffer) -> UuidArray:
        return UuidArray(bytes(data))


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: UuidArray | VectorArray) -> Buffer:
        return obj.array


class _IdsDumper(_ArrayDumper):
    oid = _UUID_ARRAY


adapters.register_dumper(UuidArray, _IdsDumper)
adapters.register_dumper(VectorArray, _ArrayDumper)
adapters.register_loader(_UUID_ARRAY, _IdsLoader)


def ids_of(ids: Sequence[UUID]) -> UuidArray:
    """Returns these ids in the format in which they are sent."""
    entries = np.zeros(len(ids), np.dtype([("bytes", ">i4"), ("id", "V16")]))
    entries["bytes"] = 16
    entries["id"] = np.frombuffer(b"".join(memory_id.bytes for memory_id in ids), "V16")
    return UuidArray(_header(len(ids), _UUID_TYPE) + entries.tobytes())


def vectors_of(matrix: Matrix, halfvec_type: int) -> VectorArray:
    """Returns the rows of a matrix, rounded to half precision, in the format in which they are sent."""
    count, dimension = matrix.shape
    kinds = [("bytes", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f2", (dimension,))]
    entries = np.zeros(count, np.dtype(kinds))
    entries["bytes"], entries["dimension"] = 4 + 2 * dimension, dimension
    entries["numbers"] = matrix
    return VectorArray(_header(count, halfvec_type) + entries.tobytes())


def _header(count: int, element_type: int) -> bytes:
    """Returns an array's header: one dimension, no NULLs, the element's type, their number, the first is 1."""
    return np.array([1, 0, element_type, count, 1], ">i4").tobytes()


async def run_uninterrupted(work: Awaitable[object]) -> None:
    """Waits for work that a cancellation must not interrupt. If it fails, the connection is not idle afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except psycopg.Error:
            break
    if cancelled is not None:
        raise cancelled
