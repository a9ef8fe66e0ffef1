from __future__ import annotations

from dataclasses import replace

from core.learning.evidence import LoopPatterns
from core.learning.scoreboard import Scoreboard
from core.records.episodes import Attempt, Task
from core.records.events import ASSIGNED, Event, Trial, TrialKey
from core.records.loops import ExtractedPattern, InjectedUse, Loop, LoopStatus
from core.records.patterns import SourceLoop
from core.records.snapshot import Delta, Snapshot
from tests.factories import NOW, SETTINGS, days_ago, make_event, make_pattern

OTHER = "pat-error-other-002"
ID = make_pattern().id


def found(loop: Loop, *events: Event, **fields: object) -> LoopPatterns:
    snapshot = replace(Snapshot(patterns={ID: make_pattern()}, loops={loop.id: loop}, events=events), **fields)  # type: ignore[arg-type]
    return Scoreboard.build(snapshot, NOW, SETTINGS).loop_patterns(loop.id)


def results(patterns: LoopPatterns) -> list[tuple[str, str, bool | None]]:
    return [(use.pattern_id, use.kind, use.success) for use in patterns.uses]


def test_injections_and_uses_of_the_event_log_join_those_of_the_loop() -> None:
    loop = Loop(id="x", injected=(InjectedUse(pattern_id=ID, applied=True, successful=True, iteration=2),))
    patterns = found(
        loop,
        make_event(1, "injected", days_ago(3), loop_id="x"),
        make_event(2, "injected", days_ago(3), loop_id="x", pattern_id=OTHER),
        make_event(3, "applied", days_ago(2), loop_id="x", pattern_id=OTHER, success=False),
    )
    assert results(patterns) == [(ID, "applied", True), (OTHER, "applied", False)]
    assert patterns.injected_ids == patterns.applied_ids == [ID, OTHER]


def test_a_pattern_that_was_only_injected_was_not_applied() -> None:
    patterns = found(Loop(id="x"), make_event(1, "injected", NOW, loop_id="x"))
    assert results(patterns) == [(ID, "injected", None)]
    assert (patterns.injected_ids, patterns.applied_ids) == ([ID], [])


def test_events_on_other_ids_of_the_loop_and_on_attempts_at_its_task_count() -> None:
    attempts = {"t.1": Attempt(task_id="t", number=1)}
    events = (
        make_event(1, "injected", days_ago(3), loop_id="x-alias"),
        make_event(2, "applied", days_ago(2), loop_id="t.1", pattern_id=OTHER, success=True),
        make_event(3, "injected", NOW, loop_id="another"),
    )
    patterns = found(
        Loop(id="x", aliases=("x-alias",)), *events, attempts=attempts, tasks={"t": Task(id="t", loop_id="x")}
    )
    assert patterns.injected_ids == [ID, OTHER]


def test_a_use_without_a_result_gets_the_result_of_its_loop() -> None:
    loop = Loop(id="x", status=LoopStatus.COMPLETED, started_at=days_ago(1), ended_at=days_ago(1))
    (use,) = found(loop, make_event(1, "applied", days_ago(1), loop_id="x")).uses
    assert (use.success, use.inferred) == (True, True)


def test_extractions_are_listed_once_with_a_flag_for_new_patterns() -> None:
    loop = Loop(id="x", extracted=(ExtractedPattern(pattern_id="pat-error-own-001", rate=1.0),))
    earlier = make_pattern(source_loops=(SourceLoop(loop_id="first", at=days_ago(9)), SourceLoop(loop_id="x", at=NOW)))
    patterns = found(
        loop,
        make_event(1, "extracted", NOW, loop_id="x", pattern_id="pat-error-own-001"),
        make_event(2, "extracted", NOW, loop_id="x"),
        make_event(3, "extracted", NOW, loop_id="x", pattern_id=OTHER),
        patterns={ID: earlier, OTHER: make_pattern(id=OTHER, source_loops=(SourceLoop(loop_id="x", at=NOW),))},
    )
    assert [(one.pattern_id, one.new) for one in patterns.extracted] == [
        ("pat-error-own-001", True),
        (ID, False),
        (OTHER, True),
    ]
    assert patterns.uses == ()


def test_a_new_event_updates_the_board() -> None:
    loop = Loop(id="x")
    before = Snapshot(
        patterns={ID: make_pattern()}, loops={"x": loop}, events=(make_event(1, "injected", NOW, loop_id="x"),)
    )
    board = Scoreboard.build(before, NOW, SETTINGS)
    after = replace(before, events=(*before.events, make_event(2, "extracted", NOW, loop_id="x", pattern_id=OTHER)))
    updated = board.updated(after, Delta(events=True), NOW).loop_patterns("x")
    assert updated.injected_ids == [ID]
    assert [one.pattern_id for one in updated.extracted] == [OTHER]


def test_an_unknown_loop_has_no_patterns() -> None:
    assert Scoreboard.build(Snapshot(), NOW, SETTINGS).loop_patterns("x") == LoopPatterns()


def test_lessons_that_the_experiment_held_out_are_those_of_the_loop_and_not_given() -> None:
    held_out = [
        make_event(
            number, ASSIGNED, NOW, loop_id=loop_id, pattern_id=id, trial=Trial(task="t@x", share=0.5, is_held_out=out)
        )
        for number, (loop_id, id, out) in enumerate(
            [("x", ID, True), ("x", ID, True), ("x", OTHER, False), ("another", OTHER, True)]
        )
    ]
    key = TrialKey(b"k")
    patterns = found(Loop(id="x"), *map(key.sign, held_out), trial_key=key)
    assert patterns.held_out == (ID,) and not patterns.injected_ids
    assert not found(Loop(id="x"), *held_out, trial_key=key).held_out, "events of others do not count"
