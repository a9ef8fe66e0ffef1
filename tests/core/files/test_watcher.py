"""The watcher reports every change despite replaced folders, full queues and limits."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import WatchSettings
from core.files import watcher as watcher_module
from core.files.watcher import FileChanges, Watcher, WatchMode

LONG = WatchSettings(sweep_seconds=3600, poll_seconds=3600)
"""No sweep comes by itself."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


class Heard:
    """Collects the batches of a watcher in order; waits for more."""

    def __init__(self) -> None:
        self.batches: list[FileChanges] = []
        self._more = threading.Condition()

    def __call__(self, changes: FileChanges) -> None:
        with self._more:
            self.batches.append(changes)
            self._more.notify_all()

    @property
    def paths(self) -> set[Path]:
        return {path for batch in self.batches for path in batch.paths}

    @property
    def sweeps(self) -> int:
        return sum(batch.sweep for batch in self.batches)

    def wait(self, until: Callable[[Heard], bool], seconds: float = 10) -> None:
        with self._more:
            assert self._more.wait_for(lambda: until(self), seconds), self.batches[-3:]

    def wait_for_path(self, path: Path) -> None:
        self.wait(lambda heard: path in heard.paths)


@contextmanager
def watched(
    paths: ProjectPaths, settings: WatchSettings = LONG, is_record: Callable[[Path], bool] = lambda path: True
) -> Iterator[tuple[Watcher, Heard]]:
    """Watcher whose first sweep was received."""
    heard = Heard()
    with Watcher(paths, settings, heard, is_record=is_record) as watcher:
        heard.wait(lambda heard: heard.sweeps == 1)
        yield watcher, heard


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def project(tmp_path: Path) -> ProjectPaths:
    paths = ProjectPaths(tmp_path)
    (paths.ralph / "loops" / "a").mkdir(parents=True)
    (paths.external / "loops").mkdir(parents=True)
    return paths


def test_starts_with_a_sweep_and_leaves_no_thread(project: ProjectPaths) -> None:
    before = set(threading.enumerate())
    with watched(project) as (watcher, heard):
        assert heard.batches == [FileChanges(frozenset(), sweep=True)]
        state = watcher.state
        assert (state.mode, state.reason) == (WatchMode.EVENTS, "")
        assert state.watches == 5
        with pytest.raises(RuntimeError, match="only once"):
            watcher.start()
    assert set(threading.enumerate()) == before
    assert watcher.state.mode is WatchMode.WAITING


def test_writes_appends_renames_removals_and_files_in_new_folders_are_reported(project: ProjectPaths) -> None:
    folder, events = project.ralph / "loops" / "a", project.ralph / "events.jsonl"
    with watched(project) as (_watcher, heard):
        (folder / "state.json").write_text("{}")
        heard.wait_for_path(folder / "state.json")
        (folder / "new.tmp").write_text("{}")
        (folder / "new.tmp").rename(folder / "new.json")
        heard.wait_for_path(folder / "new.json")
        heard.batches.clear()
        (folder / "new.json").unlink()
        heard.wait_for_path(folder / "new.json")
        with events.open("a") as file:
            heard.wait_for_path(events)
            heard.batches.clear()
            file.write("{}\n")
            file.flush()
            heard.wait_for_path(events)
        loops = [project.ralph / "loops" / f"ralph-{number}" / "iterations" for number in range(20)]
        for loop in loops:
            loop.mkdir(parents=True)
            (loop / "iteration-1.json").write_text("{}")
        heard.wait(lambda heard: heard.paths >= {loop / "iteration-1.json" for loop in loops})
        assert heard.sweeps == 0


def test_reading_is_not_a_change(project: ProjectPaths) -> None:
    path = project.ralph / "registry.json"
    path.write_text("{}")
    marker = project.ralph / "marker"
    with watched(project) as (_, heard):
        path.read_text()
        list(project.ralph.iterdir())
        marker.write_text("")
        heard.wait_for_path(marker)
        assert path not in heard.paths


def test_many_writes_to_one_file_are_one_batch(project: ProjectPaths) -> None:
    path, last = project.ralph / "state.json", project.ralph / "last.json"
    with watched(project, WatchSettings(batch_seconds=0.5, sweep_seconds=3600)) as (_, heard):
        for number in range(100):
            path.write_text(str(number))
        last.write_text("")
        heard.wait_for_path(last)
        assert len(heard.batches[1:]) <= 2
        assert heard.paths == {path, last}


@pytest.mark.parametrize("way", ["closed", "renamed"])
def test_a_closed_file_is_reported_at_once(project: ProjectPaths, way: str) -> None:
    path, draft = project.ralph / "state.json", project.ralph / "draft"
    settings = WatchSettings(batch_seconds=60, sweep_seconds=3600)
    with watched(project, settings, lambda path: path.suffix == ".json") as (_, heard):
        if way == "closed":
            path.write_text("{}")
        else:
            draft.write_text("{}")
            draft.rename(path)
        heard.wait_for_path(path)
        assert len(heard.batches) == 2


def test_a_record_does_not_wait_for_its_draft_and_delays_only_what_follows(project: ProjectPaths) -> None:
    settings = WatchSettings(batch_seconds=60, sweep_seconds=3600)
    watcher = Watcher(project, settings, Heard(), is_record=lambda path: path.suffix == ".json")
    draft, record, other = (project.ralph / name for name in ("draft", "state.json", "other.json"))

    def take() -> FileChanges | None:
        return watcher._take(time.monotonic(), sweep=False)

    watcher.changed(draft, whole=True)
    assert take() is None
    watcher.changed(record, whole=True)
    assert take() == FileChanges(frozenset({draft, record}), sweep=False)
    watcher.changed(other, whole=True)
    assert take() is None
    assert watcher._take(time.monotonic() + 60, sweep=False) == FileChanges(frozenset({other}), sweep=False)


@pytest.mark.parametrize(("seconds", "interval"), [(0.0, 60.0), (0.2, 60.0), (1.5, 300.0)])
def test_sweeps_are_rarer_the_more_they_take(project: ProjectPaths, seconds: float, interval: float) -> None:
    watcher = Watcher(project, WatchSettings(), Heard())
    watcher.swept(seconds)
    assert watcher._sweep_interval == interval


def test_changes_during_a_call_are_in_the_next_batch(project: ProjectPaths) -> None:
    first, second = project.ralph / "first", project.ralph / "second"
    entered, leave = threading.Event(), threading.Event()
    running: list[int] = []
    heard = Heard()

    def slow(changes: FileChanges) -> None:
        running.append(1)
        if first in changes.paths:
            entered.set()
            leave.wait(10)
        assert len(running) == 1
        running.clear()
        heard(changes)

    with Watcher(project, LONG, slow):
        heard.wait(lambda heard: heard.sweeps == 1)
        first.write_text("")
        assert entered.wait(10)
        second.write_text("")
        leave.set()
        heard.wait_for_path(second)


def test_a_failing_callback_does_not_end_the_watch(project: ProjectPaths, caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()

    def fail(changes: FileChanges) -> None:
        heard(changes)
        raise ValueError("no")

    with Watcher(project, LONG, fail):
        heard.wait(lambda heard: heard.sweeps == 1)
        (project.ralph / "x").write_text("")
        heard.wait_for_path(project.ralph / "x")
    assert "could not be applied" in caplog.text


def test_stop_from_within_a_call(project: ProjectPaths) -> None:
    stopped = threading.Event()

    def stop(changes: FileChanges) -> None:
        watcher.stop()
        stopped.set()

    watcher = Watcher(project, LONG, stop)
    watcher.start()
    assert stopped.wait(10)
    watcher.stop()


def test_sweeps_regularly(project: ProjectPaths) -> None:
    with watched(project, WatchSettings(sweep_seconds=0.05)) as (_, heard):
        heard.wait(lambda heard: heard.sweeps >= 3)


def test_links_are_not_followed(project: ProjectPaths, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (project.ralph / "loops" / "link").symlink_to(outside)
    with watched(project) as (watcher, heard):
        assert watcher.state.watches == 5
        (outside / "deep" / "secret").write_text("")
        marker = project.ralph / "marker"
        marker.write_text("")
        heard.wait_for_path(marker)
        assert not any("deep" in path.parts for path in heard.paths)


def test_a_folder_that_is_a_link_is_not_watched(tmp_path: Path) -> None:
    project = ProjectPaths(tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()
    project.aiwg.mkdir(parents=True)
    project.ralph.symlink_to(tmp_path / "elsewhere")
    with watched(project) as (watcher, _):
        assert watcher.state.mode is WatchMode.WAITING


def test_waits_for_a_missing_project(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "later")
    with watched(paths) as (watcher, heard):
        assert watcher.state.mode is WatchMode.WAITING
        assert "yet" in watcher.state.reason
        paths.ralph.mkdir(parents=True)
        heard.wait(lambda heard: heard.sweeps == 2)
        wait_until(lambda: watcher.state.mode is WatchMode.EVENTS)
        (paths.ralph / "x").write_text("")
        heard.wait_for_path(paths.ralph / "x")


def test_the_second_folder_may_come_later(project: ProjectPaths) -> None:
    shutil.rmtree(project.external)
    with watched(project) as (_, heard):
        project.external.mkdir()
        heard.wait(lambda heard: heard.sweeps == 2)
        (project.external / "registry.json").write_text("")
        heard.wait_for_path(project.external / "registry.json")


def test_a_deleted_and_recreated_folder_is_watched_again(project: ProjectPaths) -> None:
    with watched(project) as (_, heard):
        for _ in range(3):
            sweeps = heard.sweeps
            shutil.rmtree(project.ralph)
            project.ralph.mkdir()  # mostly with the same inode
            heard.wait(lambda heard, sweeps=sweeps: heard.sweeps > sweeps)  # type: ignore[misc]
            path = project.ralph / "x"

            def parsed(path: Path = path) -> bool:
                path.write_text("")
                return path in heard.paths

            wait_until(parsed)
            heard.batches.clear()


@pytest.mark.slow
def test_a_folder_moved_away_and_back(project: ProjectPaths, tmp_path: Path) -> None:
    away = tmp_path / "away"
    with watched(project) as (watcher, heard):
        project.aiwg.rename(away)
        wait_until(lambda: watcher.state.mode is WatchMode.WAITING)
        heard.wait(lambda heard: heard.sweeps == 2)
        away.rename(project.aiwg)
        wait_until(lambda: watcher.state.mode is WatchMode.EVENTS)
        heard.wait(lambda heard: heard.sweeps == 3)
        path = project.ralph / "loops" / "a" / "x"
        path.write_text("")
        heard.wait_for_path(path)


@pytest.mark.slow
def test_a_folder_replaced_by_another(project: ProjectPaths, tmp_path: Path) -> None:
    (tmp_path / "new" / "loops").mkdir(parents=True)
    with watched(project) as (_, heard):
        project.ralph.rename(tmp_path / "old")
        (tmp_path / "new").rename(project.ralph)
        heard.wait(lambda heard: heard.sweeps == 2)
        path = project.ralph / "loops" / "x"
        path.write_text("")
        heard.wait_for_path(path)
        heard.batches.clear()
        (tmp_path / "old" / "loops" / "y").write_text("")
        path.write_text("again")
        heard.wait_for_path(path)
        assert project.ralph / "loops" / "y" not in heard.paths


def test_one_file_moved_out_does_not_hold_back_the_others(project: ProjectPaths, tmp_path: Path) -> None:
    taken = []
    with watched(project) as (_, heard):
        for number in range(4):  # the machine may be busy elsewhere, but not every time
            path, other = project.ralph / f"out{number}", project.ralph / f"other{number}"
            path.write_text("")
            heard.wait_for_path(path)
            path.rename(tmp_path / path.name)
            written = time.monotonic()
            other.write_text("")
            heard.wait_for_path(other)
            taken.append(time.monotonic() - written)
    assert min(taken) < 0.4


def test_torn_files_are_retried_until_whole_or_out_of_delays(project: ProjectPaths) -> None:
    torn, whole = project.ralph / "torn", project.ralph / "whole"
    settings = WatchSettings(sweep_seconds=3600, retry_seconds=(0.01, 0.02, 0.03))
    heard = Heard()

    def callee(changes: FileChanges) -> None:
        watcher.retry([torn, whole] if changes.sweep else [torn])
        heard(changes)

    def parsed(path: Path) -> int:
        return sum(path in batch.paths for batch in heard.batches)

    watcher = Watcher(project, settings, callee)
    with watcher:
        heard.wait(lambda _: parsed(torn) == 3)
        for name in ("one", "two"):  # two more batches, time enough for a fourth try
            (project.ralph / name).write_text("")
            heard.wait_for_path(project.ralph / name)
    assert parsed(torn) == 3
    assert parsed(whole) == 1


def test_a_write_restarts_the_retries_of_a_torn_file(project: ProjectPaths) -> None:
    torn = project.ralph / "torn"
    settings = WatchSettings(sweep_seconds=3600, retry_seconds=(0.01,))
    heard = Heard()

    def callee(changes: FileChanges) -> None:
        watcher.retry([torn])
        heard(changes)

    watcher = Watcher(project, settings, callee)
    with watcher:
        heard.wait(lambda heard: len(heard.batches) == 2)
        torn.write_text("{")
        heard.wait(lambda heard: len(heard.batches) == 4)


def test_a_flood_becomes_a_sweep(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "_MAX_PATHS", 10)
    with watched(project, WatchSettings(batch_seconds=0.3, sweep_seconds=3600)) as (_, heard):
        heard.wait(lambda heard: heard.sweeps > 0)
        before = heard.sweeps
        for number in range(200):  # the first ones go through at once
            (project.ralph / f"f{number}").write_text("")
        heard.wait(lambda heard: heard.sweeps > before)
        assert all(len(batch.paths) <= 10 for batch in heard.batches)


@pytest.mark.slow
def test_an_idle_watcher_uses_little_cpu(project: ProjectPaths) -> None:
    with watched(project):
        begin, cpu = time.monotonic(), time.process_time()
        time.sleep(1.5)
        share = (time.process_time() - cpu) / (time.monotonic() - begin)
    assert share < 0.02


# Runs in a process of its own, whose limits are lowered.

_CHILD = """
import sys, time
from pathlib import Path
from core.base.paths import ProjectPaths
from core.base.settings import WatchSettings
from core.files.watcher import Watcher

def parsed(changes):
    print("sweep" if changes.sweep else "paths", watcher.state.mode, watcher.state.watches, flush=True)

watcher = Watcher(ProjectPaths(Path(sys.argv[1])), WatchSettings(sweep_seconds=3600, poll_seconds=0.2), parsed)
watcher.start()
sys.stdin.readline()
print("reason:", watcher.state.reason, flush=True)
watcher.stop()
"""


class Child:
    """Watcher in its own process, which prints the batches that it receives."""

    def __init__(self, project: ProjectPaths, *, prepare: str = "") -> None:
        command = [sys.executable, "-c", _CHILD, str(project.project)]
        if prepare:
            command = ["unshare", "-Ur", "sh", "-c", prepare + '\nexec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[str, str]:
        """Return the last reason and the text on stderr."""
        out, err = self.process.communicate("\n", timeout=20)
        return out.strip().splitlines()[-1].removeprefix("reason:").strip(), err


def _can_unshare() -> bool:
    command = ["unshare", "-Ur", "sh", "-c", "echo 9 > /proc/sys/user/max_inotify_watches"]
    try:
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="module")
def namespaces() -> None:
    if not _can_unshare():
        pytest.skip("no user namespaces here")


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize(("limit", "kind"), [("20", "watch"), ("0", "instance")])
def test_a_limit_of_the_system_leads_to_polling(project: ProjectPaths, limit: str, kind: str) -> None:
    for number in range(30):
        (project.ralph / "loops" / f"ralph-{number}").mkdir()
    names = {"watch": "max_inotify_watches", "instance": "max_inotify_instances"}
    child = Child(project, prepare=f"echo {limit} > /proc/sys/user/{names[kind]}")
    assert [child.line() for _ in range(3)] == ["sweep polling 0"] * 3
    assert child.end() == (f"inotify {kind} limit reached; checking every 0.2 s instead", "")


@pytest.mark.usefixtures("namespaces")
def test_the_limit_of_watches_reached_later_leads_to_polling(project: ProjectPaths) -> None:
    child = Child(project, prepare="echo 20 > /proc/sys/user/max_inotify_watches")
    assert child.line() == "sweep events 5"
    for number in range(30):
        (project.ralph / "loops" / f"ralph-{number}").mkdir()
    while (line := child.line()) != "sweep polling 0":
        assert line.startswith("paths events")
    reason, err = child.end()
    assert reason.startswith("inotify watch limit reached")
    assert err == ""


def test_too_many_open_files_leads_to_polling(project: ProjectPaths) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    heard = Heard()
    watcher = Watcher(project, LONG, heard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, limits[1]))
    fill = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                fill.append(os.dup(0))
        watcher.start()
        heard.wait(lambda heard: heard.sweeps == 1)
    finally:
        for descriptor in fill:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert watcher.state.mode is WatchMode.POLLING
    watcher.stop()


def test_events_are_tried_again_after_polling(project: ProjectPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers import inotify_c

    real = inotify_c.inotify_add_watch
    full = True

    def add_watch(fd: int, path: bytes, mask: int) -> int:
        if full:
            ctypes.set_errno(errno.ENOSPC)
            return -1
        return real(fd, path, mask)

    monkeypatch.setattr(inotify_c, "inotify_add_watch", add_watch)
    monkeypatch.setattr(watcher_module, "_RETRY_EVENTS_SECONDS", 0.5)
    with watched(project) as (watcher, heard):
        assert watcher.state.mode is WatchMode.POLLING
        full = False
        wait_until(lambda: watcher.state.mode is WatchMode.EVENTS)
        path = project.ralph / "x"
        path.write_text("")
        heard.wait_for_path(path)


def test_an_overflow_leads_to_a_sweep(project: ProjectPaths) -> None:
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if queue > 100_000:
        pytest.skip("the queue is too long to fill here")
    folder = project.ralph / "loops" / "a"
    child = Child(project)
    assert child.line() == "sweep events 5"
    child.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.process.pid, os.WSTOPPED | os.WNOWAIT)
    for number in range(queue // 2 + 100):  # making and removing are two events at least
        os.close(os.open(folder / str(number % 2), os.O_CREAT))
        (folder / str(number % 2)).unlink()
    (project.ralph / "loops" / "made-in-the-dark").mkdir()
    child.process.send_signal(signal.SIGCONT)
    while (line := child.line()) != "sweep events 6":
        assert line.startswith("paths events")
    (project.ralph / "loops" / "made-in-the-dark" / "state.json").write_text("{}")
    assert child.line() == "paths events 6"
    reason, err = child.end()
    assert (reason, err) == ("", "")


def test_folder_races_print_nothing(project: ProjectPaths, capfd: pytest.CaptureFixture[str]) -> None:
    with watched(project) as (_, heard):
        loops = project.ralph / "loops"
        for number in range(40):
            (loops / "a").rename(loops / "b")
            (loops / "b" / str(number)).mkdir()
            (loops / "b").rename(loops / "a")
        (project.ralph / "marker").write_text("")
        heard.wait_for_path(project.ralph / "marker")
    assert capfd.readouterr() == ("", "")
