"""The fields that each tool takes."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct
from priors_client.entries import CONTEXT_LIMIT

from app.interfaces.http.cues import Path
from app.interfaces.http.feedback import RatingInput
from app.interfaces.http.retrieval import QueryText
from app.recall.context.representation import Text
from app.recall.context.request import Id
from app.recall.cues.activate import PLAN_LIMIT
from app.recall.cues.learn import Lesson
from app.storage.memories.memory import BODY_LIMIT, TITLE_LIMIT, Kind, Name, Tags
from app.storage.tenants.workspace import User

_MOST_IDS = 20

Budget = Annotated[int, Meta(ge=100, le=10_000)]
Agent = Annotated[Name, Meta(description="your role, such as `researcher`")]
RunId = Annotated[Name, Meta(description="id of the pipeline run you work in")]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=_MOST_IDS, description="ids of memories")]


WhichUser = Annotated[
    User,
    Meta(description="the end user you act for, by the id you were given; leave it out if you were given none"),
]


class OfUser(Struct, forbid_unknown_fields=True, kw_only=True):
    """The fields that every tool takes."""

    user: WhichUser = ""


class HistoryAsked(OfUser, forbid_unknown_fields=True):
    """A query to start with history."""

    query: Annotated[QueryText, Meta(description="what you are to do, in its own words; the task of a run will do")]
    agent: Agent = ""
    run_id: RunId = ""
    k: Annotated[int, Meta(ge=1, le=10, description="most memories, up to 10")] = 3
    budget_tokens: Budget = 500


class PlanGiven(OfUser, forbid_unknown_fields=True):
    """An act that is about to be done."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="what you will do, and how")]
    files: Annotated[list[Path], Meta(max_length=100, description="files that it touches")] = []
    agent: Agent = ""
    run_id: RunId = ""
    budget_tokens: Budget = 400
    min_score: Annotated[float, Meta(ge=0, le=1, description="least probability of a lesson")] | None = None


class PlanChecked(OfUser, forbid_unknown_fields=True):
    """A plan of several steps."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="the plan, as a list of steps")]
    task_type: Name = ""
    files: Annotated[list[Path], Meta(max_length=100)] = []
    agent: Agent = ""
    run_id: RunId = ""
    budget_tokens: Budget = 400


class MemoryGiven(OfUser, forbid_unknown_fields=True):
    """A memory to keep."""

    body: Annotated[str, Meta(min_length=1, max_length=BODY_LIMIT, description="what to keep; it must stand alone")]
    title: Annotated[str, Meta(max_length=TITLE_LIMIT)] = ""
    context: Annotated[str, Meta(max_length=CONTEXT_LIMIT, description="how you learnt it")] = ""
    tags: Tags = ()
    run_id: RunId = ""


class LessonGiven(Lesson, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A lesson of this session."""

    user: WhichUser = ""


class RecallAsked(OfUser, forbid_unknown_fields=True):
    """A query for a list, or the ids of a list for whole texts."""

    query: Annotated[QueryText, Meta(description="what to look for; gives a list")] | None = None
    ids: Annotated[Ids, Meta(description="gives these memories whole")] | None = None
    kinds: list[Kind] = []
    tags: Tags = ()
    since: datetime | None = None
    until: datetime | None = None
    k: Annotated[int, Meta(ge=1, le=50, description="most memories, up to 50")] = 10
    budget_tokens: Budget = 1_000


class ForgetAsked(OfUser, forbid_unknown_fields=True):
    """Memories to forget."""

    ids: Ids


class RatingGiven(RatingInput, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rating of a memory."""

    user: WhichUser = ""
    id: UUID
    rating: Annotated[Literal[1, -1], Meta(extra_json_schema={"type": "integer"})]


class WhyAsked(OfUser, forbid_unknown_fields=True):
    """A subject, or a file and a part of it."""

    subject: Annotated[str, Meta(description="a question, or a subject such as `API versioning`")] = ""
    path: Annotated[str, Meta(description="or a file, by the end of its path")] = ""
    symbol: Annotated[str, Meta(description="or a function or section, in `path` or alone")] = ""
    budget_tokens: Budget = 400


class ContextAsked(OfUser, forbid_unknown_fields=True):
    """An observation to make a context for."""

    observation: Annotated[Text, Meta(min_length=1, description="what you are asked, or have just seen")]
    goal: Text = ""
    session: Annotated[Id | None, Meta(description="the id of the session whose latest turns belong to it")] = None
    templates: Annotated[list[Name], Meta(max_length=20, description="names of the workspace's templates")] = []
    agent: Agent = ""
    run_id: RunId = ""
    budget_tokens: Annotated[int, Meta(ge=200, le=100_000)] = 2_000
