"""Snapshots for property tests, drawn so that their few records have much to do with each other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import msgspec
import pytest
from hypothesis import strategies as st

from core.base.settings import LearningSettings, Settings
from core.learning.scoreboard import Scoreboard
from core.records.debug_sessions import DebugSession, Execution, Failure
from core.records.decisions import BurstVerdict, CurationState, InversionVerdict, Pin
from core.records.episodes import Attempt, Task
from core.records.events import Event, Signals
from core.records.loops import ExtractedPattern, Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import Maturity, Pattern, PatternType
from core.records.snapshot import NOTHING_FOREIGN, Delta, ForeignRecords, Snapshot
from core.records.team import TeamEvidence, TeamSums
from tests.factories import (
    NOW,
    days_ago,
    make_event,
    make_pattern,
    make_pin,
    make_recorded_counts,
    make_source,
    make_use,
)

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
def events(draw: st.DrawFn) -> tuple[Event, ...]:
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
def snapshots(draw: st.DrawFn) -> Snapshot:
    return Snapshot(
        patterns=draw(_patterns()),
        loops=draw(_loops()),
        tasks=draw(_TASKS),
        attempts=draw(_ATTEMPTS),
        debug_sessions=draw(_SESSIONS),
        events=draw(events()),
        curation=draw(curations()),
        foreign=draw(st.sampled_from([NOTHING_FOREIGN, ForeignRecords(frozenset(_PATTERN_IDS[:2]))])),
        team=draw(_TEAM),
    )


@st.composite
def curations(draw: st.DrawFn) -> CurationState:
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
        changes = one.next_change(id), other.next_change(id)
        assert (changes[0] is None) == (changes[1] is None)
        if changes[0] is not None and changes[1] is not None:
            assert changes[0][1] == changes[1][1]
            assert abs(changes[0][0] - changes[1][0]) <= timedelta(seconds=2)
        assert left == right


SUSPICIOUS = Settings(learning=LearningSettings(max_marks=1, burst_minutes=3 * 24 * 60))
"""Thresholds under which what is drawn here holds bursts now and then."""


def find_difference(old: Snapshot, new: Snapshot) -> Delta:
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
