"""Evidence that links pass on. Pure."""

from hypothesis import given
from hypothesis import strategies as st

from app.links.link import MENTIONS, SAME_ENTITY, SIMILAR
from app.retrieval.rank.fusion import Blend, Evidence, relevances
from app.retrieval.rank.spreading import SPREADING, Tie, spread

TIES = st.builds(
    Tie,
    giver=st.integers(1, 8),
    relation=st.sampled_from([*SPREADING, SIMILAR, "unheard of"]),
    direction=st.sampled_from(["in", "out"]),
    weight=st.floats(0.01, 1),
    degree=st.integers(1, 100),
)
POOLS = st.lists(
    st.tuples(st.floats(0, 3), st.one_of(st.none(), st.integers(1, 8)), st.lists(TIES, max_size=4)), max_size=12
)
Pool = list[tuple[float, int | None, list[Tie]]]


def lifts(pool: Pool) -> list[float]:
    evidence, givers, ties = [item[0] for item in pool], [item[1] for item in pool], [item[2] for item in pool]
    return [lift.value for lift in spread(evidence, givers, ties)]


@given(POOLS)
def test_nobody_loses_and_nobody_gains_beyond_the_best(pool: Pool) -> None:
    most = max(SPREADING.values()) * max((value for value, _, _ in pool), default=0.0)
    assert all(0 <= value <= most + 1e-9 for value in lifts(pool))


@given(POOLS)
def test_it_is_the_same_each_time_and_in_any_order_of_ties(pool: Pool) -> None:
    assert lifts(pool) == lifts([(value, giver, ties[::-1]) for value, giver, ties in pool])


@given(POOLS)
def test_a_lift_names_the_link_that_it_comes_from(pool: Pool) -> None:
    evidence, givers, ties = [item[0] for item in pool], [item[1] for item in pool], [item[2] for item in pool]
    for lift, its in zip(spread(evidence, givers, ties), ties, strict=True):
        assert (lift.tie in its and lift.value > 0) if lift.tie is not None else lift.value == 0


def test_the_strongest_link_counts_and_a_hub_passes_less_to_each() -> None:
    mention = Tie(1, MENTIONS, "in", 1.0, 1)
    (_, lifted), (_, of_a_hub), (_, weak) = (
        spread([1.0, 0.0], [1, None], [(), ties])
        for ties in (
            [mention, Tie(1, SAME_ENTITY, "in", 1.0, 1)],
            [mention._replace(degree=4)],
            [mention._replace(weight=0.5)],
        )
    )
    assert lifted == (SPREADING[MENTIONS], mention)
    assert of_a_hub.value == weak.value == SPREADING[MENTIONS] / 2


def test_what_was_gained_is_not_passed_on() -> None:
    chain = [(), [Tie(1, MENTIONS, "in", 1.0, 1)], [Tie(2, MENTIONS, "in", 1.0, 1)]]
    assert [lift.value for lift in spread([1.0, 0.0, 0.0], [1, 2, None], chain)] == [0, SPREADING[MENTIONS], 0]


@given(POOLS)
def test_evidence_never_falls_by_links(pool: Pool) -> None:
    given_evidence = [
        Evidence(similarity=min(1.0, value), bm25=0.0, source=None, ordinal=None, giver=giver, ties=ties)
        for value, giver, ties in pool
    ]
    linked = relevances(given_evidence, full_match=1.0)
    alone = relevances(given_evidence, full_match=1.0, blend=Blend(links={}))
    assert all(one.evidence >= other.evidence for one, other in zip(linked, alone, strict=True))
    assert all(one.links == 0 and one.tie is None for one in alone)
