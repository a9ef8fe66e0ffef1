"""Reading tasks and attempts, and action logs, whose lines are decoded on demand."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import core.sources.episodes as module
from core.base.paths import ProjectPaths
from core.files.file_reader import decode_json
from core.records.episodes import Action, Attempt, Task, TaskStatus
from core.records.findings import Finding
from core.records.loops import Outcome
from core.sources.episodes import (
    Actions,
    count_actions,
    join_attempts,
    join_tasks,
    parse_attempts,
    parse_tasks,
    read_action,
    select_attempt_folders,
    skipped_attempt_folders,
)
from core.sources.normalize import Fields

FILE = ".aiwg/ralph/tasks/task-001/trajectory.json"


def read(value: Any) -> tuple[dict[str, Attempt], tuple[Finding, ...]]:
    attempts, findings = parse_attempts(FILE, json.loads(json.dumps(value)))
    return join_attempts(attempts), findings


def test_the_documented_example_is_read() -> None:
    entry = {
        "attempt_id": 2,
        "started": "2026-02-01T010:00:00Z",
        "ended": "2026-02-01T10:30:00Z",
        "outcome": "failure",
        "plan": "types first",
        "iterations": 3,
    }
    attempts, findings = read({"task_id": "task-001", "attempts": [entry]})
    assert findings == ()
    assert attempts == {
        "task-001.2": Attempt(
            task_id="task-001",
            number=2,
            started_at=datetime(2026, 2, 1, 10, tzinfo=UTC),
            ended_at=datetime(2026, 2, 1, 10, 30, tzinfo=UTC),
            outcome=Outcome.FAILURE,
            plan="types first",
            iterations=3,
            file=FILE,
        )
    }


def test_a_long_quality_history_keeps_its_end() -> None:
    history = [{"iteration": number, "quality": number / 2_000} for number in range(1, 1_501)]
    execution = {"execution": {"quality_history": history}}
    (attempt,) = parse_attempts(".aiwg/ralph/tasks/task-001/attempts/001/attempt.json", execution)[0]
    assert [attempt.quality[at].iteration for at in (0, -1)] == [501, 1_500]


FOLDER = ".aiwg/ralph/tasks/task-001"


def join_files(*files: tuple[str, Any]) -> Attempt:
    """Join an attempt from these files."""
    parsed = [attempt for file, value in files for attempt in parse_attempts(f"{FOLDER}/{file}", value)[0]]
    (attempt,) = join_attempts(parsed).values()
    return attempt


def test_precedence_is_outcome_then_trajectory_then_attempt() -> None:
    attempt = join_files(
        ("attempts/002/attempt.json", {"id": 7, "outcome": {"status": "timeout", "reason": "slow"}, "plan": "a"}),
        ("attempts/002/outcome.json", {"status": "success", "final_quality": 92}),
        ("trajectory.json", {"attempts": [{"attempt_id": 2, "outcome": "failure", "final_quality": 0.5, "plan": "b"}]}),
    )
    assert (attempt.outcome, attempt.final_quality, attempt.reason) == (Outcome.SUCCESS, 0.92, "slow")
    assert (attempt.id, attempt.plan, attempt.is_open) == ("task-001.2", "b", False)


def test_an_attempt_without_an_end_is_open() -> None:
    attempt = join_files(("attempts/001/attempt.json", {"started": "2026-02-01T09:00:00Z", "outcome": None}))
    assert attempt.is_open


@pytest.mark.parametrize("beside", [True, False])
def test_successful_approaches_are_read_beside_and_inside_the_outcome(beside: bool) -> None:
    lists = {"what_worked": ["types first"], "what_didnt_work": ["big bang"], "suggestions_for_next_time": ["x"]}
    value = {"outcome": {"status": "failure"}} | lists if beside else {"outcome": {"status": "failure"} | lists}
    attempt = join_files(("attempts/001/attempt.json", value))
    assert (attempt.worked, attempt.failed, attempt.suggestions) == (("types first",), ("big bang",), ("x",))


def test_the_action_log_has_the_exact_counts() -> None:
    log = b'{"timestamp":"2026-02-01T09:00:00Z","success":true}\n{"error":"exit 1"}\n{"success":fa'
    counts, findings = count_actions(f"{FOLDER}/attempts/002/actions.jsonl", log)
    assert findings == ()
    trajectory = parse_attempts(FILE, {"attempts": [{"attempt_id": 2, "actions": 9, "errors": 4}]})[0]
    attempt = join_attempts([*trajectory, *counts])["task-001.2"]
    assert (attempt.actions, attempt.errors, attempt.last_action_at) == (2, 1, datetime(2026, 2, 1, 9, tzinfo=UTC))


def test_one_folder_counts_for_each_number() -> None:
    names = ["1", "001", "0001", "2", "0003", "00003", "1000000", "999999", "0", "x", "-1", "\u0661"]
    assert select_attempt_folders(names) == {0: "0", 1: "001", 2: "2", 3: "0003", 999_999: "999999"}
    assert skipped_attempt_folders(names, select_attempt_folders(names)) == ["00003", "0001", "1", "1000000"]


def test_a_skipped_folder_is_not_merged() -> None:
    def parsed(folder: str, reason: str) -> tuple[Attempt, ...]:
        return parse_attempts(f".aiwg/ralph/tasks/t/attempts/{folder}/outcome.json", {"reason": reason})[0]

    ours, theirs = parsed("001", "ours"), parsed("1", "theirs")
    assert join_attempts([*theirs, *ours, *theirs])["t.1"].reason == "ours"
    assert join_attempts(theirs)["t.1"].reason == "theirs"


def test_an_invalid_field_does_not_affect_others() -> None:
    attempts, findings = read({"attempts": [{"attempt_id": 1}, {"attempt_id": -1}, {}, "x", {"attempt_id": 2}]})
    assert sorted(attempts) == ["task-001.1", "task-001.2", "task-001.3", "task-001.4"]
    assert [finding.pointer for finding in findings] == ["/attempts/1", "/attempts/2", "/attempts/3"]
    assert read([1])[1] and read({"attempts": 7})[1]
    named = {"task_id": "../../etc", "attempts": [{"attempt_id": 1}]}
    assert list(read(named)[0]) == ["task-001.1"], "the folder names the task"
    for name, value in (
        ("attempts/999999999/outcome.json", {}),
        ("trajectory.json", {"attempts": [{"attempt_id": 1_000_000}]}),
    ):
        none, wrong = parse_attempts(f".aiwg/ralph/tasks/t/{name}", value)
        assert (none, [one.code for one in wrong]) == ((), ["no-attempt"])


def test_metadata_win_over_other_files() -> None:
    files = {"trajectory.json": {}, "metadata.json": {"description": "d", "status": "in-progress"}}
    tasks = [task for name, value in files.items() for task in parse_tasks(f"{FOLDER}/{name}", value)[0]]
    for order in (tasks, tasks[::-1]):
        assert join_tasks(order) == {
            "task-001": Task(
                id="task-001",
                description="d",
                status=TaskStatus.RUNNING,
                raw_status="in-progress",
                file=f"{FOLDER}/metadata.json",
            )
        }


def test_quality_changes_are_read_or_computed() -> None:
    history = [{"quality": 0.4, "delta": 0}, {"quality": 0.55, "delta": 0.15}, {"quality": 0.5}]
    execution = {"execution": {"quality_history": history}}
    (attempt,) = parse_attempts(".aiwg/ralph/tasks/task-001/attempts/001/attempt.json", execution)[0]
    assert [one.delta for one in attempt.quality] == [None, 0.15, -0.05]
    assert [one.change for one in attempt.quality] == ["", "+15", "-5"]
    history[0]["delta"] = 0.1
    (attempt,) = parse_attempts(".aiwg/ralph/tasks/task-001/attempts/001/attempt.json", execution)[0]
    assert attempt.quality[0].delta == 0.1


LOG_FILE = ".aiwg/ralph/tasks/task-001/attempts/001/actions.jsonl"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Path of the action log."""
    path = tmp_path / LOG_FILE
    path.parent.mkdir(parents=True)
    return path


def opened(log: Path) -> Actions:
    return Actions(ProjectPaths(log.parents[6]), LOG_FILE)


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def decode_all(data: bytes) -> list[Action]:
    """Decode all lines of the log at once, as a reference."""
    begun = [text for text in data.split(b"\n")[:-1] if text.lstrip(b" \t\r\xef\xbb\xbf")[:1] == b"{"]
    found = []
    for number, text in enumerate(begun, 1):
        value = decode_json(text).value
        found.append(
            read_action(number, Fields(LOG_FILE, value, [])) if isinstance(value, dict) else Action(number=number)
        )
    return found


TEXTS = st.text(max_size=20)


LINES = st.one_of(
    st.dictionaries(
        st.sampled_from(["timestamp", "type", "params", "success", "output", "error", "reasoning"]),
        st.one_of(TEXTS, st.booleans(), st.none(), st.integers(), st.dictionaries(TEXTS, TEXTS, max_size=2)),
    ).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"", b"  ", b"[]", b"7", b"{torn", b'{"error": NaN}', b"\xff\xfe", b' {"type": "x"}\r']),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=12), torn=LINES, cut=st.slices(12), chunk=st.sampled_from([7, 1 << 20]))
def test_any_slice_is_what_a_full_parse_gives(
    log: Path, monkeypatch: pytest.MonkeyPatch, lines: list[bytes], torn: bytes, cut: slice, chunk: int
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    data = b"".join(text + b"\n" for text in lines)
    log.write_bytes(data + torn)
    actions, expected = opened(log), decode_all(data)
    assert list(actions[cut]) == expected[cut]
    assert list(actions) == expected
    assert list(actions.errors) == [place for place, action in enumerate(expected) if action.has_failed]


def test_the_documented_action_is_read(log: Path) -> None:
    log.write_bytes(
        line(
            timestamp="2026-02-01T010:02:00Z",
            iteration=1,
            type="bash",
            tool="Bash",
            params={"command": "npx tsc", "timeout": 5, "env": {"CI": True}},
            success=False,
            output="",
            error="exit 1",
            reasoning="because",
            expected_outcome="green",
        )
    )
    [action] = opened(log)
    assert action.params == (("command", "npx tsc"), ("timeout", "5"), ("env", '{"CI":true}'))
    assert (action.number, action.type, action.error, action.expected) == (1, "bash", "exit 1", "green")
    assert action.at is not None
    assert action.at.hour == 10
    assert action.has_failed


def test_a_log_that_grows_or_disappears_meanwhile(log: Path) -> None:
    log.write_bytes(line(type="read") + b'{"type": "ba')
    first = opened(log)
    with log.open("ab") as file:
        file.write(b'sh"}\n' + line(type="edit", success=False))
    assert [action.type for action in first] == ["read"]
    assert [action.type for action in opened(log)] == ["read", "bash", "edit"]
    log.unlink()
    assert [action.type for action in first] == [""]


def test_bad_lines_are_findings_at_their_line(log: Path) -> None:
    deep = b'{"params": ' + b"[" * 500 + b"]" * 500 + b"}\n"
    log.write_bytes(b"nonsense\n[]\n" + deep + b'{"type": "x", "output": NaN}\n{"torn\n')
    actions = opened(log)
    assert [finding.pointer for finding in actions.findings] == ["line 1"]
    assert "1 more lines" in actions.findings[0].message
    assert [(action.number, action.type) for action in actions] == [(1, ""), (2, "x"), (3, "")]
    assert [finding.pointer for finding in actions.findings] == ["line 1", "line 3", "line 4", "line 5"]


def test_a_line_of_ten_megabytes_is_skipped(log: Path) -> None:
    log.write_bytes(line(output="x" * 10_000_000) + line(type="bash"))
    actions = opened(log)
    assert [action.type for action in actions] == ["", "bash"]
    assert actions.findings[0].code == "too-large"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "nothing"])
def test_another_file_has_no_actions(log: Path, tmp_path_factory: pytest.TempPathFactory, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(log)
    elif kind == "link":
        outside = tmp_path_factory.mktemp("outside") / "secret"
        outside.write_bytes(line(type="secret"))
        log.symlink_to(outside)
    elif kind == "folder":
        log.mkdir()
    actions = opened(log)
    assert len(actions) == 0
    assert bool(actions.findings) is (kind != "nothing")


def test_long_texts_are_truncated(log: Path) -> None:
    log.write_bytes(line(output="x" * 1_000_000, params={f"p{n}": "y" for n in range(1000)}))
    [action] = opened(log)
    assert len(action.output) == module.MAX_ACTION_TEXT
    assert len(action.params) == module.MAX_PARAMS


def test_the_newest_actions_are_limited_in_number_and_size(log: Path) -> None:
    log.write_bytes(line(output="x") * 100)
    size = len(line(output="x"))
    assert opened(log).find_newest(30, 1 << 20) == 70
    assert opened(log).find_newest(30, 10 * size) == 90
    assert opened(log).find_newest(1000, 1 << 20) == 0
    log.write_bytes(b"")
    assert opened(log).find_newest(30, 100) == 0
