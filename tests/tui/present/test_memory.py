from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.content import Content

from core.episodes.attempt_state import AttemptCondition, AttemptState
from core.queries.filter_parser import parse_query
from core.queries.record_filters import MEMORY_FIELDS, MemoryCatalog
from core.records.debug_sessions import DebugSession, Escalation
from core.records.episodes import Attempt, Quality, Task, TaskStatus
from core.records.loops import Outcome
from core.records.snapshot import Snapshot
from tui.present.chart import AXIS_CELLS, MAX_STEP, Run, line_chart
from tui.present.document import hanging
from tui.present.glyphs import ASCII, DRAWN
from tui.present.memory import (
    ESCALATIONS,
    SESSIONS,
    TASKS,
    attempt_cells,
    earlier_cells,
    path_end,
    session_cells,
    task_cells,
    tree,
)
from tui.present.replay import Track, cell, position_at, timeline

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
NEWEST = ("newest", True)


def run(*values: float, label: str = "", places: int = 0) -> Run:
    return Run(values, Content(label), places)


def plain(lines: list[Content]) -> list[str]:
    return [line.plain for line in lines]


# The chart


def test_a_chart_is_a_line_with_labelled_axes_and_a_mark_for_each_value() -> None:
    assert plain(line_chart([run(0.0, 0.5, 1.0, label="1 x"), run(1.0, label="2 v")], 19, 3, ASCII)) == [
        "100 %|     *o:o    ",
        " 50 %|  *o*  :     ",
        "  0 %|o*     :     ",
        "      1 x     2 v",
    ]


def test_a_chart_in_dots_has_four_times_as_many_lines() -> None:
    lines = plain(line_chart([run(0.0, 1.0)], AXIS_CELLS + 6, 3, DRAWN))
    assert [line[:AXIS_CELLS] for line in lines] == ["100 %┤", " 50 %┤", "  0 %┤"]
    dots = [line[AXIS_CELLS:] for line in lines]
    assert dots[0].endswith("●") and dots[1].strip() and dots[2].startswith("●")


def test_a_line_of_few_values_is_not_stretched() -> None:
    assert {line.cell_length for line in line_chart([run(0.2, 0.9)], 100, 5, DRAWN)} == {AXIS_CELLS + MAX_STEP + 1}
    assert "●" not in "".join(plain(line_chart([run(*[0.5] * 60)], AXIS_CELLS + 60, 5, DRAWN)))


def test_ticks_are_below_their_values_when_there_is_space() -> None:
    ticks = [str(number) for number in range(8, 14)]
    lines = plain(line_chart([Run([0.5] * 6, Content(""), ticks=ticks)], AXIS_CELLS + 51, 3, ASCII))
    assert lines[-1].split() == ticks and lines[-1][AXIS_CELLS + 20 :].startswith("10")
    lines = plain(line_chart([Run([0.5] * 6, Content(""), ticks=ticks)], AXIS_CELLS + 12, 3, ASCII))
    assert lines[-1].split() == ["8", "9", "10", "12"]


def test_a_line_of_an_unfinished_period_leaves_room() -> None:
    (top, *_) = plain(line_chart([run(1.0, 1.0, places=5)], AXIS_CELLS + 21, 3, ASCII))
    assert top == "100 %|o****o" + " " * 15


def test_the_oldest_runs_are_dropped_when_space_is_short() -> None:
    lines = plain(line_chart([run(0.5, label=str(number)) for number in range(100)], AXIS_CELLS + 15, 3, ASCII))
    assert lines[-1].split() == ["96", "97", "98", "99"]


def test_a_chart_without_values_is_empty() -> None:
    assert line_chart([run()], 60, 5, DRAWN) == []
    assert line_chart([run(0.5)], AXIS_CELLS, 5, DRAWN) == []


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.floats(allow_nan=False, min_value=-2, max_value=2), max_size=9), max_size=9),
    st.integers(0, 90),
    st.sampled_from([DRAWN, ASCII]),
)
def test_a_chart_is_never_wider_than_requested(runs: list[list[float]], width: int, glyphs: object) -> None:
    for line in line_chart([run(*values, label="1 x") for values in runs], width, 5, glyphs):  # type: ignore[arg-type]
        assert line.cell_length <= width


# The tree


def attempt(task_id: str, number: int, outcome: Outcome = Outcome.UNKNOWN, errors: int = 0) -> Attempt:
    return Attempt(task_id=task_id, number=number, outcome=outcome, errors=errors, quality=(Quality(1, 0.5),))


SNAPSHOT = Snapshot(
    tasks={
        "old": Task(id="old", status=TaskStatus.COMPLETED, created_at=NOW.replace(day=1)),
        "new": Task(id="new", status=TaskStatus.RUNNING, created_at=NOW),
    },
    attempts={
        one.id: one
        for one in (attempt("old", 1, Outcome.FAILURE, 5), attempt("old", 2, Outcome.SUCCESS), attempt("new", 1))
    },
    debug_sessions={
        "calm": DebugSession(id="calm", status="passed"),
        "loud": DebugSession(id="loud", status="escalated"),
    },
)
CATALOG = MemoryCatalog(SNAPSHOT)


def keys(text: str = "", sort: tuple[str, bool] = NEWEST, **folded: bool) -> list[str]:
    known = {key.replace("__", "/"): value for key, value in folded.items()}
    return list(tree(CATALOG, parse_query(text, MEMORY_FIELDS), sort, known).keys)


def test_an_ended_task_is_folded_until_the_user_unfolds_it() -> None:
    escalations, sessions = [ESCALATIONS, "session/loud"], [SESSIONS, "session/calm"]
    assert keys() == [*escalations, TASKS, "task/new", "attempt/new.1", "task/old", *sessions]
    unfolded = ["task/old", "attempt/old.1", "attempt/old.2"]
    assert keys(task__old=False, task__new=True) == [*escalations, TASKS, "task/new", *unfolded, *sessions]
    assert keys(group__tasks=True) == [*escalations, TASKS, *sessions]


def test_an_escalation_shows_its_newest_status() -> None:
    hours = {"changed": 1, "called": 300, "old": 200}
    sessions = {
        id: DebugSession(id=id, status="failed" if id == "called" else "escalated", updated_at=NOW - timedelta(hours=n))
        for id, n in hours.items()
    }
    call = Escalation(session_id="called", at=NOW - timedelta(minutes=5), reason="no right to the database", file="f")
    catalog = MemoryCatalog(Snapshot(debug_sessions=sessions, escalations={"called": call}))
    found = tree(catalog, parse_query("", MEMORY_FIELDS), NEWEST, {}).keys
    assert found == [ESCALATIONS, "session/called", "session/changed", "session/old"]
    cells = session_cells(sessions["called"], NOW, DRAWN, escalated=catalog.escalated["called"])
    assert (cells["sign"].plain, cells["status"].plain) == ("5 m ago", "▲ escalated")


def test_the_last_of_very_many_attempts_follow_a_row_for_the_earlier_ones() -> None:
    attempts = [attempt("new", number, Outcome.FAILURE) for number in range(1, 1002)]
    catalog = MemoryCatalog(Snapshot(tasks={"new": SNAPSHOT.tasks["new"]}, attempts={one.id: one for one in attempts}))
    found = tree(catalog, parse_query("", MEMORY_FIELDS), NEWEST, {})
    last = [f"attempt/new.{number}" for number in range(996, 1002)]
    assert found.keys == [TASKS, "task/new", "earlier/new", *last]
    assert found.earlier == {"earlier/new": 995}
    assert earlier_cells(995, folded=True, glyphs=DRAWN)["what"].plain.split() == ["▸", "995", "earlier", "attempts"]
    unfolded = tree(catalog, parse_query("", MEMORY_FIELDS), NEWEST, {"earlier/new": False}).keys
    assert len(unfolded) == 1004 and unfolded[3] == "attempt/new.1" and unfolded[-6:] == last


def test_a_matching_attempt_is_shown_below_its_folded_task() -> None:
    assert keys("outcome:failure", task__old=True) == [TASKS, "task/old", "attempt/old.1"]
    assert keys("is:session") == [ESCALATIONS, "session/loud", SESSIONS, "session/calm"]


@pytest.mark.parametrize(("sort", "first"), [("errors", "old"), ("tries", "old"), ("status", "new"), ("sign", "new")])
def test_tasks_are_sorted(sort: str, first: str) -> None:
    assert next(key for key in keys("is:task", (sort, True)) if key.startswith("task/")) == f"task/{first}"


def test_a_task_row_summarizes_its_attempts() -> None:
    cells = task_cells(SNAPSHOT.tasks["old"], CATALOG.attempts["old"], AttemptState.ENDED, NOW, DRAWN, folded=True)
    assert cells["tries"].plain == "2"
    assert cells["errors"].plain == "5"
    assert cells["quality"].plain.split() == ["···▅▅", "50", "%"]
    assert cells["status"].plain == "✓ completed"


def test_a_running_task_without_activity_is_shown_as_abandoned() -> None:
    task, attempts = SNAPSHOT.tasks["new"], CATALOG.attempts["new"]
    cells = task_cells(task, attempts, AttemptState.LEFT, NOW, DRAWN, folded=None)
    assert cells["status"].plain == "◌ unfinished"
    assert task_cells(task, (), None, NOW, DRAWN, folded=None)["status"].plain == "… not started"


def test_an_attempt_without_a_plan_has_a_text() -> None:
    cells = attempt_cells(attempt("new", 1), AttemptCondition(AttemptState.LEFT, ""), NOW, DRAWN)
    assert cells["what"].plain.split() == ["1", "no", "plan"]


def test_a_long_path_keeps_its_end() -> None:
    assert path_end("src/a.ts") == "src/a.ts"
    assert path_end("packages/" * 9 + "auth/validate.ts").endswith("auth/validate.ts")
    assert len(path_end("x" * 300)) == 28


def test_text_is_indented_beside_its_label() -> None:
    lines = hanging(Content("why  "), Content("one two three four five six seven\nend"), 25)
    assert [line.plain.rstrip() for line in lines] == ["why  one two three four", "     five six seven", "     end"]


# The timeline


def test_a_timeline_marks_errors_iterations_and_the_position() -> None:
    track = Track(count=4, errors=(1,), iterations={0: 1, 2: 2})
    line, numbers = timeline(track, 3, 12, DRAWN)
    assert line.plain == "┃━━✗━━┃━━●━━"
    assert numbers.plain == "it 1  2"
    assert timeline(track, 1, 12, ASCII)[0].plain == "|==x==|-----"
    assert timeline(Track(), 0, 12, DRAWN)[0].plain == ""


@settings(max_examples=50)
@given(st.integers(1, 5000), st.integers(1, 200), st.data())
def test_every_action_is_in_exactly_one_cell(count: int, width: int, data: st.DataObject) -> None:
    track = Track(count=count, errors=(0, count - 1), iterations={0: 1})
    position = data.draw(st.integers(0, count - 1))
    assert 0 <= cell(track, position, width) < width
    assert 0 <= position_at(track, data.draw(st.integers(0, width - 1)), width) < count
    assert timeline(track, position, width, DRAWN)[0].cell_length == width
