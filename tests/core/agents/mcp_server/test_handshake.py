"""The handshake is answered without the SDK; every other line reaches it unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from core.agents.mcp_server.handshake import META, VERSION, Relay, read_handshake
from tests.core.cli.conftest import ROOT

HANDSHAKE = read_handshake(is_readonly=False)
CLIENT = {"name": "codex", "version": "1"}
GIVEN = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {"listChanged": True}}, "clientInfo": CLIENT}
PROBE = {"_meta": {VERSION: HANDSHAKE.newest, f"{META}clientInfo": CLIENT, f"{META}clientCapabilities": {}}}


class Line:
    """A relay between a client and a server, both of them this test."""

    def __init__(self) -> None:
        source, self.client = os.pipe()
        answers, sink = os.pipe()
        self.relay = Relay(HANDSHAKE, source, sink)
        self.answers = os.fdopen(answers, "r")
        self.relay.start()

    def send(self, method: str, given: dict[str, Any] | None = None, **fields: Any) -> None:
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            **({} if given is None else {"params": given}),
            **fields,
        }
        self.write(json.dumps(request).encode() + b"\n")

    def write(self, data: bytes) -> None:
        os.write(self.client, data)

    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.answers.readline())
        return found

    def passed(self) -> str:
        return self.relay.requests.readline()

    def close(self) -> None:
        os.close(self.client)
        assert self.passed() == ""


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


def test_a_handshake_is_answered_at_once_and_repeated_for_the_server(line: Line) -> None:
    line.send("initialize", GIVEN)
    answer = line.answer()
    assert answer["id"] == 1 and answer["result"]["protocolVersion"] == "2025-11-25"
    repeated = json.loads(line.passed())
    assert repeated["params"] == GIVEN and repeated["id"] != 1
    line.relay.answers.write(json.dumps({"jsonrpc": "2.0", "id": repeated["id"]}, separators=(",", ":")) + "\n")
    line.relay.answers.write('{"jsonrpc":"2.0","id":7}\n')
    line.relay.answers.flush()
    assert line.answer()["id"] == 7, "the answer to the repeated request is not sent"


def test_the_lists_are_answered_once_the_version_is_agreed_on(line: Line) -> None:
    line.send("tools/list")
    assert "tools/list" in line.passed(), "the server refuses it"
    line.send("initialize", GIVEN)
    line.answer()
    line.passed()
    for method, result in HANDSHAKE.lists.items():
        line.send(method)
        assert line.answer()["result"] == result
    line.send("ping")
    assert line.answer()["result"] == {}


def test_a_client_without_a_handshake_gets_the_lists_of_its_version(line: Line) -> None:
    line.send("server/discover", PROBE)
    assert HANDSHAKE.newest in line.answer()["result"]["supportedVersions"]
    line.send("tools/list", PROBE)
    assert line.answer()["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    "given",
    [
        {},
        GIVEN | {"protocolVersion": "1999-01-01"},
        GIVEN | {"protocolVersion": ["2025-11-25"]},
        GIVEN | {"capabilities": None},
        GIVEN | {"capabilities": {"roots": 1}},
        GIVEN | {"clientInfo": {"name": "codex"}},
    ],
)
def test_an_unusual_handshake_is_left_to_the_server(line: Line, given: dict[str, Any]) -> None:
    line.send("initialize", given)
    assert json.loads(line.passed())["params"] == given


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"not json\n",
        b"[]\n",
        b'{"id": null, "method": "initialize"}\n',
        b'{"id": 1, "method": "ping"}\n',
        b"[" * 999 + b"\n",
    ],
)
def test_everything_else_reaches_the_server_unchanged(line: Line, data: bytes) -> None:
    line.write(data)
    assert line.passed().encode() == data


def test_a_long_line_is_passed_on_in_parts_and_the_next_one_is_read(line: Line) -> None:
    line.write(b'{"method": "tools/call", "id": "')
    for _ in range(4):
        line.write(b"x" * 50_000)
    line.write(b'"}\n')
    assert len(line.passed()) == 200_000 + 35
    line.send("initialize", GIVEN)
    assert line.answer()["id"] == 1
    line.passed()


def test_the_handshake_needs_neither_the_sdk_nor_the_project() -> None:
    program = (
        "import sys, core.agents.mcp_server.handshake as handshake; handshake.read_handshake(is_readonly=False); "
        "sys.exit(bool({'mcp', 'mcp_types', 'pydantic', 'numpy', 'core.project', 'asyncio'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
