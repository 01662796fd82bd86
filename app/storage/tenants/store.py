"""SQL of workspaces."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from app.foundation.db.session import Row, Session
from app.storage.tenants.workspace import Workspace

_COLUMNS = "workspace_id, name, language, languages, roles, action_types, uses_effects"
_FIND = f"SELECT {_COLUMNS} FROM priors_workspace(%(name)s)"  # noqa: S608 - a constant
_MAKE = f"SELECT {_COLUMNS} FROM priors_make_workspace(%(name)s, %(language)s)"  # noqa: S608 - as above
_GET = f"SELECT {_COLUMNS} FROM workspaces WHERE workspace_id = %(workspace_id)s"  # noqa: S608 - as above
_ADD_LANGUAGES = """
UPDATE workspaces SET languages = ARRAY(SELECT DISTINCT unnest(languages || %(languages)s::text[]) ORDER BY 1)
WHERE workspace_id = %(workspace_id)s AND NOT languages @> %(languages)s::text[]
"""
_NOTE_USERS = "UPDATE workspaces SET has_users = true WHERE workspace_id = %(workspace_id)s AND NOT has_users"
_SET_LANGUAGE = "UPDATE workspaces SET language = %(language)s WHERE workspace_id = %(workspace_id)s"
# A null removes the key, as RFC 7396 has it.
_SET_TUNING = f"""
UPDATE workspaces SET roles = jsonb_strip_nulls(roles || %(roles)s::jsonb),
    action_types = jsonb_strip_nulls(action_types || %(action_types)s::jsonb),
    uses_effects = coalesce(%(uses_effects)s, uses_effects)
WHERE workspace_id = %(workspace_id)s RETURNING {_COLUMNS}
"""  # noqa: S608 - constants
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
_NOTE_ESTIMATE = """
UPDATE workspaces SET effects_ledger = %(ledger)s, effects_at = now() WHERE workspace_id = %(workspace_id)s
"""
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
    session.changes.note("change", "workspace", 1)
    await add_languages(session, workspace, {language})


async def note_users(session: Session) -> None:
    """Notes that the workspace has memories of users: from then on recalls are filtered by them."""
    await session.execute(_NOTE_USERS)


async def tune(
    session: Session, *, roles: Mapping[str, Any], action_types: Mapping[str, Any], uses_effects: bool | None
) -> Workspace:
    """Changes roles and action types of the session's workspace, those that are given; None removes one."""
    changed = {
        name: msgspec.json.encode(given).decode() for name, given in (("roles", roles), ("action_types", action_types))
    }
    session.changes.note("change", "workspace", 1)
    return _workspace_of(await session.one(_SET_TUNING, {**changed, "uses_effects": uses_effects}))


async def all_of_them(session: Session) -> list[Row]:
    """Returns the id, name and language of all workspaces, by name."""
    return await session.rows(_ALL)


async def ids_of_all(session: Session) -> list[int]:
    """Returns the ids of all workspaces."""
    return await session.column(_IDS_OF_ALL)


async def note_first_length(session: Session, ids: Sequence[UUID]) -> None:
    """Stores the mean length of these memories as the workspace's, if it has none yet."""
    mean_length = await session.value(_FIRST_LENGTH, {"ids": ids})
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


async def note_estimate(session: Session, ledger: str) -> None:
    """Notes that effects were estimated now, by runs of this fingerprint; locks the workspace's row."""
    await session.execute(_NOTE_ESTIMATE, {"ledger": ledger})


def _workspace_of(row: Row) -> Workspace:
    types = {name: tuple(examples) for name, examples in row.action_types.items()}
    return Workspace(**{**row._asdict(), "languages": tuple(row.languages), "action_types": types})


async def users(session: Session, *, after: str, limit: int) -> list[Row]:
    """Returns users by name, after this one, each with the numbers of what is theirs."""
    return await session.rows(_USERS, {"after": after, "limit": limit})
