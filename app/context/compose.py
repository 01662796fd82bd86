"""The operations on representations: composed, compressed, weighed and compared. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from app.context.compile import SEPARATOR, counted, lead
from app.context.representation import (
    CONSTRAINT,
    HIERARCHICAL,
    OBSERVATION,
    Allocation,
    Cut,
    Part,
    Representation,
    Section,
    ToolDefinition,
)
from app.context.section import ELLIPSIS, LEAST_EXCERPT, cut_at
from app.errors import InvalidInput
from app.models.protocols import TokenCounter
from app.runs.observations.extractive import by_centrality
from app.text.sentences import sentences
from app.text.words import WORD, content_words, resemblance, shingles

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
    kept: dict[int, Part] = {}
    for place, part in enumerate(parts):
        if part.is_protected:
            kept[place] = part
            room.take(part)
    if room.left < 0:
        raise InvalidInput(
            "budget.total",
            f"leaves {max(0, budget):,} tokens without the reserve and the frames of messages, and the critical and"
            f" constraint parts alone need {budget - room.left:,}: raise it, lower the reserve, or shorten them",
        )
    cuts: list[Cut] = []
    for place, value in _by_value(parts, allocation):
        part, available = parts[place], room.available(parts[place])
        fitting = part if part.tokens <= available else shortened(part, available, counter)
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


def shortened(part: Part, room: int, counter: TokenCounter) -> Section | None:
    """Returns a section's most central sentences within `room` tokens, or its beginning where that holds more of it.

    Returns None for a tool, and where less than its `min_tokens` or than a useful excerpt would be left.
    """
    if not isinstance(part, Section) or room < max(part.min_tokens, LEAST_EXCERPT):
        return None
    frame = counted(replace(part, content=ELLIPSIS), counter).tokens
    if room - frame < LEAST_EXCERPT:
        return None
    made = (_extract(part.content, room - frame, counter), _beginning(part.content, room - frame, counter))
    found = [counted(replace(part, content=f"{text} {ELLIPSIS}"), counter) for text in made if text]
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


def _beginning(text: str, room: int, counter: TokenCounter) -> str:
    return text[: cut_at(text, room, counter)]


def _cut(part: Part, fitting: Part | None, reason: str) -> Cut:
    after = 0 if fitting is None else fitting.tokens
    return Cut(id=part.id, label=part.label, source=part.source, before=part.tokens, after=after, reason=reason)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The loss if a section, or several of one id, were left out."""

    id: str
    label: str
    source: str
    tokens: int
    share: float
    """Share of the representation's tokens, 0 to 1."""
    information: float
    """Share of the representation's words that no other section has, 0 to 1."""
    worth: float
    """Priority × relevance × recency."""


def estimate_impact(representation: Representation, section_id: str) -> Impact:
    """Returns the loss if the section of this id were left out; all of them, if several have it.

    Raises:
        InvalidInput: the representation has no such section.
    """
    for item in impacts(representation):
        if item.id == section_id:
            return item
    raise InvalidInput("section", f"there is no section {section_id!r}")


def impacts(representation: Representation) -> list[Impact]:
    """Returns the loss for each section's id, in the order of the sections."""
    parts: dict[str, list[Section]] = {}
    for section in representation.sections:
        parts.setdefault(section.id, []).append(section)
    words = {part: {word for item in items for word in content_words(item.content)} for part, items in parts.items()}
    holders = Counter(word for found in words.values() for word in found)
    return [
        Impact(
            id=part,
            label=items[0].label,
            source=items[0].source,
            tokens=(tokens := sum(item.tokens for item in items)),
            share=tokens / representation.total_tokens if representation.total_tokens else 0.0,
            information=sum(holders[word] == 1 for word in words[part]) / len(holders) if holders else 0.0,
            worth=max(item.worth for item in items),
        )
        for part, items in parts.items()
    ]


def equivalent(first: Representation, second: Representation, threshold: float) -> bool:
    """Returns True if two representations are alike by at least `threshold`, 0 to 1."""
    return similarity(first, second) >= threshold


def similarity(first: Representation, second: Representation) -> float:
    """Returns how alike two representations are, 0 to 1: 1 for the same contents in the same order.

    It is the cosine of their mean embeddings where each section has one, else the share of their word runs that both
    have.
    """
    if [item.content_hash for item in first.sections] == [item.content_hash for item in second.sections]:
        return 1.0
    found = [_mean(representation) for representation in (first, second)]
    if found[0] is not None and found[1] is not None and len(found[0]) == len(found[1]):
        return float(np.clip(found[0] @ found[1], 0, 1))
    texts = ["\n".join(section.content for section in item.sections) for item in (first, second)]
    return resemblance(*map(shingles, texts))


def _mean(representation: Representation) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Returns the direction of the mean of the sections' embeddings; None if one has none, or of another length."""
    rows = [section.embedding for section in representation.sections]
    if not rows or any(row is None or len(row) != len(rows[0] or ()) for row in rows):
        return None
    mean = np.asarray(rows, dtype=np.float64).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / length if length else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A section or tool that two representations do not share as it is."""

    id: str
    label: str
    source: str
    kind: str
    """`added`, `removed` or `changed`."""
    before: int
    """Tokens in the first; 0 where it was added."""
    after: int
    """Tokens in the second; 0 where it was removed."""
    reason: str = ""
    """The reason why the second has it shorter or not at all, where that was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The way from one representation to another."""

    changes: tuple[Change, ...]
    same: int
    """Number of parts that both have."""
    tokens: int
    """Tokens of the second less those of the first."""
    similarity: float
    """0 to 1: 1 for the same contents in the same order. Two are equivalent from a threshold on that a caller sets."""


def diff(first: Representation, second: Representation) -> Difference:
    """Returns what the second representation has added, removed and changed; those of an id are compared in order."""
    before, after = _by_identity(first), _by_identity(second)
    reasons = {cut.id: cut.reason for cut in second.cuts}
    keys = [*before, *(key for key in after if key not in before)]
    found = [_change(before.get(key), after.get(key), reasons.get(key[1], "")) for key in keys]
    return Difference(
        changes=tuple(change for change in found if change is not None),
        same=sum(change is None for change in found),
        tokens=second.total_tokens - first.total_tokens,
        similarity=round(similarity(first, second), 4),
    )


def _by_identity(representation: Representation) -> Mapping[tuple[type, str, int], Part]:
    """Returns the parts by their kind, their id, and their number among those of the same id."""
    found: dict[tuple[type, str, int], Part] = {}
    seen: Counter[tuple[type, str]] = Counter()
    parts: list[Part] = [*representation.sections, *representation.tools]
    for part in parts:
        key = type(part), part.id
        found[*key, seen[key]] = part
        seen[key] += 1
    return found


def _change(before: Part | None, after: Part | None, reason: str) -> Change | None:
    part = after or before
    if part is None or (before is not None and after is not None and _read_alike(before, after)):
        return None
    return Change(
        id=part.id,
        label=part.label,
        source=part.source,
        kind="added" if before is None else "removed" if after is None else "changed",
        before=0 if before is None else before.tokens,
        after=0 if after is None else after.tokens,
        reason=reason,
    )


def _read_alike(one: Part, other: Part) -> bool:
    """Returns True if a model reads the same: the same section may be found by another recall, and be older."""
    if isinstance(one, Section) and isinstance(other, Section):
        return (one.content_hash, one.label, one.reference) == (other.content_hash, other.label, other.reference)
    return one == other
