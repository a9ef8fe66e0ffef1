"""`ralphdeck hook` never stops an agent, whatever it is sent."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.agents.hooks.events import MAX_EVENT, digest
from tests.core.base.scanning.test_verdict import ORDER, record, write
from tests.core.cli.conftest import ROOT

COMMAND = [sys.executable, "-m", "tui", "hook", "--agent"]
PATIENT = (
    "from core.agents.hooks import deadline; deadline.PROCESSOR_SECONDS = deadline.PROMPT_SECONDS = 60\n"
    "deadline.OTHER_SECONDS = 60\n"
    "import sys; from tui.__main__ import main; sys.argv[1:] = ['hook', '--agent', *sys.argv[1:]]; main()"
)  # the same with a longer deadline, for a busy machine


def answer(data: bytes, *, agent: str = "claude", cwd: Path = ROOT, **more: Any) -> tuple[int, str, str]:
    """Call the hook as an agent does: exit code, stdout and stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PATIENT, agent],
        input=data,
        cwd=cwd,
        env=environment,
        capture_output=True,
        check=False,
        **more,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def event(folder: Path, name: str, **fields: Any) -> bytes:
    return json.dumps({"hook_event_name": name, "session_id": "s", "cwd": str(folder), **fields}).encode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".aiwg" / "ralph").mkdir(parents=True)
    return tmp_path / "project"


@pytest.mark.slow
@pytest.mark.parametrize("data", [b"", b"\x00" * 1000, b'{"hook_event_name": "Stop"}'])
def test_any_input_ends_with_exit_code_0_and_no_output(project: Path, data: bytes) -> None:
    code, out, err = answer(data, cwd=project)
    assert (code, out) == (0, "")
    assert err.count("\n") <= 1


@pytest.mark.slow
def test_wrong_usage_ends_with_exit_code_0() -> None:
    code, out, err = answer(b"{}", agent="unknown")
    assert (code, out) == (0, "")
    assert err.startswith("ralphdeck hook does nothing: ") and err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("place", ["2>/dev/full", ">/dev/full 2>&1", ">&-", "2> >(exec true)"])
def test_streams_that_cannot_be_written_end_with_exit_code_0(place: str) -> None:
    command = ["bash", "-c", f'"$@" {place}', "bash", *COMMAND, "claude"]
    assert subprocess.run(command, input=b"x", cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_an_invalid_environment_ends_with_exit_code_0(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_READONLY", "maybe")  # exit code 2 would keep the agent from stopping
    code, out, err = answer(event(project, "Stop"))
    assert (code, out) == (0, "") and "--readonly" in err


@pytest.mark.slow
def test_outside_a_project_nothing_is_made(tmp_path: Path) -> None:
    assert answer(event(tmp_path, "UserPromptSubmit", prompt="Fix it"), cwd=tmp_path) == (0, "", "")
    assert not (tmp_path / ".aiwg").exists()


@pytest.mark.slow
def test_an_event_that_is_too_long_is_refused_and_recorded(project: Path) -> None:
    code, out, err = answer(event(project, "PostToolUse", tool_response="x" * MAX_EVENT), cwd=project)
    assert (code, out) == (0, "") and "longer than 8 MiB" in err
    assert "longer than 8 MiB" in (project / ".aiwg" / "ralph" / "sessions" / "gave-up.jsonl").read_text()


@pytest.mark.slow
def test_an_agent_that_keeps_stdin_open_waits_no_longer_than_the_deadline(project: Path) -> None:
    reading, writing = os.pipe()
    started = subprocess.Popen(
        [*COMMAND, "claude"], stdin=reading, cwd=project, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert started.wait(timeout=30) == 0
    os.close(writing)
    os.close(reading)


@pytest.mark.slow
def test_a_locked_session_is_reported_and_does_not_stop_the_agent(project: Path) -> None:
    sessions = project / ".aiwg" / "ralph" / "sessions"
    sessions.mkdir()
    with (sessions / f"{digest('s')}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, out, err = answer(event(project, "UserPromptSubmit", prompt="Fix it"))
    assert (code, out) == (0, "")
    assert "locked" in err or not err  # the deadline may come first


@pytest.mark.slow
def test_a_tool_call_is_logged_without_slow_imports(project: Path) -> None:
    tool = {"tool_name": "Bash", "tool_input": {"command": "make"}}
    answer(event(project, "UserPromptSubmit", prompt="Fix it"))
    answer(event(project, "PostToolUse", tool_use_id="1", **tool))  # opens the task
    given = event(project, "PostToolUse", tool_use_id="2", **tool)
    program = (
        "import sys; from core.agents.hooks import deadline; deadline.PROCESSOR_SECONDS = deadline.OTHER_SECONDS = 60; "
        "from core.cli.program import run; code = run(['hook', '--agent', 'claude']); "
        "assert not {'numpy', 'onnxruntime', 'mcp', 'yaml', 'sqlite3', 'textual', 'core.project'} "
        "& set(sys.modules); sys.exit(code)"
    )
    subprocess.run([sys.executable, "-c", program], input=given, cwd=ROOT, check=True)
    assert (project / ".aiwg/ralph/tasks/task-001/attempts/001/actions.jsonl").read_text().count("\n") == 2


@pytest.mark.slow
def test_a_read_only_call_writes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_READONLY", "1")
    assert answer(event(project, "UserPromptSubmit", prompt="Fix it")) == (0, "", "")
    assert not [*(project / ".aiwg" / "ralph").iterdir()]


@pytest.mark.slow
def test_a_hook_runs_no_judge(project: Path, home: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    settings = home / "config" / "ralphdeck" / "settings.toml"
    settings.write_text(f"[scan]\njudge = {json.dumps(['touch', str(ran)])}\n")
    write(project, record("pat-error-null-one-001", ORDER), record("pat-error-null-two-002", "Check for null first"))
    _, out, _ = answer(event(project, "UserPromptSubmit", prompt="Fix the null property of user"))
    assert "Check for null first" in out and ORDER not in out
    assert not ran.exists()
