"""SQL of workspaces, and of what they use of their quotas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from app.errors import QuotaReached
from app.foundation.db.session import Row, Session
from app.storage.tenants.workspace import Workspace

_COUNT_HOLDS = timedelta(seconds=10)
"""Time for which a count holds: a count reads every live memory of the workspace, 0.1 s for 100,000."""
_FULL_SHARE = 0.9
"""The share of a quota from which on metrics name it as nearly used."""

COLUMNS = "memories, used_memories, counted_at"
_READ = f"SELECT {COLUMNS} FROM quotas WHERE workspace_id = %(workspace_id)s"  # noqa: S608 - constants
_LOCK = f"{_READ} FOR UPDATE"
_TAKE = f"""
UPDATE quotas SET used_memories = used_memories + %(more)s WHERE workspace_id = %(workspace_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
_BEGIN = "INSERT INTO quotas (workspace_id) VALUES (%(workspace_id)s) ON CONFLICT DO NOTHING"
_COUNT = "SELECT count(*) FROM memories WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL"
_KEEP = f"""
UPDATE quotas SET used_memories = %(used)s, counted_at = now() WHERE workspace_id = %(workspace_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
# What was written while there was no limit may not have been counted.
_SET = """
INSERT INTO quotas AS q (workspace_id, memories) VALUES (%(workspace_id)s, %(memories)s)
ON CONFLICT (workspace_id) DO UPDATE SET memories = EXCLUDED.memories, counted_at = NULL
"""
_FORGET = "UPDATE quotas SET counted_at = NULL WHERE workspace_id = %(workspace)s"
_NEARLY_USED = """
SELECT count(*) FROM quotas WHERE used_memories >= %(share)s * nullif(coalesce(memories, %(default)s), 0)
"""


@dataclass(frozen=True, slots=True)
class Use:
    """The memories that a workspace with a quota has."""

    used: int
    """Never less than what is live, and more where some were deleted since the last count."""
    most: int

    def has_room(self, more: int) -> bool:
        """Tells whether so many more fit."""
        return not self.most or self.used + more <= self.most

    def check(self, more: int) -> None:
        """Raises QuotaReached if so many more do not fit."""
        if not self.has_room(more):
            raise QuotaReached(
                f"this workspace has {self.used:,} of at most {self.most:,} memories, so {more:,} more do not fit:"
                " delete what is not needed, or raise its quota (`priors workspace quota`)",
                used=self.used,
                most=self.most,
            )


class _QuotaRow(NamedTuple):
    """A row of `quotas`."""

    memories: int | None = None
    used_memories: int = 0
    counted_at: datetime | None = None


_UNKNOWN = _QuotaRow()
"""A workspace without a row."""


class Usage(NamedTuple):
    """The use of a workspace's quota, and whether it is known well enough."""

    use: Use
    counted: bool
    """False if what is live was never counted."""
    old: bool
    """True if what is live was not counted within _COUNT_HOLDS."""

    def lacks_a_count(self, more: int) -> bool:
        """Tells whether what is live is to be counted before so many more are taken or refused."""
        return self.old and bool(self.use.most) and not (self.counted and self.use.has_room(more))


async def take(session: Session, more: int) -> None:
    """Counts so many memories, which the transaction is about to write.

    Raises:
        QuotaReached: they do not fit.
    """
    if not more:
        return
    row = await session.row(_TAKE, {"more": more})
    if row is None:
        if not session.quota:
            return
        await session.execute(_BEGIN)
        row = await session.one(_TAKE, {"more": more})
    usage = _usage(row, session.quota, more)
    if usage.lacks_a_count(more):
        usage = await count(session, more)
    usage.use.check(more)


async def read(session: Session) -> Usage | None:
    """Returns what the workspace has, as far as that is known; None if it has no quota."""
    row = await session.row(_READ)
    if row is None and not session.quota:
        return None
    return _usage(row or _UNKNOWN, session.quota)


async def count(session: Session, more: int = 0) -> Usage:
    """Counts what is live, of all users, and stores it with what the transaction is about to write."""
    await session.execute(_BEGIN)
    await session.row(_LOCK)
    live = await session.one_of_everyone(_COUNT)
    return _usage(await session.one(_KEEP, {"used": live.count + more}), session.quota, more)


async def use_of_quota(session: Session) -> Use | None:
    """Returns what the workspace has of its quota; None if it has none."""
    row = await session.row(_READ) or _UNKNOWN
    usage = _usage(row, session.quota)
    if not usage.counted and usage.use.most:
        live = await session.one_of_everyone(_COUNT)
        usage = _usage(row._replace(used_memories=live.count), session.quota)
    return usage.use if usage.use.most else None


async def forget_count(session: Session, workspace_id: int) -> None:
    """Lets what is live be counted again, after rows were written that nobody counted."""
    await session.execute(_FORGET, {"workspace": workspace_id})


async def set_quota(session: Session, memories: int | None) -> None:
    """Sets the quota of the workspace: None for the setting's, 0 for no limit."""
    await session.execute(_SET, {"memories": memories})


async def nearly_used_of_all(session: Session, default: int) -> int:
    """Returns the number of workspaces that have used _FULL_SHARE of their quota or more."""
    number: int = await session.value(_NEARLY_USED, {"share": _FULL_SHARE, "default": default})
    return number


def _usage(row: "Row | _QuotaRow", default: int, more: int = 0) -> Usage:
    """Returns what a workspace has by its row, without what the transaction is about to write."""
    # The clock of the database may differ: a count from the future is old, or a full workspace would stay full.
    is_recent = row.counted_at is not None and abs(datetime.now(UTC) - row.counted_at) <= _COUNT_HOLDS
    return Usage(
        use=Use(row.used_memories - more, default if row.memories is None else row.memories),
        counted=row.counted_at is not None,
        old=not is_recent,
    )


_COLUMNS = "workspace_id, name, language, languages, roles, uses_effects"
_FIND = f"SELECT {_COLUMNS} FROM priors_workspace(%(name)s)"  # noqa: S608 - a constant
_MAKE = f"SELECT {_COLUMNS} FROM priors_make_workspace(%(name)s, %(language)s)"  # noqa: S608 - as above
_GET = f"SELECT {_COLUMNS} FROM workspaces WHERE workspace_id = %(workspace_id)s"  # noqa: S608 - as above
_ADD_LANGUAGES = """
UPDATE workspaces SET languages = ARRAY(SELECT DISTINCT unnest(languages || %(languages)s::text[]) ORDER BY 1)
WHERE workspace_id = %(workspace_id)s AND NOT languages @> %(languages)s::text[]
"""
_NOTE_USERS = "UPDATE workspaces SET has_users = true WHERE workspace_id = %(workspace_id)s AND NOT has_users"
_SET_LANGUAGE = "UPDATE workspaces SET language = %(language)s WHERE workspace_id = %(workspace_id)s"
_SET_ROLE = "UPDATE workspaces SET roles = roles || %(role)s::jsonb WHERE workspace_id = %(workspace_id)s"
_REMOVE_ROLE = "UPDATE workspaces SET roles = roles - %(name)s::text WHERE workspace_id = %(workspace_id)s"
_SET_USES_EFFECTS = "UPDATE workspaces SET uses_effects = %(on)s WHERE workspace_id = %(workspace_id)s"
_ALL = "SELECT workspace_id, name, language FROM workspaces ORDER BY name"
_IDS_OF_ALL = "SELECT workspace_id FROM workspaces ORDER BY 1"

_FIRST_LENGTH = """
SELECT greatest(1, avg(priors_length(priors_terms(CAST(m.language AS regconfig), concat_ws(E'\\n', m.title, m.body)))))
FROM memories m JOIN workspaces w USING (workspace_id)
WHERE workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND w.mean_length = 0
HAVING count(*) > 0
"""
# NO KEY, so that writers of memories do not wait.
_STATISTICS = """
SELECT document_count, mean_length, statistics_at < now() - interval '1 day' AS old
FROM workspaces WHERE workspace_id = %(workspace_id)s FOR NO KEY UPDATE
"""
_NOTE_COUNT = """
UPDATE workspaces SET document_count = %(count)s, statistics_at = now() WHERE workspace_id = %(workspace_id)s
"""
_SET_MEAN_LENGTH = "UPDATE workspaces SET mean_length = %(mean_length)s WHERE workspace_id = %(workspace_id)s"
_SET_FIRST_LENGTH = f"{_SET_MEAN_LENGTH} AND mean_length = 0"
_USERS = """
SELECT user_id AS name, sum(memories)::bigint AS memories, sum(turns)::bigint AS turns, sum(cues)::bigint AS cues,
    sum(sessions)::bigint AS sessions, sum(recalls)::bigint AS recalls
FROM (
    SELECT user_id, count(*) AS memories, count(*) FILTER (WHERE kind = 'message') AS turns,
        count(*) FILTER (WHERE kind = 'cue') AS cues, 0 AS sessions, 0 AS recalls
    FROM memories
    WHERE workspace_id = %(workspace_id)s AND user_id > %(after)s AND user_id <> '' AND valid_until IS NULL
    GROUP BY user_id
    UNION ALL SELECT user_id, 0, 0, 0, count(*), 0 FROM sources
    WHERE workspace_id = %(workspace_id)s AND user_id > %(after)s AND user_id <> '' AND kind = 'session'
    GROUP BY user_id
    UNION ALL SELECT user_id, 0, 0, 0, 0, count(*) FROM recalls
    WHERE workspace_id = %(workspace_id)s AND user_id > %(after)s AND user_id <> '' GROUP BY user_id
) AS counted
GROUP BY user_id ORDER BY user_id LIMIT %(limit)s
"""


async def find(session: Session, name: str) -> Workspace | None:
    """Returns the workspace of that name; None if nothing was ever written to it."""
    row = await session.row(_FIND, {"name": name})
    return None if row is None else _workspace_of(row)


async def make(session: Session, name: str, language: str) -> Workspace:
    """Returns the workspace of that name, after making it if it does not exist."""
    return _workspace_of(await session.one(_MAKE, {"name": name, "language": language}))


async def get(session: Session) -> Workspace | None:
    """Returns the session's workspace; None if it does not exist."""
    row = await session.row(_GET)
    return None if row is None else _workspace_of(row)


async def add_languages(session: Session, workspace: Workspace, languages: set[str]) -> None:
    """Notes that memories of these languages exist: from then on queries are parsed by them as well."""
    if not languages <= set(workspace.languages):
        await session.execute(_ADD_LANGUAGES, {"languages": sorted(languages)})


async def set_language(session: Session, workspace: Workspace, language: str) -> None:
    """Changes the language of memories and queries that name none. Stored memories keep theirs."""
    await session.execute(_SET_LANGUAGE, {"language": language})
    await add_languages(session, workspace, {language})


async def note_users(session: Session) -> None:
    """Notes that the workspace has memories of users: from then on recalls are filtered by them."""
    await session.execute(_NOTE_USERS)


async def set_role(session: Session, name: str, role: Mapping[str, Any] | None) -> None:
    """Gives the workspace a role of its own; None takes it away."""
    if role is None:
        await session.execute(_REMOVE_ROLE, {"name": name})
    else:
        await session.execute(_SET_ROLE, {"role": msgspec.json.encode({name: role}).decode()})


async def set_uses_effects(session: Session, on: bool) -> None:  # noqa: FBT001 - the value of the setting
    """Sets whether the estimated effects of memories count in the workspace's ranking."""
    await session.execute(_SET_USES_EFFECTS, {"on": on})


async def all_of_them(session: Session) -> list[Row]:
    """Returns the id, name and language of all workspaces, by name."""
    return await session.rows(_ALL)


async def ids_of_all(session: Session) -> list[int]:
    """Returns the ids of all workspaces."""
    return await session.column(_IDS_OF_ALL)


async def note_first_length(session: Session, ids: Sequence[UUID]) -> None:
    """Stores the mean length of these memories as the workspace's, if it has none yet."""
    mean_length = await session.value(_FIRST_LENGTH, {"ids": list(ids)})
    if mean_length is not None:
        await session.execute(_SET_FIRST_LENGTH, {"mean_length": mean_length})


async def locked_statistics(session: Session) -> Row:
    """Returns the workspace's number of documents, its mean length, and whether they are old; locks its row."""
    return await session.one(_STATISTICS)


async def note_count(session: Session, count: int) -> None:
    """Notes the number of documents, counted now."""
    await session.execute(_NOTE_COUNT, {"count": count})


async def set_mean_length(session: Session, mean_length: float) -> None:
    """Sets the mean length of a document, in terms."""
    await session.execute(_SET_MEAN_LENGTH, {"mean_length": mean_length})


def _workspace_of(row: Row) -> Workspace:
    return Workspace(
        workspace_id=row.workspace_id,
        name=row.name,
        language=row.language,
        languages=tuple(row.languages),
        roles=row.roles,
        uses_effects=row.uses_effects,
    )


async def users(session: Session, *, after: str, limit: int) -> list[Row]:
    """Returns users by name, after this one, each with the numbers of what is theirs."""
    return await session.rows(_USERS, {"after": after, "limit": limit})
