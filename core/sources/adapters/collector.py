"""Reads the files of all runners and agents used in a project; docs/adapters.md.

The first read of all transcripts, which may be gigabytes, is in a process of its own. It writes their states to the
file of kept states at intervals, so nothing is lost if it is killed, and ends when its parent does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.base.prompt_text import remove_contexts
from core.records.findings import Finding, Severity
from core.records.loops import Loop, LoopDetails
from core.records.reflections import Lesson
from core.sources.adapters.adapter_table import KnownAdapter, load_adapters
from core.sources.adapters.agent_files import read_all_agent_files, read_instructions
from core.sources.adapters.contract import AdapterRecords, AdapterReport, Moment
from core.sources.adapters.folders import Folders
from core.sources.adapters.join import join_details, join_loops, start_order
from core.sources.adapters.runner_files import FAILED_SECONDS, RunnerFiles
from core.sources.adapters.transcripts import KeptFile, KeptStates
from core.sources.liveness import Processes, system_processes

if TYPE_CHECKING:
    from types import TracebackType

    from core.records.instructions import InstructionFile
    from core.sources.adapters.contract import Adapter, Delivery

_NAMES: Final = frozenset({"id", "loop_id", "runner", "sources", "session_ids", "aliases", "parent", "badges", "owner"})
"""Fields that contain identifiers, by which records are found."""
_Record = TypeVar("_Record", bound=Struct)
FAILED: Final = "adapter-failed"  # code of the finding about an adapter that raised an exception
MAX_FINDINGS: Final = 100  # of one adapter that are listed
MAX_LESSONS: Final = 5_000  # of one adapter
_MAX_MESSAGE: Final = 200
_MAX_SESSIONS: Final = 50  # of a loop, whose failures are shown
_Result = TypeVar("_Result")


def mask_texts(record: _Record) -> _Record:
    """Return a record with masked secrets; the same object if there are none."""
    changed = {}
    for name in record.__struct_fields__:
        if name not in _NAMES:
            value = getattr(record, name)
            if value and (masked := _mask(value)) is not value:
                changed[name] = masked
    return replace(record, **changed) if changed else record


def _mask(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        masked = mask_secrets(value)
        return value if masked == value else masked
    if kind is tuple:
        found = tuple(map(_mask, value))
        return value if all(one is other for one, other in zip(found, value, strict=True)) else found
    return mask_texts(value) if isinstance(value, Struct) else value


class MaskedRecords:
    """Masked records, each made once for an unchanged record of an adapter."""

    def __init__(self) -> None:
        self._loops: dict[str, tuple[Loop, Loop]] = {}
        self._lessons: dict[str, tuple[Lesson, Lesson]] = {}

    def loop(self, loop: Loop) -> Loop:
        """Return the masked loop; contexts added to the prompt are not in its task."""
        return _masked_once(self._loops, loop.id, loop, "task")

    def lesson(self, lesson: Lesson) -> Lesson:
        """Return the masked lesson; its text is "" if it only is a delivered context."""
        return _masked_once(self._lessons, lesson.id, lesson, "text")


def _masked_once(known: dict[str, tuple[_Record, _Record]], id: str, record: _Record, field: str) -> _Record:
    if id in known:
        before, masked = known[id]
        if before is record or before == record:
            return masked
    masked = mask_texts(record)
    text = getattr(masked, field)
    if (own := remove_contexts(text)) != text:
        masked = replace(masked, **{field: own})
    known[id] = record, masked
    return masked


class _Source:
    """One adapter, its files, and what it found last."""

    def __init__(self, known: KnownAdapter, files: RunnerFiles) -> None:
        self.known, self.files = known, files
        self.name = known.name
        self.evidence: tuple[str, ...] = ()
        self.is_used = False
        self.loops: list[Loop] = []
        self.lessons: list[Lesson] = []
        self.findings: list[Finding] = []

    def call(self, act: Callable[[], _Result], default: _Result) -> _Result:
        """Call a method of the adapter; an exception is a finding."""
        try:
            return act()
        except Exception as error:  # code of others: it must not harm the other adapters
            message = f"the adapter failed: {type(error).__name__}: {str(error)[:_MAX_MESSAGE]}"
            self.files.findings.append(Finding(self.name, "", Severity.ERROR, FAILED, message))
            return default

    def find_evidence(self) -> bool:
        """Look for signs that the runner was used; returns whether it was."""
        folders = self.files.folders
        none: tuple[str, ...] = ()
        may_be_used = self.known.may_be_used(folders)
        found = self.call(lambda: self.known.adapter.fingerprint(folders), none) if may_be_used else none
        self.evidence = tuple(map(str, found))
        self.is_used = self.is_used or bool(self.evidence) or self.files.kept.has_values
        return self.is_used

    def look(self, moment: Moment) -> None:
        """Read the loops and lessons; those of the last look stay if the adapter fails."""
        adapter, files = self.known.adapter, self.files
        self.loops = self.call(lambda: self._valid(adapter.loops(files, moment), Loop), self.loops)
        lessons = self.call(lambda: self._valid(islice(adapter.lessons(files), MAX_LESSONS + 1), Lesson), self.lessons)
        if len(lessons) > MAX_LESSONS:
            message = f"has more than {MAX_LESSONS:,} lessons; the others are not listed"
            files.findings.append(Finding(self.name, "", Severity.WARNING, "too-many-lessons", message))
        self.lessons = lessons[:MAX_LESSONS]

    def _valid(self, found: Iterable[Any], kind: type[_Result]) -> list[_Result]:
        """Return the records with an ID of this adapter, each ID once."""
        by_id: dict[str, Any] = {}
        prefix = f"{self.name}:" if kind is Loop else ""
        for one in found:
            if not isinstance(one, kind) or not one.id.startswith(prefix):  # type: ignore[attr-defined]
                raise TypeError(f"{one!r:.100} is not a {kind.__name__} of this adapter")
            by_id.setdefault(one.id, one)  # type: ignore[attr-defined]
        return list(by_id.values())


class Collector:
    """Reads loops and lessons of all runners in a project. Use it from one thread.

    `clock` returns the time in UTC; `pause` waits before a torn file is read again (None: nothing waits). With `kept`,
    the states of transcripts are kept between runs of the program. Without `has_instructions`, the files that agents
    load by themselves are not read.
    """

    def __init__(
        self,
        folders: Folders,
        *,
        clock: Callable[[], datetime],
        adapters: Sequence[Adapter] | None = None,
        processes: Processes | None = None,
        kept: KeptFile | None = None,
        pause: Callable[[float], object] | None = None,
        has_instructions: bool = True,
    ) -> None:
        self.folders = folders
        self.kept = kept
        self._clock = clock
        self._processes = processes or system_processes()
        self._findings: list[Finding] = []
        if adapters is None:
            known = load_adapters(self._findings)
        else:
            known = [KnownAdapter(one.name, adapter=one) for one in adapters]
        self._sources = [_Source(one, self._files(one.name, pause)) for one in known]
        self._agent_files = RunnerFiles(folders, "agents") if has_instructions else None
        self._instructions: tuple[InstructionFile, ...] = ()
        self._instruction_findings: tuple[Finding, ...] = ()
        self._masked = MaskedRecords()
        self._records = AdapterRecords()
        self._joined: tuple[list[Loop], list[Loop], list[Finding]] = [], [], []

    def _files(self, name: str, pause: Callable[[float], object] | None) -> RunnerFiles:
        return RunnerFiles(self.folders, name, kept=KeptStates(self.kept, name), pause=pause)

    @property
    def records(self) -> AdapterRecords:
        """What the last look found."""
        return self._records

    @property
    def bytes_behind(self) -> int:
        """Bytes of transcripts that are not read yet."""
        return sum(source.files.bytes_behind for source in self._sources)

    def set_limits(self, budget: int | None, on_bytes: Callable[[int], None] | None = None) -> None:
        """Set the bytes of transcripts of the next look; see `RunnerFiles`."""
        for source in self._sources:
            source.files.budget, source.files.on_bytes = budget, on_bytes

    def look(self) -> AdapterRecords:
        """Look at all files of used runners; return the same object if nothing is new."""
        for source in self._sources:
            source.files.start_look()
            if source.find_evidence():
                self._look_at(source)
        if self._agent_files is not None:
            self._agent_files.start_look()
            self._read_instructions(self._agent_files)
        return self._collect()

    def read_all(self) -> AdapterRecords:
        """Look at all files, read the transcripts to their end, and keep what was read."""
        self.set_limits(None, lambda count: None)
        self.look()
        self.save()
        return self._records

    def check_failures(self, pause: Callable[[float], object]) -> AdapterRecords:
        """Repeat the look after `FAILED_SECONDS` if a file failed to decode; report it."""
        if any(source.files.has_failures for source in self._sources):
            pause(FAILED_SECONDS)
            self.look()
        return self._records

    def look_at_changed(self, *, is_recent: bool = True) -> AdapterRecords:
        """Look at changed files; with `is_recent`, check only those that changed last."""
        is_looked = False
        for source in self._sources:
            changed: set[Path] | None = None
            if not source.is_used:
                is_new = source.find_evidence()
            else:
                changed = source.files.find_changed(is_recent=is_recent)
                is_new = bool(changed) or source.files.is_behind
            if is_new:
                source.files.start_look(changed)
                self._look_at(source)
                is_looked = True
        if self._agent_files is not None and (changed := self._agent_files.find_changed(is_recent=is_recent)):
            self._agent_files.start_look(changed)
            self._read_instructions(self._agent_files)
            is_looked = True
        return self._collect() if is_looked else self._records

    def look_anew(self) -> AdapterRecords:
        """Look at all files, also at states of transcripts that another process has kept."""
        for source in self._sources:
            source.files.forget_unread()
        return self.look()

    def details(self, loop: Loop) -> LoopDetails:
        """Return a loop's masked details; none if its adapter is missing or fails.

        The failures in the newest sessions that are joined to it are those of its iterations.
        """
        names = frozenset(loop.aliases)
        if names and not self._records.reports:  # the loop is from the index, which has no sessions that are joined
            self.look()
        joined = (one for source in self._sources if names for one in source.loops if one.id in names)
        sessions = sorted(joined, key=start_order)[-_MAX_SESSIONS:]
        found = self._read_details(loop)
        if sessions:
            found = join_details(found, [(one, self._read_details(one)) for one in sessions])
        return mask_texts(found)

    def _read_details(self, loop: Loop) -> LoopDetails:
        none = LoopDetails(loop_id=loop.id)
        source = next((one for one in self._sources if one.name == loop.runner), None)
        if source is None:
            return none
        source.files.start_look()
        source.files.on_bytes = lambda count: None
        return source.call(lambda: source.known.adapter.details(loop, source.files), none)

    def deliver(self, loop: Loop, context: str) -> Delivery | None:
        """Return how a loop's runner gets a context; None if only agent hooks reach it."""
        source = next((one for one in self._sources if one.name == loop.runner), None)
        if source is None:
            return None
        source.files.start_look()
        return source.call(lambda: source.known.adapter.deliver(loop, context, source.files), None)

    def save(self) -> None:
        """Keep what was read for the next start of the program."""
        for source in self._sources:
            source.files.kept.save()

    def prune(self) -> None:
        """Forget the kept states of transcripts that no longer exist."""
        for source in self._sources:
            source.files.kept.prune()

    def close(self) -> None:
        """Save, and close the file of kept states."""
        self.save()
        if self.kept is not None:
            self.kept.close()

    def _read_instructions(self, files: RunnerFiles) -> None:
        found = read_instructions(read_all_agent_files(files))
        self._instructions = self._instructions if found == self._instructions else found
        self._instruction_findings = tuple(dict.fromkeys(files.findings))[:MAX_FINDINGS]

    def _look_at(self, source: _Source) -> None:
        source.look(Moment(now=self._clock(), processes=self._processes))
        source.findings = list(dict.fromkeys(source.files.findings))
        if (more := len(source.findings) - MAX_FINDINGS) > 0:
            message = f"{more:,} further files or places could not be used"
            source.findings[MAX_FINDINGS:] = [
                Finding(source.name, "", Severity.WARNING, "more-findings", message, more)
            ]

    def _collect(self) -> AdapterRecords:
        loops = [self._masked.loop(loop) for source in self._sources for loop in source.loops]
        masked = (self._masked.lesson(lesson) for source in self._sources for lesson in source.lessons)
        lessons = {one.id: one for one in masked if one.text}
        before, joined, findings = self._joined
        if len(before) != len(loops) or any(old is not new for old, new in zip(before, loops, strict=True)):
            result = join_loops(loops, self.folders.project)
            joined, findings = result.loops, result.findings
            self._joined = loops, joined, findings
        reports = tuple(
            AdapterReport(
                name=source.name,
                evidence=source.evidence,
                loops=len(source.loops),
                lessons=len(source.lessons),
                findings=tuple(source.findings),
            )
            for source in self._sources
        )
        records = AdapterRecords(
            loops=tuple(joined),
            lessons=tuple(lessons.values()),
            instructions=self._instructions,
            reports=reports,
            others=(*self._findings, *findings, *self._instruction_findings),
            is_behind=any(source.files.is_behind for source in self._sources),
        )
        if records != self._records:
            self._records = records
        return self._records


MIN_BYTES: Final = 32 << 20  # of transcripts that are worth a process
_COMMAND: Final = (
    "import json, sys; setup, *sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from core.sources.adapters.collector import serve; serve(setup)"
)
_VARIABLES: Final = ("LANG", "LC_", "LD_", "DYLD_", "HOME", "XDG_")
"""Beginnings of the names of the environment variables that the process gets: no secrets are among them."""
_SAVE_BYTES: Final = 64 << 20  # read between two savings
_PROGRESS_SECONDS: Final = 0.2
_NICENESS: Final = 5


class FirstRead:
    """Starts the process; use it as a context manager, which ends it."""

    def __init__(self, folders: Folders) -> None:
        import subprocess  # not needed for lists of loops

        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            env={name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)},
            process_group=0,  # it gets no interrupt of the terminal; a stopped one ends when its parent is killed
        )
        setup = [folders, *(str(Path(entry).absolute()) for entry in sys.path)]
        with contextlib.suppress(OSError):  # it has ended, as `_receive` will find
            self._input.write(msgspec.json.encode(setup, enc_hook=str) + b"\n")
            self._input.flush()
        self._read: int | None = 0
        self._progressed = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._thread.join()
        with contextlib.suppress(OSError):  # a setup that was not sent
            self._input.close()
        self._process.wait()
        self._output.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def bytes_read(self, seconds: float) -> int | None:
        """Wait at most `seconds` for progress; return the bytes read, None at the end."""
        self._progressed.wait(seconds)
        self._progressed.clear()
        return self._read

    def _receive(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._output:
                self._read = int(line)
                self._progressed.set()
        self._read = None
        self._progressed.set()


def serve(setup: dict[str, Any]) -> None:
    """Read all transcripts to their end; run in the process."""
    gc.freeze()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folders = msgspec.convert(setup, Folders, dec_hook=_path)
    collector = Collector(folders, clock=lambda: datetime.now(UTC), kept=KeptFile(folders.project))
    read = saved = 0
    sent = monotonic()

    def note(count: int) -> None:
        nonlocal read, saved, sent
        read += count
        if read - saved >= _SAVE_BYTES:
            collector.save()
            saved = read
        if monotonic() - sent > _PROGRESS_SECONDS:
            sent = monotonic()
            sys.stdout.write(f"{read}\n")
            sys.stdout.flush()

    collector.set_limits(None, note)
    collector.look()
    collector.close()


def _path(kind: type, value: str) -> Path:
    """Return the path of a decoded text; the other fields have types of JSON."""
    return Path(value)


def _end_with_parent() -> None:
    """End the process when its input is closed."""
    with contextlib.suppress(OSError):
        os.read(sys.stdin.fileno(), 1)  # a blocked buffered read would abort the process at its own end
    os._exit(1)
