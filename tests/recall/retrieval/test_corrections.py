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
from app.recall.retrieval.rank.corrections import Correction, Dated, left_of, likely_corrections, outdated_places
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.rank.presets import Weights
from app.recall.retrieval.recall import Hit
from app.recall.retrieval.texts import LONGEST_PAUSE, SHORTEST_PAUSE, intakes_between
from app.storage.memories import sources
from app.storage.memories.memory import Memory, SourceReference
from app.storage.tenants.workspace import Workspace

OLD, NEW, FAR = (np.array(pair, np.float32) for pair in ([1.0, 0.0], [0.8, 0.6], [0.0, 1.0]))
LIMIT, CORRECTION = "The limit of Mombasa is 14.", "The limit of Mombasa is no longer 14, but 22."
DAY = timedelta(days=1)
MOVE = "UPDATE sources SET created_at = %(moment)s WHERE workspace_id = %(workspace_id)s AND source_id = %(id)s"


def dated(text: str, vector: Vector | None = OLD, **given: Any) -> Dated:
    fixed = {"heading": "", "source": uuid4(), "line": "limits", "evidence": 1.0, "moment": None, "intake": 0}
    return Dated(text=text, vector=vector, **{**fixed, **given})


def corrected(items: Sequence[Dated]) -> dict[int, int]:
    """Returns which passages have wrong sentences, each with the one that says so."""
    return {old: item.new for old, item in outdated_places(items, likely_corrections(items)).items() if item.spans}


def doubtful(items: Sequence[Dated]) -> dict[int, int]:
    found = outdated_places(items, likely_corrections(items))
    return {old: item.new for old, item in found.items() if not item.spans}


def test_a_later_sentence_with_another_figure_of_the_same_thing_corrects_it() -> None:
    assert corrected([dated(LIMIT), dated(CORRECTION, NEW, intake=1)]) == {0: 1}


@pytest.mark.parametrize(
    "new",
    [
        dated("The limit of Mombasa is 22.", NEW, intake=1),
        dated(CORRECTION, NEW),
        dated("The limit of Nairobi is no longer 14, but 22.", NEW, intake=1),
        dated("Lids are no longer blue.", FAR, intake=1),
        dated(CORRECTION, FAR, intake=1),
        dated(CORRECTION, NEW, intake=1, line="prices"),
        dated("Nobody works in Mombasa any longer. The limit of tea is 22.", NEW, intake=1),
    ],
)
def test_nothing_is_wrong_without_a_sign_beside_the_name_in_one_place(new: Dated) -> None:
    assert corrected([dated(LIMIT), new]) == {}


def test_a_passage_without_a_sentence_is_corrected_by_nothing() -> None:
    assert corrected([dated("", None), dated(CORRECTION, None, intake=1)]) == {}


def test_only_the_sentence_is_left_out() -> None:
    text = f"Two desks count. {LIMIT} Tea is free."
    items = [dated(text), dated(CORRECTION, NEW, intake=1)]
    found = outdated_places(items, likely_corrections(items))[0]
    assert [text[start:end].strip() for start, end in found.spans] == [LIMIT]
    assert [text[start:end].strip() for start, end in left_of(0, len(text), found.spans)] == [
        "Two desks count.",
        "Tea is free.",
    ]


def test_an_item_goes_with_the_sentence_that_begins_it() -> None:
    text = "- The leak is fixed. It took a day.\n- Tea is free."
    items = [dated(text), dated("The leak is back.", NEW, intake=1)]
    assert outdated_places(items, likely_corrections(items))[0].spans == ((0, 35),)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Use the archive node of the office.", "Archive node of the office: do not use until further notice."),
        ("The rosters of the desks are penalised.", "Rosters of the desks are usable again."),
        ("The leak at the harbour is fixed.", "The leak is back."),
    ],
)
def test_the_opposite_state_of_the_same_thing_corrects_it(old: str, new: str) -> None:
    assert corrected([dated(old), dated(new, NEW, intake=1)]) == {0: 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Search latency of the EU cluster is 120 ms.",
            "Search latency of the US cluster is no longer 90 ms.",
        ),
        (
            "The API gateway retries 3 times within 10 seconds.",
            "The API gateway now logs again, and its timeout is revised to 30 seconds.",
        ),
        ("The billing export is fine.", "Do not use the billing export for tax reports."),
    ],
)
def test_a_sentence_on_another_thing_or_part_or_purpose_stays(old: str, new: str) -> None:
    assert corrected([dated(old), dated(new, NEW, intake=1)]) == {}


def test_memories_without_a_path_stand_in_no_folder() -> None:
    assert corrected([dated(LIMIT, line=""), dated(CORRECTION, NEW, intake=1, line="")]) == {}


def test_of_corrections_in_a_circle_nothing_is_left_out() -> None:
    first = dated("The limit of Mombasa is revised to 30.", moment=200.0)
    second = dated("The limit of Mombasa is revised to 40.", moment=100.0, intake=2)
    third = dated("The limit of Mombasa is revised to 22.", intake=1)
    assert corrected([first, second]) == {1: 0}
    assert corrected([dated(LIMIT, intake=-1), first, second, third]).keys() == {0}


def test_what_speaks_of_the_same_thing_without_a_contradiction_is_doubtful() -> None:
    assert doubtful([dated("Mombasa counts tea boxes."), dated("Mombasa no longer stores tea.", NEW, intake=1)]) == {
        0: 1
    }


def test_the_heading_names_what_a_paragraph_is_about_and_not_the_items_of_a_list() -> None:
    new = dated("The stale price is rated High again.", NEW, intake=1)
    assert corrected([dated("Downgraded to Low.", heading="L-1 Stale price"), new]) == {0: 1}
    assert corrected([dated("- Downgraded to Low.", heading="L-1 Stale price"), new]) == {}


def test_an_erratum_needs_no_sign_beside_another_figure() -> None:
    new = "Read on the chain, the feed has a heartbeat of 24 hours."
    old = "The feed of the chain has a heartbeat of 20 minutes."
    assert corrected([dated(old), dated(new, NEW, intake=1, is_erratum=True)]) == {0: 1}
    assert corrected([dated(old), dated(new, NEW, intake=1)]) == {}


def test_passages_of_one_source_do_not_correct_each_other() -> None:
    assert corrected([dated(LIMIT, source="s"), dated(CORRECTION, NEW, source="s", intake=1)]) == {}


def test_the_dates_of_reports_count_before_the_intakes() -> None:
    old = dated("The limit of Mombasa is no longer 22, but 30.", moment=200.0)
    assert corrected([old, dated("The limit of Mombasa is 22.", NEW, moment=100.0, intake=1)]) == {1: 0}


def test_within_an_intake_a_later_version_of_the_case_is_the_later_one() -> None:
    first, second, other = ("acme", (1,)), ("acme", (2,)), ("other", (3,))
    assert corrected([dated(LIMIT, series=first), dated(CORRECTION, NEW, series=second)]) == {0: 1}
    assert corrected([dated(LIMIT, series=second), dated(CORRECTION, NEW, series=first)]) == {}
    assert corrected([dated(LIMIT, series=first), dated(CORRECTION, NEW, series=other)]) == {}


def test_the_correction_that_speaks_best_to_the_query_stands_for_several() -> None:
    second = dated("The limit of Mombasa is no longer 14, but 30.", NEW, intake=2, evidence=2.0)
    assert corrected([dated(LIMIT), dated(CORRECTION, NEW, intake=1), second])[0] == 2


def test_a_pair_without_vectors_is_compared_by_its_words() -> None:
    assert corrected([dated(LIMIT, None), dated(CORRECTION, None, intake=1)]) == {0: 1}


def hit(
    body: str, evidence: float, created_at: datetime, source: str = "", **changes: Any
) -> tuple[Hit, list[PassageScore]]:
    empty: dict[str, Any] = dict.fromkeys(Memory.__slots__)
    given = {
        "memory_id": uuid4(),
        "title": "",
        "body": body,
        "metadata": {},
        "created_at": created_at,
        "source_title": source,
        **changes,
    }
    explain = {"score": 1.0, "qual_weight": 0.5, "q_adjust": 1.0, "recency": 1.0, "role": 0.0}
    score = PassageScore(passages_of(body)[0], evidence, 0.5, 0.5, own=evidence, vector=OLD)
    return Hit(memory=Memory(**{**empty, **given}), score=1.0, explain=explain), [score]


def test_a_correction_ranks_before_what_it_corrects() -> None:
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    found = [hit(f"Two desks of the harbour count. {LIMIT}", 0.9, begun), hit(CORRECTION, 0.6, begun + DAY, "new.md")]
    hits, scores = [one for one, _ in found], [items for _, items in found]
    wrong = Correction(0, 1, ((31, 32 + len(LIMIT)),), 0.6)
    old, new = pass_hits(hits, scores, Weights(), {(0, 0): ((1, 0), wrong)}, [0.0, 0.0], None)
    assert new.passages[0].score > old.passages[0].score
    assert [item.passage.passage for item in old.passages] == [(0, 31, None)]
    doubt = Correction(0, 1, (), 0.6)
    old, new = pass_hits(hits, scores, Weights(), {(0, 0): ((1, 0), doubt)}, [0.0, 0.0], None)
    assert new.passages[0].score > old.passages[0].score
    assert [item.newer for item in (*old.passages, *new.passages)] == ["new.md", ""]


def passed(*given: tuple[str, dict[str, Any], str]) -> list[tuple[float, str]]:
    """Returns rank and newer source of the only passage of each memory, given by path, metadata and kind."""
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    found = [
        hit(LIMIT, 0.9, begun, path, metadata=metadata, kind=kind, source_id=uuid4()) for path, metadata, kind in given
    ]
    hits, scores = [one for one, _ in found], [items for _, items in found]
    shown = pass_hits(hits, scores, Weights(), {}, [0.0] * len(hits), None)
    return [(item.passages[0].score, item.passages[0].newer) for item in shown]


@pytest.mark.parametrize("title", ["Study › 4. Key findings", "Study › Fazit", "Study › 1.2.3 _Results_"])
def test_a_passage_below_a_heading_for_a_conclusion_ranks_before_another(title: str) -> None:
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    found = [
        hit(LIMIT, 0.9, begun, f"{n}.md", kind="chunk", title=own)
        for n, own in enumerate((title, "Study › Method", "Findings"))
    ]

    shown = pass_hits([one for one, _ in found], [items for _, items in found], Weights(), {}, [0.0] * 3, None)

    concludes, method, titled = (item.passages[0].score for item in shown)
    assert concludes > method == titled


def test_a_heading_within_the_text_counts_before_the_title() -> None:
    begun = datetime(2026, 5, 1, tzinfo=UTC)
    headings = ("## Method\n", "## Conclusion\n", "Results\n=======\n")
    bodies = [f"{heading}\nThe limit of Mombasa is 14." for heading in headings]
    found = [hit(body, 0.9, begun, f"{n}.md", kind="chunk", title="Study › Results") for n, body in enumerate(bodies)]

    shown = pass_hits([one for one, _ in found], [items for _, items in found], Weights(), {}, [0.0] * 3, None)

    method, concludes, results = (item.passages[0].score for item in shown)
    assert concludes == results > method


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("docs/v1.md", "docs/v2.md", "v1.md"),
        ("docs/v1.md", "docs/v2.md", "./v1.md"),
        ("v1.md", "docs/v2.md", "../v1.md"),
        ("docs/old/v1.md", "docs/v2.md", "old/v1.md"),
        ("docs/v1.md", "docs/v2.md", "docs/v1.md"),
    ],
)
def test_a_replaced_file_ranks_behind_and_names_the_newer_one(old: str, new: str, name: str) -> None:
    (older, newer), (later, _) = passed((old, {}, "chunk"), (new, {"supersedes": [name]}, "chunk"))
    assert older == later / 2
    assert newer == new


@pytest.mark.parametrize(
    ("old", "name"), [("docs/recv.md", "v.md"), ("x/README.md", "README.md"), ("docs/v.md", "ocs/v.md")]
)
def test_a_file_of_another_folder_or_a_like_name_is_not_replaced(old: str, name: str) -> None:
    (older, newer), (later, _) = passed((old, {}, "chunk"), ("b.md", {"supersedes": [name]}, "chunk"))
    assert older == later
    assert newer == ""


@pytest.mark.parametrize("path", ["docs/plan.md", "hypotheses/H3.4-breakout.md", "docs/trading_roadmap_v2.md"])
def test_what_was_planned_ranks_behind_what_came_out(path: str) -> None:
    (planned, _), (found, _) = passed((path, {}, "chunk"), ("results/airplanes.md", {}, "chunk"))
    assert planned == pytest.approx(0.85 * found)


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"supersedes": 3}, "chunk"),
        ({"supersedes": True}, "chunk"),
        ({"supersedes": "a.md"}, "chunk"),
        ({"supersedes": [3]}, "chunk"),
        ({"supersedes": ["a.md"]}, "note"),
        ({"state": "open"}, "chunk"),
        ({"state": ["superseded"]}, "chunk"),
        ({"state": "superseded"}, "note"),
    ],
)
def test_the_metadata_of_a_caller_is_no_state_of_a_report(metadata: dict[str, Any], kind: str) -> None:
    (older, newer), (later, _) = passed(("a.md", {}, "chunk"), ("b.md", metadata, kind))
    assert older == later
    assert newer == ""


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
