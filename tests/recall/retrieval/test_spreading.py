"""Evidence that links pass on. Pure."""

from hypothesis import given
from hypothesis import strategies as st

from app.recall.retrieval.rank.features import SPREADING, ArmScores, Blend, SeedLink, relevances, spread
from app.storage.links.relations import MENTIONS, SAME_ENTITY, SIMILAR

EDGES = st.builds(
    SeedLink,
    seed=st.integers(1, 8),
    relation=st.sampled_from([*SPREADING, SIMILAR, "unheard of"]),
    direction=st.sampled_from(["in", "out"]),
    weight=st.floats(0.01, 1),
    degree=st.integers(1, 100),
)
POOLS = st.lists(
    st.tuples(st.floats(0, 3), st.one_of(st.none(), st.integers(1, 8)), st.lists(EDGES, max_size=4)), max_size=12
)
Pool = list[tuple[float, int | None, list[SeedLink]]]


def boosts(pool: Pool) -> list[float]:
    evidence, seeds, edges = [item[0] for item in pool], [item[1] for item in pool], [item[2] for item in pool]
    return [boost.value for boost in spread(evidence, seeds, edges)]


@given(POOLS)
def test_nobody_loses_and_nobody_gains_beyond_the_best(pool: Pool) -> None:
    most = max(SPREADING.values()) * max((value for value, _, _ in pool), default=0.0)
    assert all(0 <= value <= most + 1e-9 for value in boosts(pool))


@given(POOLS)
def test_it_is_the_same_each_time_and_in_any_order_of_edges(pool: Pool) -> None:
    assert boosts(pool) == boosts([(value, seed, edges[::-1]) for value, seed, edges in pool])


@given(POOLS)
def test_a_boost_names_the_link_that_it_comes_from(pool: Pool) -> None:
    evidence, seeds, edges = [item[0] for item in pool], [item[1] for item in pool], [item[2] for item in pool]
    for boost, its in zip(spread(evidence, seeds, edges), edges, strict=True):
        assert (boost.edge in its and boost.value > 0) if boost.edge is not None else boost.value == 0


def test_the_strongest_link_counts_and_a_hub_passes_less_to_each() -> None:
    mention = SeedLink(1, MENTIONS, "in", 1.0, 1)
    (_, boosted), (_, of_a_hub), (_, weak) = (
        spread([1.0, 0.0], [1, None], [(), edges])
        for edges in (
            [mention, SeedLink(1, SAME_ENTITY, "in", 1.0, 1)],
            [mention._replace(degree=4)],
            [mention._replace(weight=0.5)],
        )
    )
    assert boosted == (SPREADING[MENTIONS], mention)
    assert of_a_hub.value == weak.value == SPREADING[MENTIONS] / 2


def test_what_was_gained_is_not_passed_on() -> None:
    chain = [(), [SeedLink(1, MENTIONS, "in", 1.0, 1)], [SeedLink(2, MENTIONS, "in", 1.0, 1)]]
    assert [boost.value for boost in spread([1.0, 0.0, 0.0], [1, 2, None], chain)] == [0, SPREADING[MENTIONS], 0]


@given(POOLS)
def test_evidence_never_falls_by_links(pool: Pool) -> None:
    given_evidence = [
        ArmScores(similarity=min(1.0, value), bm25=0.0, source=None, ordinal=None, seed=seed, edges=edges)
        for value, seed, edges in pool
    ]
    linked = relevances(given_evidence, full_match=1.0)
    alone = relevances(given_evidence, full_match=1.0, blend=Blend(links={}))
    assert all(one.evidence >= other.evidence for one, other in zip(linked, alone, strict=True))
    assert all(one.links == 0 and one.edge is None for one in alone)
