"""`POST /api/novelty`."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from litestar import Controller, post
from litestar.datastructures import State
from litestar.params import JSONBody
from msgspec import Meta, Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.insight.novelty import LONGEST_RESULT, MOST_RESULTS, novelty


class NoveltyInput(Struct, forbid_unknown_fields=True):
    """Texts to be compared with what is stored."""

    results: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=LONGEST_RESULT)]], Meta(min_length=1, max_length=MOST_RESULTS)
    ]
    task: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="what the texts were written for; its words, numbers and names are known, and count neither for"
            " a text nor against it",
        ),
    ] = ""


class NearestView(Struct, frozen=True):
    """A memory that a text was compared with."""

    id: UUID
    title: str
    similarity: float


class ResultNoveltyView(Struct, frozen=True):
    """How much one text adds."""

    novelty: float
    nearest: Sequence[NearestView]
    passages: int
    """How many the text has."""
    compared: int
    """How many of them were compared, evenly spread over the text."""


class NoveltyView(Struct, frozen=True):
    """How much the texts add beyond what is stored: 0 nothing, 1 everything."""

    novelty: float
    results: Sequence[ResultNoveltyView]
    path: str
    """`vector` or `lexical`: how they were compared."""
    degraded: str


class NoveltyController(Controller):
    """How new something is."""

    path = "/api"
    tags = ("novelty",)

    @post("/novelty", status_code=200, responses=PROBLEMS)
    async def novelty(
        self, state: State, data: JSONBody[NoveltyInput], workspace: WorkspaceHeader = None
    ) -> NoveltyView:
        """How much each text adds beyond what is stored, with the nearest memories."""
        context = context_of(state)
        services = context.opened
        found = await novelty(
            services.database,
            services.provider,
            workspace=context.workspace(workspace),
            task=data.task,
            results=data.results,
        )
        return NoveltyView(
            novelty=found.novelty,
            results=[
                ResultNoveltyView(
                    novelty=item.novelty,
                    nearest=[NearestView(id=n.memory_id, title=n.title, similarity=n.similarity) for n in item.nearest],
                    passages=item.passages,
                    compared=item.compared,
                )
                for item in found.results
            ],
            path=found.path,
            degraded=found.degraded,
        )
