"""Sends reading sessions to read replicas that stand at least where the reader has written."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import inf
from typing import NamedTuple

import psycopg
import structlog
from psycopg.pq.abc import PGresult

from app.errors import PriorsError
from app.foundation.db.pool import REPLICA_URL, Pool, Scope, sqlalchemy_url
from app.foundation.db.session import Session
from app.foundation.db.wire import Command, Wire


@dataclass(slots=True)
class Seen:
    """The positions of one request, which its tasks share."""

    required: float = 0
    """The position that a replica must have replayed; `inf` for a reader that only the primary serves."""
    written: int = 0
    """The position after the request's latest write; 0 if it has written nothing."""


_SEEN: ContextVar[Seen | None] = ContextVar("SEEN", default=None)


def _positions_seen() -> Seen:
    """Returns the positions of this task; those of a task that nobody has given any hold nothing."""
    return _SEEN.get() or Seen()


@contextmanager
def seeing(positions: Seen) -> Iterator[None]:
    """Gives this task its positions meanwhile."""
    token = _SEEN.set(positions)
    try:
        yield
    finally:
        _SEEN.reset(token)


def read_from_primary() -> None:
    """Lets the primary alone serve this task from now on: a job reads what has just been written by any process."""
    _SEEN.set(Seen(inf))


_LOOK_SECONDS = 1.0
"""Time between two looks at the primary and the replicas, and the longest that one of them may take to answer."""
PRIMARY = Command(
    b"SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint, (SELECT system_identifier FROM pg_control_system())"
)
"""Reads the position up to which the primary has written, and the identity of its data."""
REPLICA = Command(b"""
SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0')::bigint END,
    (SELECT system_identifier FROM pg_control_system())
""")
"""Reads the position up to which a replica has replayed, NULL on a server that was promoted; and the identity."""
NEW = "it has not been looked at yet"

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The state of a replica, as this process sees it."""

    name: str
    """Its host and port."""
    serving: bool
    """True if readers go there."""
    reason: str
    """The reason why it is not serving."""
    behind_bytes: int
    """Bytes of the primary's log that it had not replayed at the last look."""
    reads: int
    """Readers that it has served since the start of this process."""


class _FoundReplica(NamedTuple):
    position: int | None
    system: int


class _Replica:
    """One replica."""

    def __init__(self, url: str, *, size: int, application_name: str) -> None:
        self.pool = Pool(url, size=size, application_name=application_name, setting=REPLICA_URL)
        self.looks = Pool(url, size=1, application_name=application_name, setting=REPLICA_URL)
        """A connection beside those of readers, so that a busy replica does not count as a lost one."""
        known = sqlalchemy_url(url, REPLICA_URL)
        hosts, ports = known.host or known.query.get("host", ""), known.port or known.query.get("port", "5432")
        self.name = f"{hosts}:{ports}"
        self.trouble = NEW
        self.behind = self.reads = 0

    @property
    def state(self) -> ReplicaState:
        return ReplicaState(
            name=self.name,
            serving=not self.trouble,
            reason=self.trouble,
            behind_bytes=self.behind,
            reads=self.reads,
        )

    def note(self, trouble: str) -> None:
        """Notes why it cannot serve; "" if it can."""
        if trouble != self.trouble:
            self.trouble = trouble
            if trouble:
                logger.warning("a replica does not serve", replica=self.name, reason=trouble)
            else:
                logger.info("a replica serves", replica=self.name)

    async def close(self) -> None:
        """Closes every connection."""
        await self.looks.close()
        await self.pool.close()

    async def look(self, primary: _FoundReplica, least: int) -> None:
        """Checks that it follows this primary and has replayed at least so much."""
        try:
            async with asyncio.timeout(_LOOK_SECONDS), self.looks.wire() as wire:
                found = await _read_position(wire, REPLICA)
                distributed = wire.distributed
        except (PriorsError, psycopg.Error, TimeoutError) as error:
            return self.note(_reason(error))
        self.behind = max(0, primary.position - found.position) if primary.position and found.position else 0
        if found.system != primary.system:
            return self.note("it is no replica of this primary")
        if found.position is None:
            return self.note("it takes writes itself: it was promoted, or never was a replica")
        if distributed:
            return self.note("its tables are distributed over nodes, which it cannot ask")
        return self.note("" if found.position >= least else f"it is {self.behind:,} bytes behind the primary")


class Replicas:
    """The replicas of one primary."""

    def __init__(self, url: str, primary: Pool, urls: Sequence[str], *, size: int, application_name: str) -> None:
        """`url` is that of the primary, whose sessions use the pool `primary`."""
        self._primary = primary
        self._looks = Pool(url, size=1, application_name=application_name)
        """A connection beside those of sessions: a busy primary is not to get the readers of all replicas, too."""
        self._replicas = [_Replica(url, size=size, application_name=application_name) for url in urls]
        self._turns = count()
        self._marks: dict[int | None, int] = {}
        """The position after the latest write by workspace; None stands for a write across workspaces."""
        self._least = self._latest = 0
        """The positions of the primary at the look before the last one, and at the last one; 0 if it did not answer."""
        self._watch: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        """True if there is any."""
        return bool(self._replicas)

    def states(self) -> list[ReplicaState]:
        """Returns the state of each."""
        return [replica.state for replica in self._replicas]

    def noting(self, workspace_id: int | None) -> Callable[[int], None] | None:
        """Returns the function that notes the position after a write to a workspace; None if nobody asks for it."""
        return partial(self._note, workspace_id) if self._replicas else None

    async def close(self) -> None:
        """Closes every connection."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._looks.close()
        for replica in self._replicas:
            await replica.close()

    @asynccontextmanager
    async def session(self, scope: Scope) -> AsyncIterator[Session]:
        """Opens a session without a transaction for a reader; the primary takes over where a replica fails.

        Raises:
            DatabaseUnavailable: the primary is needed and does not answer.
        """
        if self._watch is None:
            # It outlives the request that begins it, whose id and user it must not name.
            self._watch = asyncio.create_task(self._look_for_ever(), context=Context())
        async with AsyncExitStack() as stack:

            async def primary() -> Wire:
                return await stack.enter_async_context(self._primary.wire())

            replica = self._next(required := self._required_position(scope.workspace_id))
            wire = None if replica is None else await _caught_up(stack, replica, required)
            if replica is None or wire is None:
                yield Session(await primary(), scope)
            else:
                replica.reads += 1
                yield _ReplicaSession(wire, scope, replica, primary)

    def _next(self, required: float) -> _Replica | None:
        """Returns the next replica that serves, if one can have what is required."""
        serving = [replica for replica in self._replicas if not replica.trouble]
        return serving[next(self._turns) % len(serving)] if serving and required != float("inf") else None

    def _required_position(self, workspace_id: int | None) -> float:
        marks = (self._marks.get(workspace_id, 0), self._marks.get(None, 0))
        return max(self._least, _positions_seen().required, *marks)

    def _note(self, workspace_id: int | None, position: int) -> None:
        self._marks[workspace_id] = max(position, self._marks.get(workspace_id, 0))
        positions = _positions_seen()
        positions.written = max(position, positions.written)

    async def _look_for_ever(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(_LOOK_SECONDS), self._looks.wire() as wire:
                primary = await _read_position(wire, PRIMARY)
        except (PriorsError, psycopg.Error, TimeoutError) as error:
            self._latest = 0
            for replica in self._replicas:
                replica.note(f"the primary does not say what it must have: {_reason(error)}")
            return
        # At the first look after a silence, nobody knows how much was written before: a replica must have all of it.
        position = primary.position or 0
        self._least, self._latest = self._latest or position, position
        await asyncio.gather(*(replica.look(primary, self._least) for replica in self._replicas))
        # Every reader of a replica sees these writes by now.
        self._marks = {key: mark for key, mark in self._marks.items() if mark > self._least}


class _ReplicaSession(Session):
    """A session of a replica. A statement that fails there is run on the primary, and so are those after it."""

    def __init__(self, wire: Wire, scope: Scope, replica: _Replica, primary: Callable[[], Awaitable[Wire]]) -> None:
        super().__init__(wire, scope)
        self._replica: _Replica | None = replica
        self._primary = primary

    async def _send(self, commands: Sequence[Command]) -> list[PGresult]:
        try:
            return await super()._send(commands)
        except psycopg.Error as error:
            if self._replica is None:
                raise
            await self._leave(self._replica, error)
        return await super()._send(commands)

    async def _leave(self, replica: _Replica, error: psycopg.Error) -> None:
        self._replica = None
        if self._wire.broken:
            replica.note(str(error))
        else:
            # As where a query stands in the way of what is to be replayed.
            logger.warning("a replica fails a reader", replica=replica.name, reason=str(error))
        self._wire = await self._primary()


async def _caught_up(stack: AsyncExitStack, replica: _Replica, required: float) -> Wire | None:
    """Opens a connection to a replica that has replayed what is required; returns None if it has not, or is lost.

    A position holds for the connection that it was read on: a server that is started again replays the end of its log
    once more.
    """
    try:
        async with AsyncExitStack() as opened:
            wire = await opened.enter_async_context(replica.pool.wire())
            if wire.replayed < required:
                wire.replayed = (await _read_position(wire, REPLICA)).position or 0
            if wire.replayed < required:
                return None
            await stack.enter_async_context(opened.pop_all())
            return wire
    except (PriorsError, psycopg.Error) as error:
        replica.note(str(error))
        return None


def _reason(error: Exception) -> str:
    return str(error) or f"it did not answer within {_LOOK_SECONDS:g} s"


async def _read_position(wire: Wire, command: Command) -> _FoundReplica:
    (result,) = await wire.exchange([command])
    (found,) = wire.rows(result)
    return _FoundReplica(*found)
