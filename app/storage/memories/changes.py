"""The SQL that changes stored memories: judgements, ratings, tags, uses, the trash and restores."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from app.errors import Forbidden
from app.foundation.db.session import Row, Session
from app.storage.index.indexing import OWN, THESE, forget_memories, index_words
from app.storage.links import store as links
from app.storage.links.relations import SUPERSEDES
from app.storage.memories.memory import DELETED, QUARANTINED, TAGS_LIMIT, Given, Memory
from app.storage.memories.store import SUSPECT, as_json, lock, retire

_JUDGE = """
WITH judged AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(scores)s::real[], %(verdicts)s::text[])
        AS given(memory_id, final_score, verdict)
), scored AS (
    UPDATE memories m SET final_score = j.final_score FROM judged j
    WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = j.memory_id
        AND j.final_score IS NOT NULL AND m.final_score IS DISTINCT FROM j.final_score
        AND NOT (%(known_first)s AND m.final_score IS NOT NULL)
)
UPDATE observations o SET verdict = j.verdict FROM judged j
WHERE o.workspace_id = %(workspace_id)s AND o.memory_id = j.memory_id AND o.verdict <> j.verdict
    AND NOT (%(known_first)s AND o.verdict <> '')
"""

_THIS = f"{OWN} AND memory_id = %(memory_id)s"
_SET_QUALITY = f"UPDATE memories SET quality = %(quality)s WHERE {_THIS}"  # noqa: S608 - constants

_TWIN = """
SELECT EXISTS (
    SELECT FROM memories WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s
    AND kind = 'observation' AND source_id IS NULL AND valid_until IS NULL
)
"""

_EXTEND = f"""
WITH extended AS (
    UPDATE memories SET body = %(body)s, tokens = %(tokens)s, content_hash = %(content_hash)s WHERE {_THIS}
)
UPDATE observations SET facts = %(facts)s::text[] WHERE {_THIS}
"""  # noqa: S608 - constants

_REWORD = f"""
UPDATE memories m SET title = %(title)s, body = %(body)s, tokens = %(tokens)s, content_hash = %(content_hash)s,
    findings = %(findings)s::jsonb, released = false
WHERE {_THIS} AND NOT EXISTS (
    SELECT FROM memories o WHERE o.workspace_id = %(workspace_id)s AND o.valid_until IS NULL AND o.kind = m.kind
        AND o.memory_id <> m.memory_id AND o.content_hash = %(content_hash)s AND o.user_id = m.user_id
        AND o.source_id IS NOT DISTINCT FROM m.source_id AND o.ordinal IS NOT DISTINCT FROM m.ordinal
)
"""  # noqa: S608 - constants

_SUPERSEDE = f"UPDATE observations SET superseded_by = %(newer)s WHERE {_THIS}"  # noqa: S608 - constants

# A destroyed chunk, whose row stays empty, takes no tags.
_FOUND_BY_TAGS = "kind = 'observation' AND valid_until IS NULL AS found_by_tags"
TAG = f"""
UPDATE memories SET tags = tags || %(tag)s::text
WHERE {THESE} AND body <> '' AND NOT tags @> ARRAY[%(tag)s::text] AND cardinality(tags) < %(most)s
RETURNING memory_id, {_FOUND_BY_TAGS}
"""  # noqa: S608 - constants
UNTAG = f"""
UPDATE memories SET tags = array_remove(tags, %(tag)s::text)
WHERE {THESE} AND tags @> ARRAY[%(tag)s::text] RETURNING memory_id, {_FOUND_BY_TAGS}
"""  # noqa: S608 - constants

_MOST_GIVEN = 500
"""Most memories of one run that are read; a run is given a few dozen."""
# A memory that the run itself wrote is left out, because a run may send its own memory again or correct it.
_GIVEN = """
SELECT given.run_id, m.memory_id, m.title, m.body
FROM (
    SELECT r.run_id, h.memory_id, row_number() OVER (PARTITION BY r.run_id ORDER BY min(h.rank), h.memory_id) AS place
    FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
    WHERE r.workspace_id = %(workspace_id)s AND r.run_id = ANY(%(run_ids)s::text[])
    GROUP BY r.run_id, h.memory_id
) AS given JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id
WHERE given.place <= %(limit)s AND m.run_id IS DISTINCT FROM given.run_id
ORDER BY given.run_id, m.memory_id
"""

_COUNT_USES = f"UPDATE memories SET uses = uses + 1 WHERE {THESE}"  # noqa: S608 - constants

BLOCKED = """coalesce(findings @> '[{"severity": "block"}]', false)"""
_IS_SUSPECT = f"valid_until IS NULL AND {SUSPECT}"
_LOCK_TO_RESTORE = f"""
SELECT memory_id, retired_as = 'deleted' AND NOT released AND {BLOCKED} AS was_quarantined, {_IS_SUSPECT} AS is_suspect,
    retired_as
FROM memories m
WHERE {THESE} AND body <> '' AND (retired_as IN ('deleted', 'quarantined', 'superseded') OR {_IS_SUSPECT})
ORDER BY memory_id FOR UPDATE
"""  # noqa: S608 - constants
_RELEASE = f"UPDATE memories SET released = true WHERE {THESE}"  # noqa: S608 - constants

# If several memories have one identity, only the first is restored: the unique index allows one live memory of each.
_RESTORE = f"""
WITH wanted AS (
    SELECT DISTINCT ON (content_hash, kind, source_id, ordinal, user_id) memory_id FROM memories WHERE {THESE}
    ORDER BY content_hash, kind, source_id, ordinal, user_id, memory_id
)
UPDATE memories m SET valid_until = NULL, retired_as = NULL, released = m.released OR m.retired_as = 'quarantined'
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id IN (SELECT memory_id FROM wanted)
    AND NOT EXISTS (
        SELECT 1 FROM memories o
        WHERE o.workspace_id = %(workspace_id)s AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NOT DISTINCT FROM m.source_id
            AND o.ordinal IS NOT DISTINCT FROM m.ordinal AND o.user_id = m.user_id
    )
RETURNING m.memory_id
"""  # noqa: S608 - constants

_REPLACED = f"""
SELECT m.memory_id FROM memories m WHERE {THESE} AND EXISTS (
    SELECT FROM links l JOIN memories n ON n.workspace_id = l.workspace_id AND n.memory_id = l.from_id
    WHERE l.workspace_id = %(workspace_id)s AND l.to_id = m.memory_id AND l.relation = %(supersedes)s
        AND n.valid_until IS NULL
)
"""  # noqa: S608 - constants
_IS_LIVE = f"SELECT EXISTS (SELECT 1 FROM memories WHERE {_THIS} AND valid_until IS NULL)"  # noqa: S608 - constants
_FORGET_RELEASE = f"""
UPDATE memories SET released = false WHERE {THESE} AND valid_until IS NULL AND released
RETURNING memory_id, {BLOCKED} AS was_quarantined
"""  # noqa: S608 - constants

EXPIRED = "retired_as = 'deleted' AND valid_until < now() - make_interval(days => %(days)s)"
"""The condition of a memory that was deleted long enough ago to be destroyed."""
_IN_A_FILE = "kind IN ('chunk', 'message') AND source_id IS NOT NULL"
"""The condition of a text that may come again with its file or log."""
_EXPIRED_CHUNK = f"{EXPIRED} AND {_IN_A_FILE} AND body <> ''"

DESTROY = f"DELETE FROM memories WHERE {EXPIRED} AND NOT ({_IN_A_FILE})"  # noqa: S608 - constants
# Its words stand in a newer version of its file, or in what replaced it. Another one stays: its file or log may be
# absent only for now, as one of another branch or of a disk that is not mounted is. Where a file had an older text
# again and was then absent, that text has a link of what once replaced it, and is not replaced.
_DESTROY_REPLACED = """
DELETE FROM memories m
WHERE retired_as = 'gone' AND valid_until < now() - make_interval(days => %(days)s) AND source_id IS NOT NULL
    AND kind IN ('chunk', 'message') AND (
        EXISTS (
            SELECT FROM links l JOIN memories n ON n.workspace_id = l.workspace_id AND n.memory_id = l.from_id
            WHERE l.workspace_id = m.workspace_id AND l.to_id = m.memory_id AND l.relation = %(supersedes)s
                AND (m.kind = 'message' OR n.created_at >= m.valid_until)
        ) OR kind = 'chunk' AND EXISTS (
            SELECT FROM sources s WHERE s.workspace_id = m.workspace_id AND s.source_id = m.source_id
                AND s.retired_at IS NULL
        )
    )
"""
# A text may stay in its file or log for years: the empty row keeps the next reading from restoring it.
_EMPTIED = "title = '', body = '', tags = '{}', findings = NULL, run_id = NULL"
_BLANK_CHUNKS = f"""
UPDATE memories SET {_EMPTIED}, metadata = '{{}}'
WHERE {_EXPIRED_CHUNK}
RETURNING workspace_id, memory_id
"""  # noqa: S608 - constants

_KINDS = f"SELECT kind, valid_until IS NULL AS live FROM memories WHERE {THESE}"  # noqa: S608 - constants
FORGOTTEN = "m.body = '' AND m.metadata @> '{\"forgotten\": true}'"
"""The condition of the empty row of a text that was forgotten: nothing makes it live again."""
EMPTIED = f"m.retired_as = 'deleted' AND m.body = '' AND NOT ({FORGOTTEN})"
"""The condition of the empty row of a deleted text that the trash destroyed; its text may be stored anew."""
_DROP_EMPTIED = f"""
DELETE FROM memories m WHERE {OWN} AND m.source_id = %(source_id)s AND m.kind = 'message' AND {EMPTIED}
"""  # noqa: S608 - constants
_BLANK = f"""
UPDATE memories SET {_EMPTIED}, metadata = '{{"forgotten": true}}', retired_as = 'deleted',
    valid_until = least(valid_until, now()), released = false
WHERE {THESE} AND {_IN_A_FILE} RETURNING memory_id
"""  # noqa: S608 - constants
_DESTROY_THESE = f"DELETE FROM memories WHERE {THESE} AND NOT ({_IN_A_FILE})"  # noqa: S608 - constants


# A chunk that was destroyed before has lost its tags, and keeps an empty row in its source.
_DESTROY_TAGGED = f"""
WITH tagged AS (
    SELECT memory_id, source_id FROM memories WHERE {OWN} AND tags @> ARRAY[%(tag)s::text] ORDER BY memory_id FOR UPDATE
)
DELETE FROM memories WHERE {OWN} AND (
    memory_id IN (SELECT memory_id FROM tagged) OR body = '' AND source_id IN (SELECT source_id FROM tagged)
) RETURNING memory_id, source_id
"""  # noqa: S608 - constants


_DESTROY_CASE_NOTES = f"""
DELETE FROM memories WHERE {OWN} AND source_id = ANY(%(ids)s::uuid[])
    AND kind = 'note' AND jsonb_exists(metadata, 'facet')
RETURNING memory_id
"""  # noqa: S608 - constants


class MemoryJudgement(NamedTuple):
    """The evaluator's judgement of a memory."""

    memory_id: UUID
    final_score: float | None
    verdict: str


async def judge(session: Session, judgements: Sequence[MemoryJudgement], *, known_first: bool) -> None:
    """Gives observations scores and verdicts; with `known_first` only the observations without them."""
    if judgements:
        ids, scores, verdicts = map(list, zip(*judgements, strict=True))
        values = {"ids": ids, "scores": scores, "verdicts": verdicts, "known_first": known_first}
        await session.execute(_JUDGE, values)


async def set_quality(session: Session, memory_id: UUID, quality: int) -> None:
    """Stores a memory's quality."""
    await session.execute(_SET_QUALITY, {"memory_id": memory_id, "quality": quality})


async def has_twin(session: Session, content_hash: bytes) -> bool:
    """Returns whether a live observation has this text already."""
    return bool(await session.value(_TWIN, {"content_hash": content_hash}))


async def extend(session: Session, memory: Memory, *, content_hash: bytes, facts: Sequence[str]) -> None:
    """Gives an observation this body and these facts; the caller indexes it afterwards."""
    values = {"body": memory.body, "tokens": memory.tokens, "content_hash": content_hash, "facts": facts}
    await session.execute(_EXTEND, {**values, "memory_id": memory.memory_id})


async def reword(
    session: Session, memory: Memory, *, content_hash: bytes, findings: Sequence[Mapping[str, Any]]
) -> bool:
    """Gives a memory this title and body; the caller indexes it afterwards. Returns False if another one says it."""
    values = {"title": memory.title, "body": memory.body, "tokens": memory.tokens, "content_hash": content_hash}
    found = as_json(findings) if findings else None
    return bool(await session.execute(_REWORD, {**values, "findings": found, "memory_id": memory.memory_id}))


async def supersede(session: Session, older: UUID, newer: UUID) -> None:
    """Notes that a newer observation replaced an older one."""
    await session.execute(_SUPERSEDE, {"memory_id": older, "newer": newer})


async def retag(session: Session, ids: Sequence[UUID], tag: str, *, statement: str) -> list[UUID]:
    """Changes the tags of memories by TAG or UNTAG; returns the changed memories."""
    await lock(session, ids)
    changed = await session.rows(statement, {"ids": ids, "tag": tag, "most": TAGS_LIMIT})
    await index_words(session, sorted(row.memory_id for row in changed if row.found_by_tags))
    return [row.memory_id for row in changed]


async def given_to(session: Session, run_ids: Iterable[str]) -> dict[str, list[Given]]:
    """Returns, for each run, the memories that recalls gave to it and that it did not write itself."""
    values = {"run_ids": sorted(set(run_ids)), "limit": _MOST_GIVEN}
    found: dict[str, list[Given]] = defaultdict(list)
    for row in await session.rows(_GIVEN, values):
        found[row.run_id].append(Given(memory_id=row.memory_id, text=f"{row.title}\n{row.body}"))
    return found


async def count_uses(session: Session, ids: Collection[UUID]) -> None:
    """Counts one more use of each of these memories."""
    if await lock(session, ids):
        await session.execute(_COUNT_USES, {"ids": ids})


_BY_A_PERSON = (
    "a memory that is suspect or in quarantine is released by a person: in the panel, by"
    " `priors api PATCH /api/memories ids='[\"ID\"]' state=live --owner`, or with the key of PRIORS_ADMIN_KEY"
)


async def destroy_tagged(session: Session, tag: str) -> Sequence[Row]:
    """Destroys all memories with this tag, retired ones included; returns their ids and those of their sources."""
    return await session.rows(_DESTROY_TAGGED, {"tag": tag})


async def destroy_case_notes(session: Session, source_ids: Sequence[UUID]) -> list[UUID]:
    """Destroys the notes that were made of the cases of these sources; returns their ids."""
    return await session.column(_DESTROY_CASE_NOTES, {"ids": source_ids})


async def drop_emptied_turns(session: Session, source_id: UUID) -> None:
    """Removes the empty rows of a session's deleted turns, so that they do not stand for turns that come again."""
    await session.execute(_DROP_EMPTIED, {"source_id": source_id})


class TwinLive(Exception):
    """Another transaction has just made a memory of the same text live."""


async def restore(session: Session, ids: Sequence[UUID], *, release: bool) -> tuple[list[UUID], list[UUID]]:
    """Makes memories live again; returns their ids, and those of memories that went back to quarantine or were suspect.

    A memory that was deleted in quarantine goes back there; a second restore releases it. The caller indexes the live
    ones afterwards.

    Raises:
        TwinLive: another transaction has restored the same text, so this transaction cannot go on.
        Forbidden: one is in quarantine or suspect, and the caller may not `release` it.
    """
    rows = await session.rows(_LOCK_TO_RESTORE, {"ids": ids})
    if not release and any(row.is_suspect or row.retired_as == QUARANTINED for row in rows):
        raise Forbidden(_BY_A_PERSON)
    suspects = [row.memory_id for row in rows if row.is_suspect]
    await session.execute(_RELEASE, {"ids": suspects})
    retired = {row.memory_id: row.was_quarantined for row in rows if not row.is_suspect}
    caught = [memory_id for memory_id, was_quarantined in retired.items() if was_quarantined]
    await retire(session, caught, reason=QUARANTINED, over=(DELETED,))
    wanted = [memory_id for memory_id in retired if memory_id not in caught]
    try:
        return await session.column(_RESTORE, {"ids": wanted}), [*caught, *suspects]
    except psycopg.errors.UniqueViolation as error:
        raise TwinLive from error


async def replaced_memories(session: Session, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Returns those of the memories that a live memory once replaced, by its link."""
    return await session.column(_REPLACED, {"ids": ids, "supersedes": SUPERSEDES})


async def is_live(session: Session, memory_id: UUID) -> bool:
    """Returns True if the memory exists and is not retired."""
    return bool(await session.value(_IS_LIVE, {"memory_id": memory_id}))


async def quarantine_again(session: Session, ids: Sequence[UUID]) -> Sequence[UUID]:
    """Takes back the release of memories: they are quarantined or suspect again. Returns those that were released."""
    released = await session.rows(_FORGET_RELEASE, {"ids": ids})
    await retire(session, [row.memory_id for row in released if row.was_quarantined], reason=QUARANTINED)
    return [row.memory_id for row in released]


async def destroy_expired_of_all(session: Session, *, days: int) -> tuple[int, list[tuple[int, UUID]]]:
    """Destroys the memories of all workspaces that were deleted longer ago than `days`, and the chunks and turns that
    were replaced before, with their links.

    Returns the number of the deleted ones, and the chunks and turns that keep an empty row, by workspace and memory:
    their ratings, and what tools of a turn said, are still stored.
    """
    blanked = [(row.workspace_id, row.memory_id) for row in await session.rows(_BLANK_CHUNKS, {"days": days})]
    await session.execute(_DESTROY_REPLACED, {"days": days, "supersedes": SUPERSEDES})
    return len(blanked) + await session.execute(DESTROY, {"days": days}), blanked


async def count_kinds(session: Session, ids: Sequence[UUID]) -> tuple[Counter[str], int]:
    """Returns the numbers of these memories by kind, and how many of them are not live."""
    rows = await session.rows(_KINDS, {"ids": ids})
    return Counter(row.kind for row in rows), sum(not row.live for row in rows)


async def destroy(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    """Destroys memories for good; returns those of a file or log, of which an empty row keeps the text from coming
    again."""
    await lock(session, ids)
    blanked = await session.column(_BLANK, {"ids": ids})
    await session.execute(_DESTROY_THESE, {"ids": ids})
    await links.forget_memories(session, blanked)
    await forget_memories(session, blanked)
    return blanked
