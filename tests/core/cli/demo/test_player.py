"""The demo player and its scripts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from core.base.errors import BadInput, Conflict, RalphdeckError
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli import demo
from core.cli.demo import player as check
from core.cli.demo.loops import PlayedLoop, count_use, load_loop_scripts, load_task_scripts
from core.cli.demo.player import DemoAgent
from core.index.refresh import Index
from core.index.review_items import ReviewItem
from core.project.project import Project
from core.questions.kinds import answers
from core.questions.queue import plan
from core.records.episodes import TaskStatus
from core.records.loops import Liveness, Outcome
from core.records.snapshot import Snapshot

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which scratch copies are created."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def play_until(done: Callable[[Snapshot], bool], seconds: float = 30) -> Snapshot:
    """The snapshot of a demo that was played until `done` returns True."""
    with demo.scratch_project(datetime.now(UTC)) as project:
        index = Index(project, Settings(), clock=lambda: datetime.now(UTC), is_kept=False)
        index.load()
        with demo.DemoPlayer(project, interval=0.001):
            deadline = time.monotonic() + seconds
            while not done(index.snapshot):
                assert time.monotonic() < deadline
                index.refresh(None)
        return index.refresh(None)[0]


def test_loops_complete_crash_and_are_replaced_by_new_loops() -> None:
    running = {script.task for script in load_loop_scripts().running}
    new = {script.task for script in load_loop_scripts().new}
    expected = {"completed", "crashed", "new", "archived"}
    observed: set[str] = set()

    def done(snapshot: Snapshot) -> bool:
        for loop in snapshot.loops.values():
            if loop.task in running:
                observed.add(loop.status.value)
                observed.update(["archived"] * loop.archived)
            elif loop.task in new and loop.iterations:
                observed.add("new")
        return observed >= expected

    snapshot = play_until(done)
    assert snapshot.findings == ()
    assert not snapshot.unreadable


@pytest.mark.slow
def test_the_demo_ends_after_nine_minutes_with_few_new_loops_and_review_reaches_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First the questions that are worth the time are answered, until none is left, then all others."""
    with demo.scratch_project(datetime.now(UTC)) as paths:
        before = len(Index(paths, Settings(), clock=lambda: datetime.now(UTC), is_kept=False).load().loops)
        player, pauses = demo.DemoPlayer(paths), list[float]()
        monkeypatch.setattr(player._stopping, "wait", pauses.append)
        count = len(opened(paths).search_all().worth_reading)
        player.start()
        player.join()
        assert 8 < sum(pauses) / 60 < 10
        project = opened(paths)
        assert abs(len(project.search_all().worth_reading) - count) < 6
        loops = project.view.snapshot.loops.values()
        assert before < len(loops) <= before + 3
        assert len({loop.task for loop in loops}) == len(loops), "no title repeats"
        assert 15 < answer_all(project, lambda queue: plan(queue, 1_000, Settings()).items) < 40
        assert 0 < answer_all(project, lambda queue: queue) < 20


def opened(paths: ProjectPaths) -> Project:
    project = Project(paths, Settings(), by="ada", clock=lambda: datetime.now(UTC), cache=False)
    project.load()
    return project


def answer_all(project: Project, select: Callable[[Sequence[ReviewItem]], Sequence[ReviewItem]]) -> int:
    """Give the first possible answer to each selected question until none is left; return the number of answers."""
    asked = 0
    view = project.search_all()
    while selected := select(view.queue):
        asked += 1
        assert asked < 300, [(item.kind, item.subject) for item in view.queue]
        item = selected[0]
        given = next(one for one in answers(item, view) if not one.why_not)
        try:
            project.decide(given.with_text("seen in the demo" if given.needs_reason else ""))
            view = project.view
        except Conflict:  # the question is older than another answer
            view = project.search_all()
        view = view if select(view.queue) else project.search_all()
    return asked


def test_the_sample_contains_what_the_scripts_name_and_a_completed_loop_leaves_the_registry() -> None:
    scripts = load_loop_scripts()
    loops = (*scripts.running, *scripts.new)
    played = {one.pattern for script in loops for one in script.iterations} - {""}
    played.update(pattern for script in loops for pattern in script.injected)
    with demo.scratch_project(NOW) as project:
        assert played <= Index(project, Settings(), clock=lambda: NOW, is_kept=False).load().patterns.keys()
        for script in scripts.running:
            running = PlayedLoop.find_running(project, script)
            assert running is not None
            running.stop()
        loop = PlayedLoop.create(project, scripts.new[0], "0123abcd", NOW)
        registry = project.ralph / "registry.json"
        assert "0123abcd" in registry.read_text(encoding="utf-8")
        while not loop.ended:
            loop.advance(NOW)
        assert "0123abcd" not in registry.read_text(encoding="utf-8")
        loop.stop()


def test_patterns_are_applied_and_counted() -> None:
    def uses(snapshot: Snapshot, pattern: str) -> int:
        return snapshot.patterns[pattern].recorded_counts.uses or 0 if snapshot.patterns else 0

    snapshot = play_until(lambda snapshot: uses(snapshot, "pat-error-jwt-expired-006") > 10)
    loop = next(loop for loop in snapshot.loops.values() if "rate limiting" in loop.task)
    use = next(use for use in loop.injected if use.pattern_id == "pat-error-jwt-expired-006")
    assert (use.applied, use.successful, use.iteration) == (True, True, 3)


def test_agent_completes_attempts_and_a_debug_session_is_escalated() -> None:
    def done(snapshot: Snapshot) -> bool:
        ended = [attempt for attempt in snapshot.attempts.values() if attempt.task_id > "task-007" and attempt.outcome]
        return {attempt.outcome for attempt in ended} >= {Outcome.SUCCESS, Outcome.FAILURE}

    snapshot = play_until(done)
    assert snapshot.findings == ()
    assert snapshot.tasks["task-002"].status is TaskStatus.COMPLETED
    resumed = snapshot.attempts["task-002.2"]
    assert (resumed.outcome, resumed.actions, resumed.iterations) == (Outcome.SUCCESS, 20, 4)
    assert [quality.quality for quality in resumed.quality] == [0.5, 0.7, 0.85, 0.96]
    assert snapshot.attempts["task-008.1"].outcome is Outcome.FAILURE
    assert not any(session.status == "in_progress" for session in snapshot.debug_sessions.values())


def test_agent_plays_each_task_script_once() -> None:
    with demo.scratch_project(NOW) as project:
        before = {path.name for path in project.tasks.glob("task-*")}
        agent = DemoAgent(project, lambda: NOW)
        while agent.advance():
            pass
        assert len({path.name for path in project.tasks.glob("task-*")} - before) == sum(
            not script.id for script in load_task_scripts()
        )


@pytest.mark.slow
def test_same_seed_gives_the_same_loops() -> None:
    def tasks() -> list[str]:
        snapshot = play_until(lambda snapshot: len(snapshot.loops) >= 20)
        return [loop.id for loop in snapshot.loops.values() if loop.task == load_loop_scripts().new[0].task]

    assert tasks() == tasks()


def test_player_leaves_no_thread_and_no_process() -> None:
    before = set(threading.enumerate())
    pids: set[int] = set()

    def alive(snapshot: Snapshot) -> bool:
        pids.update(loop.pid for loop in snapshot.loops.values() if loop.pid and loop.liveness is Liveness.ALIVE)
        return bool(pids)

    play_until(alive)
    assert set(threading.enumerate()) == before
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_player_refuses_a_project_that_is_not_a_scratch_copy(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a copy made by the demo"):
        demo.DemoPlayer(ProjectPaths(tmp_path))


def test_player_stops_when_the_scratch_copy_is_damaged(caplog: pytest.LogCaptureFixture) -> None:
    with demo.scratch_project(NOW) as project, demo.DemoPlayer(project, interval=0.001) as player:
        (project.ralph / "registry.json").unlink()
        (project.ralph / "registry.json").mkdir()
        player._thread.join(20)
        assert not player._thread.is_alive()
    assert "stopped because of an error" in caplog.text


def test_scratch_copy_is_removed_after_an_error(temporary_folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), demo.scratch_project(NOW) as project:
        assert project.project.name == "acme-api"
        assert project.ralph.is_dir()
        raise ZeroDivisionError
    assert list(temporary_folder.iterdir()) == []


def test_use_is_counted_in_the_record() -> None:
    with demo.scratch_project(NOW) as project:
        index = Index(project, Settings(), clock=lambda: NOW, is_kept=False)
        patterns = index.load().patterns
        for pattern, before, worked, after in (
            ("pat-error-null-check-015", (0.75, 4), True, (0.8, 5)),
            ("pat-error-null-check-015", (0.8, 5), False, (0.67, 6)),
            ("pat-anti-catch-all-006", (0.6, 5), True, (0.67, 6)),
        ):
            counts = patterns[pattern].recorded_counts
            assert (counts.rate, counts.uses) == before
            count_use(project, pattern, worked, NOW)
            patterns = index.refresh(None)[0].patterns
            counts = patterns[pattern].recorded_counts
            assert (counts.rate, counts.uses, patterns[pattern].last_used) == (*after, NOW)
        files = {path: path.read_bytes() for path in project.patterns.glob("*.json")}
        count_use(project, "pat-error-unknown-999", True, NOW)
        assert {path: path.read_bytes() for path in project.patterns.glob("*.json")} == files


@pytest.mark.slow
def test_check_reports_counts(temporary_folder: Path) -> None:
    report = demo.demo_check(1.5)
    assert report.loops >= 17
    assert report.patterns == 40
    assert report.reflections > 50
    assert report.changes > 3
    assert report.changed_loops > 1
    assert report.findings == 0
    assert msgspec.json.encode(report)
    assert list(temporary_folder.iterdir()) == []


def test_check_fails_if_nothing_changes(monkeypatch: pytest.MonkeyPatch, temporary_folder: Path) -> None:
    monkeypatch.setattr(check, "_INTERVAL", 3600)
    with pytest.raises(RalphdeckError, match="no change was detected"):
        demo.demo_check(0.3)
    assert list(temporary_folder.iterdir()) == []
