"""Chats of Gemini CLI."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import Liveness, LoopStatus, Outcome, StateSource, Usage
from core.sources.adapters.gemini import GeminiAdapter
from tests.core.sources.adapters.fixtures import Case, check_damages, check_replacements

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
LOOP_ID = "gemini:s-1"


def chat(case: Case, name: str = "session-1") -> Path:
    return case.home / ".gemini/tmp" / sha256(str(case.project).encode()).hexdigest() / f"chats/{name}.jsonl"


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


def message(id: str, seconds: int, type: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "timestamp": (START + timedelta(seconds=seconds)).isoformat(),
        "type": type,
        "content": content,
    } | fields


def shell(id: str, command: str, exit_code: int, output: str) -> dict[str, Any]:
    text = f"Command: {command}\nOutput: {output}\nExit Code: {exit_code}"
    result = [{"functionResponse": {"response": {"output": text}}}]
    arguments = {"command": command}
    return {"id": id, "name": "run_shell_command", "args": arguments, "status": "success"} | {
        "result": result,
        "resultDisplay": output,
    }


def edit(id: str, file: str) -> dict[str, Any]:
    return {"id": id, "name": "replace", "args": {"file_path": file}, "status": "success", "resultDisplay": {}}


TOKENS = {"input": 9000, "output": 100, "cached": 8000, "thoughts": 50, "tool": 0, "total": 9150}
LINES = (
    {"sessionId": "s-1", "projectHash": "x", "startTime": START.isoformat(), "lastUpdated": "", "kind": "main"},
    message("u-1", 1, "user", [{"text": "Make the tests of the cart pass."}]),
    message("g-1", 9, "gemini", "", model="gemini-3-pro", toolCalls=[], tokens=TOKENS),
    message(
        *("g-1", 20, "gemini", ""),
        model="gemini-3-pro",
        tokens=TOKENS,
        toolCalls=[
            shell("c-1", "pytest -q", 1, "E   AssertionError: 1.00 != 1.01\n1 failed, 30 passed"),
            edit("c-2", "shop/money.py"),
            shell("c-3", "pytest -q", 0, "31 passed"),
        ],
    ),
    message("g-2", 30, "gemini", "Totals are rounded once.", model="gemini-3-pro", tokens=TOKENS),
)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    opened = Case(GeminiAdapter(), tmp_path)
    write(chat(opened), *LINES)
    return opened


def test_a_chat_is_a_loop_with_the_tokens_of_each_message_once(case: Case) -> None:
    loop = case.loop()
    assert (loop.id, loop.owner, loop.model) == (LOOP_ID, "gemini", "gemini-3-pro")
    assert loop.usage == Usage(input=2000, output=300, cache_read=16000, reasoning=100)
    assert (loop.task, loop.iteration) == ("Make the tests of the cart pass.", 1)
    assert (loop.progress.test_passed, loop.progress.files_changed) == (True, 1)


def test_contexts_and_results_of_tools_are_not_taken_for_prompts(case: Case) -> None:
    prompt, context = {"text": "Round the totals."}, {"text": "<hook_context>## Lessons</hook_context>"}
    result = {"functionResponse": {"name": "replace", "response": {"output": "1 replacement"}}}
    write(
        chat(case),
        message("u-2", 40, "user", [{"text": "<session_context>\nThis is the Gemini CLI."}]),
        message("u-3", 41, "user", [prompt, context]),
        message("u-4", 42, "user", [result]),
        message("u-5", 43, "user", [{"text": "Add a test."}, context], displayContent=[{"text": "Add a test."}]),
    )
    actions = [turn.action for turn in case.details().iterations]
    assert actions[1:] == ["Round the totals.", "Add a test."]


def test_prompts_begin_iterations(case: Case) -> None:
    (turn,) = case.details().iterations
    assert [one.message for one in turn.failures] == ["AssertionError: 1.00 != 1.01"]
    assert (turn.outcome, turn.files, turn.action) == (Outcome.SUCCESS, ("shop/money.py",), "Totals are rounded once.")


def test_folders_in_the_registry_are_read(case: Case) -> None:
    folder = case.home / ".gemini/tmp"
    (folder / sha256(str(case.project).encode()).hexdigest()).rename(folder / "shop")
    assert case.loops() == {}
    registry = {"projects": {str(case.project / "web"): "shop", "/home/ana/other": "other"}}
    (case.home / ".gemini/projects.json").write_text(json.dumps(registry))
    assert case.loop().cwd == str(case.project / "web")


def test_a_subagent_has_a_parent_and_the_tokens_of_a_long_chat_are_summed(case: Case) -> None:
    write(chat(case, "s-1/s-2"), {"sessionId": "s-2", "kind": "subagent"}, message("u-1", 5, "user", "Find it."))
    write(chat(case), *(message(f"m-{number}", 40, "gemini", "x", tokens=TOKENS) for number in range(98)))
    loops = case.loops()
    assert (loops["gemini:s-2"].parent, loops[LOOP_ID].usage.cache_read) == (LOOP_ID, 100 * 8000)


@pytest.mark.parametrize(
    ("line", "quiet", "status", "source", "liveness"),
    [
        (None, timedelta(minutes=5), LoopStatus.PAUSED, StateSource.INFERRED, Liveness.IDLE),
        (None, timedelta(hours=1), LoopStatus.COMPLETED, StateSource.INFERRED, Liveness.ENDED),
        (("user", "Go on."), timedelta(minutes=5), LoopStatus.RUNNING, StateSource.INFERRED, Liveness.FRESH),
        (("user", "Go on."), timedelta(hours=1), LoopStatus.RUNNING, StateSource.INFERRED, Liveness.STALE),
        (("user", "Go on."), timedelta(days=2), LoopStatus.UNKNOWN, StateSource.INFERRED, Liveness.UNKNOWN),
        (("error", "Quota exceeded"), timedelta(hours=1), LoopStatus.LIMIT, StateSource.REPORTED, Liveness.ENDED),
        (("error", "fetch failed"), timedelta(hours=1), LoopStatus.FAILED, StateSource.REPORTED, Liveness.ENDED),
        (("info", "Request cancelled."), timedelta(hours=1), LoopStatus.ABORTED, StateSource.REPORTED, Liveness.ENDED),
    ],
)
def test_the_last_message_shows_the_state(
    case: Case,
    line: tuple[str, str] | None,
    quiet: timedelta,
    status: LoopStatus,
    source: StateSource,
    liveness: Liveness,
) -> None:
    if line is not None:
        write(chat(case), message("x-1", 40, *line))
    case.now = START + timedelta(seconds=40) + quiet
    loop = case.loop()
    assert (loop.status, loop.state_source, loop.liveness) == (status, source, liveness)


def test_damaged_files_do_not_raise_and_a_damaged_registry_does_not_hide_the_session(case: Case) -> None:
    check_replacements(case, chat(case))
    whole = chat(case).read_bytes()
    check_damages(case, chat(case))
    chat(case).write_bytes(whole)
    registry = case.home / ".gemini/projects.json"
    registry.write_text(json.dumps({"projects": {str(case.project): "shop"}}) + "\n")
    check_damages(case, registry, found=[LOOP_ID])
