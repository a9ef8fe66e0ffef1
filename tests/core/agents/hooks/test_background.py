"""The work after sessions: debug sessions, extraction, and the end of abandoned sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agents.agent_table import AgentProcess
from core.agents.hooks import answer, background, sessions, work
from core.agents.hooks.background import ABANDONED_AFTER, SETTLED_AFTER, UNSEEN_AFTER, needs_background, run
from core.agents.hooks.events import digest
from core.agents.hooks.sessions import Sessions
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.base.user_settings import user_settings_file
from core.index.refresh import Index
from core.index.search import search
from core.index.search_words import SearchFilters, SearchPlace, SearchWords
from core.records.debug_sessions import DebugSession, Fix
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


def begin(project: ProjectPaths, prompt: str = PROMPT) -> SimulatedAgent:
    """Begin a session with a prompt."""
    agent = SimulatedAgent(project)
    agent.prompt(prompt)
    return agent


def finish(agent: SimulatedAgent) -> None:
    """Edit, pass the check, and end the turn."""
    agent.tool(EDIT)
    agent.tool(PASSING)
    agent.send("Stop")


def put_record(agent: SimulatedAgent, session: str, **fields: Any) -> None:
    """Write the record of another session, like that of an agent, with other values."""
    record = json.loads((agent.project.sessions / f"{digest(agent.session)}.json").read_text())
    file = agent.project.sessions / f"{digest(session)}.json"
    file.write_text(json.dumps({**record, "id": session, "ended_tasks": [], **fields}))


def patterns(project: ProjectPaths) -> str:
    files = (project.ralph / "shared" / "patterns").glob("*.json")
    return "".join(file.read_text() for file in files)


def test_bad_records_do_not_stop_the_extraction_of_other_sessions(project: ProjectPaths) -> None:
    agent = begin(project)
    agent.fix_and_stop()
    records: tuple[dict[str, Any], ...] = (
        {"checked": ["foo"]},
        {"checked": ["task-001." + "9" * 5000]},
        {"checked": ["../../x.1", "\0.1", "task-001.-1"]},
        {"ended_tasks": ["../../x", "no-such-task", "a" * 300, "\0"]},
        {"last_event": "0001-01-01T00:00:00+14:00", "attempt": 1},
        {"last_event": "9999-12-31T23:59:59-14:00", "attempt": 1},
    )
    for number, fields in enumerate(records):
        put_record(agent, f"bad{number}", **{"last_event": "2020-01-01T00:00:00Z", **fields})
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
    agent = begin(project)
    agent.tool(FAILING)
    agent.at += LONG_SILENT + UNSEEN_AFTER
    run(project, agent.at)
    finish(agent)
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.SUCCESS]
    run(project, agent.at)
    assert "Cannot read properties of null" in patterns(project)


@pytest.mark.parametrize(("is_known", "silence"), [(True, ABANDONED_AFTER), (False, UNSEEN_AFTER)])
def test_a_session_is_abandoned_some_hours_after_its_process_has_ended_or_days_if_that_is_unknown(
    project: ProjectPaths, monkeypatch: pytest.MonkeyPatch, is_known: bool, silence: timedelta
) -> None:
    ended = AgentProcess(2**22, SimulatedAgent(project).at, process_space())
    monkeypatch.setattr(sessions, "find_agent_process", lambda agent: ended if is_known else None)
    agent = begin(project)
    agent.tool(FAILING)
    for minutes, outcome in ((-1, Outcome.UNKNOWN), (1, Outcome.FAILURE)):
        run(project, agent.at + silence + timedelta(minutes=minutes))
        assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [outcome]


@pytest.mark.parametrize("has_new_prompt", [False, True])
def test_an_abandoned_session_that_goes_on_continues_its_attempt(project: ProjectPaths, has_new_prompt: bool) -> None:
    agent = begin(project)
    agent.tool(FAILING)
    agent.at += UNSEEN_AFTER + timedelta(minutes=1)
    run(project, agent.at)
    assert [attempt.outcome for attempt in read_history(project, "task-001").attempts] == [Outcome.FAILURE]
    if has_new_prompt:
        agent.prompt("Go on")
    finish(agent)
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
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    SimulatedAgent(project).send("SessionStart", source="startup")
    assert started == [], "byte code cannot be saved"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    SimulatedAgent(project).send("SessionStart", source="startup")
    assert started == [project]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    subprocess.run(
        [sys.executable, "-m", "core.agents.hooks.background", "sessions", project.project], env=environment, check=True
    )
    SimulatedAgent(project, "s2").send("SessionStart", source="startup")
    assert started == [project], "once"


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


def sessions_of(project: ProjectPaths) -> list[DebugSession]:
    """Read the debug sessions as every reader does; there is no finding about them."""
    index = Index(project, Settings(), clock=lambda: SimulatedAgent(project).at, findings=())
    index.load()
    assert not [finding for finding in index.snapshot.findings if "debug-memory" in finding.file]
    return list(index.snapshot.debug_sessions.values())


def read_raw(project: ProjectPaths) -> dict[str, Any]:
    [file] = (project.ralph / "debug-memory").glob("*.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def fail(agent: SimulatedAgent, text: str = "TypeError: Cannot read properties of null (reading 'name')") -> None:
    agent.tool({**FAILING, "error": f"Exit code 1\nFAIL src/account.test.ts\n{text}\n1 failed, 2 passed"})


def test_an_attempt_with_a_failing_check_becomes_a_debug_session(project: ProjectPaths) -> None:
    agent = SimulatedAgent(project)
    agent.prompt("Fix the account page")
    fail(agent)
    finish(agent)
    [session] = sessions_of(project)
    failing, passing = session.executions
    assert (session.status, session.agent, session.attempt_id) == ("passed", "claude", "task-001.1")
    assert session.file_path == "src/account.ts"
    assert failing.results is not None and (failing.results.failed, failing.results.passed) == (1, 2)
    assert [(one.error_type, one.message) for one in failing.failures] == [
        ("TypeError", "Cannot read properties of null (reading 'name')")
    ]
    assert dict(failing.environment) == {"test_framework": "npm test", "command": "npm test", "exit_code": "1"}
    assert failing.fix is not None and failing.fix.verified is True
    assert failing.fix.files == ("src/account.ts",) and '+user?.name ?? ""' in failing.fix.diff
    assert passing.results is not None and passing.results.green
    assert failing.code_hash == "" and passing.code_hash


def test_an_attempt_without_a_failing_check_makes_no_debug_session(project: ProjectPaths) -> None:
    agent = begin(project, "Clean up")
    finish(agent)
    agent.prompt("Fix it")
    agent.tool({**FAILING, "error": "Exit code 127\nbash: npm: command not found"})
    finish(agent)
    assert not (project.ralph / "debug-memory").exists()


def test_a_fix_that_did_not_help_is_recorded_as_failed(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    fail(agent)
    agent.tool(EDIT)
    fail(agent)
    finish(agent)
    [session] = sessions_of(project)
    assert session.verdicts == (False, True, None)


def test_a_given_up_attempt_is_failed_and_its_untested_fix_pending_until_the_attempt_goes_on(
    project: ProjectPaths,
) -> None:
    agent = begin(project, "Fix it")
    fail(agent)
    agent.send("Stop")
    [session] = sessions_of(project)
    assert (session.status, session.executions[0].fix) == ("failed", None)
    agent.prompt("Try again")
    fail(agent)
    agent.tool(EDIT)
    agent.send("Stop")
    assert {one.status for one in sessions_of(project)} == {"failed", "in_progress"}
    agent.prompt("Go on")
    agent.tool(PASSING)
    agent.send("Stop")
    assert {one.status: len(one.executions) for one in sessions_of(project)} == {"failed": 1, "passed": 2}


def test_the_reason_of_the_agent_is_the_analysis_and_the_fix_and_a_lesson(agent: SimulatedAgent) -> None:
    agent.prompt("Fix it")
    fail(agent)
    reason = "The user may be null when the page loads. Read the name only if there is one."
    agent.tool({**EDIT, "tool_input": {"file_path": "src/account.ts", "description": reason}})
    agent.tool(PASSING)
    agent.send("Stop")
    [session] = sessions_of(agent.project)
    analysis = session.executions[0].analysis
    assert analysis is not None and analysis.root_cause == "The user may be null when the page loads."
    assert analysis.strategy == "Read the name only if there is one."
    assert session.executions[0].fix is not None and session.executions[0].fix.description == reason
    assert [(one.category, one.effectiveness) for one in session.lessons] == [("null_undefined_access", 1.0)]


def test_secrets_are_masked_and_project_paths_are_relative(project: ProjectPaths) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    agent = begin(project, "Fix it")
    fail(agent, f"TypeError: bad token {secret}\n    at load ({project.project}/src/load.ts:7:3)")
    finish(agent)
    text = json.dumps(read_raw(project))
    assert secret not in text
    assert str(project.project) not in text and "src/load.ts" in text


def test_the_log_of_a_killed_session_gives_its_debug_session_at_the_next_start(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    fail(agent)
    agent.tool(EDIT)
    later = agent.at + SETTLED_AFTER + timedelta(seconds=1)
    assert not needs_background(Sessions(project).all(), agent.at)
    assert needs_background(Sessions(project).all(), later)
    run(project, later)
    [session] = sessions_of(project)
    assert session.status == "in_progress" and isinstance(session.executions[0].fix, Fix)
    assert not needs_background(Sessions(project).all(), later)


def test_what_a_command_recorded_survives_a_later_turn(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    fail(agent)
    agent.send("Stop")
    raw = read_raw(project)
    analysis = {"root_cause": "x" * 20, "fix_strategy": "y" * 20, "recorded_by": "ada"}
    raw["executions"][0]["analysis"] = analysis
    raw["learnings"] = {"recommendations": ["Test the empty page"]}
    [file] = (project.ralph / "debug-memory").glob("*.json")
    file.write_text(json.dumps(raw))
    agent.record.checked.append("task-001.1")
    from core.agents.hooks.work import write_debug_session

    write_debug_session(project, "task-001", 1, agent.at)
    after = read_raw(project)
    assert after["executions"][0]["analysis"] == analysis and after["learnings"] == raw["learnings"]


def test_a_damaged_file_is_not_replaced_and_the_hook_goes_on(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    fail(agent)
    agent.send("Stop")
    [file] = (project.ralph / "debug-memory").glob("*.json")
    file.write_text("{")
    agent.prompt("Fix it")
    fail(agent)
    agent.tool(EDIT)
    agent.send("Stop")
    assert file.read_text() == "{"


def test_a_named_task_gets_its_debug_session(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    first = begin(project, "Prepare")
    first.tool(EDIT)
    monkeypatch.setenv("RALPHDECK_TASK", "task-001")
    agent = SimulatedAgent(project, session="s2")
    agent.prompt("Fix it")
    fail(agent)
    agent.send("Stop")
    [session] = sessions_of(project)
    assert session.attempt_id == "task-001.1"


def test_a_run_that_debug_run_records_is_not_recorded_again_and_proves_the_outcome(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    command = {"command": "ralphdeck debug run s -- npm test"}
    agent.tool({**FAILING, "tool_input": command})
    agent.tool(EDIT)
    agent.tool({**PASSING, "tool_input": command})
    agent.send("Stop")
    assert not (project.ralph / "debug-memory").exists()
    assert agent.record.attempt == 0 and agent.record.ended_tasks == ["task-001"]


def test_a_failure_is_found_once_by_a_search(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    fail(agent)
    agent.send("Stop")
    found = search(
        project, SearchWords("properties of null"), SearchFilters(places=frozenset({SearchPlace.ERRORS})), limit=10
    )
    assert [hit.action for hit in found.hits] == [1]


def test_any_command_that_is_run_again_after_a_change_is_a_check(project: ProjectPaths) -> None:
    agent = begin(project, "Fix it")
    command = {"command": "sh check.sh"}
    agent.tool({**FAILING, "tool_input": command, "error": "Exit code 1\ntotal is wrong"})
    agent.tool({**FAILING, "tool_input": {"command": "rm old.log"}, "error": "Exit code 1\nrm: no permission"})
    agent.tool(EDIT)
    agent.tool({**PASSING, "tool_input": command})
    agent.send("Stop")
    [session] = sessions_of(project)
    assert [dict(run.environment)["command"] for run in session.executions] == ["sh check.sh"] * 2
    assert session.verdicts == (True, None)


def test_the_debug_session_of_a_long_log_is_written_in_the_background(
    project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "_MAX_LOG", 100)
    agent = begin(project, "Fix it")
    agent.fix_and_stop()
    assert not sessions_of(project)
    assert needs_background(Sessions(project).all(), agent.at)
    run(project, agent.at)
    assert [session.status for session in sessions_of(project)] == ["passed"]
    assert not agent.record.checked
