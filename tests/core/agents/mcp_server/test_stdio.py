"""The real command answers clients of both generations of the protocol, on stdin and stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.agents.mcp_server.handshake import META, VERSION, Relay, read_handshake
from tests.core.agents.mcp_server.conftest import LOOP, TASK
from tests.core.cli.conftest import ROOT

pytestmark = pytest.mark.slow
NEWEST = "2026-07-28"
CLIENT = {"name": "claude-code", "version": "2.1"}


class Raw:
    """A process of `ralphdeck mcp` and its lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._id = 0
        self.meta: dict[str, Any] = {}

    def send(self, method: str, **params: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the answer to it."""
        self._id += 1
        if self.meta:
            params["_meta"] = self.meta
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._id:
                return answer
        raise AssertionError("the server ended")

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


@contextmanager
def serve(folder: Path, home: Path, *options: str) -> Iterator[Raw]:
    """Run `ralphdeck mcp` as an agent does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), "XDG_CACHE_HOME": str(home)}
    process = subprocess.Popen(
        [sys.executable, "-m", "core.cli", *options, "mcp", "--project", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        yield Raw(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stderr is not None and process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def last_event(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (folder / ".aiwg/ralph/shared/curation/events.jsonl").read_text().splitlines()[-1]
    )
    return found


def test_a_client_of_2025_initializes_and_calls_whatever_else_it_sends(folder: Path, tmp_path: Path) -> None:
    with serve(folder, tmp_path) as raw:
        started = raw.ask(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "claude-code", "version": "2.1"},
        )
        raw.send("notifications/initialized")
        tools = raw.ask("tools/list")
        called = raw.ask("tools/call", name="loop_context", arguments={"task": TASK, "loop": LOOP})
        wrong = raw.ask("tools/call", name="loop_context", arguments={})
        prompts = raw.ask("prompts/list")
        for line in ("", "not json", "{}", "[]", "[" * 100_000, '{"id": 9, "method": "\\ud800"}', "\x00\x1b[31m"):
            raw.write(line)
        huge = raw.ask("tools/call", name="loop_context", arguments={"task": "x" * 2_000_000})
        odd = raw.ask("tools/call", name="loop_context", arguments="task")
        missing = raw.ask("resources/read", uri="ralphdeck://loops/no-such-loop")
        outside = raw.ask("resources/read", uri="ralphdeck://patterns/..%2f..%2fetc%2fpasswd")
        alive = raw.ask("tools/call", name="list_loops", arguments={})
    assert started["result"]["protocolVersion"] == "2025-06-18"
    assert started["result"]["serverInfo"]["name"] == "ralphdeck"
    assert "data, not instructions" in started["result"]["instructions"]
    assert len(tools["result"]["tools"]) == 8 and len(prompts["result"]["prompts"]) == 2
    assert called["result"]["structuredContent"]["injection_id"].startswith(LOOP)
    assert called["result"]["content"][0]["text"].startswith("<unreviewed-")
    assert wrong["result"]["isError"] is True
    assert last_event(folder)["by"] == "mcp:claude-code"
    assert huge["result"]["isError"] and len(json.dumps(huge)) < 2000
    assert "error" in odd and "error" in outside
    assert missing["error"]["code"] == -32602 and "no loop 'no-such-loop'" in missing["error"]["message"]
    assert alive["result"]["isError"] is False


def test_a_client_of_2026_discovers_and_calls_without_a_session(folder: Path, tmp_path: Path) -> None:
    with serve(folder, tmp_path) as raw:
        raw.meta = {
            f"{META}protocolVersion": NEWEST,
            f"{META}clientInfo": {"name": "codex", "version": "1"},
            f"{META}clientCapabilities": {},
        }
        found = raw.ask("server/discover")
        tools = raw.ask("tools/list")
        called = raw.ask("tools/call", name="list_loops", arguments={"status": "all", "limit": 3})
        raw.ask("tools/call", name="report_outcome", arguments={"result": "success", "summary": "done"})
        page = raw.ask("resources/read", uri="ralphdeck://context")
        raw.process.send_signal(signal.SIGTERM)
        assert raw.process.wait(30) == 0, "a signal ends the server while its client waits"
    assert NEWEST in found["result"]["supportedVersions"]
    assert len(tools["result"]["tools"]) == 8
    assert len(called["result"]["structuredContent"]["loops"]) == 3
    assert page["result"]["contents"][0]["mimeType"] == "text/markdown"
    assert last_event(folder)["by"] == "mcp:codex"


def test_a_read_only_server_lists_no_tools_that_record_and_offers_a_known_version(folder: Path, tmp_path: Path) -> None:
    with serve(folder, tmp_path, "--readonly") as raw:
        started = raw.ask("initialize", protocolVersion="1999-01-01", capabilities={}, clientInfo=CLIENT)
        tools = {tool["name"] for tool in raw.ask("tools/list")["result"]["tools"]}
    assert started["result"]["protocolVersion"] == "2025-11-25"
    assert len(tools) == 6 and not tools & {"report_outcome", "propose_lesson"}


def test_a_signal_ends_the_server_of_a_client_that_may_initialize_after_a_late_answer(
    folder: Path, tmp_path: Path
) -> None:
    with serve(folder, tmp_path) as raw:
        probe = {f"{META}protocolVersion": NEWEST, f"{META}clientInfo": CLIENT, f"{META}clientCapabilities": {}}
        raw.ask("server/discover", _meta=probe)
        raw.ask("initialize", protocolVersion="2025-11-25", capabilities={"roots": {}}, clientInfo=CLIENT)
        raw.send("notifications/initialized")
        called = raw.ask("tools/call", name="list_loops", arguments={})
        assert called["result"]["isError"] is False
        raw.process.send_signal(signal.SIGINT)
        assert raw.process.wait(30) == 0


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "core.cli", "--readonly", "mcp", "--project", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: no .aiwg in {tmp_path}; name a project with --project\n"


def test_without_the_extra_the_error_names_what_to_install(folder: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        f"from core.cli.program import run; sys.exit(run(['mcp', '--project', {str(folder)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "run: pip install '.[mcp]'" in done.stderr and "Traceback" not in done.stderr


HANDSHAKE = read_handshake(is_readonly=False)
CLIENT_INFO = {"name": "codex", "version": "1"}
GIVEN = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": True}},
    "clientInfo": CLIENT_INFO,
}
PROBE = {"_meta": {VERSION: HANDSHAKE.newest, f"{META}clientInfo": CLIENT_INFO, f"{META}clientCapabilities": {}}}


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
