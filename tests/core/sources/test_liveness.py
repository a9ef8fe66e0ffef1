from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.records.loops import Liveness, LoopStatus
from core.sources.liveness import ALWAYS, Moment, Processes, ProcessSignals, ProcFiles, check_liveness, system_processes
from tests.factories import RunningProcesses

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
STALE_AFTER = timedelta(minutes=30)
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def check(
    status: LoopStatus = LoopStatus.RUNNING,
    pid: int | None = None,
    newest: datetime | None = None,
    modified_at: datetime | None = None,
    processes: Processes | None = None,
) -> tuple[Liveness, str]:
    moment = Moment(now=NOW, processes=processes or RunningProcesses(), stale_after=STALE_AFTER)
    return check_liveness(status, pid, newest, modified_at, moment)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def test_a_process_running_at_the_last_activity_belongs_to_the_loop() -> None:
    processes = RunningProcesses({42: ago(hours=1)})
    assert check(pid=42, newest=ago(minutes=50), processes=processes)[0] is Liveness.ALIVE


def test_a_missing_process_means_dead() -> None:
    assert check(pid=42, newest=ago(seconds=1)) == (Liveness.DEAD, "process 42 is gone")


def test_a_later_process_reused_the_pid() -> None:
    liveness, reason = check(pid=42, newest=ago(hours=2), processes=RunningProcesses({42: ago(hours=1)}))
    assert liveness is Liveness.DEAD
    assert "11:00:00" in reason


@pytest.mark.parametrize(("late", "expected"), [(2.0, Liveness.ALIVE), (2.1, Liveness.DEAD)])
def test_starts_are_compared_with_two_seconds_tolerance(late: float, expected: Liveness) -> None:
    processes = RunningProcesses({42: ago(hours=1) + timedelta(seconds=late)})
    assert check(pid=42, newest=ago(hours=1), processes=processes)[0] is expected


def test_a_running_process_without_a_start_time_is_unknown() -> None:
    assert check(pid=42, modified_at=NOW, processes=RunningProcesses({42: ALWAYS}))[0] is Liveness.UNKNOWN


@pytest.mark.parametrize("pid", [0, 2**22 + 1])
def test_an_invalid_pid_is_not_checked(pid: int) -> None:
    assert check(pid=pid, newest=ago(minutes=1))[0] is Liveness.FRESH


def test_without_a_process_silence_makes_a_loop_stale() -> None:
    assert check(newest=ago(minutes=30))[0] is Liveness.FRESH
    assert check(newest=ago(minutes=31))[0] is Liveness.STALE
    assert check(modified_at=ago(minutes=31))[0] is Liveness.STALE
    assert check(newest=ago(days=2), modified_at=NOW)[0] is Liveness.STALE
    assert check(newest=ago(days=4), modified_at=NOW)[0] is Liveness.ENDED
    assert check()[0] is Liveness.UNKNOWN


def test_an_ended_loop_is_not_checked() -> None:
    for status in [s for s in LoopStatus if s.ended]:
        assert check(status, pid=42, newest=ago(days=9))[0] is Liveness.ENDED, status


def test_a_paused_loop_needs_no_process() -> None:
    assert check(LoopStatus.PAUSED, pid=42, newest=ago(days=9))[0] is Liveness.IDLE


def test_a_waiting_loop_is_judged_by_silence() -> None:
    assert check(LoopStatus.WAITING, pid=42, newest=ago(minutes=1))[0] is Liveness.FRESH


def test_an_unknown_status_gives_unknown_liveness() -> None:
    assert check(LoopStatus.UNKNOWN, pid=42, newest=NOW)[0] is Liveness.UNKNOWN


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until its input ends."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    yield process
    process.kill()
    process.communicate()


@needs_proc
def test_proc_gives_the_start_of_a_process(child: subprocess.Popen[bytes]) -> None:
    processes = system_processes()
    assert isinstance(processes, ProcFiles)
    started = processes.started_at(child.pid)
    assert started is not None
    assert abs(started - datetime.now(UTC)) < timedelta(seconds=30)


@needs_proc
def test_a_zombie_does_not_run(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert ProcFiles().started_at(child.pid) is None


@pytest.mark.parametrize(
    "stat", [b"", b"7 (sh", b"7 (sh) S 1 2", b"7 (a) b) c) Z" + b" 1" * 30, b"7 (x) S" + b" x" * 30]
)
def test_invalid_stat_files_are_not_processes(tmp_path: Path, stat: bytes) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_bytes(stat)
    assert ProcFiles(tmp_path).started_at(7) is None


@needs_proc
def test_a_script_is_found_by_its_name_and_working_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    script = tmp_path / "ralph.sh"
    script.write_text("echo runs\nread line\n")
    pipe = subprocess.PIPE
    process = subprocess.Popen(["sh", str(script), "10"], cwd=tmp_path, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None and process.stdout.readline()  # before that, its command line may be empty
        assert ProcFiles().find("ralph.sh", tmp_path) == process.pid
        assert ProcFiles().find("ralph.sh", tmp_path / "other") is None
        assert ProcFiles().find("other.sh", tmp_path) is None
        assert ProcessSignals().find("ralph.sh", tmp_path) is None
    finally:
        process.communicate()
    assert ProcFiles().find("ralph.sh", tmp_path) is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (b"/bin/bash\0-x\0./ralph.sh\0-x\0", True),
        (b"./ralph.sh\0", True),
        (b"vim\0ralph.sh\0", False),
        (b"bash\0other.sh\0ralph.sh\0", False),
        (b"", False),
        (b"-bash\0", False),
        (b"\xff\xfe\0" * 9999, False),
    ],
)
def test_only_a_program_or_the_script_of_an_interpreter_counts(tmp_path: Path, command: bytes, expected: bool) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(command)
    (tmp_path / "7" / "cwd").symlink_to(tmp_path)
    assert (ProcFiles(tmp_path).find("ralph.sh", tmp_path) == 7) is expected


def test_processes_without_readable_files_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "cmdline").write_bytes(b"ralph.sh")
    assert ProcFiles(tmp_path).find("ralph.sh", tmp_path) is None
    assert ProcFiles(tmp_path / "missing").find("ralph.sh", tmp_path) is None


def test_signals_only_show_that_a_process_runs(child: subprocess.Popen[bytes]) -> None:
    assert ProcessSignals().started_at(child.pid) == ALWAYS
    child.kill()
    child.communicate()
    assert ProcessSignals().started_at(child.pid) is None
