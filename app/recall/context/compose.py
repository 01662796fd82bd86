"""The operations on representations: composed, compressed and weighed. Pure."""

import math
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from app.errors import InvalidInput
from app.foundation.models.protocols import TokenCounter
from app.foundation.text.prose import sentences
from app.foundation.text.words import WORD
from app.intake.runs.observations.compress import by_centrality
from app.recall.context.blocks import ELLIPSIS, LEAST_EXCERPT, cut_at
from app.recall.context.compile import SEPARATOR, count_section, lead
from app.recall.context.representation import (
    CONSTRAINT,
    HIERARCHICAL,
    OBSERVATION,
    Allocation,
    Part,
    Representation,
    Section,
    ShortenedPart,
    ToolDefinition,
)

INFORMATION, RELEVANCE = "information", "relevance"
EVERYTHING = "everything"
"""The one pot of a budget that is not divided."""


def compose(first: Representation, second: Representation) -> Representation:
    """Returns both as one: sections by their modes, those of the first before; additive content and tools once.

    It is associative, and the empty representation changes nothing.
    """
    return Representation(
        sections=(*first.sections, *second.sections),
        tools=(*first.tools, *second.tools),
        cuts=(*first.cuts, *second.cuts),
        meta=first.meta.over(second.meta),
    )


def compress(
    representation: Representation,
    budget: int,
    counter: TokenCounter,
    *,
    allocation: Allocation | str = RELEVANCE,
) -> Representation:
    """Returns the representation within `budget` tokens, the lines above reference material counted.

    The parts of the most worth have their room first. One that does not fit is shortened to the room that is left,
    or dropped if that is less than its `min_tokens`. Critical and constraint parts are never cut. With `information`,
    worth is weighed by the share of a section's words that other sections do not have.

    Raises:
        InvalidInput: the critical and constraint parts alone pass the budget.
    """
    parts: list[Part] = [*representation.sections, *representation.tools]
    room = _Room(budget, allocation, counter)
    kept = _protected_parts(parts, room, budget)
    cuts: list[ShortenedPart] = []
    for place, value in _by_value(parts, allocation):
        part, available = parts[place], room.available(parts[place])
        fitting = part if part.tokens <= available else shorten_section(part, available, counter)
        if fitting is not None:
            kept[place] = fitting
            room.take(fitting)
        if fitting is not part:
            cuts.append(_cut(part, fitting, f"worth {value:.2f}; {max(0, available):,} tokens were left for it"))
    found = [kept[place] for place in sorted(kept)]
    return replace(
        representation,
        sections=tuple(part for part in found if isinstance(part, Section)),
        tools=tuple(part for part in found if isinstance(part, ToolDefinition)),
        cuts=(*representation.cuts, *cuts),
    )


def _protected_parts(parts: Sequence[Part], room: "_Room", budget: int) -> dict[int, Part]:
    """Returns the critical and constraint parts by their places, once they have their room."""
    kept = {place: part for place, part in enumerate(parts) if part.is_protected}
    for part in kept.values():
        room.take(part)
    if room.left < 0:
        raise InvalidInput(
            "budget.total",
            f"leaves {max(0, budget):,} tokens without the reserve and the frames of messages, and the critical and"
            f" constraint parts alone need {budget - room.left:,}: raise it, lower the reserve, or shorten them",
        )
    return kept


def shorten_section(part: Part, room: int, counter: TokenCounter) -> Section | None:
    """Returns a section's most central sentences within `room` tokens, or its beginning where that holds more of it.

    Returns None for a tool, and where less than its `min_tokens` or than a useful excerpt would be left.
    """
    if not isinstance(part, Section) or room < max(part.min_tokens, LEAST_EXCERPT):
        return None
    frame = count_section(replace(part, content=ELLIPSIS), counter).tokens
    if room - frame < LEAST_EXCERPT:
        return None
    beginning = part.content[: cut_at(part.content, room - frame, counter)]
    made = (_extract(part.content, room - frame, counter), beginning)
    found = [count_section(replace(part, content=f"{text} {ELLIPSIS}"), counter) for text in made if text]
    fitting = [item for item in found if part.min_tokens <= item.tokens <= min(room, part.tokens)]
    return next(iter(fitting), None)


def _extract(text: str, room: int, counter: TokenCounter) -> str:
    """Returns the most central sentences of a text that fit, in their order; empty if they have too few tokens."""
    found = sentences(text)
    counts = counter.count_many([f"{item.text}\n" for item in found])
    chosen, used = list[int](), 0
    for place in by_centrality(found):
        if used + counts[place] <= room:
            chosen.append(place)
            used += counts[place]
    separator = " " if all(found[place].is_prose for place in chosen) else "\n"
    return separator.join(found[place].text for place in sorted(chosen)) if used >= LEAST_EXCERPT else ""


def _cut(part: Part, fitting: Part | None, reason: str) -> ShortenedPart:
    after = 0 if fitting is None else fitting.tokens
    return ShortenedPart(
        id=part.id, label=part.label, source=part.source, before=part.tokens, after=after, reason=reason
    )


class _Room:
    """The tokens that are left, all together and in the pot of each kind of part."""

    def __init__(self, budget: int, allocation: Allocation | str, counter: TokenCounter) -> None:
        self.left = budget
        self._counter, self._leads = counter, set[str]()
        self._pots = {EVERYTHING: budget}
        if isinstance(allocation, Allocation):
            shares = {name: getattr(allocation, name) for name in allocation.__struct_fields__}
            self._pots = {name: int(budget * share) for name, share in shares.items()}

    def available(self, part: Part) -> int:
        """Returns the tokens that a part may have."""
        return min(self.left, self._pots[self._pot(part)]) - self._lead_tokens(part)

    def take(self, part: Part) -> None:
        """Takes a part's tokens, and those of the lines above it where it is the first below them."""
        tokens = part.tokens + self._lead_tokens(part)
        self.left -= tokens
        self._pots[self._pot(part)] -= tokens
        if isinstance(part, Section):
            self._leads.add(lead(part))

    def _lead_tokens(self, part: Part) -> int:
        above = lead(part) if isinstance(part, Section) else ""
        return 0 if not above or above in self._leads else self._counter.count(above + SEPARATOR)

    def _pot(self, part: Part) -> str:
        if EVERYTHING in self._pots:
            return EVERYTHING
        if isinstance(part, ToolDefinition) or part.mode in {HIERARCHICAL, CONSTRAINT}:
            return "system"
        return "observation" if part.source == OBSERVATION else "context"


def _by_value(parts: Sequence[Part], allocation: Allocation | str) -> list[tuple[int, float]]:
    """Returns the places of the parts that may be cut, each with its value, the most valuable first."""
    places = [place for place, part in enumerate(parts) if not part.is_protected]
    values = [parts[place].worth for place in places]
    if allocation == INFORMATION:
        sections = [part for part in parts if isinstance(part, Section)]
        # Sections stand before the tools, whose worth stays as it is.
        own = [*own_shares(sections), *(1.0 for _ in parts[len(sections) :])]
        values = [value * own[place] for place, value in zip(places, values, strict=True)]
    return sorted(zip(places, values, strict=True), key=lambda item: (-item[1], item[0]))


def own_shares(sections: Sequence[Section]) -> list[float]:
    """Returns for each section how much of its words is its own, 0 to 1: a word of n sections counts 1/n."""
    bags = [frozenset(WORD.findall(section.content.lower())) for section in sections]
    holders = Counter(word for bag in bags for word in bag)
    return [sum(1 / holders[word] for word in bag) / len(bag) if bag else 0.0 for bag in bags]


def entropy(representation: Representation) -> float:
    """Returns the entropy of the sections' words in bits a word, estimated from their frequencies."""
    counts = Counter(word for section in representation.sections for word in WORD.findall(section.content.lower()))
    total = counts.total()
    return -sum(count / total * math.log2(count / total) for count in counts.values()) if total else 0.0
