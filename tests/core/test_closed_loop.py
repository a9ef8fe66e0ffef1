"""From a finished loop to changed states, proposals and questions, on real files."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Conflict, Refused, UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.decisions.commands import CountReports, DiscardReports, SnoozeQuestion, Undo
from core.index.contexts import prepare_task_injection
from core.index.project_state import all_findings, explain_pattern
from core.index.review_items import BURST, INVERSION
from core.project.project import Project
from core.records.events import ErrorNote, ErrorType, Event, Signals
from core.records.patterns import Maturity
from core.sources.events import append_events
from tests.factories import decide_question

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PATTERNS = tuple(f"pat-error-p{number}-001" for number in range(7))
SPLIT = PATTERNS[0]


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    """Seven unused patterns, and three running loops that have applied the first one."""
    paths = ProjectPaths(tmp_path)
    records = [
        {
            "pattern_id": id,
            "error_signature": {"error_type": "TypeError", "error_pattern": f"boom {id}"},
            "fix_approach": {"description": f"do something about {id} at once", "fix_category": "other"},
        }
        for id in PATTERNS
    ]
    write(paths.pattern_file("error"), {"error_patterns": records})
    for number in range(3):
        write_loop(paths, number, "running")
    return paths


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))


def write_loop(paths: ProjectPaths, number: int, status: str, minutes: float = 12, failed: int = 0) -> None:
    """A loop that says that it applied the first pattern, and not how that went."""
    steps = ["failed"] * failed + ["passed" if status == "completed" else "failed"]
    state = {
        "task": "Fix the crash",
        "status": status,
        "startTime": (NOW - timedelta(minutes=minutes)).isoformat(),
        "endTime": None if status == "running" else NOW.isoformat(),
        "iterations": [{"number": n, "status": step} for n, step in enumerate(steps, 1)],
        "cross_loop_learning": {"injected_patterns": [{"pattern_id": SPLIT, "applied": True, "iteration_used": 1}]},
    }
    write(paths.ralph / "loops" / f"ralph-{number}" / "state.json", state)


def opened(paths: ProjectPaths) -> Project:
    project = Project(paths, Settings(), by="ada", clock=lambda: NOW, cache=False)
    project.load()
    return project


def test_successful_loops_establish_the_patterns_they_applied(paths: ProjectPaths) -> None:
    project = opened(paths)
    assert project.view.assessment(SPLIT).successes == 0
    for number in range(3):
        write_loop(paths, number, "completed")
    project.apply(None)
    assessment = project.view.assessment(SPLIT)
    assert (assessment.successes, assessment.state) == (3, Maturity.ESTABLISHED)
    assert all(seen.inferred for seen in project.view.board.observations(SPLIT))
    found = project.view.board.outcome("ralph-0")
    assert found is not None
    assert found[1].reasoning == "helpful, 0.92: success 1.00, 12 min 0.60, no errors 1.00, no retries 1.00"


def test_loops_that_fail_bring_a_proposal_to_invert(paths: ProjectPaths) -> None:
    project = opened(paths)
    for number in range(3):
        write_loop(paths, number, "failed", minutes=45, failed=3)
    project.apply(None)
    assert project.view.assessment(SPLIT).state is Maturity.DEPRECATED
    assert [(item.kind, item.subject) for item in project.view.queue] == [(INVERSION, SPLIT)]
    inversion = project.view.board.proposal(SPLIT)
    assert (inversion.failures, inversion.source_loops) == (3, ("ralph-0", "ralph-1", "ralph-2"))


def test_a_neutral_loop_counts_only_if_the_setting_makes_it_a_failure(paths: ProjectPaths) -> None:
    project = opened(paths)
    write_loop(paths, 0, "completed", minutes=45, failed=3)
    project.apply(None)
    assert (project.view.assessment(SPLIT).successes, project.view.assessment(SPLIT).failures) == (0, 0)


def test_an_explicit_result_overrides_the_result_of_the_loop(paths: ProjectPaths) -> None:
    project = opened(paths)
    project.record(event("applied", pattern_id=SPLIT, loop_id="ralph-0", success=False, iteration=1))
    write_loop(paths, 0, "completed")
    project.apply(None)
    assert (project.view.assessment(SPLIT).successes, project.view.assessment(SPLIT).failures) == (0, 1)


def test_an_outcome_that_a_hook_reports_counts_at_once(paths: ProjectPaths) -> None:
    project = opened(paths)
    signals = Signals(duration_ms=60_000, error_count=0, retry_count=0)
    view = project.record(event("outcome", loop_id="ralph-1", success=True, signals=signals))
    assert view.assessment(SPLIT).successes == 1
    found = view.board.outcome("ralph-1")
    assert found is not None and found[1].raw == 1.0


def test_recorded_errors_count_for_the_loop(paths: ProjectPaths) -> None:
    project = opened(paths)
    write_loop(paths, 0, "completed")
    note = ErrorNote(error_type=ErrorType.TIMEOUT, message="late")
    view = project.record(*(event("error", number=n, loop_id="ralph-0", error=note) for n in range(3)))
    project.apply(None)
    found = project.view.board.outcome("ralph-0")
    assert found is not None and found[0].error_count == 3
    assert view.board.outcome("ralph-1") is None


def test_an_attempt_at_a_task_counts_like_a_loop(paths: ProjectPaths) -> None:
    project = opened(paths)
    project.record(event("applied", pattern_id=SPLIT, loop_id="task-001.1"))
    assert project.view.assessment(SPLIT).successes == 0
    attempt = {"attempt_id": 1, "started": NOW.isoformat(), "ended": NOW.isoformat(), "outcome": "success"}
    write(paths.ralph / "tasks" / "task-001" / "trajectory.json", {"attempts": [attempt]})
    project.apply(None)
    assert project.view.work_id("task-001.1") == "task-001.1"
    assert project.view.assessment(SPLIT).successes == 1


def bursts_asked(project: Project) -> list[str]:
    return [item.subject for item in project.view.queue if item.kind == BURST]


def test_a_burst_is_one_question_one_finding_and_one_decision(paths: ProjectPaths) -> None:
    project = opened(paths)
    before = {id: project.view.assessment(id).failures for id in PATTERNS}
    blame(project, "ralph-2")
    assert {id: project.view.assessment(id).failures for id in PATTERNS} == before
    assert bursts_asked(project) == ["ralph-2"]
    (finding,) = [finding for finding in all_findings(project.view) if finding.code == "burst"]
    assert finding.message.startswith("ralph-2 reports 7 patterns as harmful; it was not given 6 of them")
    decided = project.decide(DiscardReports(source="ralph-2", reason="a crashed session"))
    assert decided.summary == "discarded the reports of ralph-2 on 7 patterns"
    assert not bursts_asked(project)
    assert {id: project.view.assessment(id).failures for id in PATTERNS} == before
    with pytest.raises(UnknownRecord, match="no suspicious reports"):
        project.decide(DiscardReports(source="ralph-2"))
    project.decide(Undo())
    assert len(bursts_asked(project)) == 1
    project.decide(CountReports(source="ralph-2"))
    assert {id: project.view.assessment(id).failures for id in PATTERNS} == {
        id: count + 1 for id, count in before.items()
    }


def test_the_second_reviewer_of_a_burst_gets_a_conflict(paths: ProjectPaths) -> None:
    project, other = opened(paths), opened(paths)
    blame(project, "ralph-2")
    (burst,) = project.view.board.bursts
    project.decide(CountReports(source="ralph-2"))
    with pytest.raises(Refused, match="already confirmed"):
        decide_question(other.curator, DiscardReports(source=burst.source, burst=burst), now=NOW)


def test_a_restart_sees_the_same(paths: ProjectPaths) -> None:
    project = opened(paths)
    blame(project, "ralph-2")
    project.decide(DiscardReports(source="ralph-2"))
    write_loop(paths, 0, "completed")
    project.apply(None)
    fresh = opened(paths).view
    assert {id: fresh.assessment(id) for id in PATTERNS} == {id: project.view.assessment(id) for id in PATTERNS}
    assert fresh.board.bursts == ()


def event(kind: str, *, number: int = 0, **fields: Any) -> Event:
    name = f"{kind}-{number}-{fields.get('pattern_id')}-{fields.get('loop_id')}"
    return Event(id=name, at=NOW, kind=kind, by="hook", **fields)


def blame(project: Project, source: str) -> None:
    """Seven harmful marks, as another program appends them."""
    marks = (event("feedback", pattern_id=id, loop_id=source, success=False) for id in PATTERNS)
    append_events(project.project, *marks)
    project.apply((project.project.events,))


def test_a_use_in_a_running_loop_does_not_reduce_the_recorded_counts(paths: ProjectPaths) -> None:
    records = json.loads(paths.pattern_file("error").read_text())
    records["error_patterns"][0] |= {"usage_count": 3, "success_rate": 1.0, "last_used": NOW.isoformat()}
    write(paths.pattern_file("error"), records)
    project = opened(paths)
    assert project.view.assessment(SPLIT).successes == 3
    write_loop(paths, 0, "aborted")  # it ended, and says nothing: then its use is one of those that are claimed
    project.apply(None)
    assert project.view.assessment(SPLIT).successes == 2


def test_a_loop_that_an_event_calls_by_another_name_is_the_same_loop(paths: ProjectPaths) -> None:
    state = {"loopId": "another-name", "task": "x", "status": "completed", "endTime": NOW.isoformat()}
    write(paths.ralph / "loops" / "ralph-9" / "state.json", state)
    project = opened(paths)
    view = project.record(event("applied", pattern_id=PATTERNS[1], loop_id="another-name"))
    (seen,) = view.board.observations(PATTERNS[1])
    assert (seen.loop_id, seen.success, seen.inferred) == ("ralph-9", True, True)


def test_a_decision_on_a_burst_that_changed_meanwhile_is_refused(paths: ProjectPaths) -> None:
    project = opened(paths)
    blame(project, "ralph-2")
    (seen,) = project.view.board.bursts
    early = (
        Event(
            id=f"early-{id}",
            at=NOW - timedelta(days=2),
            kind="feedback",
            pattern_id=id,
            loop_id="ralph-2",
            success=False,
        )
        for id in PATTERNS
    )
    append_events(project.project, *early)
    with pytest.raises(Conflict, match="changed; review them again"):
        project.decide(CountReports(source="ralph-2", burst=seen))
    (now,) = project.view.board.bursts
    project.decide(CountReports(source="ralph-2", burst=now))
    assert project.view.board.bursts == (seen,)


def test_a_snoozed_burst_is_asked_about_later_and_stays_held(paths: ProjectPaths) -> None:
    project = opened(paths)
    blame(project, SPLIT)  # a source that is named like a pattern
    (asked,) = [item for item in project.view.queue if item.burst]
    project.decide(SnoozeQuestion(key=asked.question_key, until=NOW + timedelta(days=7)))
    assert not bursts_asked(project)
    assert project.view.assessment(PATTERNS[1]).failures == 0
    assert len(project.view.board.bursts) == 1
    project.decide(Undo())
    assert len(bursts_asked(project)) == 1


def test_reports_under_all_names_of_a_loop_are_one(paths: ProjectPaths) -> None:
    state = {"loopId": "another-name", "task": "x", "status": "running", "startTime": NOW.isoformat()}
    write(paths.ralph / "loops" / "ralph-9" / "state.json", state)
    project = opened(paths)
    note = ErrorNote(error_type=ErrorType.TIMEOUT, message="late")
    project.record(
        event("outcome", loop_id="another-name", success=True), event("error", loop_id="ralph-9", error=note)
    )
    found = project.view.board.outcome("ralph-9")
    assert found is not None
    assert (found[0].success, found[0].error_count) == (True, 1)


def test_an_outcome_is_not_that_of_a_loop_that_only_claims_the_name(paths: ProjectPaths) -> None:
    thief = {"loopId": "ralph-0", "task": "x", "status": "running", "startTime": NOW.isoformat()}
    write(paths.ralph / "loops" / "ralph-thief" / "state.json", thief)
    project = opened(paths)
    project.record(event("outcome", loop_id="ralph-0", success=False))
    assert project.view.board.outcome("ralph-0") is not None
    assert project.view.board.outcome("ralph-thief") is None


def test_dates_at_the_end_of_time_do_not_fail(paths: ProjectPaths) -> None:
    line = {"id": "x", "at": "9999-12-31T23:59:59.999999Z", "kind": "applied", "pattern_id": SPLIT, "success": True}
    paths.events.parent.mkdir(parents=True)
    paths.events.write_text(json.dumps(line) + "\n")
    project = opened(paths)
    assert project.view.assessment(SPLIT).last_used is not None
    assert explain_pattern(project.view, SPLIT).lines
    assert prepare_task_injection(project.view, "boom at once").chosen


def test_a_log_that_was_changed_in_the_middle_is_read_anew(paths: ProjectPaths) -> None:
    project = opened(paths)
    project.record(*(event("applied", number=n, pattern_id=SPLIT, loop_id=f"bd-{n}", success=True) for n in range(9)))
    assert project.view.assessment(SPLIT).successes == 9
    lines = paths.events.read_text().splitlines(keepends=True)
    lines[4] = lines[4].replace("true", "null")
    paths.events.write_text("".join(lines))
    project.apply((paths.events,))
    assert project.view.assessment(SPLIT).successes == 8
