"""The fields that each tool takes, and the texts that tools and resources give, within a budget of tokens. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import quote
from uuid import UUID

from msgspec import Meta, Struct
from priors_client.entries import CONTEXT_LIMIT

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import FRAME
from app.intake.sessions.store import StoredMessage
from app.interfaces.http.cues import Path
from app.interfaces.http.judging import RatingInput
from app.interfaces.http.retrieval import QueryText
from app.recall.context.blocks import fence_around
from app.recall.context.representation import Text
from app.recall.context.request import Id
from app.recall.cues.activate import PLAN_LIMIT
from app.recall.cues.learn import Lesson
from app.recall.retrieval.recall import Hit
from app.storage.memories.memory import BODY_LIMIT, TITLE_LIMIT, Kind, Name, Tags
from app.storage.tenants.workspace import User

_MOST_IDS = 20

Budget = Annotated[int, Meta(ge=100, le=10_000)]
RunId = Annotated[Name, Meta(description="id of your pipeline run")]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=_MOST_IDS, description="ids of memories")]


_WhichUser = Annotated[
    User,
    Meta(description="id of the end user you act for, if any"),
]


class OfUser(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields that every tool takes."""

    user: _WhichUser = ""


class _OfAgent(OfUser, kw_only=True):
    agent: Annotated[Name, Meta(description="your role: `researcher`")] = ""
    run_id: RunId = ""


class HistoryAsked(_OfAgent):
    """A query to start with history."""

    query: Annotated[QueryText, Meta(description="what you are to do, in its own words")]
    k: Annotated[int, Meta(ge=1, le=10, description="most memories, up to 10")] = 3
    budget_tokens: Budget = 500


class PlanGiven(_OfAgent):
    """An act that is about to be done."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="what you will do, and how")]
    files: Annotated[list[Path], Meta(max_length=100, description="files that it touches")] = []
    budget_tokens: Budget = 400
    min_score: Annotated[float, Meta(ge=0, le=1, description="least probability of a lesson")] | None = None


class PlanChecked(_OfAgent):
    """A plan of several steps."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="the plan, as a list of steps")]
    task_type: Name = ""
    files: Annotated[list[Path], Meta(max_length=100)] = []
    budget_tokens: Budget = 400


class MemoryGiven(OfUser):
    """A memory to keep."""

    body: Annotated[str, Meta(min_length=1, max_length=BODY_LIMIT, description="what to keep; it must stand alone")]
    title: Annotated[str, Meta(max_length=TITLE_LIMIT)] = ""
    context: Annotated[str, Meta(max_length=CONTEXT_LIMIT, description="how you learnt it")] = ""
    tags: Tags = ()
    run_id: RunId = ""


class LessonGiven(Lesson, frozen=True, kw_only=True):
    """A lesson of this session."""

    user: _WhichUser = ""


class RecallAsked(OfUser):
    """A query for a list, or the ids of a list for whole texts."""

    query: Annotated[QueryText, Meta(description="what to look for; gives a list")] | None = None
    ids: Annotated[Ids, Meta(description="gives these memories whole")] | None = None
    kinds: list[Kind] = []
    tags: Tags = ()
    since: datetime | None = None
    until: datetime | None = None
    k: Annotated[int, Meta(ge=1, le=50, description="most memories, up to 50")] = 10
    budget_tokens: Budget = 1_000


class ForgetAsked(OfUser):
    """Memories to forget."""

    ids: Ids


class RatingGiven(RatingInput, frozen=True, kw_only=True):
    """A rating of a memory."""

    user: _WhichUser = ""
    id: UUID
    rating: Annotated[Literal[1, -1], Meta(extra_json_schema={"type": "integer"})]


class WhyAsked(OfUser):
    """A subject, or a file and a part of it."""

    subject: Annotated[str, Meta(description="a question, or a subject such as `API versioning`")] = ""
    path: Annotated[str, Meta(description="or a file, by the end of its path")] = ""
    symbol: Annotated[str, Meta(description="or a function or section, in `path` or alone")] = ""
    budget_tokens: Budget = 400


class ContextAsked(_OfAgent):
    """An observation to make a context for."""

    observation: Annotated[Text, Meta(min_length=1, description="what you are asked, or have just seen")]
    goal: Text = ""
    session: Annotated[Id | None, Meta(description="the id of the session whose latest turns belong to it")] = None
    budget_tokens: Annotated[int, Meta(ge=200, le=100_000)] = 2_000


_SNIPPET = 100
"""Most characters of a text's beginning in a list."""
ID_TOKENS = 30
"""Most tokens of an id in an answer: 26 to 30 were counted in random ones."""
HELD_BACK = "held back until a person releases it"
NAMED = "Ids, in this order: "
MEMORY, SESSION = "priors://memories/", "priors://sessions/"


def memory_uri(memory_id: UUID) -> str:
    """Returns the address of a memory as a resource."""
    return f"{MEMORY}{memory_id}"


def session_uri(session_id: str, start: int = 0) -> str:
    """Returns the address of a session as a resource, from a turn on."""
    return f"{SESSION}{quote(session_id, safe='')}" + (f"?from={start}" if start else "")


def ids_line(ids: Sequence[UUID]) -> str:
    """Returns the line that names memories, for a rating or a question for their whole text."""
    return NAMED + ", ".join(map(str, ids)) if ids else ""


def within(lines: Sequence[str], budget: int, counter: TokenCounter) -> int:
    """Returns the number of lines, from the first on, that have at most `budget` tokens together."""
    used = 0
    for place, count in enumerate(counter.count_many(lines)):
        used += count
        if used > budget:
            return place
    return len(lines)


def shorten(text: str, budget: int, counter: TokenCounter) -> str:
    """Returns the first lines of a text that fit into a budget, and the number of those that are left out."""
    if counter.count(text) <= budget:
        return text
    lines = text.split("\n")
    note = "… {} more lines: ask again with a larger budget_tokens."
    kept = within(lines, budget - counter.count(note.format(len(lines))), counter)
    return "\n".join([*lines[:kept], note.format(len(lines) - kept)])


def in_fence(heading: str, lines: Iterable[str]) -> str:
    """Returns lines of stored text in a fence that none of them closes, below the sentence that they are data."""
    body = "\n".join(lines)
    fence = fence_around(body)
    return f"{heading}\n\n{FRAME}\n\n{fence}\n{body}\n{fence}"


def fenced_tokens(heading: str, counter: TokenCounter) -> int:
    """Returns the tokens of `fenced` beside its lines."""
    return counter.count(in_fence(heading, ()))


def hit_line(hit: Hit) -> str:
    """Returns a hit's line in a list: its id, kind, date, cost and beginning, without the text of a suspect one.

    A long one begins with its nearest passage, after the passage's number.
    """
    memory, (start, _) = hit.memory, hit.passage or (0, 0)
    score = "" if memory.final_score is None else f"score {memory.final_score:.1f}/10"
    number = f"passage {hit.explain['passage']} of {hit.explain['passages']}" if hit.passage else ""
    said = HELD_BACK if memory.suspect else _beginning(hit.title, hit.body[start:])
    tokens = f"{memory.tokens} tokens"
    return _line(str(memory.memory_id), memory.kind, _day(memory.occurred_at), score, tokens, number, said)


def turn_line(message: StoredMessage, tokens: int) -> str:
    """Returns a turn's line in a list: its place, role, time, id, cost and beginning, without a suspect one's text."""
    at = "" if message.at is None else f"{message.at:%Y-%m-%d %H:%M}"
    used = f"used {', '.join(dict.fromkeys(tool.name for tool in message.tools))}" if message.tools else ""
    said = HELD_BACK if message.suspect else _beginning("", message.text)
    return _line(f"{message.ordinal} {message.role}", at, str(message.memory_id), f"{tokens} tokens", used, said)


def _line(*parts: str) -> str:
    return "- " + " · ".join(part for part in parts if part)


def _day(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def _beginning(title: str, body: str) -> str:
    text = " ".join(f"{title} — {body}".split() if title else body[: 2 * _SNIPPET].split())
    return text if len(text) <= _SNIPPET else f"{text[:_SNIPPET].rstrip()} …"
