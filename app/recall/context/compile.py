"""The operations on representations: composed, compressed, weighed, and compiled to messages or Markdown. Pure."""

import hashlib
import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.errors import InvalidInput
from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import FRAME, HEADING
from app.foundation.text.prose import sentences
from app.foundation.text.words import WORD, content_words, in_one_line, resemblance, shingles
from app.foundation.values import frozen
from app.intake.runs.observations.compress import by_centrality
from app.recall.context.blocks import ELLIPSIS, LEAST_EXCERPT, cut_at, fence_text
from app.recall.context.representation import (
    CONSTRAINT,
    CUES,
    DIGEST_BYTES,
    HIERARCHICAL,
    KNOWLEDGE,
    OBSERVATION,
    SEMANTIC,
    STATE,
    TEMPORAL,
    Allocation,
    Part,
    Representation,
    Section,
    ShortenedPart,
    ToolDefinition,
)

Format: TypeAlias = Literal["openai", "anthropic", "markdown"]
OPENAI: Format = "openai"
ANTHROPIC: Format = "anthropic"
MARKDOWN: Format = "markdown"
MESSAGE_TOKENS, REPLY_TOKENS = 4, 3
"""Tokens of the frame that chat APIs put around a message, and around the answer's beginning (the OpenAI cookbook's
count: three a message and one for its role)."""
_SEPARATOR = "\n\n"
MARKS = re.compile(r"^#{1,6}(\s+|$)")
"""The marks of a label that is a Markdown heading already."""
HEADINGS: Mapping[str, str] = MappingProxyType(
    {KNOWLEDGE: HEADING, SEMANTIC: HEADING, TEMPORAL: "## Recent Turns"},
)
"""The heading above the reference material of a source."""
_OTHER_HEADING = "## Reference"
_VOLATILITY: Mapping[str, int] = MappingProxyType(
    {KNOWLEDGE: 1, SEMANTIC: 1, TEMPORAL: 2, CUES: 3, STATE: 4, OBSERVATION: 5},
)
"""The place of a source's sections: what changes with each call stands last. Other sources do not change: 0."""


@frozen
class Message:
    """A message of a chat API."""

    role: str
    content: str


@frozen
class Prefix:
    """The beginning of the compiled bytes that does not change while the stable sections and the tools do not."""

    bytes: int
    tokens: int
    digest: str
    """Hash of the tools and of the prefix; empty where there is none."""


@frozen
class Compiled:
    """A context as a model takes it."""

    format: Format
    messages: tuple[Message, ...] = ()
    """Empty for Markdown."""
    system: str | None = None
    """The system prompt where the API takes it beside the messages; else None."""
    markdown: str | None = None
    """The whole text; None for messages."""
    tool_definitions: tuple[dict[str, Any], ...] = ()
    """The tools in the API's shape; empty for Markdown, which has them in its text."""
    tokens: int
    """Tokens of all of it, counted on the final bytes, with the frames of the messages."""
    prefix: Prefix


def compile_representation(representation: Representation, form: Format, counter: TokenCounter) -> Compiled:
    """Returns the representation as messages or Markdown: instructions, then what is stable, then what changes."""
    tools = representation.tools
    first, stable, volatile = _parts(representation.sections)
    listed = [_tools_text(tools)] if form == MARKDOWN and tools else []
    system, begun = _join_parts([*listed, *first]), _join_parts(stable)
    begins = [text for text in (system, begun) if text]
    user = _SEPARATOR.join(filter(None, (begun, _join_parts(volatile))))
    texts = [text for text in (system, user) if text]
    if form == MARKDOWN:
        markdown = f"{_SEPARATOR.join(texts)}\n" if texts else ""
        prefix = _prefix([_SEPARATOR.join(begins)], (), counter)
        return Compiled(format=form, markdown=markdown, tokens=counter.count(markdown), prefix=prefix)
    shaped = tuple(_tool_shape(tool, form) for tool in tools)
    tokens = sum(counter.count(_encode(tool)) for tool in shaped)
    tokens += sum(counter.count(text) + MESSAGE_TOKENS for text in texts) + (REPLY_TOKENS if texts else 0)
    return Compiled(
        format=form,
        messages=tuple(_messages(system if form == OPENAI else "", user)),
        system=system if form == ANTHROPIC else None,
        tool_definitions=shaped,
        tokens=tokens,
        prefix=_prefix(begins, shaped, counter),
    )


def overhead(form: Format) -> int:
    """Returns the tokens of the frames around messages."""
    return 0 if form == MARKDOWN else 2 * MESSAGE_TOKENS + REPLY_TOKENS


def render_section(section: Section) -> str:
    """Returns a section as it is read: reference material in a fence that nothing in it closes."""
    label, content = in_one_line(section.label), section.content.strip()
    if section.reference:
        return fence_text(label, content)
    title = MARKS.sub("", label)
    return f"## {title}{_SEPARATOR}{content}" if title else content


def lead(section: Section) -> str:
    """Returns the lines above the reference material of a section's source; empty for other sections."""
    return f"{HEADINGS.get(section.source, _OTHER_HEADING)}{_SEPARATOR}{FRAME}" if section.reference else ""


def count_section(section: Section, counter: TokenCounter) -> Section:
    """Returns a section with the tokens that it has as it is rendered."""
    return replace(section, tokens=counter.count(render_section(section) + _SEPARATOR))


def counted_tool(tool: ToolDefinition, form: Format, counter: TokenCounter) -> ToolDefinition:
    """Returns a tool with the tokens of its definition."""
    text = _tool_text(tool) if form == MARKDOWN else _encode(_tool_shape(tool, form))
    return replace(tool, tokens=counter.count(text + _SEPARATOR))


def _tool_shape(tool: ToolDefinition, form: Format) -> dict[str, Any]:
    """Returns a tool's definition as the API takes it."""
    if form == ANTHROPIC:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _tools_text(tools: Sequence[ToolDefinition]) -> str:
    """Returns the tools as a part of a Markdown text."""
    return _SEPARATOR.join([_TOOLS_HEADING, *map(_tool_text, tools)])


_TOOLS_HEADING = "## Tools"


def _tool_text(tool: ToolDefinition) -> str:
    """Returns a tool as Markdown."""
    schema = _encode(tool.schema)
    return f"### {in_one_line(tool.name)}{_SEPARATOR}{tool.description}{_SEPARATOR}```json\n{schema}\n```"


def _parts(sections: Sequence[Section]) -> tuple[list[Section], list[Section], list[Section]]:
    """Returns the instructions, the other sections that do not change, and those that do."""
    first, others = list[Section](), list[Section]()
    for section in sections:
        rules = section.mode in {HIERARCHICAL, CONSTRAINT} and not section.reference
        (first if rules and _volatility(section) == 0 else others).append(section)
    others.sort(key=_volatility)
    stable = [section for section in others if _volatility(section) == 0]
    return first, stable, others[len(stable) :]


def _volatility(section: Section) -> int:
    return _VOLATILITY.get(section.source, 0)


def _join_parts(parts: Sequence[Section | str]) -> str:
    return _SEPARATOR.join(_blocks(parts))


def _blocks(parts: Sequence[Section | str]) -> Iterator[str]:
    """Yields the blocks of a text; reference material of one heading stands under it together."""
    for above, group in groupby(parts, key=lambda part: "" if isinstance(part, str) else lead(part)):
        if above:
            yield above
        yield from (part if isinstance(part, str) else render_section(part) for part in group)


def _messages(system: str, user: str) -> Iterator[Message]:
    if system:
        yield Message(role="system", content=system)
    if user:
        yield Message(role="user", content=user)


def _prefix(texts: Sequence[str], tools: Sequence[dict[str, Any]], counter: TokenCounter) -> Prefix:
    encoded = "".join(texts).encode(errors="replace")
    digest = hashlib.blake2b(_encode(tools).encode() + encoded, digest_size=DIGEST_BYTES).hexdigest()
    tokens = sum(map(counter.count, texts))
    return Prefix(bytes=len(encoded), tokens=tokens, digest=digest if encoded or tools else "")


def _encode(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


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
    room = _TokenRoom(budget, allocation, counter)
    kept = _protected_parts(parts, room, budget)
    cuts: list[ShortenedPart] = []
    for place, value in _by_value(parts, allocation):
        part, available = parts[place], room.available(parts[place])
        fitting = part if part.tokens <= available else shorten_section(part, available, counter)
        if fitting is not None:
            kept[place] = fitting
            room.take(fitting)
        if fitting is not part:
            reason = f"worth {value:.2f}; {max(0, available):,} tokens were left for it"
            cuts.append(cut_of(part, fitting, reason))
    found = [kept[place] for place in sorted(kept)]
    return replace(
        representation,
        sections=tuple(part for part in found if isinstance(part, Section)),
        tools=tuple(part for part in found if isinstance(part, ToolDefinition)),
        cuts=(*representation.cuts, *cuts),
    )


def _protected_parts(parts: Sequence[Part], room: "_TokenRoom", budget: int) -> dict[int, Part]:
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


def cut_of(part: Part, fitting: Part | None, reason: str) -> ShortenedPart:
    """Returns what was cut of a part, of which `fitting` is left."""
    after = 0 if fitting is None else fitting.tokens
    return ShortenedPart(
        id=part.id, label=part.label, source=part.source, before=part.tokens, after=after, reason=reason
    )


class _TokenRoom:
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
        return 0 if not above or above in self._leads else self._counter.count(above + _SEPARATOR)

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


class Impact(Struct, frozen=True, kw_only=True):
    """The loss if a section were left out."""

    tokens: int
    share: float
    """Share of the representation's tokens."""
    information: float
    """Share of the representation's words that no other section has."""
    worth: float
    """Priority × relevance × recency."""


class ContextComparison(Struct, frozen=True, kw_only=True):
    """The contribution of each section of a representation, and how like another one it is."""

    impacts: Mapping[str, Impact]
    """By the ids of the sections."""
    similarity: float | None = None
    """0 to 1; None without another representation."""
    equivalent: bool | None = None


def estimate_impact(representation: Representation) -> Mapping[str, Impact]:
    """Returns for each section, by its id, the loss if it were left out; sections of one id go together."""
    groups = defaultdict[str, list[Section]](list)
    for section in representation.sections:
        groups[section.id].append(section)
    words = {
        name: frozenset(word for section in sections for word in content_words(section.content))
        for name, sections in groups.items()
    }
    holders = Counter(word for own in words.values() for word in own)
    total = max(1, representation.total_tokens)
    impacts = dict[str, Impact]()
    for name, sections in groups.items():
        tokens = sum(section.tokens for section in sections)
        impacts[name] = Impact(
            tokens=tokens,
            share=tokens / total,
            information=sum(holders[word] == 1 for word in words[name]) / max(1, len(holders)),
            worth=max(section.worth for section in sections),
        )
    return impacts


def similarity(first: Representation, second: Representation) -> float:
    """Returns how alike two representations are, 0 to 1: 1 for the same contents in the same order.

    It is the cosine of their mean embeddings where each section has one, else the share of their word runs that both
    have.
    """
    if [item.content_hash for item in first.sections] == [item.content_hash for item in second.sections]:
        return 1.0
    means = _mean(first.sections), _mean(second.sections)
    if means[0] and len(means[0]) == len(means[1]):
        return likeness(*means)
    texts = ["\n".join(section.content for section in item.sections) for item in (first, second)]
    return resemblance(shingles(texts[0]), shingles(texts[1]))


def likeness(one: Iterable[float], other: Iterable[float]) -> float:
    """Returns the cosine of two vectors of one length, 0 to 1."""
    first, second = [[float(value) for value in vector] for vector in (one, other)]
    lengths = math.hypot(*first) * math.hypot(*second)
    return min(1.0, max(0.0, sum(map(operator.mul, first, second)) / lengths)) if lengths else 0.0


def _mean(sections: Sequence[Section]) -> list[float]:
    """Returns the mean of the sections' embeddings; empty if one has none, or of another length."""
    rows = [section.embedding or () for section in sections]
    return [sum(values) for values in zip(*rows, strict=True)] if len(set(map(len, rows))) == 1 else []
