"""The commands `history` and `search`."""

import json
import os
import sys
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.running import JsonOption, LanguageOption, Moment, WorkspaceOption, expanded, in_utc, in_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from app.memories.memory import Memory
    from app.retrieval.recall import Hit, Query, Recall, Reuse
    from app.wiring import Services
    from app.workspaces.workspace import Workspace

commands = typer.Typer()

SHOWN = {
    "similarity": "sim",
    "bm25": "bm25",
    "neighbours": "nbr",
    "source": "src",
    "named": "name",
    "dated": "date",
    "phrases": "phr",
    "relevance": "rel",
    "qual_weight": "qual",
    "q_adjust": "rate",
    "recency": "rec",
}
"""The components of a score, with the headings of their columns."""
NARROW = frozenset({"similarity", "bm25", "relevance", "qual_weight", "recency"})
"""The components that a narrow terminal shows."""
NOTHING_BESIDE: "Mapping[UUID, Sequence[Memory]]" = MappingProxyType({})
PIPED_WIDTH = 140
TITLE_WIDTH, PART_WIDTH = 32, 6
"""Least width of a title, and width of a component, in characters."""

QueryArgument = Annotated[str, typer.Argument(metavar="QUERY")]
KOption = Annotated[int, typer.Option("-k", help="Hits at most.")]
NowOption = Annotated[
    datetime | None,
    typer.Option(
        "--now",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
        help="What `last week` is told from, in UTC; the present, if not given.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The options that identify the asking agent and run."""

    agent: Annotated[str | None, typer.Option("--agent", help="Who asks: director, scout, …")] = None
    run_id: Annotated[str | None, typer.Option("--run-id", help="The run that it is for.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options that choose memories and their order."""

    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind; can be given again.")] = None
    source: Annotated[str, typer.Option("--source", help="Only sources whose path matches this glob.")] = ""
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag; can be given again.")] = None
    since: Moment = None
    until: Moment = None
    now: NowOption = None
    preset: Annotated[str, typer.Option("--preset", help="default, ranks, classic or closest.")] = "default"
    semantic_threshold: Annotated[
        float | None, typer.Option("--semantic-threshold", help="Least similarity of a hit by meaning, 0 to 1.")
    ] = None
    half_life: Annotated[
        float | None, typer.Option("--half-life", help="Days after which recency is half way to its floor.")
    ] = None
    language: LanguageOption = None

    def query(self, text: str, k: int, asker: Asker, purpose: str) -> "Query":
        """Returns the value that the verbs take."""
        # It is loaded with the verbs: see `app.cli`.
        from app.memories.filters import Filters  # noqa: PLC0415
        from app.retrieval.recall import Query  # noqa: PLC0415

        filters = Filters(
            kinds=tuple(self.kind or ()),
            source=self.source,
            tags=tuple(self.tag or ()),
            since=in_utc(self.since),
            until=in_utc(self.until),
        )
        return Query(
            text=text,
            k=k,
            filters=filters,
            preset=self.preset,
            language=self.language,
            agent=asker.agent,
            run_id=asker.run_id,
            purpose=purpose,
            now=in_utc(self.now),
            semantic_threshold=self.semantic_threshold,
            half_life_days=self.half_life,
        )


@commands.command()
@expanded
def history(
    query: QueryArgument,
    *,
    asker: Asker,
    k: KOption = 3,
    budget: Annotated[int, typer.Option("--budget", help="Model tokens at most.")] = 500,
    stable: Annotated[
        bool, typer.Option("--stable", help="Continue the run's previous stable section, byte for byte.")
    ] = False,
    choice: Choice,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the `## Relevant History` section for a query.

    Changes: nothing but the log of recalls.
    """

    async def work(services: "Services", target: "Workspace") -> None:
        from app.context.history import history as recall_history  # noqa: PLC0415 - SQLAlchemy and numpy: see `app.cli`

        result = await recall_history(
            services.database,
            services.provider,
            services.counter,
            workspace=target,
            query=choice.query(query, k, asker, "history"),
            mask=services.settings.mask_secrets,
            reranker=services.reranker,
            budget_tokens=budget,
            stable=stable,
        )
        if as_json:
            parts = {"markdown": result.markdown, "tokens": result.tokens, **_reuse(result.reuse)}
            _print({**parts, **_recall(result.recall, result.recall.hits)})
        else:
            typer.echo(result.markdown, nl=False)
            _warn(result.recall)

    in_workspace(workspace, work)


@commands.command()
@expanded
def search(
    query: QueryArgument,
    *,
    asker: Asker,
    k: KOption = 10,
    budget: Annotated[int | None, typer.Option("--budget", help="Stop before so many model tokens of text.")] = None,
    around: Annotated[
        int, typer.Option("--around", min=0, max=2, help="Show so many turns before and after each hit, too.")
    ] = 0,
    choice: Choice,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the hits for a query with the components of their scores.

    Changes: nothing but the log of recalls.
    """

    async def work(services: "Services", target: "Workspace") -> None:
        # SQLAlchemy and numpy: see `app.cli`.
        from app.memories.browse import surroundings  # noqa: PLC0415
        from app.retrieval.search import search as recall_search  # noqa: PLC0415

        recall = await recall_search(
            services.database,
            services.provider,
            workspace=target,
            query=choice.query(query, k, asker, "search"),
            mask=services.settings.mask_secrets,
            reranker=services.reranker,
        )
        hits = _within(recall.hits, budget)
        ids = [hit.memory.memory_id for hit in hits]
        beside = await surroundings(services.database, workspace=target, ids=ids, distance=around) if around else {}
        if as_json:
            _print(_recall(recall, hits, beside))
        else:
            _table(hits, beside)
            _warn(recall)

    in_workspace(workspace, work)


def _within(hits: "tuple[Hit, ...]", budget: int | None) -> "list[Hit]":
    kept: list[Hit] = []
    used = 0
    for hit in hits:
        used += hit.memory.tokens
        if budget is not None and used > budget:
            break
        kept.append(hit)
    return kept


def _warn(recall: "Recall") -> None:
    for item in recall.degraded:
        typer.echo(f"mode {recall.mode}, {item.arm} arm: {item.reason}", err=True)


def _reuse(reuse: "Reuse | None") -> dict[str, Any]:
    if reuse is None:
        return {}
    return {"reused_tokens": reuse.tokens, "reused_share": reuse.share, "kept": reuse.kept, "broken": reuse.broken}


def _print(value: dict[str, Any]) -> None:
    import msgspec  # noqa: PLC0415 - see `app.cli`

    typer.echo(json.dumps(msgspec.to_builtins(value)))


def _recall(
    recall: "Recall", hits: "Sequence[Hit]", beside: "Mapping[UUID, Sequence[Memory]]" = NOTHING_BESIDE
) -> dict[str, Any]:
    # It is loaded with the verbs: see `app.cli`.
    from app.api.schemas import DegradedView, converted, hit_view  # noqa: PLC0415

    return {
        "hits": [hit_view(hit, beside.get(hit.memory.memory_id)) for hit in hits],
        "mode": recall.mode,
        "degraded": converted(recall.degraded, list[DegradedView]),
        "recall_id": recall.recall_id,
        "took_ms": round(recall.took_ms, 1),
    }


def _parts(hits: "list[Hit]", room: int) -> list[str]:
    """Returns the components of the score that differ from 0 for these hits, as many as fit beside the titles."""
    telling = [part for part in SHOWN if any(hit.explain[part] for hit in hits)]
    return telling if len(telling) <= room else [part for part in telling if part in NARROW][: max(0, room)]


def _table(hits: "list[Hit]", beside: "Mapping[UUID, Sequence[Memory]]") -> None:
    # rich: see `app.cli`.
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    # Output into a pipe or a file is not cut to the width of a terminal.
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH)
    parts = _parts(hits, (console.width - TITLE_WIDTH) // PART_WIDTH - 1)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), expand=True)
    for name in ("score", *(SHOWN[part] for part in parts)):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("memory", ratio=1, no_wrap=True, overflow="ellipsis")
    for hit in hits:
        values = [hit.explain[part] for part in parts]
        numbers = ["-" if value is None else f"{value:.2f}" for value in values]
        source = hit.memory.source_title or hit.memory.source_uri or hit.memory.kind
        # Stored text is not markup: its brackets are shown as they are.
        table.add_row(f"{hit.score:.3f}", *numbers, Text(f"{hit.title or hit.body[:80]}\n  {source}"))
        for memory in _in_order(hit.memory, beside.get(hit.memory.memory_id, ())):
            said = " ".join((memory.title or memory.body)[:200].split())
            mark = ">" if memory.memory_id == hit.memory.memory_id else " "
            table.add_row("", *("" for _ in parts), Text(f"  {mark} {memory.metadata.get('role', '')} {said}"))
    console.print(table if hits else "Nothing in the store is relevant to that.")


def _in_order(memory: "Memory", beside: "Sequence[Memory]") -> "list[Memory]":
    """Returns a memory among those around it; nothing where there are none."""
    return sorted([memory, *beside], key=lambda item: item.ordinal or 0) if beside else []
