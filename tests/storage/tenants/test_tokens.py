"""Bearer tokens of an OpenID Connect issuer: which are taken, and what happens while the issuer misbehaves."""

import asyncio
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from app.errors import ConfigurationError, IssuerUnavailable, WrongToken
from app.interfaces.http.serving.application import create_app, in_frame
from app.settings import Settings, check_exposure, from_environment
from app.storage.tenants import tokens as issuers
from app.storage.tenants.tokens import Issuer, Trust
from app.wiring import Services
from tests.fakes.issuer import DISCOVERY, SIGNING, FakeIssuer, issuing


@pytest.fixture
def there() -> Iterator[FakeIssuer]:
    """A running issuer."""
    with issuing() as running:
        yield running


def trusting(there: FakeIssuer, **changes: Any) -> Issuer:
    """What trusts this issuer."""
    trust = Trust(issuer=there.url, audience="priors", workspaces_claim="priors_workspaces")
    return Issuer(replace(trust, **changes))


async def asked_more_than(there: FakeIssuer, count: int) -> None:
    """Waits until the issuer was asked more often than that."""
    while len(there.asked) <= count:  # noqa: ASYNC110 - another thread notes it
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kid", ["r1", "e1"])
async def test_a_token_has_the_powers_that_its_claims_tell(there: FakeIssuer, kid: str) -> None:
    key = await trusting(there).admit(there.token(kid))
    assert (key.name, key.scopes, key.workspaces, key.personal) == ("scout", frozenset({"read"}), ("papers",), False)


async def test_claims_are_lists_or_words_under_the_names_of_the_settings(there: FakeIssuer) -> None:
    given: dict[str, Any] = {"https://x/places": "a b", "aud": ["other", "priors"]}
    token = there.token(scope="", roles=["priors:admin", "admin", 7], **given)
    key = await trusting(there, workspaces_claim="https://x/places").admit(token)
    assert (key.scopes, key.workspaces, key.personal) == (frozenset({"admin"}), ("a", "b"), True)
    assert (await trusting(there).admit(there.token(priors_workspaces="*"))).workspaces is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": "another"}, "another audience"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"exp": None}, "no claim `exp`"),
        ({"sub": None}, "no claim `sub`"),
        ({"sub": "a\x00"}, "printable"),
        ({"sub": "\ud800"}, "printable"),
        ({"sub": "x" * 256}, "printable"),
        ({"sub": " "}, "printable"),
        ({"scope": "read admin"}, "none of priors:read"),
        ({"scope": {"priors:read": True}}, "none of priors:read"),
        ({"priors_workspaces": None}, "names no workspace"),
        ({"kid": "e2"}, "a key that its issuer does not have"),
        ({"algorithm": "none", "key": ""}, "public-key algorithm"),
        ({"algorithm": "HS256", "key": "guessed-" * 8}, "public-key algorithm"),
        ({"kid": "r1", "key": rsa.generate_private_key(public_exponent=65_537, key_size=2_048)}, "signature"),
        ({"kid": "e1", "key": SIGNING["r1"], "algorithm": "RS256"}, "signed in a way"),
    ],
)
async def test_a_token_that_does_not_hold_is_refused_by_its_reason(
    there: FakeIssuer, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(WrongToken, match=reason) as refused:
        await trusting(there).admit(there.token(**changes))
    assert "papers" not in str(refused.value)


@pytest.mark.parametrize(("claim", "seconds", "reason"), [("exp", -90, "expired"), ("nbf", 900, "not valid yet")])
async def test_a_token_out_of_its_time_is_refused(there: FakeIssuer, claim: str, seconds: int, reason: str) -> None:
    changes: dict[str, Any] = {claim: int(time.time()) + seconds}
    with pytest.raises(WrongToken, match=reason):
        await trusting(there).admit(there.token(**changes))


async def test_clocks_may_differ_by_less_than_a_minute(there: FakeIssuer) -> None:
    late, early = there.token(exp=int(time.time()) - 20), there.token(nbf=int(time.time()) + 20)
    assert {(await trusting(there).admit(token)).name for token in (late, early)} == {"scout"}


async def test_the_public_key_is_no_secret_to_sign_with(there: FakeIssuer) -> None:
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    public = SIGNING["r1"].public_key().public_bytes(*form)
    head = urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT","kid":"r1"}').rstrip(b"=")
    signed = b".".join((head, there.token().split(".")[1].encode()))
    signature = urlsafe_b64encode(hmac.digest(public, signed, "sha256")).rstrip(b"=")
    with pytest.raises(WrongToken, match="public-key algorithm"):
        await trusting(there).admit(f"{signed.decode()}.{signature.decode()}")
    assert there.asked == []


@pytest.mark.parametrize("token", ["a.b.c", "..", "e30.e30.e30", "\xff.\xfe.\xfd", "eyJhbGciOlsiUlMyNTYiXX0.e30.eA"])
async def test_what_is_no_token_is_said(there: FakeIssuer, token: str) -> None:
    with pytest.raises(WrongToken):
        await trusting(there).admit(token)


async def test_symmetric_private_weak_and_broken_keys_of_an_issuer_are_not_used(there: FakeIssuer) -> None:
    weak = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)  # noqa: S505 - the case under test
    there.published = ["e1"]
    there.others = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "r1"},
        RSAAlgorithm.to_jwk(SIGNING["r1"], as_dict=True) | {"kid": "r1"},
        RSAAlgorithm.to_jwk(weak.public_key(), as_dict=True) | {"kid": "r1"},
        {"kty": "RSA", "kid": "r1", "n": "!", "e": "AQAB"},
    ]
    issuer = trusting(there)
    with pytest.raises(WrongToken, match="does not have"):
        await issuer.admit(there.token("r1"))
    assert (await issuer.admit(there.token("e1"))).name == "scout"


async def test_keys_are_fetched_once_and_again_for_a_new_one(
    there: FakeIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuers, "PAUSE_SECONDS", 600.0)
    issuer = trusting(there)
    await asyncio.gather(*(issuer.admit(there.token(kid)) for kid in ("r1", "e1", "r1")))
    assert there.asked == [DISCOVERY, "/keys"]
    there.published = ["e2"]
    with pytest.raises(WrongToken, match="does not have"):
        await issuer.admit(there.token("e2"))
    assert len(there.asked) == 2
    monkeypatch.setattr(issuers, "PAUSE_SECONDS", 0.0)
    assert (await issuer.admit(there.token("e2"))).name == "scout"
    assert len(there.asked) == 4
    with pytest.raises(WrongToken, match="does not have"):
        await issuer.admit(there.token("r1"))


async def test_while_the_issuer_is_down_known_keys_go_on(there: FakeIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuers, "PAUSE_SECONDS", 0.0)
    issuer = trusting(there)
    await issuer.admit(there.token())
    there.status = 500
    with pytest.raises(IssuerUnavailable, match="500"):
        await issuer.admit(there.token("e2"))
    monkeypatch.setattr(issuers, "FRESH_SECONDS", -1.0)
    before = len(there.asked)
    assert (await issuer.admit(there.token())).name == "scout"
    await asked_more_than(there, before)
    assert (await issuer.admit(there.token())).name == "scout"
    there.status = 200
    there.published = ["r1", "e2"]
    while True:
        # A refresh that began before the issuer was well again may still be under way.
        with suppress(IssuerUnavailable):
            assert (await issuer.admit(there.token("e2"))).name == "scout"
            break


async def test_a_slow_issuer_holds_up_no_known_key(there: FakeIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuers, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(issuers, "LIMIT_SECONDS", 600.0)
    issuer = trusting(there)
    await issuer.admit(there.token())
    there.may_answer.clear()
    waiting = asyncio.create_task(issuer.admit(there.token("e2")))
    await asked_more_than(there, 2)
    assert (await issuer.admit(there.token("e1"))).name == "scout"
    assert not waiting.done()
    monkeypatch.setattr(issuers, "LIMIT_SECONDS", 0.05)
    with pytest.raises(IssuerUnavailable, match=r"within 0\.05 s"):
        await trusting(there).admit(there.token())
    there.may_answer.set()
    with pytest.raises(WrongToken, match="does not have"):
        await waiting


@pytest.mark.parametrize("said", ["https://evil.example", ""])
async def test_a_discovery_document_of_another_issuer_is_not_believed(there: FakeIssuer, said: str) -> None:
    there.says_it_is = said
    with pytest.raises(IssuerUnavailable, match="another issuer"):
        await trusting(there).admit(there.token())


async def test_a_request_is_admitted_by_a_token_and_refused_with_its_reason(
    services: Services, there: FakeIssuer, workspace_name: str
) -> None:
    settings = replace(services.settings, oidc_issuer=there.url, oidc_audience="priors")
    app = create_app(settings, services=replace(services, settings=settings))
    transport = httpx.ASGITransport(in_frame(app))  # type: ignore[arg-type]  # Litestar's types of the same protocol
    async with app.lifespan(), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

        async def asked(token: str, workspace: str = workspace_name, method: str = "GET") -> httpx.Response:
            headers = {"authorization": f"Bearer {token}", "x-workspace": workspace}
            return await client.request(method, "/api/memories", headers=headers, json={"kind": "note", "body": "x"})

        granted = there.token(priors_workspaces=[workspace_name])
        assert (await asked(granted)).status_code == 200
        assert (await asked(granted, "elsewhere")).status_code == 403
        assert (await asked(granted, method="POST")).status_code == 403
        assert (await client.get("/api/memories")).status_code == 401
        expired = await asked(there.token(exp=int(time.time()) - 90))
        assert (expired.status_code, expired.json()["detail"]) == (401, "the token has expired")
        assert 'error="invalid_token"' in expired.headers["www-authenticate"]
        there.status = 500
        # A service that has not learnt the keys yet.
        other = httpx.ASGITransport(in_frame(app))  # type: ignore[arg-type]  # the same
        async with httpx.AsyncClient(transport=other, base_url="http://localhost") as fresh:
            away = await fresh.get("/api/memories", headers={"authorization": f"Bearer {granted}"})
        assert (away.status_code, "retry-after" in away.headers) == (503, True)
        assert "issuer does not tell its keys" in away.json()["detail"]


def test_the_settings_of_an_issuer_belong_together() -> None:
    whole = {"PRIORS_OIDC_ISSUER": "https://id.example/", "PRIORS_OIDC_AUDIENCE": "priors"}
    check_exposure(replace(from_environment(whole), host="0.0.0.0"))  # noqa: S104 - nothing is bound
    for name, value in whole.items():
        with pytest.raises(ConfigurationError, match="need each other"):
            from_environment({name: value})
    with pytest.raises(ConfigurationError, match="must begin with https"):
        from_environment(whole | {"PRIORS_OIDC_ISSUER": "http://id.example"})
    assert Settings().oidc_issuer == ""
