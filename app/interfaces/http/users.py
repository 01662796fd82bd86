"""`/api/users`: the users of a workspace, and the end of one."""

from collections.abc import Sequence
from typing import Annotated, Any

from litestar import Controller, Request, delete, get
from litestar.params import FromPath, QueryParameter
from msgspec import Struct

from app.errors import check
from app.foundation.text.faults import unstorable
from app.interfaces.http.context import ThisCall, name_in_path
from app.interfaces.http.problems import PROBLEMS
from app.operations.maintenance import ForgottenUser, User, forget_user, list_users
from app.storage.memories.service import LARGEST_PAGE

_USERS_PATH = b"/api/users/"


class UserPage(Struct, frozen=True):
    """Users by name."""

    users: Sequence[User]
    next: str | None
    """Pass it as `after` for the page after; null at the end."""


class UsersController(Controller):
    """Lists and deletes users."""

    path = "/api"
    tags = ("users",)

    @get("/users", responses=PROBLEMS)
    async def users(
        self,
        call: ThisCall,
        after: Annotated[str, QueryParameter(description="the name before the first one", max_length=200)] = "",
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 100,
    ) -> UserPage:
        """The users of the workspace by name, each with the numbers of their memories, sessions and recalls."""
        check(unstorable({"after": after}))
        found = await list_users(call.database, workspace=await call.tenant(), after=after, limit=limit)
        following = found[-1].name if len(found) == limit else None
        return UserPage(users=found, next=following)

    @delete("/users/{user:path}", status_code=200, responses=PROBLEMS)
    async def remove(self, user: FromPath[str], call: ThisCall, request: Request[Any, Any, Any]) -> ForgottenUser:
        """Destroy everything of a user: memories, sessions, cues, runs, recalls, activations, contexts, items, ratings.

        It does not go to the trash.
        """
        name = name_in_path(request, _USERS_PATH, user)
        return await forget_user(call.database, workspace=await call.tenant(), user=name)
