"""The keys of an OpenID Connect issuer: discovered, kept, and fetched again when a token names an unknown one."""

import asyncio
import time
from typing import Any

import httpx
import structlog

from app.errors import IssuerUnavailable, WrongToken
from app.settings import is_private_url
from app.storage.tenants.keys.key import Key
from app.storage.tenants.keys.tokens import PublicKey, Trust, key_id, public_keys, verify_token

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
        kid = key_id(token)
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
        return verify_token(token, key, self._trust)

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
        return public_keys(await _json(client, where))


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
