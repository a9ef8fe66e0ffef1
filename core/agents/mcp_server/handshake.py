"""Answers a client's handshake during the server's imports; passes the rest on.

The SDK and the project take a second of processor time to import. Clients list the tools of a server only if it has
answered by the time of their first request, so what does not depend on the project is answered from a generated file.
This module imports neither the SDK nor the project.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BufferedWriter, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.files.file_reader import decode_json

FILE: Final = Path(__file__).with_name("handshake.json")
_REPEATED: Final = "ralphdeck-handshake"  # ID of the request that is repeated for the SDK
_ID: Final = f'"id":"{_REPEATED}"'.encode()
_MAX_HEAD: Final = 200  # beginning of an answer, which contains its ID
META: Final = "io.modelcontextprotocol/"
VERSION: Final = f"{META}protocolVersion"
_MAX_LINE: Final = 1 << 16  # longer lines are not a handshake
_CHUNK: Final = 1 << 16
_FIRST_SECONDS: Final = 0.2  # to wait for the first request before the imports begin
_END_SECONDS: Final = 2.0  # for the call that runs when a signal ends the server


class Handshake(Struct, frozen=True, kw_only=True):
    """Results that all projects share; generated, see tests/reference/mcp_server.py."""

    versions: tuple[str, ...]  # of the protocol with a handshake, for which they hold; others are left to the SDK
    initialize: Mapping[str, Any]
    lists: Mapping[str, Mapping[str, Any]]  # by method: the tools, prompts and resources
    newest: str  # version of the protocol without a handshake
    discover: Mapping[str, Any]  # `server/discover`
    newest_fields: Mapping[str, Mapping[str, Any]]  # further ones of the lists in this version


def read_handshake(*, is_readonly: bool) -> Handshake:
    """Read the results for a server that records, or for a read-only one."""
    both = msgspec.json.decode(FILE.read_bytes(), type=dict[str, Handshake])
    return both["readonly" if is_readonly else "recording"]


class Relay:
    """Reads requests from `source`, answers the handshake on `sink` (descriptors).

    Every other line is passed on to `requests`. What the server answers is written to `answers`.
    """

    def __init__(self, handshake: Handshake, source: int, sink: int) -> None:
        self._handshake = handshake
        self._source = source
        self._sink = sink
        self._passed, end = socket.socketpair()
        self.requests = TextIOWrapper(end.makefile("rb"), encoding="utf-8", errors="replace")
        self.answers = TextIOWrapper(BufferedWriter(_Answers(self._send)), encoding="utf-8")
        self._sending = threading.Lock()
        self._has_begun = threading.Event()
        self._era = ""  # version of the protocol, once it was agreed on

    def start(self) -> None:
        """Read in a thread; wait briefly, so that imports do not delay the first answer."""
        threading.Thread(target=self._read, daemon=True).start()
        self._has_begun.wait(_FIRST_SECONDS)

    def end(self) -> None:
        """End the requests, as if the client had closed its side."""
        with suppress(OSError):
            self._passed.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        line, is_long = b"", False
        with suppress(OSError):  # the server has ended
            while chunk := os.read(self._source, _CHUNK):
                *whole, rest = chunk.split(b"\n")
                for part in whole:
                    self._take(line + part + b"\n", is_long)
                    line, is_long = b"", False
                line += rest
                if len(line) > _MAX_LINE:
                    self._pass(line)
                    line, is_long = b"", True
            if line:
                self._take(line, is_long)
        self._has_begun.set()
        self.end()

    def _take(self, line: bytes, is_long: bool) -> None:
        request = None if is_long or len(line) > _MAX_LINE else decode_json(line).value
        answer = self._answer(request) if isinstance(request, dict) else None
        if request is not None and answer is not None:
            self._send(msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "result": answer}) + b"\n")
        else:
            self._pass(line)
        self._has_begun.set()

    def _answer(self, request: dict[str, Any]) -> Mapping[str, Any] | None:
        """Return the result of a handshake request; None for what the server answers."""
        method, given = str(request.get("method")), request.get("params", {})
        if type(request.get("id")) not in (int, str) or not isinstance(given, dict):
            return None
        meta = given.get("_meta")
        is_newest = isinstance(meta, dict) and meta.get(VERSION) == self._handshake.newest
        if method == "initialize" and not is_newest and not self._era and self._is_known(given):
            return self._initialize(request, given)
        if is_newest and self._era in ("", self._handshake.newest):
            if method == "server/discover":
                return self._handshake.discover
            if method in self._handshake.lists and set(given) == {"_meta"}:
                self._era = self._handshake.newest
                return {**self._handshake.newest_fields[method], **self._handshake.lists[method]}
        if method in self._handshake.lists and not given and self._era in self._handshake.versions:
            return self._handshake.lists[method]
        return {} if method == "ping" and self._era in self._handshake.versions else None

    def _initialize(self, request: dict[str, Any], given: dict[str, Any]) -> Mapping[str, Any]:
        self._era = given["protocolVersion"]
        self._pass(msgspec.json.encode({**request, "id": _REPEATED}) + b"\n")
        return {**self._handshake.initialize, "protocolVersion": self._era}

    def _is_known(self, given: dict[str, Any]) -> bool:
        """Return whether the generated results hold for these parameters of `initialize`."""
        client, able = given.get("clientInfo"), given.get("capabilities")
        return (
            given.get("protocolVersion") in self._handshake.versions
            and isinstance(able, dict)
            and all(isinstance(value, dict) for value in able.values())
            and isinstance(client, dict)
            and all(isinstance(client.get(name), str) for name in ("name", "version"))
        )

    def _pass(self, data: bytes) -> None:
        self._passed.sendall(data)

    def _send(self, data: bytes) -> None:
        with self._sending:
            view = memoryview(data)
            while view:
                view = view[os.write(self._sink, view) :]


class _Answers(RawIOBase):
    """Server output without the answer to the repeated request, in whole lines."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Send the lines."""
        written = bytes(data)
        self._send(b"".join(line for line in written.splitlines(keepends=True) if _ID not in line[:_MAX_HEAD]))
        return len(written)


def open_relay(*, is_readonly: bool) -> Relay:
    """Take over stdin and stdout, so that nothing else reads or writes the protocol."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return Relay(read_handshake(is_readonly=is_readonly), source, sink)


def end_at_signals(relay: Relay) -> None:
    """End requests at SIGINT and SIGTERM; a running call delays the end only briefly."""

    def end(_signal: int, _frame: object) -> None:
        relay.end()
        last = threading.Timer(_END_SECONDS, os._exit, (0,))
        last.daemon = True
        last.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
