"""`/api/keys`: the API keys of the store. Every route demands the scope `admin`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, delete, get, post, put
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from app.errors import Forbidden
from app.interfaces.http.admission import is_panels
from app.interfaces.http.context import ThisCall, key_of
from app.interfaces.http.problems import PROBLEMS
from app.operations.keys import LONGEST_OVERLAP, limit_key, list_keys, make_key, revoke_key, rotate_key
from app.storage.tenants.keys import EVERYTHING, MadeKey, NewKey, RequestLimit, StoredKey


class KeyLimitInput(Struct, forbid_unknown_fields=True):
    """The limit of a key's use."""

    requests_per_minute: RequestLimit
    """Requests a minute; null for the setting's, 0 for no limit."""


class RotationInput(Struct, forbid_unknown_fields=True):
    """The time for which the old key stays valid."""

    overlap_seconds: Annotated[float, Meta(ge=0, le=LONGEST_OVERLAP.total_seconds())] = 86_400


def _known_caller(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """Checks that the caller has a key or sits before the panel: any program may call a service without a key."""
    if key_of(connection.scope) is EVERYTHING and not is_panels(connection.scope):
        raise Forbidden(
            "without a key, only the panel and `priors key` without a URL, on the store's machine, manage keys"
        )


class KeysController(Controller):
    """Manages keys."""

    path = "/api/keys"
    tags = ("keys",)
    guards = (_known_caller,)

    @get(responses=PROBLEMS)
    async def page(self, call: ThisCall) -> Sequence[StoredKey]:
        """The keys that the caller's own may manage, the newest first, revoked and expired ones among them."""
        return await list_keys(call.database, by=call.key)

    @post(responses=PROBLEMS)
    async def make(self, call: ThisCall, data: JSONBody[NewKey]) -> MadeKey:
        """Make a key. The answer has its secret, which is shown this once."""
        made = await make_key(call.database, wanted=data, by=call.key)
        call.context.keys.forget()
        return made

    @put("/{key_id:uuid}/limits", responses=PROBLEMS)
    async def limit(self, key_id: FromPath[UUID], call: ThisCall, data: JSONBody[KeyLimitInput]) -> StoredKey:
        """Limit the use of a key. Only a key of all workspaces may do it."""
        limited = await limit_key(
            call.database, key_id=key_id, requests_per_minute=data.requests_per_minute, by=call.key
        )
        call.context.keys.forget()
        return limited

    @delete("/{key_id:uuid}", status_code=200, responses=PROBLEMS)
    async def revoke(self, key_id: FromPath[UUID], call: ThisCall) -> StoredKey:
        """Revoke a key for good; a second time changes nothing."""
        revoked = await revoke_key(call.database, key_id=key_id, by=call.key)
        call.context.keys.forget()
        return revoked

    @post("/{key_id:uuid}/rotate", responses=PROBLEMS)
    async def rotate(self, key_id: FromPath[UUID], call: ThisCall, data: JSONBody[RotationInput]) -> MadeKey:
        """Make a key in place of another, which stays valid for the overlap."""
        overlap = timedelta(seconds=data.overlap_seconds)
        made = await rotate_key(call.database, key_id=key_id, overlap=overlap, by=call.key)
        call.context.keys.forget()
        return made
