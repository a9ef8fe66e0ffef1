from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import Refused, UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import Archive, Deprecate, Merge, Promote, Quarantine, Redo, Reset, RestoreText, Undo, bulk
from core.index.project_state import ProjectState, all_findings
from core.learning.scoreboard import Scoreboard
from core.project.as_of import UNDATED, build_past_state
from core.project.project import Project
from core.records.decisions import Verb
from core.records.events import Event
from core.records.loops import Loop, LoopStatus
from core.records.patterns import Maturity, RecordedCounts
from core.records.snapshot import Snapshot
from tests.core.project.views import STEP, Clock
from tests.factories import NOW, days_ago, make_event, make_pattern, make_recorded_counts, make_source, make_use

START = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
IDS = tuple(f"pat-error-slow-query-{number:03d}" for number in range(3))

Standing = dict[str, tuple[Maturity, int, int, bool]]


def open_project(folder: Path, clock: Clock) -> Project:
    paths = ProjectPaths(folder)
    paths.patterns.mkdir(parents=True)
    records = [
        {
            "pattern_id": id,
            "error_signature": {"error_type": "Timeout", "error_pattern": f"query {id} took too long"},
            "fix_approach": {"description": f"add an index, way {number}"},
            "usage_count": 4,
            "success_rate": 0.75,
            "first_discovered": "2026-01-20T00:00:00Z",
            "last_used": "2026-01-30T00:00:00Z",
        }
        for number, id in enumerate(IDS)
    ]
    (paths.patterns / "error-patterns.json").write_text(json.dumps({"patterns": records}))
    opened = Project(paths, Settings(), by="ana", clock=clock, cache=False)
    opened.load()
    return opened


def report(opened: Project, clock: Clock, id: str, success: bool) -> None:
    number = f"e{clock().timestamp():.3f}"
    opened.record(
        Event(id=number, at=clock(), kind="applied", pattern_id=id, loop_id=f"loop-{number}", success=success)
    )


STEPS: dict[str, Callable[[Project, Clock, str], Any]] = {
    "helped": lambda opened, clock, id: report(opened, clock, id, True),
    "failed": lambda opened, clock, id: report(opened, clock, id, False),
    "promote": lambda opened, _clock, id: opened.decide(Promote(id)),
    "deprecate": lambda opened, _clock, id: opened.decide(Deprecate(id, reason="no")),
    "reset": lambda opened, _clock, id: opened.decide(Reset(id)),
    "quarantine": lambda opened, _clock, id: opened.decide(Quarantine(id, reason="odd")),
    "archive": lambda opened, _clock, id: opened.decide(Archive(id, reason="old")),
    "merge": lambda opened, _clock, id: opened.decide(Merge(id, IDS[(IDS.index(id) + 1) % len(IDS)])),
    "promote all": lambda opened, _clock, _id: opened.decide(bulk(Verb.PROMOTE, IDS)),
    "archive all": lambda opened, _clock, _id: opened.decide(bulk(Verb.ARCHIVE, IDS[:2], "old")),
    "undo": lambda opened, _clock, _id: opened.decide(Undo()),
    "redo": lambda opened, _clock, _id: opened.decide(Redo()),
}


def standing(board: Scoreboard) -> Standing:
    found = {id: board.assessment(id) for id in board.ids}
    return {id: (one.state, one.successes, one.failures, one.quarantined) for id, one in found.items()}


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(IDS)), min_size=3, max_size=8))
def test_a_past_state_equals_the_state_of_that_day(steps: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        clock = Clock(START, STEP)
        opened = open_project(Path(folder), clock)
        days: list[tuple[datetime, Standing, Scoreboard]] = []
        for step, id in steps:
            if id in opened.view.snapshot.patterns:
                with suppress(Refused, UnknownRecord):
                    STEPS[step](opened, clock, id)
            view, _ = opened.refresh()
            days.append((clock(), standing(view.board), view.board))
            clock.now += timedelta(days=20)
        final, _ = opened.refresh()
        for when, then, board in days:
            past = build_past_state(final, when)
            assert standing(past.board) == then
            for id in board.ids:
                assert past.assessment(id).score == pytest.approx(board.rescored(when).assessment(id).score)


def test_a_past_text_is_the_one_that_the_next_decision_saw(tmp_path: Path) -> None:
    clock = Clock(START, STEP)
    opened = open_project(tmp_path, clock)
    start = clock()
    opened.decide(Promote(IDS[0]))
    promoted, text = clock(), opened.view.pattern(IDS[0])
    file = opened.project.patterns / "error-patterns.json"
    file.write_text(file.read_text().replace("add an index, way 0", "drop the table"))
    clock.now += timedelta(days=1)
    stale, _ = opened.apply((file,))
    assert stale.assessment(IDS[0]).pin_stale
    edited = clock()
    opened.decide(RestoreText(IDS[0]))
    view, _ = opened.refresh()
    then, between = build_past_state(view, start).pattern(IDS[0]), build_past_state(view, edited)
    assert (then.description, then.content_hash) == (text.description, text.content_hash)
    assert between.pattern(IDS[0]).description == "drop the table"
    assert between.assessment(IDS[0]).pin_stale
    # The time of the edit is unknown: the past text is the one that the next decision saw.
    assert build_past_state(view, promoted).pattern(IDS[0]).description == "drop the table"


def view_of(*patterns: Any, now: datetime = NOW, **known: Any) -> ProjectState:
    snapshot = Snapshot(patterns={pattern.id: pattern for pattern in patterns}, **known)
    board = Scoreboard.build(snapshot, now, Settings())
    empty: Any = None  # nothing in these tests searches
    return ProjectState(snapshot, board, empty, (), Settings(), now, {})


def test_the_present_state_is_not_rewound() -> None:
    events = tuple(make_event(number, "applied", days_ago(number), success=number > 1) for number in range(5))
    view = view_of(
        make_pattern(first_discovered=days_ago(9), recorded_counts=make_recorded_counts(3, 1)), events=events
    )
    assert standing(build_past_state(view, NOW).board) == standing(view.board)
    later = replace(view, board=view.board.rescored(NOW + timedelta(days=30)), now=NOW + timedelta(days=30))
    assert standing(build_past_state(later, NOW).board) == standing(view.board)


def test_a_running_loop_has_only_its_uses_of_that_time() -> None:
    loop = Loop(
        id="a",
        status=LoopStatus.COMPLETED,
        started_at=days_ago(5),
        ended_at=days_ago(1),
        injected=(
            make_use("p", True, at=days_ago(4)),
            make_use("p", True, at=days_ago(2), iteration=7),
            make_use("q", None),
        ),
    )
    patterns = (make_pattern(id, first_discovered=days_ago(20)) for id in ("p", "q"))
    view = view_of(*patterns, loops={"a": loop})
    past = build_past_state(view, days_ago(3))
    assert past.snapshot.loops["a"].status is LoopStatus.RUNNING
    assert (past.assessment("p").successes, past.assessment("q").uses) == (1, 0)
    assert past.assessment("q").injected_only == 1
    assert view.assessment("q").uses == 1
    assert "a" not in build_past_state(view, days_ago(6)).snapshot.loops


def test_a_pattern_exists_since_its_discovery() -> None:
    view = view_of(
        make_pattern("new", first_discovered=days_ago(2)),
        make_pattern("listed", source_loops=(make_source("a", days_ago(6)), make_source("b", days_ago(1)))),
        make_pattern("ever"),
    )
    past = build_past_state(view, days_ago(3))
    assert set(past.snapshot.patterns) == {"listed", "ever"}
    assert [one.loop_id for one in past.snapshot.patterns["listed"].source_loops] == ["a"]
    messages = [finding.message for finding in all_findings(past) if finding.code == UNDATED]
    assert messages == ["1 pattern without a date: shown for every time"]


def test_an_undated_pattern_without_newer_evidence_is_as_it_is_today() -> None:
    pattern = make_pattern(recorded_counts=RecordedCounts(rate=0.8, uses=7))
    view = view_of(pattern)
    past = build_past_state(view, days_ago(3))
    assert past.snapshot.patterns == {pattern.id: pattern}
    assert past.assessment(pattern.id).score == view.assessment(pattern.id).score
    assert any("7 uses" in finding.message for finding in all_findings(past))


def test_undated_totals_count_since_the_last_use_and_are_reported() -> None:
    pattern = make_pattern(
        first_discovered=days_ago(30), recorded_counts=make_recorded_counts(5, 1), last_used=days_ago(2)
    )
    view = view_of(pattern)
    past = build_past_state(view, days_ago(3))
    assert past.assessment(pattern.id).uses == 0
    assert any("6 uses" in finding.message for finding in all_findings(past))
    assert build_past_state(view, days_ago(1)).assessment(pattern.id).uses == 6
