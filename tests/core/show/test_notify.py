from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadInput
from core.base.user_settings import user_settings_file
from core.files.user_command import CommandFailed
from core.index.project_state import ProjectState
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Snapshot
from core.show.notify import MAX_NEEDS, PAUSE_SECONDS, Notifier, report_all_needs
from tests.factories import NOW, SETTINGS

ASKS = "asked 0 s ago: {}"
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


def make_notifier(project: Path, program: Program) -> Notifier:
    """Make one for which a minute passes between two looks at the clock."""
    return Notifier(project, program.command, count(0.0, 60.0).__next__)


def check(notifier: Notifier, state: ProjectState) -> None:
    notifier.check(state)
    notifier.wait()


def test_each_need_is_reported_once_also_by_several_processes(program: Program, tmp_path: Path) -> None:
    one, other = (make_notifier(tmp_path, program) for _ in range(2))
    for notifier in (one, other, one):
        check(notifier, asking("Which side?"))
    assert program.sentences == [[ASKS.format("Which side?")]]
    check(other, asking("Which side?", "May I?"))
    check(one, asking("Which side?", "May I?"))
    assert program.sentences[1:] == [[ASKS.format("May I?")]]


def test_a_need_that_ended_is_reported_when_it_comes_back(program: Program, tmp_path: Path) -> None:
    notifier = make_notifier(tmp_path, program)
    for state in (asking("Which side?"), asking(), asking("Which side?")):
        check(notifier, state)
    assert len(program.sentences) == 2


def test_the_report_has_no_secrets_and_no_control_characters(program: Program, tmp_path: Path) -> None:
    check(make_notifier(tmp_path, program), asking(f"Is {KEY} right?\x1b[2J"))
    (report,) = program.reports
    (need,) = report["needs"]
    assert report["version"] == 1 and report["project"] == str(tmp_path)
    assert (need["kind"], need["title"], need["loop_id"]) == ("asks", "Migrate", "loop-0")
    assert KEY not in need["text"] and "\x1b" not in need["text"]


def test_a_state_that_is_not_complete_ends_no_need(program: Program, tmp_path: Path) -> None:
    notifier = make_notifier(tmp_path, program)
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
    assert program.sentences == [[ASKS.format("Which side?")]] * 2
    configure((sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(CommandFailed, match="exit code 3"):
        report_all_needs(tmp_path, asking("Which side?"))


def test_without_a_command_nothing_is_watched(program: Program, tmp_path: Path) -> None:
    assert Notifier.for_loop(tmp_path) is None
    configure(program.command)
    assert Notifier.for_loop(tmp_path) is not None


def test_many_needs_are_reported_in_several_calls(program: Program, tmp_path: Path) -> None:
    notifier = make_notifier(tmp_path, program)
    state = asking(*map(str, range(MAX_NEEDS + 3)))
    for _ in range(3):
        check(notifier, state)
    assert [len(sentences) for sentences in program.sentences] == [MAX_NEEDS, 3]


def test_the_command_pauses_between_two_calls(program: Program, tmp_path: Path) -> None:
    seconds = [0.0]
    notifier = Notifier(tmp_path, program.command, lambda: seconds[0])
    check(notifier, asking("Which side?"))
    check(notifier, asking("And now?"))
    assert len(program.sentences) == 1
    seconds[0] = PAUSE_SECONDS
    check(notifier, asking("And now?"))
    assert len(program.sentences) == 2


def test_a_project_whose_path_is_not_unicode_is_reported(program: Program, tmp_path: Path) -> None:
    check(make_notifier(tmp_path / os.fsdecode(b"caf\xe9"), program), asking("Which side?"))
    assert len(program.sentences) == 1


def test_the_end_of_the_program_ends_the_command(program: Program, tmp_path: Path) -> None:
    """A command that goes on in the background is not waited for, one that hangs is killed."""
    hang = "import time; time.sleep(600)"
    report = "NeedReport(1, '/shop', ())"
    code = (
        "import sys, threading; from core.show.notify import NeedReport, send_report;"
        f"command = (sys.executable, '-c', {hang!r});"
        f"threading.Thread(target=lambda: send_report(command, {report})).start()"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert b"was stopped" in ended.stderr


def test_a_command_that_leaves_a_child_has_ended(program: Program, tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WRITE!r}, {str(program.file)!r}])"
    configure((sys.executable, "-c", child))
    report_all_needs(tmp_path, asking("Which side?"))
