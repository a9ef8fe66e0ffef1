"""Evidence of a team: sums of other projects count like uses of this one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.settings import MaturitySettings, Settings
from core.learning.evidence_inputs import EvidenceInputs
from core.learning.explanation import describe_team_sums
from core.learning.scoreboard import Scoreboard
from core.learning.threshold_replay import what_if
from core.records.events import Event, Observation
from core.records.loops import Loop
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import Delta, Snapshot
from core.records.team import TeamEvidence, TeamSums
from core.sources.team_evidence import TeamEvidenceLog, encode_evidence
from tests.factories import NOW, SETTINGS, days_ago, make_event, make_pattern, make_recorded_counts, make_use

ID = "pat-error-sample-001"
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
