"""The verb that counts what memory did for a workspace in the last week, and what is pending for a person."""

from datetime import UTC, datetime, timedelta

from app.foundation.db.session import EXTRACT, Session
from app.foundation.values import frozen
from app.storage.memories.memory import first_id

_DAYS = 7

# Ids of activations and recalls grow with time, so that each count reads the last week's part of a primary key.
_WEEK = """
SELECT
    (SELECT count(*) FROM sessions WHERE workspace_id = %(workspace_id)s AND deleted_at IS NULL) AS sessions,
    (SELECT max(coalesce(ended_at, started_at, updated_at)) FROM sessions
    WHERE workspace_id = %(workspace_id)s AND deleted_at IS NULL) AS last_session_at,
    told.told, told.heeded, told.ignored,
    (SELECT coalesce(sum(tokens), 0) FROM activations
    WHERE workspace_id = %(workspace_id)s AND activation_id >= %(first)s)
    + (SELECT coalesce(sum(tokens), 0) FROM recalls
    WHERE workspace_id = %(workspace_id)s AND recall_id >= %(first)s) AS tokens,
    (SELECT count(*) FROM procrastinate_jobs WHERE task_name = %(extract)s AND status IN ('todo', 'doing')
    AND coalesce(scheduled_at <= now(), true) AND (args->>'workspace_id')::bigint = %(workspace_id)s) AS unread,
    (SELECT count(*) FROM cue_proposals WHERE workspace_id = %(workspace_id)s AND state = 'open') AS proposals,
    (SELECT count(*) FROM memories WHERE workspace_id = %(workspace_id)s AND retired_as = 'quarantined') AS quarantined
FROM (
    SELECT count(*) AS told, count(*) FILTER (WHERE outcome = 'heeded') AS heeded,
        count(*) FILTER (WHERE outcome = 'ignored') AS ignored
    FROM activation_cues WHERE workspace_id = %(workspace_id)s AND activation_id >= %(first)s
) AS told
"""


@frozen
class Week:
    """Counts the sessions of a workspace, what memory did in the last seven days, and what is pending for a person."""

    sessions: int
    """Sessions that are stored."""
    last_session_at: datetime | None
    """The end of the latest session, as far as it is known."""
    told: int
    """Lessons that agents were told."""
    heeded: int
    """Lessons that were heeded, as far as it is known."""
    ignored: int
    tokens: int
    """Tokens of the histories and lessons that agents got."""
    unread: int
    """Sessions of which lessons are still to be made."""
    proposals: int
    """Changes of cues that are pending for a decision."""
    quarantined: int
    """Texts that the injection scan holds back until a person releases them."""


async def week_of(session: Session) -> Week:
    """Counts what memory did for a workspace in the last seven days."""
    first = first_id(datetime.now(UTC) - timedelta(days=_DAYS))
    row = await session.one(_WEEK, {"first": first, "extract": EXTRACT})
    return Week(**row._asdict())
