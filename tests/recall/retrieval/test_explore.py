"""The ledger of recalls: what was shown to a run and withheld from it, and the draws that decide it."""

from collections import Counter
from dataclasses import replace

import pytest

from app.insight.effect import ledger
from app.recall.context.history import Histories
from app.recall.retrieval.log import GIVEN, draw
from app.recall.retrieval.recall import History, Query
from app.storage.memories.memory import NewMemory
from app.storage.recalls.store import TRIAL, LoggedRecall
from app.storage.tenants.workspace import Workspace
from app.wiring import Services

NOTES = (
    "The auction of Mombasa publishes weekly volumes of tea for each factory as a spreadsheet.",
    "Reefer containers with tea from Mombasa to Karachi took nineteen days in the dry season.",
    "Retail packs of tea need the moisture content printed beside the date of packing.",
    "Red spider mites halved the tea harvest of two estates near Kericho in a dry year.",
)
QUERY = Query(text="tea of Mombasa: auctions, harvest, containers, packs", k=4, run_id="run-1", min_probability=0.0)
BUDGET = 1_000


@pytest.fixture
async def tea(services: Services, workspace: Workspace) -> Workspace:
    """A workspace with four notes that the query finds."""
    await services.write_gate.remember(workspace, [NewMemory(kind="note", body=body) for body in NOTES])
    return workspace


def exploring(services: Services, share: float) -> Services:
    """Returns the services with this setting."""
    return replace(services, settings=replace(services.settings, explore=share))


async def shown(services: Services, workspace: Workspace, share: float, query: Query = QUERY) -> History:
    histories: Histories = exploring(services, share).histories
    return await histories.get(workspace, query, budget_tokens=BUDGET)


async def logged(services: Services, workspace: Workspace, found: History) -> LoggedRecall:
    return await services.recalls.get(workspace, found.recall.recall_id)


def test_without_a_share_nothing_is_drawn() -> None:
    assert draw(0.0, QUERY, 1, 4) is None


def test_only_recalls_of_runs_are_drawn_and_no_trials() -> None:
    assert draw(1.0, replace(QUERY, run_id=None), 1, 4) is None
    assert draw(1.0, replace(QUERY, purpose=TRIAL), 1, 4) is None
    assert draw(1.0, QUERY, 1, 0) is None


def test_the_same_run_gets_the_same_draw_for_the_same_query() -> None:
    assert draw(0.5, QUERY, 1, 4) == draw(0.5, QUERY, 1, 4)
    others = [draw(0.5, replace(QUERY, run_id=f"run-{number}"), 1, 4) for number in range(20)]
    assert len({found.slot for found in others if found}) > 1


def test_each_slot_stays_empty_as_often_as_its_logged_probability_says() -> None:
    runs, share, slots = 20_000, 0.2, 4
    found = [draw(share, replace(QUERY, run_id=str(number)), 1, slots) for number in range(runs)]
    counts = Counter(item.slot for item in found if item)
    assert {item.propensity for item in found if item} == {1 - share / slots}
    for slot in range(slots):
        assert abs(counts[slot] / runs - share / slots) < 0.01
    gives = Counter((item.slot, item.gives) for item in found if item)
    for slot in range(slots):
        assert abs(gives[slot, True] / counts[slot] - GIVEN) < 0.1
    assert not gives[None, True]


def test_the_slot_of_an_only_memory_stays_empty() -> None:
    found = [draw(1.0, replace(QUERY, run_id=str(number)), 1, 1) for number in range(50)]
    assert {(item.slot, item.gives) for item in found if item} == {(0, False)}


async def test_a_history_without_exploration_has_no_probability(services: Services, tea: Workspace) -> None:
    recall = await logged(services, tea, await shown(services, tea, 0.0))
    assert len(recall.hits) == len(NOTES)
    assert {hit.propensity for hit in recall.hits} == {None}


async def test_a_drawn_slot_of_a_history_stays_empty_and_is_logged(services: Services, tea: Workspace) -> None:
    whole = await shown(services, tea, 0.0, replace(QUERY, run_id=None))
    found = await shown(services, tea, 1.0)
    recall = await logged(services, tea, found)
    (withheld,) = [item for item in recall.withheld if item.reason == "draw"]
    assert withheld.propensity == pytest.approx(1 - 1 / len(NOTES))
    assert {hit.propensity for hit in recall.hits} == {withheld.propensity}
    ids = [hit.memory.memory_id for hit in whole.recall.hits]
    assert ids[withheld.rank - 1] == withheld.memory_id
    assert [hit.memory_id for hit in recall.hits] == [one for one in ids if one != withheld.memory_id]
    assert [note for note in NOTES if note not in found.markdown] == [
        hit.memory.body for hit in whole.recall.hits if hit.memory.memory_id == withheld.memory_id
    ]


async def by_giving(services: Services, tea: Workspace, query: Query) -> dict[bool, LoggedRecall]:
    """Returns recalls of runs with the same slots that gave the drawn one away, and that left it empty."""
    found = {}
    for number in range(40):
        asked = replace(query, run_id=f"run-{number}")
        recall = await exploring(services, 1.0).retrieval.search(tea, asked)
        logged = await services.recalls.get(tea, recall.recall_id)
        (withheld,) = [item for item in logged.withheld if item.reason == "draw"]
        found[withheld.given_to is not None] = logged
        assert [hit.memory.memory_id for hit in recall.hits] == [hit.memory_id for hit in logged.hits]
    return found


async def test_a_drawn_slot_is_empty_or_given_to_the_next_candidate(services: Services, tea: Workspace) -> None:
    query = replace(QUERY, k=3)
    whole = await services.retrieval.search(tea, replace(QUERY, run_id=None))
    ids = [hit.memory.memory_id for hit in whole.hits]
    found = await by_giving(services, tea, query)
    given, left = found[True], found[False]
    (withheld,) = [item for item in given.withheld if item.reason == "draw"]
    assert withheld.given_to == ids[3] == given.hits[withheld.rank - 1].memory_id
    assert withheld.memory_id == ids[withheld.rank - 1]
    assert given.hits[withheld.rank - 1].propensity == GIVEN
    assert sorted(hit.propensity or 0 for hit in given.hits) == pytest.approx([GIVEN, 2 / 3, 2 / 3])
    (following,) = [item for item in left.withheld if item.reason == "next"]
    assert (following.memory_id, following.propensity, len(left.hits)) == (ids[3], GIVEN, 2)
    async with services.database.session(tea) as session:
        slots = await ledger.slots(session, [given.run_id or "", left.run_id or ""])
    assert {(item.run_id, item.memory_id, item.shown) for item in slots if item.is_next} == {
        (given.run_id, ids[3], True), (left.run_id, ids[3], False),
    }  # fmt: skip


async def test_the_next_candidate_of_a_history_is_shown_beside_all_others_or_not_at_all(
    services: Services, tea: Workspace
) -> None:
    given = left = 0
    for number in range(40):
        query = replace(QUERY, run_id=f"run-{number}")
        found = await exploring(services, 1.0).histories.get(tea, query, budget_tokens=110)
        assert found.tokens <= 110
        recall = await logged(services, tea, found)
        (withheld,) = [item for item in recall.withheld if item.reason == "draw"]
        following = [item for item in recall.withheld if item.reason == "next"]
        if withheld.given_to is None:
            left += len(following)
            continue
        given += 1
        (its,) = [hit for hit in recall.hits if hit.memory_id == withheld.given_to]
        assert (its.propensity, following) == (GIVEN, [])
    assert given
    assert left


async def test_a_history_is_the_same_again_for_the_same_run_and_query(services: Services, tea: Workspace) -> None:
    first, second = [await shown(services, tea, 1.0) for _ in range(2)]
    assert first.markdown == second.markdown
    others = [(await shown(services, tea, 1.0, replace(QUERY, run_id=f"run-{n}"))).markdown for n in range(2, 8)]
    assert set(others) - {first.markdown}


async def test_a_share_of_0_answers_byte_for_byte_as_a_recall_without_a_run(services: Services, tea: Workspace) -> None:
    alone = await shown(services, tea, 1.0, replace(QUERY, run_id=None))
    assert (await shown(services, tea, 0.0)).markdown == alone.markdown


async def test_a_history_that_a_draw_leaves_empty_asks_for_no_larger_budget(
    services: Services, workspace: Workspace
) -> None:
    await services.write_gate.remember(workspace, [NewMemory(kind="note", body=NOTES[0])])
    found = await shown(services, workspace, 1.0)
    recall = await logged(services, workspace, found)
    assert (found.markdown, found.needed_tokens, recall.hits) == ("", None, ())
    assert [(item.rank, item.reason, item.propensity) for item in recall.withheld] == [(1, "draw", 0.0)]


async def test_a_search_of_a_run_is_drawn_too(services: Services, tea: Workspace) -> None:
    found = await exploring(services, 1.0).retrieval.search(tea, QUERY)
    recall = await services.recalls.get(tea, found.recall_id)
    assert len(found.hits) == len(recall.hits) == len(NOTES) - 1
    assert [item.reason for item in recall.withheld] == ["draw"]


async def test_what_the_budget_left_no_room_for_is_logged_without_a_probability(
    services: Services, tea: Workspace
) -> None:
    found = await services.histories.get(tea, QUERY, budget_tokens=110)
    recall = await logged(services, tea, found)
    assert recall.hits
    assert {(item.reason, item.propensity) for item in recall.withheld} == {("room", None)}
    assert len(recall.hits) + len(recall.withheld) == len(NOTES)
    assert {item.title for item in recall.withheld}


async def test_what_is_not_likely_enough_is_logged_for_a_run_only(services: Services, tea: Workspace) -> None:
    query = replace(QUERY, min_probability=0.999)
    recall = await logged(services, tea, await shown(services, tea, 0.0, query))
    assert {item.reason for item in recall.withheld} == {"threshold"}
    alone = await shown(services, tea, 0.0, replace(query, run_id=None))
    assert (await logged(services, tea, alone)).withheld == ()


async def test_a_stable_history_is_never_drawn(services: Services, tea: Workspace) -> None:
    """What it showed once it shows again, so that a later draw would decide nothing."""
    found = await exploring(services, 1.0).histories.get(tea, QUERY, budget_tokens=BUDGET, stable=True)
    recall = await logged(services, tea, found)
    assert len(recall.hits) == len(NOTES)
    assert {hit.propensity for hit in recall.hits} == {None}
