"""Every command on the hostile projects prints harmless text and complete JSON, and exits with a documented code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.cli.program import run
from core.project.project import Project
from tests.e2e.stream import harmless, offences
from tests.e2e.terminal import Terminal, environment, python
from tests.factories import make_error_record, make_pattern_file
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
        "loop score",
        "review --suspicious",
        "changes maturity.half_life_days=20",
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
    commands = ("pattern show", "pattern promote", "loop inject", "loop extract", "debug show", "loop score")
    for number, payload in enumerate(PAYLOADS):
        text = f"no-such-{payload.text[:200]}"
        code, out, err = call(*commands[number % len(commands)].split(), "--", text, project=tmp_path)
        assert (code, out, err.count("\n")) == (1, "", 1), "one line says why"
        for words in (["pattern", "list", "--state", text], [text.replace("/", "")], ["changes", f"{text}={text}"]):
            assert call(*words, project=tmp_path)[0] == 2


@pytest.mark.parametrize("opened", ["texts"], indirect=True)
def test_typed_texts_are_harmless_where_they_are_stored_and_shown(call: Call, tmp_path: Path) -> None:
    patterns = tmp_path / ".aiwg/ralph/shared/patterns"
    patterns.mkdir(parents=True)
    (patterns / "error-patterns.json").write_bytes(make_pattern_file(make_error_record(1)))
    done = 0
    for payload in PAYLOADS[::5]:
        reason = payload.text[:100]
        by, why, work = ("--by", f"by {reason}"), ("--reason", reason), f"bd {reason}"
        pattern_id = "pat-error-made-001"
        for command in (
            ("pattern", "promote", *by, "--", pattern_id),
            ("pattern", "reset", *by, "--", pattern_id),
            ("pattern", "deprecate", *by, *why, "--", pattern_id),
            ("pattern", "note", *by, "--", pattern_id, f"x{reason}"),
            ("undo", *by),
            ("undo", "--redo", *by),
            ("loop", "record", *by, "--failure", "--", work, pattern_id),
            ("loop", "record", "--criterion", f"c{reason}", "--success", "--context", reason, "--", "bd-1"),
            ("loop", "record", "--outcome", "--failure", "--strategy", f"s{reason}", "--", "bd-1"),
            ("loop", "record", "--error", f"e{reason}", "--context", reason, "--", "bd-1"),
            ("loop", "record", "--resolve", f"r{reason}", "--", work),
            ("loop", "score", "--errors", "--", "bd-1"),
            ("review", "--suspicious", "--revoke", "--", reason or "x"),
        ):
            code, _out, _err = call(*command, project=tmp_path)
            assert code in {0, 1, 2}
            done += code == 0
    assert done > 20
    for words in (["log"], ["log", "--json"], ["loop", "score"], ["loop", "score", "--criteria"]):
        assert call(*words, project=tmp_path)[0] == 0


@pytest.mark.parametrize("opened", ["types"], indirect=True)
def test_files_without_records_are_findings(call: Call, tmp_path: Path) -> None:
    patterns = tmp_path / ".aiwg/ralph/shared/patterns"
    (tmp_path / ".aiwg/ralph/loops/huge").mkdir(parents=True)
    patterns.mkdir(parents=True)
    (patterns / "error-patterns.json").write_text('{"patterns": ' + "[" * 3000 + "]" * 3000 + "}")
    (patterns / "anti-patterns.json").write_bytes(b"\xff\xfe\x00")
    (patterns / "success-patterns.json").write_text('[{"pattern_id": "x", "success_rate": NaN, "usage_count": 1e400}]')
    (tmp_path / ".aiwg/ralph/loops/huge/state.json").write_text('{"currentIteration": ' + "9" * 5000 + "}")
    for words in ("loop list", "pattern list", "log", "doctor", "loop inject --task Fix", "changes min_helpful=2"):
        code, out, _ = call(*words.split(), "--json", project=tmp_path)
        found = {one["file"] for one in json.loads(out)["findings"] if one["severity"] == "error"}
        assert (
            code == 0 and {f".aiwg/ralph/shared/patterns/{kind}-patterns.json" for kind in ("error", "anti")} <= found
        )


@pytest.mark.parametrize("command", ["pattern list", "doctor"])
def test_output_on_a_terminal_is_harmless(texts: Path, caches: Path, tmp_path: Path, command: str) -> None:
    words = python("-m", "core.cli", *command.split(), "--project", str(texts))
    with Terminal(words, environment(tmp_path, XDG_CACHE_HOME=str(caches))) as terminal:
        assert terminal.end() == 0
        assert offences(bytes(terminal.raw)) == []
