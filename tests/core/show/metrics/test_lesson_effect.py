"""Whether lessons help, for small projects checked by hand."""

from __future__ import annotations

from collections.abc import Iterable

from core.learning.scoreboard import Scoreboard
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.decisions import CurationState
from core.records.events import Event
from core.records.loops import ExtractedPattern, Loop, LoopStatus
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Snapshot
from core.show.metrics.lesson_effect import LessonEffect, Measure, measure_lesson_effect
from tests.factories import NOW, SETTINGS, days_ago, make_pattern, make_pin, make_recorded_counts, make_use

TYPO = make_pattern("pat-typo", error_pattern="no attribute", description="Spell it right")
NULL = make_pattern("pat-null", error_pattern="NoneType", description="Check for None")
MESSAGES = {TYPO.id: "module has no attribute x", NULL.id: "'NoneType' object"}


def session(number: int, pattern_id: str, steps: int, status: str = "passed") -> DebugSession:
    """A session of the loop with this number: its runs fail with the error, then pass."""
    failing = Execution(at=days_ago(1), failures=(Failure(message=MESSAGES[pattern_id]),))
    runs = (*[failing] * steps, Execution(at=days_ago(1)))
    return DebugSession(id=f"s{number}", status=status, executions=runs, loop_id=f"loop-{number}")


def loop(number: int, pattern_id: str, had_lesson: bool) -> Loop:
    if had_lesson:
        return Loop(id=f"loop-{number}", injected=(make_use(pattern_id, None, applied=False),))
    return Loop(id=f"loop-{number}", extracted=(ExtractedPattern(pattern_id=pattern_id),))


def measure(
    cases: Iterable[tuple[str, bool, int]],
    *others: Loop,
    patterns: tuple[Pattern, ...] = (TYPO, NULL),
    events: tuple[Event, ...] = (),
    sessions: tuple[DebugSession, ...] = (),
) -> LessonEffect:
    """Measure cases of (pattern, had its lesson, steps), and other records."""
    numbered = list(enumerate(cases))
    loops = (*(loop(number, id, had) for number, (id, had, _) in numbered), *others)
    every = (*(session(number, id, steps) for number, (id, _, steps) in numbered), *sessions)
    snapshot = Snapshot(
        patterns={one.id: one for one in patterns},
        loops={one.id: one for one in loops},
        debug_sessions={one.id: one for one in every},
        events=events,
    )
    return measure_lesson_effect(snapshot, Scoreboard.build(snapshot, NOW, SETTINGS), SETTINGS)


CLEAR = [
    *[(TYPO.id, True, 1)] * 4,
    *[(TYPO.id, False, 3), (TYPO.id, False, 4)],
    *[(NULL.id, True, 2)] * 4,
    *[(NULL.id, False, 5)] * 2,
]


def test_a_clear_difference_is_answered_with_averages_and_cases() -> None:
    found = measure(CLEAR)
    assert found.sentence == "Known errors took 1.5 steps instead of 4.2 (8 and 4 cases; a real difference is likely)"
    assert found.missing == 0


def test_errors_are_compared_only_with_the_same_error() -> None:
    """The harder error had lessons only: it must not make lessons look slow."""
    found = measure([*CLEAR[:6], *[(NULL.id, True, 9)] * 5])
    assert [group.category for group in found.comparison.groups] == [TYPO.id]
    assert found.comparison.having == 1


def test_too_few_cases_give_no_average_but_the_number_that_is_missing() -> None:
    found = measure([(TYPO.id, True, 1), (TYPO.id, True, 1), (TYPO.id, False, 9)])
    assert found.missing == 3  # one with a lesson and two without
    assert found.sentence.startswith("Can't tell yet: about 3 more sessions with a known error")
    assert "9" not in found.sentence


def test_a_project_without_any_case_gives_no_answer_yet() -> None:
    found = measure([])
    assert found.sentence == "Can't tell yet: about 6 more sessions with a known error"
    assert (found.best, found.worst) == ((), ())


def test_lessons_that_cost_steps_are_reported_as_such() -> None:
    found = measure([(id, not had, steps) for id, had, steps in CLEAR])
    assert found.sentence.startswith("Known errors took longer with lessons: 4.2 steps instead of 1.5")


def test_a_lesson_that_came_after_the_session_does_not_count_as_given() -> None:
    def given(number: int, when: float) -> Event:
        return Event(id=f"e{number}", at=days_ago(when), kind="injected", pattern_id=TYPO.id, loop_id=f"loop-{number}")

    cases = [(TYPO.id, False, 3)] * 4
    assert measure(cases, events=(given(0, 2), given(1, 0.5))).comparison.loops == (1, 3)


def test_sessions_without_passing_checks_at_the_end_do_not_count() -> None:
    failed = session(20, TYPO.id, 7, "failed")
    found = measure(CLEAR, loop(20, TYPO.id, True), sessions=(failed,))
    assert found.comparison.loops == (8, 4)


def test_two_patterns_for_one_error_count_its_session_once() -> None:
    twin = make_pattern("pat-a-twin", error_pattern="attribute")
    extra = Event(id="e", at=days_ago(2), kind="injected", pattern_id=twin.id, loop_id="loop-0")
    assert measure(CLEAR, patterns=(TYPO, NULL, twin), events=(extra,)).comparison.loops == (8, 4)


def test_loops_are_compared_where_no_known_error_can_be() -> None:
    def ended(number: int, iterations: int, *uses: str) -> Loop:
        injected = tuple(make_use(id, True) for id in uses)
        return Loop(
            id=f"l{number}", status=LoopStatus.COMPLETED, task="Fix it", iteration=iterations, injected=injected
        )

    loops = [ended(number, 2, TYPO.id) for number in range(4)] + [ended(10 + number, 6) for number in range(4)]
    found = measure([], *loops)
    assert found.measure is Measure.ITERATIONS
    assert found.sentence == (
        "Sessions with lessons took 2.0 iterations instead of 6.0 (4 and 4 sessions; a real difference is likely)"
    )


def pattern(name: str, good: int, bad: int, type: PatternType = PatternType.SUCCESS) -> Pattern:
    return make_pattern(name, type, title=f"Title {name}", recorded_counts=make_recorded_counts(good, bad))


def test_best_and_worst_patterns_are_those_with_the_most_certain_results() -> None:
    known = (pattern("a", 3, 0), pattern("b", 30, 1), pattern("c", 2, 0), pattern("d", 1, 9), pattern("e", 2, 1))
    found = measure([], patterns=known)
    assert [(one.pattern_id, one.score) for one in found.best] == [("b", "30 of 31"), ("a", "3 of 3")]
    assert [one.pattern_id for one in found.worst] == ["d", "e"]
    assert found.undecided == 1
    assert all(one.low <= one.worked / one.results <= one.high for one in (*found.best, *found.worst))


def test_patterns_that_agents_still_get_are_the_first_of_the_worst() -> None:
    known = (pattern("bad", 1, 9), pattern("pinned", 3, 2))
    curation = CurationState(pins={"pinned": make_pin(Maturity.PROVEN, days_ago(1))})
    snapshot = Snapshot(patterns={one.id: one for one in known}, curation=curation)
    found = measure_lesson_effect(snapshot, Scoreboard.build(snapshot, NOW, SETTINGS), SETTINGS)
    assert [(one.pattern_id, one.is_given) for one in found.worst] == [("pinned", True), ("bad", False)]
