"""The representation of a context: its labelled sections and tools, as data. Immutable, and JSON both ways."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from app.storage.memories.memory import BODY_LIMIT

Priority: TypeAlias = Literal["critical", "high", "medium", "low"]
Mode: TypeAlias = Literal["hierarchical", "constraint", "additive", "contextual"]
CRITICAL: Priority = "critical"
HIERARCHICAL: Mode = "hierarchical"
CONSTRAINT: Mode = "constraint"
ADDITIVE: Mode = "additive"
CONTEXTUAL: Mode = "contextual"
MODES: Sequence[Mode] = (HIERARCHICAL, CONSTRAINT, ADDITIVE, CONTEXTUAL)
"""The composition modes in the order in which their sections stand."""
_WEIGHTS: Mapping[Priority, float] = MappingProxyType({"critical": 1.0, "high": 1.0, "medium": 0.6, "low": 0.3})
"""Worth of a priority. A critical part is never cut, so its own weight decides nothing."""
GIVEN, TEMPORAL, SEMANTIC = "given", "temporal", "semantic"
KNOWLEDGE, CUES, STATE, OBSERVATION, TOOL = "knowledge", "cues", "state", "observation", "tool"
DIGEST_BYTES = 16
LARGEST_BUDGET = 1_000_000
LABEL_LIMIT = 1_000
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=BODY_LIMIT)]
Label: TypeAlias = Annotated[str, msgspec.Meta(max_length=LABEL_LIMIT)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Provenance(Struct, frozen=True, kw_only=True):
    """The origin of a section beyond its source's name."""

    memory_ids: tuple[UUID, ...] = ()
    recall_id: UUID | None = None
    activation_id: UUID | None = None
    session: str = ""


class Section(Struct, frozen=True, kw_only=True):
    """A labelled part of a prompt."""

    id: str
    content: str
    label: str = ""
    """The line above it; reference material has it inside its fence."""
    source: str = GIVEN
    provenance: Provenance = Provenance()
    tokens: int = 0
    """Tokens of the section as it is rendered, with its label and its fence."""
    min_tokens: int = 0
    """Tokens to which it may be shortened; below them it is dropped."""
    priority: Priority = "medium"
    relevance: float = 1.0
    """0 to 1."""
    recency: float = 1.0
    """0 to 1."""
    mode: Mode = ADDITIVE
    reference: bool = False
    """True for material that is read and not obeyed: it stands in a fence."""
    embedding: tuple[float, ...] | None = None
    content_hash: str = ""
    """Hash of the content; always computed from it."""

    def __post_init__(self) -> None:
        """Computes the hash, whatever was given."""
        digest = hashlib.blake2b(self.content.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES)
        force_setattr(self, "content_hash", digest.hexdigest())

    @property
    def worth(self) -> float:
        """Priority × relevance × recency, 0 to 1: what is worth least is cut first."""
        return _WEIGHTS[self.priority] * self.relevance * self.recency

    @property
    def is_protected(self) -> bool:
        """True if it is never cut."""
        return self.priority == CRITICAL or self.mode == CONSTRAINT


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool that the model may call."""

    name: str
    description: str = ""
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON schema of its arguments."""
    tokens: int = 0
    priority: Priority = "high"
    embedding: tuple[float, ...] | None = None
    relevance: float = 1.0
    """Likeness of its embedding and the request, 0 to 1."""

    @property
    def id(self) -> str:
        """The name, which is its id among the parts."""
        return self.name

    @property
    def label(self) -> str:
        """The name."""
        return self.name

    @property
    def source(self) -> str:
        """The source of all tools."""
        return TOOL

    @property
    def worth(self) -> float:
        """Priority × relevance."""
        return _WEIGHTS[self.priority] * self.relevance

    @property
    def is_protected(self) -> bool:
        """True if it is never cut."""
        return self.priority == CRITICAL


Part: TypeAlias = Section | ToolDefinition


class ShortenedPart(Struct, frozen=True, kw_only=True):
    """A part that was shortened or dropped."""

    id: str
    label: str
    source: str
    before: int
    """Tokens of the part before."""
    after: int
    """Tokens of what is left; 0 where it was dropped."""
    reason: str


class Allocation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Largest shares of the budget for instructions and tools, for what is hydrated, and for the observation."""

    system: Share = 0.25
    context: Share = 0.55
    observation: Share = 0.2


class Budget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tokens that the final bytes may have."""

    total: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_BUDGET)] = 4_000
    reserve_ratio: Annotated[float, msgspec.Meta(ge=0, lt=1, description="share that stays free for the answer")] = 0.15
    allocation: Annotated[
        Allocation | Literal["information", "relevance"],
        msgspec.Meta(
            description="shares for instructions, for what is hydrated, and for the observation; or one room for all:"
            " by relevance, or by relevance and what a section alone says"
        ),
    ] = "relevance"

    @property
    def usable(self) -> int:
        """Tokens that the context may have."""
        return int(self.total * (1 - self.reserve_ratio))


class Meta(Struct, frozen=True, kw_only=True):
    """The facts of a representation that its sections do not tell."""

    budget: Budget | None = None
    strategy: dict[str, Any] | None = None
    created_at: datetime | None = None
    cache_hit: bool | None = None
    """True if an earlier context of its run had its cacheable prefix, for the same model; None without a run."""

    def over(self, other: "Meta") -> "Meta":
        """Returns these facts; one that is unknown comes from the other."""
        pairs = {name: getattr(self, name) for name in self.__struct_fields__}
        return Meta(**{name: getattr(other, name) if value is None else value for name, value in pairs.items()})


class Representation(Struct, frozen=True, kw_only=True):
    """A context before it is compiled. Sections stand in the order of their modes, tools and additive ones once."""

    sections: tuple[Section, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    cuts: tuple[ShortenedPart, ...] = ()
    meta: Meta = Meta()

    def __post_init__(self) -> None:
        """Brings sections and tools into their normal form."""
        force_setattr(self, "sections", tuple(_order_sections(self.sections)))
        first: dict[str, ToolDefinition] = {}
        for tool in self.tools:
            first.setdefault(tool.name, tool)
        force_setattr(self, "tools", tuple(first.values()))

    @property
    def total_tokens(self) -> int:
        """Tokens of its parts, without the lines around them."""
        return sum(section.tokens for section in self.sections) + sum(tool.tokens for tool in self.tools)

    @property
    def compression_ratio(self) -> float:
        """Tokens of its parts by the tokens that they had before anything was cut; 1 for an empty one."""
        before = self.total_tokens + sum(cut.before - cut.after for cut in self.cuts)
        return self.total_tokens / before if before else 1.0


def _order_sections(sections: Iterable[Section]) -> list[Section]:
    """Returns the sections by their modes, each additive content once."""
    by_mode: dict[Mode, list[Section]] = {mode: [] for mode in MODES}
    seen: set[str] = set()
    for section in sections:
        if section.mode == ADDITIVE:
            if section.content_hash in seen:
                continue
            seen.add(section.content_hash)
        by_mode[section.mode].append(section)
    return [section for mode in MODES for section in by_mode[mode]]


EMPTY = Representation()
