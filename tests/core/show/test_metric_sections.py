"""Sections of the metrics, their exports, and the uses of a team."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.base.errors import BadInput
from core.base.paths import project_at
from core.base.settings import Settings
from core.files.atomic_write import export_file, file_exists
from core.index.review_items import ReviewItem
from core.learning.maturity import CODES
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.debug_sessions import Analysis, DebugSession, Execution, Failure
from core.records.decisions import CurationState, Decision, Verb
from core.records.events import Event, Signals
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity, Pattern
from core.records.snapshot import Snapshot
from core.records.team import PooledTrials, ProjectUses, TeamStatus
from core.show.metrics.dashboard import (
    WEEK,
    Dashboard,
    Week,
    build_dashboard,
    compute_coverage,
    compute_trend,
    count_changes,
    count_first_half,
    count_questions,
    count_states,
    count_weekly,
    find_upcoming,
    list_used,
    list_week_starts,
    select_registered,
)
from core.show.metrics.sections import (
    build_figures,
    count_team_uses,
    describe_pool,
    describe_team_uses,
    export_metrics,
    section_markdown,
    to_csv,
)
from core.show.metrics.sessions import count_failed_loops, top_causes
from tests.factories import HOSTILE_LABEL, SETTINGS, make_bars, make_pattern, make_pin, make_recorded_counts

MONDAY = datetime(2026, 2, 2, tzinfo=UTC)
NOW = MONDAY + timedelta(days=3, hours=5)
"""A Thursday."""


def used(pattern_id: str, at: datetime, success: bool | None, kind: str = "applied") -> Event:
    return Event(id=f"{at}-{pattern_id}-{kind}", at=at, kind=kind, pattern_id=pattern_id, loop_id=f"loop-{at}",
                 success=success)  # fmt: skip


def world(*events: Event, patterns: tuple[Pattern, ...] = (), **fields: object) -> Snapshot:
    known = {id: make_pattern(id) for id in dict.fromkeys(event.pattern_id for event in events if event.pattern_id)}
    known |= {pattern.id: pattern for pattern in patterns}
    return Snapshot(patterns=known, events=events, **fields)  # type: ignore[arg-type]


def measured(snapshot: Snapshot, weeks: int = 3) -> tuple[Week, ...]:
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    return count_weekly(board, select_registered(board, snapshot.patterns), list_week_starts(NOW, weeks))


def test_weeks_begin_on_monday_and_end_with_the_current_one() -> None:
    assert list_week_starts(NOW, 3) == (MONDAY - 2 * WEEK, MONDAY - WEEK, MONDAY)
    assert list_week_starts(MONDAY, 1) == (MONDAY,)


def test_each_use_is_counted_in_its_week_and_a_week_without_any_is_a_gap() -> None:
    found = measured(
        world(
            used("pat-a", MONDAY, True),
            used("pat-a", MONDAY - timedelta(seconds=1), False),
            used("pat-b", NOW, None),
            used("pat-b", NOW + WEEK, True),
            used("pat-b", NOW - timedelta(hours=1), None, "injected"),
            used("pat-b", MONDAY - 2 * WEEK - timedelta(seconds=1), True),
        )
    )
    assert [(week.good, week.bad, week.open, week.shown) for week in found] == [
        (0, 0, 0, 0),
        (0, 1, 0, 0),
        (2, 0, 1, 1),
    ]
    assert (found[0].rate, found[0].low) == (None, None)
    assert (found[1].rate, found[1].low) == (0.0, 0.0)
    assert found[2].rate == 1.0
    assert found[2].low is not None
    assert 0 < found[2].low < found[2].high == 1.0  # type: ignore[operator]


def test_copies_and_undated_totals_do_not_count() -> None:
    mirror = make_pattern("pat-m", copy_folder="pat-a")
    summed = make_pattern("pat-s", recorded_counts=make_recorded_counts(5, 1), last_used=MONDAY)
    found = measured(world(used("pat-m", MONDAY, True), patterns=(mirror, summed)))
    assert found[-1].uses == 0


def test_patterns_of_a_week_are_sorted_by_use() -> None:
    snapshot = world(
        used("pat-a", MONDAY, True),
        used("pat-b", MONDAY, True),
        used("pat-b", MONDAY + timedelta(hours=1), False),
        used("pat-c", MONDAY - WEEK, True),
        used("pat-d", MONDAY, None, "injected"),
    )
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    assert list_used(board, np.ones(4, np.bool_), MONDAY) == ("pat-b", "pat-a", "pat-d")


def test_states_are_counted_at_the_end_of_each_week_without_later_uses() -> None:
    last, middle, early = (MONDAY - WEEK * back for back in (0, 1, 2))
    found_late = make_pattern("pat-b", first_discovered=MONDAY)
    uses = [used("pat-a", middle + timedelta(hours=n), True) for n in range(4)]
    snapshot = world(*uses, used("pat-a", last, True), patterns=(found_late,))
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    found = count_states(board, np.ones(2, np.bool_), snapshot, (early, last, NOW))
    assert [{state.value: count for state, count in week.items() if count} for week in found] == [
        {"candidate": 1},  # no use yet
        {"established": 1, "candidate": 1},
        {"established": 1, "candidate": 1},
    ]
    assert board.state_codes.tolist() == [CODES[Maturity.ESTABLISHED], CODES[Maturity.CANDIDATE]]


def test_a_pin_counts_from_its_time_on() -> None:
    pin = make_pin(Maturity.PROVEN, MONDAY)
    snapshot = world(patterns=(make_pattern("pat-a"),), curation=CurationState(pins={"pat-a": pin}))
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    found = count_states(board, np.ones(1, np.bool_), snapshot, (MONDAY - WEEK, NOW))
    assert [week[Maturity.PROVEN] for week in found] == [0, 1]


def week(number: int, good: int, bad: int) -> Week:
    return Week(start=MONDAY + number * WEEK, good=good, bad=bad, open=0, shown=0)


def test_a_trend_compares_two_halves_since_the_first_result() -> None:
    overlapping = compute_trend([week(0, 0, 0), week(1, 9, 1), week(2, 7, 3)], 0.9)
    assert overlapping is not None
    assert overlapping.since == MONDAY + 2 * WEEK
    assert (overlapping.before.rate, overlapping.after.rate, overlapping.is_significant) == (0.9, 0.7, False)
    apart = compute_trend([week(1, 90, 10), week(2, 30, 70)], 0.9)
    assert apart is not None
    assert apart.is_significant
    assert compute_trend([week(0, 3, 0), week(1, 0, 0)], 0.9) is None
    assert compute_trend([], 0.9) is None


def test_decay_is_listed_in_the_week_of_the_change() -> None:
    events = [used("pat-a", NOW - timedelta(hours=n), True) for n in range(3)]
    snapshot = world(*events, used("pat-b", NOW, True))
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    found = find_upcoming(board, np.ones(2, np.bool_), 4)
    next_change = board.next_change("pat-a")
    assert next_change is not None
    change = (Maturity.ESTABLISHED, Maturity.CANDIDATE)
    assert count_changes(found) == {change: 1}
    turning = next(week for week in found if week.count)
    assert turning.start <= next_change[0] <= turning.end
    assert turning.changes == {change: ("pat-a",)}
    assert (found[0].start, found[0].end, found[-1].end) == (NOW, MONDAY + WEEK, MONDAY + 4 * WEEK)


def decision(number: int, at: datetime, verb: Verb, subject: str, **after: object) -> Decision:
    return Decision(id=f"d{number}", at=at, by="ana", verb=verb, subject=subject, after=after)


def test_injections_count_as_reviewed_from_the_week_of_the_decision() -> None:
    early, late = MONDAY - WEEK, MONDAY + timedelta(hours=1)
    events = [used(id, at, True) for id in ("pat-a", "pat-b", "pat-c") for at in (early, late)]
    decisions = (
        decision(1, MONDAY, Verb.PROMOTE, "pat-a"),
        decision(2, MONDAY, Verb.EXTRACT, "some-loop", patterns=["pat-b", 7]),
        decision(3, MONDAY, Verb.PROMOTE, "pat-c"),
        decision(4, MONDAY, Verb.UNDO, "d3"),
        decision(5, MONDAY, Verb.SNOOZE, "pat-c"),
        decision(6, MONDAY, Verb.EXTRACT, "task-1", patterns=["pat-c"], hashes={"pat-c": "text"}),  # without a person
    )
    snapshot = world(*events)
    board = Scoreboard.build(snapshot, NOW, SETTINGS)
    curation = CurationState(undone=frozenset({"d3"}))
    found = compute_coverage(board, np.ones(3, np.bool_), decisions, curation, list_week_starts(NOW, 3))
    assert [(one.injected, one.reviewed, one.decisions) for one in found] == [(0, 0, 0), (3, 0, 0), (3, 2, 3)]
    assert [one.share for one in found] == [None, 0.0, pytest.approx(2 / 3)]


def test_open_questions_are_counted_by_impact() -> None:
    def item(kind: str, subject: str, impact: float) -> ReviewItem:
        return ReviewItem(kind=kind, subject=subject, question="?", reason="", priority=0.5, impact=impact)

    queue = (item("stale-pin", "pat-a", 0.6), item("inversion", "pat-b", 0.3), item("inversion", "pat-c", 0.1))
    found = count_questions(queue)
    assert [(one.kind, one.count, one.first) for one in found] == [("stale-pin", 1, "pat-a"), ("inversion", 2, "pat-b")]
    assert [one.share for one in found] == pytest.approx([0.6, 0.4])
    assert [count_first_half(queue), count_first_half(queue[1:]), count_first_half(())] == [1, 1, 0]
    assert count_questions(()) == ()


def test_loops_that_ended_without_success_are_counted_in_a_time_range() -> None:
    failed: Any = {"status": LoopStatus.FAILED}
    loops = [
        Loop(id="in", ended_at=MONDAY, **failed),
        Loop(id="later", ended_at=NOW + WEEK, **failed),
        Loop(id="before", ended_at=MONDAY - timedelta(seconds=1), **failed),
        Loop(id="active", last_activity=NOW, **failed),
        Loop(id="undated", **failed),
        Loop(id="worked", ended_at=NOW, status=LoopStatus.COMPLETED),
    ]
    counted = [loop.id for loop in loops if count_failed_loops([loop], MONDAY, NOW)]
    assert counted == ["in", "later", "active"], "a time in the future is now"


def test_causes_are_counted_once_per_session_since_a_day() -> None:
    def session(id: str, at: datetime) -> DebugSession:
        run = Execution(
            at=at, failures=(Failure(error_type="TypeError"),), analysis=Analysis(category="null_undefined_access")
        )
        return DebugSession(id=id, executions=(run, run), loop_id="a-loop")

    snapshot = world(
        Event(id="1", at=MONDAY, kind="outcome", loop_id="x", signals=Signals(failure_mode="repeated_same_error")),
        Event(id="3", at=NOW, kind="outcome", loop_id="a", signals=Signals(failure_mode="repeated_same_error")),
        Event(id="2", at=MONDAY, kind="outcome", loop_id="y", signals=Signals(failure_mode="unknown")),
    )
    sessions = {one.id: one for one in (session("s1", MONDAY), session("s2", NOW), session("old", MONDAY - WEEK))}
    found = top_causes(replace(snapshot, debug_sessions=sessions), MONDAY, NOW)
    assert [(cause.kind, cause.name, cause.count, cause.loop_id) for cause in found] == [
        ("error", "TypeError", 2, "a-loop"),
        ("failure mode", "repeated_same_error", 2, "a"),
        ("root cause", "null_undefined_access", 2, "a-loop"),
    ]


EXPORTED = datetime(2026, 2, 5, tzinfo=UTC)
TREES = Path(__file__).parents[2] / "trees"


@pytest.fixture(scope="module")
def found() -> Dashboard:
    opened = Project(project_at(TREES / "spec-examples"), Settings(), by="ana", clock=lambda: EXPORTED, cache=False)
    opened.load()
    return build_dashboard(opened.view, "ana", 4)


def test_every_format_contains_every_section(found: Dashboard) -> None:
    figures = build_figures(found)
    report = export_metrics(found, ".md", "acme").decode()
    cells = list(csv.reader(io.StringIO(export_metrics(found, ".csv", "acme").decode())))
    assert cells[0] == ["section", "row", "part", "value", "low", "high", "n"]
    assert {line[0] for line in cells[1:]} == {figure.id for figure in figures if figure.rows}
    for figure in figures:
        assert f"## {figure.title}\n" in report
        assert figure.rows or figure.missing


def test_example_metrics_have_the_expected_figures(found: Dashboard) -> None:
    by_id = {figure.id: figure for figure in build_figures(found)}
    assert by_id["patterns"].rows[-1].count == 6
    assert by_id["evidence"].rows[-1].label == "2 Feb"
    assert [row.week for row in by_id["evidence"].rows] == [3, 2, 1, 0]
    assert by_id["lessons"].note.endswith("compare: ralphdeck experiment"), "none is running"
    assert by_id["mirror"].takeaway == "You have not promoted or deprecated a lesson yet."
    assert found.iterations.difference is None
    assert "Not enough data" in by_id["iterations"].takeaway


def test_figures_of_an_empty_project_say_what_is_missing(tmp_path: Path) -> None:
    opened = Project(project_at(tmp_path), Settings(), by="ana", clock=lambda: EXPORTED, cache=False)
    opened.load()
    figures = build_figures(build_dashboard(opened.view, "ana", 12))
    assert all(not figure.rows and figure.missing for figure in figures)
    assert "No use in the last 12 weeks." in [figure.takeaway for figure in figures]


def test_hostile_names_stay_text(found: Dashboard) -> None:
    figure = make_bars(HOSTILE_LABEL, "@SUM(A1)", "plain")
    cells = list(csv.reader(io.StringIO(to_csv(found, [figure], ""))))
    assert [line[1][:2] for line in cells[1:]] == ["'=", "'@", "pl"]
    assert "\x1b" not in "".join(cells[1])
    report = section_markdown(figure)
    assert "\x1b" not in report
    assert "\\<script\\>" in report
    assert len([line for line in report.splitlines() if line.startswith("#")]) == 1
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {4}


def test_a_file_is_named_outside_of_aiwg_with_a_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = project_at(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert export_file("report.MD", project, (".md",)) == tmp_path / "report.MD"
    (tmp_path / ".aiwg").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".aiwg")
    assert file_exists(tmp_path / "link")
    assert not file_exists(tmp_path / ("x" * 300))
    for name in (".aiwg/report.md", "link/report.md", "report.txt", "report", "a\0.md"):
        with pytest.raises(BadInput):
            export_file(name, project, (".md",))


AT = datetime(2026, 11, 23, 12, 3, tzinfo=UTC)
STATUS = TeamStatus(
    space="shop",
    uses=(
        ProjectUses("web", {4: (1, 2, 3), 12: (10, 2, 14), 52: (20, 2, 30)}),
        ProjectUses("api\x1b[31m", {4: (0, 0, 0), 12: (30, 1, 31), 52: (30, 1, 31)}),
        ProjectUses("unused", {4: (0, 0, 0), 12: (0, 0, 0), 52: (0, 0, 0)}),
    ),
    uses_at=AT,
)


def test_projects_with_most_uses_come_first_after_the_whole_team() -> None:
    found = describe_team_uses(STATUS, 12)
    assert found["takeaway"] == (
        "45 uses in 2 of 3 projects in 12 weeks: 40 worked, 3 failed; as of 2026-11-23 12:03 UTC"
    )
    assert found["rows"] == [("all projects", (40, 3), 45), ("api␛[31m", (30, 1), 31), ("web", (10, 2), 14)]
    assert [label for label, *_ in describe_team_uses(STATUS, 4)["rows"]] == ["web"], "a single project"
    longer = [count_team_uses(STATUS, weeks)[0] for weeks in (1, 4, 5, 52, 100)]
    assert longer == [4, 4, 12, 52, 52], "the next longer range that is known"
    empty = TeamStatus(space="shop", uses=(ProjectUses("web", {4: (0, 0, 0)}),), uses_at=AT)
    takeaway = "No use in 1 project of the team in 4 weeks; as of 2026-11-23 12:03 UTC"
    assert describe_team_uses(empty, 4) == {"takeaway": takeaway}


def test_trials_of_the_team_have_a_verdict_of_their_own() -> None:
    cells = ((0.5, 10, False, False, 40), (0.5, 10, True, True, 30), (0.5, 10, True, False, 10))
    pool = PooledTrials("pat-error-vat-001", "returned", 3, 2, cells)
    assert describe_pool(pool) == "3 projects, given: error in 0 of 40 tasks; held out: error in 30 of 40; helps"
    far = PooledTrials("pat-error-vat-001", "succeeded", 1, 1, cells)
    assert describe_pool(far) == "1 project, given: success in 0 of 40 tasks; held out: success in 30 of 40; hurts"
