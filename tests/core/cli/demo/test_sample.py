"""The committed sample project equals the output of `python -m tests.sample`."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import SAMPLE, copy_sample, sample_anchor
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
from tests.sample import write_sample
from tests.sample.decisions import CONTRADICTED, REWRITTEN, SUSPECTED
from tests.sample.events import BLAMING, MISCOUNTED
from tests.sample.loops import BY_KEY
from tests.sample.patterns import EXPECTED_STATES, UNREAD
from tests.sample.shared import ALL_PATTERNS, recorded_uses

NOW = datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC)


def _contents(root: Path) -> dict[str, str]:
    folder = root / ".aiwg"
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_committed_sample_equals_the_generated_sample(tmp_path: Path) -> None:
    write_sample(tmp_path, sample_anchor())
    assert _contents(SAMPLE) == _contents(tmp_path), "generate it with: python -m tests.sample"


@pytest.mark.slow
@pytest.mark.parametrize(
    "now",
    [
        datetime(2026, 11, 21, 12, 0, 0, 999_000, tzinfo=UTC),
        datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC),
        datetime(2031, 1, 1, 0, 0, 1, tzinfo=UTC),
    ],
)
def test_copy_equals_the_sample_generated_for_that_day(tmp_path: Path, now: datetime) -> None:
    copy_sample(tmp_path / "copied", now)
    write_sample(tmp_path / "written", now)
    assert _contents(tmp_path / "copied") == _contents(tmp_path / "written")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("acme-api")
    copy_sample(folder, NOW)
    return Index(ProjectPaths(folder), Settings(), clock=lambda: NOW, is_kept=False).load()


@pytest.fixture(scope="module")
def board(snapshot: Snapshot) -> Scoreboard:
    return Scoreboard.build(snapshot, NOW, Settings())


def test_sample_has_no_findings(snapshot: Snapshot) -> None:
    assert snapshot.findings == ()
    assert not snapshot.unreadable


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
    assert Counter(state.value for state in computed.values()) == EXPECTED_STATES
    assert len({(snapshot.patterns[id].type, state) for id, state in computed.items()}) == 16
    assert sum(board.assessment(id).faded for id in snapshot.patterns) == 1


def test_pattern_ids_have_the_format_of_their_type(snapshot: Snapshot) -> None:
    forms = {
        PatternType.ERROR: r"pat-error-[a-z0-9-]+-\d{3}",
        PatternType.SUCCESS: r"pat-success-[a-z0-9-]+-\d{3}",
        PatternType.ANTI: r"pat-anti-[a-z0-9-]+-\d{3}",
        PatternType.TEMPLATE: r"tmpl-[a-z0-9-]+-\d{3}",
    }
    assert all(re.fullmatch(forms[pattern.type], id) for id, pattern in snapshot.patterns.items())


def test_loops_record_no_more_uses_than_the_registry() -> None:
    for sample in ALL_PATTERNS:
        uses = [use.successful for _, use in recorded_uses(sample.key)]
        assert sum(uses) + 1 <= sample.successes, sample.key
        assert len(uses) - sum(uses) <= sample.failures, sample.key


def test_one_copy_of_a_mirrored_pattern_differs(snapshot: Snapshot) -> None:
    assert sorted(mirror.differs for p in snapshot.patterns.values() for mirror in p.copies) == [False, True]


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
        ("contradicted", CONTRADICTED),
        ("burst", BY_KEY[BLAMING].id),
        ("inversion", "pat-success-split-by-type-002"),
        ("inversion", "pat-error-gateway-reset-004"),
        ("stale-pin", REWRITTEN),
        ("quarantine", SUSPECTED),
        ("extracted", UNREAD),
        ("duplicate", "pat-error-loop-closed-011"),
        ("unreconciled", MISCOUNTED),
        ("broad", "pat-error-import-cycle-013"),
    }
    assert len({item.question_key for item in queue}) == len(queue)


def test_sample_has_reflections_of_every_shape(snapshot: Snapshot) -> None:
    shapes = {reflection.shape for reflection in snapshot.reflections.values()}
    assert shapes >= {"episodic", "memory-manager", "cross-task", "hook", "reflexion", "state"}


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
