"""The request for a context: checked, and without secrets. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from app.errors import check
from app.foundation.safety.secrets import masked_values
from app.recall.context.compile import ANTHROPIC, OPENAI, Format
from app.recall.context.representation import (
    ADDITIVE,
    CRITICAL,
    GIVEN,
    HIERARCHICAL,
    OBSERVATION,
    Allocation,
    Budget,
    Mode,
    Priority,
    Representation,
    Section,
    ToolDefinition,
)
from app.recall.context.store import Template
from app.storage.memories.gate import BODY_LIMIT, NAME_LIMIT, moment_reasons, unstorable

LARGEST_BUDGET = 1_000_000
LARGEST_WINDOW, LARGEST_LIMIT = 200, 200
MOST_SECTIONS, MOST_TOOLS, MOST_TEMPLATES = 2_000, 200, 20
LABEL_LIMIT, EMBEDDING_LIMIT = 1_000, 16_000
T = TypeVar("T")


class Strategy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choice of what a context is hydrated with."""

    temporal_window: int = 10
    """Most turns of the session, its latest ones."""
    semantic_limit: int = 8
    """Most related memories of each of the sources `semantic` and `knowledge`."""
    min_probability: float | None = None
    """Least probability that a related memory speaks to the request; None for the ranking's own thresholds."""
    recency_decay: float = 0.998
    """Share of its recency that a memory keeps from one day to the next: with 0.998 it has half of it after a year."""
    include_knowledge: bool = True
    include_cues: bool = True


class GivenSection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section that the caller gives."""

    id: str
    content: str
    label: str = ""
    source: str = GIVEN
    priority: Priority = "high"
    mode: Mode = ADDITIVE
    relevance: float = 1.0
    recency: float = 1.0
    min_tokens: int = 0
    reference: bool = False

    def section(self) -> Section:
        """Returns it as a part of a representation."""
        return Section(**{name: getattr(self, name) for name in self.__struct_fields__})


class GivenTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that the caller gives."""

    name: str
    description: str = ""
    schema: dict[str, object] = field(default_factory=lambda: {"type": "object", "properties": {}})
    priority: Priority = "high"


class CallState(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The circumstances of a call."""

    project: str = ""
    """If empty, the workspace's name."""
    user: str = ""
    now: datetime | None = None
    """If None, the present."""


class ContextRequest(Struct, frozen=True, kw_only=True):
    """A request for a context."""

    observation: str
    """The latest input: what the agent is asked, or has just seen."""
    goal: str = ""
    strategy: Strategy = Strategy()
    budget: Budget = Budget()
    sections: tuple[GivenSection, ...] = ()
    templates: tuple[str, ...] = ()
    """Names of the workspace's templates, in the order in which they lead."""
    tools: tuple[GivenTool, ...] = ()
    state: CallState | None = CallState()
    """None leaves it out."""
    session: str = ""
    run_id: str | None = None
    agent: str | None = None
    model: str = ""
    """The model that reads the context, by which tokens are counted; empty: the embedding model."""
    format: Format | None = None
    """If None, the one that the model's API takes."""

    @property
    def query(self) -> str:
        """The text by which memories and cues are found."""
        return "\n".join(part for part in (self.goal, self.observation) if part.strip())

    @property
    def form(self) -> Format:
        """The format of the compiled context."""
        return self.format or (ANTHROPIC if "claude" in self.model.lower() else OPENAI)

    def given_parts(self) -> Representation:
        """Returns the parts that the caller gives, not counted yet."""
        goal = Section(id="goal", label="Goal", content=self.goal, mode=HIERARCHICAL, priority=CRITICAL)
        return Representation(
            sections=(*(item.section() for item in self.sections), *([goal] if self.goal.strip() else [])),
            tools=tuple(msgspec.convert(item, ToolDefinition, from_attributes=True) for item in self.tools),
        )

    def observation_section(self) -> Section:
        """Returns the observation as the last section."""
        return Section(
            id="observation",
            label="Observation",
            content=self.observation,
            source=OBSERVATION,
            mode="contextual",
            priority=CRITICAL,
        )


def check_request(request: ContextRequest) -> ContextRequest:
    """Returns the request.

    Raises:
        InvalidInput: a field cannot be taken.
    """
    check(list(islice(_reasons(request), 1)))
    return request


def without_secrets(value: T) -> T:
    """Returns a request or a template with its secrets masked."""
    plain = msgspec.to_builtins(value)
    masked = masked_values(plain)
    return value if masked is plain else msgspec.convert(masked, type(value))


def _reasons(request: ContextRequest) -> Iterator[str]:
    if not request.observation.strip():
        yield "observation: is empty; say what the agent is asked, or has just seen"
    yield from _too_long({"observation": request.observation, "goal": request.goal}, BODY_LIMIT)
    names = {"session": request.session, "run_id": request.run_id, "agent": request.agent, "model": request.model}
    yield from _too_long({name: value or "" for name, value in names.items()}, LABEL_LIMIT)
    yield from _too_long({"run_id": request.run_id or "", "agent": request.agent or ""}, NAME_LIMIT)
    yield from budget_reasons(request.budget)
    yield from _strategy_reasons(request.strategy)
    yield from _too_many(templates=(request.templates, MOST_TEMPLATES))
    if request.state is not None:
        yield from moment_reasons([("state.now", request.state.now)])
    yield from part_reasons(request.given_parts())
    yield from unstorable(msgspec.to_builtins(request))


def budget_reasons(budget: Budget) -> Iterator[str]:
    """Yields the reasons why a budget cannot be taken."""
    if not 1 <= budget.total <= LARGEST_BUDGET:
        yield f"budget.total: must be from 1 to {LARGEST_BUDGET:,}"
    if not 0 <= budget.reserve_ratio < 1:
        yield "budget.reserve_ratio: must be from 0 to below 1"
    if isinstance(budget.allocation, Allocation):
        shares = [getattr(budget.allocation, name) for name in budget.allocation.__struct_fields__]
        if any(not 0 <= share <= 1 for share in shares) or sum(shares) > 1 + 1e-9:
            yield "budget.allocation: has shares from 0 to 1 whose sum is at most 1"


def part_reasons(representation: Representation) -> Iterator[str]:
    """Yields the reasons why sections or tools that came from outside cannot be taken."""
    sections, tools = representation.sections, representation.tools
    yield from _too_many(sections=(sections, MOST_SECTIONS), tools=(tools, MOST_TOOLS))
    for item in sections:
        yield from _too_long({"sections.content": item.content}, BODY_LIMIT)
        yield from _too_long({"sections.id": item.id, "sections.label": item.label}, LABEL_LIMIT)
        yield from _too_long({"sections.source": item.source}, NAME_LIMIT)
        if not 0 <= item.relevance <= 1 or not 0 <= item.recency <= 1:
            yield "sections: relevance and recency are from 0 to 1"
        if item.min_tokens < 0:
            yield "sections.min_tokens: must be 0 or more"
        if len(item.embedding or ()) > EMBEDDING_LIMIT:
            yield f"sections.embedding: has more than {EMBEDDING_LIMIT:,} numbers"
    for tool in tools:
        yield from _too_long({"tools.name": tool.name}, NAME_LIMIT)
        yield from _too_long({"tools.description": tool.description}, BODY_LIMIT)


def template_reasons(template: Template) -> Iterator[str]:
    """Yields the reasons why a template cannot be taken."""
    if not template.name.strip() or len(template.name) > NAME_LIMIT:
        yield f"name: has 1 to {NAME_LIMIT} characters"
    if not template.content.strip() or len(template.content) > BODY_LIMIT:
        yield f"content: has 1 to {BODY_LIMIT:,} characters"
    if len(template.label) > LABEL_LIMIT:
        yield f"label: has more than {LABEL_LIMIT:,} characters"
    yield from unstorable({"name": template.name, "content": template.content, "label": template.label})


def _strategy_reasons(strategy: Strategy) -> Iterator[str]:
    if not 0 <= strategy.temporal_window <= LARGEST_WINDOW:
        yield f"strategy.temporal_window: must be from 0 to {LARGEST_WINDOW}"
    if not 0 <= strategy.semantic_limit <= LARGEST_LIMIT:
        yield f"strategy.semantic_limit: must be from 0 to {LARGEST_LIMIT}"
    if strategy.min_probability is not None and not 0 <= strategy.min_probability <= 1:
        yield "strategy.min_probability: must be from 0 to 1"
    if not 0 < strategy.recency_decay <= 1:
        yield "strategy.recency_decay: must be above 0 and at most 1"


def _too_long(texts: dict[str, str], most: int) -> Iterator[str]:
    for name, text in texts.items():
        if len(text) > most:
            yield f"{name}: has {len(text):,} characters; at most {most:,} are taken"


def _too_many(**given: tuple[Sequence[object], int]) -> Iterator[str]:
    for name, (items, most) in given.items():
        if len(items) > most:
            yield f"{name}: has {len(items):,} items; at most {most:,} are taken"
