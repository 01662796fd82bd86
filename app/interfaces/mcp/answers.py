"""Renders memories, turns and sessions within a budget of tokens; lists state the cost of each item. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import quote
from uuid import UUID

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.pieces import FRAME
from app.intake.sessions.store import StoredMessage
from app.recall.context.blocks import fence_around
from app.recall.retrieval.recall import Hit

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
