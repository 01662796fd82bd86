"""Gives sessions of one database: of a workspace, or across all; retries what was locked; holds leases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from typing import NamedTuple, TypeVar
from uuid import UUID, uuid4

import psycopg

from app.errors import DatabaseUnavailable, InvalidInput, StorageFull
from app.foundation.db.pool import EVERYONE, OWNER, SERVICE, Pool, Scope, WorkspaceScope
from app.foundation.db.session import Session
from app.foundation.db.wire import Command, Values, Wire, run_uninterrupted

_DEADLOCK_RETRIES = 2
_TRY_TO_WRITE = (
    "CREATE TEMPORARY TABLE priors_room ON COMMIT DROP AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)"
)
"""A megabyte beside the tables, gone at the end of its transaction."""
T = TypeVar("T")


class Database:
    """One pool of connections to one database. Each connection runs as the service's role, which owns nothing."""

    def __init__(self, url: str, *, pool_size: int, admin_url: str = "") -> None:
        self.url = url
        self.admin_url = admin_url or url
        """The URL of a role that may migrate. The embedded Postgres has a separate role for this."""
        self.pool = Pool(url, size=pool_size)

    @asynccontextmanager
    async def session(
        self,
        workspace: WorkspaceScope | int,
        *,
        transaction: bool = True,
        snapshot: bool = False,
        reading: bool = False,
    ) -> AsyncIterator[Session]:
        """Opens a session of a workspace whose statements are one transaction; an exception rolls it back.

        BEGIN goes out with the first statement, and the jobs with COMMIT. Without a transaction each statement is one
        of its own, in one round trip. With `snapshot`, all statements see the state at the first one. With `reading`,
        the session changes nothing and has no transaction, except on a cluster.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        scope = _scope_of(workspace, transaction=transaction and not reading)
        scope = scope._replace(snapshot=snapshot)
        # The pool turns the errors of a disk, which share an SQLSTATE with those of missing rights, before that.
        with _taken_by_others(scope):
            async with self.pool.wire() as wire:
                if reading and wire.distributed:
                    # In a transaction a node is told the workspace once, which saves 0.5 ms for each further statement.
                    scope = scope._replace(transaction=True)
                session = Session(wire, scope)
                async with _commit_at_end(session) if scope.transaction else nullcontext():
                    yield session

    async def transact(self, workspace: WorkspaceScope | int, work: Callable[[Session], Awaitable[T]]) -> T:
        """Does work in one transaction of a workspace, and again if Postgres ended that to resolve a deadlock."""

        async def attempt() -> T:
            async with self.session(workspace) as session:
                return await work(session)

        return await again_after_deadlock(attempt)

    @asynccontextmanager
    async def across(self, *, transaction: bool = True) -> AsyncIterator[Session]:
        """Opens a session that sees all workspaces, as the owner of the tables. For `operations/` and the worker.

        Without a transaction each statement is its own, as `CREATE INDEX CONCURRENTLY` wants it.

        Raises:
            DatabaseUnavailable: no connection can be had, or it was lost.
        """
        async with self.pool.wire() as wire:
            session = Session(wire, Scope(None, transaction=transaction))
            async with _commit_at_end(session) if transaction else _owning(wire):
                yield session

    async def check(self) -> None:
        """Checks that the database answers.

        Raises:
            DatabaseUnavailable: it does not answer.
        """
        async with self.pool.wire() as wire:
            await wire.exchange([Command(b"SELECT 1")])

    async def lack_of_room(self) -> str:
        """Returns why nothing can be written; "" where it can. The disk is tried only once a write has found it full.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        if self.pool.full:
            with suppress(StorageFull):
                async with self.across() as session:
                    await session.execute(_TRY_TO_WRITE)
                self.pool.full = ""
        return self.pool.full

    async def close(self) -> None:
        """Closes every connection."""
        await self.pool.close()


def _scope_of(workspace: WorkspaceScope | int, *, transaction: bool) -> Scope:
    if isinstance(workspace, int):
        return Scope(workspace, transaction)
    return Scope(workspace.workspace_id, transaction, workspace.user, workspace.sees)


@asynccontextmanager
async def _commit_at_end(session: Session) -> AsyncIterator[None]:
    try:
        yield
        await session.commit()
    except BaseException:
        await run_uninterrupted(session.roll_back())
        raise


@asynccontextmanager
async def _owning(wire: Wire) -> AsyncIterator[None]:
    """Takes the owner's role outside of a transaction; if it cannot be given back, the connection is closed."""
    if not wire.secured:
        yield
        return
    wire.secured = False
    try:
        await wire.exchange([Command(f"SET ROLE {OWNER}".encode())])
        yield
    finally:
        await run_uninterrupted(_serving_again(wire))
        if not wire.secured:
            wire.close()


async def _serving_again(wire: Wire) -> None:
    """Gives the owner's role back, and every advisory lock that a cancelled task still holds."""
    await wire.exchange([Command(b"SELECT pg_advisory_unlock_all()"), Command(f"SET ROLE {SERVICE}".encode())])
    wire.secured = True


@contextmanager
def _taken_by_others(scope: Scope) -> Iterator[None]:
    """Turns the refusal to change a row of another user, which a session does not see, into InvalidInput."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        if scope.sees == EVERYONE:
            raise
        message = "does not own what this id names: it is another user's, or nobody's; choose another id"
        raise InvalidInput("user", message) from error


async def again_after_deadlock(attempt: Callable[[], Awaitable[T]]) -> T:
    """Runs `attempt`, which is one transaction, again if Postgres ended it to resolve a deadlock.

    Writers take their locks in one order, so deadlocks come from other work, like the database's own upkeep.
    """
    for _ in range(_DEADLOCK_RETRIES):
        with suppress(psycopg.errors.DeadlockDetected):
            return await attempt()
    return await attempt()


class LockedByOthers(Exception):
    """Other transactions hold the locks that this one needs, and did not release them in time."""


async def again_while_locked(attempt: Callable[[], Awaitable[T]], *, attempts: int, pause: float) -> T:
    """Runs `attempt`, which is one transaction with a lock_timeout, again if others hold its locks.

    `pause` are the seconds between two attempts.

    Raises:
        LockedByOthers: none of the attempts got its locks.
    """
    for left in reversed(range(attempts)):
        try:
            return await attempt()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if not left:
                raise LockedByOthers from error
        await asyncio.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


_LEASE_SECONDS = 10.0
"""Time after which a killed maker loses its lease. A running maker renews its lease, so that a language model may
take longer; it holds no connection meanwhile. A lease ends before other workers get the jobs of a killed worker: a job
that finds a lease is retried only after a pause."""
_RENEWALS = 3
"""Renewals in the time of a lease, so that one may fail."""


class Lease(NamedTuple):
    """The statements of one kind of lease, which is stored with the work that it is on."""

    take: str
    """Gives `maker` the lease for so many `seconds`, or renews it; changes no row if another has it."""
    end: str
    """Ends the lease of `maker`, if it has it."""


async def take_lease(session: Session, lease: Lease, work: Values, maker: UUID, seconds: float) -> bool:
    """Gives a maker the lease on work for so many seconds, or renews it; returns False if another has it."""
    return bool(await session.execute(lease.take, {**work, "maker": maker, "seconds": seconds}))


@asynccontextmanager
async def hold_lease(
    database: Database, workspace: WorkspaceScope, lease: Lease, work: Values, seconds: float = _LEASE_SECONDS
) -> AsyncIterator[bool]:
    """Holds the lease on the work that these values name until this context ends; yields False if another has it."""
    maker = uuid4()

    async def take() -> bool:
        async with database.session(workspace, transaction=False) as session:
            return await take_lease(session, lease, work, maker, seconds)

    async def renew() -> None:
        while True:
            await asyncio.sleep(seconds / _RENEWALS)
            # A database that does not answer now may do so the next time.
            with suppress(DatabaseUnavailable):
                await take()

    if not await take():
        yield False
        return
    renewing = asyncio.create_task(renew())
    try:
        yield True
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with suppress(DatabaseUnavailable):
            async with database.session(workspace, transaction=False) as session:
                await session.execute(lease.end, {**work, "maker": maker})
