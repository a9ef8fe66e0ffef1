"""The committed sample project has every kind of record, and its times follow the clock."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import copy_sample
from core.index.refresh import Index
from core.index.review_items import (
    CONFLICT,
    EDITED,
    HARMFUL,
    HELD,
    KINDS,
    LESSON,
    PROPOSAL,
    RENAMED,
    SELDOM,
    STALE,
    WEAKENED,
)
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.records.episodes import TaskStatus
from core.records.loops import Liveness, LoopStatus, Outcome
from core.records.patterns import PatternType
from core.records.snapshot import Snapshot

NOW = datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC)


def _load(folder: Path, now: datetime) -> Snapshot:
    copy_sample(folder, now)
    return Index(ProjectPaths(folder), Settings(), clock=lambda: now, is_kept=False).load()


@pytest.mark.slow
@pytest.mark.parametrize(
    "now", [datetime(2026, 11, 21, 12, 0, 0, 999_000, tzinfo=UTC), datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC)]
)
def test_a_copy_has_all_records_with_shifted_times(tmp_path: Path, snapshot: Snapshot, now: datetime) -> None:
    copied = _load(tmp_path, now)
    shift = now.replace(microsecond=0) - NOW
    assert not copied.findings
    assert {id: loop.started_at for id, loop in copied.loops.items()} == {
        id: loop.started_at and loop.started_at + shift for id, loop in snapshot.loops.items()
    }
    assert [(event.kind, event.at) for event in copied.events] == [
        (event.kind, event.at + shift) for event in snapshot.events
    ]
    assert [decision.at for decision in copied.decisions] == [decision.at + shift for decision in snapshot.decisions]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return _load(tmp_path_factory.mktemp("acme-api"), NOW)


@pytest.fixture(scope="module")
def board(snapshot: Snapshot) -> Scoreboard:
    return Scoreboard.build(snapshot, NOW, Settings())


def test_sample_has_no_findings_and_every_shape_of_records(snapshot: Snapshot) -> None:
    assert snapshot.findings == () and not snapshot.unreadable
    for id, pattern in snapshot.patterns.items():
        form = "tmpl" if pattern.type is PatternType.TEMPLATE else f"pat-{pattern.type.value}"
        assert re.fullmatch(rf"{form}-[a-z0-9-]+-\d{{3}}", id)
    assert sorted(copy.differs for pattern in snapshot.patterns.values() for copy in pattern.copies) == [False, True]
    shapes = {reflection.shape for reflection in snapshot.reflections.values()}
    assert shapes >= {"episodic", "memory-manager", "cross-task", "hook", "reflexion", "state"}


def test_sample_has_loops_of_every_status_and_source(snapshot: Snapshot) -> None:
    loops = snapshot.loops.values()
    assert Counter(loop.status for loop in loops) == {
        LoopStatus.RUNNING: 4,
        LoopStatus.PAUSED: 1,
        LoopStatus.COMPLETED: 7,
        LoopStatus.FAILED: 2,
        LoopStatus.LIMIT: 1,
        LoopStatus.ABORTED: 1,
        LoopStatus.CRASHED: 1,
    }
    assert {source for loop in loops for source in loop.sources} == {
        "loops",
        "archive",
        "registry",
        "current-loop",
        "external",
        "external-registry",
        "external-state",
    }
    assert all(loop.liveness is Liveness.FRESH for loop in loops if loop.status is LoopStatus.RUNNING)


def test_sample_has_patterns_of_every_type_in_every_state(snapshot: Snapshot, board: Scoreboard) -> None:
    computed = {id: board.assessment(id).computed for id in snapshot.patterns}
    assert Counter(state.value for state in computed.values()) == {
        "candidate": 11,
        "established": 12,
        "proven": 10,
        "deprecated": 7,
    }
    assert len({(snapshot.patterns[id].type, state) for id, state in computed.items()}) == 16
    assert sum(board.assessment(id).faded for id in snapshot.patterns) == 1


def test_review_queue_has_every_kind_of_question(tmp_path: Path) -> None:
    copy_sample(tmp_path, NOW)
    opened = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: NOW, cache=False)
    opened.load()
    while opened.search_next() is not None:
        pass
    queue = opened.view.queue
    # Those need a repository, an experiment, or files of agents.
    absent = {CONFLICT, EDITED, HARMFUL, HELD, LESSON, PROPOSAL, RENAMED, SELDOM, STALE, WEAKENED}
    assert {item.kind for item in queue} == {*KINDS} - absent
    assert {(item.kind, item.subject) for item in queue} >= {
        ("contradicted", "pat-error-deadlock-retry-005"),
        ("burst", "ralph-rewrite-the-session-store-on-r-152dfe93"),
        ("inversion", "pat-success-split-by-type-002"),
        ("inversion", "pat-error-gateway-reset-004"),
        ("stale-pin", "tmpl-frozen-clock-003"),
        ("quarantine", "pat-success-openapi-first-007"),
        ("extracted", "pat-error-event-loop-001"),
        ("duplicate", "pat-error-loop-closed-011"),
        ("unreconciled", "pat-error-field-required-012"),
        ("broad", "pat-error-import-cycle-013"),
    }
    assert len({item.question_key for item in queue}) == len(queue)


def test_sample_has_tasks_and_attempts_of_every_status(snapshot: Snapshot) -> None:
    assert {task.status for task in snapshot.tasks.values()} == set(TaskStatus) - {TaskStatus.UNKNOWN}
    assert {attempt.outcome for attempt in snapshot.attempts.values()} == {
        Outcome.SUCCESS,
        Outcome.FAILURE,
        Outcome.TIMEOUT,
        Outcome.UNKNOWN,
    }
    open_attempts = [id for id, attempt in snapshot.attempts.items() if attempt.is_open]
    assert open_attempts == ["task-002.2", "task-003.2", "task-006.1"]
    linked = {task.loop_id for task in snapshot.tasks.values() if task.loop_id}
    assert len(linked) == 5 and linked <= snapshot.loops.keys()
    assert {session.status for session in snapshot.debug_sessions.values()} == {
        "in_progress",
        "passed",
        "failed",
        "escalated",
    }
