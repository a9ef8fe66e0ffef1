"""What the command line hands over to the screen; the screen itself is replaced."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.cli.support.project import is_readonly
from core.project.project import Project
from tests.core.cli.conftest import ROOT, Call

Opened = list[tuple[Path, Path, Path]]


@pytest.fixture
def themes() -> list[str | None]:
    """The themes that dashboards were opened with."""
    return []


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, themes: list[str | None]) -> Iterator[Opened]:
    """The projects that a dashboard was opened on."""
    calls: Opened = []

    def run(
        open_project: Callable[[], Project],
        paths: ProjectPaths,
        *,
        open_kept: Callable[[], object],
        state_file: Path,
        keymap_file: Path,
        remembered_as: str,
        is_fresh: bool,
        theme: str | None,
    ) -> int:
        assert is_fresh is (remembered_as == "demo")
        themes.append(theme)
        assert open_kept() is None
        assert open_project().project == paths
        calls.append((paths.project, state_file, keymap_file))
        return 143

    screen: Any = ModuleType("tui.app")
    screen.run = run
    monkeypatch.setitem(sys.modules, "tui.app", screen)
    monkeypatch.setattr("tui.cli.dashboard.need_terminal", lambda: None)
    monkeypatch.setattr("core.cli.support.user_files.start_logging", lambda: True)
    yield calls


def test_it_opens_on_the_nearest_project_at_or_above_and_gives_its_exit_code(
    examples: Path, home: Path, call: Call, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = examples / ".aiwg" / "ralph" / "loops"
    assert call(inside).code == 143
    monkeypatch.chdir(inside)
    assert call().code == 143
    assert call("--project", examples).code == 143
    files = (home / "state/ralphdeck/state.json", home / "config/ralphdeck/keymap.toml")
    assert opened == [(examples, *files)] * 3


def test_the_dashboard_waits_for_an_aiwg_folder(
    tmp_path: Path, call: Call, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call()
    call(tmp_path)
    call("--project", tmp_path)
    assert [project for project, *_ in opened] == [tmp_path] * 3


def test_readonly_may_be_before_or_behind_the_folder(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    monkeypatch.setattr("tui.cli.dashboard.open_dashboard", lambda project: seen.append(is_readonly()))
    for arguments in ((examples,), ("--readonly", examples), (examples, "--readonly")):
        call(*arguments)
    assert seen == [False, True, True]


def test_the_demo_opens_on_a_scratch_copy_that_is_removed(call: Call, opened: Opened) -> None:
    assert call("demo").code == 143
    ((project, *_),) = opened
    assert project.name == "acme-api" and not project.exists()


def test_a_theme_is_taken_from_the_option_then_from_the_environment(
    examples: Path, call: Call, opened: Opened, themes: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    call(examples)
    call("--theme", "light", examples)
    call("demo", "--theme", "light")
    monkeypatch.setenv("RALPHDECK_THEME", "high-contrast")
    call(examples)
    call(examples, "--theme", "ansi")
    call("demo")
    assert themes == [None, "light", "light", "high-contrast", "ansi", "high-contrast"]


def test_an_unknown_theme_is_refused_with_the_names_and_the_nearest_one(
    examples: Path, call: Call, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in ((examples, "--theme", "High Contrats"), ("demo", "--theme", "High Contrats")):
        refused = call(*arguments)
        assert refused.code == 2
        assert "--theme: unknown theme 'High Contrats'. Did you mean high-contrast? Themes: dark, light," in refused.err
    monkeypatch.setenv("RALPHDECK_THEME", "nope")
    refused = call(examples)
    assert (refused.code, opened) == (2, [])
    assert "RALPHDECK_THEME: unknown theme 'nope'. Themes: dark, light," in refused.err


def test_a_theme_is_refused_where_there_is_no_screen(examples: Path, call: Call) -> None:
    refused = call("--theme", "light", "--project", examples, "loop", "list")
    assert refused.code == 2 and "not with loop" in refused.err
    assert call("demo", "--check", "--theme", "light").code == 2


def test_a_served_dashboard_gets_the_theme(examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[list[str]] = []

    def serve(command: list[str], **how: object) -> None:
        served.append(command)

    monkeypatch.setattr("tui.serving.serve", serve)
    assert call("serve", examples, "--theme", "light").code == 0
    monkeypatch.setenv("RALPHDECK_THEME", "dark")
    assert call("serve", examples).code == 0
    assert [command[command.index("--theme") + 1] for command in served] == ["light", "dark"]


def test_without_its_extra_serve_names_the_command_that_installs_it(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tui.serving", raising=False)
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    result = call("serve", examples)
    assert result.code == 1 and "pip install '.[serve]'" in result.err


def test_a_word_that_looks_like_a_path_must_be_a_folder(call: Call) -> None:
    result = call("./no-such-folder")
    assert result.code == 1
    assert result.err.startswith("Error: ") and "is not a folder" in result.err


def test_a_folder_opens_the_dashboard_there_which_needs_a_terminal(tmp_path: Path) -> None:
    for words in ([tmp_path], [], ["demo"]):
        done = subprocess.run(
            [sys.executable, "-m", "tui", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "Error: the dashboard needs a terminal; for scripts see: ralphdeck --help\n"


@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_without_stdin_or_stderr_there_is_no_dashboard_and_no_traceback(closed: str, examples: Path) -> None:
    command = f'"{sys.executable}" -m tui "{examples}" {closed}'
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr in {"", "Error: the dashboard needs a terminal; for scripts see: ralphdeck --help\n"}


def test_a_folder_named_like_an_alias_is_opened_as_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    (tmp_path / "ralph").mkdir()
    monkeypatch.chdir(tmp_path)
    found = call("ralph")
    assert "terminal" in found.err


def test_keymap_errors_are_reported_with_their_line(
    sample: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keymap.toml"
    monkeypatch.setattr("core.cli.support.user_files.keymap_file", lambda: file)
    for text, message in (("reset = \nnote = 5\n", ["line 1: ", "line 2: note"]), ('reset = "f7"', [])):
        file.write_text(text)
        checks = call("doctor", "--json", "--project", sample).document["checks"]
        reported = [check["text"] for check in checks if (check["name"], check["status"]) == ("keymap", "error")]
        assert len(reported) == len(message)
        assert all(part in text for part, text in zip(message, reported, strict=True))
