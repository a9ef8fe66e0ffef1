"""Every command on the hostile projects prints harmless text and complete JSON, and exits with a documented code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from core.cli.program import run
from core.project.project import Project
from tests.e2e.stream import harmless, offences
from tests.e2e.terminal import Terminal, environment, python
from tests.hostile.payloads import PAYLOADS
from tests.hostile.test_present import spread

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    opened: Project,
    caches: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Call:
    """Run a command and check its output; returns exit code, standard output and standard error."""
    monkeypatch.setenv("RALPHDECK_USER", "ana")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))

    def call(*arguments: str, project: Path = opened.project.project) -> tuple[int, str, str]:
        code = run(["--project", str(project), *arguments])
        out, err = (data.decode() for data in capfdbinary.readouterr())
        shown = " ".join(arguments)[:200]
        for text in (out, err):
            # JSON is for programs; it keeps variation selectors, which only change the width of a character.
            kept = "\n\ufe0e\ufe0f" if "--json" in arguments else "\n"
            bad = {char for char in text if char not in kept and not harmless(char)}
            assert not bad, f"{bad!r} printed by {shown!r}: {text[:300]!r}"
            assert "Traceback" not in text
            assert "internal error" not in text, shown
        if "--json" in arguments and code == 0:
            json.loads(out)
        return code, out, err

    return call


@pytest.mark.parametrize(
    "command",
    [
        "loop list",
        "pattern list",
        "lesson --reflections",
        "log",
        "pattern invert",
        "doctor",
        "loop inject --task fix-the-name",
        "task list",
        "metrics --tasks",
        "task list --similar fix-the-name",
        "search approach",
        "debug list",
        "debug list --escalated",
        "debug list --causes",
        "debug list --error-type Type",
    ],
)
@pytest.mark.parametrize(("opened", "form"), [("texts", ""), ("types", "--json")], indirect=["opened"])
def test_lists_are_harmless(call: Call, command: str, form: str) -> None:
    code, out, _ = call(*(word.replace("-the-", " the ") for word in command.split()), *form.split())
    assert code == 0
    assert out or command.startswith(("loop inject", "task list --similar"))


@pytest.mark.parametrize("opened", ["texts"], indirect=True)
def test_extracted_patterns_are_harmless(call: Call) -> None:
    assert call("loop", "extract", "--all", "--dry-run")[0] == 0


def test_single_records_are_harmless(call: Call, opened: Project) -> None:
    for pattern_id in spread(opened.view.snapshot.patterns, 3):
        if not pattern_id.startswith("-"):
            assert call("pattern", "show", "--", pattern_id)[0] == 0
            assert call("pattern", "show", "--json", "--", pattern_id)[0] == 0
            assert call("pattern", "show", "--why", "--", pattern_id)[0] == 0
    for task_id in spread(opened.view.snapshot.tasks, 2):
        for command in ((), ("--attempt", "1"), ("--replay", "--attempt", "1", "--speed", "0")):
            assert call("task", "show", *command, "--", task_id)[0] in {0, 1}
            assert call("task", "show", *command, "--json", "--", task_id)[0] in {0, 1}
    for session_id in spread(opened.view.snapshot.debug_sessions, 2):
        assert call("debug", "show", "--", session_id)[0] in {0, 1}
    for loop_id in spread(opened.view.snapshot.loops, 2):
        assert call("loop", "inject", "--", loop_id)[0] in {0, 1}


@pytest.mark.parametrize("opened", ["texts"], indirect=True)
def test_debug_memory_answers_and_archives_are_harmless(call: Call, opened: Project) -> None:
    for command in ("list --archived", "archive --dry-run", "list --templates null"):
        assert call("debug", *command.split())[0] == 0
    for session_id in spread(opened.view.snapshot.debug_sessions, 2):
        assert call("debug", "failure", f"--session={session_id}")[0] in {0, 1}


@pytest.mark.parametrize("opened", ["texts"], indirect=True)
def test_hostile_arguments_give_harmless_errors(call: Call, tmp_path: Path) -> None:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    for payload in PAYLOADS:
        text = f"no-such-{payload.text[:200]}"
        for command in ("pattern show", "pattern promote", "loop inject", "loop extract", "debug show"):
            code, out, err = call(*command.split(), "--", text, project=tmp_path)
            assert code == 1
            assert not out
            assert err.count("\n") == 1, "one line says why"
        assert call("pattern", "list", "--state", text, project=tmp_path)[0] == 2
        assert call(text.replace("/", ""), project=tmp_path)[0] == 2


@pytest.mark.parametrize("opened", ["texts"], indirect=True)
def test_decisions_are_harmless(opened: Project, call: Call, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(opened.project.project, project, symlinks=True)
    done = 0
    for n, pattern_id in enumerate(spread(opened.view.snapshot.patterns, 1)):
        reason = PAYLOADS[n].text[:100]
        pattern = ("--", pattern_id)
        for command in (
            ("pattern", "promote", "--by", f"by {reason}", *pattern),
            ("pattern", "reset", "--by", f"by {reason}", *pattern),
            ("pattern", "deprecate", "--by", f"by {reason}", "--reason", reason, *pattern),
            ("pattern", "note", "--by", f"by {reason}", *pattern, f"x{reason}"),
            ("undo", "--by", f"by {reason}"),
            ("undo", "--redo", "--by", f"by {reason}"),
        ):
            code, _out, _err = call(*command, project=project)
            assert code in {0, 1}
            done += code == 0
    assert done > 3
    assert call("log", project=project)[0] == 0
    assert call("log", "--json", project=project)[0] == 0


@pytest.mark.parametrize("command", ["pattern list", "doctor"])
def test_output_on_a_terminal_is_harmless(texts: Path, caches: Path, tmp_path: Path, command: str) -> None:
    words = python("-m", "core.cli", *command.split(), "--project", str(texts))
    with Terminal(words, environment(tmp_path, XDG_CACHE_HOME=str(caches))) as terminal:
        assert terminal.end() == 0
        assert offences(bytes(terminal.raw)) == []
