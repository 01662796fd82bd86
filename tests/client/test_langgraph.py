"""LangGraph's store over Priors: every operation answers as LangGraph's own `InMemoryStore` does."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from priors_client import Client, InvalidRequest, Refused
from priors_client.langgraph import PriorsStore

from app.wiring import Services
from tests.interfaces.http.calls import embed

EXAMPLES = 10
Shown = list[Any] | tuple[Any, ...] | None

LABELS = ["a", "b", "a!", "A", "ü", "ключ", "x y", "%", "_", "a\n", "(", "\\d", "[^b]"]
KEYS = ["k", "K", "k 2", "ключ", "", "k/1", "%2F"]
NAMES = st.tuples(st.permutations(LABELS), st.permutations(KEYS))
"""The labels and keys that the places in operations stand for: few of them in one example, so that they meet."""
NAMESPACES = st.sampled_from([(0,), (0,), (1,), (0, 1), (1, 0), (0, 2), (2, 1, 0), (2, 2)])
PREFIXES = st.lists(st.integers(0, 2), max_size=2).map(tuple)
PLACES = st.integers(0, 2)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
NUMBERS = st.sampled_from([1, 2, 2.0, 2.5, -3, 0.1, 2**70])
SPELLED = st.sampled_from(["12", " 3.5 ", "-1e1", ".5", 7, 12, True, False, 4.0])
LEAVES = st.sampled_from([None, True, False, 2, 2.0, "", "2", "ü'%s{}"])
TREES = st.sampled_from(
    [None, 2, "2", [], {}, {"x": 2}, {"x": None}, {"x": 2, "y": {"x": "2"}}, [2], [2, None], ["2", {"x": 2}], [[2], {}]]
)
VALUES = st.fixed_dictionaries(
    {"n": NUMBERS, "d": SPELLED}, optional={"s": LEAVES, "o": TREES, "text": TEXTS, "": LEAVES, "$": LEAVES}
)
COMPARED = st.sampled_from(["$gt", "$gt", "$gte", "$lt", "$lte"])
COMPARISONS = st.dictionaries(COMPARED, NUMBERS | SPELLED, min_size=1, max_size=2)
EQUALITIES = st.dictionaries(st.sampled_from(["$eq", "$ne"]), TREES, min_size=1, max_size=2)
PARTS = TREES | EQUALITIES
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "n": NUMBERS | COMPARISONS,
        "d": COMPARISONS,
        "s": LEAVES | EQUALITIES,
        "o": PARTS | st.dictionaries(st.sampled_from("xy"), PARTS, max_size=2) | st.lists(PARTS, max_size=2),
        "": LEAVES,
        "absent": st.none() | EQUALITIES,
    },
)
LIMITS, OFFSETS = st.sampled_from([0, 1, 2, 100]), st.integers(0, 2)
CONDITIONS = st.builds(
    MatchCondition, st.sampled_from(["prefix", "suffix"]), st.lists(PLACES | st.just("*"), max_size=3).map(tuple)
)
INDEXES = st.sampled_from([None, False, ["s", "o.x"]])
PUTS = st.builds(PutOp, NAMESPACES, PLACES, VALUES | st.none(), INDEXES, st.none())
GETS = st.builds(GetOp, NAMESPACES, PLACES)
SEARCHES = st.builds(SearchOp, PREFIXES, st.none() | FILTERS, LIMITS, OFFSETS, st.none())
BOUNDS = st.sampled_from([1, 2, 2.5, -3, 0.1])
"""Numbers that items of FIRST have."""
COMPARING = st.builds(
    SearchOp,
    st.sampled_from([(), (0,)]),
    st.fixed_dictionaries({"n": st.dictionaries(COMPARED, BOUNDS, min_size=1, max_size=1)}),
    st.just(100),
    st.just(0),
    st.none(),
)
LISTS = st.builds(
    ListNamespacesOp, st.lists(CONDITIONS, max_size=2).map(tuple), st.none() | st.integers(0, 3), LIMITS, OFFSETS
)


def suffix(places: list[Any]) -> tuple[MatchCondition]:
    return (MatchCondition("suffix", tuple(places)),)


SUFFIXED = st.builds(
    ListNamespacesOp,
    st.lists(PLACES, min_size=1, max_size=2).map(suffix),
    st.none(),
    st.just(100),
    st.just(0),
)
OPERATIONS = st.one_of(PUTS, PUTS, PUTS, GETS, SEARCHES, COMPARING, LISTS, SUFFIXED)
BATCHES = st.lists(st.lists(OPERATIONS, min_size=1, max_size=10), min_size=2, max_size=5)
FIRST: list[PutOp] = [
    PutOp(namespace, place, {"n": number, "d": spelled, "o": tree})  # type: ignore[arg-type]  # places become names
    for namespace, place, number, spelled, tree in [
        ((0,), 0, 1, "12", None),
        ((0,), 1, 2, " 3.5 ", {"x": 2, "y": {"x": "2"}}),
        ((0, 1), 0, 2.5, 7, [2, None]),
        ((1,), 2, -3, True, {"x": None}),
        ((1, 0), 0, 2**70, 4.0, "2"),
        ((2, 1, 0), 1, 0.1, "-1e1", {}),
    ]
]
"""The first batch of each example, so that what is read and changed is there."""


def named(operation: Any, labels: Sequence[str], keys: Sequence[str]) -> Op:
    """Returns an operation with names for the places that it was generated with."""

    def path(places: Iterable[Any]) -> tuple[str, ...]:
        return tuple(place if place == "*" else labels[place] for place in places)

    renamed: Op
    if isinstance(operation, PutOp | GetOp):
        place: Any = operation.key
        return operation._replace(namespace=path(operation.namespace), key=keys[place])
    if isinstance(operation, SearchOp):
        return operation._replace(namespace_prefix=path(operation.namespace_prefix))
    conditions = [one._replace(path=path(one.path)) for one in operation.match_conditions]
    renamed = operation._replace(match_conditions=conditions)
    return renamed


class Reference(InMemoryStore):
    """LangGraph's reference without two habits that Priors does not share.

    It lists namespaces without items, and searches namespaces in the order of their first use.
    """

    def _filter_items(self, op: SearchOp) -> Any:
        self._tidy()
        return super()._filter_items(op)

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        self._tidy()
        return super()._handle_list_namespaces(op)

    def _tidy(self) -> None:
        kept = {namespace: self._data[namespace] for namespace in sorted(self._data) if self._data[namespace]}
        self._data.clear()
        self._data.update(kept)


def shown(result: Result) -> Shown:
    """Returns an answer without its times, which are checked."""
    match result:
        case None:
            return None
        case list():
            return [one if isinstance(one, tuple) else shown(one) for one in result]
    assert result.created_at <= result.updated_at
    assert result.created_at.tzinfo is not None
    scored = (result.score,) if isinstance(result, SearchItem) else ()
    return (type(result).__name__, result.namespace, result.key, result.value, *scored)


Run = Callable[[PriorsStore, Sequence[Op]], list[Result]]


def compare(store: PriorsStore, run: Run, batches: Iterable[Sequence[Op]]) -> None:
    """Carries out batches on both stores and requires the same answers."""
    reference = Reference()
    for batch in batches:
        found, wanted = run(store, batch), reference.batch(batch)
        assert [shown(one) for one in found] == [shown(one) for one in wanted], batch


def judge(check: Callable[[list[list[Op]]], None], *, examples: int = EXAMPLES) -> None:
    """Checks generated batches, the same ones each time."""

    def check_named(batches: list[list[Any]], names: tuple[list[str], list[str]]) -> None:
        check([[named(operation, *names) for operation in batch] for batch in (FIRST, *batches)])

    test = given(BATCHES, NAMES)(check_named)
    settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(test)()


def sync(store: PriorsStore, batch: Sequence[Op]) -> list[Result]:
    return store.batch(batch)


def fresh(server: str, name: str) -> Callable[[], Client]:
    """Returns a function that opens a client of another empty workspace each time."""
    numbers = iter(range(10_000))
    return lambda: Client(server, workspace=f"{name}-{next(numbers)}")


async def test_it_answers_as_the_reference_does(server: str, workspace_name: str) -> None:
    open_client = fresh(server, workspace_name)

    def check(batches: list[list[Op]]) -> None:
        with open_client() as client:
            compare(PriorsStore(client), sync, batches)

    await asyncio.to_thread(judge, check)


def changed(kind: type, **how: Callable[[Any], Any]) -> Callable[[list[Op]], list[Op]]:
    """Returns the change of operations of a kind: of each named field by its function."""

    def change(operations: list[Op]) -> list[Op]:
        return [
            one._replace(**{name: new(getattr(one, name)) for name, new in how.items()})
            if isinstance(one, kind)
            else one
            for one in operations
        ]

    return change


FAULTS: dict[str, Callable[[list[Op]], list[Op]]] = {
    "an offset is ignored": changed(SearchOp, offset=lambda _: 0),
    "a prefix is ignored": changed(SearchOp, namespace_prefix=lambda _: ()),
    "keys are cut off": changed(GetOp, key=lambda key: key[:1]),
    "nothing is deleted": lambda operations: (
        [one for one in operations if not (isinstance(one, PutOp) and one.value is None)]
        + [GetOp(("none",), "k")] * sum(isinstance(one, PutOp) and one.value is None for one in operations)
    ),
    "a namespace loses its last label": changed(PutOp, namespace=lambda labels: labels[:1]),
}


class Broken(PriorsStore):
    """A store with a fault."""

    def __init__(self, client: Client, fault: Callable[[list[Op]], list[Op]]) -> None:
        super().__init__(client)
        self._fault = fault

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return super().batch(self._fault(list(ops)))


class WritesFirst(PriorsStore):
    """A store whose batches read what they write."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations = list(ops)
        super().batch([one for one in operations if isinstance(one, PutOp)])
        return super().batch(operations)


FAULTY: dict[str, Callable[[Client], PriorsStore]] = {
    **{name: partial(Broken, fault=fault) for name, fault in FAULTS.items()},
    "what is written is read": WritesFirst,
}


@pytest.mark.parametrize("fault", FAULTY)
@pytest.mark.test_all("contracts")
async def test_a_broken_adapter_fails(server: str, workspace_name: str, fault: str) -> None:
    open_client = fresh(server, workspace_name)

    def check(batches: list[list[Op]]) -> None:
        with open_client() as client:
            compare(FAULTY[fault](client), sync, batches)

    with pytest.raises((AssertionError, BaseExceptionGroup)):
        await asyncio.to_thread(judge, check)


TEXTS_OF = {
    "tea": "Ann drinks green tea every morning.",
    "beam": "The beam drifts by two millimetres at night.",
    "train": "The train to Kazan leaves at seven.",
}


async def test_a_query_finds_what_the_reference_finds(
    client: httpx.AsyncClient, server: str, services: Services, workspace_name: str
) -> None:
    async def vectors(texts: Sequence[str]) -> list[list[float]]:
        return [list(map(float, row)) for row in await services.provider.embed_documents(list(texts))]

    reference = InMemoryStore(index={"dims": 384, "embed": vectors, "fields": ["text"]})
    with Client(server, workspace=workspace_name) as blocking:
        store = PriorsStore(blocking, fields=["text"])
        for number, (key, text) in enumerate(TEXTS_OF.items()):
            for each in (store, reference):
                await each.aput(("notes", "a"), key, {"text": text, "n": number})
                await each.aput(("notes", "a"), f"{key} number", {"n": number})
        await embed(client, services)
        for query, best in (("which hot drink does she like?", "tea"), ("when does my train go?", "train")):
            for wanted in (None, {"n": {"$gt": 0}}):
                found = await store.asearch(("notes",), query=query, filter=wanted, limit=10)
                known = await reference.asearch(("notes",), query=query, filter=wanted, limit=10)
                assert {one.key for one in found} == {one.key for one in known}
                if wanted is None or best != "tea":
                    assert found[0].key == known[0].key == best
                pages = [
                    await store.asearch(("notes",), query=query, filter=wanted, limit=1, offset=at) for at in range(6)
                ]
                assert [one.key for page in pages for one in page] == [one.key for one in found]
        await store.aput(("notes", "a"), "tea", {"text": "Ann drinks coffee now."})
        assert "green tea" not in (await client.post("/api/history", json={"query": "green tea"})).text
        await store.adelete(("notes", "a"), "beam")
        assert (await client.post("/api/search", json={"query": "beam drifts"})).json()["hits"] == []


async def test_what_cannot_be_stored_is_refused(server: str, workspace_name: str) -> None:
    with Client(server, workspace=workspace_name) as client:
        store = PriorsStore(client, fields=["text"])
        with pytest.raises(InvalidNamespaceError):
            await store.aput(("a.b",), "k", {})
        with pytest.raises(ValueError, match="Out of range float"):
            await store.aput(("a",), "k", {"n": float("nan")})
        with pytest.raises(NotImplementedError):
            await store.aput(("a",), "k", {}, ttl=5)
        for value in ({"text": "tea", "s": "\0"}, {"text": "tea", "s": "x" * 100_001}):
            with pytest.raises(InvalidRequest, match="metadata"):
                await store.aput(("a",), "k", value)
        assert await store.asearch(("a",)) == []
        # Worthless as a text; the whole value is stored.
        await store.aput(("a",), "k", {"text": "42"})
        assert [item.value for item in await store.asearch(("a",))] == [{"text": "42"}]
        with pytest.raises(Refused, match="no letter"):
            await store.aput(("a",), "", {})


async def test_a_put_replaces_what_was_written_twice(server: str, workspace_name: str) -> None:
    with Client(server, workspace=workspace_name) as client:
        store = PriorsStore(client, fields=["text"])
        await asyncio.gather(*(store.aput(("a",), "k", {"text": f"The fox has {number} cubs."}) for number in range(4)))
        item = await store.aget(("a",), "k")
        assert item is not None
        assert [one.value for one in await store.asearch(("a",))] == [item.value]
        await store.aput(("a",), "k", {"text": "The fox left."})
        assert [hit.body for hit in (await asyncio.to_thread(client.search, "fox cubs left")).hits] == ["The fox left."]
        again = await store.aget(("a",), "k")
        assert again is not None
        assert (again.created_at, again.updated_at > item.updated_at) == (item.created_at, True)


async def test_the_items_of_a_user_are_a_store_of_their_own(server: str, workspace_name: str) -> None:
    with Client(server, workspace=workspace_name) as client:
        shared, own = PriorsStore(client), PriorsStore(client, user="ann")
        await own.aput(("a",), "k", {"text": "Ann drinks green tea."})
        assert (await shared.aget(("a",), "k"), await shared.alist_namespaces()) == (None, [])
        assert await own.alist_namespaces() == [("a",)]
        await shared.aput(("a",), "k", {"text": "Tea is at four."})
        assert (await own.asearch((), query="tea"))[0].value == {"text": "Ann drinks green tea."}
        await own.adelete(("a",), "k")
        assert (await own.asearch(()), len(await shared.asearch(()))) == ([], 1)
