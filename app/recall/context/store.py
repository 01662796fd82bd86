"""The SQL of contexts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import structlog
from msgspec import Struct

from app.foundation.db.session import Session

_ADD = """
INSERT INTO contexts (workspace_id, context_id, run_id, session, agent, model, format, budget, tokens, prefix, document,
    took_ms)
VALUES (%(workspace_id)s, %(context_id)s, %(run_id)s, %(session)s, %(agent)s, %(model)s, %(format)s, %(budget)s,
    %(tokens)s, %(prefix)s, %(document)s::json, %(took_ms)s)
"""
GET = """
SELECT document::text FROM contexts WHERE workspace_id = %(workspace_id)s AND context_id = %(context_id)s
"""
_HAS_PREFIX = """
SELECT EXISTS (
    SELECT FROM contexts WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND model = %(model)s
        AND format = %(format)s AND prefix = %(prefix)s AND prefix <> ''
)
"""
_LIST = """
SELECT context_id, run_id, session, agent, model, format, budget, tokens, took_ms, created_at FROM contexts
WHERE workspace_id = %(workspace_id)s
    AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s) AND (%(session)s::text IS NULL OR session = %(session)s)
    AND (%(agent)s::text IS NULL OR agent = %(agent)s) AND (%(before)s::uuid IS NULL OR context_id < %(before)s)
ORDER BY context_id DESC LIMIT %(limit)s
"""
_FORGET_OLD = "DELETE FROM contexts WHERE created_at < now() - make_interval(days => %(days)s)"

logger = structlog.get_logger()


class ContextSummary(Struct, frozen=True, kw_only=True, rename={"context_id": "id"}):
    """A stored context without its sections."""

    context_id: UUID
    run_id: str | None
    session: str | None
    agent: str | None
    model: str
    format: str
    budget: int
    """Tokens that it could have."""
    tokens: int
    """Tokens that it has."""
    took_ms: float
    created_at: datetime


_FORGET_USER = "DELETE FROM contexts WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s"


async def add(session: Session, values: Mapping[str, Any]) -> None:
    """Stores a context. If the disk is full, it is not stored, as recalls are not."""
    try:
        await session.execute(_ADD, values)
    except psycopg.errors.DiskFull as error:
        logger.warning("a context is not stored", context_id=str(values["context_id"]), reason=str(error))


async def get(session: Session, context_id: UUID) -> str | None:
    """Returns the document of a context; None if the workspace has none of this id."""
    found: str | None = await session.value(GET, {"context_id": context_id})
    return found


async def has_prefix(session: Session, values: Mapping[str, Any]) -> bool:
    """Returns True if an earlier context of the run had the same prefix, for the same model and in the same format."""
    return bool(await session.value(_HAS_PREFIX, values))


async def page(session: Session, asked: Mapping[str, Any]) -> list[ContextSummary]:
    """Returns the contexts that meet the conditions of _LIST that are not None, the latest first."""
    return await session.rows_as(ContextSummary, _LIST, asked)


async def forget_old_of_all(session: Session, *, days: int) -> None:
    """Removes the contexts that were made more than `days` ago."""
    await session.execute(_FORGET_OLD, {"days": days})


async def forget_user(session: Session, user: str) -> int:
    """Removes the contexts that were made for a user; returns their number."""
    return await session.execute(_FORGET_USER, {"user": user})
