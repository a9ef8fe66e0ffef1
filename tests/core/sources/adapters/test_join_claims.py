"""Claims of success, and what contradicts them."""

from __future__ import annotations

from typing import Any

import pytest

from core.learning.outcomes import WorkReport, loop_signals
from core.records.loops import CONTRADICTED, TESTS_FAILED, Loop, LoopStatus, Progress, StateSource
from core.retrieval.reflections import work_outcome
from core.sources.adapters.join import check_claim
from tests.factories import NOW, make_event

PROVEN = Progress(stories=2, stories_done=2, test_passed=True, files_changed=3, goal_met=True)


def loop(status: LoopStatus = LoopStatus.COMPLETED, progress: Progress = PROVEN, **fields: Any) -> Loop:
    return Loop(id="some:1", runner="some", status=status, progress=progress, ended_at=NOW, **fields)


@pytest.mark.parametrize(
    ("progress", "reason"),
    [
        (Progress(stories=5, stories_done=3), "2 of 5 stories are open"),
        (Progress(test_passed=False, goal_met=True), "the last test run failed"),
        (Progress(goal_met=False, test_passed=True), "the goal was judged as not met"),
        (Progress(files_changed=0, test_passed=True), "no file was changed"),
        (Progress(stories=2, stories_done=1, test_passed=False), "1 of 2 stories are open, the last test run failed"),
    ],
)
def test_a_contradicted_success_gets_a_badge_and_the_reasons_and_is_not_scored(progress: Progress, reason: str) -> None:
    found = check_claim(loop(progress=progress, badges=("stale",)))
    assert (found.status, found.badges) == (LoopStatus.COMPLETED, ("stale", CONTRADICTED))
    assert found.liveness_reason == f"success is claimed, but {reason}"
    assert found.success is None
    assert loop_signals(found, WorkReport()) is None


@pytest.mark.parametrize(
    "progress",
    [
        Progress(stories=2, stories_done=2),
        Progress(test_passed=True),
        Progress(goal_met=True),
        Progress(goal_met=True, files_changed=0),
    ],
)
def test_a_proven_success_is_scored_as_one(progress: Progress) -> None:
    found = loop(progress=progress)
    assert check_claim(found) is found
    signals = loop_signals(found, WorkReport())
    assert signals is not None and signals.success


@pytest.mark.parametrize("progress", [Progress(), Progress(is_claimed=True), Progress(stories=0, stories_done=0)])
def test_a_success_without_any_evidence_is_neither_contradicted_nor_scored(progress: Progress) -> None:
    found = check_claim(loop(progress=progress))
    assert found.badges == ()
    assert loop_signals(found, WorkReport()) is None
    assert work_outcome(found) == "unknown"


def test_a_promise_of_a_loop_that_runs_is_contradicted_by_open_stories() -> None:
    progress = Progress(stories=2, stories_done=1, is_claimed=True)
    assert check_claim(loop(LoopStatus.RUNNING, progress)).badges == (CONTRADICTED,)
    assert check_claim(loop(LoopStatus.RUNNING, Progress(stories=2, stories_done=1))).badges == ()


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (Progress(files_changed=0), (LoopStatus.COMPLETED, "end_turn")),
        (Progress(test_passed=True, files_changed=0), (LoopStatus.COMPLETED, "end_turn")),
        (Progress(test_passed=False), (LoopStatus.FAILED, TESTS_FAILED)),
    ],
)
def test_a_session_without_a_goal_claims_nothing_at_the_end_of_its_turn(
    progress: Progress, expected: tuple[LoopStatus, str]
) -> None:
    found = check_claim(loop(progress=progress, owner="some", end_reason="end_turn"))
    assert (found.status, found.end_reason) == expected
    assert found.badges == ()


def test_a_goal_that_a_session_reached_is_a_claim() -> None:
    found = check_claim(loop(progress=Progress(test_passed=False), owner="some", criteria=("npm test exits 0",)))
    assert found.badges == (CONTRADICTED,)


def test_an_inferred_failure_is_not_scored() -> None:
    assert loop(LoopStatus.FAILED).success is False
    assert loop(LoopStatus.FAILED, state_source=StateSource.INFERRED).success is None


def test_the_report_of_a_person_outweighs_a_claim() -> None:
    event = make_event(1, "outcome", NOW, loop_id="some:1", pattern_id="", success=True)
    signals = loop_signals(loop(progress=Progress()), WorkReport((event,)))
    assert signals is not None and signals.success


def test_loops_of_this_project_need_no_proof() -> None:
    assert Loop(id="a", status=LoopStatus.COMPLETED).success is True
    assert Loop(id="a", status=LoopStatus.LIMIT).success is False
    assert Loop(id="a", status=LoopStatus.RUNNING).success is None


def test_more_finished_than_known_stories_leave_none_open() -> None:
    assert Progress(stories=1, stories_done=4).stories_open == 0
