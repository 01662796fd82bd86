"""Bearer tokens of an OpenID Connect issuer: what they must say, and the key that they stand for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.algorithms import AllowedPublicKeys

from app.errors import WrongToken
from app.storage.tenants.keys.key import ADMIN, SCOPES, TOKEN, Key

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


def public_keys(document: Any) -> dict[str, PublicKey]:  # noqa: ANN401 - JSON of a stranger
    """Returns the usable keys of a JSON Web Key Set by their ids; a key without an id has the id ""."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise TypeError("it is no JSON Web Key Set")
    found = ((str(item.get("kid", "")), _public_key(item)) for item in listed if isinstance(item, dict))
    return {kid: key for kid, key in found if key is not None}


def key_id(token: str) -> str:
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


def verify_token(token: str, key: PublicKey, trust: Trust) -> Key:
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
