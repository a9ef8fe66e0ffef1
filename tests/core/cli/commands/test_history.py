"""`ralphdeck task show`, `ralphdeck task show --replay` and `ralphdeck search`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.tasks.attempts import MAX_PAUSE
from tests.core.cli.conftest import Call


def test_the_history_of_a_task(examples: Path, call: Call) -> None:
    result = call("task", "show", "task-001")
    assert result.code == 0
    assert "Task task-001\nAdd OAuth properties to AuthConfig\nStatus: completed\n" in result.out
    row = next(line for line in result.out.splitlines() if line.startswith("      2  "))
    assert " ".join(row.split()) == "2 failure 60 % — 30 m 4 3 2026-02-01 10:00 UTC types first because: failure"
    assert "task-001/trajectory.json has 8 actions for attempt 2; its log, which is used, has 4" in result.err
    template = "\n\n**Observation**: What happened during this attempt?\nTest suite failed"
    learned = call("task", "show", "task-001", "--reflections")
    assert f"\n## Reflection on Attempt 2{template}" in learned.out
    assert f"\nReflection on Attempt 2:{template}" in result.out
    failed = call("task", "show", "task-001", "--outcome", "failure,timeout", "--json").document
    assert [one["number"] for one in failed["attempts"]] == [one["attempt"] for one in failed["reflections"]] == [1, 2]
    shown = call("task", "show", "task-001", "--outcome", "timeout").out
    assert "Reflection on Attempt 1" in shown and "attempt 2" not in shown
    assert call("task", "show", "task-001", "--outcome", "partial").err.startswith("no attempt has this outcome")
    assert call("task", "show", "task-001.2", "--outcome", "failure").code == 2
    only = call("task", "show", "task-001.2", "--reflections", "--json").document
    assert [one["attempt"] for one in only["reflections"]] == [2]


def test_one_attempt(examples: Path, call: Call) -> None:
    result = call("task", "show", "task-001", "--attempt", "2")
    assert "Attempt 2   failure   quality 60 %" in result.out
    assert "     3  2026-02-01 10:02 UTC  bash  failed     src/auth.ts  exit 1" in result.out
    assert call("task", "show", "task-001.2", "--attempt", "3").code == 1
    assert "no attempt 7" in call("task", "show", "task-001", "--attempt", "7").err


def test_export_format_follows_the_file_suffix(examples: Path, tmp_path: Path, call: Call) -> None:
    show = ("task", "show", "task-001")
    for name in ("h.md", "h.json"):
        file = tmp_path / name
        file.write_text("old")
        assert call(*show, "--export", file).out == f"wrote {file}\n"
    assert (tmp_path / "h.md").read_text().startswith("# Task task-001\n\nAdd OAuth properties to AuthConfig\n\n")
    assert json.loads((tmp_path / "h.json").read_bytes()) == call(*show, "--json").document
    assert call(*show, "--export", tmp_path / "h.txt").code == 2
    assert call(*show, "--export", tmp_path / "no" / "h.md").code == 1


def test_unknown_tasks_and_projects_without_any(examples: Path, upstream: Path, call: Call) -> None:
    for words in (["task", "show"], ["task", "show", "--replay"]):
        result = call(*words, "nothing", "--project", examples)
        assert (result.code, result.out) == (1, "")
        assert "no task 'nothing'; there are task-001, task-002" in result.err
        assert "there are no tasks in" in call(*words, "task-001", "--project", upstream).err
    assert "has no attempts yet" in call("task", "show", "task-002", "--replay", "--project", examples).err
    assert (
        call("task", "show", "task-001.3", "--replay", "--from", "9", "--project", examples).err == "no action from 9\n"
    )
    (examples / ".aiwg/ralph/tasks/task-002/attempts/001").mkdir(parents=True)
    assert (
        call("task", "show", "task-002", "--replay", "--errors", "--project", examples).err
        == "no actions were logged\n"
    )
    assert "no tasks yet\nSearched: tasks " in call("search", "anything", "--project", upstream).err


def test_replay_prints_steps_without_pauses(examples: Path, call: Call) -> None:
    result = call("task", "show", "task-001", "--replay", "--attempt", "2")
    assert result.out.startswith("task-001.2  4 actions  types first\niteration 1\n    1 +0:00:00  read src/auth.ts")
    assert (
        "bash src/auth.ts  failed\n      why:      because\n      expected: green\n      real:     exit 1\n"
        in result.out
    )
    newest = call("task", "show", "task-001", "--replay", "--errors", "--json").document
    assert (newest["attempt"]["number"], [step["number"] for step in newest["steps"]]) == (3, [3])
    later = call("task", "show", "task-001.2", "--replay", "--from", "4")
    assert "    4 +0:03:00  grep" in later.out
    assert "bash" not in later.out


def test_on_a_terminal_it_plays(examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("core.cli.commands.history.is_terminal", lambda: True)
    monkeypatch.setattr("core.cli.commands.history.time.sleep", waits.append)
    replay = ("task", "show", "task-001.2", "--replay")
    for speed, pause in (((), MAX_PAUSE / 10), (("--speed", "2"), MAX_PAUSE / 2)):
        waits.clear()
        call(*replay, *speed)
        assert waits == [pause] * 3
    waits.clear()
    call(*replay, "--speed", "0")
    assert set(waits) <= {0.0}

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("core.cli.commands.history.time.sleep", interrupt)
    interrupted = call(*replay)
    assert interrupted.code == 130 and "Traceback" not in interrupted.err


def test_search_prints_the_place(examples: Path, call: Call) -> None:
    result = call("search", "exit 1", "--in", "errors", "--limit", "2")
    assert "2026-02-01 11:02  task-001.3 action 3  errors" in result.out
    assert "1 more hit" in result.err
    found = call("search", "oauth", "--status", "completed", "--json").document
    assert found["total"] == len(found["hits"]) == 2
    assert call("search", "quetzal").err.startswith("nothing found\nSearched: tasks ")
    assert "no record has all 2 words; try fewer" in call("search", "quetzal bird").err
    day = call("search", "exit 1", "--in", "errors", "--until", "2026-02-01", "--task", "task-001.3")
    assert day.out.count("task-001.3 action 3") == 1
    later = call("search", "exit 1", "--since", "2026-02-02")
    assert later.err.startswith("nothing found that matches the filters; try without them\n")
    assert call("search", "exit", "--since", "7 weeks").code == 2
    assert "no task 'nope'" in call("search", "exit", "--task", "nope").err
    for query in (" ", "in:foo x", "--in foo x", "in:errors", "since:soon x"):
        assert call("search", *(query.split() or [query])).code == 2


def test_history_prints_the_last_of_many_attempts_and_marks_an_open_one(examples: Path, call: Call) -> None:
    task = examples / ".aiwg/ralph/tasks/task-002"
    ended = [{"attempt_id": number, "outcome": "failure", "started": "2026-02-01T10:00:00Z"} for number in range(1, 60)]
    task.joinpath("trajectory.json").write_text(json.dumps({"attempts": [*ended, {"attempt_id": 60, "plan": "last"}]}))
    log = task / "attempts/060/actions.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text('{"type": "read", "timestamp": "2026-02-01T12:00:00Z"}\n' * 3)
    measured = {"execution": {"quality_history": [{"quality": 0.2}, {"quality": 0.7}]}}
    log.with_name("attempt.json").write_text(json.dumps(measured))
    result = call("task", "show", "task-002")
    rows = result.out[result.out.index("ATTEMPT") :].splitlines()[1:51]
    assert rows[0].split()[:2] == ["11", "failure"]
    assert rows[-1].split()[:4] == ["60", "unfinished", "70", "%"] and rows[-1].endswith("  last")
    assert "10 earlier attempts not shown" in result.out
    one = call("task", "show", "task-002.60").out
    assert one.startswith("Task task-002, attempt 60\nAttempt 60   unfinished   no ")
    assert "Counts: 3 actions\n" in one
    assert len(call("task", "show", "task-002", "--json").document["attempts"]) == 60


def test_a_replay_shows_the_ends_of_a_long_outcome_or_all_of_it(examples: Path, call: Call) -> None:
    log = examples / ".aiwg/ralph/tasks/task-001/attempts/003/actions.jsonl"
    printed = "\n".join(f"line {number}" for number in range(30))
    params = {"command": "make", "cwd": "src"}
    log.write_text(json.dumps({"type": "bash", "params": params, "output": printed, "error": "exit 2"}) + "\n")
    shown = call("task", "show", "task-001.3", "--replay").out
    assert "      cwd:      src\n      real:     exit 2\n      output:   line 0\n                line 1\n" in shown
    assert "                … 22 more lines …\n                line 26\n" in shown
    assert shown.count("line ") == 8
    assert call("task", "show", "task-001.3", "--replay", "--full").out.count("line ") == 30
