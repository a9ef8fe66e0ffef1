"""Records follow the reports of loops, and no use is lost or counted twice on the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.paths import ProjectPaths
from core.base.settings import LearningSettings, Settings
from core.decisions import use_counts
from core.decisions.commands import CountReports
from core.decisions.use_counts import CountResult
from core.project.project import Project
from core.records.events import Event

START = datetime(2026, 2, 2, 15, tzinfo=UTC)
ID = "pat-error-null-check-015"
AUTH, VALIDATION, USER, API = (
    "ralph-fix-auth-a1b2c3d4",
    "ralph-fix-validation-b2c3d4e5",
    "ralph-fix-user-c3d4e5f6",
    "ralph-fix-api-d4e5f6a7",
)
DISCOVERED: dict[str, Any] = {
    "pattern_id": ID,
    "type": "error_pattern",
    "error_signature": {"error_type": "TypeError", "error_pattern": "Cannot read property '.*' of null"},
    "fix_approach": {"description": "Add null check before property access", "fix_category": "add_null_check"},
    "source_loops": [{"loop_id": AUTH, "timestamp": "2026-02-02T15:00:00Z", "contributed_by": "software-implementer"}],
    "success_rate": 1.0,
    "usage_count": 1,
    "first_discovered": "2026-02-02T15:00:00Z",
    "last_used": "2026-02-02T15:00:00Z",
}


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class UsedPattern:
    """A registry of one record, and the loops' reports on it."""

    def __init__(self, folder: Path, record: dict[str, Any], file: str = "error-patterns.json") -> None:
        self.paths = ProjectPaths(folder)
        self.file = self.paths.patterns / file
        self.clock = Clock()
        self.number = 0
        self.put(record)
        self.paths.curation.mkdir(exist_ok=True)
        self.reopen()

    def put(self, record: dict[str, Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps([record], indent=2))

    def reopen(self) -> None:
        self.open_project = Project(self.paths, Settings(), by="ada", clock=self.clock, cache=False)
        self.open_project.load()

    def event(self, kind: str, at: datetime, success: bool | None = None, **fields: Any) -> Event:
        self.number += 1
        return Event(id=f"e{self.number:04d}", at=at, kind=kind, success=success, by="ada", **fields)

    def use(self, loop_id: str, minutes: float, success: bool | None = None, **fields: Any) -> CountResult:
        self.clock.now = START + timedelta(minutes=minutes)
        found: list[CountResult] = []
        event = self.event("applied", self.clock.now, success, loop_id=loop_id, pattern_id=ID, **fields)
        self.open_project.record(event, counted=found)
        (counted,) = found
        return counted

    def outcome(self, loop_id: str, minutes: float, success: bool) -> list[CountResult]:
        self.clock.now = START + timedelta(minutes=minutes)
        found: list[CountResult] = []
        self.open_project.record(self.event("outcome", self.clock.now, success, loop_id=loop_id), counted=found)
        return found

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text())[0])

    def counts(self) -> tuple[int, int, int]:
        """As the evidence has them."""
        found = self.open_project.view.assessment(ID)
        return found.successes, found.failures, found.uses

    def written(self) -> tuple[int, int, int]:
        """As the record has them."""
        record = self.record
        return record["successful_applications"], record["failed_applications"], record["usage_count"]


def claims(successes: int, failures: int, **fields: Any) -> dict[str, Any]:
    total = successes + failures
    plain = {key: value for key, value in DISCOVERED.items() if key not in ("source_loops", "first_discovered")}
    return {**plain, "success_rate": successes / max(total, 1), "usage_count": total, **fields}


@pytest.fixture
def project(tmp_path: Path) -> UsedPattern:
    return UsedPattern(tmp_path, DISCOVERED)


def test_four_uses_give_the_documented_counts(project: UsedPattern) -> None:
    project.use(VALIDATION, 90, True, agent="debugger")
    project.use(USER, 180, True)
    project.use(API, 255, False)
    record = project.record
    assert project.written() == project.counts() == (3, 1, 4)
    assert record["success_rate"] == 0.75
    assert record["last_used"] == "2026-02-02T19:15:00.000Z"
    assert [entry["loop_id"] for entry in record["source_loops"]] == [AUTH, VALIDATION, USER, API]
    assert record["source_loops"][1] == {
        "loop_id": VALIDATION,
        "timestamp": "2026-02-02T16:30:00.000Z",
        "contributed_by": "debugger",
    }
    # Who ran the command is not the agent.
    assert "contributed_by" not in record["source_loops"][2]
    assert record["effectiveness_trend"] == [
        {
            "timestamp": f"2026-02-02T{time}.000Z",
            "success_rate_snapshot": rate,
            "sample_size": size,
            "source_loops": [AUTH, VALIDATION, USER, API][:size],
        }
        for time, rate, size in (("16:30:00", 1.0, 2), ("18:00:00", 1.0, 3), ("19:15:00", 0.75, 4))
    ]


def test_a_use_reported_again_changes_nothing(project: UsedPattern) -> None:
    project.use(VALIDATION, 90, True)
    before = project.file.read_bytes()
    project.use(VALIDATION, 90, True)
    assert project.file.read_bytes() == before


def test_unrecorded_uses_are_preserved_with_their_time(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, claims(11, 1))
    for seconds in range(4):  # closer together than the resolution of the reader
        project.use(f"bd-{seconds}", 90 + seconds / 60, True)
    assert project.written() == project.counts() == (15, 1, 16)
    oldest = project.open_project.view.board.observations(ID)[:2]
    assert [(use.source, use.at, use.count) for use in oldest] == [
        ("aggregate", START, 1),
        ("aggregate", START, 11),
    ]
    project.reopen()
    assert project.counts() == (15, 1, 16)


def test_use_without_a_result_counts_at_once_and_its_result_later(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, claims(11, 1))
    project.use("bd-1", 90)
    assert project.written() == project.counts() == (11, 1, 13)
    assert "effectiveness_trend" not in project.record
    project.use("bd-2", 91, False)
    assert project.written() == project.counts() == (11, 2, 14)
    (counted,) = project.outcome("bd-1", 91.5, True)
    assert (counted.successes, counted.failures, counted.uses) == (12, 2, 14)
    assert project.written() == project.counts() == (12, 2, 14)
    project.outcome("bd-1", 99, False)
    assert project.written() == project.counts() == (11, 3, 14)


def test_next_report_completes_an_interrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = UsedPattern(tmp_path, claims(11, 1))
    with monkeypatch.context() as patch:
        patch.setattr(use_counts, "rewrite", lambda *args, **kwargs: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            project.use("bd-1", 90, True)
    project.reopen()
    assert project.record == claims(11, 1)
    assert project.counts() == (12, 1, 13)
    project.use("bd-2", 90.5, False)
    assert project.written() == project.counts() == (12, 2, 14)
    assert [entry["loop_id"] for entry in project.record["source_loops"]] == ["bd-1", "bd-2"]


def test_suspicious_reports_are_not_written_to_records(tmp_path: Path) -> None:
    limit = LearningSettings().max_marks
    project = UsedPattern(tmp_path, claims(11, 3))
    others = [{**claims(3, 0), "pattern_id": f"pat-error-other-{n:03d}"} for n in range(limit)]
    project.file.write_text(json.dumps([claims(11, 3), *others]))
    project.reopen()
    project.use("bd-1", 90, False)
    assert project.written() == project.counts() == (11, 4, 15)
    at = START + timedelta(minutes=90)
    blames = [project.event("applied", at, False, loop_id="bd-1", pattern_id=other["pattern_id"]) for other in others]
    project.open_project.record(*blames)
    assert [burst.source for burst in project.open_project.view.board.bursts] == ["bd-1"]
    assert project.counts() == (11, 3, 14), "the mark on it is held, too"
    project.use("bd-2", 95, True)
    assert project.written() == project.counts() == (12, 3, 15)
    project.open_project.decide(CountReports(source="bd-1"))
    assert project.counts() == (12, 4, 16)
    project.use("bd-3", 96, True)
    assert project.written() == project.counts() == (13, 4, 17)


def test_use_already_counted_by_its_reporter_counts_once(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, claims(11, 1))
    project.use("bd-0", 0.5, True)
    assert project.counts() == (11, 1, 12)
    assert project.record["usage_count"] == 12
    project.use("bd-1", 0.9, True)
    assert project.written() == project.counts() == (12, 1, 13)
    counted = {"successful_applications": 13, "usage_count": 14, "last_used": "2026-02-02T15:30:00Z"}
    project.put({**project.record, **counted})
    project.use("bd-2", 30.5, True)
    assert project.written() == project.counts() == (13, 1, 14)


def test_counts_of_another_writer_are_preserved(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, claims(11, 1))
    project.use("bd-1", 90, True)
    later = "2026-02-02T18:00:00Z"
    project.put({**project.record, "successful_applications": 13, "usage_count": 14, "last_used": later})
    project.use("bd-2", 200, True)
    assert project.written() == project.counts() == (14, 1, 15)
    project.use("bd-3", 201, True)
    assert project.written() == project.counts() == (15, 1, 16)


def test_reset_record_is_counted_anew(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, claims(100, 20))
    project.use("bd-1", 90, True)
    project.put(claims(2, 0))
    project.reopen()
    project.use("bd-2", 200, True)
    successes, failures, _ = project.counts()
    assert (successes, failures) == (4, 0)
    assert project.written() == project.counts()


def test_only_changed_keys_are_written(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, DISCOVERED)
    text = (
        '{"version": "1.0.0", "mine": 1e400,\n "error_patterns": [\n'
        '  {"id": "x", "pattern_id": "pat-error-other-001", "success_rate": 1.00,"usage_count":2 },\n'
        f'  {{"usage_count": 3, "pattern_id": "{ID}", "odd": "\\u00e9", "success_rate": 1.00, "fix_approach": "Add"}}\n'
        " ]}\n"
    )
    project.file.write_text(text)
    project.reopen()
    project.use("bd-1", 90, False)
    lines = project.file.read_text().splitlines()
    assert lines[:3] == text.splitlines()[:3]
    assert lines[-1] == " ]}"
    assert lines[3].startswith(f'  {{"usage_count": 4, "pattern_id": "{ID}", "odd": "\\u00e9", "success_rate": 0.75')


@pytest.mark.parametrize(
    ("file", "record", "expected"),
    [
        (
            "anti-patterns.json",
            {"pattern_id": "pat-anti-early-001", "failure_rate": 1.0, "occurrence_count": 1},
            {"failure_rate": 1.0, "occurrence_count": 2, "source_loops": [{"loop_id": "bd-1", "failure_iteration": 4}]},
        ),
        (
            "success-patterns.json",
            {"pattern_id": "pat-success-types-001", "success_rate": 1.0, "usage_count": 1, "approach": "Types first"},
            {"success_rate": 1.0, "usage_count": 2, "source_loops": [{"loop_id": "bd-1", "outcome": "success"}]},
        ),
        (
            "code-templates.json",
            {"template_id": "tmpl-guard-001", "template_code": "if (x)", "usage_count": 0},
            {"success_rate": 1.0, "usage_count": 1, "source_loops": ["bd-1"]},
        ),
    ],
)
def test_each_type_has_the_keys_of_its_schema(
    tmp_path: Path, file: str, record: dict[str, Any], expected: dict[str, Any]
) -> None:
    project = UsedPattern(tmp_path, record, file)
    pattern_id = next(iter(project.open_project.view.snapshot.patterns))
    event = project.event("applied", START, True, loop_id="bd-1", pattern_id=pattern_id, iteration=4)
    project.open_project.record(event)
    written = project.record
    for entry in written["source_loops"]:
        if isinstance(entry, dict):
            assert entry.pop("timestamp") == "2026-02-02T15:00:00.000Z"
    assert {key: written[key] for key in expected} == expected
    assert ("successful_applications" in written) is (file != "anti-patterns.json")


def test_unwritable_file_is_reported_and_the_use_counts(tmp_path: Path) -> None:
    project = UsedPattern(tmp_path, DISCOVERED)
    project.file.unlink()
    (project.paths.patterns / "error-patterns.yaml").write_text(f"- {json.dumps(DISCOVERED)}\n")
    project.reopen()
    counted = project.use("bd-1", 90, True)
    assert "cannot be changed; only JSON files" in counted.problem
    assert project.counts() == (2, 0, 2)


def test_unparsable_file_is_not_changed(project: UsedPattern, monkeypatch: pytest.MonkeyPatch) -> None:
    project.use(VALIDATION, 90, True)
    torn = project.file.read_bytes()[:-40]
    project.file.write_bytes(torn)
    project.open_project.settings = Settings(watch=type(project.open_project.settings.watch)(retry_seconds=()))
    assert "cannot be parsed" in project.use(USER, 180, True).problem
    assert project.file.read_bytes() == torn
    assert project.counts() == (3, 0, 3)


def test_an_injection_or_feedback_on_a_criterion_touches_no_record(project: UsedPattern) -> None:
    before = project.file.read_bytes()
    project.open_project.record(project.event("injected", START, loop_id="bd-1", pattern_id=ID))
    project.open_project.record(project.event("feedback", START, True, loop_id="bd-1", criterion="type_safe"))
    assert project.file.read_bytes() == before


reports = st.lists(
    st.tuples(
        st.sampled_from(["bd-1", "bd-2", "bd-3"]),
        st.sampled_from([True, False, None]),
        st.sampled_from(["applied", "applied", "outcome", "crash"]),
        st.floats(0.0, 3.0),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@given(reports=reports, good=st.integers(0, 4), bad=st.integers(0, 3))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_record_counts_equal_the_evidence(
    tmp_path_factory: pytest.TempPathFactory, reports: list[tuple[str, bool | None, str, float]], good: int, bad: int
) -> None:
    project = UsedPattern(tmp_path_factory.mktemp("counted"), claims(good, bad))
    minutes = 2.0  # later: the reporter of a use may just have counted it in the record
    expected: dict[str, bool | None] = {}
    outcomes: dict[str, bool | None] = {}
    for loop_id, success, kind, pause in reports:
        minutes += pause
        if kind == "outcome":
            outcomes[loop_id] = bool(success)
            project.outcome(loop_id, minutes, bool(success))
        else:
            expected[loop_id] = expected.get(loop_id) if success is None else success
            project.use(loop_id, minutes, success)
        if kind == "crash":
            project.reopen()
        results = [outcomes.get(id) if result is None else result for id, result in expected.items()]
        successes, failures, uses = project.counts()
        assert successes == good + results.count(True)
        assert failures == bad + results.count(False)
        assert uses == good + bad + len(expected)
        if expected:
            assert project.written() == (successes, failures, uses)
