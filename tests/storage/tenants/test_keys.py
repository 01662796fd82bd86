"""API keys: what each may do, from the command that makes one to the request that it is refused for."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, cast
from uuid import UUID

import httpx
import pytest
from litestar.routes import HTTPRoute
from msgspec import structs
from structlog.testing import capture_logs

from app.errors import DatabaseUnavailable, Forbidden, InvalidInput, NotFound, StorageFull
from app.foundation.safety.secrets import mask
from app.interfaces.http.serving.application import create_app, in_frame, scope_of
from app.operations.access import ManagedKeys
from app.settings import Settings
from app.storage.tenants import service
from app.storage.tenants.keys import ADMIN, RATE, READ, WRITE, Key, MadeKey, NewKey, check_new_key, digest_of
from app.storage.tenants.service import KnownKeys
from app.wiring import Services
from tests.interfaces.cli import forked

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NOTE = {"kind": "note", "body": "The kiosk opens at nine and sells forty papers."}


@asynccontextmanager
async def calling(services: Services, *, api_key: str = "") -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service over these services."""
    settings = replace(services.settings, api_key=api_key)
    app = create_app(settings, services=replace(services, settings=settings))
    transport = httpx.ASGITransport(cast("Any", in_frame(app)))
    async with (
        app.lifespan(),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client,
    ):
        yield client


def bearer(made_key: MadeKey) -> dict[str, str]:
    return {"authorization": f"Bearer {made_key.secret}"}


async def a_key(services: Services, *scopes: str, **given: Any) -> MadeKey:
    return await ManagedKeys(services.database).make(NewKey(name="test", scopes=scopes or (READ,), **given))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"scopes": ()}, "scopes"),
        ({"scopes": ("everything",)}, "scopes"),
        ({"workspaces": ()}, "workspaces"),
        ({"workspaces": ("a b",)}, "workspaces"),
        ({"expires_at": NOW - timedelta(seconds=1)}, "expires_at"),
        ({"expires_at": NOW + timedelta(days=40_000)}, "expires_at"),
    ],
)
def test_a_key_that_cannot_be_is_refused_by_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_new_key(structs.replace(NewKey(name="scout", scopes=(READ,)), **given), now=NOW)
    assert refused.value.field == field


def test_admin_has_every_scope_and_the_others_have_their_own() -> None:
    assert all(Key(name="", scopes=frozenset({ADMIN}), workspaces=None).has(scope) for scope in (READ, WRITE, RATE))
    judge = Key(name="", scopes=frozenset({RATE}), workspaces=None)
    assert [judge.has(scope) for scope in (READ, WRITE, RATE, ADMIN)] == [False, False, True, False]
    with pytest.raises(Forbidden, match="`write`"):
        judge.demand(WRITE)


def test_a_route_demands_the_scope_of_what_it_does() -> None:
    demanded = {
        (method, route.path): scope_of(handler, method)
        for route in create_app(Settings()).routes
        if isinstance(route, HTTPRoute) and not route.path.startswith("/schema")
        for handler in route.route_handlers
        for method in handler.http_methods - {"OPTIONS"}
    }
    named = {
        scope: {f"{method} {path}" for (method, path), given in demanded.items() if given == scope}
        for scope in (RATE, ADMIN)
    }
    assert named == {
        RATE: {
            "POST /api/memories/{memory_id:uuid}/feedback",
            "DELETE /api/feedback/{feedback_id:uuid}",
            "POST /api/activations/{activation_id:uuid}/outcome",
        },
        ADMIN: {
            "GET /api/keys",
            "POST /api/keys",
            "DELETE /api/keys/{key_id:uuid}",
            "PUT /api/keys/{key_id:uuid}/limits",
            "POST /api/keys/{key_id:uuid}/rotate",
            "GET /api/audit",
            "DELETE /api/users/{user:str}",
            "POST /api/forget",
        },
    }
    questions = {path for (method, path), given in demanded.items() if method != "GET" and given == READ}
    assert questions - {path for method, path in demanded if method == "GET" and path != "/api/contexts"} == {
        "/api/activate",
        "/api/check",
        "/api/contexts",
        "/api/contexts:compile",
        "/api/history",
        "/api/novelty",
        "/api/search",
    }
    others = {given for (method, _), given in demanded.items() if method in {"POST", "PATCH", "PUT", "DELETE"}}
    assert others == {READ, WRITE, RATE, ADMIN}


async def test_a_secret_is_shown_once_and_stored_as_its_hash(own_services: Services) -> None:
    made_key = await a_key(own_services, READ, RATE, workspaces=("b", "a", "a"))
    (listed,) = await ManagedKeys(own_services.database).list_all()
    assert listed == made_key.key
    assert (listed.scopes, listed.workspaces, listed.last_used_at) == ((RATE, READ), ("a", "b"), None)
    async with own_services.database.across() as session:
        row = await session.one("SELECT digest, k::text AS whole FROM api_keys k")
    assert bytes(row.digest) == digest_of(made_key.secret)
    assert made_key.secret not in row.whole
    assert made_key.secret not in mask(f"They used {made_key.secret} there.").text


async def test_the_services_role_cannot_list_keys(own_services: Services) -> None:
    await a_key(own_services)
    async with own_services.database.session(0, transaction=False) as session:
        with pytest.raises(Exception, match="permission denied"):
            await session.rows("SELECT * FROM api_keys")


async def test_a_key_does_what_its_scopes_say_in_its_workspaces(own_services: Services) -> None:
    reader = await a_key(own_services, READ, workspaces=("papers",))
    writer = await a_key(own_services, WRITE, workspaces=("papers", "books"))
    judge = await a_key(own_services, RATE)
    for name in ("papers", "books"):
        await own_services.workspaces.get_or_create(await own_services.workspaces.resolve(name))
    async with calling(own_services) as client:
        papers, books = {"x-workspace": "papers"}, {"x-workspace": "books"}
        assert (await client.get("/api/memories")).status_code == 401
        stored = await client.post("/api/memories", json=NOTE, headers=bearer(writer) | papers)
        assert stored.status_code == 200, stored.text
        (memory_id,) = stored.json()["ids"]
        for key, method, path, body, status in (
            (reader, "GET", f"/api/memories/{memory_id}", None, 200),
            (reader, "POST", "/api/search", {"query": "kiosk"}, 200),
            (reader, "POST", "/api/memories", NOTE, 403),
            (reader, "POST", f"/api/memories/{memory_id}/feedback", {"rating": 1}, 403),
            (reader, "GET", "/api/keys", None, 403),
            (writer, "GET", f"/api/memories/{memory_id}", None, 403),
            (judge, "POST", f"/api/memories/{memory_id}/feedback", {"rating": 1}, 200),
            (judge, "POST", "/api/memories", NOTE, 403),
            (writer, "DELETE", "/api/users/alice", None, 403),
        ):
            answer = await client.request(method, path, json=body, headers=bearer(key) | papers)
            assert answer.status_code == status, (method, path, answer.text)
        # Without a header, a key of one workspace is in it.
        assert (await client.get(f"/api/memories/{memory_id}", headers=bearer(reader))).status_code == 200
        there = await client.get("/api/memories", headers=bearer(reader) | books)
        nowhere = await client.get("/api/memories", headers=bearer(reader) | {"x-workspace": "nothing"})
        assert (there.status_code, there.json()["detail"]) == (403, nowhere.json()["detail"])
        unnamed = await client.post("/api/memories", json=NOTE, headers=bearer(writer))
        assert (unnamed.status_code, "name one of its own" in unnamed.json()["detail"]) == (403, True)
        named = await client.get("/api/workspaces", headers=bearer(reader))
        assert [item["name"] for item in named.json()] == ["papers"]


async def test_a_key_of_the_settings_stays_and_a_wrong_one_is_refused(own_services: Services) -> None:
    stored = await a_key(own_services)
    async with calling(own_services, api_key="first") as client:
        for token, status in (("first", 200), (stored.secret, 200), ("priors_wrong", 401), ("wrong", 401)):
            answer = await client.get("/api/memories", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == status, token


@pytest.mark.meaning
async def test_an_agents_tools_obey_the_key(own_services: Services) -> None:
    reader = await a_key(own_services, workspaces=("papers",))
    posted = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"} | bearer(reader)
    async with calling(own_services) as client:
        told = []
        for tool, given in (("remember", {"text": "The kiosk opens at nine."}), ("recall", {"query": "kiosk"})):
            call = {"name": tool, "arguments": given}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            answer = await client.post("/mcp", json=body, headers=posted)
            told.append(answer.json()["result"])
        foreign = await client.post("/mcp", json=body, headers=posted | {"x-workspace": "books"})
    assert told[0]["isError"]
    assert "`write`" in told[0]["content"][0]["text"]
    assert not told[1].get("isError")
    assert "does not serve" in foreign.json()["result"]["content"][0]["text"]


async def test_what_is_read_over_mcp_needs_a_key_that_reads(own_services: Services) -> None:
    writer = await a_key(own_services, WRITE)
    posted = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"} | bearer(writer)
    async with calling(own_services) as client:

        async def asked(method: str, **params: object) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return (await client.post("/mcp", json=body, headers=posted)).json()

        stored = await asked("tools/call", name="remember", arguments={"body": NOTE["body"]})
        (text,) = [part["text"] for part in stored["result"]["content"]]
        assert text.startswith("Stored: ")
        for answer in (
            await asked("resources/list"),
            await asked("resources/read", uri=f"priors://memories/{text.split()[1]}"),
            await asked("prompts/get", name="start_with_history", arguments={"query": "kiosk"}),
        ):
            assert "`read`" in answer["error"]["message"]
        assert "`read`" in str((await asked("tools/call", name="recall", arguments={"query": "kiosk"}))["result"])


async def test_the_end_of_a_key_without_a_time_zone_is_in_utc(own_services: Services) -> None:
    admin = await a_key(own_services, ADMIN)
    wanted, later = {"name": "agent", "scopes": [READ]}, datetime.now(UTC).year + 1
    async with calling(own_services) as client:
        for given, status in (
            (f"{later}-01-31T10:00:00", 201), (f"{later}-01-31T10:00:00+02:00", 201), ("2020-01-31T10:00:00", 400),
            ("9999-12-31T23:59:59-12:00", 400), ("0001-01-01T00:00:00+12:00", 400),
        ):  # fmt: skip
            answer = await client.post("/api/keys", json=wanted | {"expires_at": given}, headers=bearer(admin))
            assert answer.status_code == status, (given, answer.text)
        ends = [item["expires_at"] for item in (await client.get("/api/keys", headers=bearer(admin))).json()]
    assert ends == [f"{later}-01-31T08:00:00Z", f"{later}-01-31T10:00:00Z", None]


async def test_a_service_stays_closed_when_its_last_key_expires(own_services: Services) -> None:
    await a_key(own_services)
    async with own_services.database.across() as session:
        await session.execute("UPDATE api_keys SET expires_at = now() - interval '1 second'", {})
    async with calling(own_services) as client:
        assert (await client.get("/api/memories")).status_code == 401


async def test_a_revoked_or_expired_key_is_refused(own_services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FRESH_SECONDS", 0.0)
    kept, gone, short = [await a_key(own_services) for _ in range(3)]
    async with own_services.database.across() as session:
        await session.execute("UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE key_id = %(id)s",
                              {"id": short.key.key_id})  # fmt: skip
    async with calling(own_services) as client:
        assert (await client.get("/api/memories", headers=bearer(gone))).status_code == 200
        revoked = await ManagedKeys(own_services.database).revoke(gone.key.key_id)
        assert await ManagedKeys(own_services.database).revoke(gone.key.key_id) == revoked
        for key, status in ((kept, 200), (gone, 401), (short, 401)):
            assert (await client.get("/api/memories", headers=bearer(key))).status_code == status
        for key in (kept, short):
            await ManagedKeys(own_services.database).revoke(key.key.key_id)
        assert (await client.get("/api/memories")).status_code == 200
    with pytest.raises(InvalidInput, match="revoked"):
        await ManagedKeys(own_services.database).rotate(gone.key.key_id, overlap=timedelta(0))


async def test_a_rotated_key_overlaps_with_the_old_one(own_services: Services) -> None:
    old = await a_key(own_services, READ, WRITE, workspaces=("papers",), expires_at=datetime.now(UTC) + timedelta(30))
    new = await ManagedKeys(own_services.database).rotate(old.key.key_id, overlap=timedelta(hours=1))
    assert new.secret != old.secret
    assert (new.key.name, new.key.scopes, new.key.workspaces) == (old.key.name, old.key.scopes, old.key.workspaces)
    assert new.key.replaces == old.key.key_id
    found = KnownKeys(own_services.database)
    assert {await found.find(key.secret.encode()) is not None for key in (old, new)} == {True}
    ends = {key.key_id: key.expires_at for key in await ManagedKeys(own_services.database).list_all()}
    assert ends[old.key.key_id] < datetime.now(UTC) + timedelta(hours=2) < ends[new.key.key_id]  # type: ignore[operator]  # both have an end


async def test_nobody_manages_keys_beyond_their_own_workspaces(own_services: Services) -> None:
    everywhere = await a_key(own_services, ADMIN)
    papers = await a_key(own_services, ADMIN, workspaces=("papers",))
    async with calling(own_services) as client:
        wanted = {"name": "agent", "scopes": [READ], "workspaces": ["books"]}
        for body in (wanted, wanted | {"workspaces": None}, wanted | {"workspaces": ["papers", "books"]}):
            assert (await client.post("/api/keys", json=body, headers=bearer(papers))).status_code == 403
        answer = await client.post("/api/keys", json=wanted | {"workspaces": ["papers"]}, headers=bearer(papers))
        assert answer.status_code == 201
        assert answer.json()["secret"].startswith("priors_")
        listed = (await client.get("/api/keys", headers=bearer(papers))).json()
        assert [item["workspaces"] for item in listed] == [["papers"], ["papers"]]
        path = f"/api/keys/{everywhere.key.key_id}"
        assert (await client.delete(path, headers=bearer(papers))).status_code == 404
        assert (await client.delete(path, headers=bearer(everywhere))).json()["revoked_at"]
    with pytest.raises(NotFound):
        await ManagedKeys(own_services.database).rotate(UUID(int=0), overlap=timedelta(0))


async def test_only_a_key_of_all_workspaces_limits_keys_and_the_limit_counts_at_once(own_services: Services) -> None:
    everywhere = await a_key(own_services, ADMIN)
    papers = await a_key(own_services, ADMIN, workspaces=("papers",), requests_per_minute=50)
    async with calling(own_services) as client:
        wanted = {"name": "agent", "scopes": [READ], "workspaces": ["papers"]}
        limited = await client.post("/api/keys", json=wanted | {"requests_per_minute": 9}, headers=bearer(papers))
        assert limited.status_code == 403
        made_key = (await client.post("/api/keys", json=wanted, headers=bearer(papers))).json()["key"]
        assert made_key["requests_per_minute"] == 50
        path, given = f"/api/keys/{papers.key.key_id}/limits", {"requests_per_minute": 1}
        assert (await client.put(path, json=given, headers=bearer(papers))).status_code == 403
        below = await client.put(path, json=given | {"requests_per_minute": -1}, headers=bearer(everywhere))
        assert below.json()["errors"][0]["field"] == "requests_per_minute"
        assert (await client.put(path, json=given, headers=bearer(everywhere))).json()["requests_per_minute"] == 1
        answers = [await client.get("/api/memories", headers=bearer(papers)) for _ in range(2)]
        assert answers[-1].status_code == 429
    renewed = await ManagedKeys(own_services.database).rotate(papers.key.key_id, overlap=timedelta(0))
    assert renewed.key.requests_per_minute == 1


async def test_without_a_key_only_the_panel_makes_the_first(own_services: Services) -> None:
    async with calling(own_services) as client:
        wanted = {"name": "me", "scopes": [ADMIN]}
        assert (await client.post("/api/keys", json=wanted)).status_code == 403
        assert (await client.get("/api/memories")).status_code == 200
        same = {"sec-fetch-site": "same-origin"}
        assert (await client.post("/api/keys", json=wanted, headers=same)).status_code == 201
        assert (await client.get("/api/memories", headers=same)).status_code == 401


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (DatabaseUnavailable("it is away"), 503, "it is away"),
        (StorageFull("it takes no changes"), 503, "it takes no changes"),
        (OSError("odd"), 500, ""),
    ],
)
async def test_a_key_that_cannot_be_checked_is_answered_with_a_problem(
    own_services: Services, error: Exception, status: int, reason: str
) -> None:
    def failing(*_: object, **__: object) -> Any:
        raise error

    own_services.database.session = failing  # type: ignore[method-assign]  # a database that fails
    async with calling(own_services) as client:
        with capture_logs() as logs:
            answer = await client.get("/api/memories", headers={"authorization": "Bearer priors_unknown"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert str(error) not in answer.text
    failed, noted = logs
    assert (failed["event"], failed["path"], failed.get("reason", "")) == ("request failed", "/api/memories", reason)
    assert (noted["event"], noted["status"]) == ("request", status)


async def test_while_the_database_is_away_a_known_key_is_still_known(own_services: Services) -> None:
    made_key = await a_key(own_services)
    found = KnownKeys(own_services.database)
    assert await found.find(made_key.secret.encode())

    def away(*_: object, **__: object) -> Any:
        raise DatabaseUnavailable("away")

    own_services.database.session = away  # type: ignore[method-assign]  # a database that does not answer
    assert await found.find(made_key.secret.encode())
    with pytest.raises(DatabaseUnavailable):
        await found.find(b"priors_unknown")
    with pytest.raises(DatabaseUnavailable):
        await found.exist()


async def test_while_the_database_is_away_the_last_answer_keeps_a_service_closed(own_services: Services) -> None:
    await a_key(own_services)
    found = KnownKeys(own_services.database)
    assert await found.exist()

    def away(*_: object, **__: object) -> Any:
        raise DatabaseUnavailable("away")

    own_services.database.session = away  # type: ignore[method-assign]  # a database that does not answer
    found.forget()
    assert await found.exist()


async def test_a_key_that_is_looked_up_while_it_is_revoked_is_not_remembered(own_services: Services) -> None:
    made_key = await a_key(own_services)
    found, session = KnownKeys(own_services.database), own_services.database.session

    @asynccontextmanager
    async def slow(*given: Any, **named: Any) -> AsyncIterator[Any]:
        async with session(*given, **named) as opened:
            yield opened
            own_services.database.session = session  # type: ignore[method-assign]  # once
            await ManagedKeys(own_services.database).revoke(made_key.key.key_id)
            found.forget()

    own_services.database.session = slow  # type: ignore[method-assign]  # a look-up that a revocation overtakes
    assert await found.find(made_key.secret.encode())
    assert await found.find(made_key.secret.encode()) is None


async def test_a_use_is_noted_once_a_minute(own_services: Services) -> None:
    made_key = await a_key(own_services)
    assert await KnownKeys(own_services.database).find(made_key.secret.encode())
    (used,) = await ManagedKeys(own_services.database).list_all()
    assert used.last_used_at is not None
    await KnownKeys(own_services.database).find(made_key.secret.encode())
    assert [key.last_used_at for key in await ManagedKeys(own_services.database).list_all()] == [used.last_used_at]


@forked.shared()
def test_the_commands_make_list_limit_rotate_and_revoke(own_database_url: str, tmp_path: Path) -> None:
    settings = {"PRIORS_DATABASE_URL": own_database_url, "PRIORS_DATA_DIR": str(tmp_path)}

    def call(*words: str, command: str = "key") -> CompletedProcess[str]:
        return forked.run([command, *words], {"PATH": os.environ["PATH"], **settings})

    assert "priors key create" in call("list").stderr
    created = call(
        "create", "scout", "--scope", "read", "--scope", "rate", "-w", "papers", "--expires", "30d", "--json"
    )
    key_id = json.loads(created.stdout)["key"]["id"]
    assert f"{key_id}  scout  rate+read  papers  expires " in call("list").stdout
    call("PUT", f"/api/keys/{key_id}/limits", "requests_per_minute:=600", "--owner", command="api")
    assert "  600 requests a minute  " in call("list").stdout
    assert call("rotate", key_id, "--overlap", "2h").stdout.startswith("priors_")
    assert "  revoked " in call("revoke", key_id).stdout
    assert [line.count("revoked") for line in call("list").stdout.splitlines()] == [0, 1]
    for words, reason in (
        (("create", "x", "--scope", "fly"), "scopes"), (("create", "x", "--expires", "soon"), "--expires"),
        (("create", "x", "--expires", "9999w"), "expires_at: must be in the future, within 10 years"),
        (("rotate", key_id, "--overlap", "long"), "--overlap"), (("rotate", key_id), "revoked"),
    ):  # fmt: skip
        assert reason in call(*words).stderr
