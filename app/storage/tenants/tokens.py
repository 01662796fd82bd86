"""Verifies the tokens of an OpenID Connect issuer, whose public keys are fetched."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import jwt
import structlog
from jwt.algorithms import AllowedPublicKeys

from app.errors import IssuerUnavailable, WrongToken
from app.settings import is_private_url
from app.storage.tenants.keys import ADMIN, SCOPES, TOKEN, Key

_PREFIX = "priors:"
"""The beginning of each value that grants a scope, such as `priors:read`: an issuer's other roles grant nothing."""
_ALL = "*"
"""The value that stands for all workspaces."""
_LEEWAY_SECONDS = 60
"""Difference of clocks that is forgiven."""
_LEAST_RSA_BITS = 2_048
_LONGEST_SUBJECT = 255
"""Characters that OpenID Connect allows a caller's name."""
_CURVES = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",), "Ed25519": ("EdDSA",)}
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS = frozenset(RSA).union(*_CURVES.values())
"""Signatures that are accepted: those whose verifying key is public, so that who can read it can make none."""
_REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "has expired"),
    (jwt.ImmatureSignatureError, "is not valid yet"),
    (jwt.InvalidAudienceError, "is for another audience"),
    (jwt.InvalidIssuerError, "is of another issuer"),
    (jwt.InvalidAlgorithmError, "is signed in a way that its key does not have"),
    (jwt.InvalidSignatureError, "has a signature that does not fit"),
)


_SCOPE_CLAIMS = ("scope", "scp", "roles")
"""The claims that may have the scopes: the first that a token has counts. Issuers differ in its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The issuer that is trusted, and where its tokens tell their powers."""

    issuer: str
    audience: str
    workspaces_claim: str


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of the issuer, and the algorithms that it verifies."""

    key: AllowedPublicKeys
    algorithms: tuple[str, ...]


def _public_keys(document: Any) -> dict[str, PublicKey]:  # noqa: ANN401 - JSON of a stranger
    """Returns the usable keys of a JSON Web Key Set by their ids; a key without an id has the id ""."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise TypeError("it is no JSON Web Key Set")
    found = ((str(item.get("kid", "")), _public_key(item)) for item in listed if isinstance(item, dict))
    return {kid: key for kid, key in found if key is not None}


def _key_id(token: str) -> str:
    """Returns the id of the key that is said to have signed a token, "" if it says none.

    Raises:
        WrongToken: it is no signed token, or signed in a way that is not accepted.
    """
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise WrongToken("the token is no JSON Web Token") from None
    if str(header.get("alg")) not in _ALGORITHMS:
        raise WrongToken("the token is not signed by a public-key algorithm")
    return str(header.get("kid", ""))


def _verify_token(token: str, key: PublicKey, trust: Trust) -> Key:
    """Returns the powers of a token.

    Raises:
        WrongToken: its signature, issuer, audience or time does not hold, or it grants nothing here.
    """
    try:
        claims = jwt.decode(
            token,
            key.key,
            algorithms=key.algorithms,
            audience=trust.audience,
            issuer=trust.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except jwt.MissingRequiredClaimError as error:
        raise WrongToken(f"the token has no claim `{error.claim}`") from None
    except jwt.PyJWTError as error:
        said = next((reason for kind, reason in _REASONS if isinstance(error, kind)), "is malformed")
        raise WrongToken(f"the token {said}") from None
    return _powers(claims, trust)


def _powers(claims: Mapping[str, Any], trust: Trust) -> Key:
    given = next((words for claim in _SCOPE_CLAIMS if (words := _words(claims.get(claim)))), ())
    scopes = frozenset(scope for scope in SCOPES if _PREFIX + scope in given)
    if not scopes:
        claims_of_scopes = " or ".join(f"`{claim}`" for claim in _SCOPE_CLAIMS)
        raise WrongToken(f"the token's claim {claims_of_scopes} has none of {', '.join(map(_PREFIX.__add__, SCOPES))}")
    workspaces = _words(claims.get(trust.workspaces_claim))
    if not workspaces:
        raise WrongToken(f"the token's claim `{trust.workspaces_claim}` names no workspace")
    name = str(claims["sub"])
    if not name.strip() or len(name) > _LONGEST_SUBJECT or not name.isprintable():
        raise WrongToken(f"the token's claim `sub` is no name of 1 to {_LONGEST_SUBJECT} printable characters")
    return Key(
        name=name,
        kind=TOKEN,
        scopes=scopes,
        workspaces=None if _ALL in workspaces else workspaces,
        personal=ADMIN in scopes,
    )


def _words(value: object) -> tuple[str, ...]:
    """Returns the values of a claim, which is a list, or a text with spaces between them."""
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _public_key(item: Mapping[str, Any]) -> PublicKey | None:
    """Returns one key of a set; None if it is private, symmetric, weak, of an unknown kind, or not for signatures."""
    algorithms: tuple[str, ...] = RSA if item.get("kty") == "RSA" else _CURVES.get(str(item.get("crv")), ())
    if "alg" in item:
        algorithms = tuple(name for name in algorithms if name == item["alg"])
    if not algorithms or "d" in item or item.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(dict(item), algorithms[0]).key
    except jwt.PyJWTError:
        return None
    weak = algorithms[0] in RSA and getattr(key, "key_size", 0) < _LEAST_RSA_BITS
    return None if weak else PublicKey(key, algorithms)


_DISCOVERY = "/.well-known/openid-configuration"
LIMIT_SECONDS = 5.0
"""Time that both answers of the issuer may take together."""
PAUSE_SECONDS = 10.0
"""Least time between two attempts, so that tokens with invented key ids cannot make requests to the issuer."""
FRESH_SECONDS = 3_600.0
"""Age from which known keys are fetched again, while they go on serving."""
_MOST_BYTES = 1_000_000

logger = structlog.get_logger()


class Issuer:
    """Verifies the tokens of one issuer."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._keys: dict[str, PublicKey] = {}
        self._fetched = self._tried = float("-inf")
        self._trouble = ""
        self._fetching = asyncio.Lock()
        self._refresh: asyncio.Task[None] | None = None

    async def admit(self, token: str) -> Key:
        """Returns the powers of a token.

        Raises:
            WrongToken: the token does not hold, or its key is none of the issuer's.
            IssuerUnavailable: its key is not known, and the issuer does not tell its keys.
        """
        kid = _key_id(token)
        if self._find(kid) is None:
            await self._fetch()
        elif time.monotonic() - self._fetched > FRESH_SECONDS and not self._fetching.locked():
            self._refresh = asyncio.create_task(self._fetch())
        key = self._find(kid)
        if key is None and self._trouble:
            raise IssuerUnavailable(
                f"the token's key is unknown, and its issuer does not tell its keys: {self._trouble}"
            )
        if key is None:
            raise WrongToken("the token names a key that its issuer does not have")
        return _verify_token(token, key, self._trust)

    def _find(self, kid: str) -> PublicKey | None:
        """Returns the key with an id. A token that names none has the only key of the issuer."""
        if not kid and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    async def _fetch(self) -> None:
        """Asks the issuer for its keys, unless somebody has asked just now; what is known stays if this fails."""
        began = time.monotonic()
        async with self._fetching:
            if self._tried >= began or time.monotonic() - self._tried < PAUSE_SECONDS:
                return
            try:
                async with asyncio.timeout(LIMIT_SECONDS), httpx.AsyncClient(timeout=LIMIT_SECONDS) as client:
                    self._keys = await self._fetch_keys(client)
                self._fetched, self._trouble = time.monotonic(), ""
            except TimeoutError:
                self._trouble = f"no answer within {LIMIT_SECONDS:g} s"
            except httpx.HTTPStatusError as error:
                self._trouble = f"it answered {error.response.status_code}"
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                self._trouble = f"it cannot be reached ({type(error).__name__})"
            except (ValueError, TypeError, RecursionError) as error:
                self._trouble = str(error)
            finally:
                self._tried = time.monotonic()
        if self._trouble:
            logger.warning("the keys of the issuer could not be fetched", reason=self._trouble)

    async def _fetch_keys(self, client: httpx.AsyncClient) -> dict[str, PublicKey]:
        found = await _json(client, self._trust.issuer.rstrip("/") + _DISCOVERY)
        if not isinstance(found, dict) or found.get("issuer") != self._trust.issuer:
            raise ValueError("its discovery document is that of another issuer")
        where = str(found.get("jwks_uri", ""))
        if not is_private_url(where):
            raise ValueError("its discovery document names no jwks_uri with https")
        return _public_keys(await _json(client, where))


async def _json(client: httpx.AsyncClient, url: str) -> Any:  # noqa: ANN401 - JSON of a stranger
    """Returns the document at an address, at most _MOST_BYTES of it."""
    read = bytearray()
    async with client.stream("GET", url, headers={"accept": "application/json"}) as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            read += piece
            if len(read) > _MOST_BYTES:
                raise ValueError(f"{url} has more than {_MOST_BYTES} bytes")
    return httpx.Response(200, content=bytes(read)).json()
