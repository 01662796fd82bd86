"""The commands `history` and `search`."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.remote import Remote
from app.cli.running import (
    ELSEWHERE,
    JsonOption,
    LanguageOption,
    Moment,
    UserOption,
    WorkspaceOption,
    expanded,
    in_utc,
    in_workspace,
)
from app.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from priors_client.models import HistoryView as HistoryAnswer
    from priors_client.models import HitView as ClientHit
    from priors_client.models import SearchView as SearchAnswer

    from app.api.schemas import HitView, MemoryView
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
REUSE = ("reused_tokens", "reused_share", "kept", "broken")
"""The fields of a stable history in the order in which they are printed."""
PIPED_WIDTH = 140
EXCERPT = 120
"""Characters of a passage that are shown."""
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
    user: UserOption = None


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
    min_probability: Annotated[
        float | None, typer.Option("--min-probability", help="Least probability of a hit, 0 to 1; 0 shows everything.")
    ] = None
    half_life: Annotated[
        float | None, typer.Option("--half-life", help="Days after which recency is half way to its floor.")
    ] = None
    language: LanguageOption = None

    def fields(self, asker: Asker) -> dict[str, Any]:
        """Returns what a service elsewhere is asked, without what is not given."""
        conditions = {
            "kinds": self.kind,
            "source": self.source,
            "tags": self.tag,
            "since": in_utc(self.since),
            "until": in_utc(self.until),
        }
        asked = {
            "agent": asker.agent,
            "run_id": asker.run_id,
            "user": asker.user,
            "filters": {name: value for name, value in conditions.items() if value},
            "now": in_utc(self.now),
            "preset": self.preset,
            "min_probability": self.min_probability,
            "half_life_days": self.half_life,
            "language": self.language,
        }
        return {name: value for name, value in asked.items() if value is not None}

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
            min_probability=self.min_probability,
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
    if (service := ELSEWHERE.get()) is not None:
        asked = {**choice.fields(asker), "k": k, "budget_tokens": budget, "stable": stable}
        _remote_history(service, workspace, query, asked, as_json=as_json)
        return

    async def work(services: "Services", target: "Workspace") -> None:
        from app.context.history import history as recall_history  # noqa: PLC0415 - SQLAlchemy and numpy: see `app.cli`

        result = await recall_history(
            services.database,
            services.provider,
            services.counter,
            workspace=target.for_reading(asker.user),
            query=choice.query(query, k, asker, "history"),
            mask=services.settings.mask_secrets,
            reranker=services.reranker,
            budget_tokens=budget,
            stable=stable,
        )
        if as_json:
            parts = {"markdown": result.markdown, "tokens": result.tokens, **_reuse(result.reuse)}
            _print({**parts, **_recall(result.recall, _views(result.recall.hits))})
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
    if (service := ELSEWHERE.get()) is not None:
        if budget is not None:
            raise InvalidInput("--budget", "cannot be had with --url")
        asked = {**choice.fields(asker), "k": k, "around": around}
        _remote_search(service, workspace, query, asked, as_json=as_json)
        return

    async def work(services: "Services", target: "Workspace") -> None:
        # SQLAlchemy and numpy: see `app.cli`.
        from app.memories.browse import surroundings  # noqa: PLC0415
        from app.retrieval.search import search as recall_search  # noqa: PLC0415

        recall = await recall_search(
            services.database,
            services.provider,
            workspace=target.for_reading(asker.user),
            query=choice.query(query, k, asker, "search"),
            mask=services.settings.mask_secrets,
            reranker=services.reranker,
        )
        hits = _within(recall.hits, budget)
        ids = [hit.memory.memory_id for hit in hits]
        beside = await surroundings(services.database, workspace=target, ids=ids, distance=around) if around else {}
        views = _views(hits, beside)
        if as_json:
            _print(_recall(recall, views))
        else:
            _table(views)
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


def _warn(recall: "Recall | HistoryAnswer | SearchAnswer") -> None:
    for item in recall.degraded:
        typer.echo(f"mode {recall.mode}, {item.arm} arm: {item.reason}", err=True)


def _reuse(reuse: "Reuse | None") -> dict[str, Any]:
    if reuse is None:
        return {}
    return {"reused_tokens": reuse.tokens, "reused_share": reuse.share, "kept": reuse.kept, "broken": reuse.broken}


def _print(value: dict[str, Any]) -> None:
    import msgspec  # noqa: PLC0415 - see `app.cli`

    typer.echo(json.dumps(msgspec.to_builtins(value)))


def _views(hits: "Sequence[Hit]", beside: "Mapping[UUID, Sequence[Memory]]" = NOTHING_BESIDE) -> "list[HitView]":
    from app.api.schemas import hit_view  # noqa: PLC0415 - it is loaded with the verbs: see `app.cli`

    return [hit_view(hit, beside.get(hit.memory.memory_id)) for hit in hits]


def _recall(recall: "Recall | HistoryAnswer | SearchAnswer", hits: "Sequence[HitView]") -> dict[str, Any]:
    from app.api.schemas import DegradedView, converted  # noqa: PLC0415 - it is loaded with the verbs: see `app.cli`

    return {
        "hits": hits,
        "probability": recall.probability,
        "mode": recall.mode,
        "degraded": converted(recall.degraded, list[DegradedView]),
        "recall_id": recall.recall_id,
        "took_ms": round(recall.took_ms, 1),
    }


def _remote_history(
    service: Remote, workspace: str | None, query: str, asked: Mapping[str, Any], *, as_json: bool
) -> None:
    from msgspec import UNSET  # noqa: PLC0415 - see `app.cli`

    with service.client(workspace) as client:
        answer = client.history(query, **asked)
    if not as_json:
        typer.echo(answer.markdown, nl=False)
        _warn(answer)
        return
    parts = {name: getattr(answer, name) for name in ("markdown", "tokens", *REUSE)}
    given = {name: value for name, value in parts.items() if value is not UNSET}
    _print({**given, **_recall(answer, _own_views(answer.hits))})


def _remote_search(
    service: Remote, workspace: str | None, query: str, asked: Mapping[str, Any], *, as_json: bool
) -> None:
    with service.client(workspace) as client:
        answer = client.search(query, **asked)
    hits = _own_views(answer.hits)
    if as_json:
        _print(_recall(answer, hits))
    else:
        _table(hits)
        _warn(answer)


def _own_views(hits: "Sequence[ClientHit]") -> "list[HitView]":
    """Returns the client's hits as this door prints them."""
    import msgspec  # noqa: PLC0415 - see `app.cli`

    from app.api.schemas import HitView  # noqa: PLC0415 - the same

    return [msgspec.convert(msgspec.to_builtins(hit), HitView, strict=False) for hit in hits]


def _parts(hits: "Sequence[HitView]", room: int) -> list[str]:
    """Returns the components of the score that differ from 0 for these hits, as many as fit beside the titles."""
    telling = [part for part in SHOWN if any(hit.explain.get(part) for hit in hits)]
    return telling if len(telling) <= room else [part for part in telling if part in NARROW][: max(0, room)]


def _table(hits: "Sequence[HitView]") -> None:
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
        values = [hit.explain.get(part) for part in parts]
        numbers = ["-" if value is None else f"{value:.2f}" for value in values]
        source = (hit.source and (hit.source.source_title or hit.source.source_uri)) or hit.kind
        # Stored text is not markup: its brackets are shown as they are.
        table.add_row(f"{hit.score:.3f}", *numbers, Text(f"{hit.title or hit.body[:80]}\n  {source}"))
        if hit.explain.get("passage"):
            # It is folded, because its beginning alone says too little.
            table.add_row("", *("" for _ in parts), Text(_passage(hit), no_wrap=False, overflow="fold"))
        for memory in _in_order(hit):
            said = " ".join((memory.title or memory.body)[:200].split())
            mark = ">" if memory.memory_id == hit.memory_id else " "
            table.add_row("", *("" for _ in parts), Text(f"  {mark} {memory.metadata.get('role', '')} {said}"))
    console.print(table if hits else "Nothing in the store is relevant to that.")


def _passage(hit: "HitView") -> str:
    """Returns the number of the hit's nearest passage with its beginning; a title may be a passage of its own."""
    number, passages, starts, ends = (
        int(value) if isinstance(value := hit.explain.get(name), int | float) else 0
        for name in ("passage", "passages", "passage_starts", "passage_ends")
    )
    said = shorten((hit.body[starts:ends] or hit.title)[: 2 * EXCERPT], EXCERPT, placeholder=" …")
    return f"passage {number} of {passages}: {said}"


def _in_order(hit: "HitView") -> "list[HitView | MemoryView]":
    """Returns a hit among the memories around it; nothing where there are none."""
    return sorted([hit, *hit.around], key=lambda item: item.ordinal or 0) if hit.around else []
