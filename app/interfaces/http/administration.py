"""`/api/keys`, `/api/users`, `/api/audit`, `/api/settings`: keys, users, changes, and a workspace's settings."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.errors import Forbidden, check
from app.foundation.text.data import unstorable
from app.interfaces.http.admission import is_panels
from app.interfaces.http.context import Call, ThisCall, key_of, name_of
from app.interfaces.http.schemas import Input, delete, get, patch, post, put
from app.operations import access
from app.operations.forget import Forgotten, Phrases
from app.operations.maintenance import ForgottenUser, Maintenance, User
from app.recall.tuning import Tuning, TuningChange
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.keys import ADMIN, EVERYTHING, MadeKey, NewKey, RequestLimit, StoredKey

_FOR_ADMINS = {"scope": ADMIN}


class KeyLimitInput(Input):
    """The limit of a key's use."""

    requests_per_minute: RequestLimit
    """Requests a minute; null for the setting's, 0 for no limit."""


class RotationInput(Input):
    """The time for which the old key stays valid."""

    overlap_seconds: Annotated[float, Meta(ge=0, le=access.LONGEST_OVERLAP.total_seconds())] = 86_400


def _known_caller(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """Checks that the caller has a key or sits before the panel: any program may call a service without a key."""
    if key_of(connection.scope) is EVERYTHING and not is_panels(connection.scope):
        raise Forbidden(
            "without a key, only the panel and `priors key` without a URL, on the store's machine, manage keys"
        )


def _keys(call: Call) -> access.ManagedKeys:
    return access.ManagedKeys(call.database, call.key)


class KeysController(Controller):
    """Manages keys."""

    path = "/api/keys"
    opt = _FOR_ADMINS
    tags = ("keys",)
    guards = (_known_caller,)

    @get()
    async def page(self, call: ThisCall) -> Sequence[StoredKey]:
        """The keys that the caller's own may manage, the newest first, revoked and expired ones among them."""
        return await _keys(call).list_all()

    @post(
        status_code=201,
    )
    async def make(self, call: ThisCall, data: JSONBody[NewKey]) -> MadeKey:
        """Make a key. The answer has its secret, which is shown this once."""
        made = await _keys(call).make(data)
        call.context.keys.forget()
        return made

    @put("/{key_id:uuid}/limits")
    async def limit(self, key_id: FromPath[UUID], call: ThisCall, data: JSONBody[KeyLimitInput]) -> StoredKey:
        """Limit the use of a key. Only a key of all workspaces may do it."""
        limited = await _keys(call).limit(key_id, data.requests_per_minute)
        call.context.keys.forget()
        return limited

    @delete("/{key_id:uuid}")
    async def revoke(self, key_id: FromPath[UUID], call: ThisCall) -> StoredKey:
        """Revoke a key for good; a second time changes nothing."""
        revoked = await _keys(call).revoke(key_id)
        call.context.keys.forget()
        return revoked

    @post("/{key_id:uuid}/rotate", status_code=201)
    async def rotate(self, key_id: FromPath[UUID], call: ThisCall, data: JSONBody[RotationInput]) -> MadeKey:
        """Make a key in place of another, which stays valid for the overlap."""
        overlap = timedelta(seconds=data.overlap_seconds)
        made = await _keys(call).rotate(key_id, overlap=overlap)
        call.context.keys.forget()
        return made


class UserPage(Struct, frozen=True):
    """Users by name."""

    users: Sequence[User]
    next: str | None
    """Pass it as `after` for the page after; null at the end."""


class UsersController(Controller):
    """Lists and deletes users."""

    path = "/api"
    tags = ("users",)

    @get("/users")
    async def users(
        self,
        call: ThisCall,
        after: Annotated[str, QueryParameter(description="the name before the first one", max_length=200)] = "",
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 100,
    ) -> UserPage:
        """The users of the workspace by name, each with the numbers of their memories, sessions and recalls."""
        check(unstorable({"after": after}))
        found = await Maintenance(database=call.database).list_users(await call.tenant(), after=after, limit=limit)
        following = found[-1].name if len(found) == limit else None
        return UserPage(users=found, next=following)

    @delete("/users/{user:str}", opt=_FOR_ADMINS)
    async def remove(self, user: FromPath[str], call: ThisCall) -> ForgottenUser:
        """Destroy everything of a user: memories, sessions, cues, runs, recalls, activations, contexts, items, ratings.

        It does not go to the trash.
        """
        return await Maintenance(database=call.database).forget_user(await call.tenant(), user=name_of(user))


class ForgetInput(Input):
    """A subject to forget."""

    phrase: Annotated[str, Meta(max_length=1_000, description="a name or some words, found in any case as whole words")]
    yes: Annotated[bool, Meta(description="remove it; without it, the answer lists where it stands")] = False
    confirm: Annotated[int | None, Meta(description="the `total` of the list, where it is more than 100")] = None


@post("/api/forget", tags=["workspaces"], opt=_FOR_ADMINS)
async def forget(call: ThisCall, data: JSONBody[ForgetInput]) -> Forgotten:
    """List everything that names a subject, of all users, and with `yes` remove it for good.

    Memories that name it are destroyed, in the trash too; elsewhere, as in runs and recalls, the phrase is taken
    out. The answer says what stays.
    """
    return await Phrases(database=call.database).forget(
        await call.tenant(), data.phrase, yes=data.yes, confirm=data.confirm
    )


Given = Annotated[str, QueryParameter(max_length=200)]


class AuditPage(Struct, frozen=True):
    """Entries, the newest first."""

    entries: Sequence[access.AuditEntry]
    next: UUID | None
    """Pass it as `before` for the page after; null at the end."""


class AuditController(Controller):
    """Shows the audit log."""

    path = "/api/audit"
    opt = _FOR_ADMINS
    tags = ("audit",)

    @get()
    async def page(
        self,
        call: ThisCall,
        since: Annotated[datetime | None, QueryParameter(description="not earlier than this moment")] = None,
        until: Annotated[datetime | None, QueryParameter(description="earlier than this moment")] = None,
        who: Given = "",
        action: FromQuery[Literal["add", "change", "remove", "export", "erase"] | None] = None,
        of: Annotated[str, QueryParameter(name="object", description="memory, run, key, …", max_length=200)] = "",
        named: Annotated[
            str, QueryParameter(name="id", description="what it names, or a part of `who`", max_length=200)
        ] = "",
        before: Annotated[UUID | None, QueryParameter(description="the last entry of the page before")] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=access.LARGEST_PAGE)] = 100,
        *,
        store: Annotated[bool, QueryParameter(description="what concerns the whole store, as keys do")] = False,
    ) -> AuditPage:
        """Who changed what in the workspace and who exported it, the newest first. Reads are not logged."""
        check(unstorable({"who": who, "object": of, "id": named}))
        if store and call.key.workspaces is not None:
            raise Forbidden("this key serves some workspaces; what concerns the whole store is for a key of all")
        asked = access.AuditQuestion(
            since=since, until=until, who=who, action=action or "", object=of, named=named, before=before, limit=limit
        )
        found = await access.AuditLog(database=call.database).entries(None if store else await call.tenant(), asked)
        following = found[-1].entry_id if len(found) == limit else None
        return AuditPage(entries=found, next=following)


class SettingsController(Controller):
    """Shows and changes what a workspace may have its own way."""

    path = "/api/settings"
    tags = ("settings",)

    @get()
    async def settings(self, call: ThisCall) -> Tuning:
        """The settings of the workspace: what every workspace has, or its own in its place."""
        return Tuning.of(await call.tenant())

    @patch()
    async def change(self, call: ThisCall, data: JSONBody[TuningChange]) -> Tuning:
        """Set roles and action types by name, take one away with null, and let effects count in the ranking or not."""
        return await call.services.tunings.change(await call.tenant(), data)
