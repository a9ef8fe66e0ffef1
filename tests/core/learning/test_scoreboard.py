from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import UnknownRecord
from core.base.settings import MaturitySettings, Settings
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.explanation import describe_team_sums
from core.learning.maturity import decayed_counts
from core.learning.scoreboard import Assessment, Scoreboard
from core.learning.threshold_replay import what_if
from core.records.decisions import CurationState, InversionVerdict, UnreviewedText
from core.records.episodes import Attempt, Task
from core.records.events import Event, EventView, GrowingLog, Observation
from core.records.loops import Loop
from core.records.patterns import Maturity, Pattern, PatternType, RecordedCounts
from core.records.snapshot import Delta, Snapshot
from core.records.team import TeamEvidence, TeamSums
from core.retrieval.past_tasks import find_worked
from core.sources.team_evidence import TeamEvidenceLog, encode_evidence
from tests.drawn_snapshots import SUSPICIOUS, events, find_difference, same, snapshots
from tests.factories import (
    NOW,
    SETTINGS,
    days_ago,
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


def test_a_recorded_rate_is_shown_only_if_its_counts_match() -> None:
    pattern = make_pattern(recorded_counts=RecordedCounts(rate=0.92, uses=12))
    loops = {name: Loop(id=name, ended_at=NOW, injected=(make_use(ID, False),)) for name in "abc"}
    assert make_board(pattern).assessment(ID).rate == 0.92
    assert make_board(pattern, loops=loops).assessment(ID).rate == 0.75


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
    pattern = make_pattern(recorded_counts=make_recorded_counts(6, 0), last_used=NOW)
    change = make_board(pattern).next_change(ID)
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


# Shortcuts give what a new board gives.


@settings(max_examples=25)
@given(snapshots(), st.integers(-40, 40), st.integers(0, 500))
def test_rescored_equals_a_new_board_at_that_time(snapshot: Snapshot, first: int, second: int) -> None:
    board = Scoreboard.build(snapshot, NOW, SUSPICIOUS)
    for days in (first, second):
        now = NOW + timedelta(days=days)
        board = board.rescored(now)
        same(board, Scoreboard.build(snapshot, now, SUSPICIOUS))


@settings(max_examples=25)
@given(snapshots(), st.integers(-40, 500))
def test_vectors_and_direct_sums_agree(snapshot: Snapshot, days: int) -> None:
    now = NOW + timedelta(days=days)
    board = Scoreboard.build(snapshot, NOW, SUSPICIOUS).rescored(now)
    for id in board.ids:
        helpful, harmful = decayed_counts(board.all_results(id), now, SUSPICIOUS.maturity)
        row = board.row(id)
        assert board.helpful[row] == pytest.approx(helpful, rel=1e-12, abs=1e-300)
        assert board.harmful[row] == pytest.approx(harmful, rel=1e-12, abs=1e-300)


@settings(max_examples=25)
@given(snapshots(), snapshots(), st.integers(0, 6), st.integers(-10, 40))
def test_updated_equals_a_new_board(before: Snapshot, new: Snapshot, known: int, days: int) -> None:
    old = replace(before, events=new.events[:known])
    now = NOW + timedelta(days=days)
    board = Scoreboard.build(old, NOW, SUSPICIOUS).updated(new, find_difference(old, new), now)
    fresh = Scoreboard.build(new, now, SUSPICIOUS)
    same(board, fresh)
    assert board.bursts == fresh.bursts
    assert set(board.inputs.finished()) == set(fresh.inputs.finished())
    assert all(board.inputs.loop_patterns(id) == fresh.inputs.loop_patterns(id) for id in new.loops)
    later = now + timedelta(days=3)
    same(board.rescored(later), Scoreboard.build(new, later, SUSPICIOUS))


@settings(max_examples=20)
@given(snapshots(), snapshots(), st.lists(st.tuples(events(), st.booleans(), st.booleans()), max_size=4))
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
        delta = find_difference(snapshot, after)
        earlier, board, snapshot = board, board.updated(after, delta, NOW), after
        fresh = Scoreboard.build(replace(after, events=tuple(after.events)), NOW, SUSPICIOUS)
        same(board, fresh)
        assert board.bursts == fresh.bursts
        assert set(board.inputs.finished()) == set(fresh.inputs.finished())
        assert all(board.inputs.loop_patterns(id) == fresh.inputs.loop_patterns(id) for id in after.loops)
        changed = board.inputs.changed_work
        if changed is not None:  # what worked in other loops is the same
            others = after.loops.keys() - changed
            assert all(find_worked(id, board) == find_worked(id, earlier) for id in others)


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


IDS = ("pat-a", "pat-b", "pat-c")
MERGED = "pat-old"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = SETTINGS.maturity.half_life_days
ARRAYS = (
    *("successes", "failures", "uses", "injected_only", "helpful", "harmful", "injections", "rate", "last_used"),
    *("score", "faded", "injectable", "inversion_due", "contradicted", "state_codes", "computed_codes"),
)


def sum_up(id: str, observations: Iterable[Observation], half_life: float = DAYS) -> TeamSums:
    """Return the sums of some uses as the server of a team computes them."""
    sums = TeamSums(pattern_id=id)
    for use in observations:
        weight = use.weight * use.count
        factor = 0.0 if use.at is None else 2.0 ** ((use.at - EPOCH) / timedelta(days=half_life))
        is_use, good, bad = use.kind != "injected", use.success is True, use.success is False
        sums += TeamSums(
            pattern_id=id,
            successes=use.count * good,
            failures=use.count * bad,
            uses=use.count * is_use,
            injected_only=use.count * (not is_use),
            helpful=weight * factor * good,
            harmful=weight * factor * bad,
            injections=use.count * factor,
            fixed_helpful=weight * good * (use.at is None),
            fixed_harmful=weight * bad * (use.at is None),
            fixed_injections=use.count * (use.at is None),
            undecayed=weight * (good or bad),
            last_used=use.at if is_use else None,
        )
    return sums


def make_team(*sums: TeamSums, half_life: float = DAYS) -> TeamEvidence:
    """Return the sums as they are read from a file, without findings."""
    evidence = TeamEvidence("web", EPOCH, half_life, {one.pattern_id: one for one in sums})
    log = TeamEvidenceLog(".aiwg/ralph/shared/team/evidence.jsonl")
    log.read(b"".join(encode_evidence(evidence)))
    assert log.findings == ()
    return log.evidence


def make_uses(successes: int, failures: int, days: float, half_life: float = DAYS, id: str = ID) -> TeamSums:
    uses = [(True, successes), (False, failures)]
    return sum_up(
        id,
        [
            Observation(pattern_id=id, kind="applied", source="loop", at=days_ago(days), success=success, count=count)
            for success, count in uses
        ],
        half_life,
    )


def build(snapshot: Snapshot, now: datetime = NOW, thresholds: Settings = SETTINGS) -> Scoreboard:
    return Scoreboard.build(snapshot, now, thresholds)


def board_of(pattern: Pattern, *sums: TeamSums, half_life: float = DAYS, thresholds: Settings = SETTINGS) -> Scoreboard:
    team = make_team(*sums, half_life=half_life)
    return build(Snapshot(patterns={pattern.id: pattern}, team=team), thresholds=thresholds)


def assert_equal(one: Scoreboard, other: Scoreboard, *, has_future_uses: bool = False) -> None:
    """Compare all arrays; a use in the future is counted in `injections` when it is summed up, not as time passes."""
    assert sorted(one.ids) == sorted(other.ids)
    rows, others = one.rows_of(one.ids), other.rows_of(one.ids)
    for name in [name for name in ARRAYS if name != "injections" or not has_future_uses]:
        np.testing.assert_allclose(getattr(one, name)[rows], getattr(other, name)[others], 1e-9, 1e-9, err_msg=name)
    for found, expected in zip(one.interval, other.interval, strict=True):
        np.testing.assert_allclose(found[rows], expected[others], 1e-9)
    for id in one.ids:
        changes = one.next_change(id), other.next_change(id)
        assert (changes[0] is None) == (changes[1] is None)
        if changes[0] is not None and changes[1] is not None:
            assert changes[0][1] == changes[1][1]
            assert abs(changes[0][0] - changes[1][0]) <= timedelta(seconds=2)


KINDS = (("applied", True), ("applied", False), ("applied", None), ("feedback", True), ("feedback", False))
uses = st.tuples(
    st.sampled_from((*IDS, MERGED)),
    st.sampled_from((*KINDS, ("injected", None))),
    st.floats(-2, 900),  # age in days; below 0 in the future
    st.sampled_from((1.0, 0.5, 0.25)),
    st.booleans(),  # whether another project has the use
)
patterns = {
    "pat-a": make_pattern("pat-a", aliases=(MERGED,)),
    "pat-b": make_pattern("pat-b"),
    "pat-c": make_pattern("pat-c", type=PatternType.ANTI),
}


def make_snapshot(
    found: Sequence[tuple[str, tuple[str, bool | None], float, float, bool]], *, others: bool
) -> Snapshot:
    events: list[Event] = []
    loops: dict[str, Loop] = {}
    for number, (id, (kind, success), days, weight, is_other) in enumerate(found):
        if is_other is not others:
            continue
        age = max(days, 0.0) if is_other else days  # a server counts a use at the time of its arrival at the latest
        name = f"loop-{number}"
        if days > 880 and success is not None:
            loops[name] = Loop(id=name, injected=(make_use(id, success),))  # a use without a time
        else:
            fields = {"pattern_id": id, "loop_id": name, "success": success, "weight": weight}
            events.append(make_event(number, kind, days_ago(age), **fields))
    return Snapshot(patterns=patterns, events=tuple(sorted(events, key=lambda one: one.at)), loops=loops)


def share(local: Snapshot, others: Snapshot, half_life: float = DAYS) -> Snapshot:
    board = build(others)
    sums = [sum_up(id, board.observations(id), half_life) for id in others.patterns]
    return replace(local, team=make_team(*(one for one in sums if not one.is_empty), half_life=half_life))


@given(st.lists(uses, max_size=40), st.floats(0, 2000))
def test_evidence_split_over_projects_scores_as_in_one(
    found: list[tuple[str, tuple[str, bool | None], float, float, bool]], days: float
) -> None:
    local, others = make_snapshot(found, others=False), make_snapshot(found, others=True)
    events = tuple(sorted((*local.events, *others.events), key=lambda one: one.at))
    whole = build(replace(local, events=events, loops={**local.loops, **others.loops}))
    part = build(share(local, others))
    assert_equal(part, whole)
    later = NOW + timedelta(days=days)
    assert_equal(part.rescored(later), whole.rescored(later))
    has_future_uses = any(age < 0 for _, _, age, _, _ in found)
    assert_equal(part.rescored(later), build(share(local, others), later), has_future_uses=has_future_uses)


@settings(max_examples=40)
@given(st.lists(st.lists(uses, max_size=12), min_size=2, max_size=5), st.sampled_from((DAYS, 10.0)), st.floats(0, 90))
def test_updates_equal_a_board_from_nothing(
    steps: list[list[tuple[str, tuple[str, bool | None], float, float, bool]]], half_life: float, days: float
) -> None:
    known: list[tuple[str, tuple[str, bool | None], float, float, bool]] = []
    snapshot, now = Snapshot(patterns=patterns), NOW
    board = build(snapshot)
    for number, step in enumerate(steps):
        known += step
        before, now = snapshot, now + timedelta(days=days)
        snapshot = share(make_snapshot(known, others=False), make_snapshot(known, others=True), half_life)
        if number % 2:  # the merged pattern has its own record again
            snapshot = replace(snapshot, patterns={**patterns, MERGED: make_pattern(MERGED)})
        delta = Delta(
            team=before.team.changed_patterns(snapshot.team),
            events=before.events != snapshot.events,
            loops=frozenset(before.loops.keys() ^ snapshot.loops.keys()),
            patterns=frozenset(before.patterns.keys() ^ snapshot.patterns.keys()),
        )
        board = board.updated(snapshot, delta, now)
        assert_equal(board, build(snapshot, now), has_future_uses=any(age < 0 for _, _, age, _, _ in known))


def test_a_change_of_sums_recomputes_only_the_patterns_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"pat-{n}": make_pattern(f"pat-{n}", aliases=(f"old-{n}",)) for n in range(50)}
    snapshot = Snapshot(patterns=many, team=make_team(*(make_uses(n + 1, 0, 3, id=f"old-{n}") for n in range(50))))
    board = build(snapshot)
    sums = {**snapshot.team.sums, "old-7": make_uses(0, 9, 1, id="old-7")}
    after = replace(snapshot, team=msgspec.structs.replace(snapshot.team, sums=sums))
    seen: list[str] = []
    observations = EvidenceInputs.observations

    def recorded(inputs: EvidenceInputs, pattern: Pattern) -> tuple[Observation, ...]:
        seen.append(pattern.id)
        return observations(inputs, pattern)

    monkeypatch.setattr(EvidenceInputs, "observations", recorded)
    updated = board.updated(after, Delta(team=snapshot.team.changed_patterns(after.team)), NOW)
    assert seen == ["pat-7"]
    assert updated.results("pat-7") == (0, 9) and updated.results("pat-8") == (9, 0)


def test_sums_of_patterns_without_a_record_are_ignored() -> None:
    board = board_of(make_pattern(), make_uses(5, 0, 1, id="pat-unknown"))
    assert board.results(ID) == (0, 0) and board.team_sums(ID) is None
    assert_equal(board, build(Snapshot(patterns={ID: make_pattern()})))


def test_without_sums_every_value_is_that_of_the_project_alone() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(9, 1), last_used=days_ago(3))
    alone = build(Snapshot(patterns={ID: pattern}))
    assert not alone.columns.differs(board_of(pattern).columns).any()
    assert alone.all_results(ID) == alone.observations(ID)


def test_records_are_compared_with_the_evidence_of_this_project_alone() -> None:
    pattern = make_pattern(recorded_counts=make_recorded_counts(2, 0), last_used=days_ago(3))
    found = board_of(pattern, make_uses(50, 3, 1))
    assert found.reconcile(ID) == build(Snapshot(patterns={ID: pattern})).reconcile(ID)
    assert found.results(ID) == (52, 3) and found.team_uses.tolist() == [53]


def test_a_pattern_that_fails_elsewhere_needs_a_decision_about_its_inversion() -> None:
    assert board_of(make_pattern(), make_uses(0, 30, 1)).assessment(ID).inversion_due


@pytest.mark.parametrize("days", [0.0, 30.0, 400.0])
def test_sums_with_another_half_life_decay_by_it_until_the_last_use(days: float) -> None:
    thresholds = Settings(maturity=MaturitySettings(half_life_days=10))
    board = board_of(make_pattern(), make_uses(8, 0, days, half_life=60), half_life=60, thresholds=thresholds)
    assert board.helpful.tolist() == pytest.approx([8 * 0.5 ** (days / 10)])
    older = make_uses(8, 0, days + 60, half_life=60) + make_uses(8, 0, days, half_life=60)
    mixed = board_of(make_pattern(), older, half_life=60, thresholds=thresholds)
    assert mixed.helpful.tolist() == pytest.approx([12 * 0.5 ** (days / 10)])
    later = NOW + timedelta(days=20)
    assert mixed.rescored(later).helpful.tolist() == pytest.approx([3 * 0.5 ** (days / 10)])


def test_a_use_after_now_counts_as_now_until_its_time_comes() -> None:
    board = board_of(make_pattern(), make_uses(4, 0, -2))
    assert board.helpful.tolist() == pytest.approx([4.0])
    assert board.rescored(NOW + timedelta(days=2)).helpful.tolist() == pytest.approx([4.0])
    assert board.rescored(NOW + timedelta(days=2 + DAYS)).helpful.tolist() == pytest.approx([2.0])


def test_the_largest_sums_stay_finite() -> None:
    fast = Settings(maturity=MaturitySettings(half_life_days=0.001))
    sums = TeamSums(
        pattern_id=ID, successes=10**15, uses=10**15, helpful=1e308, injections=1e308, undecayed=1e15, last_used=NOW
    )
    merged = TeamSums(pattern_id="b", uses=10**15)
    team = TeamEvidence("web", EPOCH, DAYS, {ID: sums, "b": merged})
    board = build(Snapshot(patterns={ID: make_pattern(aliases=("b",))}, team=team), thresholds=fast)
    for days in (0, 1, 400):
        found = board.rescored(NOW + timedelta(days=days))
        for name in ("helpful", "injections", "score", "uses"):
            assert np.isfinite(getattr(found, name)).all() and (getattr(found, name) >= 0).all()


def test_other_thresholds_are_replayed_with_the_sums() -> None:
    board = board_of(make_pattern(), make_uses(20, 0, 1))
    stricter = Settings(maturity=MaturitySettings(min_helpful=25))
    (turn,) = what_if(stricter, board.history).turns
    assert (turn.before.state, turn.after.state) == (Maturity.PROVEN, Maturity.ESTABLISHED)
    assert turn.before.state == board.assessment(ID).state


@pytest.mark.parametrize(("days", "newest"), [(3.5, ", newest 3 d ago"), (1, ", newest 24 h ago"), (0, ", newest now")])
def test_sums_are_described_in_one_line(days: float, newest: str) -> None:
    described = describe_team_sums(make_uses(12, 3, days), NOW)
    assert described == f"other projects of the team: 12 helpful, 3 harmful{newest}"
