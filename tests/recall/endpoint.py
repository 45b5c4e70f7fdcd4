"""A server that speaks OpenAI's embeddings protocol, as badly as a test wants it to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class FakeEndpoint:
    """Vectors of `dimensions` numbers, of which a text's length is the first. `failures` are answered first."""

    url: str = ""
    dimensions: int = 8
    failures: list[tuple[int, str]] = field(default_factory=list)
    answer: Any = None
    requests: list[dict[str, Any]] = field(default_factory=list)

    def reply(self, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, str]:
        self.requests.append({"authorization": headers.get("Authorization"), **body})
        if self.failures:
            return self.failures.pop(0)
        if self.answer is not None:
            return 200, json.dumps(self.answer)
        rows = [
            {"index": index, "embedding": [float(len(text)), *[1.0] * (self.dimensions - 1)]}
            for index, text in enumerate(body["input"])
        ]
        # In any order: the protocol numbers them.
        return 200, json.dumps({"data": rows[::-1]})


@contextmanager
def running_endpoint() -> Iterator[FakeEndpoint]:
    fake = FakeEndpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, text = (
                (404, "") if self.path != "/v1/embeddings" else fake.reply(dict(self.headers), body)
            )
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
