"""Secrets that an agent meets in a session are in no file that ralphdeck writes, and prompts in none that Git adds."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from core.agents.hooks import answer, background
from core.agents.hooks.events import parse_event
from core.agents.hooks.sessions import spool_call
from core.tasks.protocol import Episodes
from tests.core.agents.hooks.agents import EDIT, FAILING, PASSING, SimulatedAgent, make_project
from tests.core.cli.conftest import Call, call

__all__ = ["call"]  # a fixture

PROSE = "Xyz2026!abc"
RANDOM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SECRETS = {
    "prompt": PROSE,
    "command": "Tiger4Kettle",
    "parameter": "Lamp7Window9",
    "output": f"ghp_{RANDOM}",
    "error": "AKIA" + "Q7ZX" * 4,
    "edit": "Copper-Boat-41",
    "file": "MIIEpAIBAAKCAQEAx7Jq2vP0",
    "transcript": f"sk-ant-api03-{RANDOM}",
    "message": "Maple6Stone",
    "plan": "Violet8Harbour",
    "reflection": f"xoxb-{RANDOM}",
    "spooled": f"sk_live_{RANDOM}",
    "environment": "Anchor3Meadow",
    "cookie": "f00dbabe5eed1234",
}
"""A secret by the place where the agent meets it."""
PROMPT = f"Fix the login test; the db password is {SECRETS['prompt']}"


def bash(command: str, stdout: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": {"stdout": stdout, "stderr": ""}}


def work(agent: SimulatedAgent, transcript: Path) -> None:
    """Let an agent meet all `SECRETS` in a session, and end it."""
    transcript.parent.mkdir(parents=True)
    blocks = [
        {"type": "text", "text": f"The key {SECRETS['transcript']} was cut, so the name is missing."},
        {"type": "tool_use", "id": "edit", "name": "Edit", "input": {}},
    ]
    lines = [
        {"type": "user", "cwd": str(agent.project.project), "message": {"role": "user", "content": PROMPT}},
        *({"type": "assistant", "message": {"role": "assistant", "content": [block]}} for block in blocks),
    ]
    transcript.write_text("".join(json.dumps(line | {"sessionId": "s1"}) + "\n" for line in lines))
    agent.prompt(PROMPT)
    agent.tool(bash(f"curl -u admin:{SECRETS['command']} http://shop.test", f"token {SECRETS['output']}\n" * 4000))
    agent.tool(bash("printenv", f"SHELL=/bin/sh\nDB_PASSWORD={SECRETS['environment']}\n"))
    agent.tool(bash("curl -v shop.test", f"< Set-Cookie: sid={SECRETS['cookie']}; Path=/"))
    query = {"query": "select 1", "connection": {"user": "shop", "password": SECRETS["parameter"]}}
    agent.tool({"tool_name": "mcp__db__query", "tool_input": query, "tool_response": {"output": "1"}})
    agent.tool(FAILING | {"error": f"{FAILING['error']}\nrefused: {SECRETS['error']}"})
    edited = {"file_path": "src/account.ts", "old_string": "a", "new_string": f'password = "{SECRETS["edit"]}"'}
    agent.tool(EDIT | {"tool_input": edited}, tool_use_id="edit", transcript_path=str(transcript))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{SECRETS['file']}\n-----END RSA PRIVATE KEY-----\n"
    agent.tool({"tool_name": "Write", "tool_input": {"file_path": "key.pem", "content": "x\n" * 90_000 + key}})
    given = {"hook_event_name": "PostToolUse", "session_id": "s1", **bash(f"deploy {SECRETS['spooled']}", "ok")}
    event = parse_event("claude", json.dumps(given).encode())
    assert event is not None and spool_call(agent.project, event, agent.at)
    assert_no_secret(agent.project.project)
    agent.tool(PASSING)
    agent.send("Stop", last_assistant_message=f"It passes now. The admin password is {SECRETS['message']}.")
    agent.prompt(f"Publish it; the password of the registry is {SECRETS['plan']}")
    agent.tool(bash("npm publish", "done"))
    reflection = f"The token {SECRETS['reflection']} has expired"
    Episodes(agent.project, clock=lambda: agent.at).reflect("task-001", 1, learning=reflection)
    agent.send("SessionEnd")


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path, data
            if data.startswith(b"SQLite format 3"):
                yield path, b"\n".join(_blobs(path))


def _blobs(database: Path) -> Iterator[bytes]:
    """Yield the decompressed values of a database; texts of the search index are compressed."""
    with closing(sqlite3.connect(database)) as connection:
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            with suppress(sqlite3.Error):
                for row in connection.execute(f'select * from "{table}"'):
                    for value in row:
                        with suppress(zlib.error, TypeError):
                            yield zlib.decompress(value)


def assert_no_secret(folder: Path) -> None:
    found = [
        (kind, str(path.relative_to(folder)))
        for path, data in contents(folder)
        for kind, secret in SECRETS.items()
        if secret.encode() in data
    ]
    assert found == []


@pytest.fixture
def worked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> SimulatedAgent:
    """A session with all `SECRETS`, in a project without `ralphdeck init`; its transcript is the agent's own."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent = SimulatedAgent(make_project(tmp_path / "project"))
    monkeypatch.setattr(answer, "start_background", lambda paths: background.run(paths, agent.at))
    work(agent, tmp_path / "claude/projects/-project/s1.jsonl")
    assert agent.warnings == []
    return agent


def test_secrets_of_a_session_are_in_no_file(worked: SimulatedAgent, home: Path, call: Call) -> None:
    project = worked.project
    written = [path.name for path in project.ralph.rglob("*")]
    assert {"metadata.json", "plan.md", "actions.jsonl", "outcome.json", "reflections.jsonl"} < {*written}
    for command in (["loop", "list"], ["task", "list"], ["search", "password"], ["search", PROSE]):
        assert call(*command, "--project", project.project).code == 0
    assert any(path.name.endswith(".index") for path in home.rglob("*")), "caches are checked as well"
    assert_no_secret(project.project)
    assert_no_secret(home)


@pytest.mark.skipif(not shutil.which("git"), reason="git is missing")
def test_git_adds_no_prompt_of_a_session(worked: SimulatedAgent, call: Call) -> None:
    folder = worked.project.project

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=folder, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}, check=True, stdout=-1
        ).stdout.decode()

    git("init", "-q", ".")
    for is_begun in (False, True):
        if is_begun:
            call("init", "--project", folder)
            git("rm", "-rq", "--cached", ".")
        git("add", "-A")
        added = git("ls-files").splitlines()
        assert ".aiwg/ralph/shared/patterns/error-patterns.json" in added, "lessons are for the team"
        prompts = ("login test", "Publish it")
        assert not [name for name in added for word in prompts if word in (folder / name).read_text()]
        private = ("sessions/", "tasks/", "index/", "debug-memory/")
        assert not [name for name in added if name.removeprefix(".aiwg/ralph/").startswith(private)]
