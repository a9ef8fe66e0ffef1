"""The storages of the learning API: one contract for those in memory and those in project files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.base.errors import BadInput, UnknownRecord, Unwritable
from core.base.paths import ProjectPaths
from core.decisions.reference_storage import LoggedErrors, LoggedFeedback
from core.learning.inversion import ObservedPattern, invert
from core.learning.maturity import MaturityFeedback, create_maturity, deprecate, promote
from core.learning.outcomes import FeedbackEvent
from core.learning.storage import (
    ErrorAccumulator,
    ErrorEntry,
    ErrorStorage,
    FeedbackStorage,
    MemoryErrors,
    MemoryFeedback,
    MemoryMaturity,
    MemoryPatterns,
)
from core.records.events import ErrorType
from core.records.patterns import Maturity
from core.sources.events import read_events

NOW = datetime(2026, 2, 3, 12, 0, 0, 123456, tzinfo=UTC)
ODD = 'é\n\u2028\x00\x1b"\\ {"kind": "decision"}'
HALF = "\ud800"


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return ProjectPaths(tmp_path)


@pytest.fixture(params=["memory", "files"])
def in_files(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "files")


@pytest.fixture
def feedback(in_files: bool, paths: ProjectPaths) -> FeedbackStorage:
    return LoggedFeedback(paths) if in_files else MemoryFeedback()


@pytest.fixture
def errors(in_files: bool, paths: ProjectPaths) -> ErrorStorage:
    return logged_errors(paths) if in_files else MemoryErrors()


def logged_errors(paths: ProjectPaths) -> LoggedErrors:
    return LoggedErrors(paths, clock=lambda: NOW)


def make_feedback(id: str = "f1", **fields: Any) -> FeedbackEvent:
    return FeedbackEvent(
        **{"id": id, "criterion": "type_safe", "type": "helpful", "timestamp": NOW, "bead_id": "bd-1", **fields}
    )


def make_error(id: str = "e1", **fields: Any) -> ErrorEntry:
    return ErrorEntry(
        **{"id": id, "bead_id": "bd-1", "timestamp": NOW, "error_type": ErrorType.TIMEOUT, "message": "slow", **fields}
    )


def observed(id: str = "p1", **fields: Any) -> ObservedPattern:
    return ObservedPattern(**{"id": id, "content": "Split by file type", **fields})


def judged(pattern_id: str = "p1", **fields: Any) -> MaturityFeedback:
    return MaturityFeedback(**{"pattern_id": pattern_id, "type": "helpful", "timestamp": NOW, **fields})


def test_feedback_is_stored_unchanged(feedback: FeedbackStorage) -> None:
    events = [
        make_feedback("f1", raw_value=0.25, context=ODD),
        make_feedback("f2", type="harmful", bead_id="bd-2"),
        make_feedback("f3", type="neutral", criterion="no_bugs", timestamp=NOW - timedelta(days=90)),
    ]
    assert feedback.get_all() == []
    for event in events:
        feedback.store(event)
    assert feedback.get_all() == events
    assert feedback.get_by_criterion("type_safe") == events[:2]
    assert feedback.get_by_bead("bd-1") == [events[0], events[2]]
    assert feedback.get_by_criterion("") == feedback.get_by_bead("bd-3") == []


@pytest.mark.parametrize("time", ["2026-02-03T14:00:00.5+02:00", "2026-02-03", NOW.replace(tzinfo=None)], ids=str)
def test_any_form_of_a_time_is_read_back_equal(
    time: str | datetime,
    feedback: FeedbackStorage,
    errors: ErrorStorage,
) -> None:
    patterns, maturities = MemoryPatterns(), MemoryMaturity()
    event, entry, judgement = make_feedback(timestamp=time), make_error(timestamp=time), judged(timestamp=time)
    pattern = observed(created_at=time, updated_at=time, tags=["a", "b"])
    maturity = replace(create_maturity("p1", time), promoted_at=time)
    feedback.store(event)
    errors.store(entry)
    patterns.store(pattern)
    maturities.store_feedback(judgement)
    maturities.store(maturity)
    assert feedback.get_all() == [event]
    assert errors.get_all() == [entry]
    assert patterns.get_all() == [pattern]
    assert maturities.get_feedback("p1") == [judgement]
    assert maturities.get("p1") == maturity
    assert event.timestamp == entry.timestamp == judgement.at == pattern.created_at == maturity.as_of


def test_repeated_feedback_is_stored_once(feedback: FeedbackStorage) -> None:
    feedback.store(make_feedback())
    feedback.store(make_feedback(type="harmful"))
    assert feedback.get_all() == [make_feedback()]


def test_feedback_without_an_id_gets_one(feedback: FeedbackStorage) -> None:
    for _ in range(2):
        feedback.store(make_feedback(""))
    first, second = feedback.get_all()
    assert first.id and second.id and first.id != second.id


def test_errors_are_stored_unchanged(errors: ErrorStorage) -> None:
    entries = [
        make_error("e1", stack_trace="at x", tool_name="tsc", context=ODD, message=ODD),
        make_error("e2", bead_id="bd-2", error_type=ErrorType.UNKNOWN),
        make_error("e3", resolved=True),
    ]
    assert errors.get_all() == []
    for entry in entries:
        errors.store(entry)
    errors.store(make_error("e1", message="told again"))
    assert errors.get_all() == entries
    assert errors.get_by_bead("bd-1") == [entries[0], entries[2]]
    assert errors.get_unresolved_by_bead("bd-1") == [entries[0]]


def test_a_resolved_error_stays_resolved(errors: ErrorStorage) -> None:
    for id in ("e1", "e2"):
        errors.store(make_error(id))
    for _ in range(2):
        errors.mark_resolved("e2")
    assert errors.get_all() == [make_error("e1"), make_error("e2", resolved=True)]
    with pytest.raises(UnknownRecord, match="no error e3"):
        errors.mark_resolved("e3")


def test_the_accumulator_works_on_any_storage(errors: ErrorStorage) -> None:
    accumulator = ErrorAccumulator(errors)
    first = accumulator.record_error("bd-1", "conflict", "taken", now=NOW, tool_name="git")
    second = accumulator.record_error("bd-1", "timeout", "slow", now=NOW)
    accumulator.resolve_error(first.id)
    assert accumulator.get_errors("bd-1") == [replace(first, resolved=True), second]
    assert accumulator.get_error_stats("bd-1").unresolved == 1


def test_patterns_are_stored_unchanged() -> None:
    patterns = MemoryPatterns()
    stored = [
        observed("p1", tags=("auth", ODD), example_beads=("bd-1",), created_at=NOW, updated_at=NOW),
        invert(observed("p2", failure_count=3), "", NOW),
        observed("p3", content="One  file\nper subtask", success_count=10**15),
    ]
    assert patterns.get_all() == [] and patterns.get("p1") is None
    for pattern in stored:
        patterns.store(pattern)
    assert patterns.get_all() == stored
    assert patterns.get("anti-p2") == stored[1] and patterns.get("p2") is None
    assert patterns.get_anti_patterns() == [stored[1]]
    assert patterns.get_by_tag("auth") == patterns.get_by_tag(ODD) == [stored[0]]
    assert patterns.get_by_tag("aut") == []


def test_a_stored_pattern_replaces_the_old_one_in_place() -> None:
    patterns = MemoryPatterns()
    for pattern in (observed("p1"), observed("p2"), observed("p1", success_count=1)):
        patterns.store(pattern)
    assert patterns.get_all() == [observed("p1", success_count=1), observed("p2")]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("split BY file", ["p1"]),
        (" one file\tper subtask ", ["p2"]),
        ("file", ["p1", "p2"]),
        ("split file", []),
        ("", []),
        (" \n", []),
    ],
)
def test_content_search_ignores_case_and_spacing(content: str, found: list[str]) -> None:
    patterns = MemoryPatterns()
    patterns.store(observed("p1"))
    patterns.store(observed("p2", content="One  file\nper subtask"))
    assert [pattern.id for pattern in patterns.find_by_content(content)] == found


def test_maturities_are_stored_unchanged() -> None:
    maturities = MemoryMaturity()
    stored = [
        replace(create_maturity("p1", NOW), helpful_count=3, helpful=2.5, last_validated=NOW),
        promote(create_maturity("p2", NOW), NOW),
        deprecate(create_maturity("p3", NOW), ODD, NOW),
    ]
    assert maturities.get_all() == [] and maturities.get("p1") is None
    for maturity in (create_maturity("p1", NOW), *stored[1:], stored[0]):
        maturities.store(maturity)
    assert maturities.get_all() == stored
    assert maturities.get("p2") == stored[1]
    assert maturities.get_by_state(Maturity.DEPRECATED) == [stored[2]]


def test_two_equal_reports_count_twice() -> None:
    maturities = MemoryMaturity()
    given = [judged(), judged(), judged(type="harmful", weight=0.5, timestamp=NOW - timedelta(days=1))]
    for one in (given[0], judged("p2"), *given[1:]):
        maturities.store_feedback(one)
    assert maturities.get_feedback("p1") == given
    assert maturities.get_feedback("p3") == []


_STORES: list[Callable[[ProjectPaths, str], None]] = [
    lambda paths, text: LoggedFeedback(paths).store(make_feedback(context=text)),
    lambda paths, text: logged_errors(paths).store(make_error(message=text)),
]


@pytest.mark.parametrize("store", _STORES)
def test_invalid_unicode_is_refused_before_writing(
    store: Callable[[ProjectPaths, str], None], paths: ProjectPaths
) -> None:
    with pytest.raises(BadInput, match="Unicode"):
        store(paths, HALF)
    assert not paths.events.exists()


@pytest.mark.parametrize("store", _STORES)
def test_nothing_is_written_outside_the_project(store: Callable[[ProjectPaths, str], None], tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "project")
    (tmp_path / "outside").mkdir()
    paths.curation.parent.mkdir(parents=True)
    paths.curation.symlink_to(tmp_path / "outside")
    with pytest.raises(Unwritable, match="outside"):
        store(paths, "x")
    assert list((tmp_path / "outside").iterdir()) == []


def test_feedback_in_the_log_needs_a_criterion(paths: ProjectPaths) -> None:
    with pytest.raises(BadInput, match="criterion"):
        LoggedFeedback(paths).store(make_feedback(criterion=""))


def test_event_ids_are_unique(paths: ProjectPaths) -> None:
    LoggedFeedback(paths).store(make_feedback("x"))
    with pytest.raises(BadInput, match="id x"):
        logged_errors(paths).store(make_error("x"))


def test_two_storages_of_one_project_share_their_data(paths: ProjectPaths) -> None:
    one, other = LoggedFeedback(paths), LoggedFeedback(paths)
    mine, yours = logged_errors(paths), logged_errors(paths)
    for n in range(3):
        (one, other)[n % 2].store(make_feedback(f"f{n}"))
        (mine, yours)[n % 2].store(make_error(f"e{n}"))
        (yours, mine)[n % 2].mark_resolved(f"e{n}")
        assert one.get_all() == other.get_all() == [make_feedback(f"f{k}") for k in range(n + 1)]
        assert mine.get_all() == yours.get_all() == [make_error(f"e{k}", resolved=True) for k in range(n + 1)]


def test_the_author_of_feedback_is_recorded(paths: ProjectPaths) -> None:
    LoggedFeedback(paths, by="ada").store(make_feedback())
    events, findings = read_events("events.jsonl", paths.events.read_bytes())
    assert [(event.kind, event.by, event.criterion) for event in events] == [("feedback", "ada", "type_safe")]
    assert findings == ()


def test_invalid_log_lines_are_skipped(paths: ProjectPaths) -> None:
    feedback, errors = LoggedFeedback(paths), logged_errors(paths)
    feedback.store(make_feedback("f1"))
    with paths.events.open("ab") as file:
        file.write(b'nonsense\n[]\n{"id": "e0", "at": "2026-01-01", "kind": "error", "error": 7}\n\xff\n' + b"[" * 999)
    assert feedback.get_all() == [make_feedback("f1")]  # the last line is not finished
    errors.store(make_error())
    feedback.store(make_feedback("f2"))
    assert feedback.get_all() == LoggedFeedback(paths).get_all() == [make_feedback("f1"), make_feedback("f2")]
    assert errors.get_all() == logged_errors(paths).get_all() == [make_error()]


def test_unreadable_log_raises_instead_of_being_empty(paths: ProjectPaths) -> None:
    paths.events.mkdir(parents=True)
    with pytest.raises(Unwritable, match="cannot read"):
        LoggedFeedback(paths).get_all()


def test_a_rewritten_log_is_read_again(paths: ProjectPaths) -> None:
    feedback = LoggedFeedback(paths)
    feedback.store(make_feedback("f1"))
    paths.events.unlink()
    assert feedback.get_all() == []
    feedback.store(make_feedback("f2"))
    assert feedback.get_all() == [make_feedback("f2")]


def test_concurrent_writers_lose_nothing(paths: ProjectPaths) -> None:
    def write(worker: int) -> None:
        feedback, errors = LoggedFeedback(paths), logged_errors(paths)
        for n in range(8):
            id = f"{worker}-{n}"
            feedback.store(make_feedback(f"f{id}"))
            errors.store(make_error(f"e{id}"))
            errors.mark_resolved(f"e{id}")

    threads = [threading.Thread(target=write, args=[worker]) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = {f"{worker}-{n}" for worker in range(4) for n in range(8)}
    assert {event.id[1:] for event in LoggedFeedback(paths).get_all()} == ids
    assert {entry.id[1:] for entry in logged_errors(paths).get_all() if entry.resolved} == ids
