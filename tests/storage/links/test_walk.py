"""Walks over links, with a real Postgres: bounded, in a fixed order, and never to what a caller may not see."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.errors import InvalidInput, NotFound
from app.storage.links import service
from app.storage.links.relations import NEXT, SIMILAR, Link
from app.storage.links.service import Links, Walk
from app.storage.memories.memory import NewMemory
from app.storage.memories.service import Memories
from tests.storage.links.conftest import Linked


@dataclass
class Chain:
    """Notes by title, and the walks from them: pump -causes-> flood -causes-> repair -refines-> manual."""

    store: Linked
    ids: dict[str, UUID]

    async def walk(self, start: str = "pump", **options: Any) -> Walk:
        given = {"workspace": self.store.workspace.for_reading(""), "start": self.ids[start], **options}
        return await Links(database=self.store.database).walk(**given)

    async def titles(self, start: str = "pump", **options: Any) -> list[str]:
        return [node.title for node in (await self.walk(start, **options)).nodes]

    async def link(self, one: str, relation: str, other: str, weight: float = 1.0) -> None:
        link = Link(self.ids[one], self.ids[other], relation, weight)
        await Links(database=self.store.database).give(self.store.workspace, [link])


@pytest.fixture
async def chain(store: Linked) -> Chain:
    titles = ("pump", "flood", "repair", "manual")
    ids = await store.notes({title: f"what we know of the {title}" for title in titles}, link=False)
    chain = Chain(store, dict(zip(titles, ids, strict=True)))
    await chain.link("pump", "causes", "flood", 0.5)
    await chain.link("flood", "causes", "repair", 0.4)
    await chain.link("repair", "refines", "manual")
    return chain


async def test_a_walk_goes_step_by_step_and_says_by_which_links(chain: Chain) -> None:
    found = await chain.walk(depth=3)
    assert [(node.title, node.depth) for node in found.nodes] == [("flood", 1), ("repair", 2), ("manual", 3)]
    assert [round(node.weight, 3) for node in found.nodes] == [0.5, 0.2, 0.2]
    ends = [(edge.from_id, edge.relation, edge.to_id) for edge in found.edges]
    order = [chain.ids[title] for title in ("pump", "flood", "repair", "manual")]
    assert ends == list(zip(order, ("causes", "causes", "refines"), order[1:], strict=False))
    assert await chain.titles(depth=1) == ["flood"]


async def test_a_walk_follows_only_the_relations_and_the_direction_that_are_asked_for(chain: Chain) -> None:
    assert await chain.titles(relations=["causes"], depth=3) == ["flood", "repair"]
    assert await chain.titles("repair", direction="out") == ["manual"]
    assert await chain.titles("repair", direction="in") == ["flood", "pump"]
    assert await chain.titles("repair", direction="in", relations=["refines"]) == []
    assert (await chain.walk("repair", direction="in", depth=1)).edges[0].to_id == chain.ids["repair"]


async def test_a_circle_ends_and_the_start_is_no_answer(chain: Chain) -> None:
    await chain.link("manual", "contradicts", "pump")
    assert sorted(await chain.titles(depth=3)) == ["flood", "manual", "repair"]


async def test_the_stronger_comes_first_and_a_limit_keeps_it(chain: Chain) -> None:
    await chain.link("pump", "causes", "manual", 0.9)
    assert (await chain.titles(depth=1), await chain.titles(depth=3)) == (
        ["manual", "flood"],
        ["manual", "flood", "repair"],
    )
    found = await chain.walk(depth=3, limit=1)
    assert ([node.title for node in found.nodes], found.more) == (["manual"], True)
    assert not (await chain.walk(depth=3)).more


async def test_a_hub_costs_no_more_than_its_strongest_links(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FAN_OUT", 2)
    others = await chain.store.notes({f"case {number}": f"Case number {number} of the mill" for number in range(5)})
    chain.ids |= {f"case {number}": ident for number, ident in enumerate(others)}
    for number in range(5):
        await chain.link(f"case {number}", "refines", "manual", (number + 1) / 10)
    assert await chain.titles("manual", depth=1, relations=["refines"], direction="in") == ["repair", "case 4"]


async def test_found_links_are_walked_as_given_ones(store: Linked) -> None:
    one, other = await store.notes(
        {"one": "The pump of the mill failed at noon.", "other": "At noon the pump of the mill failed."}, embed=True
    )
    for start, end in ((one, other), (other, one)):
        found = await Links(database=store.database).walk(store.workspace, start=start, relations=[SIMILAR])
        assert [node.memory_id for node in found.nodes] == [end]


async def test_what_is_retired_is_not_reached_nor_passed_through(chain: Chain) -> None:
    await Memories(database=chain.store.database).delete(chain.store.workspace, ids=[chain.ids["flood"]])
    assert await chain.titles(depth=3) == []
    with pytest.raises(NotFound, match="to start from"):
        await chain.walk("flood")


async def test_a_superseded_memory_leads_to_what_replaced_it(chain: Chain) -> None:
    store = chain.store
    replaced = [chain.ids["flood"]]
    await Memories(database=store.database).supersede(store.workspace, ids=replaced, newer=chain.ids["manual"])
    assert await chain.titles("flood", relations=["supersedes"]) == ["manual"]
    assert await chain.titles("pump") == []


async def test_another_users_memories_and_workspaces_do_not_exist(chain: Chain) -> None:
    store = chain.store
    (private,) = await store.add(NewMemory(kind="note", body="Ann's own", user="ann"), link=False)
    chain.ids["ann"] = private
    await chain.link("pump", "causes", "ann", 0.9)
    assert await chain.titles(depth=1) == ["flood"]
    assert len((await chain.walk(depth=1, workspace=store.workspace.for_reading("ann"))).nodes) == 2
    for start, workspace in ((private, store.workspace), (chain.ids["pump"], (await store.elsewhere()).workspace)):
        with pytest.raises(NotFound):
            await Links(database=store.database).walk(workspace.for_reading("bob"), start=start)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"depth": 4}, "depth"),
        ({"depth": 0}, "depth"),
        ({"limit": 201}, "limit"),
        ({"relations": [NEXT]}, "not stored"),
        ({"relations": ["No Word"]}, "lower-case"),
    ],
)
async def test_a_walk_beyond_its_bounds_says_which(chain: Chain, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        await chain.walk(**options)
    with pytest.raises(NotFound):
        await Links(database=chain.store.database).walk(chain.store.workspace, start=uuid4())
