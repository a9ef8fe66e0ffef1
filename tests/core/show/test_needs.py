from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadInput
from core.base.user_settings import user_settings_file
from core.files.user_command import CommandFailed
from core.index.project_state import ProjectState
from core.records.debug_sessions import ESCALATED, DebugSession, Execution, Failure
from core.records.episodes import Attempt, Task, TaskStatus
from core.records.loops import CHECK_FAILED, Iteration, Loop, LoopStatus, Outcome, Progress
from core.records.snapshot import Snapshot
from core.show.needs import (
    MAX_NEEDS,
    PAUSE_SECONDS,
    NeedKind,
    Notifier,
    describe_need,
    find_need,
    find_needs,
    need_sign,
    report_all_needs,
    time_since,
    why_no_need,
)
from tests.factories import NOW, SETTINGS

MINUTE = timedelta(minutes=1)
TIMEOUT = Failure(error_type="TimeoutError", message="no answer within 30 s")


def state_of(*loops: Loop, **records: Any) -> ProjectState:
    return ProjectState.open(Snapshot(loops={loop.id: loop for loop in loops}, **records), SETTINGS, NOW)


def need_of(loop: Loop, **records: Any) -> Any:
    return find_need(state_of(loop, **records), loop)


def running(**fields: Any) -> Loop:
    return Loop(id="a", **{"status": LoopStatus.RUNNING, "last_activity": NOW - MINUTE, **fields})


def failing(count: int, *failures: Failure) -> tuple[Iteration, ...]:
    return tuple(Iteration(number=n, at=NOW - (count - n) * MINUTE, failures=failures) for n in range(count))


def test_a_waiting_session_asks() -> None:
    loop = Loop(id="a", runner="x", status=LoopStatus.WAITING, question="Which side?", last_activity=NOW - 59 * MINUTE)
    need = need_of(loop)
    assert need.kind is NeedKind.ASKS and need.text == "Which side?"
    assert describe_need(need, NOW) == "asked 59 m ago: Which side?"


def test_an_escalation_of_a_running_loop_asks_and_one_of_an_ended_loop_does_not() -> None:
    session = DebugSession(id="s", loop_id="a", status=ESCALATED, updated_at=NOW - 5 * MINUTE, executions=())
    sessions = {"s": session}
    assert need_of(running(), debug_sessions=sessions).kind is NeedKind.ASKS
    ended = Loop(id="a", status=LoopStatus.FAILED, ended_at=NOW - MINUTE)
    assert need_of(ended, debug_sessions=sessions) is None


def test_the_same_error_in_the_last_iterations_or_test_runs_is_counted() -> None:
    need = need_of(running(iterations=(Iteration(number=9), *failing(4, TIMEOUT))))
    assert (need.kind, need.count, need.text) == (NeedKind.SAME_ERROR, 4, TIMEOUT.summary)
    assert need_sign(need, NOW).text == "same error x4"
    at_work = need_of(running(iterations=(*failing(3, TIMEOUT), Iteration(number=4))))
    assert at_work.count == 3, "the iteration at work does not end a repetition"
    for others in (
        failing(2, TIMEOUT),  # too few
        (*failing(3, TIMEOUT), Iteration(outcome=Outcome.SUCCESS)),  # resolved since
        (*failing(2, TIMEOUT), *failing(1, Failure(message="another"))),
    ):
        assert need_of(running(iterations=others)) is None, others
    runs = tuple(Execution(attempt=n, failures=(TIMEOUT,)) for n in range(3))
    session = DebugSession(id="s", loop_id="a", executions=runs)
    assert need_of(running(), debug_sessions={"s": session}).kind is NeedKind.SAME_ERROR


def test_a_running_loop_without_activity_is_silent_for_a_limited_time() -> None:
    need = need_of(running(last_activity=NOW - 40 * MINUTE))
    assert need_sign(need, NOW).text == "silent 40 m"
    assert need_of(running(last_activity=NOW - timedelta(days=9))) is None
    assert need_of(running(archived=True, last_activity=NOW - 40 * MINUTE)) is None
    texts = [time_since(NOW - span, NOW) for span in (MINUTE, 100 * MINUTE, timedelta(days=3))]
    assert texts == ["1 m", "1 h", "3 d"]


def test_a_session_that_ended_with_failing_tests_needs_a_person_for_a_limited_time() -> None:
    rows: list[dict[str, Any]] = [
        {"progress": Progress(test_passed=False), "status": LoopStatus.COMPLETED},  # a test run
        {"end_reason": CHECK_FAILED},  # a hook
    ]
    for fields in rows:
        known = {"status": LoopStatus.FAILED, "runner": "claude", **fields}
        need = need_of(Loop(id="a", ended_at=NOW - 120 * MINUTE, **known))
        assert describe_need(need, NOW) == "ended with failing tests, 2 h ago"
        assert need_of(Loop(id="a", ended_at=NOW - timedelta(days=4), **known)) is None


def test_failing_tests_need_no_action_once_another_session_has_solved_the_task() -> None:
    known: dict[str, Any] = {"ended_at": NOW - 8 * MINUTE, "status": LoopStatus.FAILED, "end_reason": CHECK_FAILED}
    rows: list[tuple[Outcome, dict[str, Any], str]] = [
        (Outcome.SUCCESS, {}, "a later attempt at the task worked"),
        (Outcome.FAILURE, {}, ""),
        (Outcome.FAILURE, {"ended_at": NOW - timedelta(days=4)}, "it ended more than 3 days ago"),
        (Outcome.FAILURE, {"archived": True}, "it is archived"),
    ]
    for later, changes, reason in rows:
        attempts = [
            Attempt(task_id="t", number=1, outcome=Outcome.FAILURE, loop_id="claude:1", started_at=NOW - 9 * MINUTE),
            Attempt(task_id="t", number=2, outcome=later, loop_id="claude:2", started_at=NOW - 5 * MINUTE),
        ]
        loop = Loop(id="claude:1", runner="claude", owner="claude", **(known | changes))
        task = Task(id="t", loop_id="claude:1")
        state = state_of(loop, tasks={"t": task}, attempts={one.id: one for one in attempts})
        assert (find_need(state, loop) is None) is bool(reason)
        assert why_no_need(state, loop) == reason
    loops = [Loop(id=f"claude:{n}", runner="claude", owner="claude", **known) for n in (1, 2)]
    attempts = [Attempt(task_id="t", number=n, outcome=Outcome.FAILURE, loop_id=f"claude:{n}") for n in (1, 2)]
    state = state_of(*loops, tasks={"t": Task(id="t")}, attempts={one.id: one for one in attempts})
    assert [one.loop_id for one in find_needs(state)] == ["claude:2"], "of two failed ones the later one"


def test_the_most_urgent_need_is_first_and_escalations_of_no_loop_are_included() -> None:
    silent = running(last_activity=NOW - 40 * MINUTE)
    asking = Loop(id="b", runner="x", status=LoopStatus.WAITING, last_activity=NOW - MINUTE)
    session = DebugSession(id="s", task_id="t", status=ESCALATED, updated_at=NOW - 2 * MINUTE)
    ended = DebugSession(id="e", loop_id="done", status=ESCALATED, updated_at=NOW)
    tasks = {"done": Task(id="done", status=TaskStatus.FAILED)}
    state = state_of(silent, asking, debug_sessions={"s": session, "e": ended}, tasks=tasks)
    assert [(one.loop_id, one.session_id) for one in find_needs(state)] == [("b", ""), ("", "s"), ("a", "")]


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


def test_a_need_that_ended_is_reported_when_it_comes_back_unless_the_state_was_not_complete(
    program: Program, tmp_path: Path
) -> None:
    notifier = make_notifier(tmp_path, program)
    check(notifier, asking("Which side?"))
    check(notifier, ProjectState.open(Snapshot(complete=False), SETTINGS, NOW))
    check(notifier, asking("Which side?"))
    assert len(program.sentences) == 1
    check(notifier, asking())
    check(notifier, asking("Which side?"))
    assert len(program.sentences) == 2


def test_the_report_has_no_secrets_and_no_control_characters(program: Program, tmp_path: Path) -> None:
    check(make_notifier(tmp_path, program), asking(f"Is {KEY} right?\x1b[2J"))
    (report,) = program.reports
    (need,) = report["needs"]
    assert report["version"] == 1 and report["project"] == str(tmp_path)
    assert (need["kind"], need["title"], need["loop_id"]) == ("asks", "Migrate", "loop-0")
    assert KEY not in need["text"] and "\x1b" not in need["text"]
    check(make_notifier(tmp_path / os.fsdecode(b"caf\xe9"), program), asking("Which side?"))
    assert len(program.sentences) == 2, "a project whose path is not Unicode"


def test_all_needs_are_reported_on_demand_and_a_failure_is_an_error(program: Program, tmp_path: Path) -> None:
    assert Notifier.for_loop(tmp_path) is None
    with pytest.raises(BadInput, match="notify"):
        report_all_needs(tmp_path, asking("Which side?"))
    configure(program.command)
    assert Notifier.for_loop(tmp_path) is not None
    for _ in range(2):
        report_all_needs(tmp_path, asking("Which side?"))
    assert program.sentences == [[ASKS.format("Which side?")]] * 2
    configure((sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(CommandFailed, match="exit code 3"):
        report_all_needs(tmp_path, asking("Which side?"))
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WRITE!r}, {str(program.file)!r}])"
    configure((sys.executable, "-c", child))
    report_all_needs(tmp_path, asking("Which side?"))  # a command that leaves a child has ended


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


def test_the_end_of_the_program_ends_the_command(program: Program, tmp_path: Path) -> None:
    """A command that goes on in the background is not waited for, one that hangs is killed."""
    hang = "import time; time.sleep(600)"
    report = "NeedReport(1, '/shop', ())"
    code = (
        "import sys, threading; from core.show.needs import NeedReport, send_report;"
        f"command = (sys.executable, '-c', {hang!r});"
        f"threading.Thread(target=lambda: send_report(command, {report})).start()"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert b"was stopped" in ended.stderr
