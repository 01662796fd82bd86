"""Which texts share a run of the model: pure."""

from collections.abc import Iterator, Sequence

RUN_TOKENS = 16
"""What a run costs besides its tokens, in tokens: 2.4 ms on one core, where a token takes 0.15 ms."""


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Positions in `lengths`, shortest first, in batches of at most `budget` padded tokens, or of one text.

    Each position comes exactly once. Of all ways to cut the row of texts this is the cheapest: a batch costs as if each
    of its texts were as long as its longest, and RUN_TOKENS.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    end, batch_ends = len(order), []
    starts = _cheapest_starts([lengths[position] for position in order], budget)
    while end:
        batch_ends.append(end)
        end = starts[end - 1]
    for stop in reversed(batch_ends):
        yield order[starts[stop - 1] : stop]


def _cheapest_starts(ascending: Sequence[int], budget: int) -> list[int]:
    """For each text the start of the batch that ends with it, when what stands up to it is cut as cheaply as can be."""
    costs, starts = [0], []
    for last, longest in enumerate(ascending):
        first = max(0, min(last, last + 1 - budget // max(1, longest)))
        cost, start = min((costs[at] + (last + 1 - at) * longest, at) for at in range(first, last + 1))
        costs.append(cost + RUN_TOKENS)
        starts.append(start)
    return starts
