from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadInput
from core.config.user_settings import user_settings_file
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot
from core.show.notify import Notifier, report_all_needs
from core.state.project_state import ProjectState
from core.storage.user_command import CommandFailed
from tests.factories import NOW, SETTINGS

KEY = "AKIA" + "Q7" * 8
WRITE = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"


@dataclass
class Program:
    """A program of the user that keeps what was reported."""

    command: tuple[str, ...]
    file: Path

    @property
    def sentences(self) -> list[list[str]]:
        """The sentences of each call."""
        return [[need["text"] for need in report["needs"]] for report in self.reports]

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    return Program((sys.executable, "-c", WRITE, str(tmp_path / "reports")), tmp_path / "reports")


def configure(command: tuple[str, ...]) -> None:
    user_settings_file().parent.mkdir(parents=True, exist_ok=True)
    user_settings_file().write_text(f"[notify]\ncommand = {json.dumps(command)}\n")


def asking(*questions: str) -> ProjectState:
    loops = {f"loop-{n}": waiting(f"loop-{n}", question) for n, question in enumerate(questions)}
    return ProjectState.open(Snapshot(loops=loops, complete=True), SETTINGS, NOW)


def waiting(id: str, question: str) -> Loop:
    return Loop(id=id, runner="x", task="Migrate", status=LoopStatus.WAITING, question=question, last_activity=NOW)


def check(notifier: Notifier, state: ProjectState) -> None:
    notifier.check(state)
    notifier.wait()


def test_each_need_is_reported_once_also_by_several_processes(program: Program, tmp_path: Path) -> None:
    one, other = (Notifier(tmp_path, program.command) for _ in range(2))
    for notifier in (one, other, one):
        check(notifier, asking("Which side?"))
    assert program.sentences == [["has asked for 0 min: Which side?"]]
    check(other, asking("Which side?", "May I?"))
    check(one, asking("Which side?", "May I?"))
    assert program.sentences[1:] == [["has asked for 0 min: May I?"]]


def test_a_need_that_ended_is_reported_when_it_comes_back(program: Program, tmp_path: Path) -> None:
    notifier = Notifier(tmp_path, program.command)
    for state in (asking("Which side?"), asking(), asking("Which side?")):
        check(notifier, state)
    assert len(program.sentences) == 2


def test_the_report_has_no_secrets_and_no_control_characters(program: Program, tmp_path: Path) -> None:
    check(Notifier(tmp_path, program.command), asking(f"Is {KEY} right?\x1b[2J"))
    (report,) = program.reports
    (need,) = report["needs"]
    assert report["version"] == 1 and report["project"] == str(tmp_path)
    assert (need["kind"], need["title"], need["loop_id"]) == ("asks", "Migrate", "loop-0")
    assert KEY not in need["text"] and "\x1b" not in need["text"]


def test_a_state_that_is_not_complete_ends_no_need(program: Program, tmp_path: Path) -> None:
    notifier = Notifier(tmp_path, program.command)
    check(notifier, asking("Which side?"))
    check(notifier, ProjectState.open(Snapshot(complete=False), SETTINGS, NOW))
    check(notifier, asking("Which side?"))
    assert len(program.sentences) == 1


def test_all_needs_are_reported_on_demand_and_a_failure_is_an_error(program: Program, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="notify"):
        report_all_needs(tmp_path, asking("Which side?"))
    configure(program.command)
    for _ in range(2):
        report_all_needs(tmp_path, asking("Which side?"))
    assert program.sentences == [["has asked for 0 min: Which side?"]] * 2
    configure((sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(CommandFailed, match="exit code 3"):
        report_all_needs(tmp_path, asking("Which side?"))


def test_without_a_command_nothing_is_watched(program: Program, tmp_path: Path) -> None:
    assert Notifier.for_loop(tmp_path) is None
    configure(program.command)
    assert Notifier.for_loop(tmp_path) is not None
