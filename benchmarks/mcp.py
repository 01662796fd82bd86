"""The tool `relevant_history` at `/mcp` against `POST /api/history`: the same section, over the same connection."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from app.foundation.models.tokens import BundledTokenCounter
from app.interfaces.mcp.shapes import ID_TOKENS, NAMED
from benchmarks.corpus import Corpus, fill
from benchmarks.figures import Figure, by_size, percentile
from benchmarks.history import HITS, Client
from benchmarks.stage import service, stage, workspace_of

SIZES = (10_000,)
ROUNDS = 300
WARM = 20
"""First answers of each kind that are not counted."""
BUDGET = 500
"""Tokens of a tool's answer; the section has those that the ids leave."""
SECTION = BUDGET - ID_TOKENS * HITS - BundledTokenCounter().count(NAMED)
NEW, OLD = "2026-07-28", "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PLAIN, PRESENT, EARLIER = "history", f"/mcp, {NEW}", f"/mcp, {OLD}"
MOST = 1.15
"""Largest p50 at `/mcp`, as a multiple of the history's."""


def tool_call(query: str, **envelope: object) -> bytes:
    """Returns the message that calls the tool."""
    params = {"name": "relevant_history", "arguments": {"query": query, "budget_tokens": BUDGET}, **envelope}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def asking(client: Client) -> Mapping[str, Callable[[str], bytes]]:
    """Returns the ways to ask a query, by name."""
    new = {**ACCEPT, "mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": "relevant_history"}
    old = {**ACCEPT, "mcp-protocol-version": OLD}
    return {
        PLAIN: lambda query: client.post(
            "/api/history", json.dumps({"query": query, "budget_tokens": SECTION}).encode()
        ),
        PRESENT: lambda query: client.post("/mcp", tool_call(query, _meta=ENVELOPE), **new),
        EARLIER: lambda query: client.post("/mcp", tool_call(query), **old),
    }


def latencies(address: str, workspace: str, queries: Sequence[str]) -> dict[str, list[float]]:
    """Returns milliseconds by way, taken in turn so that the machine's drift falls on all; each query is asked once."""
    client = Client(address, workspace)
    ways = asking(client)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for place, query in enumerate(queries):
        name = list(ways)[place % len(ways)]
        started = time.perf_counter()
        ways[name](query)
        found[name].append((time.perf_counter() - started) * 1000)
    client.close()
    return {name: taken[WARM:] for name, taken in found.items()}


async def measure(size: int, rounds: int) -> list[Figure]:
    """Returns the figures at one size."""
    corpus = Corpus()
    async with stage() as services:
        workspace = await workspace_of(services, "benchmark")
        await fill(services, corpus, workspace, size)
        with service(replace(services.settings, embedded_worker=False)) as (address, _):
            queries = corpus.queries(3 * (rounds + WARM))
            found = await asyncio.to_thread(latencies, address, workspace.name, queries)
    middle = {name: percentile(taken, 50) for name, taken in found.items()}
    name = f"{size:,} chunks"
    return [
        *(Figure(name=f"{name}: {way}, p50", value=value, unit="ms") for way, value in middle.items()),
        *(
            Figure(name=f"{name}: {way} ÷ history, p50", value=middle[way] / middle[PLAIN], at_most=MOST)
            for way in (PRESENT, EARLIER)
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measures and reports."""
    return by_size("mcp", __doc__ or "", measure, arguments, sizes=SIZES, rounds=ROUNDS)


if __name__ == "__main__":
    main()
