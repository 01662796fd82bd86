"""The verb that forgets one subject: a phrase, in everything that a workspace stores."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import Struct

from app.errors import InvalidInput, check
from app.foundation.db import phrases
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.distribution import IN_ORDER
from app.foundation.db.session import Session
from app.foundation.text.data import unstorable
from app.foundation.text.words import PAIR
from app.foundation.values import frozen
from app.intake.runs.feedback import store as feedback
from app.intake.sessions import store as sessions
from app.operations.maintenance import forget_traces
from app.storage.index.indexing import refresh_statistics
from app.storage.memories import changes, sources
from app.storage.tenants.workspace import UNMADE, Workspace

_LEAST_LETTERS = 3
"""Fewest letters of a phrase."""
_LONGEST = 200
"""Most characters of a phrase."""
_UNCONFIRMED = 100
"""Most places that are forgotten without a confirmation of their number."""
_OWN_WORDS = """
true false null none user assistant tool system caller new changed moved unchanged retired failed left_out active
proposed superseded deleted quarantined open resolved reopened hybrid lexical vector chunk message observation note
cue block suspect flag critical high medium low text markdown xml json
"""
_TOO_COMMON = frozenset(_OWN_WORDS.split())
"""Words of the service's own data, which stand as values in its documents."""
_BACKUPS = "backups, dumps and archived logs of the database that were made before: they hold it until they are removed"
_LOGS = "what the service has printed, and answers that it gave"
_ROWS = (
    "a hash of the text of each removed chunk and turn, so that the next reading of its file does not store it again"
)
_FILES = (
    "the files and logs that it was read from: a changed text of theirs that holds it is stored again, and so is all of"
    " a file that has it in its path"
)
_NAMES = "names of users and of workspaces: they say whose something is; `priors workspace erase` removes them"


class Forgotten(Struct, frozen=True, kw_only=True):
    """The places of a phrase, and what stays of it."""

    done: bool
    """False for a list of what would be removed."""
    total: int
    """Number of memories and rows with the phrase. Pass it as `confirm` where there are many."""
    memories: Mapping[str, int]
    """Numbers of memories by kind, each with all of its text; they are destroyed for good."""
    in_trash: int
    """Number of those that were not live: deleted, replaced or in quarantine."""
    rows: Mapping[str, int]
    """Numbers of rows of other tables, such as runs, recalls and contexts; the phrase alone is taken out of them."""
    files: Sequence[str]
    """The files and sessions that the memories came from."""
    stays: Sequence[str]
    """The traces that are not removed, each with its reason."""


def checked_phrase(phrase: str) -> str:
    """Returns a phrase without the blanks around it.

    Raises:
        InvalidInput: it is too short, too long or too common, or has no letter.
    """
    check(unstorable(phrase, "phrase"))
    clean = " ".join(phrase.split())
    # A name of two characters is whole in the scripts that are written without blanks.
    if sum(sign.isalpha() for sign in clean) < _LEAST_LETTERS and not PAIR.search(clean):
        raise InvalidInput("phrase", f"is too short: it needs {_LEAST_LETTERS} letters, such as a name")
    if len(clean) > _LONGEST:
        raise InvalidInput("phrase", f"is too long: at most {_LONGEST} characters")
    if clean.casefold() in _TOO_COMMON:
        raise InvalidInput("phrase", "is a word of the service's own data: name more of the subject")
    return clean


async def _find(session: Session, pattern: str, *, done: bool) -> tuple[list[UUID], Forgotten]:
    ids = await phrases.memories_with(session, pattern)
    rows = await phrases.count_rows(session, pattern)
    kinds, hidden = await changes.count_kinds(session, ids)
    return ids, Forgotten(
        done=done,
        total=len(ids) + sum(rows.values()),
        memories=dict(kinds),
        in_trash=hidden,
        rows=rows,
        files=await sources.titles_of(session, ids),
        stays=(_BACKUPS, _LOGS, _NAMES, *((_ROWS, _FILES) if kinds["chunk"] or kinds["message"] else ())),
    )


def _check_number(total: int, confirm: int | None) -> None:
    if total > _UNCONFIRMED and confirm != total:
        reason = f"must be {total}: the phrase stands in so many places; list them first, and look at them"
        raise InvalidInput("confirm", reason)


async def _remove(session: Session, pattern: str, ids: Sequence[UUID], total: int) -> None:
    # The log and the jobs are the owner's to change, and on a cluster a transaction changes rows under one role alone.
    await session.take_ownership()
    await session.execute(IN_ORDER)
    await _destroy(session, session.workspace_id, ids)
    await phrases.redact(session, pattern)
    session.changes.note_erasure("phrase", f"{total} places", session.workspace_id)


async def _destroy(session: Session, workspace_id: int, ids: Sequence[UUID]) -> None:
    blanked = [(workspace_id, memory_id) for memory_id in await changes.destroy(session, ids)]
    await feedback.forget_of_all(session, blanked)
    await sessions.blank_of_all(session, blanked)
    await forget_traces(session, ids)
    await refresh_statistics(session, stale=-1)


@frozen
class Phrases:
    """Forgets subjects."""

    database: Database

    async def forget(
        self, workspace: Workspace, phrase: str, *, yes: bool = False, confirm: int | None = None
    ) -> Forgotten:
        """Lists where a phrase stands in a workspace, of all its users; with `yes` removes it from there for good.

        It is found as whole words, in any case. A memory that holds it is destroyed whole; from all else the phrase
        alone is taken out. All of it is one transaction: where it fails, nothing is removed.

        Raises:
            InvalidInput: the phrase is too short or too common, or stands in many places and `confirm` is not their
                number.
        """
        clean = checked_phrase(phrase)
        if workspace.workspace_id == UNMADE:
            return Forgotten(done=yes, total=0, memories={}, in_trash=0, rows={}, files=(), stays=())
        everyone, pattern = workspace.of_everyone(), phrases.pattern_of(clean)

        async def attempt() -> Forgotten:
            async with self.database.session(everyone) as session:
                ids, found = await _find(session, pattern, done=yes)
                if yes and found.total:
                    _check_number(found.total, confirm)
                    await _remove(session, pattern, ids, found.total)
            return found

        return await again_after_deadlock(attempt)
