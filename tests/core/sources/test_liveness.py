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


def test_a_process_that_ran_at_the_last_activity_belongs_to_the_loop() -> None:
    an_hour = RunningProcesses({42: ago(hours=1)})
    assert check(pid=42, newest=ago(minutes=50), processes=an_hour)[0] is Liveness.ALIVE
    assert check(pid=42, newest=ago(seconds=1)) == (Liveness.DEAD, "process 42 is gone")
    liveness, reason = check(pid=42, newest=ago(hours=2), processes=an_hour)
    assert liveness is Liveness.DEAD and "11:00:00" in reason, "a later process reused the pid"
    for late, expected in ((2.0, Liveness.ALIVE), (2.1, Liveness.DEAD)):
        processes = RunningProcesses({42: ago(hours=1) + timedelta(seconds=late)})
        assert check(pid=42, newest=ago(hours=1), processes=processes)[0] is expected
    assert check(pid=42, modified_at=NOW, processes=RunningProcesses({42: ALWAYS}))[0] is Liveness.UNKNOWN
    for pid in (0, 2**22 + 1):
        assert check(pid=pid, newest=ago(minutes=1))[0] is Liveness.FRESH, "an invalid pid is not checked"


def test_without_a_process_silence_makes_a_loop_stale() -> None:
    assert check(newest=ago(minutes=30))[0] is Liveness.FRESH
    assert check(newest=ago(minutes=31))[0] is Liveness.STALE
    assert check(modified_at=ago(minutes=31))[0] is Liveness.STALE
    assert check(newest=ago(days=2), modified_at=NOW)[0] is Liveness.STALE
    assert check(newest=ago(days=4), modified_at=NOW)[0] is Liveness.ENDED
    assert check()[0] is Liveness.UNKNOWN


def test_only_a_running_loop_needs_a_process() -> None:
    for status in [s for s in LoopStatus if s.ended]:
        assert check(status, pid=42, newest=ago(days=9))[0] is Liveness.ENDED, status
    assert check(LoopStatus.PAUSED, pid=42, newest=ago(days=9))[0] is Liveness.IDLE
    assert check(LoopStatus.WAITING, pid=42, newest=ago(minutes=1))[0] is Liveness.FRESH
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


def test_only_a_program_or_the_script_of_an_interpreter_counts(tmp_path: Path) -> None:
    for name in ("7", "8"):
        (tmp_path / name).mkdir()
    (tmp_path / "8" / "cmdline").write_bytes(b"ralph.sh")  # without a working folder
    assert ProcFiles(tmp_path).find("ralph.sh", tmp_path) is None
    assert ProcFiles(tmp_path / "missing").find("ralph.sh", tmp_path) is None
    (tmp_path / "7" / "cwd").symlink_to(tmp_path)
    for command, expected in (
        (b"/bin/bash\0-x\0./ralph.sh\0-x\0", 7),
        (b"./ralph.sh\0", 7),
        (b"vim\0ralph.sh\0", None),
        (b"bash\0other.sh\0ralph.sh\0", None),
        (b"", None),
        (b"-bash\0", None),
        (b"\xff\xfe\0" * 9999, None),
    ):
        (tmp_path / "7" / "cmdline").write_bytes(command)
        assert ProcFiles(tmp_path).find("ralph.sh", tmp_path) == expected, command
    for stat in (b"", b"7 (sh", b"7 (sh) S 1 2", b"7 (a) b) c) Z" + b" 1" * 30, b"7 (x) S" + b" x" * 30):
        (tmp_path / "7" / "stat").write_bytes(stat)
        assert ProcFiles(tmp_path).started_at(7) is None, stat


def test_signals_only_show_that_a_process_runs(child: subprocess.Popen[bytes]) -> None:
    assert ProcessSignals().started_at(child.pid) == ALWAYS
    child.kill()
    child.communicate()
    assert ProcessSignals().started_at(child.pid) is None
