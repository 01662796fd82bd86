"""The model's window: what fits into one chunk, its trail included. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.embeddings.provider import TokenCounter
from app.reports.chunk import TRAIL_SEPARATOR

CHARACTERS_A_TOKEN = 32
"""Text with more characters a token than this counts by its characters. The model takes any word of over 100 letters
for one unknown token and blanks for none, so tokens alone would let a megabyte through; prose has 4 or 5."""
LEAST_WINDOW = 16
"""Tokens; a smaller window could not hold a trail and a word."""
PART_CHARACTERS = 160
"""A heading longer than this is a paragraph by another name; its beginning says what it is about."""
TRAIL_CHARACTERS = 900
"""A stored title holds 1,000."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trail that leaves room for text."""

    trail: tuple[str, ...]
    room: int
    """Tokens that the text below it may have."""


@dataclass(frozen=True, slots=True)
class Window:
    """Costs and room, in model tokens. Costs of texts that are joined at white space add up."""

    counter: TokenCounter
    max_tokens: int
    _fitted: dict[tuple[str, ...], Fitted] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_tokens < LEAST_WINDOW:
            raise ValueError(f"a window of {self.max_tokens} tokens is too small; take at least {LEAST_WINDOW}")

    def costs(self, texts: Sequence[str]) -> list[int]:
        """What each text takes up: its tokens, or more where it has very many characters for them."""
        counts = self.counter.count_many(texts)
        return [max(count, len(text) // CHARACTERS_A_TOKEN) for text, count in zip(texts, counts, strict=True)]

    def cost(self, text: str) -> int:
        """What one text takes up; `costs` is faster for many."""
        return self.costs([text])[0]

    def fitted(self, trail: tuple[str, ...]) -> Fitted:
        """The trail shortened to at most half the window, and the room below it.

        Long parts are cut at their end, then parts go from the oldest heading on; the file's title and the nearest
        heading stay.
        """
        known = self._fitted.get(trail)
        if known is None:
            known = self._fitted[trail] = self._shortened(trail)
        return known

    def _shortened(self, trail: tuple[str, ...]) -> Fitted:
        parts = [part if len(part) <= PART_CHARACTERS else _beginning(part, PART_CHARACTERS) for part in trail]
        while (used := self._trail_cost(parts)) > self.max_tokens // 2:
            if len(parts) > 2:  # noqa: PLR2004 - the file's title and the nearest heading
                del parts[1]
            else:
                longest = max(range(len(parts)), key=lambda place: len(parts[place]))
                parts[longest] = _beginning(parts[longest], len(parts[longest]) // 2)
        return Fitted(trail=tuple(parts), room=self.max_tokens - used)

    def _trail_cost(self, parts: Sequence[str]) -> int:
        title = TRAIL_SEPARATOR.join(parts)
        return self.max_tokens if len(title) > TRAIL_CHARACTERS else self.cost(title)


def _beginning(text: str, characters: int) -> str:
    return text[: max(1, characters - 1)].rstrip() + "…" if characters > 1 else text[:1]
