"""The work after sessions: one bad record does not stop the others, and only dead sessions are closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agents.agent_process import AgentProcess
from core.agents.hooks import answer, background, sessions
from core.agents.hooks.background import ABANDONED_AFTER, UNSEEN_AFTER, run
from core.agents.hooks.events import digest
from core.base.paths import ProjectPaths
from core.base.user_settings import user_settings_file
from core.records.loops import Outcome
from core.sources.liveness import process_space, system_processes
from core.tasks.history import read_history
from tests.core.agents.hooks.agents import EDIT, FAILING, PASSING, START, SimulatedAgent
from tests.factories import leave_draft

PROMPT = "Fix the account page"
LONG_SILENT = ABANDONED_AFTER + timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "start_background", lambda paths: None)


def put_record(agent: SimulatedAgent, session: str, **fields: Any) -> None:
    """Write the record of another session, like that of an agent, with other values."""
    record = json.loads((agent.project.sessions / f"{digest(agent.session)}.json").read_text())
    file = agent.project.sessions / f"{digest(session)}.json"
    file.write_text(json.dumps({**record, "id": session, "ended_tasks": [], **fields}))


def patterns(project: ProjectPaths) -> str:
    files = (project.ralph / "shared" / "patterns").glob("*.json")
    return "".join(file.read_text() for file in files)


@pytest.mark.parametrize(
    "fields",
    [
        {"checked": ["foo"]},
        {"checked": ["task-001." + "9" * 5000]},
        {"checked": ["../../x.1", "\0.1", "task-001.-1"]},
        {"ended_tasks": ["../../x", "no-such-task", "a" * 300, "\0"]},
        {"last_event": "0001-01-01T00:00:00+14:00", "attempt": 1},
        {"last_event": "9999-12-31T23:59:59-14:00", "attempt": 1},
    ],
)
def test_a_bad_record_does_not_stop_the_extraction_of_other_sessions(
    project: ProjectPaths, fields: dict[str, Any]
) -> None:
    agent = SimulatedAgent(project)
    agent.prompt(PROMPT)
    agent.fix_and_stop()
    put_record(agent, "bad", **{"last_event": "2020-01-01T00:00:00Z", **fields})
    run(project, agent.at)
    assert "Cannot read properties of null" in patterns(project)
    assert not agent.record.ended_tasks


def test_a_session_that_follows_a_given_lesson_is_one_use_of_it_and_proposes_no_other(project: ProjectPaths) -> None:
    for number, text in enumerate((PROMPT, "Fix the account page of the admins", "Fix the account page of guests")):
        agent = SimulatedAgent(project, f"s{number}", at=START + timedelta(hours=number))
        assert ("Cannot read properties" in agent.prompt(text)) is (number > 0)
        agent.fix_and_stop()
        run(project, agent.at)
    (record,) = json.loads(patterns(project))["pattern_registry"]["error_patterns"]
    assert record["usage_count"] == 3
    assert [source["loop_id"] for source in record["source_loops"]] == ["task-001", "task-002.1", "task-003.1"]


def test_a_session_whose_process_runs_is_not_abandoned(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    started = system_processes().started_at(os.getpid())
    assert started is not None
    own = AgentProcess(os.getpid(), started, process_space())
    monkeypatch.setattr(sessions, "find_agent_process", lambda agent: own)
    agent = SimulatedAgent(project)
    agent.prompt(PROMPT)
    agent.tool(FAILING)
    agent.at += LONG_SILENT + UNSEEN_AFTER
    run(project, agent.at)
    agent.tool(EDIT)
    agent.tool(PASSING)
    agent.send("Stop")
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.SUCCESS]
    run(project, agent.at)
    assert "Cannot read properties of null" in patterns(project)


def test_a_session_whose_process_has_ended_is_abandoned_after_some_hours(
    project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = AgentProcess(2**22, SimulatedAgent(project).at, process_space())
    monkeypatch.setattr(sessions, "find_agent_process", lambda agent: ended)
    agent = SimulatedAgent(project)
    agent.prompt(PROMPT)
    agent.tool(FAILING)
    run(project, agent.at + LONG_SILENT)
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.FAILURE]


def test_a_session_whose_process_is_unknown_is_abandoned_after_days(project: ProjectPaths) -> None:
    agent = SimulatedAgent(project)
    agent.prompt(PROMPT)
    agent.tool(FAILING)
    run(project, agent.at + LONG_SILENT)
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.UNKNOWN]
    run(project, agent.at + UNSEEN_AFTER + timedelta(minutes=1))
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.FAILURE]


@pytest.mark.parametrize("has_new_prompt", [False, True])
def test_an_abandoned_session_that_goes_on_continues_its_attempt(project: ProjectPaths, has_new_prompt: bool) -> None:
    agent = SimulatedAgent(project)
    agent.prompt(PROMPT)
    agent.tool(FAILING)
    agent.at += UNSEEN_AFTER + timedelta(minutes=1)
    run(project, agent.at)
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.FAILURE]
    if has_new_prompt:
        agent.prompt("Go on")
    agent.tool(EDIT)
    agent.tool(PASSING)
    agent.send("Stop")
    run(project, agent.at)
    history = read_history(project, "task-001")
    assert [(attempt.outcome, attempt.actions) for attempt in history.attempts] == [(Outcome.SUCCESS, 3)]
    assert not [reflection for reflection in history.reflections if "Not solved" in reflection.text]
    assert "Cannot read properties of null" in patterns(project)


def test_drafts_of_hooks_that_were_killed_are_removed(project: ProjectPaths) -> None:
    SimulatedAgent(project).prompt(PROMPT)
    draft = leave_draft(project.sessions / "x.json")
    SimulatedAgent(project).prompt(PROMPT)
    assert not draft.exists()


@pytest.mark.slow
def test_the_first_session_without_byte_code_starts_the_background_that_compiles(
    project: ProjectPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ProjectPaths] = []
    monkeypatch.setattr(answer, "start_background", started.append)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    SimulatedAgent(project).send("SessionStart", source="startup")
    assert started == [project]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    subprocess.run(
        [sys.executable, "-m", "core.agents.hooks.background", "sessions", project.project], env=environment, check=True
    )
    SimulatedAgent(project, "s2").send("SessionStart", source="startup")
    assert started == [project], "once"


def test_a_program_that_cannot_save_byte_code_does_not_try_at_each_session(
    project: ProjectPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ProjectPaths] = []
    monkeypatch.setattr(answer, "start_background", started.append)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    SimulatedAgent(project).send("SessionStart", source="startup")
    assert started == []


def test_what_needs_a_person_is_reported_at_the_end_of_a_turn(
    project: ProjectPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[ProjectPaths] = []
    monkeypatch.setattr(answer, "start_background", started.append)
    reports = tmp_path / "reports"
    user_settings_file().parent.mkdir(parents=True, exist_ok=True)
    write = f"import sys; open({str(reports)!r}, 'a').write(sys.stdin.read())"
    user_settings_file().write_text(f"[notify]\ncommand = {json.dumps([sys.executable, '-c', write])}\n")
    agent = SimulatedAgent(project, at=datetime.now(UTC) - timedelta(minutes=1))  # the process reads the real time
    agent.send("UserPromptSubmit", prompt=PROMPT)
    agent.send("PostToolUseFailure", **FAILING)
    agent.send("SessionEnd", reason="other")
    assert started == [project] * len(started) and len(started) >= 2, "after the failure, and at the end"
    for _ in range(2):
        background.main("sessions", str(project.project))
    (report,) = map(json.loads, reports.read_text().splitlines())
    assert [need["kind"] for need in report["needs"]] == ["tests failed"]
