"""Which passages a later one corrects, and which rank the correction has."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.protocols import Vector
from app.foundation.text.passages import passages_of
from app.recall.retrieval.passages import pass_hits
from app.recall.retrieval.rank.passages import (
    Dated,
    PassageScore,
    is_provisional,
    likely_corrections,
    outdated_places,
    says_so,
)
from app.recall.retrieval.rank.presets import Weights
from app.recall.retrieval.recall import Hit
from app.recall.retrieval.texts import LONGEST_PAUSE, SHORTEST_PAUSE, intakes_between
from app.storage.memories import sources
from app.storage.memories.memory import Memory, SourceReference
from app.storage.tenants.workspace import Workspace

OLD, NEW, FAR = (np.array(pair, np.float32) for pair in ([1.0, 0.0], [0.8, 0.6], [0.0, 1.0]))
LIMIT, CORRECTION = "The limit of Mombasa is 14.", "Correction: the limit of Mombasa is 22."
DAY = timedelta(days=1)
MOVE = "UPDATE sources SET created_at = %(moment)s WHERE workspace_id = %(workspace_id)s AND source_id = %(id)s"


def dated(text: str, vector: Vector | None = OLD, **given: Any) -> Dated:
    fixed = {"source": uuid4(), "evidence": 1.0, "moment": None, "intake": 0, "corrects": says_so(text),
             "provisional": is_provisional(text)}  # fmt: skip
    return Dated(text=text, vector=vector, **{**fixed, **given})


def corrected(items: Sequence[Dated]) -> dict[int, int]:
    return outdated_places(items, likely_corrections(items))


def test_a_later_passage_that_says_so_corrects_what_speaks_of_the_same() -> None:
    assert corrected([dated(LIMIT), dated(CORRECTION, NEW, intake=1)]) == {0: 1}


@pytest.mark.parametrize(
    "new",
    [
        dated("The limit of Mombasa is 22.", NEW, intake=1),
        dated(CORRECTION, NEW),
        dated("Correction: lids are blue.", FAR, intake=1, evidence=0.1),
        dated(CORRECTION, NEW, intake=1, corrects=False),
    ],
)
def test_nothing_is_outdated_without_a_mark_within_an_intake_or_by_another_matter(new: Dated) -> None:
    assert corrected([dated(LIMIT, evidence=0.6), new]) == {}


def test_passages_of_one_source_do_not_correct_each_other() -> None:
    assert corrected([dated(LIMIT, source="s"), dated(CORRECTION, NEW, source="s", intake=1)]) == {}


def test_what_another_passage_of_the_source_says_does_not_count() -> None:
    said = dated("Lunch is no longer free.", FAR, source="s", intake=1, evidence=0.0)
    assert corrected([dated(LIMIT), dated("Mombasa has a new office.", NEW, source="s", intake=1), said]) == {}


def test_the_dates_of_reports_count_before_the_intakes() -> None:
    old = dated(f"{LIMIT} Reopened.", moment=200.0)
    assert corrected([old, dated(CORRECTION, NEW, moment=100.0, intake=1)]) == {1: 0}


def test_any_later_passage_on_the_matter_corrects_what_is_said_to_be_provisional() -> None:
    guess, cause = "We believe that Mombasa is short of lids.", "Mombasa is short of lids as the press stands still."
    assert corrected([dated(guess), dated(cause, NEW, intake=1)]) == {0: 1}
    assert corrected([dated(cause), dated(guess, NEW, intake=1)]) == {}


def test_within_an_intake_a_later_version_of_the_case_is_the_later_one() -> None:
    first, second, other = ("acme", (1,)), ("acme", (2,)), ("other", (3,))
    assert corrected([dated(LIMIT, series=first), dated(CORRECTION, NEW, series=second)]) == {0: 1}
    assert corrected([dated(LIMIT, series=second), dated(CORRECTION, NEW, series=first)]) == {}
    assert corrected([dated(LIMIT, series=first), dated(CORRECTION, NEW, series=other)]) == {}


@pytest.mark.parametrize(
    "new", ["The pause is lifted.", "It was not the powder.", "Slip is the cause, not by mirrors."]
)
def test_words_that_end_or_refute_say_that_something_has_changed(new: str) -> None:
    assert says_so(new)


def test_a_chain_leads_to_its_last_correction() -> None:
    second = dated("Correction: the limit of Mombasa is 30.", NEW, intake=2)
    assert corrected([dated(LIMIT), dated(CORRECTION, NEW, intake=1), second]) == {0: 2, 1: 2}


def test_of_a_circle_one_passage_is_left() -> None:
    # Dates are compared where both have one, else intakes: so three passages may each be later than the one before.
    first, second = (dated(CORRECTION, moment=moment, intake=intake) for moment, intake in ((2.0, 0), (1.0, 2)))
    found = corrected([first, second, dated(CORRECTION, intake=1)])
    assert set(found.values()).isdisjoint(found)
    assert len(found) < 3


def test_a_pair_without_vectors_is_told_by_its_words() -> None:
    other = dated("Lids are blue.", None, evidence=0.1)
    assert corrected([dated(LIMIT, None), dated(CORRECTION, None, intake=1), other]) == {0: 1}
    assert corrected([dated(LIMIT, None, evidence=0.3), dated("Correction: lids are blue.", None, intake=1)]) == {}


def hit(body: str, evidence: float, created_at: datetime) -> tuple[Hit, list[PassageScore]]:
    empty: dict[str, Any] = dict.fromkeys(Memory.__slots__)
    memory = Memory(**{**empty, "memory_id": uuid4(), "title": "", "body": body, "created_at": created_at})
    explain = {"score": 1.0, "qual_weight": 0.5, "q_adjust": 1.0, "recency": 1.0, "role": 0.0}
    score = PassageScore(passages_of(body)[0], evidence, 0.5, 0.5, own=evidence, vector=OLD)
    return Hit(memory=memory, score=1.0, explain=explain), [score]


def test_the_correction_takes_the_rank_of_what_it_corrects() -> None:
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    found = [hit(LIMIT, 0.9, begun), hit(CORRECTION, 0.6, begun + DAY)]
    hits, scores = [one for one, _ in found], [items for _, items in found]
    one_intake = pass_hits(hits, scores, Weights(), {}, [0.0, 0.0], None)
    old, new = pass_hits(hits, scores, Weights(), {(0, 0): (1, 0)}, [0.0, 0.0], None)
    assert not old.passages
    assert new.passages[0].score == one_intake[0].passages[0].score > one_intake[1].passages[0].score


async def store_sources(session: Session, moments: Sequence[datetime]) -> None:
    named = [SourceReference(kind="other", uri=moment.isoformat(), title="") for moment in moments]
    ids = await sources.ensure(session, named)
    for reference, moment in zip(named, moments, strict=True):
        await session.execute(MOVE, {"id": ids["other", reference.uri], "moment": moment})


async def test_intakes_begin_after_a_pause_without_new_sources(database: Database, workspace: Workspace) -> None:
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    seconds = [0.0, SHORTEST_PAUSE - 1, 2 * SHORTEST_PAUSE - 2, 60.0, 61.0, 3_600.0, 7_200.0]
    stored = [begun + timedelta(seconds=at) for at in seconds]
    async with database.session(workspace) as session:
        await store_sources(session, stored)
        assert await intakes_between(session, [stored[4], stored[0], stored[5]]) == [stored[3], stored[5]]
        assert await intakes_between(session, [stored[0], stored[2]]) == []
        # A file that changes keeps its source, and its new memories begin an intake all the same.
        changed = begun + timedelta(seconds=1_000)
        assert await intakes_between(session, [stored[4], changed]) == [changed]


async def test_a_folder_that_is_stored_slowly_is_one_intake(database: Database, workspace: Workspace) -> None:
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    stored = [begun + timedelta(seconds=4.0 * place) for place in range(8)]
    next_folder = stored[-1] + timedelta(seconds=LONGEST_PAUSE + 1)
    async with database.session(workspace) as session:
        await store_sources(session, [*stored, next_folder])
        assert await intakes_between(session, [stored[0], stored[7]]) == []
        # The pauses before the first moment count too.
        assert await intakes_between(session, [stored[6], stored[7]]) == []
        assert await intakes_between(session, [stored[6], next_folder]) == [next_folder]
