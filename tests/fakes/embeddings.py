"""An HTTP server that embeds as a test says."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSION = 4


Reply = tuple[int, bytes]


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0, 3.0]


def good(texts: list[str]) -> Reply:
    return answered([vector(text) for text in texts])


def answered(vectors: list[list[float]]) -> Reply:
    items = [{"object": "embedding", "index": place, "embedding": item} for place, item in enumerate(vectors)]
    return 200, json.dumps({"object": "list", "data": items, "model": "m", "usage": {}}).encode()


class Endpoint:
    """An HTTP server with replaceable answers."""

    def __init__(self, port: int = 0) -> None:
        self.reply: Callable[[list[str]], Reply] = good
        self.requests: list[dict[str, Any]] = []
        self.headers = {"content-type": "application/json", "retry-after-ms": "1"}
        self.withheld = 0
        """Bytes that an answer promises and does not send."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append({"path": self.path, "key": self.headers["authorization"], **body})
                status, content = endpoint.reply_to(body["model"], body["input"])
                with suppress(ConnectionError):  # the caller may not have waited
                    self.answer(status, content)

            def answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content) + endpoint.withheld))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:  # the test's output is no access log
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        # Seconds between looks for its end, half a one by default.
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def reply_to(self, _model: str, texts: list[str]) -> Reply:
        return self.reply(texts)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"
