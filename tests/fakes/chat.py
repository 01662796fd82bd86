"""Language models that answer as a test says: over HTTP, and without."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = 'Title: Supplements grew to 221 billion rubles\nNarrative: The market grew. Pharmacies lead.\nFacts: ["221 billion", "58 % pharmacies", "17 % Evalar"]'  # noqa: E501 - as a model writes it


Answer = tuple[int, bytes | Iterable[bytes]]


def said(text: Any) -> Answer:
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    return 200, json.dumps(answer).encode()


class Endpoint:
    """A server that gives each of its answers once, and the last one from then on."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[], Answer]] = [said(GOOD)]
        self.requests: list[dict[str, Any]] = []
        self.pause = ("retry-after-ms", "1")
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                answer = endpoint.answers.pop(0) if len(endpoint.answers) > 1 else endpoint.answers[0]
                status, content = answer() if callable(answer) else answer
                if not isinstance(content, bytes):
                    self.drip(status, content)
                    return
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.send_header(*endpoint.pause)
                self.end_headers()
                try:
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True

            def drip(self, status: int, parts: Iterable[bytes]) -> None:
                """Sends an answer without an announced length, part by part, until the client closes."""
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                try:
                    for part in parts:
                        self.wfile.write(part)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Says:
    """Answers without an endpoint."""

    model = "m"

    def __init__(self, reply: str | Exception) -> None:
        self.reply = reply
        self.prompts = asyncio.Queue[str]()
        self.schema: Mapping[str, Any] | None = None

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        assert prompt
        self.schema = schema
        self.prompts.put_nowait(prompt)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def close(self) -> None:
        pass
