"""Generate `core/agents/mcp_server/handshake.json`: what the SDK answers before a client calls a tool."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from core.agents.mcp_server.handshake import FILE, META, VERSION
from core.agents.mcp_server.server import create_server
from core.cli.demo.sample import copy_sample, sample_anchor
from tests.core.agents.mcp_server.conftest import Server

PAGE = FILE
_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_CLIENT = {"name": "ralphdeck", "version": "1"}


def render_page() -> str:
    """Return the results for a server that records and for a read-only one, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        copy_sample(Path(folder), sample_anchor())
        found = {
            "recording": _results(Server(Path(folder))),
            "readonly": _results(Server(Path(folder), readonly=True)),
        }
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n"


def _results(server: Server) -> dict[str, Any]:
    old = {version: _ask_after_handshake(server, version) for version in HANDSHAKE_PROTOCOL_VERSIONS}
    newest = list(old.values())[-1]
    modern = MODERN_PROTOCOL_VERSIONS[-1]
    meta = {"_meta": {VERSION: modern, f"{META}clientInfo": _CLIENT, f"{META}clientCapabilities": {}}}
    discover, *lists = ask(server, ("server/discover", meta), *((method, meta) for method in _LISTS))
    fields = [
        {key: value for key, value in one.items() if key not in old} for one, old in zip(lists, newest[1:], strict=True)
    ]
    assert all(one == more | old for one, more, old in zip(lists, fields, newest[1:], strict=True))
    return {
        "versions": [version for version, answers in old.items() if answers == newest],
        "initialize": newest[0],
        "lists": dict(zip(_LISTS, newest[1:], strict=True)),
        "newest": modern,
        "discover": discover,
        "newest_fields": dict(zip(_LISTS, fields, strict=True)),
    }


def _ask_after_handshake(server: Server, version: str) -> list[dict[str, Any]]:
    given = {"protocolVersion": version, "capabilities": {}, "clientInfo": _CLIENT}
    initialize, *lists = ask(server, ("initialize", given), *((method, {}) for method in _LISTS))
    assert initialize.pop("protocolVersion") == version
    return [initialize, *lists]


def ask(server: Server, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of requests to the server of the SDK, without a process."""
    (read, write), (answers, answer) = os.pipe(), os.pipe()
    stdin, stdout = sys.stdin, sys.stdout
    try:
        sys.stdin = TextIOWrapper(os.fdopen(read, "rb"))
        sys.stdout = TextIOWrapper(os.fdopen(answer, "wb"))
        running = threading.Thread(target=create_server(server.session).run)
        running.start()
        with os.fdopen(write, "w") as sending, os.fdopen(answers) as receiving:
            results = []
            for number, (method, given) in enumerate(requests):
                request = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
                sending.write(json.dumps(request) + "\n")
                sending.flush()
                results.append(json.loads(receiving.readline())["result"])
            sending.close()
            running.join()
    finally:
        sys.stdin, sys.stdout = stdin, stdout
    return results
