"""Compiles a representation to messages of chat APIs or to Markdown. Pure: the same input gives the same bytes."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.pieces import FRAME, HEADING
from app.foundation.text.words import in_one_line
from app.recall.context.blocks import fence_text
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
    Representation,
    Section,
    ToolDefinition,
)

Format: TypeAlias = Literal["openai", "anthropic", "markdown"]
OPENAI: Format = "openai"
ANTHROPIC: Format = "anthropic"
MARKDOWN: Format = "markdown"
MESSAGE_TOKENS, REPLY_TOKENS = 4, 3
"""Tokens of the frame that chat APIs put around a message, and around the answer's beginning (the OpenAI cookbook's
count: three a message and one for its role)."""
SEPARATOR = "\n\n"
MARKS = re.compile(r"^#{1,6}(\s+|$)")
"""The marks of a label that is a Markdown heading already."""
HEADINGS: Mapping[str, str] = MappingProxyType(
    {KNOWLEDGE: HEADING, SEMANTIC: HEADING, TEMPORAL: "## Recent Turns"},
)
"""The heading above the reference material of a source."""
OTHER_HEADING = "## Reference"
VOLATILITY: Mapping[str, int] = MappingProxyType(
    {KNOWLEDGE: 1, SEMANTIC: 1, TEMPORAL: 2, CUES: 3, STATE: 4, OBSERVATION: 5},
)
"""The place of a source's sections: what changes with each call stands last. Other sources do not change: 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a chat API."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The beginning of the compiled bytes that does not change while the stable sections and the tools do not."""

    bytes: int
    tokens: int
    digest: str
    """Hash of the tools and of the prefix; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A context as a model takes it."""

    format: Format
    messages: tuple[Message, ...]
    """Empty for Markdown."""
    system: str | None
    """The system prompt where the API takes it beside the messages; else None."""
    markdown: str | None
    """The whole text; None for messages."""
    tool_definitions: tuple[dict[str, Any], ...]
    """The tools in the API's shape; empty for Markdown, which has them in its text."""
    tokens: int
    """Tokens of all of it, counted on the final bytes, with the frames of the messages."""
    prefix: Prefix


def compile_representation(representation: Representation, form: Format, counter: TokenCounter) -> Compiled:
    """Returns the representation as messages or Markdown: instructions, then what is stable, then what changes."""
    tools = representation.tools
    first, stable, volatile = _parts(representation.sections)
    listed = [tools_text(tools)] if form == MARKDOWN and tools else []
    system, begun = _join_parts([*listed, *first]), _join_parts(stable)
    texts = [text for text in (system, begun) if text]
    user = SEPARATOR.join(filter(None, (begun, _join_parts(volatile))))
    markdown = SEPARATOR.join(filter(None, (system, user))) + "\n" if form == MARKDOWN and (system or user) else ""
    shaped = () if form == MARKDOWN else tuple(tool_shape(tool, form) for tool in tools)
    tokens = sum(counter.count(_encode(tool)) for tool in shaped)
    if form == MARKDOWN:
        tokens += counter.count(markdown)
    else:
        tokens += sum(counter.count(text) + MESSAGE_TOKENS for text in (system, user) if text)
        tokens += REPLY_TOKENS if system or user else 0
    return Compiled(
        format=form,
        messages=() if form == MARKDOWN else tuple(_messages(system if form == OPENAI else "", user)),
        system=system if form == ANTHROPIC else None,
        markdown=markdown if form == MARKDOWN else None,
        tool_definitions=shaped,
        tokens=tokens,
        prefix=_prefix([SEPARATOR.join(texts)] if form == MARKDOWN else texts, shaped, counter),
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
    return f"## {title}{SEPARATOR}{content}" if title else content


def lead(section: Section) -> str:
    """Returns the lines above the reference material of a section's source; empty for other sections."""
    return f"{HEADINGS.get(section.source, OTHER_HEADING)}{SEPARATOR}{FRAME}" if section.reference else ""


def count_section(section: Section, counter: TokenCounter) -> Section:
    """Returns a section with the tokens that it has as it is rendered."""
    return replace(section, tokens=counter.count(render_section(section) + SEPARATOR))


def counted_tool(tool: ToolDefinition, form: Format, counter: TokenCounter) -> ToolDefinition:
    """Returns a tool with the tokens of its definition."""
    text = tool_text(tool) if form == MARKDOWN else _encode(tool_shape(tool, form))
    return replace(tool, tokens=counter.count(text + SEPARATOR))


def tool_shape(tool: ToolDefinition, form: Format) -> dict[str, Any]:
    """Returns a tool's definition as the API takes it."""
    if form == ANTHROPIC:
        return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def tools_text(tools: Sequence[ToolDefinition]) -> str:
    """Returns the tools as a part of a Markdown text."""
    return SEPARATOR.join([TOOLS_HEADING, *map(tool_text, tools)])


TOOLS_HEADING = "## Tools"


def tool_text(tool: ToolDefinition) -> str:
    """Returns a tool as Markdown."""
    schema = _encode(tool.schema)
    return f"### {in_one_line(tool.name)}{SEPARATOR}{tool.description}{SEPARATOR}```json\n{schema}\n```"


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
    return VOLATILITY.get(section.source, 0)


def _join_parts(parts: Sequence[Section | str]) -> str:
    return SEPARATOR.join(_blocks(parts))


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
