"""Sessions of Claude Code as loops, and the fold of their transcripts."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.files.file_reader import Stamp
from core.records.loops import Liveness, Loop, LoopStatus
from core.sources.adapters.claude import ClaudeAdapter, Signs, build_loop
from core.sources.adapters.claude_session import Session, find_message, iteration_of
from core.sources.adapters.claude_transcript import SessionFold
from core.sources.adapters.runner_files import Folded
from tests.core.sources.adapters.fixtures import ANY_JSON, NOW, Case, open_case
from tests.e2e.play_claude import FAILURE, SESSION, Records, goal_session, lines, play, slug

STARTED = datetime(2026, 11, 20, 9, tzinfo=UTC)
FIRST = "5b1d0c7e-0000-4000-8000-000000000001"
PID = 4242
BOTH = "Which clock? Why?"


def opened(name: str, tmp_path: Path, now: datetime = NOW, pids: tuple[int, ...] = ()) -> Case:
    """Open a case; the processes with these pids run."""
    case = open_case(ClaudeAdapter(), f"claude/{name}", tmp_path / "case", now=now)
    case.processes.starts.update(dict.fromkeys(pids, STARTED))
    return case


def session_of(case: Case, number: int = 1) -> Path:
    folder = case.home / ".claude" / "projects" / slug(case.project)
    return folder / f"5b1d0c7e-0000-4000-8000-{number:012d}.jsonl"


class Clock:
    """Nine seconds later each time."""

    def __init__(self, at: datetime = STARTED) -> None:
        self.at = at

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=9)
        return self.at


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A project without sessions; the clock is five minutes after the start of the sessions that tests write."""
    (tmp_path / "case").mkdir()
    return Case(ClaudeAdapter(), tmp_path / "case", STARTED + timedelta(minutes=5))


def write(case: Case, records: list[dict[str, Any]], number: int = 1) -> Path:
    path = session_of(case, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(records))
    os.utime(path, (case.now.timestamp(), case.now.timestamp()))
    return path


def register(case: Case, *, number: int = 1, pid: int = PID, **fields: Any) -> Path:
    """Write an entry of the registry, whose process runs."""
    path = case.home / ".claude" / "sessions" / f"{pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = {"pid": pid, "sessionId": session_of(case, number).stem, "cwd": str(case.project)}
    path.write_text(json.dumps({**entry, "procStart": "2026-11-20T09:00:00Z", **fields}))
    case.processes.starts[pid] = STARTED
    return path


def records_of(case: Case, at: datetime = STARTED, number: int = 1, **fields: Any) -> Records:
    return Records(fields.pop("cwd", case.project), session_of(case, number).stem, now=Clock(at), **fields)


def folded(case: Case) -> Session:
    """Return what the transcript of the first session shows."""
    found = case.files.fold(session_of(case), SessionFold())
    assert found is not None
    session: Session = found.state
    return session


def state(loop: Loop) -> tuple[str, str, str]:
    return loop.status.value, loop.state_source.value, loop.end_reason


# Cases


def test_a_headless_loop_keeps_its_id_as_it_grows(tmp_path: Path) -> None:
    case = opened("headless-x4", tmp_path)
    session_of(case, 3).unlink()
    session_of(case, 4).unlink()
    assert sorted(case.loops()) == [f"claude:{FIRST}", f"claude:{FIRST[:-1]}2"]
    make = records_of(case, STARTED + timedelta(minutes=30), 3, entrypoint="sdk-cli")
    write(case, [make.prompt("Read PROMPT.md and do the next story.")], 3)
    assert list(case.loops()) == [f"claude:{FIRST}"]


def test_a_headless_loop_between_two_sessions_is_running(tmp_path: Path) -> None:
    case = opened("headless-x4", tmp_path, now=STARTED + timedelta(minutes=31))
    assert state(case.loop()) == ("running", "inferred", "")
    case.now += timedelta(minutes=30)
    assert case.loop().status is LoopStatus.UNKNOWN


def test_headless_sessions_at_the_same_time_are_not_a_loop(case: Case) -> None:
    for number in (1, 2, 3):
        make = records_of(case, STARTED, number, entrypoint="sdk-cli")
        write(case, [make.prompt("Do a story."), make.answer("Done."), make.answer("Done.")], number)
    assert len(case.loops()) == 3


def test_a_session_whose_subagent_works_has_not_crashed(case: Case) -> None:
    make, child = records_of(case), records_of(case, STARTED + timedelta(minutes=28), isSidechain=True)
    path = write(case, [make.prompt("Go."), make.goal(met=False, sentinel=True), make.tool("Task", prompt="Look.")])
    case.now = STARTED + timedelta(minutes=29)
    assert case.loop().status is LoopStatus.CRASHED
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_bytes(lines([child.prompt("Look."), child.tool("Grep", pattern="clock")]))
    assert case.loops()[f"claude:{FIRST}"].status is LoopStatus.RUNNING
    case.now += timedelta(hours=1)
    assert case.loops()[f"claude:{FIRST}"].status is LoopStatus.CRASHED


@pytest.mark.parametrize(
    ("tool", "parameters", "live", "expected"),
    [
        ("AskUserQuestion", {"questions": [{"question": "Which\nclock?"}, {"question": "Why?"}]}, None, BOTH),
        ("AskUserQuestion", {"questions": "x"}, None, "AskUserQuestion"),
        ("ExitPlanMode", {"plan": "Round once.\nThen test."}, None, "Round once."),
        ("Bash", {"command": "git push"}, "idle", "Bash git push"),
        ("AskUserQuestion", {"questions": [{"question": "x" * 900}]}, None, "x" * 200),
    ],
)
def test_a_waiting_session_has_its_question_or_the_call_to_permit(
    tool: str, parameters: dict[str, Any], live: str | None, expected: str, case: Case
) -> None:
    make = records_of(case)
    write(case, [make.prompt("Go."), make.tool(tool, **parameters)])
    if live:
        register(case, status=live)
    loop = case.loop()
    assert (loop.status, loop.question) == (LoopStatus.WAITING, expected)


def test_the_keys_of_jobs_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = opened("job-blocked", tmp_path)
    opened_files: list[str] = []
    real = os.open

    def watched(path: Any, *rest: Any, **more: Any) -> int:
        opened_files.append(str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", watched)
    case.use()
    assert opened_files
    assert not [path for path in opened_files if path.endswith(".key")]


def test_records_before_another_session_id_are_history(case: Case) -> None:
    old, new = records_of(case, number=7), records_of(case, STARTED + timedelta(minutes=1))
    write(case, [*goal_session(old), new.prompt("Go on."), new.answer("I go on.")])
    loop = case.loop()
    assert (loop.parent, loop.usage.total, loop.criteria) == (f"claude:{session_of(case, 7).stem}", 2510, ())


def test_only_sessions_in_the_project_and_its_working_trees_are_read(tmp_path: Path) -> None:
    case = opened("folders", tmp_path)
    assert [loop.task for loop in case.loops().values()] == ["In a folder below", "In a working tree"]
    case.set_folders(worktrees=())
    assert [loop.task for loop in case.loops().values()] == ["In a folder below"]


def test_a_transcript_of_another_project_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = opened("folders", tmp_path)
    folded: list[str] = []
    real = case.files.fold

    def watched(path: Path, fold: Any) -> Any:
        folded.append(path.parent.name)
        return real(path, fold)

    monkeypatch.setattr(case.files, "fold", watched)
    case.loops()
    assert f"{slug(case.project)}-packages-shop" in folded
    assert f"{slug(case.project)}-old" not in folded


@pytest.mark.parametrize("scheduled_for", ["2026-11-20T10:00:00.000Z", 1795168800000])
def test_a_session_that_wakes_up_later_is_running_until_then(scheduled_for: str | int, case: Case) -> None:
    make = records_of(case)
    call = make.tool("ScheduleWakeup", delaySeconds=3600)
    result = make.result(call, "ok", toolUseResult={"scheduledFor": scheduled_for})
    write(case, [make.prompt("<<autonomous-loop>>"), call, result, make.answer("I wait.")])
    register(case, status="idle")
    assert (case.loop().status, case.loop().raw_status) == (LoopStatus.RUNNING, "scheduled")
    case.now = STARTED + timedelta(hours=2)
    assert case.loop().status is LoopStatus.PAUSED


def test_a_process_that_left_its_registry_entry_was_killed(case: Case) -> None:
    make = records_of(case)
    write(case, [make.prompt("Make the tests pass."), make.answer("I start.", stop=None)])
    register(case, status="busy")
    case.now = STARTED + timedelta(minutes=1)
    assert case.loop().status is LoopStatus.RUNNING
    case.processes.starts.clear()
    loop = case.loop()
    assert (loop.status, loop.liveness) == (LoopStatus.CRASHED, Liveness.DEAD)
    assert case.anew().loop().status is LoopStatus.CRASHED


# States


@pytest.mark.parametrize(
    ("last", "minutes", "live", "expected"),
    [
        ("armed", 1, None, ("running", "inferred", "")),
        ("armed", 5, None, ("unknown", "inferred", "")),
        ("armed", 11, None, ("crashed", "inferred", "")),
        ("armed", 600, "busy", ("running", "reported", "")),
        ("met", 1, None, ("completed", "reported", "met")),
        ("met", 600, "idle", ("completed", "reported", "met")),
        ("failed", 600, None, ("failed", "reported", "failed")),
        ("cleared by the person", 1, "idle", ("aborted", "reported", "cleared")),
        ("cleared by a record", 1, None, ("aborted", "reported", "cleared")),
        ("set by a queue operation", 11, None, ("crashed", "inferred", "")),
        ("set by a queued command", 11, None, ("crashed", "inferred", "")),
        ("set by a meta record", 11, None, ("crashed", "inferred", "")),
        ("armed again", 600, "busy", ("running", "reported", "")),
        ("new work after the goal", 1, "busy", ("running", "reported", "")),
        ("revoked login", 1, "idle", ("failed", "inferred", "authentication_failed")),
        ("context overflow", 1, None, ("failed", "inferred", "context_overflow")),
        ("overloaded", 600, None, ("failed", "inferred", "overloaded")),
        ("overloaded", 1, None, ("unknown", "inferred", "")),
        ("rate limit", 1, None, ("waiting", "reported", "")),
        ("rate limit", 600, "idle", ("waiting", "reported", "")),
        ("rate limit", 600, None, ("limit", "inferred", "rate_limit")),
        ("interrupted", 1, "idle", ("aborted", "reported", "interrupted")),
        ("error_max_turns", 1, None, ("limit", "reported", "error_max_turns")),
        ("error_max_budget_usd", 1, None, ("limit", "reported", "error_max_budget_usd")),
        ("error_during_execution", 1, None, ("failed", "reported", "error_during_execution")),
        ("success", 1, None, ("completed", "reported", "success")),
        ("question", 600, "idle", ("waiting", "reported", "")),
        ("question", 600, None, ("waiting", "reported", "")),
        ("open call", 1, "idle", ("waiting", "inferred", "")),
        ("open call", 1, "waiting", ("waiting", "reported", "")),
        ("open call", 30, "busy", ("running", "reported", "")),
        ("open call", 1, None, ("running", "inferred", "")),
        ("open call", 11, None, ("unknown", "inferred", "")),
        ("cut answer", 11, None, ("unknown", "inferred", "max_tokens")),
        ("end of the turn", 1, "idle", ("paused", "reported", "")),
        ("end of the turn", 1, None, ("unknown", "inferred", "")),
        ("end of the turn", 11, None, ("completed", "inferred", "end_turn")),
        ("end of a headless turn", 1, None, ("completed", "reported", "end_turn")),
    ],
)
def test_the_state_follows_from_the_last_record_and_the_process(
    last: str, minutes: int, live: str | None, expected: tuple[str, str, str], case: Case
) -> None:
    make = records_of(case)
    started = [make.prompt("Make the tests pass.")]
    armed = [*started, make.goal(met=False, sentinel=True), make.answer("I start.", stop=None)]
    condition = "Goal set: npm test exits 0"
    met = [*armed, make.goal(met=True, reason="all pass")]
    result = {"type": "result", "subtype": last, "sessionId": make.session}
    records = {
        "armed": armed,
        "met": met,
        "failed": [*armed, make.goal(met=False, failed=True, reason="no such test")],
        "cleared by the person": [*armed, make.command("goal", "clear")],
        "cleared by a record": [*armed, make.goal(met=True, sentinel=True)],
        "set by a queue operation": [
            *started,
            {"type": "queue-operation", "operation": "enqueue", "content": condition},
        ],
        "set by a queued command": [
            *started,
            make.record("attachment", attachment={"type": "queued_command", "prompt": condition}),
        ],
        "set by a meta record": [*started, make.meta(condition)],
        "armed again": [*met, make.goal(met=False, sentinel=True)],
        "new work after the goal": [*met, make.prompt("Now the docs."), make.tool("Read", file_path="docs.md")],
        "revoked login": [*armed, make.api_error("authentication_failed", "Please run /login")],
        "context overflow": [*armed, make.api_error("invalid_request", "Prompt is too long")],
        "overloaded": [*started, make.api_error("overloaded", "API Error: 529")],
        "rate limit": [*armed, make.api_error("rate_limit", "You've hit your session limit")],
        "interrupted": [*armed, make.prompt("[Request interrupted by user for tool use]")],
        "question": [*started, make.tool("AskUserQuestion", questions=[])],
        "open call": [*started, make.tool("Bash", command="npm publish")],
        "cut answer": [*started, make.answer("I start", stop="max_tokens")],
        "end of a headless turn": [make.prompt("Test.", entrypoint="sdk-cli"), make.answer("Done.")],
        "end of the turn": [*started, make.answer("Done."), make.system("turn_duration", durationMs=9)],
    }.get(last) or [*armed, result]
    write(case, records)
    if live:
        register(case, status=live)
    case.now = max(datetime.fromisoformat(one["timestamp"]) for one in records if "timestamp" in one)
    case.now += timedelta(minutes=minutes)
    loop = case.loop()
    assert state(loop) == expected
    assert (loop.ended_at is not None) == (loop.status.ended or loop.liveness is Liveness.ENDED)


def test_a_later_process_with_the_same_pid_is_another_one(case: Case) -> None:
    make = records_of(case)
    write(case, [make.prompt("Make the tests pass."), make.goal(met=False, sentinel=True)])
    entry = register(case, status="busy")
    case.now += timedelta(hours=1)
    assert case.loop().liveness is Liveness.ALIVE
    case.processes.starts[PID] = STARTED + timedelta(minutes=30)
    assert case.loop().status is LoopStatus.CRASHED
    entry.write_text(json.dumps({"pid": PID, "sessionId": FIRST, "procStart": "123456", "startedAt": 1795165201500}))
    assert case.loop().status is LoopStatus.CRASHED
    case.processes.starts[PID] = STARTED
    assert case.loop().status is LoopStatus.RUNNING


def test_a_question_of_a_session_that_was_closed_waits_no_more(case: Case) -> None:
    make = records_of(case)
    write(case, [make.prompt("Which one?"), make.tool("AskUserQuestion", questions=[])])
    register(case, number=2, status="idle")
    case.now += timedelta(hours=1)
    assert case.loop().status is LoopStatus.UNKNOWN


def test_a_prompt_starts_the_count_of_blocks_anew(case: Case) -> None:
    make = records_of(case)
    blocks = [record for n in range(3) for record in (make.answer(f"Try {n}"), make.meta("Stop hook feedback:\n- no"))]
    write(case, [make.prompt("Go."), *blocks, make.command("cancel-ralph"), make.prompt("Go on."), *blocks[:0]])
    session = folded(case)
    assert (session.blocks, session.commands) == (0, ["/cancel-ralph"])


def test_a_failed_run_whose_status_a_pipe_hides_is_a_failure(case: Case) -> None:
    make = records_of(case)
    first, second = make.tool("Bash", command="npm test | tail -5"), make.tool("Bash", command="npm test | tail -5")
    write(case, [make.prompt("Test."), first, make.result(first, FAILURE), make.answer("They fail.")])
    assert case.loop().progress.test_passed is False
    write(case, [make.prompt("Test."), second, make.result(second, "no counts"), make.answer("They pass.")])
    assert case.loop().progress.test_passed is None


def test_a_call_that_a_person_refused_is_not_an_error(case: Case) -> None:
    make = records_of(case)
    call = make.tool("Bash", command="npm publish")
    text = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    write(case, [make.prompt("Publish."), call, make.result(call, text, failed=True)])
    assert case.details().iterations[0].failures == ()


def test_no_file_was_changed_if_no_tool_could(case: Case) -> None:
    make = records_of(case, entrypoint="sdk-cli")
    read, edit = make.tool("Read", file_path="a.ts"), make.tool("Edit", file_path=f"{case.project}/a.ts")
    write(case, [make.prompt("Look."), read, make.result(read, "text"), make.answer("Done.")])
    assert case.loop().progress.files_changed == 0
    shell = make.tool("Bash", command="sed -i s/a/b/ a.ts")
    write(case, [make.prompt("Look."), shell, make.result(shell, ""), make.answer("Done.")])
    assert case.loop().progress.files_changed is None
    write(case, [make.prompt("Change."), edit, make.result(edit, "ok"), make.answer("Done.")])
    assert case.loop().progress.files_changed == 1
    assert case.details().iterations[0].files == ("a.ts",)


def test_a_person_who_asks_a_question_wants_no_change(case: Case) -> None:
    make = records_of(case)
    write(case, [make.prompt("What does it do?"), make.answer("It counts.")])
    assert case.loop().progress.files_changed is None


# Growth and damage


def test_a_session_grows_line_by_line(case: Case) -> None:
    records = goal_session(records_of(case))
    path = write(case, [])
    seen = []
    for record in records:
        line = lines([record])
        for part in (line[:40], line[40:]):
            with path.open("ab") as file:
                file.write(part)
            case.files.start_look()
            seen += [loop.status for loop in case.adapter.loops(case.files, case.moment)]
    assert seen[-1] is LoopStatus.COMPLETED
    assert case.loop().iteration == 2


def test_a_session_that_vanishes_is_not_listed(tmp_path: Path) -> None:
    case = opened("goal-met", tmp_path)
    loop = case.loop()
    session_of(case).unlink()
    assert case.loops() == {}
    assert case.details(loop).loop_id == loop.id


def test_times_in_the_future_do_not_keep_a_session_alive(tmp_path: Path) -> None:
    case = opened("goal-armed", tmp_path)
    case.now = STARTED - timedelta(days=1)
    loop = case.loop()
    assert loop.last_activity is not None
    assert loop.last_activity <= case.now


def test_the_played_session_is_read(case: Case) -> None:
    play(case.project, case.home, pause=0)
    case.now = datetime.now(UTC)
    loop = case.loop()
    assert (loop.id, loop.status, loop.progress.goal_met) == (f"claude:{SESSION}", LoopStatus.COMPLETED, True)


DAMAGE = (msgspec.MsgspecError, RecursionError, ValueError, TypeError, KeyError, AttributeError, OverflowError)


VALUES = (
    ANY_JSON
    | st.integers(min_value=10**300, max_value=10**310)
    | st.sampled_from(["", "user", "tool_result", "tool_use", "goal_status", "Goal set: x", "2026-11-20T09:00:00Z"])
)


def make() -> Records:
    return Records("/home/ana/shop", now=Clock())


def rich_session() -> list[dict[str, Any]]:
    """Return a session with records of each type that is read."""
    records = make()
    cron = records.tool("CronCreate", cron="* * * * *", prompt="Look.")
    return [
        *goal_session(records),
        cron,
        records.result(cron, "ok", toolUseResult={"id": "c1", "humanSchedule": "every minute"}),
        records.system("stop_hook_summary", preventedContinuation=True, hookErrors=["no"]),
        records.meta("Stop hook feedback:\n- no"),
        records.system("api_error", error={"status": 429}),
        records.command("goal", "clear"),
        records.api_error("rate_limit", "You've hit your session limit"),
        {"type": "queue-operation", "content": "Goal set: x"},
        {"type": "ai-title", "aiTitle": "Cart"},
        {"type": "cost-state", "totalCostUSD": 1.5},
        {"type": "result", "subtype": "error_max_turns", "is_error": True},
        records.prompt("Once more.", forkedFrom={"sessionId": "other"}),
    ]


def fold(records: list[dict[str, Any]]) -> Session:
    reader, state = SessionFold(), Session()
    for record in records:
        try:
            reader.add(state, json.dumps(record).encode())
        except DAMAGE:
            continue
    return state


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a record."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for name, one in inner for found in [(*path, name), *places(one, (*path, name))]]


PLACES = [(number, path) for number, record in enumerate(rich_session()) for path in places(record)]


@given(changes=st.lists(st.tuples(st.integers(0, 10_000), VALUES), min_size=1, max_size=12))
def test_wrong_types_give_a_state_that_can_be_kept_and_shown(changes: list[tuple[int, Any]]) -> None:
    records = rich_session()
    for place, value in changes:
        number, path = PLACES[place % len(PLACES)]
        target: Any = records[number]
        try:
            for name in path[:-1]:
                target = target[name]
            target[path[-1]] = value
        except (KeyError, IndexError, TypeError):  # an earlier change replaced what is around it
            continue
    state = fold(records)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=Session)
    stamp = Stamp(1, 1, 0, 0)
    folded = Folded(stamp, offset=1, state=kept)
    loop = build_loop(Path("/x/s.jsonl"), "s.jsonl", folded, Signs(NOW))
    assert len(loop.task) <= 4_000
    assert all(iteration_of(turn) is not None for turn in kept.turns)


def test_a_state_stays_small_however_long_the_session_is() -> None:
    records = make()
    reader, state = SessionFold(), Session()
    for _ in range(300):
        for record in goal_session(records):
            reader.add(state, json.dumps(record).encode())
    assert len(msgspec.msgpack.encode(state)) < 100_000
    assert state.turn_count == 600


def test_the_kept_state_goes_on_where_it_was() -> None:
    records = rich_session()
    whole = fold(records)
    reader, state = SessionFold(), Session()
    for record in records:
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=Session)
        reader.add(state, json.dumps(record).encode())
    assert state == whole


@pytest.mark.parametrize("start", [b'{"type":"progress"', b'{"type":"file-history-snapshot"'])
def test_records_without_use_are_not_decoded(start: bytes) -> None:
    SessionFold().add(Session(), start + b" this is not JSON")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("Exit code 1\nTypeError: x is null", "TypeError: x is null"),
        ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
        ("Exit code 127", "Exit code 127"),
        ("Error: Exit code 2\n/home/ana/shop/a.ts: error: no such name", "a.ts: error: no such name"),
        ("", ""),
    ],
)
def test_a_message_has_neither_codes_nor_the_path_of_the_project(output: str, message: str) -> None:
    assert find_message(output, "/home/ana/shop") == message


def test_an_error_that_a_later_turn_fixes_is_fixed_there() -> None:
    records = make()
    fail = records.tool("Bash", command="npm test")
    state = fold(
        [
            records.prompt("Test."),
            fail,
            records.result(fail, "TypeError: x is null", failed=True),
            records.system("turn_duration", durationMs=5),
            records.prompt("Fix it."),
            edit := records.tool("Write", file_path="/home/ana/shop/a.ts", content="x = 1"),
            records.result(edit, "written"),
            again := records.tool("Bash", command="npm  test"),
            records.result(again, "ok"),
            records.system("turn_duration", durationMs=5),
        ]
    )
    first, second = map(iteration_of, state.turns)
    assert first.fix is None
    assert second.fix is not None
    assert (second.fix.description, second.fix.files) == ("", ("a.ts",))
    assert second.fix.diff.endswith("+x = 1")


def test_a_test_that_passes_after_an_edit_was_fixed_although_another_one_still_fails() -> None:
    records = make()
    comma, count = "ValueError: could not convert string to float: '1,5'", "KeyError: 'count'"
    done: list[Any] = [records.prompt("Test.")]
    for errors in ({"test_price": comma, "test_total": count}, {"test_total": count}):
        body = "".join(f"E       {error}\n" for error in errors.values())
        named = "".join(f"FAILED test_cart.py::{test} - {error[:30]}...\n" for test, error in errors.items())
        run = records.tool("Bash", command="pytest")
        done += [run, records.result(run, f"Exit code 1\n{body}{named}{len(errors)} failed, 1 passed", failed=True)]
        if len(errors) == 2:
            edit = records.tool("Edit", file_path="/home/ana/shop/cart.py", old_string="x", new_string="parse(x)")
            done += [records.answer("The price has a comma.", stop=None), edit, records.result(edit, "written")]
    again = records.tool("Bash", command="pytest")
    price_only = f"Exit code 1\nE       {comma}\nFAILED test_cart.py::test_price - {comma}\n1 failed, 2 passed"
    for more, expected in (([], comma), ([again, records.result(again, price_only, failed=True)], None)):
        (turn,) = fold([*done, *more, records.system("turn_duration", durationMs=5)]).turns
        fix = iteration_of(turn).fix
        assert (fix.error if fix is not None else None) == expected
        assert fix is None or (fix.description, fix.files) == ("The price has a comma.", ("cart.py",))


def test_a_number_that_is_too_large_is_limited() -> None:
    records = make()
    answer = records.answer("x", tokens=10**30)
    state = fold([records.prompt("x"), answer])
    assert state.totals is not None
    assert state.totals[1] == 1 << 53
