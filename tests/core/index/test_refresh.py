"""The index reads files into snapshots and deltas."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import core.index.logs
import core.index.parse
import core.index.refresh
from core.base.errors import UnknownRecord
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files import file_reader
from core.files.file_reader import RawFile
from core.index import sweep
from core.index.records import COLLECTIONS
from core.index.refresh import Index
from core.index.snapshot import IndexedSnapshot
from core.index.step import UNREADABLE_AFTER
from core.index.texts import load_texts
from core.records.findings import Severity
from core.records.loops import LoopStatus
from core.records.snapshot import Snapshot
from core.sources.record_kinds import FolderWalk
from tests.copying import copy_folder
from tests.factories import record_calls
from tests.hostile.tree import write_texts

TREES = Path(__file__).parents[2] / "trees"
NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
LOOP = "ralph-a-00000001"
PATTERN = {
    "pattern_id": "pat-error-null-check-001",
    "error_signature": {"error_type": "TypeError", "error_pattern": "of null"},
    "fix_approach": {"description": "Check for null before the access", "fix_category": "add_null_check"},
    "success_rate": 1,
    "usage_count": 1,
}


class Project:
    """Project in its own folder, with a clock that the test advances."""

    def __init__(self, folder: Path) -> None:
        self.paths = ProjectPaths(folder)
        self.now = NOW
        self.index = self.open()

    def open(self, *, cache: bool = False) -> Index:
        return Index(self.paths, Settings(), clock=lambda: self.now, is_kept=cache)

    def write(self, name: str, content: Any) -> Path:
        file = self.paths.aiwg / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return file

    def state(self, loop: str = LOOP, **fields: Any) -> Path:
        start = fields.pop("startTime", "2026-11-21T20:00:00Z")
        state = {"loopId": loop, "task": "x", "status": "completed", "startTime": start, **fields}
        return self.write(f"ralph/loops/{loop}/state.json", state)

    def patterns(self, *records: Any, folder: str = "ralph/shared/patterns") -> Path:
        return self.write(f"{folder}/error-patterns.json", list(records))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Project(tmp_path / "project")


def codes(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(finding.file, finding.code) for finding in snapshot.findings]


class TestTrees:
    def test_the_documents_own_examples(self) -> None:
        snapshot = Project(TREES / "spec-examples").index.load()
        assert {pattern.id: pattern.title for pattern in snapshot.patterns.values()} == {
            "pat-error-null-check-001": "TypeError: null check",
            "pat-error-null-check-015": "TypeError: null check",
            "pat-error-type-mismatch-003": "TypeError: type mismatch",
            "pat-success-test-generation-001": "Test generation",
            "pat-anti-premature-optimization-001": "Premature optimization",
            "tmpl-async-error-handler-001": "Async error handler",
        }
        (copy,) = snapshot.patterns["pat-error-null-check-001"].copies
        assert copy.file == ".aiwg/ralph/memory/patterns/error-patterns.json"
        assert copy.differs
        assert snapshot.patterns["pat-error-null-check-001"].recorded_counts.uses == 12
        assert set(snapshot.loops) == {"ralph-fix-api-d4e5f6a7", "ralph-fix-validation-b2c3d4e5"}
        assert snapshot.complete
        assert all(finding.severity is not Severity.ERROR for finding in snapshot.findings)

    def test_files_of_the_original_tools_are_read(self) -> None:
        snapshot = Project(TREES / "upstream").index.load()
        folders = {
            folder.name
            for home in ("ralph/loops", "ralph/archive", "ralph-external/archive")
            for folder in (TREES / "upstream/.aiwg" / home).iterdir()
        }
        assert folders <= set(snapshot.loops)
        assert snapshot.patterns == {}
        assert len(snapshot.memory_tasks) == 9
        assert snapshot.reflections
        assert snapshot.unreadable == {}


class TestLoading:
    def test_progress_and_partial_snapshots_the_newest_loops_first(self, project: Project) -> None:
        started = {
            f"ralph-a-{n * 7 % 250:08x}": datetime(2026, 11, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(250)
        }
        for loop_id, start in started.items():
            file = project.state(loop_id, startTime=start.isoformat())
            os.utime(file, (start.timestamp(), start.timestamp()))
            project.write(f"ralph/loops/{loop_id}/analytics/{loop_id}.json", {"loop_id": loop_id, "iterations": []})
        project.patterns(PATTERN)
        progress: list[tuple[int, int]] = []
        partial: list[Snapshot] = []
        snapshot = project.index.load(lambda done, total: progress.append((done, total)), partial.append)
        swept = [found for found, total in progress if not total]
        assert swept == sorted(swept) and 700 < swept[-1] <= 751, "files found, while their number is not known"
        assert progress[len(swept) :] == [(done, 651) for done in (*range(100, 651, 100), 651)]
        assert not partial[0].complete
        assert list(partial[0].loops) == list(started)[:-101:-1], "loops whose state is read, not folders or figures"
        assert {loop.status for loop in partial[0].loops.values()} == {LoopStatus.COMPLETED}
        assert not partial[0].patterns
        assert snapshot.number > partial[-1].number
        assert len(snapshot.loops) == 250
        starts = [loop.started_at for loop in snapshot.loops.values() if loop.started_at]
        assert starts == sorted(starts, reverse=True)

    def test_the_newest_loops_are_published_before_the_project_is_swept(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(100):
            project.state(f"ralph-a-{number:08x}")
        partial: list[Snapshot] = []
        published_before: list[int] = []

        def counted(*args: Any, **options: Any) -> sweep.Sweep:
            published_before.append(len(partial[0].loops))
            return sweep.sweep(*args, **options)

        monkeypatch.setattr(core.index.refresh, "sweep", counted)
        project.index.load(publish=partial.append)
        assert published_before == [100]

    def test_the_lists_come_before_the_reflections_are_read_if_these_take_long(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.state()
        project.patterns(PATTERN)
        for number in range(1, 9):
            reflection = {"content": f"x{number}", "iteration": number}
            project.write(f"ralph/loops/ralph-a-00000001/reflections/reflection-{number}.json", reflection)
        clock = itertools.count()
        monkeypatch.setattr(core.index.refresh, "monotonic", lambda: next(clock))  # each file takes a second
        partial: list[Snapshot] = []
        snapshot = project.index.load(publish=partial.append)
        lists = [one for one in partial if not one.complete][-1]
        assert (lists.loops, lists.patterns) == (snapshot.loops, snapshot.patterns)
        assert not lists.reflections
        assert len(snapshot.reflections) == 8

    def test_a_file_with_a_time_that_no_database_can_store_is_read(self, project: Project) -> None:
        project.state()
        in_year_2400 = 13_569_465_600
        os.utime(project.paths.ralph / f"loops/{LOOP}/state.json", (in_year_2400, in_year_2400))
        assert list(project.index.load().loops) == [LOOP]
        assert not project.index.refresh()[1]

    def test_a_load_that_ended_between_two_steps_goes_on_after_the_last_one(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(20):
            project.state(f"ralph-a-{number:08x}")
        clock = itertools.count()
        monkeypatch.setattr(core.index.refresh, "monotonic", lambda: next(clock))  # each file takes a second
        steps: list[Snapshot] = []

        def end_in_third_step(snapshot: Snapshot) -> None:
            steps.append(snapshot)
            if len(steps) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            project.open(cache=True).load(publish=end_in_third_step)
        progress: list[tuple[int, int]] = []
        snapshot = project.open(cache=True).load(lambda *counts: progress.append(counts))
        assert snapshot.complete
        assert len(snapshot.loops) == 20
        assert 0 < progress[-1][1] < 40, "of the folders and states of 20 loops"

    def test_all_lists_are_shown_before_texts_are_indexed_which_the_next_load_does_if_the_first_one_ended(
        self, project: Project
    ) -> None:
        project.patterns(PATTERN)
        with_texts: list[bool] = []

        def end_when_complete(snapshot: Snapshot) -> None:
            assert isinstance(snapshot, IndexedSnapshot)
            if snapshot.complete:
                with_texts.append(load_texts(snapshot) is not None)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            project.open(cache=True).load(publish=end_when_complete)
        snapshot = project.open(cache=True).load()
        assert isinstance(snapshot, IndexedSnapshot)
        texts = load_texts(snapshot)
        assert with_texts == [False] and texts is not None
        assert texts.index.size == 1

    @pytest.mark.parametrize(("tree", "seconds"), [("spec-examples", 1.0), ("hostile-texts", 0.1)])
    def test_a_load_in_many_steps_shows_what_a_load_in_one_step_does(
        self, project: Project, monkeypatch: pytest.MonkeyPatch, tree: str, seconds: float
    ) -> None:
        if tree == "spec-examples":
            copy_folder(TREES / tree, project.paths.project)
        else:
            write_texts(project.paths.project)
            for kind in ("loops", "archive", "tasks"):
                for number, folder in enumerate(sorted(project.paths.ralph.glob(f"{kind}/*"))):
                    if number % 3:
                        shutil.rmtree(folder)
        whole = project.index.load()
        clock = itertools.count(step=seconds)  # of each file
        monkeypatch.setattr(core.index.refresh, "monotonic", lambda: next(clock))
        partial: list[Snapshot] = []
        stepwise = project.open().load(publish=partial.append)
        assert len(partial) > 5
        for name in COLLECTIONS:
            assert dict(getattr(stepwise, name)) == dict(getattr(whole, name)), name
        assert stepwise.findings == whole.findings

    def test_damaged_files_do_not_affect_others(self, project: Project) -> None:
        project.patterns(PATTERN, *range(250), {"pattern_id": "pat-error-b-001"})
        project.state()
        project.write("ralph/loops/ralph-b-00000002/state.json", [1])
        for name in ("y", "x"):
            project.write(f"ralph/heartbeats/{name}.json", b"[" * 5000)
        snapshot = project.index.load()
        assert set(snapshot.patterns) == {PATTERN["pattern_id"], "pat-error-b-001"}
        assert set(snapshot.loops) >= {LOOP, "ralph-b-00000002"}
        found = codes(snapshot)
        assert [file for file, _ in found] == sorted(file for file, _ in found)
        assert [file for file, code in found if code == "too-deep"] == [
            ".aiwg/ralph/heartbeats/x.json",
            ".aiwg/ralph/heartbeats/y.json",
        ]
        assert (".aiwg/ralph/loops/ralph-b-00000002/state.json", "wrong-type") in found
        patterns = ".aiwg/ralph/shared/patterns/error-patterns.json"
        assert found.count((patterns, "wrong-type")) == 1, "it does not bury the others"

    def test_violations_of_one_kind_in_many_files_are_one_finding_with_a_count(self, project: Project) -> None:
        for number in range(1, 13):
            project.write(f"ralph/tasks/task-{number:03}/metadata.json", b'{"id": "t", "status": "asleep"}')
        found = project.index.load()
        (finding,) = found.findings
        assert (finding.code, finding.count, finding.pointer) == ("not-in-schema", 12, "/status")
        assert finding.file == ".aiwg/ralph/tasks/task-001/metadata.json"
        assert "'asleep' is not one of running" in finding.message
        assert "11 more like it, for example .aiwg/ralph/tasks/task-002/metadata.json" in finding.message
        assert len(found.tasks) == 12

    def test_only_the_end_of_a_longer_event_log_is_read(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lines(first: int, last: int) -> bytes:
            times = (f"2026-05-{day % 28 + 1:02}T10:00:00Z" for day in range(first, last))
            return b"".join(
                json.dumps({"id": f"e{number}", "kind": "applied", "pattern_id": "p", "at": at}).encode() + b"\n"
                for number, at in enumerate(times, first)
            )

        read = file_reader.read_file
        sizes = []

        def counted(*arguments: Any) -> Any:
            found = read(*arguments)
            if isinstance(found, RawFile):
                sizes.append(len(found.data))
            return found

        monkeypatch.setattr(core.index.logs, "read_file", counted)
        file = project.write("ralph/shared/curation/events.jsonl", lines(0, 2000))
        project.index.load()
        with file.open("ab") as log:
            log.write(lines(2000, 2002))
        snapshot, delta = project.index.refresh([file])
        assert delta.events
        assert sizes[-1] == (1 << 16) + len(lines(2000, 2002))
        assert list(snapshot.events) == list(project.open().load().events)
        file.write_bytes(lines(5, 2008))  # another text of about the same length, in the same file
        snapshot, _ = project.index.refresh([file])
        assert {event.id for event in snapshot.events} == {f"e{number}" for number in range(5, 2008)}

    def test_a_change_gives_a_new_snapshot_in_which_only_its_record_differs(self, project: Project) -> None:
        other = {**PATTERN, "pattern_id": "pat-error-b-001"}
        project.patterns(PATTERN, other)
        project.state("ralph-b-00000002")
        file = project.state()
        before = project.index.load()
        loops = dict(before.loops)
        with pytest.raises(TypeError):
            before.loops["x"] = before.loops[LOOP]  # type: ignore[index]
        same, delta = project.index.refresh([file])
        assert not delta and same is before
        after, delta = project.index.refresh([project.state(status="failed")])
        assert delta.loops == {LOOP} and not delta.patterns
        assert before.loops == loops and after.number == before.number + 1
        assert after.loops[LOOP].status is LoopStatus.FAILED
        assert after.loops["ralph-b-00000002"] is before.loops["ralph-b-00000002"]
        assert after.patterns is before.patterns and after.reflections is before.reflections
        later, delta = project.index.refresh([project.patterns({**PATTERN, "usage_count": 3}, other)])
        assert delta.patterns == {PATTERN["pattern_id"]}
        assert later.patterns["pat-error-null-check-001"].recorded_counts.uses == 3
        assert later.patterns is not after.patterns and later.loops is after.loops


def test_a_snapshot_has_the_decisions_of_its_time_when_they_are_read_later(project: Project) -> None:
    def decide(id: str) -> Path:
        line = {"kind": "decision", "id": id, "at": "2026-11-21T20:00:00Z", "by": "ana", "verb": "note", "subject": "p"}
        file = project.paths.aiwg / "ralph/shared/curation/ledger.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as log:
            log.write(f"{json.dumps(line)}\n")
        return file

    decide("one")
    before = project.index.load()
    after, delta = project.index.refresh([decide("two")])
    assert delta
    assert [decision.id for decision in after.decisions] == ["one", "two"]
    assert [decision.id for decision in before.decisions] == ["one"]


class TestChanges:
    def test_a_loop_that_is_archived_stays_one_loop(self, project: Project) -> None:
        folder = project.state().parent
        project.index.load()
        archive = project.paths.ralph / "archive"
        archive.mkdir()
        moved = folder.rename(archive / folder.name)
        after, delta = project.index.refresh([folder, moved])
        assert delta.loops == {LOOP}
        assert after.loops[LOOP].archived
        assert after.loops[LOOP].sources == ("archive",)

    def test_a_folder_is_read_and_removed_as_a_whole_and_paths_elsewhere_are_passed_over(
        self, project: Project
    ) -> None:
        before = project.index.load()
        assert before.complete and not before.loops and not before.findings
        _, delta = project.index.refresh([Path("/etc/passwd"), project.paths.project / "src/main.py"])
        assert not delta
        folder = project.state().parent
        after, _ = project.index.refresh([folder])
        assert set(after.loops) == {LOOP}
        shutil.rmtree(folder)
        after, delta = project.index.refresh([folder / "state.json"])
        assert delta.loops == {LOOP}
        assert not after.loops

    @pytest.mark.parametrize("named", [True, False])
    def test_a_removed_root_folder_can_return(self, project: Project, named: bool) -> None:
        project.state()
        project.patterns(PATTERN)
        project.index.load()
        shutil.rmtree(project.paths.aiwg)
        after, delta = project.index.refresh([project.paths.aiwg] if named else None)
        assert (after.loops, after.patterns) == ({}, {})
        assert delta.loops == {LOOP}
        project.state()
        after, delta = project.index.refresh([project.paths.aiwg] if named else None)
        assert set(after.loops) == {LOOP}

    def test_sweep_finds_unreported_changes(self, project: Project) -> None:
        project.state()
        project.index.load()
        project.state(status="failed")
        project.state("ralph-b-00000002")
        after, delta = project.index.refresh(None)
        assert delta.loops == {LOOP, "ralph-b-00000002"}
        assert after.loops[LOOP].status is LoopStatus.FAILED

    def test_changes_one_by_one_end_where_a_fresh_load_does(self, tmp_path: Path) -> None:
        project = Project(tmp_path)
        project.index.load()
        for tree in ("upstream", "spec-examples"):
            copy_folder(TREES / tree, tmp_path)
        files = sorted(file for file in project.paths.aiwg.rglob("*") if file.is_file())
        for file in files:
            project.index.refresh([file])
        for file in files[::3]:
            file.unlink()
            project.index.refresh([file])
        after, fresh = project.index.snapshot, project.open().load()
        for name in COLLECTIONS:
            assert dict(getattr(after, name)) == dict(getattr(fresh, name)), name
        assert after.findings == fresh.findings


class TestTornFiles:
    def test_the_last_good_value_stays_and_the_file_is_to_be_retried_until_it_is_whole_or_deleted(
        self, project: Project
    ) -> None:
        file = project.patterns(PATTERN)
        before = project.index.load()
        file.write_bytes(b"")
        after, delta = project.index.refresh([file])
        assert not delta
        assert after.patterns == before.patterns
        assert set(project.index.retry_paths) == {file}
        project.patterns({**PATTERN, "usage_count": 2})
        after, delta = project.index.refresh(project.index.retry_paths)
        assert delta.patterns
        assert not project.index.retry_paths
        assert after.unreadable == {}
        file.write_bytes(b"[")
        project.index.refresh([file])
        assert set(project.index.retry_paths) == {file}
        file.unlink()
        project.index.refresh([file])
        assert not project.index.retry_paths

    def test_it_is_reported_only_after_a_while(self, project: Project) -> None:
        file = project.state()
        project.index.load()
        file.write_bytes(b'{"loopId": ')
        torn_at = project.now
        project.index.refresh([file])
        project.wait(UNREADABLE_AFTER.total_seconds() / 2)
        after, _ = project.index.refresh([file])
        assert after.unreadable == {}
        assert after.findings == ()
        project.wait(UNREADABLE_AFTER.total_seconds())
        after, delta = project.index.check_time()
        name = project.paths.relative(file)
        assert after.unreadable == {name: torn_at}
        assert codes(after) == [(name, "bad-json")]
        assert delta.findings
        assert after.loops[LOOP].status is LoopStatus.COMPLETED
        project.state()
        after, _ = project.index.refresh([file])
        assert after.unreadable == {}
        assert after.findings == ()

    def test_a_loop_whose_state_was_never_whole_is_a_row(self, project: Project) -> None:
        project.write(f"ralph/loops/{LOOP}/state.json", b"")
        assert set(project.index.load().loops) == {LOOP}


class TestClosedFolders:
    def test_they_are_findings_until_they_can_be_read_again(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.state()
        folder = project.write("ralph/archive/b/state.json", {"loopId": "b", "status": "completed"}).parents[1]
        real = os.scandir

        def scandir(path: str) -> object:
            if str(path) == str(folder):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return real(path)

        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", scandir)
            snapshot = project.index.load()
            assert codes(snapshot) == [(".aiwg/ralph/archive", "unreadable")]
            assert snapshot.findings[0].severity is Severity.ERROR
            assert set(snapshot.loops) == {LOOP}
            assert codes(project.index.refresh([folder])[0]) == codes(snapshot)
        snapshot, delta = project.index.refresh([folder])
        assert delta.findings
        assert snapshot.findings == ()
        assert set(snapshot.loops) == {LOOP, "b"}


class TestReopening:
    def test_a_second_start_knows_the_same_and_what_changed_in_between(self, project: Project) -> None:
        for tree in ("upstream", "spec-examples"):
            copy_folder(TREES / tree, project.paths.project)
        project.state()
        first = project.open(cache=True).load()
        again = project.open(cache=True).load()
        for name in COLLECTIONS:
            assert dict(getattr(again, name)) == dict(getattr(first, name)), name
        assert again.findings == first.findings
        project.state(status="failed")
        (project.paths.patterns / "error-patterns.json").unlink()
        changed = project.open(cache=True).load()
        assert changed.loops[LOOP].status is LoopStatus.FAILED
        assert len(changed.patterns) < len(first.patterns)

    def test_a_refused_file_is_not_read_again(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        project.write("ralph/heartbeats/x.json", b"[" * 5000)
        first = project.open(cache=True).load()
        with monkeypatch.context() as patch:
            patch.setattr(core.index.parse, "read_file", lambda *_args: pytest.fail("read again"))
            assert project.open(cache=True).load().findings == first.findings != ()

    def test_invalid_time_is_a_finding_and_the_rest_is_read(self, project: Project) -> None:
        project.patterns(PATTERN)
        line = {"kind": "decision", "id": "x", "at": "9999-12-31T23:59:59-23:59", "by": "", "verb": "note"}
        project.write("ralph/shared/curation/ledger.jsonl", json.dumps({**line, "subject": "p"}).encode() + b"\n")
        for _ in range(2):
            snapshot = project.open(cache=True).load()
            assert codes(snapshot) == [(".aiwg/ralph/shared/curation/ledger.jsonl", "bad-time")]
            assert set(snapshot.patterns) == {PATTERN["pattern_id"]}


def test_copy_is_found_in_a_rewritten_file(project: Project) -> None:
    file = project.patterns(PATTERN)
    project.index.load()
    file.write_text(json.dumps([PATTERN], indent=4))
    project.index.refresh([file])
    after, _ = project.index.refresh([project.patterns(PATTERN, PATTERN)])
    assert [code for _, code in codes(after)] == [code for _, code in codes(project.open().load())] == ["duplicate-id"]
    identifier = PATTERN["pattern_id"]
    assert len(project.index.copies(str(identifier))) == 2
    assert dict(after.patterns) == dict(project.open().load().patterns)


def test_similar_defects_of_a_log_are_one_finding_however_it_grows(project: Project) -> None:
    defect = b'{"kind": "unknown"\n'
    log = project.write("ralph/shared/curation/events.jsonl", defect * 30)
    assert [finding.count for finding in project.index.load().findings] == [30]
    with log.open("ab") as file:
        file.write(defect * 4)
    snapshot, _ = project.index.refresh([log])
    assert [(finding.pointer, finding.count) for finding in snapshot.findings] == [("line 1", 34)]


def test_details_of_an_unknown_loop_are_refused(project: Project) -> None:
    project.index.load()
    with pytest.raises(UnknownRecord, match="no loop"):
        project.index.story("\x1b[2J")


def test_calls_from_many_threads_leave_it_consistent(project: Project) -> None:
    project.state()
    project.index.load()
    files = [project.paths.ralph / "loops" / f"ralph-t-{number:08x}" / "state.json" for number in range(4)]

    def work(number: int) -> Iterator[None]:
        for status in ("running", "failed", "completed"):
            project.state(f"ralph-t-{number:08x}", status=status)
            project.index.refresh([files[number]])
            project.index.check_time()
            yield

    threads = [threading.Thread(target=lambda number=number: list(work(number))) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    snapshot, _ = project.index.refresh(None)
    assert len(snapshot.loops) == 5
    assert all(loop.status is LoopStatus.COMPLETED for loop in snapshot.loops.values())


def test_one_sweep_in_ten_lists_folders_without_a_new_time(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.state()
    monkeypatch.setattr("time.time_ns", lambda: 2**62)
    listed = record_calls(monkeypatch, FolderWalk, "_list")
    project.index.load()
    counts = []
    for _ in range(10):
        listed.clear()
        project.index.refresh(None)
        counts.append(len(listed))
    assert counts == [0] * 8 + [3, 0]
