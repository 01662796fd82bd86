"""The one way to the database: a session, bound to a workspace, or across all of them for `operations/` and the worker.

Every statement is a string with `%(name)s`. The session gives `%(workspace_id)s` its value, and row-level security
leaves each statement the rows of that workspace alone.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
import psycopg
from psycopg.pq.abc import PGresult
from psycopg.sql import Literal
from psycopg.types.numeric import Int8

from app import tracing
from app.foundation.db.audit import ChangeLog, Place, encoded_actor, insertions
from app.foundation.db.pool import OWNER, Scope, users_of
from app.foundation.db.wire import Command, Values, Wire, compile_statement, run_uninterrupted

Row: TypeAlias = Any
"""A named tuple of the statement's columns."""
_T = TypeVar("_T")

BEGIN, COMMIT, _ROLLBACK = Command(b"BEGIN"), Command(b"COMMIT"), Command(b"ROLLBACK")
_BEGIN_SNAPSHOT = Command(b"BEGIN ISOLATION LEVEL REPEATABLE READ")
_BIND = """
SELECT set_config('priors.workspace_id', %(workspace)s, true), set_config('priors.user', %(user)s, true),
    set_config('priors.sees', %(sees)s, true), set_config('priors.actor', %(actor)s, true)
"""
_BIND_NODES = "SELECT priors_bind(%(workspace)s, %(user)s, %(sees)s)"
"""The same where tables are distributed, in a transaction with BEGIN alone: for the nodes that it reaches, too."""
_ACT = "SELECT set_config('priors.actor', %(actor)s, true)"
"""Says on whose behalf the statements of a transaction are, for the audit log."""
_OWN = Command(f"SELECT set_config('role', '{OWNER}', true)".encode())
"""Takes the owner's role until the transaction ends."""
_WAIT_FOR_NO_DISK = Command(b"SELECT set_config('synchronous_commit', 'off', true)")
"""Lets the commit of the transaction return before its log is on the disk."""
_WAIT_FOR_NO_DISK_ON_NODES = Command(b"SET LOCAL synchronous_commit = 'off'")
"""The same where tables are distributed, in a transaction with BEGIN alone: for the nodes that it reaches, too."""

_ENQUEUE = """
SELECT priors_enqueue(%(task)s, %(priority)s::int, %(alone)s, %(lock)s, %(arguments)s::jsonb, %(after)s::float8)
"""

# Jobs that a transaction may ask a worker for; `app/interfaces/worker` says what each of them does.
STATISTICS, EMBED, INDEX = "refresh_statistics", "embed_waiting", "index_vectors"
COMPRESS, LINK, MATCH, EXTRACT = "compress", "link_waiting", "match_issues", "extract_cues"
DECIDE, EMBED_CUES = "extract_decision", "embed_cues"
_PRIORITIES = {
    STATISTICS: 40, EXTRACT: 35, DECIDE: 35, EMBED: 30, EMBED_CUES: 25, INDEX: 20, MATCH: 15, COMPRESS: 10, LINK: 0,
}  # fmt: skip
"""The task of the greatest number is fetched first. Lessons precede vectors: they are told to the next session, and a
text is found by its words meanwhile. Short tasks precede calls of a language model; links are last."""
_ALONE = frozenset({STATISTICS, EMBED, EMBED_CUES, INDEX, LINK, MATCH, EXTRACT, DECIDE})
"""Tasks for which two jobs with one lock would do the same work. The second is not fetched before the first has
ended, so that it does not occupy a worker."""


class Lookup(NamedTuple):
    """A statement that only reads, with its values."""

    statement: str
    values: Mapping[str, Any]
    binary: bool = False
    """True if its rows come in the binary format."""


class Across(Protocol):
    """Opens a session across all workspaces: `Database.across`, which only `operations/` and the worker pass on."""

    def __call__(self, *, transaction: bool = True) -> AbstractAsyncContextManager["Session"]:
        """Opens the session."""


class Session:
    """Statements on one connection. It serves one task at a time."""

    def __init__(self, wire: Wire, scope: Scope) -> None:
        self._wire = wire
        self._scope = scope
        self._bound = {} if scope.workspace_id is None else {"workspace_id": Int8(scope.workspace_id)}
        self._prefix = _prefix_of(wire, scope)
        self._suffix = _suffix_of(wire, scope)
        begin = _BEGIN_SNAPSHOT if scope.snapshot else BEGIN
        self._unsent: list[Command] = [begin, *self._prefix] if scope.transaction else []
        """The commands that are sent together with the next statement."""
        self._begun = False
        self._jobs: dict[str, dict[str, Any]] = {}
        self.changes = ChangeLog()
        """The entries of the audit log that the session leaves."""

    @property
    def workspace_id(self) -> int:
        """The id of the workspace that the session is bound to.

        Raises:
            RuntimeError: it sees all workspaces.
        """
        if self._scope.workspace_id is None:
            raise RuntimeError("this session sees all workspaces: it is bound to none")
        return self._scope.workspace_id

    @property
    def user(self) -> str:
        """The user for whom the session writes; "" for nobody."""
        return self._scope.user

    @property
    def distributed(self) -> bool:
        """Tells if the tables are distributed over the nodes of a Citus cluster."""
        return self._wire.distributed

    @property
    def users(self) -> tuple[str, ...] | None:
        """The users whose rows the session sees, "" for nobody; None for all."""
        return users_of(self._scope.user, self._scope.sees)

    async def take_ownership(self) -> None:
        """Takes the owner's role until the end of the transaction; statements must name their workspace then."""
        await self._send([_OWN] if self._wire.secured else [])

    async def execute(self, statement: str, values: Values | None = None) -> int:
        """Runs a statement; returns the number of rows that it changed or found."""
        return (await self._run(statement, values)).command_tuples or 0

    async def execute_lazily(self, statements: Sequence[str], values: Values) -> list[int]:
        """Runs statements with the same values in one round trip and one transaction, which waits for no disk.

        If the session is a transaction, all of it waits for none. A crash of the server may lose what was written in
        the last half second. Returns the number of rows that each statement changed.
        """
        wait_for_none = _WAIT_FOR_NO_DISK_ON_NODES if self.distributed else _WAIT_FOR_NO_DISK
        results = await self._send([wait_for_none, *(self._command(statement, values) for statement in statements)])
        return [result.command_tuples or 0 for result in results[-len(statements) :]]

    async def rows(self, statement: str, values: Values | None = None, *, binary: bool = False) -> list[Row]:
        """Returns all rows; with `binary` an array of ids comes as `Ids`."""
        return self._wire.named_rows(await self._run(statement, values, binary=binary))

    async def rows_as(self, kind: type[_T], statement: str, values: Values | None = None) -> list[_T]:
        """Returns all rows as values of a class, whose fields are columns."""
        return [as_kind(row, kind) for row in await self.rows(statement, values)]

    async def row_as(self, kind: type[_T], statement: str, values: Values | None = None) -> _T | None:
        """Returns the only row as a value of a class; None if there is none.

        Raises:
            LookupError: there are several.
        """
        found: _T | None = _only(await self.rows_as(kind, statement, values))
        return found

    async def together(self, asked: Sequence[Lookup]) -> list[list[Row]]:
        """Returns the rows of several statements that only read, which take one round trip."""
        commands = [self._command(item.statement, item.values, binary=item.binary) for item in asked]
        return [self._wire.named_rows(result) for result in (await self._send(commands))[-len(commands) :]]

    async def tuples(self, statement: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """Returns all rows as plain tuples, which takes half the time of named ones: for hundreds of rows."""
        result = await self._run(statement, values)
        return self._wire.rows(result)

    async def row(self, statement: str, values: Values | None = None, *, binary: bool = False) -> Row | None:
        """Returns the only row; None if there is none.

        Raises:
            LookupError: there are several.
        """
        return _only(await self.rows(statement, values, binary=binary))

    async def one(self, statement: str, values: Values | None = None) -> Row:
        """Returns the only row.

        Raises:
            LookupError: there is none, or there are several.
        """
        row = _only(await self.rows(statement, values))
        if row is None:
            raise LookupError("no row instead of one")
        return row

    async def value(self, statement: str, values: Values | None = None) -> Any:  # noqa: ANN401 - of any column
        """Returns the first column of the only row; None if there is no row."""
        return _only(await self.column(statement, values))

    async def column(self, statement: str, values: Values | None = None) -> list[Any]:
        """Returns the first column of all rows."""
        result = await self._run(statement, values)
        return self._wire.rows(result, itemgetter(0))

    async def plan(self, statement: str) -> str:
        """Returns the generic plan of a statement, by which it is run whatever its values; it is not run for this.

        For a session without a transaction.

        Raises:
            psycopg.NotSupportedError: the tables are distributed. A node plans a statement for its values.
        """
        if self.distributed:
            raise psycopg.NotSupportedError("Citus has no generic plans of distributed tables")
        text, names = compile_statement(statement)
        given = f"({', '.join('NULL' for _ in names)})" if names else ""
        await self.execute(f"PREPARE explained AS {text.decode().replace('%', '%%')}")
        try:
            return "\n".join(await self.column(f"EXPLAIN EXECUTE explained{given}"))
        finally:
            await self.execute("DEALLOCATE explained")

    async def enqueue(self, task: str, *, lock: str | None = None, after: float = 0.0, **arguments: int | str) -> None:
        """Asks a worker for `task`, `after` some seconds, unless a job with the same lock is queued already.

        The default lock is the task's name.

        Jobs are added at the end of the transaction, in the order of their locks, because another transaction that adds
        a job with the same lock waits until the commit.
        """
        lock = lock or task
        self._jobs[lock] = {
            "task": task,
            "priority": _PRIORITIES[task],
            "alone": lock if task in _ALONE else None,
            "lock": lock,
            "arguments": msgspec.json.encode(arguments | tracing.carried_context()).decode(),
            "after": after,
        }
        if not self._scope.transaction:
            await self._send(self._taken_jobs())

    async def commit(self) -> None:
        """Adds the jobs and commit, in one round trip; `Database` calls this at the end of a session.

        Raises:
            psycopg.errors.InFailedSqlTransaction: a statement had failed, and its error was swallowed.
        """
        added = [*self._taken_entries(), *self._taken_jobs()]
        if not self._begun and not added:
            return
        *_, committed = await self._wire.exchange([*self._taken_unsent(), *added, COMMIT])
        if committed.command_status == b"ROLLBACK":
            raise psycopg.errors.InFailedSqlTransaction("a statement failed before the commit: nothing was kept")

    async def roll_back(self) -> None:
        """Undoes everything; `Database` calls this where an exception leaves the session."""
        self._jobs = {}
        self.changes.take_entries()
        if self._begun:
            await self._abandon()

    async def _abandon(self) -> None:
        """Ends the connection's transaction without a commit, if one is open."""
        if not self._wire.broken and not self._wire.idle:
            await self._wire.exchange([_ROLLBACK])

    async def _run(self, statement: str, values: Values | None, *, binary: bool = False) -> PGresult:
        command = self._command(statement, values, binary=binary)
        if self._begun and not self._unsent:
            return (await self._wire.exchange((command,)))[0]
        return (await self._send([command]))[-1]

    async def _send(self, commands: Sequence[Command]) -> list[PGresult]:
        """Sends statements; a session without a transaction names its workspace again for each of them."""
        if self._scope.transaction:
            return await self._wire.exchange([*self._taken_unsent(), *commands])
        try:
            results = await self._wire.exchange([*self._prefix, *commands, *self._suffix])
        except BaseException:
            if self._suffix:
                # The COMMIT of this statement was not run. The next one begins anew.
                await run_uninterrupted(self._abandon())
            raise
        return results[: len(self._prefix) + len(commands)]

    def _taken_unsent(self) -> list[Command]:
        unsent, self._unsent, self._begun = self._unsent, [], True
        return unsent

    def _taken_entries(self) -> list[Command]:
        place = Place(self._scope.workspace_id, self._scope.user)
        return [
            self._wire.command(statement, {**values, **self._bound})
            for statement, values in insertions(self.changes.take_entries(), place)
        ]

    def _taken_jobs(self) -> list[Command]:
        jobs, self._jobs = self._jobs, {}
        return [self._wire.command(_ENQUEUE, job) for _, job in sorted(jobs.items())]

    def _command(self, statement: str, values: Values | None, *, binary: bool = False) -> Command:
        if values and self._bound and "workspace_id" in values:
            raise psycopg.ProgrammingError("the session gives %(workspace_id)s its value itself")
        given = {**values, **self._bound} if values else self._bound
        return self._wire.command(statement, given, binary=binary)


def as_kind(row: Row, kind: type[_T]) -> _T:
    """Returns a row as a value of a class: its fields are columns, nested values stand in JSON."""
    return msgspec.convert(SimpleNamespace(**row._asdict()), kind, from_attributes=True)


def _prefix_of(wire: Wire, scope: Scope) -> list[Command]:
    """Returns the commands before a statement. They take no role in a database that is not migrated yet."""
    acting = {"actor": encoded_actor()}
    # SET LOCAL goes to the nodes that a transaction reaches, which set_config() does not.
    named = Command(f"SET LOCAL priors.actor = {Literal(acting['actor']).as_string()}".encode())
    act = named if wire.distributed else wire.command(_ACT, acting)
    if scope.workspace_id is None:
        return [_OWN, act] if scope.transaction and wire.secured else []
    bound = {"workspace": str(scope.workspace_id), "user": scope.user, "sees": scope.sees}
    if not wire.distributed:
        return [wire.command(_BIND, bound | acting)]
    bind = [wire.command(_BIND_NODES, bound), act]
    return bind if scope.transaction else [BEGIN, *bind]


def _suffix_of(wire: Wire, scope: Scope) -> list[Command]:
    """Returns the commands after a statement of a session without a transaction."""
    return [COMMIT] if wire.distributed and scope.workspace_id is not None and not scope.transaction else []


def _only(rows: Sequence[Any]) -> Any:  # noqa: ANN401 - of any row
    if len(rows) > 1:
        raise LookupError(f"{len(rows)} rows instead of one")
    return rows[0] if rows else None
