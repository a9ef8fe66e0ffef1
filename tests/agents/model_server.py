"""A scripted model on loopback, which logs the requests that it gets."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.agents.model_apis import Reply, Request, find_api
from tests.agents.scenarios import next_step, tool_call

SIDE_REPLY: Final = "Cart"
"""Answer to requests without tools, such as that for the title of a session."""
HOST: Final = "127.0.0.1"


class ModelServer(ThreadingHTTPServer):
    """Plays one scenario to an agent that works in a folder, and writes each request to `log`."""

    daemon_threads = True

    def __init__(self, port: int, scenario: str, folder: Path, log: Path) -> None:
        super().__init__((HOST, port), _Handler)
        self._scenario = scenario
        self._folder = folder
        self._log = log
        self._lock = threading.Lock()
        self._number = 0

    def reply(self, path: str, request: Request, body: dict[str, Any]) -> Reply:
        """Return the next answer, and log the request with it."""
        with self._lock:
            self._number += 1
            number = self._number
        if request.tools:
            step = next_step(self._scenario, request.calls)
            call = tool_call(step.action, request.tools, self._folder) if step.action else None
            reply = Reply(number, step.text, call)
        else:
            reply = Reply(number, SIDE_REPLY, None)
        self.log(number, {"path": path, "has_tools": bool(request.tools), "calls": request.calls, "body": body})
        return reply

    def log(self, number: int, entry: dict[str, Any]) -> None:
        """Write a request to a file of its own."""
        (self._log / f"{number:04d}.json").write_text(json.dumps(entry, indent=1, ensure_ascii=False), "utf-8")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        model = {"id": "scripted", "object": "model", "type": "model", "display_name": "Scripted"}
        self._send_json({"object": "list", "data": [model], "models": []})

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = json.loads(self._read() or b"{}")
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send_json({"input_tokens": 1, "totalTokens": 1})
        elif api := find_api(path):
            request = api.parse(path, body)
            reply = self.server.reply(path, request, body)
            if request.is_streaming:
                self._send(b"".join(map(_encode_event, api.events(request, reply))), "text/event-stream")
            else:
                self._send_json(api.document(request, reply))
        else:
            self._send_json({})

    def _read(self) -> bytes:
        """Read the body of a request."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

    def _send_json(self, document: dict[str, Any]) -> None:
        self._send(json.dumps(document).encode())

    def _send(self, data: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _encode_event(event: tuple[str, Any]) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


@contextmanager
def scripted_model(port: int, scenario: str, folder: Path, log: Path) -> Iterator[None]:
    """Serve a scripted model while the block runs."""
    server = ModelServer(port, scenario, folder, log)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
