"""Long texts in passages that the embedding model reads whole. Pure."""

from collections.abc import Iterator, Sequence

from app.observations.sentences import sentences_of

PASSAGE_TOKENS = 200
"""Of a passage, as `tokens_about` counts: 150 English words, and well within the 256 tokens that the model reads."""
ASCII_TOKENS, OTHER_TOKENS = 0.22, 0.6
"""Tokens of a character, and those that each byte beyond its first adds: measured on English (0.21 a character) and
Russian (0.80), which the model's vocabulary spells out."""


def passages(text: str) -> list[str]:
    """The text in groups of sentences of at most PASSAGE_TOKENS."""
    groups: list[list[str]] = []
    size = 0.0
    for piece in _pieces(text):
        cost = tokens_about(piece)
        if not groups or size + cost > PASSAGE_TOKENS:
            groups.append([])
            size = 0.0
        groups[-1].append(piece)
        size += cost
    return [" ".join(group) for group in groups]


def tokens_about(text: str) -> float:
    """About how many tokens the model makes of a text."""
    return ASCII_TOKENS * len(text) + OTHER_TOKENS * (len(text.encode("utf-8", "surrogatepass")) - len(text))


def _pieces(text: str) -> Iterator[str]:
    """Sentences; those that are too long for a passage by their words, and words like that by their letters."""
    for sentence in sentences_of(text) or [text.strip()]:
        if tokens_about(sentence) <= PASSAGE_TOKENS:
            yield sentence
            continue
        for word in sentence.split():
            yield from (word[at : at + PASSAGE_TOKENS] for at in range(0, len(word), PASSAGE_TOKENS))


def shares(counts: Sequence[int], budget: int) -> list[int]:
    """How many passages of each text are compared, so that they are at most `budget` together: the short ones whole,
    the others alike; one at least."""
    most, left = 1, budget - len(counts)
    for level in range(1, max(counts, default=1)):
        left -= sum(count > level for count in counts)
        if left < 0:
            break
        most = level + 1
    return [min(count, most) for count in counts]


def spread(found: Sequence[str], count: int) -> list[str]:
    """So many of the passages, evenly spread over the text."""
    return [found[(2 * place + 1) * len(found) // (2 * count)] for place in range(count)]
