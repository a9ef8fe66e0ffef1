"""The event log: invalid lines do not affect others."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.errors import BadInput, Unwritable
from core.base.paths import ProjectPaths
from core.records.events import ASSIGNED, TRIAL_OUTCOME, ErrorNote, ErrorType, Event, Signals, Trial
from core.records.findings import Finding
from core.sources.events import KINDS, append_events, read_events

APPENDED = Event(
    id="e1",
    at=datetime(2026, 5, 3, 12, 0, 0, 500, tzinfo=UTC),
    kind="applied",
    pattern_id="pat-error-a-001",
    loop_id="ralph-a-00000001",
    success=True,
    by="alice",
)

FILE = ".aiwg/ralph/shared/curation/events.jsonl"
EVENT = {"id": "e1", "at": "2026-05-03T10:00:00Z", "kind": "applied", "pattern_id": "p", "success": True}

trials = st.builds(
    Trial,
    task=st.text(max_size=8),
    share=st.floats(0, 1),
    is_held_out=st.booleans(),
    returned=st.none() | st.booleans(),
    steps=st.none() | st.integers(0, 99),
)
events = st.builds(
    Event,
    id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    at=st.datetimes(timezones=st.just(UTC), min_value=datetime(1990, 1, 1)),  # noqa: DTZ001
    kind=st.sampled_from(sorted(KINDS)),
    pattern_id=st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    success=st.none() | st.booleans(),
    weight=st.floats(0, 1),
    iteration=st.none() | st.integers(0, 99),
    criterion=st.sampled_from(["", "type_safe"]),
    signals=st.none()
    | st.builds(
        Signals,
        duration_ms=st.none() | st.floats(0, 1e9),
        error_count=st.none() | st.integers(0, 99),
        strategy=st.sampled_from(["", "file-based"]),
    ),
    error=st.none() | st.builds(ErrorNote, error_type=st.sampled_from(ErrorType), message=st.just("x")),
    trial=trials,
).map(lambda event: event if event.kind in (ASSIGNED, TRIAL_OUTCOME) else replace(event, trial=None))


def read(data: bytes) -> tuple[tuple[Event, ...], tuple[Finding, ...]]:
    events, findings = read_events(FILE, data)
    return tuple(events), findings


@pytest.mark.parametrize("trial", [None, 3, {"task": "t"}, {"task": "t", "share": 2}])
def test_an_event_of_an_experiment_needs_a_valid_trial(trial: object) -> None:
    found, findings = read(line(kind=ASSIGNED, **({"trial": trial} if trial is not None else {})))
    assert not found and [one.code for one in findings] == ["bad-event"]


def line(**fields: Any) -> bytes:
    return json.dumps({**EVENT, **fields}).encode() + b"\n"


@given(st.lists(events, unique_by=lambda event: event.id, max_size=5))
def test_reading_returns_what_was_written(written: list[Event]) -> None:
    data = b"".join(msgspec.json.encode(event) + b"\n" for event in written)
    assert read(data) == (tuple(written), ())


def test_an_incomplete_last_line_is_not_an_event() -> None:
    found, findings = read(line() + line(id="e2")[:-1])
    assert [event.id for event in found] == ["e1"]
    assert findings == ()


def test_an_event_written_twice_counts_once() -> None:
    found, findings = read(line() + line(success=False))
    assert [event.success for event in found] == [True]
    assert [(finding.code, finding.pointer) for finding in findings] == [("duplicate-id", "line 2")]


@pytest.mark.parametrize(
    "at", ["2026-05-03T12:00:00+02:00", "2026-05-03T10:00:00", 1777802400, 1777802400000, "2026-05-03 10:00"]
)
def test_every_time_is_utc(at: Any) -> None:
    ((event,), findings) = read(line(at=at))
    assert event.at == datetime(2026, 5, 3, 10, tzinfo=UTC)
    assert event.at.utcoffset() is not None
    assert findings == ()


def test_an_invalid_field_is_a_finding_and_the_others_count() -> None:
    for weight in (-1, 2, "much", float("nan")):
        ((event,), findings) = read(line(weight=weight))
        assert (event.weight, len(findings)) == (1, 1)
    parsed = {"duration_ms": -1, "error_count": 2.5, "retry_count": 1, "strategy": "file-based"}
    (event,), findings = read(line(kind="outcome", signals=parsed))
    assert event.signals == Signals(retry_count=1, strategy="file-based")
    assert [finding.message for finding in findings] == [
        "signals/duration_ms: expected a number of at least 0, found '-1'",
        "signals/error_count: expected a whole number of at least 0, found '2.5'",
    ]
    (event,), (finding,) = read(line(kind="error", error={"error_type": "sigh", "message": "m"}))
    assert event.error == ErrorNote(error_type=ErrorType.UNKNOWN, message="m")
    assert finding.code == "wrong-type"


def test_an_invalid_line_does_not_affect_others() -> None:
    rows: list[bytes] = [
        b"nonsense\n",
        b"[]\n",
        b"{}\n",
        line(kind="guessed"),
        line(id=""),
        line(at="soon"),
        b"[" * 999 + b"\n",
    ]
    for bad in rows:
        found, findings = read(line(id="e1") + bad + line(id="e3"))
        assert [event.id for event in found] == ["e1", "e3"], bad
        assert {finding.pointer for finding in findings} == {"line 2"}, bad


@given(st.binary(max_size=300))
def test_garbage_never_raises(data: bytes) -> None:
    read(data + b"\n")


def test_a_changed_counted_event_is_rejected() -> None:
    rows: list[Any] = [
        {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "count": 0},
        {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "count": 10**16},
        {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "count": -3},
        {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "weight": 9.5},
        {"pattern_id": "p", "kind": "applied", "source": "event-log"},
        {"pattern_id": "other", "kind": "aggregate", "source": "aggregate"},
        {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "at": "2026-05-03T10:00:00"},
        {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "at": "yesterday"},
        "aggregate",
    ]
    for observation in rows:
        good = {"pattern_id": "p", "kind": "aggregate", "source": "aggregate", "at": "2026-05-03T10:00:00Z", "count": 3}
        (found,), findings = read(line(kind="counted", success=None, unrecorded=[good]))
        assert ([read_back.count for read_back in found.unrecorded], findings) == ([3], ()), observation
        found_too, (finding,) = read(line(kind="counted", success=None, unrecorded=[good, observation]))
        assert (found_too, finding.code) == ((), "bad-event"), observation


def test_appended_events_are_read_back(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    append_events(paths, APPENDED)
    assert read(paths.events.read_bytes()) == ((APPENDED,), ())


def test_a_lone_surrogate_is_refused_before_writing(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path)
    with pytest.raises(BadInput):
        append_events(paths, Event(id="\ud800", at=APPENDED.at, kind="applied"))
    assert not paths.events.exists()


def test_a_log_outside_the_project_is_not_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    paths = ProjectPaths(tmp_path / "project")
    paths.curation.parent.mkdir(parents=True)
    paths.curation.symlink_to(outside)
    with pytest.raises(Unwritable, match="is outside"):
        append_events(paths, APPENDED)
    assert list(outside.iterdir()) == []
