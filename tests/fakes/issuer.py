"""An OpenID Connect issuer: an HTTP server with keys, which may rotate, fail, lie or keep its clients waiting."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

DISCOVERY = "/.well-known/openid-configuration"
SIGNING: dict[str, Any] = {
    "r1": rsa.generate_private_key(public_exponent=65_537, key_size=2_048),
    "e1": ec.generate_private_key(ec.SECP256R1()),
    "e2": ec.generate_private_key(ec.SECP256R1()),
}
"""Private keys by their ids; making one of RSA takes a moment."""


class FakeIssuer:
    """The issuer's state; a test changes it."""

    def __init__(self, url: str) -> None:
        self.url = self.says_it_is = url
        self.published = ["r1", "e1"]
        self.others = list[dict[str, Any]]()
        """Further keys that it publishes, as they are."""
        self.status = 200
        self.asked = list[str]()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def token(self, kid: str = "r1", *, algorithm: str = "", key: Any = None, **changes: Any) -> str:
        """Returns a token that reads the workspace `papers`, with changed claims; None takes one away."""
        now = int(time.time())
        claims = {
            "iss": self.url, "aud": "priors", "sub": "scout", "iat": now, "exp": now + 300,
            "scope": "openid priors:read", "priors_workspaces": ["papers"],
        } | changes  # fmt: skip
        given = {name: value for name, value in claims.items() if value is not None}
        signed_by = algorithm or ("RS256" if kid.startswith("r") else "ES256")
        return jwt.encode(given, SIGNING[kid] if key is None else key, signed_by, headers={"kid": kid})

    def answer(self, path: str) -> dict[str, Any]:
        """Returns what it publishes at a path."""
        if path == DISCOVERY:
            return {"issuer": self.says_it_is, "jwks_uri": f"{self.url}/keys"}
        return {"keys": [_public(kid) for kid in self.published] + self.others}


@contextmanager
def issuing() -> Iterator[FakeIssuer]:
    """Yields an issuer at a local address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            issuer.may_answer.wait()
            body = json.dumps(issuer.answer(self.path)).encode()
            self.send_response(issuer.status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            del format, args

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # a client that waited no longer
                self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = FakeIssuer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield issuer
        finally:
            issuer.may_answer.set()
            server.shutdown()
            thread.join()


def _public(kid: str) -> dict[str, Any]:
    algorithm = RSAAlgorithm if kid.startswith("r") else ECAlgorithm
    return algorithm.to_jwk(SIGNING[kid].public_key(), as_dict=True) | {"kid": kid, "use": "sig"}
