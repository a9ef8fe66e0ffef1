"""Replay an attempt: timing, quality, changes and results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.records.episodes import Action
from core.tasks.attempts import MAX_PAUSE, ReplayStep, ReplaySteps, Verdict, find_next_error, pause_after
from core.tasks.changes import MAX_LINES, build_diff
from core.tasks.history import AttemptDetail, read_attempt
from tests.core.cli.conftest import TREES


def replayed(project: Path, *actions: dict[str, Any], **attempt: Any) -> ReplaySteps:
    """Replay the only attempt of a project."""
    folder = project / ".aiwg/ralph/tasks/t/attempts/001"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "attempt.json").write_text(json.dumps(attempt))
    (folder / "actions.jsonl").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return ReplaySteps(read_attempt(ProjectPaths(project), "t", 1))


def at(clock: str, iteration: int = 1, **fields: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-02-01T{clock}Z", "iteration": iteration, **fields}


def test_example_of_the_documentation() -> None:
    detail: AttemptDetail = read_attempt(ProjectPaths(TREES / "spec-examples"), "task-001", 2)
    played = ReplaySteps(detail)
    assert [step.elapsed for step in played] == [0.0, 60.0, 120.0, 180.0]
    assert [step.pause for step in played] == [60.0, 60.0, 60.0, None]
    assert [step.begins_iteration for step in played] == [True, False, False, False]
    assert [step.verdict for step in played][1:3] == [Verdict.SUCCEEDED, Verdict.FAILED]
    assert (played[2].action.expected, played[2].real) == ("green", "exit 1")
    assert played[-1].quality == 0.3
    assert [find_next_error(played, place) for place in (-1, 1, 2)] == [2, 2, None]
    assert played[1:3] == (played[1], played[2])
    assert played[::-2] == (played[3], played[1])


def test_missing_and_decreasing_times(tmp_path: Path) -> None:
    played = replayed(
        tmp_path,
        at("10:00:05"),
        {"type": "x"},
        at("10:00:20"),
        at("09:00:00"),
        at("10:01:00"),
        started="2026-02-01T10:00:00Z",
    )
    assert [step.elapsed for step in played] == [5.0, None, 20.0, 0.0, 60.0]
    assert [step.pause for step in played] == [None, None, None, 3660.0, None]
    assert replayed(tmp_path, at("10:00:05"), at("10:00:09"))[1].elapsed == 4.0
    assert [step.elapsed for step in replayed(tmp_path, {"type": "x"})] == [None]


def test_quality_is_the_last_measured_one(tmp_path: Path) -> None:
    history = [{"iteration": 1, "quality": 0.3}, {"iteration": 3, "quality": 0.9}]
    played = replayed(
        tmp_path,
        *(at("10:00:00", iteration) for iteration in (1, 1, 2, 3, 3)),
        execution={"quality_history": history},
    )
    assert [step.quality for step in played] == [None, 0.3, 0.3, 0.3, 0.9]
    assert [step.begins_iteration for step in played] == [True, False, True, True, False]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (
            {"file_path": "a.ts", "old_string": "x\ny", "new_string": "x\nz"},
            ("--- a.ts", "+++ a.ts", "@@ -1,2 +1,2 @@", " x", "-y", "+z"),
        ),
        ({"path": "a.ts", "old_text": "y", "new_text": "z"}, ("--- a.ts", "+++ a.ts", "@@ -1 +1 @@", "-y", "+z")),
        ({"file": "a.ts", "content": "new"}, ("--- a.ts", "+++ a.ts", "@@ -0,0 +1 @@", "+new")),
        ({"patch": "-a\n+b"}, ("-a", "+b")),
        (
            {"path": "a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_str": "3", "new_str": "4"}, 5]},
            ("--- a", "+++ a", "@@ -1 +1 @@", "-1", "+2", "@@ -1 +1 @@", "-3", "+4"),
        ),
        ({"edits": "nonsense"}, ()),
        ({"file_path": "a.ts"}, ()),
    ],
)
def test_diff_of_an_edit(tmp_path: Path, params: dict[str, Any], expected: tuple[str, ...]) -> None:
    [step] = replayed(tmp_path, {"type": "edit", "params": params})
    assert step.diff == expected


def test_a_diff_that_was_printed_is_the_change_and_not_the_result() -> None:
    printed = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x\n+y"
    step = ReplayStep(Action(number=1, tool="Edit", output=printed, success=True))
    assert (step.diff, step.real, step.result) == (tuple(printed.splitlines()), "", "")
    failed = ReplayStep(Action(number=1, tool="Edit", output=printed, error="file is read-only", success=False))
    assert failed.real == "file is read-only" and failed.diff


def test_content_of_a_read_is_not_a_change(tmp_path: Path) -> None:
    assert replayed(tmp_path, {"type": "grep", "params": {"content": "true"}})[0].diff == ()


def test_long_diffs_are_cut() -> None:
    old, new = "\n".join(["a", "b"] * 20_000), "\n".join(["b", "a", "a"] * 20_000)
    diff = build_diff(Action(number=1, type="edit", params=(("old_string", old), ("new_string", new))))
    assert len(diff) <= MAX_LINES + 1
    written = build_diff(Action(number=1, type="write", params=(("content", "x\n" * 5000),)))
    assert written[2] == "@@ -0,0 +1,5000 @@"
    assert written[-1] == f"… {5003 - MAX_LINES:,} more lines"
    lines = "".join(f"{number}\n" for number in range(900))
    longer = (("old_string", lines), ("new_string", f"b{lines}"))
    assert build_diff(Action(number=1, type="edit", params=(("new_source", "x"),)))[2:] == ("@@ -0,0 +1 @@", "+x")
    assert build_diff(Action(number=1, params=longer))[-1] == "… 500 more lines not compared"
    diff = build_diff(Action(number=1, params=(("diff", "+x\n" * 5000),)))
    assert diff[MAX_LINES:] == (f"… {5000 - MAX_LINES:,} more lines",)


def test_step_shows_output_beside_an_error_and_further_parameters() -> None:
    assert ReplayStep(Action(number=1, output="9 errors\n", error="TS2339")).output == "9 errors"
    assert (
        ReplayStep(Action(number=1, output="same", error="same\n")).output
        == ReplayStep(Action(number=1, output="a")).output
        == ""
    )
    edit = (("file_path", "a.ts"), ("old_string", "a"), ("new_string", "b"), ("replace_all", "true"))
    assert ReplayStep(Action(number=1, type="edit", params=edit)).params == (("replace_all", "true"),)
    script = (("command", "cd x\nmake"), ("cwd", "src"))
    assert ReplayStep(Action(number=1, params=script)).params == script  # unreadable on one line
    assert ReplayStep(Action(number=1, params=(("command", "make"), ("cwd", "src")))).params == (("cwd", "src"),)


def test_long_output_is_shortened_to_its_beginning_and_end() -> None:
    assert ReplayStep(Action(number=1, output="fine", error="")).real == "fine"
    assert ReplayStep(Action(number=1, output="fine", error="worse")).real == "worse"
    long = ReplayStep(Action(number=1, output="\n".join("abcdefghijk"))).real
    assert long.splitlines() == ["a", "b", "c", "d", "… 3 more lines …", "h", "i", "j", "k"]
    for text in ("x" * 60_000, f"{'x' * 60_000}\n" * 3, f"{'x' * 6_000}\n" * 30):
        assert len(ReplayStep(Action(number=1, error=text)).real) < 5000
    assert ReplayStep(Action(number=1)).verdict is Verdict.UNKNOWN


def test_double_speed_halves_the_pause() -> None:
    minutes = ReplayStep(Action(number=1), pause=600.0)
    assert [pause_after(minutes, speed) for speed in (1, 2, 16)] == [MAX_PAUSE, MAX_PAUSE / 2, MAX_PAUSE / 16]


@given(pause=st.one_of(st.none(), st.floats(0, 1e12)), speed=st.floats(-1, 1e9))
def test_pause_is_limited(pause: float | None, speed: float) -> None:
    waited = pause_after(ReplayStep(Action(number=1), pause=pause), speed)
    assert 0 <= waited <= MAX_PAUSE
    if pause and speed > 0:
        assert waited == min(min(pause, MAX_PAUSE) / speed, MAX_PAUSE)
    else:
        assert waited == 0
