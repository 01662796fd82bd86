"""The verbs that note whether cues were heeded, as somebody tells it or as the end of a run shows it."""

from collections.abc import Sequence
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.text.words import content_words
from app.recall.cues import log, render, store
from app.recall.cues.cue import Cue
from app.recall.cues.log import LoggedActivation
from app.storage.tenants.workspace import Workspace

HEEDED, IGNORED = "heeded", "ignored"
_FOLLOWED = 0.6
"""Share of a lesson's words from which an output that has them followed it."""
LOW_SCORE = 6.0
"""Score below which an output that contains what a cue rejects ignored it, even if it has the lesson's words too."""


async def note_outcome(
    database: Database,
    *,
    workspace: Workspace,
    activation_id: UUID,
    heeded: Sequence[UUID] = (),
    ignored: Sequence[UUID] = (),
) -> LoggedActivation:
    """Notes which cues of an activation were heeded and which ignored; returns the activation. It may be repeated.

    Raises:
        NotFound: the workspace has no such activation.
        InvalidInput: a cue is in both lists, or was not told in this activation.
    """
    if both := set(heeded) & set(ignored):
        raise InvalidInput("ignored", f"has {min(both)}, which `heeded` has too")
    outcomes = dict.fromkeys(heeded, HEEDED) | dict.fromkeys(ignored, IGNORED)
    async with database.session(workspace) as session:
        known = await log.get(session, activation_id)
        if known is None:
            raise NotFound(f"there is no activation {activation_id} in workspace {workspace.name}")
        for field, ids in ((HEEDED, heeded), (IGNORED, ignored)):
            if foreign := [cue_id for cue_id in ids if cue_id not in known.outcomes]:
                raise InvalidInput(field, f"has {foreign[0]}, which activation {activation_id} did not tell")
        await log.settle(session, activation_id, outcomes)
        settled = await log.get(session, activation_id)
    assert settled is not None, "it was there in this transaction"  # noqa: S101
    return settled


async def infer_outcomes(session: Session, run_id: str, *, output: str | None, score: float | None) -> None:
    """Notes what the end of a run shows of the cues that it was told, in the transaction that stores the run.

    An output that contains what a cue rejects ignored it; one that has most words of the lesson heeded it. Of others
    nothing is known.
    """
    if not output:
        return
    told = [item for item in await log.of_run(session, run_id) if item.settled_at is None]
    cues = await store.read(session, sorted({cue_id for item in told for cue_id in item.outcomes}))
    words = content_words(output)
    for item in told:
        found = {cue_id: outcome(cues[cue_id], output, words, score) for cue_id in item.outcomes if cue_id in cues}
        inferred = {cue_id: value for cue_id, value in found.items() if value is not None}
        await log.settle(session, item.activation_id, inferred)


def outcome(cue: Cue, output: str, words: frozenset[str], score: float | None) -> str | None:
    """Returns whether an output heeded or ignored a cue; None if it does not tell."""
    lesson = content_words(cue.lesson)
    followed = bool(lesson) and len(lesson & words) >= _FOLLOWED * len(lesson)
    rejected = any(render.contradiction(cue, line) is not None for line in output.splitlines())
    if rejected and (not followed or (score is not None and score < LOW_SCORE)):
        return IGNORED
    return HEEDED if followed else None
