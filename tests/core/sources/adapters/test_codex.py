"""Sessions and goals of Codex."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.records.loops import Liveness, LoopStatus, Outcome, StateSource, Usage
from core.sources.adapters.codex import CodexAdapter, Rollout, RolloutFold
from core.sources.adapters.sessions import MAX_FAILURES, MAX_TURNS
from tests.core.sources.adapters.fixtures import NOW, Case, check_damages, check_replacements, open_case
from tests.e2e.play_codex import play

ID = "019fa000-0000-7000-8000-000000000001"
LOOP_ID = f"codex:{ID}"
ACTIVE = datetime(2026, 11, 20, 10, 3, tzinfo=UTC)  # 40 s after the last line of the cases with goals
Open = Callable[[str], Case]


@pytest.fixture
def open_codex(tmp_path: Path) -> Open:
    return lambda case: open_case(CodexAdapter(), f"codex/{case}", tmp_path)


def rollout(case: Case) -> Path:
    return next(case.home.glob(f".codex/sessions/*/*/*/rollout-*{ID}.jsonl"))


def event(at: datetime, kind: str, **payload: Any) -> str:
    return json.dumps({"timestamp": at.isoformat(), "type": "event_msg", "payload": {"type": kind, **payload}}) + "\n"


def append(case: Case, *lines: str) -> None:
    with rollout(case).open("a") as file:
        file.writelines(lines)


def write_goal(case: Case, status: str, name: str = "goals_1.sqlite", after: int = 200) -> None:
    with closing(sqlite3.connect(case.home / ".codex" / name)) as database:
        database.execute(
            "UPDATE thread_goals SET status = ?, updated_at_ms = created_at_ms + ?", (status, after * 1000)
        )
        database.commit()


# What a session contains


def test_a_fork_does_not_count_the_history_of_its_parent_again(open_codex: Open) -> None:
    case, fork_id = open_codex("resumed"), "019fa000-0000-7000-8000-000000000002"
    path = next(case.home.glob(".codex/sessions/*/*/*/rollout-*2.jsonl"))
    text = path.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for number, line in enumerate(lines[1:-7]):
        line["timestamp"] = f"2026-11-20T10:30:01.{number:03d}Z"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    fork = case.loops()[f"codex:{fork_id}"]
    assert (fork.usage.input, fork.task) == (2000, "Now show cents."), "the copied lines have new times"
    path.write_text("".join(text.splitlines(keepends=True)[:-7]))
    fork = case.loops()[f"codex:{fork_id}"]
    assert (fork.usage, fork.task, fork.status) == (Usage(), "", LoopStatus.UNKNOWN), "it has no turn of its own"
    newer = fork_id.replace("019fa000", "019fa010")
    text = text.replace(fork_id, newer).replace('"t-1"', f'"{ID}"')
    text = text.replace('"t-2"', '"019fa010-0001-7000-8000-000000000001"')
    path.write_text(text.replace("2026-11-20T10:0", "2026-11-20T10:3"))  # later than the fork
    assert case.loops()[f"codex:{newer}"].usage.input == 2000, "IDs with a time show which turns are copied"


def test_a_torn_last_line_is_read_when_it_is_complete(open_codex: Open) -> None:
    case = open_codex("torn-last-line")
    case.now = datetime(2026, 11, 20, 10, 1, tzinfo=UTC)
    assert case.loop().status is LoopStatus.RUNNING
    append(case, 'oad":{"type":"task_complete","turn_id":"t-1","last_agent_message":"Done."}}\n')
    assert case.loop().status is LoopStatus.COMPLETED
    assert case.loop().last_result == "Done."


# Which sessions


def test_sessions_in_a_working_tree_of_the_project_are_read(open_codex: Open) -> None:
    case = open_codex("others")
    case.set_folders(worktrees=(Path("/home/ana/other"),))
    assert "codex:019fa000-0000-7000-8000-000000000004" in case.loops()


def test_the_first_line_of_another_project_is_read_once(open_codex: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    case = open_codex("others")
    case.loops()
    case.adapter = CodexAdapter()  # as after a start of the program
    monkeypatch.setattr(case.files, "first_line", None)
    assert len(case.loops()) == 2


@pytest.mark.parametrize("kept", [None, [], 7, {"a": 1}, {"/x": ["rollout-1"], 3: [None]}])
def test_a_damaged_cache_of_working_folders_is_ignored(open_codex: Open, kept: Any) -> None:
    case = open_codex("others")
    case.files.remember("working folders", kept)
    assert len(case.loops()) == 2


def test_a_session_that_is_archived_and_not_is_shown_once(open_codex: Open) -> None:
    case = open_codex("exec")
    archive = case.home / ".codex" / "archived_sessions"
    archive.mkdir()
    (archive / rollout(case).name).write_bytes(rollout(case).read_bytes())
    assert not case.loop().archived


# States


@pytest.mark.parametrize(
    ("goal", "status", "reason", "liveness"),
    [
        ("active", LoopStatus.RUNNING, "", Liveness.FRESH),
        ("paused", LoopStatus.PAUSED, "", Liveness.IDLE),
        ("blocked", LoopStatus.WAITING, "blocked", Liveness.IDLE),
        ("usage_limited", LoopStatus.LIMIT, "usage_limited", Liveness.ENDED),
        ("budget_limited", LoopStatus.LIMIT, "budget_limited", Liveness.ENDED),
        ("complete", LoopStatus.COMPLETED, "complete", Liveness.ENDED),
    ],
)
def test_the_status_of_a_goal_is_that_of_the_loop(
    open_codex: Open, goal: str, status: LoopStatus, reason: str, liveness: Liveness
) -> None:
    case = open_codex("goal-active")
    case.now = ACTIVE
    write_goal(case, goal)
    loop = case.loop()
    assert (loop.status, loop.raw_status, loop.end_reason) == (status, goal, reason)
    assert (loop.state_source, loop.liveness) == (StateSource.REPORTED, liveness)
    assert (loop.task, loop.criteria) == ("Make the tests of the cart pass.", ("pytest exits with 0",))
    assert loop.tags == ("goal", "interactive")
    assert loop.progress.is_claimed is (goal == "complete")
    assert loop.progress.test_passed is False


def test_an_active_goal_without_a_new_line_for_ten_minutes_is_stale(open_codex: Open) -> None:
    case = open_codex("goal-active")
    case.now = ACTIVE + timedelta(minutes=10)
    loop = case.loop()
    assert (loop.status, loop.liveness, loop.badges) == (LoopStatus.RUNNING, Liveness.STALE, ("stale",))


@pytest.mark.parametrize(
    ("columns", "values"), [("thread_id, status", (ID, "paused")), ("status, thread_id, objective", ("paused", ID, 7))]
)
def test_a_table_with_other_columns_is_read(open_codex: Open, columns: str, values: tuple[object, ...]) -> None:
    case = open_codex("exec")
    with closing(sqlite3.connect(case.home / ".codex" / "goals_9.sqlite")) as database:
        database.execute(f"CREATE TABLE thread_goals ({columns})")
        database.execute(f"INSERT INTO thread_goals VALUES ({', '.join('?' * len(values))})", values)
        database.commit()
    assert case.loop().status is LoopStatus.PAUSED


def test_the_goal_in_the_rollout_is_used_if_there_is_no_database(open_codex: Open) -> None:
    case = open_codex("exec")
    goal = {"threadId": ID, "objective": "Show cents", "status": "budgetLimited", "tokenBudget": 10}
    append(case, event(ACTIVE, "thread_goal_updated", goal=goal))
    loop = case.loop()
    assert (loop.status, loop.raw_status, loop.task) == (
        LoopStatus.LIMIT,
        "budget_limited",
        "Make the tests of the cart pass.",
    )


def test_a_goal_that_is_only_in_the_rollout_was_cleared(open_codex: Open) -> None:
    case = open_codex("goal-active")
    with closing(sqlite3.connect(case.home / ".codex" / "goals_1.sqlite")) as database:
        database.execute("DELETE FROM thread_goals")
        database.commit()
    goal = {"objective": "pytest exits with 0", "status": "active"}
    append(case, event(ACTIVE, "thread_goal_updated", goal=goal), event(ACTIVE, "task_complete", turn_id="t-2"))
    assert case.loop().raw_status == "task_complete"


@pytest.mark.parametrize(
    ("events", "status", "reason"),
    [
        ([("task_complete", {})], LoopStatus.COMPLETED, "task_complete"),
        ([("turn_aborted", {"reason": "interrupted"})], LoopStatus.ABORTED, "interrupted"),
        ([("turn_aborted", {"reason": "replaced"})], LoopStatus.ABORTED, "replaced"),
        ([("turn_aborted", {"reason": "budget_limited"})], LoopStatus.LIMIT, "budget_limited"),
        ([("turn_aborted", {})], LoopStatus.ABORTED, "turn_aborted"),
        ([("turn_aborted", {"reason": "something new"})], LoopStatus.UNKNOWN, ""),
        ([("error", {"message": "stream closed"}), ("task_complete", {})], LoopStatus.FAILED, "stream closed"),
        (
            [("error", {"message": "limit", "codex_error_info": "usage_limit_exceeded"}), ("task_complete", {})],
            LoopStatus.LIMIT,
            "usage_limit_exceeded",
        ),
        (
            [("task_complete", {"error": {"message": "x", "codex_error_info": {"http_connection_failed": {}}}})],
            LoopStatus.FAILED,
            "http_connection_failed",
        ),
    ],
)
def test_the_end_of_the_last_turn_is_that_of_a_session_without_a_goal(
    open_codex: Open, events: list[tuple[str, dict[str, Any]]], status: LoopStatus, reason: str
) -> None:
    case = open_codex("exec")
    append(case, event(ACTIVE, "task_started", turn_id="t-2"))
    append(case, *(event(ACTIVE, kind, **payload) for kind, payload in events))
    loop = case.loop()
    assert (loop.status, loop.end_reason, loop.state_source) == (status, reason, StateSource.REPORTED)


@pytest.mark.parametrize(
    ("quiet", "status", "liveness", "source"),
    [
        (timedelta(minutes=1), LoopStatus.RUNNING, Liveness.FRESH, StateSource.REPORTED),
        (timedelta(minutes=11), LoopStatus.RUNNING, Liveness.STALE, StateSource.REPORTED),
        (timedelta(days=2), LoopStatus.UNKNOWN, Liveness.UNKNOWN, StateSource.INFERRED),
    ],
)
def test_a_turn_without_an_end_runs_until_nothing_is_known_about_it(
    open_codex: Open, quiet: timedelta, status: LoopStatus, liveness: Liveness, source: StateSource
) -> None:
    case = open_codex("exec")
    append(case, event(ACTIVE, "task_started", turn_id="t-2"))
    case.now = ACTIVE + quiet
    loop = case.loop()
    assert (loop.status, loop.liveness, loop.state_source, loop.ended_at) == (status, liveness, source, None)


def test_a_person_may_go_on_shortly_after_the_end_of_a_turn(open_codex: Open) -> None:
    case = open_codex("items")
    case.now = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
    assert (case.loop().status, case.loop().state_source) == (LoopStatus.PAUSED, StateSource.INFERRED)
    case.now = NOW
    assert (case.loop().status, case.loop().state_source) == (LoopStatus.COMPLETED, StateSource.REPORTED)


def test_the_context_of_old_versions_is_not_the_task(open_codex: Open) -> None:
    case = open_codex("exec")
    lines = rollout(case).read_text().splitlines(keepends=True)
    lines.insert(3, event(ACTIVE, "user_message", message="<environment_context>\n<cwd>/home/ana</cwd>"))
    rollout(case).write_text("".join(lines))
    assert case.loop().task == "Make the tests of the cart pass."


def test_versions_that_write_no_ends_have_an_inferred_state(open_codex: Open) -> None:
    case = open_codex("exec")
    lines = rollout(case).read_text().splitlines(keepends=True)
    rollout(case).write_text("".join(line for line in lines if "task_" not in line))
    case.now = ACTIVE
    assert (case.loop().status, case.loop().state_source) == (LoopStatus.RUNNING, StateSource.INFERRED)
    case.now = NOW
    assert (case.loop().status, case.loop().state_source) == (LoopStatus.UNKNOWN, StateSource.INFERRED)


def test_a_time_in_the_future_is_replaced_by_that_of_the_file(open_codex: Open) -> None:
    case = open_codex("exec")
    rollout(case).write_text(rollout(case).read_text().replace("2026-11-20T10", "2031-11-20T10"))
    activity = case.loop().last_activity
    assert activity is not None and activity.year != 2031


# Limits and damage


def test_the_state_of_a_long_session_is_small(open_codex: Open) -> None:
    state, fold = Rollout(), RolloutFold()
    fold.add(state, json.dumps({"type": "session_meta", "payload": {"id": ID, "cwd": "/p"}}).encode())
    for number in range(3 * MAX_TURNS):
        fold.add(state, event(NOW, "task_started", turn_id=str(number)).encode())
        for call in range(3 * MAX_FAILURES):
            id = f"{number}-{call}"
            given = {"type": "function_call", "name": "shell", "call_id": id, "arguments": '{"command": "make"}'}
            output = {"type": "function_call_output", "call_id": id, "output": f"Exit code: 2\nOutput:\n{'x' * 9000}"}
            for payload in (given, output):
                fold.add(state, json.dumps({"type": "response_item", "payload": payload}).encode())
        fold.add(state, event(NOW, "task_complete", turn_id=str(number)).encode())
    assert (state.turn_count, len(state.turns), len(state.turns[-1].failures)) == (150, MAX_TURNS, MAX_FAILURES)
    assert state.failures == 150 * 30


# Live


def test_a_damaged_goals_database_does_not_hide_the_session(open_codex: Open) -> None:
    case = open_codex("goal-active")
    database = case.home / ".codex" / "goals_1.sqlite"
    check_replacements(case, database)
    check_damages(case, database, found=[LOOP_ID])


def test_a_session_is_followed_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(CodexAdapter(), tmp_path, datetime.now(UTC))
    seen: list[tuple[LoopStatus, int | None, bool | None]] = []

    def look(pause: float) -> None:
        case.now = datetime.now(UTC)
        for loop in case.loops().values():
            state = loop.status, loop.iteration, loop.progress.test_passed
            if not seen or seen[-1] != state:
                seen.append(state)

    monkeypatch.setattr("tests.e2e.play_codex.time.sleep", look)
    play(case.project, case.home, 1)
    look(0)
    assert seen == [
        (LoopStatus.UNKNOWN, None, None),
        (LoopStatus.RUNNING, None, None),
        (LoopStatus.RUNNING, 1, None),
        (LoopStatus.RUNNING, 1, False),
        (LoopStatus.RUNNING, 2, False),
        (LoopStatus.RUNNING, 2, True),
        (LoopStatus.COMPLETED, 2, True),
    ]
    assert not case.files.findings
    loop = case.loop()
    assert loop.usage == Usage(input=13000, output=1400, cache_read=39000, reasoning=0)
    first, second = case.details(loop).iterations
    assert (first.outcome, second.outcome) == (Outcome.FAILURE, Outcome.SUCCESS)
