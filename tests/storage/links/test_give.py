"""Links that callers give, with a real Postgres."""

from uuid import UUID, uuid4

import pytest

from app.errors import InvalidInput, NotFound
from app.storage.links.relations import DERIVED_FROM, MENTIONS, NEXT, SIMILAR, SUPERSEDES, Link
from app.storage.links.service import Links, LinksGiven
from app.storage.memories.service import Memories
from app.storage.tenants.service import Workspaces
from tests.storage.links.conftest import Linked


@pytest.fixture
async def pair(store: Linked) -> list[UUID]:
    return await store.notes({"one": "The pump failed at noon.", "two": "Spares were ordered in March."})


async def give(store: Linked, *links: Link) -> LinksGiven:
    return await Links(database=store.database).give(store.workspace, links)


async def test_a_link_is_given_once_however_often(store: Linked, pair: list[UUID]) -> None:
    one, two = pair
    link = Link(one, two, DERIVED_FROM)
    assert await give(store, link, link) == LinksGiven(created=1, updated=0, unchanged=1)
    assert await give(store, link) == LinksGiven(created=0, updated=0, unchanged=1)
    assert await give(store, link._replace(weight=0.5)) == LinksGiven(created=0, updated=1, unchanged=0)
    assert await store.links(one) == [(DERIVED_FROM, "out", two)]
    assert await store.links(two) == [(DERIVED_FROM, "in", one)]


async def test_a_link_is_taken_back(store: Linked, pair: list[UUID]) -> None:
    link = Link(pair[0], pair[1], SUPERSEDES)
    await give(store, link)
    for removed in (1, 0):
        assert await Links(database=store.database).take_back(store.workspace, link) == removed
        assert await store.links(pair[0]) == []
    with pytest.raises(InvalidInput, match="not stored"):
        await Links(database=store.database).take_back(store.workspace, link._replace(relation=NEXT))


@pytest.mark.parametrize(
    ("relation", "reason"),
    [
        (MENTIONS, "cannot be given"),
        (SIMILAR, "cannot be given"),
        (NEXT, "is not stored"),
        *((relation, "is not a relation") for relation in ("", "Refines", "is not", "x" * 41, "9th", "refines\n")),
    ],
)
async def test_what_is_found_or_no_word_is_not_given(
    store: Linked, pair: list[UUID], relation: str, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await give(store, Link(pair[0], pair[1], relation))


async def test_a_link_of_any_relation_is_kept_in_its_direction_until_it_is_taken_back(
    store: Linked, pair: list[UUID]
) -> None:
    one, two = pair
    links = [Link(one, two, "contradicts"), Link(two, one, "refines", 0.5), Link(one, two, DERIVED_FROM)]
    await give(store, *links)
    assert await give(store, *links) == LinksGiven(created=0, updated=0, unchanged=3)
    assert await store.links(one) == [(DERIVED_FROM, "out", two), ("contradicts", "out", two), ("refines", "in", two)]
    await Memories(database=store.database).delete(store.workspace, ids=[two])
    assert await store.links(one) == []
    await Memories(database=store.database).restore(store.workspace, ids=[two])
    await Links(database=store.database).take_back(store.workspace, links[0])
    assert await store.links(two) == [(DERIVED_FROM, "in", one), ("refines", "out", one)]


@pytest.mark.parametrize("weight", [0.0, -1.0, 1.5, 1e-60, float("nan")])
async def test_weights_have_a_range(store: Linked, pair: list[UUID], weight: float) -> None:
    with pytest.raises(InvalidInput, match=r"from 0\.001"):
        await give(store, Link(pair[0], pair[1], DERIVED_FROM, weight))


async def test_all_or_none(store: Linked, pair: list[UUID]) -> None:
    one, two = pair
    with pytest.raises(InvalidInput, match="the memory itself"):
        await give(store, Link(one, two, DERIVED_FROM), Link(one, one, DERIVED_FROM))
    with pytest.raises(NotFound, match="nothing is linked"):
        await give(store, Link(one, two, DERIVED_FROM), Link(one, uuid4(), DERIVED_FROM))
    with pytest.raises(InvalidInput, match="are taken at once"):
        await give(store)
    assert await store.links(one) == []


async def test_what_is_deleted_or_of_another_workspace_is_not_linked(store: Linked, pair: list[UUID]) -> None:
    one, two = pair
    elsewhere = await store.elsewhere()
    (stranger,) = await elsewhere.notes({"stranger": "Not of this house."})
    with pytest.raises(NotFound):
        await give(store, Link(one, stranger, DERIVED_FROM))
    unmade = await Workspaces(database=store.database).resolve("never-heard-of")
    with pytest.raises(NotFound):
        await Links(database=store.database).give(unmade, [Link(one, two, DERIVED_FROM)])
    await Memories(database=store.database).delete(store.workspace, ids=[two])
    with pytest.raises(NotFound):
        await give(store, Link(one, two, DERIVED_FROM))
