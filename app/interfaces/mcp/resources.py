"""Memories and sessions as resources, and the prompts. A session is a list of turns; a turn's text is a memory's."""

from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

from mcp_types import Prompt, PromptArgument, PromptMessage, Resource, ResourceTemplate, TextContent

from app.errors import InvalidInput
from app.foundation.text.pieces import FRAME
from app.intake.sessions.browse import list_sessions, session_from
from app.interfaces.http.context import Call
from app.interfaces.mcp.answers import (
    MEMORY,
    SESSION,
    fenced_tokens,
    in_fence,
    memory_uri,
    session_uri,
    turn_line,
    within,
)
from app.interfaces.mcp.tools import readable
from app.recall.context.blocks import SourceBlock, whole_text
from app.recall.retrieval.recall import Hit, Query
from app.storage.memories.memory import NAME_LIMIT
from app.storage.memories.service import get_memory, list_memories

MARKDOWN = "text/markdown"
_LISTED = 50
"""Most memories, and most sessions, in the list of resources: the latest. The templates reach the others."""
_SESSION_TOKENS = 2_000
"""Most tokens of a page of a session's turns."""
_SESSION_TURNS = 80
"""Turns that are read for a page: the id in each line has 26 tokens or more, so that fewer fit."""
_MOST_DIGITS = 9
"""Digits of a turn's number, which the database keeps in 32 bits."""
PROMPT_TOKENS = 900
"""Most tokens of the history and the lessons in a prompt."""
START = "start_with_history"

TEMPLATES = [
    ResourceTemplate(
        uri_template=f"{MEMORY}{{id}}",
        name="memory",
        title="A memory",
        description="the whole text of a memory, by an id that an answer or a list names",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        uri_template=f"{SESSION}{{session}}{{?from}}",
        name="session",
        title="A session",
        description="a session's turns from one on, one line each with the turn's id and its cost in tokens",
        mime_type=MARKDOWN,
    ),
]
PROMPTS = [
    Prompt(
        name=START,
        title="Start with history",
        description="What you are to do, with what earlier work found on it and what was learnt about acts like it.",
        arguments=[
            PromptArgument(name="query", description="what you are to do, in its own words", required=True),
            PromptArgument(name="agent", description="your role, such as `researcher`"),
        ],
    )
]


async def list_resources(call: Call) -> list[Resource]:
    """Returns the latest sessions and memories, each with its cost."""
    tenant = await call.tenant()
    sessions = await list_sessions(call.database, workspace=tenant, limit=_LISTED)
    memories = await list_memories(call.database, workspace=tenant, limit=_LISTED)
    return [
        *(
            Resource(
                uri=session_uri(found.session_id),
                name=found.title or found.session_id,
                description=f"session of {found.turns} turns",
                mime_type=MARKDOWN,
            )
            for found in sessions
        ),
        *(
            Resource(
                uri=memory_uri(found.memory_id),
                name=found.title or found.kind,
                description=f"{found.kind}, {found.tokens} tokens",
                mime_type=MARKDOWN,
            )
            for found in memories
            if not found.suspect
        ),
    ]


async def read(call: Call, uri: str) -> str:
    """Returns the Markdown of a resource.

    Raises:
        InvalidInput: no resource has such an address.
        NotFound: the workspace has no such memory or session.
    """
    name = unquote(urlsplit(uri).path.removeprefix("/"))
    if uri.startswith(MEMORY):
        return await _memory(call, name)
    if uri.startswith(SESSION):
        return await _session(call, name, parse_qs(urlsplit(uri).query).get("from", ["0"])[0])
    raise InvalidInput("uri", f"is none of this server's: they begin with {MEMORY} or {SESSION}")


async def _memory(call: Call, name: str) -> str:
    try:
        memory_id = UUID(name)
    except ValueError:
        raise InvalidInput("uri", f"{name!r} is not the id of a memory") from None
    found = await get_memory(call.database, workspace=await call.tenant(), memory_id=memory_id)
    hit = Hit(memory=readable(found), score=0, explain={})
    return f"{FRAME}\n\n{SourceBlock([whole_text(hit)]).markdown()}"


async def _session(call: Call, name: str, given: str) -> str:
    if not given.isdecimal() or len(given) > _MOST_DIGITS:
        raise InvalidInput("uri", f"`from` is the number of a turn, and not {given[:NAME_LIMIT]!r}")
    counter = call.services.counter
    session, turns = await session_from(
        call.database,
        workspace=await call.tenant(),
        session_id=name,
        start=int(given),
        count=_SESSION_TURNS,
        masked=call.settings.mask_secrets,
    )
    costs = counter.count_many([turn.text for turn in turns])
    lines = [turn_line(turn, cost) for turn, cost in zip(turns, costs, strict=True)]
    heading = f"# Session {' '.join(session.title.split())}"
    kept = max(1, within(lines, _SESSION_TOKENS - fenced_tokens(heading, counter), counter))
    page = in_fence(heading, lines[:kept])
    if kept >= len(turns):
        return page
    return f"{page}\n\nThe next turns: {session_uri(name, turns[kept].ordinal)}"


async def start_with_history(call: Call, query: str, agent: str) -> list[PromptMessage]:
    """Returns what is to be done below its history and the lessons that it fires.

    Raises:
        InvalidInput: the query is empty or too long.
    """
    asked = Query(text=query, k=3, agent=agent or None, purpose="history")
    found, activation = await call.services.histories.with_cues(await call.tenant(), asked, budget_tokens=PROMPT_TOKENS)
    call.note_recall(found.recall)
    parts = (found.markdown, activation.markdown, f"## Task\n\n{query}")
    text = "\n\n".join(part.strip() for part in parts if part)
    return [PromptMessage(role="user", content=TextContent(text=text))]
