"""`ralphdeck connect` shows, asks, writes, checks and removes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.cli.conftest import ROOT, Call

AGENTS = "codex, gemini, cursor, copilot, opencode"


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and a program `ralphdeck` that login shells do not find."""
    folder = tmp_path / "shop"
    (folder / ".aiwg/ralph").mkdir(parents=True)
    (folder / "CLAUDE.md").write_text("# Rules\n")
    program = tmp_path / "bin/ralphdeck"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat >/dev/null\n")
    program.chmod(0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("SHELL", "/bin/false")
    monkeypatch.setattr("core.agents.checks.has_mcp_extra", lambda: True)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_without_a_terminal_it_shows_the_plan_and_writes_nothing(
    project: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = call("connect", "cursor")
    assert (result.code, files(project)) == (1, ["CLAUDE.md"])
    assert "to write: --yes" in result.err
    assert result.out.startswith("Cursor\n  --- (new file)\n  +++ .cursor/hooks.json\n  @@ -0,0 +1,11 @@\n  +{\n")
    assert f'  +    "ralphdeck": {{"command": "{tmp_path}/bin/ralphdeck", "args": ["mcp"]}}\n' in result.out
    assert result.out.splitlines()[-1].startswith("The files name ralphdeck by a path of this machine")
    refused = call("--readonly", "connect", "claude", "--yes")
    assert refused.code == 1 and "read-only" in refused.err and files(project) == ["CLAUDE.md"]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert call("connect").err.startswith(f"Agents in use: Claude Code; not found: {AGENTS}\n")


def test_it_writes_tests_the_hook_and_lists_what_is_left(project: Path, call: Call) -> None:
    result = call("connect", "claude", "--yes")
    assert result.code == 0
    assert files(project) == [".claude/settings.json", ".claude/skills/ralphdeck/SKILL.md", ".mcp.json", "CLAUDE.md"]
    end = result.out.partition("Connected Claude Code: 4 files\n")[2].splitlines()
    assert end[0].startswith("  The hook of Claude Code answers in 0.")
    assert [line.startswith("  Left for you: ") for line in end[1:]] == [True, True, True, True, False]
    assert end[5].startswith("The files name ralphdeck by a path of this machine")
    again = call("connect", "claude", "--yes")
    assert again.code == 0 and again.out.startswith("Claude Code\n  nothing to change\n")
    assert "by a path" not in call("connect", "opencode", "--no-mcp", "--yes").out, "it runs no hooks"


def answer_questions(project: Path, tmp_path: Path, *answers: str) -> tuple[int, list[str]]:
    """Run `connect opencode` on a terminal; returns the exit code and the text before each question and at the end."""
    script = (
        "import sys; from core.cli.program import main; "
        f"sys.argv = [{str(tmp_path / 'bin/ralphdeck')!r}]; main(['connect', 'opencode'])"
    )
    ours, theirs = pty.openpty()
    texts = []
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", "COLUMNS": "80"},
    ) as process:
        os.close(theirs)
        for answer in (*answers, None):
            shown = b""
            while answer is None or b"[y/N" not in shown:
                try:
                    read = os.read(ours, 4096)
                except OSError:  # Linux reports the end of a terminal as an error
                    break
                if not read:
                    break
                shown += read
            texts.append(shown.decode())
            if answer is not None:
                os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    return process.returncode, texts


def test_a_terminal_shows_one_line_a_file_and_asks(project: Path, tmp_path: Path) -> None:
    code, (summary, difference, _) = answer_questions(project, tmp_path, "d", "no")
    assert code == 1 and files(project) == ["CLAUDE.md"]
    assert len(summary.splitlines()) == 4, "heading, two files, question"
    assert "opencode.json" in summary and "AGENTS.md" in summary and "+++" not in summary
    assert "+++ opencode.json" in difference and "Write 2 files?" in difference
    code, _ = answer_questions(project, tmp_path, "y")
    assert code == 0 and files(project) == ["AGENTS.md", "CLAUDE.md", "opencode.json"]


def test_check_reports_drift_by_its_exit_code(project: Path, call: Call) -> None:
    assert call("connect", "--check").code == 1
    assert call("connect", "claude", "--check").out.startswith("Claude Code: absent (")
    call("connect", "claude", "--yes")
    current = call("connect", "--check")
    assert (current.code, current.out) == (0, "Claude Code: current\n")
    settings = project / ".claude/settings.json"
    settings.write_text(settings.read_text().replace('"Stop"', '"Other"'))
    stale = call("connect", "--check")
    assert (stale.code, stale.out) == (1, "Claude Code: stale (.claude/settings.json)\n")
    settings.write_text("// mine\n{}")
    broken = call("connect", "claude", "--check")
    assert broken.code == 3 and "broken (.claude/settings.json: line 1: JSON with comments" in broken.out


def test_a_hook_that_fails_is_broken(project: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "bin/ralphdeck").write_text("#!/bin/sh\nexit 4\n")
    result = call("connect", "claude", "--yes")
    assert result.code == 1 and "The hook of Claude Code exits with 4" in result.out
    assert call("connect", "--check").code == 3


def test_remove_restores_the_project(project: Path, call: Call) -> None:
    call("connect", "claude", "codex", "--yes")
    result = call("connect", "--remove", "--yes")
    assert result.code == 0 and "Disconnected Claude Code: 4 files" in result.out
    assert files(project) == ["CLAUDE.md"] and not (project / ".claude").exists()
    nothing = call("connect", "--remove", "--yes")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "No agent is connected\n")


def test_one_unusable_file_leaves_the_other_agents_connected(project: Path, call: Call) -> None:
    (project / ".mcp.json").write_text('{"a": 1, "a": 2}')
    result = call("connect", "claude", "opencode", "--yes")
    assert result.code == 1
    assert "not changed: .mcp.json: key 'a' occurs twice in one object" in result.out
    assert files(project) == [".mcp.json", "AGENTS.md", "CLAUDE.md", "opencode.json"]


def test_print_shows_entries_to_add_by_hand(project: Path, call: Call) -> None:
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text("// mine\n{}")
    result = call("connect", "claude", "--print")
    assert result.code == 0 and result.out.startswith("# Claude Code: .claude/settings.json\n{\n")
    assert "# Claude Code: .mcp.json" in result.out
    assert "mcpServers" not in call("connect", "claude", "--print", "--no-mcp").out


def test_json_describes_the_plan_and_writes_only_with_yes(project: Path, call: Call) -> None:
    result = call("connect", "opencode", "--json")
    assert result.code == 1 and files(project) == ["CLAUDE.md"]
    (agent,) = result.document["agents"]
    assert (agent["name"], agent["state"], result.document["written"]) == ("opencode", "absent", False)
    assert agent["files"] == [{"file": "opencode.json", "action": "add"}, {"file": "AGENTS.md", "action": "add"}]
    assert call("connect", "opencode", "--json", "--yes").document["written"] is True
    assert json.loads((project / "opencode.json").read_text())["mcp"]["ralphdeck"]["type"] == "local"


def test_without_the_extra_the_mcp_server_is_left_out(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.agents.checks.has_mcp_extra", lambda: False)
    result = call("connect", "claude", "--yes")
    assert "pip install '.[mcp]'" in result.out and not (project / ".mcp.json").exists()


def test_the_user_files_need_no_project(
    tmp_path: Path, home: Path, project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "config/claude"))
    result = call("connect", "claude", "--global", "--yes")
    assert result.code == 0 and "claude mcp add --scope user ralphdeck -- " in result.out
    assert "approve the mcp server" not in result.out.lower(), "no MCP server was added"
    assert files(home / "config/claude") == ["settings.json", "skills/ralphdeck/SKILL.md"]
    assert call("connect", "claude", "--global", "--remove", "--yes").code == 0
    assert not (home / "config/claude").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--check", "--remove"], 2, "only one of"),
        (["vim"], 2, "'vim' is not one of"),
        (["claude", "--project", "/nowhere"], 1, "is not a folder"),
    ],
)
def test_wrong_usage(project: Path, call: Call, arguments: list[str], code: int, message: str) -> None:
    result = call("connect", *arguments)
    assert result.code == code and message in result.err


def test_private_files_that_git_does_not_ignore_yet_are_added_with_the_connection(project: Path, call: Call) -> None:
    (project / ".git").mkdir()
    result = call("connect", "codex")
    assert ".gitignore: " in result.out
    assert not (project / ".gitignore").exists()
    assert call("connect", "codex", "--yes").code == 0
    assert "/.aiwg/ralph/index/\n" in (project / ".gitignore").read_text()
    assert ".gitignore" not in call("connect", "codex", "--yes").out


def test_what_cursor_needs_to_run_the_hooks_of_claude_code_is_left_for_the_user(project: Path, call: Call) -> None:
    setting = "Include third-party Plugins, Skills, and other configs"
    assert setting not in call("connect", "cursor", "--yes").out
    call("connect", "cursor", "--remove", "--yes")
    assert setting in call("connect", "claude", "cursor", "--yes").out


def test_a_project_connection_warns_of_sessions_in_subfolders(project: Path, call: Call) -> None:
    warning = "in a subfolder it runs no hooks of the project"
    assert warning in call("connect", "claude", "--yes").out
    assert warning not in call("connect", "claude", "--global", "--yes").out
