"""The scoreboard: assessments, and incremental updates that equal a new board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import BadInput, UnknownRecord
from core.config.settings import LearningSettings, MaturitySettings, Settings
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.scoreboard import Assessment, SavedScores, Scoreboard
from core.learning.states import decayed_counts
from core.learning.threshold_replay import what_if
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.decisions import BurstVerdict, CurationState, InversionVerdict, Pin, UnreviewedText
from core.records.episodes import Attempt, Task
from core.records.event_log import EventView, GrowingLog
from core.records.events import Event, Signals
from core.records.loops import ExtractedPattern, Iteration, Loop, LoopStatus, Outcome
from core.records.origins import NOTHING_FOREIGN, ForeignRecords
from core.records.patterns import Maturity, Pattern, PatternType, RecordedCounts
from core.records.snapshot import Delta, Snapshot
from core.records.team import TeamEvidence, TeamSums
from core.retrieval.past_tasks import find_worked
from tests.factories import (
    NOW,
    NULL_CHECK_001,
    NULL_CHECK_015,
    OPTIMIZING,
    SETTINGS,
    TYPE_MISMATCH,
    days_ago,
    example_loops,
    example_patterns,
    make_board,
    make_event,
    make_pattern,
    make_pin,
    make_recorded_counts,
    make_source,
    make_use,
)

ID = "pat-error-sample-001"


def assessed(successes: int, failures: int, curation: CurationState | None = None, **fields: Any) -> Assessment:
    fields.setdefault("last_used", NOW)
    pattern = make_pattern(recorded_counts=make_recorded_counts(successes, failures), **fields)
    return make_board(pattern, curation=curation).assessment(ID)


def pinned(state: Maturity, **fields: object) -> CurationState:
    return CurationState(pins={ID: make_pin(state, days_ago(5), **fields)})


def test_the_recorded_rate_is_shown_if_its_counts_match() -> None:
    patterns, loops = example_patterns(), example_loops()
    board = Scoreboard.build(Snapshot(patterns=patterns, loops=loops), NOW, SETTINGS)
    shown = {id: board.assessment(id).rate for id in patterns}
    assert shown[NULL_CHECK_001] == 0.92
    assert shown[NULL_CHECK_015] == 0.75
    assert shown[TYPE_MISMATCH] == 0.94
    assert shown[OPTIMIZING] == 0.85


def test_a_recorded_rate_is_shown_only_if_its_counts_match() -> None:
    pattern = make_pattern(recorded_counts=RecordedCounts(rate=0.92, uses=12))
    loops = {name: Loop(id=name, ended_at=NOW, injected=(make_use(ID, False),)) for name in "abc"}
    assert make_board(pattern).assessment(ID).rate == 0.92
    assert make_board(pattern, loops=loops).assessment(ID).rate == 0.75


def test_states_by_rule() -> None:
    assert assessed(0, 0).state is Maturity.CANDIDATE
    assert assessed(0, 0).rate is None and assessed(0, 0).interval == (0.0, 1.0)
    assert assessed(3, 0).state is Maturity.ESTABLISHED
    assert assessed(9, 0).state is Maturity.PROVEN
    bad = assessed(5, 4)
    assert (bad.state, bad.multiplier, bad.score, bad.injectable) == (Maturity.DEPRECATED, 0.0, 0.0, False)
    assert bad.decided_by == "rule"


def test_what_no_person_approved_is_at_most_established() -> None:
    for reviewed, state in (((), Maturity.ESTABLISHED), (("seen",), Maturity.PROVEN)):
        arrival = UnreviewedText(
            kind="extraction", at=NOW, by="claude", decision_id="d1", blocks=False, reviewed=frozenset(reviewed)
        )
        found = assessed(9, 0, CurationState(arrivals={ID: arrival}))
        assert (found.state, found.computed, found.injectable) == (state, Maturity.PROVEN, True)


def test_a_pattern_that_falls_back_by_age_is_faded() -> None:
    old = assessed(4, 0, last_used=days_ago(90))
    assert (old.computed, old.faded, old.successes) == (Maturity.CANDIDATE, True, 4)
    assert not assessed(2, 0, last_used=days_ago(900)).faded


def test_the_calendar_names_day_and_state() -> None:
    change = assessed(6, 0, last_used=NOW).next_change
    assert change is not None
    days = (change[0] - NOW) / timedelta(days=1)
    assert change[1] is Maturity.CANDIDATE or change[1] is Maturity.ESTABLISHED
    assert days == pytest.approx(90 * np.log2(6 / 4.99), abs=0.01)


def test_a_pin_overrules_the_computed_state() -> None:
    promoted = assessed(1, 2, pinned(Maturity.PROVEN, successes=1, failures=2))
    assert (promoted.state, promoted.computed) == (Maturity.PROVEN, Maturity.DEPRECATED)
    assert (promoted.decided_by, promoted.multiplier, promoted.injectable) == ("human decision", 1.5, True)
    assert not promoted.contradicted
    banned = assessed(9, 0, pinned(Maturity.DEPRECATED, successes=9))
    assert (banned.state, banned.injectable, banned.contradicted) == (Maturity.DEPRECATED, False, False)


def test_later_evidence_contradicts_a_promotion() -> None:
    before = pinned(Maturity.PROVEN, successes=9, failures=0)
    assert not assessed(9, 2, before).contradicted
    assert assessed(11, 4, before).contradicted
    assert not assessed(13, 1, before).contradicted
    # Not a full sample since then, but all evidence together deprecates.
    assert assessed(3, 2, pinned(Maturity.PROVEN, successes=3, failures=0)).contradicted


def test_later_evidence_contradicts_a_deprecation() -> None:
    before = pinned(Maturity.DEPRECATED, successes=2, failures=0)
    assert not assessed(4, 0, before).contradicted
    assert assessed(9, 0, before).contradicted
    # Proven when it was deprecated: nothing new speaks against the decision.
    assert not assessed(9, 0, pinned(Maturity.DEPRECATED, successes=9)).contradicted


def test_recorded_failures_contradict_a_pin_despite_an_old_count() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(10, 4), last_used=days_ago(9))
    loops = {name: Loop(id=name, ended_at=days_ago(1), injected=(make_use(ID, False),)) for name in "abcd"}
    curation = pinned(Maturity.PROVEN, successes=10, failures=4)
    board = make_board(pattern, loops=loops, curation=curation)
    assert board.results_since_pin(ID) == (0, 4)
    assert board.assessment(ID).contradicted


def test_a_pin_on_another_text_is_stale() -> None:
    stale = assessed(9, 0, pinned(Maturity.DEPRECATED, content_hash="another"))
    assert (stale.state, stale.pin_stale, stale.decided_by) == (Maturity.CANDIDATE, True, "rule")
    assert stale.pin is not None and stale.injectable


def test_a_pattern_with_a_pending_inversion_is_not_injectable() -> None:
    due = assessed(2, 5)
    assert (due.inversion_due, due.injectable, due.decided_by) == (True, False, "inversion")
    old = assessed(1, 3, last_used=days_ago(200))
    assert (old.computed, old.injectable, old.inversion_due) == (Maturity.CANDIDATE, False, True)


def test_an_anti_pattern_is_never_inverted() -> None:
    pattern = make_pattern("pat-anti-x-001", PatternType.ANTI, recorded_counts=make_recorded_counts(0, 5))
    assert not make_board(pattern).assessment(pattern.id).inversion_due


def test_a_pin_has_priority_over_inversion() -> None:
    pinned_one = assessed(2, 5, pinned(Maturity.PROVEN, successes=2, failures=5))
    assert (pinned_one.inversion_due, pinned_one.injectable, pinned_one.decided_by) == (False, True, "human decision")


def verdict(word: str, **fields: object) -> CurationState:
    made = InversionVerdict(verdict=word, at=days_ago(1), **fields)  # type: ignore[arg-type]
    return CurationState(inversions={ID: made})


def test_a_verdict_on_an_inversion_remains() -> None:
    assert not assessed(2, 5, verdict("accepted")).inversion_due
    rejected = assessed(2, 5, verdict("rejected", failures=5))
    assert (rejected.inversion_due, rejected.decided_by) == (False, "rule")
    assert not assessed(2, 7, verdict("rejected", failures=5)).inversion_due
    assert assessed(2, 8, verdict("rejected", failures=5)).inversion_due
    snoozed = assessed(2, 5, verdict("snoozed", until=NOW + timedelta(days=1)))
    assert (snoozed.inversion_due, snoozed.injectable) == (False, False)
    assert assessed(2, 5, verdict("snoozed", until=NOW)).inversion_due


def test_a_pattern_is_inverted_once_even_if_the_ledger_is_lost() -> None:
    anti = make_pattern("pat-anti-sample-001", PatternType.ANTI, inverted_from=ID)
    assert not make_board(make_pattern(recorded_counts=make_recorded_counts(2, 5)), anti).assessment(ID).inversion_due


def test_sightings_alone_change_no_state_at_any_place() -> None:
    seen = tuple(make_event(n, "extracted", days_ago(n), loop_id=f"loop-{n}") for n in range(6))
    board = make_board(make_pattern(), events=seen, curation=pinned(Maturity.DEPRECATED))
    found = board.assessment(ID)
    assert (found.computed, found.uses, found.seen) == (Maturity.CANDIDATE, 0, 6)
    assert board.results_since_pin(ID) == (0, 0)
    replay = what_if(SETTINGS, board.history)
    assert (replay.events, replay.before[Maturity.CANDIDATE]) == (0, 1)


_FIX, _ANTI = "Check for null first", "pat-anti-sample-001"


def make_siblings(**of_warning: Any) -> tuple[Pattern, ...]:
    """One fix as error pattern, template and success pattern, another fix of the same loop, and a warning."""
    found: dict[str, Any] = {"source_loops": (make_source("a", days_ago(9)),), "first_discovered": days_ago(9)}
    return (
        make_pattern(ID, description=_FIX, **found),
        make_pattern("tmpl-null-001", PatternType.TEMPLATE, description=_FIX, **found),
        make_pattern("pat-success-null-001", PatternType.SUCCESS, steps=("Added a check for null",), **found),
        make_pattern("pat-error-other-001", description="Wait for the server", **found),
        make_pattern("tmpl-other-001", PatternType.TEMPLATE, description="Wait for the server", **found),
        make_pattern(_ANTI, PatternType.ANTI, first_discovered=days_ago(2), **of_warning),
    )


def test_what_recommends_an_inverted_fix_is_not_injected_beside_the_warning() -> None:
    board = make_board(*make_siblings(inverted_from=ID))
    warned = {id: board.assessment(id).warning_id for id in board.ids}
    assert {id for id, warning in warned.items() if warning == _ANTI} == {"tmpl-null-001", "pat-success-null-001"}
    assert all(board.assessment(id).injectable is not bool(warned[id]) for id in warned)
    without = make_board(*make_siblings())
    assert all(without.assessment(id).injectable for id in without.ids)


def test_a_pin_that_is_newer_than_the_warning_has_priority() -> None:
    for days, injectable in ((1, True), (3, False)):
        pins = {"tmpl-null-001": make_pin(Maturity.PROVEN, days_ago(days))}
        board = make_board(*make_siblings(inverted_from=ID), curation=CurationState(pins=pins))
        assert board.assessment("tmpl-null-001").injectable is injectable


def test_without_a_result_only_a_promotion_makes_it_effective() -> None:
    pattern = make_pattern()
    assert make_board(pattern).effectiveness.tolist() == [0.0]
    assert make_board(pattern, curation=pinned(Maturity.PROVEN)).effectiveness.tolist() == [1.0]


def test_hostile_counts_stay_numbers() -> None:
    pattern = make_pattern(recorded_counts=RecordedCounts(rate=0.3, uses=10**400), last_used=days_ago(10**4))
    found = make_board(pattern).assessment(ID)
    assert found.uses == 10**15 and found.interval[0] <= 0.3 <= found.interval[1]
    assert np.isfinite([found.helpful, found.harmful, found.score]).all()


def test_the_error_for_an_unknown_id_has_no_control_characters() -> None:
    with pytest.raises(UnknownRecord) as caught:
        make_board().assessment("x\x1b[2J")
    assert "\x1b" not in str(caught.value)


def test_a_half_life_of_zero_is_refused() -> None:
    with pytest.raises(BadInput, match="half_life_days"):
        make_board(settings=Settings(maturity=MaturitySettings(half_life_days=0)))


# Shortcuts give what a new board gives.


_PATTERN_IDS = ("pat-error-a-001", "pat-success-b-001", "pat-anti-c-001", "tmpl-d-001")
_TYPES = {
    "pat-error-a-001": PatternType.ERROR,
    "pat-success-b-001": PatternType.SUCCESS,
    "pat-anti-c-001": PatternType.ANTI,
    "tmpl-d-001": PatternType.TEMPLATE,
}
_AGES = st.integers(-20, 300).map(days_ago)
_RESULTS = st.sampled_from([True, False, None])


_ATTEMPTS = st.lists(
    st.builds(
        Attempt,
        task_id=st.just("task"),
        number=st.integers(1, 2),
        started_at=st.none() | st.integers(0, 9).map(days_ago),
        ended_at=st.just(days_ago(0)),
        outcome=st.sampled_from(Outcome),
        errors=st.none() | st.integers(0, 4),
        loop_id=st.sampled_from(["", "", "x", "y-alias"]),
    ),
    max_size=2,
).map(lambda found: {attempt.id: attempt for attempt in found})
_TASKS = st.sampled_from(["", "x", "x-alias", "x@archive", "shared", "gone"]).map(
    lambda loop_id: {"task": Task(id="task", loop_id=loop_id)}
)
_SESSIONS = st.lists(
    st.builds(
        DebugSession,
        id=st.sampled_from(["s1", "s2"]),
        loop_id=st.sampled_from(["x", "x-alias", "y", "shared", "task", "task.2", ""]),
        task_id=st.sampled_from(["task", "task.1", ""]),
        created_at=st.none() | st.integers(0, 9).map(days_ago),
        executions=st.integers(0, 4).map(
            lambda failed: (Execution(failures=tuple(Failure(test_name=str(n), message="m") for n in range(failed))),)
        ),
    ),
    max_size=2,
).map(lambda found: {session.id: session for session in found})
_TEAM = st.dictionaries(st.sampled_from(_PATTERN_IDS), st.integers(1, 9), max_size=2).map(
    lambda found: TeamEvidence(
        space="team",
        epoch=days_ago(30),
        half_life_days=90.0,
        sums={
            id: TeamSums(
                pattern_id=id, uses=n, successes=n, helpful=n / 2.0, undecayed=float(n), last_used=days_ago(10)
            )
            for id, n in found.items()
        },
    )
)
_ITERATIONS = st.builds(Iteration, outcome=st.sampled_from(Outcome))


@st.composite
def _patterns(draw: st.DrawFn) -> dict[str, Pattern]:
    ids = draw(st.lists(st.sampled_from(_PATTERN_IDS), unique=True, max_size=4))
    return {
        id: make_pattern(
            id,
            _TYPES[id],
            recorded_counts=draw(st.builds(make_recorded_counts, st.integers(0, 8), st.integers(0, 8))),
            last_used=draw(st.none() | _AGES),
            source_loops=draw(st.lists(st.builds(make_source, st.sampled_from("xy"), _AGES), max_size=2).map(tuple)),
            content_hash=draw(st.sampled_from(["seen", "changed"])),
            inverted_from=draw(st.sampled_from(["", "", *_PATTERN_IDS])),
            aliases=draw(st.sampled_from([(), (), *((other,) for other in _PATTERN_IDS if other != id)])),
            first_discovered=draw(st.sampled_from([None, days_ago(5), days_ago(9)])),
            description=draw(st.sampled_from(["Check for null", "Wait for it"])),
        )
        for id in ids
    }


@st.composite
def _loops(draw: st.DrawFn) -> dict[str, Loop]:
    uses = st.builds(make_use, st.sampled_from(_PATTERN_IDS), _RESULTS, iteration=st.integers(1, 2))
    extracted = st.builds(ExtractedPattern, pattern_id=st.sampled_from(_PATTERN_IDS))
    return {
        id: Loop(
            id=id,
            aliases=draw(st.sampled_from([(), (f"{id}-alias",), ("shared", "x")])),
            runner=draw(st.sampled_from(["", "", "claude"])),
            owner="claude",
            status=draw(st.sampled_from(LoopStatus)),
            iterations=draw(st.lists(_ITERATIONS, max_size=3).map(tuple)),
            started_at=draw(st.none() | _AGES),
            ended_at=draw(_AGES),
            injected=tuple(draw(st.lists(uses, max_size=3))),
            extracted=tuple(draw(st.lists(extracted, max_size=1))),
        )
        for id in draw(st.lists(st.sampled_from(["x", "y", "x@archive"]), unique=True))
    }


@st.composite
def _events(draw: st.DrawFn) -> tuple[Event, ...]:
    kinds = st.sampled_from(["applied", "feedback", "injected", "outcome", "error"])
    return tuple(
        make_event(
            number,
            draw(kinds),
            draw(_AGES),
            pattern_id=draw(st.sampled_from([*_PATTERN_IDS, ""])),
            loop_id=draw(st.sampled_from(["x", "x-alias", "x@archive", "shared", "task.1", "task.2", ""])),
            success=draw(_RESULTS),
            signals=draw(st.none() | st.builds(Signals, retry_count=st.integers(0, 3))),
        )
        for number in range(draw(st.integers(0, 6)))
    )


@st.composite
def _snapshots(draw: st.DrawFn) -> Snapshot:
    return Snapshot(
        patterns=draw(_patterns()),
        loops=draw(_loops()),
        tasks=draw(_TASKS),
        attempts=draw(_ATTEMPTS),
        debug_sessions=draw(_SESSIONS),
        events=draw(_events()),
        curation=draw(_curation()),
        foreign=draw(st.sampled_from([NOTHING_FOREIGN, ForeignRecords(frozenset(_PATTERN_IDS[:2]))])),
        team=draw(_TEAM),
    )


@st.composite
def _curation(draw: st.DrawFn) -> CurationState:
    pins: dict[str, Pin] = {}
    inversions: dict[str, InversionVerdict] = {}
    for id in draw(st.lists(st.sampled_from(_PATTERN_IDS), unique=True)):
        if draw(st.booleans()):
            state = draw(st.sampled_from([Maturity.PROVEN, Maturity.DEPRECATED]))
            pins[id] = make_pin(state, draw(_AGES), successes=draw(st.integers(0, 5)))
        else:
            word = draw(st.sampled_from(["accepted", "rejected", "snoozed"]))
            inversions[id] = InversionVerdict(verdict=word, at=NOW, until=draw(_AGES))
    verdicts = st.builds(
        BurstVerdict,
        verdict=st.sampled_from(["revoked", "confirmed"]),
        patterns=st.lists(st.sampled_from(_PATTERN_IDS), unique=True).map(tuple),
        first=_AGES,
        last=_AGES,
        decision_id=st.just("d"),
    )
    bursts = draw(st.dictionaries(st.sampled_from(["x", "shared", "by "]), st.lists(verdicts, max_size=2).map(tuple)))
    return CurationState(pins=pins, inversions=inversions, bursts=bursts)


def entries(board: Scoreboard) -> list[tuple[object, ...]]:
    dated = board.use_times
    columns = (dated.rows.tolist(), dated.at.tolist(), dated.kinds.tolist(), dated.counts.tolist())
    return sorted((board.ids[row], *rest) for row, *rest in zip(*columns, strict=True))


def same(one: Scoreboard, other: Scoreboard) -> None:
    assert sorted(one.ids) == sorted(other.ids)
    assert entries(one) == entries(other)
    for id in one.ids:
        left, right = (msgspec.structs.asdict(board.assessment(id)) for board in (one, other))
        for key in ("helpful", "harmful", "score"):
            assert left.pop(key) == pytest.approx(right.pop(key), rel=1e-12, abs=1e-15)
        assert one.assessment(id).interval == pytest.approx(other.assessment(id).interval)
        for values in (left, right):
            del values["known_interval"]
        changes = left.pop("next_change"), right.pop("next_change")
        assert (changes[0] is None) == (changes[1] is None)
        if changes[0] is not None and changes[1] is not None:
            assert changes[0][1] == changes[1][1]
            assert abs(changes[0][0] - changes[1][0]) <= timedelta(seconds=2)
        assert left == right


SUSPICIOUS = Settings(learning=LearningSettings(max_marks=1, burst_minutes=3 * 24 * 60))
"""Thresholds under which what is drawn here holds bursts now and then."""


@settings(max_examples=25)
@given(_snapshots(), st.integers(-40, 40), st.integers(0, 500))
def test_rescored_equals_a_new_board_at_that_time(snapshot: Snapshot, first: int, second: int) -> None:
    board = Scoreboard.build(snapshot, NOW, SUSPICIOUS)
    for days in (first, second):
        now = NOW + timedelta(days=days)
        board = board.rescored(now)
        same(board, Scoreboard.build(snapshot, now, SUSPICIOUS))


def inputs_of(snapshot: Snapshot) -> EvidenceInputs:
    return EvidenceInputs.of(snapshot, SUSPICIOUS.learning)


@settings(max_examples=25)
@given(_snapshots(), st.integers(-40, 500))
def test_saved_scores_restore_the_same_board(snapshot: Snapshot, days: int) -> None:
    saved = msgspec.msgpack.encode(Scoreboard.build(snapshot, NOW, SUSPICIOUS).saved())
    now = NOW + timedelta(days=days)
    restored = Scoreboard.restore(msgspec.msgpack.decode(saved, type=SavedScores), inputs_of(snapshot), now, SUSPICIOUS)
    same(restored, Scoreboard.build(snapshot, now, SUSPICIOUS))


def test_saved_scores_that_do_not_fit_are_refused() -> None:
    snapshot = Snapshot(patterns={ID: make_pattern(ID)})
    saved = Scoreboard.build(snapshot, NOW, SETTINGS).saved()
    short = {name: value[:-1] for name, value in saved.columns.items()}
    rows = saved.use_times | {"rows": np.array([1], np.int32).tobytes()}
    wrong: list[dict[str, Any]] = [
        {"ids": ()},
        {"ids": (ID, ID)},
        {"columns": short},
        {"columns": {}},
        {"use_times": rows},
        {"interval": (b"", b"")},
        {"epoch": saved.filled + 1},
    ]
    for values in wrong:
        with pytest.raises((ValueError, KeyError)):
            Scoreboard.restore(msgspec.structs.replace(saved, **values), inputs_of(snapshot), NOW, SETTINGS)


@settings(max_examples=25)
@given(_snapshots(), st.integers(-40, 500))
def test_vectors_and_direct_sums_agree(snapshot: Snapshot, days: int) -> None:
    now = NOW + timedelta(days=days)
    board = Scoreboard.build(snapshot, NOW, SUSPICIOUS).rescored(now)
    for id in board.ids:
        helpful, harmful = decayed_counts(board.all_results(id), now, SUSPICIOUS.maturity)
        row = board.row(id)
        assert board.helpful[row] == pytest.approx(helpful, rel=1e-12, abs=1e-300)
        assert board.harmful[row] == pytest.approx(harmful, rel=1e-12, abs=1e-300)


@settings(max_examples=25)
@given(_snapshots(), _snapshots(), st.integers(0, 6), st.integers(-10, 40))
def test_updated_equals_a_new_board(before: Snapshot, new: Snapshot, known: int, days: int) -> None:
    old = replace(before, events=new.events[:known])
    now = NOW + timedelta(days=days)
    board = Scoreboard.build(old, NOW, SUSPICIOUS).updated(new, _difference(old, new), now)
    fresh = Scoreboard.build(new, now, SUSPICIOUS)
    same(board, fresh)
    assert board.bursts == fresh.bursts
    assert set(board.finished()) == set(fresh.finished())
    assert all(board.loop_patterns(id) == fresh.loop_patterns(id) for id in new.loops)
    later = now + timedelta(days=3)
    same(board.rescored(later), Scoreboard.build(new, later, SUSPICIOUS))


@settings(max_examples=20)
@given(_snapshots(), _snapshots(), st.lists(st.tuples(_events(), st.booleans(), st.booleans()), max_size=4))
def test_updates_from_a_growing_log_equal_a_new_board(
    first: Snapshot, second: Snapshot, steps: list[tuple[tuple[Event, ...], bool, bool]]
) -> None:
    log = GrowingLog()
    snapshot = replace(first, events=EventView(log))
    board = Scoreboard.build(snapshot, NOW, SUSPICIOUS)
    for step, (added, is_undone, is_replaced) in enumerate(steps):
        for event in added:
            decision = "d" if event.success is None else ""
            log.add(msgspec.structs.replace(event, id=f"{event.id}-{step}", decision=decision))
        source = second if is_replaced else snapshot
        after = replace(source, events=EventView(log, frozenset("d" if is_undone else "")))
        delta = _difference(snapshot, after)
        earlier, board, snapshot = board, board.updated(after, delta, NOW), after
        fresh = Scoreboard.build(replace(after, events=tuple(after.events)), NOW, SUSPICIOUS)
        same(board, fresh)
        assert board.bursts == fresh.bursts
        assert set(board.finished()) == set(fresh.finished())
        assert all(board.loop_patterns(id) == fresh.loop_patterns(id) for id in after.loops)
        changed = board.changed_work
        if changed is not None:  # what worked in other loops is the same
            others = after.loops.keys() - changed
            assert all(find_worked(id, board) == find_worked(id, earlier) for id in others)


def _difference(old: Snapshot, new: Snapshot) -> Delta:
    def changed(one: Mapping[str, object], other: Mapping[str, object]) -> frozenset[str]:
        return frozenset(id for id in one.keys() | other.keys() if one.get(id) != other.get(id))

    return Delta(
        patterns=changed(old.patterns, new.patterns),
        loops=changed(old.loops, new.loops),
        tasks=changed(old.tasks, new.tasks),
        attempts=changed(old.attempts, new.attempts),
        debug_sessions=changed(old.debug_sessions, new.debug_sessions),
        team=old.team.changed_patterns(new.team),
        events=old.events != new.events,
        decisions=old.curation != new.curation,
    )


def test_a_use_by_an_attempt_at_the_task_of_a_loop_is_a_use_by_that_loop() -> None:
    loop = Loop(id="x", aliases=("x-alias",), ended_at=days_ago(2), injected=(make_use(ID, True),))
    tasks = {"t": Task(id="t", loop_id="x-alias"), "u": Task(id="u", loop_id="gone")}
    attempts = {id: Attempt(task_id=id[0], number=int(id[2])) for id in ("t.1", "t.2", "u.1")}
    feedback = tuple(make_event(n, "feedback", days_ago(1), loop_id=id, success=True) for n, id in enumerate(attempts))
    snapshot = Snapshot(
        patterns={ID: make_pattern()}, loops={"x": loop}, tasks=tasks, attempts=attempts, events=feedback[:2]
    )
    (one,) = Scoreboard.build(snapshot, NOW, SETTINGS).observations(ID)
    assert (one.loop_id, one.success) == ("x", True)
    other = Scoreboard.build(replace(snapshot, events=feedback), NOW, SETTINGS)
    assert [seen.loop_id for seen in other.observations(ID)] == ["u.1", "x"]


def test_a_rewritten_event_log_is_read_again() -> None:
    pattern = make_pattern()
    old = (make_event(1, "feedback", days_ago(1), success=True), make_event(2, "feedback", days_ago(1), success=True))
    new = (make_event(3, "feedback", days_ago(1), success=False),)
    board = make_board(pattern, events=old)
    found = board.updated(Snapshot(patterns={ID: pattern}, events=new), Delta(events=True), NOW).assessment(ID)
    assert (found.successes, found.failures) == (0, 1)


def test_sums_do_not_overflow_with_a_short_half_life() -> None:
    fast = Settings(maturity=MaturitySettings(half_life_days=0.001))
    pattern = make_pattern(recorded_counts=make_recorded_counts(9, 0), last_used=NOW)
    board = make_board(pattern, settings=fast)
    later: datetime = NOW + timedelta(days=100)
    fresh = {ID: make_pattern(recorded_counts=make_recorded_counts(9, 1), last_used=later)}
    updated = board.updated(Snapshot(patterns=fresh), Delta(patterns=frozenset({ID})), later)
    assert updated.assessment(ID).helpful == pytest.approx(9)
    assert board.rescored(later).assessment(ID).helpful == 0.0


def test_a_pattern_is_assessed_once_at_each_time() -> None:
    board = Scoreboard.build(Snapshot(patterns=example_patterns()), NOW, Settings())
    first = board.assessment(NULL_CHECK_001)
    assert board.assessment(NULL_CHECK_001) is first
    assert board.rescored(NOW + timedelta(days=1)).assessment(NULL_CHECK_001) is not first
