"""`/api/cases`, `/api/roles`: the history of judged test cases, and what each agent's role is served with."""

from collections.abc import Sequence
from typing import Annotated

from litestar import Controller, delete, get, put
from litestar.params import FromPath, JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.intake.cases.cases import CaseHistory, CaseIssue
from app.intake.cases.store import CaseSummary
from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import convert, view_of
from app.recall.retrieval.rank.roles import LARGEST_WEIGHT, MOST_PARTS, MOST_WORDS, Role, roles_of
from app.storage.memories.memory import Name
from app.storage.memories.service import LARGEST_PAGE

Words = Annotated[list[Name], Meta(max_length=MOST_WORDS)]


@view_of(CaseIssue, issue_id="id")
class CaseIssueView(Struct):
    """An issue over all versions of its case, with every statement of it."""

    state: str
    """Its status in words, with the version and how it was resolved."""


@view_of(CaseHistory)
class CaseView(Struct):
    """The history of a test case: its versions, oldest first, and its issues, those that are open and worst first."""

    issues: Sequence[CaseIssueView]


@view_of(Role)
class RoleView(Struct):
    """A role: the parts that it is served with, the most important first."""

    own: bool
    """True where the workspace has set it."""


class PartInput(Struct, forbid_unknown_fields=True):
    """Something that a role asks for."""

    title: Annotated[str, Meta(min_length=1, max_length=200, description="its name, for people")]
    facets: Annotated[list[Name], Meta(max_length=20)] = []
    """judgement, issues, recurring, calibration, sources, decisions, or a kind of memory."""
    words: Words = []
    weight: Annotated[float, Meta(ge=0, le=LARGEST_WEIGHT)] = 0.5
    """Share by which a memory that serves it ranks higher."""


class RoleInput(Struct, forbid_unknown_fields=True):
    """The parts of a role."""

    parts: Annotated[list[PartInput], Meta(max_length=MOST_PARTS)]


class CasesController(Controller):
    """Shows what was judged, and sets roles."""

    path = "/api"
    tags = ("cases",)

    @get("/cases", responses=PROBLEMS, dependencies=BY_USER)
    async def cases(
        self, call: ThisCall, limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE
    ) -> Sequence[CaseSummary]:
        """The test cases that were judged, the latest judged first."""
        return await call.services.cases.page(await call.tenant(), limit=limit)

    @get("/cases/{case:str}", responses=PROBLEMS, dependencies=BY_USER)
    async def case(self, case: FromPath[str], call: ThisCall) -> CaseView:
        """A test case: its versions with dates, scores and verdicts, what changed, and its issues over them."""
        found = await call.services.cases.get(await call.tenant(), case)
        return convert(found, CaseView)

    @get("/roles", responses=PROBLEMS, dependencies=BY_USER)
    async def roles(self, call: ThisCall) -> Sequence[RoleView]:
        """The roles that agents are served by; an agent without one is served by `default`."""
        workspace = await call.tenant()
        return [convert(role, RoleView, own=name in workspace.roles) for name, role in roles_of(workspace).items()]

    @put("/roles/{name:str}", responses=PROBLEMS)
    async def save(self, name: FromPath[str], call: ThisCall, data: JSONBody[RoleInput]) -> RoleView:
        """Set a role of the workspace, in place of any of this name."""
        saved = await call.services.retrieval.save_role(await call.tenant(), convert(data, Role, name=name))
        return convert(saved, RoleView, own=True)

    @delete("/roles/{name:str}", responses=PROBLEMS, dependencies=BY_USER)
    async def remove(self, name: FromPath[str], call: ThisCall) -> None:
        """Take the workspace's own role away; one that every workspace has is as it was."""
        await call.services.retrieval.remove_role(await call.tenant(), name)
