"""`/api/check`: what is known against a plan, before anything of it is done."""

from collections.abc import Sequence
from typing import Annotated

from litestar import post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from app.interfaces.http.context import ThisCall
from app.interfaces.http.cues import Path
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import convert, view_of
from app.recall.cues.activate import DEFAULT_BUDGET, LARGEST_BUDGET, LEAST_BUDGET, PLAN_LIMIT, PlanAsked
from app.recall.preflight.service import CheckAsked, PlanCheck
from app.recall.preflight.verdict import PlanStep, Verdict
from app.storage.memories.memory import Name
from app.storage.tenants.workspace import User


class CheckInput(Struct, forbid_unknown_fields=True):
    """A plan that somebody is about to carry out."""

    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LIMIT, description="the plan; a list has a step an item")]
    task_type: Annotated[Name, Meta(description="the kind of task; it may name the test case")] = ""
    files: Annotated[list[Path], Meta(max_length=100, description="the files that it touches")] = []
    agent: Name | None = None
    run_id: Name | None = None
    budget_tokens: Annotated[int, Meta(ge=LEAST_BUDGET, le=LARGEST_BUDGET)] = DEFAULT_BUDGET
    trial: Annotated[bool, Meta(description="a person's trial: it is not logged, and counts for no cue")] = False
    user: User = ""

    def question(self) -> CheckAsked:
        """Returns the value that the verb takes."""
        return CheckAsked(plan=convert(self, PlanAsked), task_type=self.task_type)


@view_of(PlanStep)
class PlanStepView(Struct):
    """A step of the plan, or one that should be added, with its verdict."""

    verdict: Verdict


@view_of(PlanCheck)
class PlanCheckView(Struct):
    """The check of a plan; every step is clear where nothing is known."""

    steps: Sequence[PlanStepView]


@post("/api/check", status_code=200, responses=PROBLEMS, tags=["cues"])
async def check(call: ThisCall, data: JSONBody[CheckInput]) -> PlanCheckView:
    """A verdict for each step of a plan (clear, look again, stop and ask), with the evidence. No model is asked."""
    asking = call.asked_by(data.user)
    found = await asking.services.preflights.check(await asking.tenant(), data.question())
    return convert(found, PlanCheckView)
