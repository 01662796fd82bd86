"""Which texts share a run of the model: pure."""

from collections.abc import Iterator, Sequence

STRETCH = 1.25
"""A batch holds no text longer than this times its shortest, and PADDED_FREELY more: padding costs like text."""
PADDED_FREELY = 8
"""Tokens of padding that cost less than a run of their own (1.4 ms, as much as 8 tokens take)."""


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Positions in `lengths`, shortest first, in batches of at most `budget` padded tokens, or of one text.

    Each position comes exactly once.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        longest = lengths[position]
        if batch and (longest * (len(batch) + 1) > budget or longest > _reach(lengths[batch[0]])):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _reach(shortest: int) -> float:
    return shortest * STRETCH + PADDED_FREELY
