"""Files are parsed in workers with the same result as without."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.project.index import Library
from core.records.snapshot import Snapshot
from core.sources import parallel_parser, parse_units, worker_process
from core.sources.parallel_parser import MIN_BYTES, ParallelParser, count_workers
from core.sources.shared_values import SharedValues
from core.sources.sweep import scan
from core.sources.worker_process import start_early
from core.storage.file_reader import Stamp
from tests.factories import RunningProcesses

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
TREES = Path(__file__).parents[2] / "trees"
FILES = sorted(path for path in TREES.rglob("*") if path.is_file() and ".aiwg" in path.parts)
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "emptied": lambda _: b"",
    "not UTF-8": lambda data: data.replace(b"e", b"\xff", 3),
    "huge integers": lambda data: data.replace(b": 1", b": 123456789012345678901234567890"),
}
PATTERN = {"error_signature": {"error_type": "TypeError", "error_pattern": "of null"}, "fix_approach": "Check for null"}


def load(project: Path) -> Snapshot:
    # Not the processes of this machine: any of them may have the PID of a loop for a moment.
    return Library(
        ProjectPaths(project), Settings(), clock=lambda: NOW, cache=False, processes=RunningProcesses()
    ).load()


def write_patterns(project: Path, count: int) -> str:
    """Write a pattern file with records of every quality; returns its project-relative name."""
    records: list[Any] = [{"pattern_id": f"pat-error-null-check-{n:05d}", **PATTERN} for n in range(count)]
    records[1::50] = [PATTERN] * len(records[1::50])  # without an ID
    records[2::70] = [{"pattern_id": 7}] * len(records[2::70])
    name = ".aiwg/ralph/shared/patterns/error-patterns.json"
    file = project / name
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"version": "1.0.0", "error_patterns": records}))
    return name


def use_workers(patch: pytest.MonkeyPatch) -> None:
    """Use two workers for any number of files, and small batches; this process waits until each has some."""
    patch.setattr(parallel_parser, "count_workers", lambda _: 2)
    patch.setattr(parse_units, "_BATCH_BYTES", 4096)
    patch.setattr(parse_units, "_BATCH_FILES", 5)
    claim = ParallelParser._claim
    claimed = set()

    def claim_after_workers(self: ParallelParser, *, is_own: bool = False) -> int | None:
        this = threading.current_thread()
        claimed.add(this)
        if this not in self._threads:
            while any(thread.is_alive() and thread not in claimed for thread in self._threads):
                self._threads[0].join(0.01)
                self._threads[1].join(0.01)
        return claim(self, is_own=is_own)

    patch.setattr(ParallelParser, "_claim", claim_after_workers)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    use_workers(monkeypatch)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "project"
    shutil.copytree(TREES / "upstream", folder)
    shutil.rmtree(folder / ".aiwg/ralph/shared/patterns", ignore_errors=True)
    write_patterns(folder, 500)
    return folder


@pytest.fixture
def project(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "project"))


@pytest.fixture(scope="module")
def alone(source: Path) -> Snapshot:
    """What the project contains if one process reads it."""
    return load(source)


def replace_worker(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", code)


def same_but_number(one: Snapshot, other: Snapshot) -> bool:
    for this, that in zip(snapshot_fields(one), snapshot_fields(other), strict=True):
        assert this == that  # shows what differs
    return True


def snapshot_fields(snapshot: Snapshot) -> Iterator[object]:
    for name in ("patterns", "loops", "reflections", "memory_tasks", "tasks", "attempts", "debug_sessions"):
        yield [*getattr(snapshot, name).items()]
    yield from (snapshot.escalations, [*snapshot.events], snapshot.decisions, snapshot.findings, snapshot.unreadable)


class TestResults:
    @pytest.mark.slow
    @settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_random_trees_give_the_same_with_and_without_workers(
        self, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch:
            project = Path(folder)
            for file in data.draw(st.lists(st.sampled_from(FILES), min_size=20, max_size=120, unique=True)):
                copy = project.joinpath(*file.parts[file.parts.index(".aiwg") :])
                copy.parent.mkdir(parents=True, exist_ok=True)
                damage = data.draw(st.sampled_from([None] * 5 + [*DAMAGE]))
                copy.write_bytes(DAMAGE[damage](file.read_bytes()) if damage else file.read_bytes())
                os.utime(copy, (NOW.timestamp(), NOW.timestamp()))
            alone = load(project)
            use_workers(patch)
            assert same_but_number(load(project), alone)

    @pytest.mark.usefixtures("workers")
    def test_a_file_that_is_removed_while_others_are_parsed_is_missing(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stamps = scan(ProjectPaths(project))
        with ParallelParser(project, stamps, SharedValues()) as parser:
            files = [file for file in stamps if parser.parses(file)]
            shutil.rmtree(project)
            outcomes = [parser.outcome(file) for file in files]
        assert outcomes[-1] == parallel_parser.Outcome()


@pytest.mark.usefixtures("workers")
class TestFailures:
    def test_a_worker_that_ends_while_it_works_changes_nothing(
        self, project: Path, alone: Snapshot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        replace_worker(
            monkeypatch,
            "import json, os, signal, sys; project, *sys.path[:] = json.loads(sys.stdin.buffer.readline())\n"
            "from core.sources import parallel_parser\n"
            "parse, left = parallel_parser.UnitParser.parse, [12]\n"
            "def parse_some(self, unit):\n"
            "    left[0] -= 1\n"
            "    if left[0] < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
            "    return parse(self, unit)\n"
            "parallel_parser.UnitParser.parse = parse_some\n"
            "parallel_parser.serve(project)",
        )
        assert same_but_number(load(project), alone)

    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param(b"\0\0\0\5hello" * 1000, id="no MessagePack"),
            pytest.param(b"\xff" * 1000, id="a length that is too large"),
            pytest.param(b"\0\0\0\1\x90" * 1000, id="too few results"),
            pytest.param(b"\0\0\1\0", id="cut off"),
            pytest.param(b"\0\0\0\x0b\x95" + b"\xc4\0" * 5, id="empty results"),
        ],
    )
    def test_a_worker_that_answers_nonsense_changes_nothing(
        self, project: Path, alone: Snapshot, monkeypatch: pytest.MonkeyPatch, answer: bytes
    ) -> None:
        replace_worker(monkeypatch, f"import sys; sys.stdout.buffer.write(bytes(4) + {answer!r})")
        assert same_but_number(load(project), alone)

    @pytest.mark.parametrize("hang", ["sys.stdin.buffer.read()", "os.kill(os.getpid(), signal.SIGSTOP)"])
    def test_a_worker_that_answers_nothing_is_ended(
        self, project: Path, alone: Snapshot, monkeypatch: pytest.MonkeyPatch, hang: str
    ) -> None:
        replace_worker(monkeypatch, f"import os, signal, sys; os.write(1, bytes(4)); {hang}")
        monkeypatch.setattr(parallel_parser, "_HUNG_SECONDS", 0.01)
        assert same_but_number(load(project), alone)

    @pytest.mark.parametrize(("size", "seconds"), [(4096, 3), (45 << 20, 5), (500 << 20, 28)])
    def test_a_worker_has_more_time_for_a_large_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, seconds: int
    ) -> None:
        limits: list[float] = []

        def wait_for(_: object, predicate: object, timeout: float) -> bool:
            limits.append(timeout)
            return True

        monkeypatch.setattr(threading.Condition, "wait_for", wait_for)
        stamps = {".aiwg/ralph/shared/patterns/error-patterns.json": Stamp(1, size, 0, 0)}
        ParallelParser(tmp_path, stamps, SharedValues())._wait(0)
        assert list(map(int, limits)) == [seconds]

    def test_a_worker_that_cannot_start_changes_nothing(
        self, project: Path, alone: Snapshot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", str(project / "missing"))
        assert same_but_number(load(project), alone)

    def test_an_error_while_loading_ends_the_workers(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        started: list[subprocess.Popen[bytes]] = []
        popen = subprocess.Popen

        def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
            started.append(popen(*arguments, **options))
            return started[-1]

        monkeypatch.setattr(subprocess, "Popen", start)

        def fail(done: int, total: int) -> None:
            raise ZeroDivisionError

        library = Library(ProjectPaths(project), Settings(), clock=lambda: NOW, cache=False)
        with pytest.raises(ZeroDivisionError):
            library.load(fail)
        assert all(process.returncode is not None for process in started)


@pytest.mark.usefixtures("workers")
def test_what_lists_show_is_prepared_while_workers_parse_the_rest(project: Path, alone: Snapshot) -> None:
    library = Library(ProjectPaths(project), Settings(), clock=lambda: NOW, cache=False)
    prepared: list[Snapshot] = []
    assert same_but_number(library.load(prepare=prepared.append), alone)
    assert [(one.complete, one.loops, one.patterns) for one in prepared] == [(False, alone.loops, alone.patterns)]


class TestEarlyWorker:
    @pytest.fixture
    def library(self, project: Path) -> Library:
        return Library(ProjectPaths(project), Settings(), clock=lambda: NOW, cache=False)

    @pytest.fixture
    def sweeps(self, monkeypatch: pytest.MonkeyPatch) -> list[object]:
        """The sweeps of this process."""
        found: list[object] = []

        def scan_here(paths: ProjectPaths, *arguments: Any) -> dict[str, Stamp]:
            found.append(paths)
            return scan(paths, *arguments)

        monkeypatch.setattr("core.project.index.scan", scan_here)
        return found

    @pytest.mark.usefixtures("workers")
    def test_it_sweeps_and_parses_with_the_same_result(
        self, project: Path, alone: Snapshot, library: Library, sweeps: list[object]
    ) -> None:
        library.early = start_early(project)
        assert same_but_number(library.load(), alone)
        assert not sweeps
        assert not library.apply(None)[1]
        assert len(sweeps) == 1

    @pytest.mark.parametrize(
        "code",
        [
            pytest.param("", id="it ends"),
            pytest.param("import sys; sys.stdout.buffer.write(bytes(11) + bytes([3]) + b'abc')", id="nonsense"),
            pytest.param("import os, signal; os.write(1, bytes(4)); os.kill(os.getpid(), signal.SIGSTOP)", id="hangs"),
        ],
    )
    def test_without_its_answer_this_process_sweeps(
        self,
        project: Path,
        alone: Snapshot,
        library: Library,
        sweeps: list[object],
        monkeypatch: pytest.MonkeyPatch,
        code: str,
    ) -> None:
        replace_worker(monkeypatch, code)
        monkeypatch.setattr(parallel_parser, "_SWEEP_SECONDS", 0.2)
        library.early = early = start_early(project)
        assert same_but_number(library.load(), alone)
        assert len(sweeps) == 1
        assert early is not None and early.worker.process.returncode is not None

    def test_it_ends_with_the_load_of_a_small_project(self, project: Path, library: Library) -> None:
        library.early = early = start_early(project)
        library.load()
        assert early is not None and early.worker.process.returncode is not None

    def test_one_processor_gets_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(worker_process, "count_cores", lambda: 1)
        assert start_early(Path("/")) is None


class TestWorkers:
    def test_a_worker_ends_when_its_input_ends(self) -> None:
        setup = json.dumps(["/", *(str(Path(entry).absolute()) for entry in sys.path)])
        ended = subprocess.run(
            [sys.executable, "-I", "-B", "-c", worker_process.COMMAND],
            input=setup.encode() + b"\n",
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert (ended.stdout, ended.stderr) == (bytes(4), b"")  # it is ready

    @pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
    def test_a_stopped_worker_ends_when_its_parent_is_killed(self) -> None:
        code = (
            "import os, signal\n"
            "from core.sources.worker_process import WorkerProcess\n"
            "with WorkerProcess('/') as worker:\n"
            "    worker.process.send_signal(signal.SIGSTOP)\n"
            "    os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED)\n"
            "    print(worker.process.pid, flush=True)\n"
            "    input()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        ) as parent:
            assert parent.stdout is not None
            descriptor = os.pidfd_open(int(parent.stdout.readline()))
            try:
                parent.kill()
                assert select.select([descriptor], [], [], 60)[0]
            finally:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                os.close(descriptor)

    def test_a_worker_imports_neither_numpy_nor_the_screen(self) -> None:
        code = "import core.sources.parallel_parser, sys; print(*sys.modules)"
        modules = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        assert not {"numpy", "textual", "rich", "sqlite3"} & set(modules)

    def test_a_worker_gets_only_the_language_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("API_TOKEN", "secret")
        monkeypatch.setenv("LANG", "C.UTF-8")
        replace_worker(monkeypatch, "import os, sys; sys.stdout.write(repr(dict(os.environ)))")
        with worker_process.WorkerProcess("/") as worker:
            shown = worker.replies.read().decode()
        assert "'LANG': 'C.UTF-8'" in shown
        assert "secret" not in shown

    def test_small_projects_start_no_worker(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("started a worker"))
        assert load(project).loops

    @pytest.mark.parametrize(("cores", "expected"), [(1, 0), (2, 1), (4, 3), (64, 3)])
    def test_one_processor_is_left_to_this_process(
        self, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        assert count_workers(MIN_BYTES) == expected
        assert count_workers(MIN_BYTES - 1) == 0


def test_requests_and_replies_are_messages_with_a_length(project: Path) -> None:
    stamps = scan(ProjectPaths(project))
    file = next(file for file in stamps if file.endswith("error-patterns.json"))
    units = [(file,), (".aiwg/ralph/loops/x/state.json",)]
    with worker_process.WorkerProcess(str(project)) as worker:
        assert worker.receive() == b""  # it is ready
        worker.send(msgspec.msgpack.encode(units))
        reply = msgspec.msgpack.decode(worker.receive(), type=list[bytes])
    found, missing = (msgspec.msgpack.decode(one, type=parallel_parser.Outcome) for one in reply)
    assert found.stamp == stamps[file]
    assert found.parsed is not None
    assert len(found.parsed.patterns) == 500
    assert missing == parallel_parser.Outcome()


def test_a_parser_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    gc.disable()
    try:
        with ParallelParser(tmp_path, {}, SharedValues()) as parser:
            left = weakref.ref(parser)
        del parser
        assert left() is None
    finally:
        gc.enable()


def test_workers_parse_patterns_first_and_this_process_in_order(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_workers(monkeypatch)
    parser = ParallelParser(project, scan(ProjectPaths(project)), SharedValues())  # its threads are not started

    def claim_all(*, is_own: bool) -> list[int]:
        return [*iter(lambda: parser._claim(is_own=is_own), None)]

    assert parser.left == 1
    own = claim_all(is_own=True)
    assert own == [*range(len(own))]
    assert parser.left == 0
    parser._release(own)
    patterns = ["/patterns/" in parser._batches[number][0].file for number in claim_all(is_own=False)]
    assert patterns == sorted(patterns, reverse=True)
    assert len(set(patterns)) == 2


def count_open_files() -> int:
    return len([*Path("/dev/fd").iterdir()])


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs a list of open files")
def test_files_that_were_opened_ahead_are_closed_when_parsing_stops(project: Path) -> None:
    units = [parse_units.Unit(file) for file in scan(ProjectPaths(project)) if file.endswith(".json")][:20]
    before = count_open_files()
    parser = parallel_parser.UnitParser(str(project))
    outcomes = parser.parse_all(units)
    next(outcomes)
    assert count_open_files() > before
    outcomes.close()
    assert count_open_files() == before
