"""`/api/why`: what was decided, with its reasons and alternatives, what failed, and the turns that say so."""

from collections.abc import Sequence
from typing import Annotated

from litestar import get
from litestar.params import QueryParameter
from msgspec import Struct

from app.interfaces.http.context import BY_USER, ThisCall
from app.interfaces.http.problems import PROBLEMS
from app.interfaces.http.schemas import convert, view_of
from app.recall.cues.why.answer import Reason
from app.recall.cues.why.why import Why, ask_why


@view_of(Reason, without=("place", "score"))
class ReasonView(Struct):
    """A passage that decides, or gives a reason."""


@view_of(Why)
class WhyView(Struct):
    """The passages that say why, with their places; `known` is false if nothing does."""

    reasons: Sequence[ReasonView]


@get("/api/why", responses=PROBLEMS, tags=["cues"], dependencies=BY_USER)
async def why(
    call: ThisCall,
    subject: Annotated[str, QueryParameter(description="such as `API versioning`, or a whole question")] = "",
    path: Annotated[str, QueryParameter(description="of a file, or the end of it")] = "",
    symbol: Annotated[str, QueryParameter(description="a function or section, as sessions named it")] = "",
) -> WhyView:
    """Returns reasons: what was said on a subject or question, or the sessions that shaped a file or function.

    With `user` also those of this user, else only what all users share.
    """
    found = await ask_why(
        call.database,
        call.services.provider,
        call.services.counter,
        workspace=await call.asked_by(call.user).tenant(),
        subject=subject,
        path=path,
        symbol=symbol,
    )
    return convert(found, WhyView)
