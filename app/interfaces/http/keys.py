"""`/api/keys`: the API keys of the store. Every route demands the scope `admin`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
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
from app.interfaces.http.schemas import convert, view_of
from app.operations.keys import LONGEST_OVERLAP, limit_key, list_keys, make_key, revoke_key, rotate_key
from app.storage.tenants.keys.key import (
    EVERYTHING,
    HIGHEST_LIMIT,
    LONGEST_NAME,
    MOST_WORKSPACES,
    MadeKey,
    NewKey,
    StoredKey,
)

Scopes = Annotated[list[str], Meta(min_length=1, max_length=10, description="read, write, rate, admin")]
Limit = Annotated[int, Meta(ge=0, le=HIGHEST_LIMIT)] | None
WorkspaceNames = Annotated[list[str], Meta(min_length=1, max_length=MOST_WORKSPACES)]


@view_of(StoredKey, key_id="id")
class KeyView(Struct):
    """A key without its secret, which nobody can read again."""


class MadeKeyView(Struct, frozen=True):
    """A new key with its secret, which is shown this once."""

    key: KeyView
    secret: str


class KeyInput(Struct, forbid_unknown_fields=True):
    """A key to be made."""

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, description="tells it from other keys")]
    scopes: Scopes
    workspaces: WorkspaceNames | None = None
    """The workspaces that it serves; null for all."""
    expires_at: datetime | None = None
    """The end of its life; null for none."""
    requests_per_minute: Limit = None
    """Requests a minute; null for the setting's, 0 for no limit."""


class KeyLimitInput(Struct, forbid_unknown_fields=True):
    """The limit of a key's use."""

    requests_per_minute: Limit
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
    async def page(self, call: ThisCall) -> Sequence[KeyView]:
        """The keys that the caller's own may manage, the newest first, revoked and expired ones among them."""
        return convert(await list_keys(call.database, by=call.key), list[KeyView])

    @post(responses=PROBLEMS)
    async def make(self, call: ThisCall, data: JSONBody[KeyInput]) -> MadeKeyView:
        """Make a key. The answer has its secret, which is shown this once."""
        names = None if data.workspaces is None else tuple(data.workspaces)
        wanted = NewKey(
            name=data.name,
            scopes=tuple(data.scopes),
            workspaces=names,
            expires_at=data.expires_at,
            requests_per_minute=data.requests_per_minute,
        )
        made = await make_key(call.database, wanted=wanted, by=call.key)
        call.context.keys.forget()
        return _made_view(made)

    @put("/{key_id:uuid}/limits", responses=PROBLEMS)
    async def limit(self, key_id: FromPath[UUID], call: ThisCall, data: JSONBody[KeyLimitInput]) -> KeyView:
        """Limit the use of a key. Only a key of all workspaces may do it."""
        limited = await limit_key(
            call.database, key_id=key_id, requests_per_minute=data.requests_per_minute, by=call.key
        )
        call.context.keys.forget()
        return convert(limited, KeyView)

    @delete("/{key_id:uuid}", status_code=200, responses=PROBLEMS)
    async def revoke(self, key_id: FromPath[UUID], call: ThisCall) -> KeyView:
        """Revoke a key for good; a second time changes nothing."""
        revoked = await revoke_key(call.database, key_id=key_id, by=call.key)
        call.context.keys.forget()
        return convert(revoked, KeyView)

    @post("/{key_id:uuid}/rotate", responses=PROBLEMS)
    async def rotate(self, key_id: FromPath[UUID], call: ThisCall, data: JSONBody[RotationInput]) -> MadeKeyView:
        """Make a key in place of another, which stays valid for the overlap."""
        overlap = timedelta(seconds=data.overlap_seconds)
        made = await rotate_key(call.database, key_id=key_id, overlap=overlap, by=call.key)
        call.context.keys.forget()
        return _made_view(made)


def _made_view(made: MadeKey) -> MadeKeyView:
    return MadeKeyView(key=convert(made.key, KeyView), secret=made.secret)
