"""Connections that are lost on the way, with a real Postgres that ends them."""

from collections.abc import Awaitable, Callable

import pytest
from psycopg import AsyncConnection as Driver
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database, copy
from app.db.queue import enqueue
from app.errors import DatabaseUnavailable

BACKEND = "SELECT pg_backend_pid()"
END = text("SELECT pg_terminate_backend(:backend, 5000)")


async def end(database: Database, connection: AsyncConnection | Driver) -> None:
    """Have the server end a connection, and wait until it has."""
    if isinstance(connection, AsyncConnection):
        backend = (await connection.execute(text(BACKEND))).scalar_one()
    else:
        (backend,) = await (await connection.execute(BACKEND)).fetchone() or (0,)
    async with database.statements() as other:
        assert (await other.execute(END, {"backend": backend})).scalar_one()


async def ask(connection: AsyncConnection) -> None:
    await connection.execute(text("SELECT 1"))


async def add_a_job(connection: AsyncConnection) -> None:
    await enqueue(connection, "embed_waiting", lock="lost")


async def send_rows(connection: AsyncConnection) -> None:
    await copy(connection, "COPY workspaces (name) FROM STDIN", b"lost\n")


@pytest.mark.parametrize("use", [ask, add_a_job, send_rows])
async def test_a_transaction_whose_connection_is_lost_says_so(
    database: Database, use: Callable[[AsyncConnection], Awaitable[None]]
) -> None:
    async def lose() -> None:
        async with database.transaction() as connection:
            await end(database, connection)
            await use(connection)

    with pytest.raises(DatabaseUnavailable, match="the database does not answer"):
        await lose()
    async with database.transaction() as connection:
        assert (await connection.execute(text("SELECT 1"))).scalar_one() == 1
        assert (await connection.execute(text("SELECT count(*) FROM workspaces WHERE name = 'lost'"))).scalar_one() == 0


async def test_a_statement_whose_connection_is_lost_says_so(database: Database) -> None:
    async def lose() -> None:
        async with database.statements() as connection:
            await end(database, connection)
            await ask(connection)

    with pytest.raises(DatabaseUnavailable, match="the database does not answer"):
        await lose()


async def test_the_hot_path_says_so_too(database: Database) -> None:
    async def lose() -> None:
        async with database.direct() as connection:
            await end(database, connection)
            await connection.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailable, match="the database does not answer"):
        await lose()
    async with database.direct() as connection:
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)


async def test_what_fails_for_another_reason_keeps_it_and_adds_no_job(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as connection:
            await add_a_job(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with database.transaction() as connection:
        found = await connection.execute(text("SELECT count(*) FROM procrastinate_jobs WHERE lock = 'lost'"))
        assert found.scalar_one() == 0
