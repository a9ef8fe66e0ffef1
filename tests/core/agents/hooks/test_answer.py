"""A session becomes a task with attempts, and gets contexts and known fixes."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agents.hooks import answer, background, sessions
from core.agents.hooks.contexts import MAX_FIX_TOKENS
from core.agents.hooks.events import HookEvent, digest, parse_event
from core.agents.hooks.sessions import MAX_CALLS, MAX_TRIES, Sessions, last_event
from core.base.errors import BadInput, Unwritable
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Promote
from core.files.file_access import file_lock
from core.files.user_files import cache_path, index_file
from core.project.project import Project
from core.records.episodes import TaskStatus
from core.records.loops import LoopStatus, Outcome
from core.records.patterns import PatternType
from core.retrieval.rendering import count_tokens
from core.tasks.history import read_history
from core.tasks.protocol import Episodes
from tests.core.agents.hooks.agents import EDIT, FAILING, FIX_PROMPT, PASSING, SimulatedAgent
from tests.fence_token import FENCE_TOKEN


def opened(agent: SimulatedAgent) -> Project:
    project = Project(agent.project, Settings(), by="ada", clock=lambda: agent.at)
    project.load()
    return project


def outcomes(project: ProjectPaths, task: str = "task-001") -> list[Outcome]:
    return [attempt.outcome for attempt in read_history(project, task).attempts]


def tasks(agent: SimulatedAgent) -> dict[str, TaskStatus]:
    return {id: task.status for id, task in opened(agent).view.snapshot.tasks.items()}


def test_a_turn_with_a_fix_becomes_a_completed_task(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    task = opened(agent).view.snapshot.tasks["task-001"]
    assert (task.description, task.status, task.loop_id) == (FIX_PROMPT, TaskStatus.COMPLETED, "claude:s1")
    assert outcomes(agent.project) == [Outcome.SUCCESS]
    odd = SimulatedAgent(agent.project, "s\u202e\n" + "x" * 400)
    odd.prompt("Add a page")
    odd.fix_and_stop()
    assert opened(odd).view.snapshot.tasks["task-002"].loop_id.startswith("claude:s")
    assert not agent.warnings and not odd.warnings


@pytest.mark.parametrize(
    ("edited", "is_solved", "expected", "verdict"),
    [
        ('user?.name ?? ""', True, [True], True),
        ('user?.name ?? ""', False, [False], True),
        ("guest page", True, [], False),  # another fix says nothing about the result of the lesson
        ("", False, [], None),  # neither does a session that changed nothing
    ],
)
def test_a_given_error_pattern_has_a_result_only_if_an_edit_follows_its_fix(
    agent: SimulatedAgent, edited: str, is_solved: bool, expected: list[bool], verdict: bool | None
) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    (known,) = (one for one in opened(agent).view.snapshot.patterns.values() if one.type is PatternType.ERROR)
    later = SimulatedAgent(agent.project, "s2", at=agent.at)
    assert known.title in later.prompt(FIX_PROMPT)
    later.tool(FAILING)
    if edited:
        later.tool(EDIT | {"tool_input": {"file_path": "src/page.ts", "old_string": "user.name", "new_string": edited}})
    later.tool(PASSING if is_solved else FAILING)
    later.send("SessionEnd", reason="exit")
    events = [event for event in opened(later).view.snapshot.events if event.pattern_id == known.id]
    assert [event.success for event in events if event.loop_id == "task-001.2" and event.kind == "applied"] == expected
    (judged,) = opened(later).view.inputs.verdicts(known)
    assert (judged.work_id, judged.is_followed) == ("task-001.2", verdict)
    assert bool(judged.evidence) is (verdict is not None), "the action that shows it is described"


def test_what_a_question_was_given_is_recorded_for_its_session_without_a_task(later: SimulatedAgent) -> None:
    assert later.prompt(FIX_PROMPT)
    later.send("Stop")
    later.send("SessionEnd", reason="exit")
    events = [event for event in opened(later).view.snapshot.events if event.loop_id == "claude:s2"]
    assert [event.kind for event in events] == ["injected"]
    assert [*tasks(later)] == ["task-001"]


def test_prompts_continue_an_open_task_and_begin_another_one_after_a_success(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    agent.tool(EDIT)
    agent.send("Stop")
    assert outcomes(agent.project) == [Outcome.UNKNOWN], "without a check, the turn stays open"
    agent.prompt("and test it")
    agent.tool(FAILING, agent_id="a1", agent_type="tester")  # a subagent works on the task of its session
    agent.send("Stop")
    agent.prompt("Try it with a default value")
    agent.fix_and_stop()
    assert outcomes(agent.project) == [Outcome.FAILURE, Outcome.SUCCESS]
    agent.prompt("Add a menu")
    agent.fix_and_stop()
    assert tasks(agent) == dict.fromkeys(("task-001", "task-002"), TaskStatus.COMPLETED)


def test_a_loop_that_repeats_its_prompt_makes_attempts_at_one_task(agent: SimulatedAgent) -> None:
    for _ in range(3):
        agent.prompt("Do the next story of the plan")
        agent.fix_and_stop()
    assert outcomes(agent.project) == [Outcome.SUCCESS] * 3
    assert [*tasks(agent)] == ["task-001"]


def test_a_new_session_with_the_same_prompt_makes_the_next_attempt_at_its_task(agent: SimulatedAgent) -> None:
    for number in range(3):
        run = SimulatedAgent(agent.project, f"run{number}", at=agent.at + timedelta(hours=number))
        run.prompt("Do the next story of the plan")
        run.tool((EDIT, FAILING, PASSING)[number])
        run.send("SessionEnd", reason="other")
    view = opened(run).view
    assert outcomes(agent.project) == [Outcome.UNKNOWN, Outcome.FAILURE, Outcome.SUCCESS]
    assert {id: task.status for id, task in view.snapshot.tasks.items()} == {"task-001": TaskStatus.COMPLETED}
    sessions = [attempt.loop_id or "claude:run0" for attempt in view.snapshot.attempts.values()]
    assert sorted(sessions) == ["claude:run0", "claude:run1", "claude:run2"]


def test_a_session_is_a_loop_with_the_patterns_and_the_outcome_of_its_own_attempts(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    agent.send("SessionEnd", reason="other")
    later = SimulatedAgent(agent.project, "s2", at=agent.at)
    later.prompt(FIX_PROMPT)
    later.tool(FAILING)
    later.send("SessionEnd", reason="other")
    view = opened(later).view
    first, second = view.loop("claude:s1"), view.loop("claude:s2")
    assert [loop.status for loop in (first, second)] == [LoopStatus.COMPLETED, LoopStatus.FAILED]
    (pattern,) = (id for id, one in view.snapshot.patterns.items() if one.type is PatternType.ERROR)
    assert [one.pattern_id for one in view.loop_patterns(first.id).extracted] == [pattern]
    assert view.loop_patterns(second.id).injected_ids == [pattern]
    assert [attempt.id for attempt in view.attempts_of(second)] == ["task-001.2"]
    outcome = view.outcome(first.id)
    assert outcome is not None and outcome[0].success
    assert not {"claude:s1", "claude:s2"} & set(view.board.inputs.finished()), "the attempts are scored"


def test_a_session_takes_no_task_that_another_one_works_on_or_that_is_older_than_a_day(agent: SimulatedAgent) -> None:
    for number, days in enumerate((0, 0, 2)):
        run = SimulatedAgent(agent.project, f"s{number}", at=agent.at + timedelta(days=days))
        run.prompt(FIX_PROMPT)
        run.tool(EDIT)
    assert [*tasks(run)] == ["task-001", "task-002", "task-003"]


def test_the_end_of_a_session_closes_its_task_by_the_evidence_until_it_is_resumed(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    agent.tool(FAILING)
    agent.send("SessionEnd", reason="exit")
    other = SimulatedAgent(agent.project, "s2", at=agent.at)
    other.prompt("Add a menu")
    other.tool(EDIT)
    other.send("SessionEnd", reason="exit")
    assert tasks(agent) == {"task-001": TaskStatus.FAILED, "task-002": TaskStatus.PAUSED}
    assert outcomes(agent.project, "task-002") == [Outcome.UNKNOWN]
    other.send("SessionStart", source="resume")
    other.prompt("Go on")
    other.tool(PASSING)
    other.send("Stop")
    assert outcomes(agent.project, "task-002") == [Outcome.SUCCESS]


def test_each_tool_call_counts_once(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    for _ in range(3):
        agent.tool(EDIT, tool_use_id="same")
    cursor = SimulatedAgent(agent.project, agent="cursor", at=agent.at)
    cursor.send("postToolUse", conversation_id="s1", session_id="", tool_use_id="same", **EDIT)
    assert read_history(agent.project, "task-001").attempts[0].actions == 1


def test_a_context_is_given_once_until_a_compaction_repeats_it(later: SimulatedAgent) -> None:
    context = later.prompt(FIX_PROMPT)
    assert "Cannot read" in context
    assert later.prompt(FIX_PROMPT) == "", "from two sets of hooks"
    assert later.tool(FAILING) == "", "the context has the fix of this error"
    later.fix_and_stop()
    assert later.prompt(FIX_PROMPT) == ""
    assert later.context("SessionStart", source="compact") == context
    assert later.context("SessionStart", source="startup") == ""


def test_each_session_of_the_only_running_loop_begins_with_its_context(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    state = {"loopId": "ralph-accounts", "status": "running", "task": FIX_PROMPT, "startTime": agent.at.isoformat()}
    file = agent.project.ralph / "loops" / "ralph-accounts" / "state.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(state))
    os.utime(file, (agent.at.timestamp(),) * 2)
    for name in ("s2", "s3"):
        later = SimulatedAgent(agent.project, name, at=agent.at)
        assert "null" in later.context("SessionStart", source="startup"), name
        later.prompt(FIX_PROMPT)
        later.tool(EDIT)
        opened(agent)  # so that the index has the session
    events = map(json.loads, agent.project.events.read_text().splitlines())
    given = [event.get("pattern_id") for event in events if event.get("loop_id") == "ralph-accounts"]
    assert given and len(given) == len({*given}), "a loop is recorded to be given a lesson once"


@pytest.mark.parametrize("change", ["UPDATE cells SET data = x'00'", "UPDATE term SET rows = x'00'"])
def test_a_prompt_gets_its_context_though_the_index_is_damaged(agent: SimulatedAgent, change: str) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    context = SimulatedAgent(agent.project, "s2", at=agent.at).prompt(FIX_PROMPT)
    with closing(sqlite3.connect(cache_path(agent.project.project, "index"), isolation_level=None)) as connection:
        assert connection.execute(change).rowcount
    assert context and SimulatedAgent(agent.project, "s3", at=agent.at).prompt(FIX_PROMPT) == context


def test_the_reason_of_an_attempt_is_what_the_agent_wrote_without_the_usual_words(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    for fields in (FAILING, EDIT, PASSING):
        agent.tool(fields)
    agent.send("Stop", last_assistant_message="Done! The name is read only if there is a user. All tests pass.")
    (attempt,) = read_history(agent.project, "task-001").attempts
    assert attempt.reason == "The name is read only if there is a user."


def test_a_context_and_a_fix_that_were_late_are_given_once_at_the_next_tool_call(later: SimulatedAgent) -> None:
    other = SimulatedAgent(later.project, "s3", at=later.at)
    later.is_late = other.is_late = True
    assert later.prompt(FIX_PROMPT) == ""
    other.prompt("Something else")
    assert other.tool(FAILING) == ""
    later.is_late = other.is_late = False
    for late in (later, other):
        assert "Cannot read" in late.tool(EDIT), late.session
        assert late.tool(EDIT) == late.tool(FAILING) == "", late.session
    injected = [event.kind for event in opened(later).view.snapshot.events if event.loop_id == "task-001.2"]
    assert "injected" in injected


@pytest.mark.parametrize("has_records", [False, True])
def test_a_context_is_owed_for_as_long_as_the_first_index_is_made(
    agent: SimulatedAgent, later: SimulatedAgent, has_records: bool
) -> None:
    later.is_late = True
    assert later.prompt(FIX_PROMPT) == ""
    if has_records:  # the texts are indexed last
        with closing(sqlite3.connect(index_file(agent.project.project))) as index, index:
            index.execute("DELETE FROM meta WHERE name = 'texts'")
    else:
        index_file(agent.project.project).unlink()
    with file_lock(cache_path(agent.project.project, "sweep.lock"), 0):
        for _ in range(2 * MAX_TRIES):
            assert later.tool(EDIT) == ""
    opened(agent)
    later.is_late = False
    assert "null" in later.tool(EDIT)


def test_a_context_that_is_always_late_is_not_tried_at_every_tool_call(later: SimulatedAgent) -> None:
    later.is_late = True
    later.prompt(FIX_PROMPT)
    for _ in range(MAX_TRIES):
        later.tool(EDIT)
    later.is_late = False
    assert later.tool(EDIT) == ""


def test_an_event_that_was_overtaken_delivers_nothing_twice(agent: SimulatedAgent, later: SimulatedAgent) -> None:
    later.is_late = True
    later.prompt(FIX_PROMPT)
    later.is_late = False
    first = SimulatedAgent(agent.project, "s2", at=later.at)
    contexts: list[str] = []
    later.meanwhile = lambda: contexts.append(first.tool(EDIT, tool_use_id="first"))
    contexts.append(later.tool(EDIT, tool_use_id="second"))
    assert ["Cannot read" in context for context in contexts] == [True, False]


def test_a_notice_opens_no_task_and_a_slash_command_names_the_work_after_it(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    assert agent.prompt(f"<task-notification>\n{FIX_PROMPT}") == ""
    agent.tool(PASSING)
    agent.send("Stop")
    assert tasks(agent) == {"task-001": TaskStatus.COMPLETED}
    other = SimulatedAgent(agent.project, "s2", at=agent.at)
    other.prompt("/fix-issue 123")
    other.tool(EDIT)
    assert opened(other).view.snapshot.tasks["task-002"].description == "/fix-issue 123", "work is named by its command"


def test_a_subagent_gets_the_fix_of_its_error_but_not_the_context_of_the_prompt(later: SimulatedAgent) -> None:
    later.is_late = True
    later.prompt("Write the profile page")
    later.is_late = False
    assert later.tool(EDIT, agent_id="a1") == ""
    assert "Cannot read" in later.tool(FAILING, agent_id="a1")
    assert later.record.owed.prompt == "Write the profile page"


def test_a_known_fix_is_given_once_to_the_attempt_and_its_result_counts(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    assert agent.tool(FAILING) == "", "nothing is known yet"
    agent.send("Stop")
    early = SimulatedAgent(agent.project, "s0", at=agent.at)
    early.prompt("Something else")
    assert early.tool(FAILING) == "", "the error has no fix"
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()
    (known,) = opened(agent).view.snapshot.patterns
    later = SimulatedAgent(agent.project, "s2", at=agent.at)
    later.prompt("Write the release notes")
    fix = later.tool(FAILING)
    assert "Cannot read" in fix and count_tokens(fix) <= MAX_FIX_TOKENS
    assert fix.startswith("<unreviewed-") and fix.rstrip().endswith(f"</unreviewed-{FENCE_TOKEN}>")
    assert later.tool(FAILING) == ""
    later.tool(EDIT)
    later.tool(PASSING)
    later.send("Stop")
    later.send("SessionEnd", reason="exit")
    events = [event for event in opened(later).view.snapshot.events if event.pattern_id == known]
    assert [event.loop_id for event in events if event.kind == "injected"] == ["task-003.1"]
    assert [event.success for event in events if event.kind == "applied"] == [True]


def test_a_named_task_gets_the_actions_and_is_not_closed(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Episodes(agent.project, clock=lambda: agent.at)
    task = memory.init_task("Named by the loop")
    memory.start_attempt(task)
    monkeypatch.setenv("RALPHDECK_TASK", task)
    agent.prompt("Add a page")
    agent.fix_and_stop()
    agent.send("SessionEnd", reason="exit")
    assert tasks(agent) == {task: TaskStatus.RUNNING}
    attempt = read_history(agent.project, task).attempts[0]
    assert (attempt.actions, attempt.outcome) == (3, Outcome.UNKNOWN)


def test_sessions_at_the_same_time_have_tasks_of_their_own(project: ProjectPaths) -> None:
    agents = [SimulatedAgent(project, f"s{number}") for number in range(6)]

    def work(agent: SimulatedAgent) -> None:
        agent.prompt(f"Add page {agent.session}")
        for _ in range(4):
            agent.tool(EDIT)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, agents))
    view = opened(agents[0]).view
    assert {task.description for task in view.snapshot.tasks.values()} == {f"Add page s{n}" for n in range(6)}
    for task in view.snapshot.tasks:
        assert read_history(project, task).attempts[0].actions == 4


def test_the_task_of_a_killed_agent_is_closed_by_a_later_session(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.prompt("Add a page")
    agent.tool(FAILING)
    later = SimulatedAgent(agent.project, "s2", at=agent.at + background.UNSEEN_AFTER + timedelta(minutes=1))
    monkeypatch.setattr(answer, "start_background", lambda paths: background.run(paths, later.at))
    later.send("SessionStart", source="startup")
    assert tasks(agent) == {"task-001": TaskStatus.FAILED}


def test_an_attempt_that_a_person_closed_is_followed_by_another_one(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    agent.tool(EDIT)
    Episodes(agent.project, clock=lambda: agent.at).complete_attempt("task-001", outcome=Outcome.FAILURE)
    agent.tool(PASSING)
    agent.send("Stop")
    assert outcomes(agent.project) == [Outcome.FAILURE, Outcome.SUCCESS]


def test_a_damaged_record_counts_as_a_new_session(agent: SimulatedAgent) -> None:
    contents = (b"", b"{", b"[]", b"null", b"\xff" * 100, b'{"agent": 1}', b"{}" * 10**6)
    for number, content in enumerate(contents, start=1):
        agent.prompt(f"Add page {number}")
        next(agent.project.sessions.glob("*.json")).write_bytes(content)
        agent.tool(PASSING)
        agent.send("Stop")
        assert outcomes(agent.project, f"task-{number:03}") == [Outcome.SUCCESS], content[:9]


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "../../outside"},
        {"task": ""},
        {"attempt": -1},
        {"attempt": 10**9},
        {"agent": "ada"},
        {"ended_tasks": ["task-001"] * 1000},
        {"tasks": {digest("Add a page"): ".."}, "task": "\0"},
    ],
)
def test_a_foreign_record_does_not_stop_later_events(agent: SimulatedAgent, fields: dict[str, Any]) -> None:
    agent.prompt("Add a page")
    agent.tool(EDIT)
    file = next(agent.project.sessions.glob("*.json"))
    file.write_text(json.dumps(json.loads(file.read_bytes()) | fields))
    agent.prompt("Add a page")
    agent.tool(PASSING)
    agent.send("Stop")
    assert TaskStatus.COMPLETED in tasks(agent).values()
    assert len(agent.record.ended_tasks) <= 1


def test_a_damaged_task_does_not_stop_the_work_for_other_sessions(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    agent.tool(FAILING)
    (agent.project.tasks / "task-001" / "metadata.json").write_bytes(b"[]")
    later = SimulatedAgent(agent.project, "s2", at=agent.at + background.UNSEEN_AFTER + timedelta(minutes=1))
    later.prompt(FIX_PROMPT)
    later.fix_and_stop()
    background.run(agent.project, later.at)
    assert not background.needs_background(Sessions(agent.project).all(), later.at)


def test_a_record_under_a_foreign_name_is_ignored(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    agent.tool(EDIT)
    file = next(agent.project.sessions.glob("*.json"))
    record = json.loads(file.read_bytes()) | {"id": "other", "ended_tasks": ["task-001"]}
    file.with_name("0123.json").write_text(json.dumps(record))
    assert [one.id for one in Sessions(agent.project).all()] == ["s1"]
    background.run(agent.project, agent.at)


def test_nothing_is_read_or_written_through_a_linked_folder(agent: SimulatedAgent, tmp_path: Path) -> None:
    agent.project.sessions.symlink_to(tmp_path)
    before = set(tmp_path.iterdir())
    with pytest.raises(BadInput, match="is outside"):
        agent.tool(FAILING)
    assert last_event(agent.project) is None
    assert set(tmp_path.iterdir()) == before


def test_long_call_ids_do_not_make_the_record_unreadable(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = 25  # of the calls that are remembered, and of the bytes that they may have
    most = MAX_CALLS // share
    monkeypatch.setattr(sessions, "MAX_CALLS", most)
    monkeypatch.setattr(sessions, "_MAX_BYTES", sessions._MAX_BYTES // share)
    for number in (*range(most), 0):
        agent.tool(EDIT, tool_use_id="\U0010ffff" * 500 + str(number))
    assert [*tasks(agent)] == ["task-001"]
    assert len(agent.record.calls) == most


def test_an_agent_that_repeats_the_ids_of_its_calls_loses_no_call(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    for fields in (FAILING, EDIT, PASSING):
        for _ in range(2):  # two sets of hooks
            agent.tool(fields, tool_use_id="call_0")
    agent.send("Stop")
    (attempt,) = read_history(agent.project, "task-001").attempts
    assert (attempt.actions, attempt.outcome) == (3, Outcome.SUCCESS)
    assert "Cannot read" in SimulatedAgent(agent.project, "s2", at=agent.at).prompt(FIX_PROMPT)


def test_a_call_that_finds_its_session_locked_is_logged_with_the_next_event(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.prompt(FIX_PROMPT)
    monkeypatch.setattr(sessions, "_LOCK_SECONDS", 0.0)
    with file_lock(next(agent.project.sessions.glob("*.lock"))):
        for fields in (FAILING, EDIT):
            with pytest.raises(Unwritable, match="locked"):
                agent.tool(fields)
    agent.tool(PASSING)
    agent.send("Stop")
    (attempt,) = read_history(agent.project, "task-001").attempts
    assert (attempt.actions, attempt.outcome) == (3, Outcome.SUCCESS)
    assert "Cannot read" in SimulatedAgent(agent.project, "s2", at=agent.at).prompt(FIX_PROMPT)
    assert not list(agent.project.sessions.glob("*.calls"))


def test_a_full_disk_is_reported_as_a_record_that_cannot_be_written(
    agent: SimulatedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(sessions, "put", fail)
    with pytest.raises(Unwritable, match="No space left"):
        agent.prompt("Add a page")


def test_the_newest_event_of_a_project_is_known(agent: SimulatedAgent) -> None:
    assert last_event(agent.project) is None
    agent.prompt("Add a page")
    assert last_event(agent.project) == ("claude", agent.at)


def test_a_session_does_not_wait_for_the_lock_of_another_one(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    with file_lock(next(agent.project.sessions.glob("*.lock"))):
        SimulatedAgent(agent.project, "s2").tool(EDIT)
    assert [*tasks(agent)] == ["task-001"]


def test_old_records_are_deleted(agent: SimulatedAgent) -> None:
    agent.prompt("Add a page")
    background.run(agent.project, agent.at + background.FORGOTTEN_AFTER + timedelta(days=1))
    assert sorted(path.name for path in agent.project.sessions.iterdir()) == [".background.lock", ".gitignore"]


def test_every_agent_gets_approved_lessons_apart_from_all_others(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    agent.fix_and_stop()

    def given(kind: str, event: str, session: str) -> str:
        """The text that a new session gets at its first prompt; of Cursor, at its first tool call."""
        other = SimulatedAgent(agent.project, f"{kind}-{session}", agent=kind, at=agent.at)
        answer = other.send(event, prompt=FIX_PROMPT)
        if kind == "cursor":
            assert answer is None
            answer = other.send("postToolUse", tool_use_id="1", **EDIT)
            assert other.send("postToolUse", tool_use_id="2", **EDIT) is None
            assert any(one.loop_id == f"task-001.{session}" for one in opened(agent).view.snapshot.events)
            other.send("sessionEnd", reason="exit")
        found = answer.get("hookSpecificOutput", answer)
        return str(found.get("additionalContext") or found.get("additional_context"))

    events = dict.fromkeys(("claude", "codex"), "UserPromptSubmit")
    events |= {"gemini": "BeforeAgent", "cursor": "beforeSubmitPrompt"}
    for kind, event in events.items():
        before = given(kind, event, "2")
        assert before.startswith("<unreviewed-") and "<approved-" not in before, kind
    project = opened(agent)
    for pattern_id in project.view.snapshot.patterns:
        project.decide(Promote(pattern_id, reason="read"))
    for kind, event in events.items():
        assert "Cannot read" in given(kind, event, "3").partition("</approved-")[0], kind


def test_a_context_that_was_saved_without_blocks_is_repeated_as_data(agent: SimulatedAgent) -> None:
    agent.prompt(FIX_PROMPT)
    with Sessions(agent.project).edit(event_of(agent), agent.at) as session:
        session.context = "## Cross-Loop Learning Context\n"
    assert agent.context("SessionStart", source="compact").startswith("<unreviewed-")


def event_of(agent: SimulatedAgent) -> HookEvent:
    event = parse_event(agent.agent, json.dumps({"hook_event_name": "Stop", "session_id": agent.session}).encode())
    assert event is not None
    return event
