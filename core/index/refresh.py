"""The index of a project and how it is updated; see docs/architecture.md#index."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from core.base.errors import DamagedError, UnknownRecord
from core.base.text import visible_line
from core.files.cache_database import is_damage
from core.files.file_reader import Stamp
from core.index.database import Database, count_change, get_meta, set_meta, unwritable
from core.index.logs import Logs
from core.index.parse import parse_all
from core.index.records import (
    COLLECTIONS,
    COMPLETE,
    DECODERS,
    NUMBER,
    PAGES_CHECKED,
    QUESTIONS,
    TEXTS,
    Kind,
    Reader,
    View,
)
from core.index.snapshot import IndexedSnapshot, ProjectFiles, find_delta
from core.index.step import Sources, Step, is_log
from core.index.sweep import Sweep, list_folders, sweep
from core.records.snapshot import Delta, Snapshot
from core.records.times import parse_time
from core.sources.ledger import DecisionLog
from core.sources.liveness import Processes, system_processes
from core.sources.loops import read_loop_details
from core.sources.record_kinds import (
    LISTED,
    Format,
    can_contain_records,
    kind_of,
    load_order_of,
    loop_directory,
    newest_states,
    scan_path,
)
from core.trust.origins import Origins

if TYPE_CHECKING:
    from pathlib import Path

    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.files.file_reader import Problem
    from core.index.search import SearchResult, WordFiller
    from core.index.search_words import SearchFilters, SearchWords
    from core.index.sweep import Changes
    from core.learning.scoreboard import Scoreboard
    from core.records.findings import Finding
    from core.records.loops import LoopDetails
    from core.records.patterns import Pattern
    from core.sources.adapters.contract import AdapterRecords
    from core.sources.ledger import Ledger
    from core.sources.patterns import KnownRecords

_FIRST_PUBLISH: Final = 100  # states of loops before the first partial snapshot: more than a screen has lines
_FEW_FILES: Final = 8  # of a change: pattern files among them will probably change again, so their records are kept
_STEP_SECONDS: Final = 2.0  # time between two steps of a first load
_SWEEP_FROM: Final = 1000  # with more changed paths than this a sweep is faster
_LISTED_EVERY: Final = 10  # sweeps, of which one lists all folders: some network drives keep no times of folders
_PAGES_CHECKED_EVERY: Final = timedelta(days=1)
_LIVENESS_INTERVAL: Final = timedelta(seconds=5)  # between two checks of running loops; 1,000 take 30 ms
_MAX_DISCARDED: Final = 3  # indexes that are damaged or deleted before one in a temporary folder is used
_WORDS_SECONDS: Final = 0.01  # of a step that indexes tasks for a search
_TRIM_SECONDS: Final = 10.0  # between two attempts to empty the write-ahead log
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)

_NO_FILES: Final = Sweep({}, set(), {}, paths=())
_Result = TypeVar("_Result")
_Count = Callable[[int, int], None] | None
_Take = Callable[[Snapshot], object] | None


class Index:
    """The index of a project; `load` and `refresh` update it and its `snapshot`.

    The folders of the project need not exist. Without `is_kept`, the index ends with the process. `ledger` is a shared
    reader of the decision log. `processes` lists the running ones, by default of the system. `findings` are of the
    settings. Thread-safe.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        settings: Settings,
        *,
        clock: Callable[[], datetime],
        is_kept: bool = True,
        ledger: Ledger | None = None,
        processes: Processes | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        self._paths = paths
        self._settings = settings
        self._clock = clock
        self._is_kept = is_kept
        self._logs = Logs(paths, ledger.log if ledger is not None else DecisionLog())
        self.origins = ledger.origins if ledger is not None else Origins(paths.project)
        self._files = ProjectFiles(paths, self.origins, lambda: self._logs, findings)
        self._sources = Sources(paths, settings, self._logs, self._files, self.origins, processes or system_processes())
        self._lock = threading.RLock()
        self._opened: Database | None = None
        self._snapshot: Snapshot = Snapshot()
        self._pattern_files: dict[str, KnownRecords] = {}  # those that changed since this process began
        self._has_settled = False  # whether steps of `settle` wrote something that the newest view does not show
        self._task_words: WordFiller | None = None
        self._must_check_tasks = False  # whether the files of all tasks are to be compared
        self._has_damaged_words = False  # found by a search
        self._adapted: AdapterRecords | None = None  # the newest, for a new index
        self._sweeps = 0
        self._trim_after = 0.0
        self._checked_at = _LONG_AGO
        self.sweep_seconds = 0.0
        """Processor time of the last sweep, without that of reading changed files."""

    # Views

    @property
    def snapshot(self) -> Snapshot:
        """The records as they were when the index was last brought up to date."""
        return self._snapshot

    @property
    def retry_paths(self) -> tuple[Path, ...]:
        """Files that were incomplete when last read; `refresh` them again soon."""
        with self._lock:
            rows = self._database.writer.execute("SELECT path FROM torn").fetchall()
        return tuple(self._paths.project / path for (path,) in rows)

    def is_record(self, path: Path) -> bool:
        """Return whether a path may be that of a file with records."""
        return bool((name := self._name(path)) and kind_of(name))

    def copies(self, pattern_id: str) -> tuple[Pattern, ...]:
        """Return all copies of a pattern, that in effect first; may raise DamagedError."""
        from core.sources.patterns import precedence

        with self._lock:
            sql = "SELECT data FROM part WHERE kind = ? AND key = ?"
            rows = self._database.writer.execute(sql, (Kind.PATTERN, pattern_id)).fetchall()
        return tuple(sorted((DECODERS[Kind.PATTERN](data) for (data,) in rows), key=precedence))

    def story(self, loop_id: str) -> LoopDetails:
        """Read the details of one loop from disk; raises UnknownRecord if there is none."""
        if (loop := self._snapshot.loops.get(loop_id)) is None:
            raise UnknownRecord(f"no loop {visible_line(loop_id, 120)!r} in {self._paths.project}")
        return read_loop_details(self._paths, loop)

    # Bringing it up to date

    def load(self, progress: _Count = None, publish: _Take = None) -> Snapshot:
        """Bring the index up to date with all files.

        `progress` is called with (files done, files in all), in the sweep with (files found, 0). If much has to be
        read, `publish` gets partial snapshots (not `complete`) of what has been read so far, the newest loops first.
        """
        with self._lock:
            self._healing(partial(self._load, progress, publish))
            self._healing(self._trim_log)
            return self._snapshot

    def refresh(self, changed: Iterable[Path] | None = None) -> tuple[Snapshot, Delta]:
        """Read the files in `changed`; None finds the changed files by a sweep."""
        with self._lock:
            return self._update(partial(self._refresh, changed))

    def refresh_some(self, changes: Changes) -> Snapshot:
        """Read the files that a cheap check found; the next one does not find them again."""

        def act() -> None:
            found = self._find_changes(sorted(changes.paths))
            self._write(found._replace(listed=list_folders(self._paths, changes.folders)), is_complete=False)

        with self._lock:
            self._healing(act)
            return self._snapshot

    def check_time(self) -> tuple[Snapshot, Delta]:
        """Update what changes with time: ended processes, stale loops, incomplete files."""
        with self._lock:
            return self._update(partial(self._write, _NO_FILES, checks_open=True, is_complete=False))

    def replace_adapted(self, found: AdapterRecords) -> tuple[Snapshot, Delta]:
        """Replace the loops, lessons and findings of adapters."""
        with self._lock:
            self._adapted = found
            return self._update(partial(self._write, _NO_FILES, adapted=found, is_complete=False))

    def rebuild(self) -> tuple[Snapshot, Delta]:
        """Make the index again: a record of it was found damaged."""
        with self._lock:
            before = self._snapshot
            self._discard(is_damaged=True)
            self._healing(partial(self._load, None, None))
            if self._adapted is not None:
                self.replace_adapted(self._adapted)
            return self._snapshot, _everything(before, self._snapshot)

    def keep_questions(self, count: int, is_searched: bool) -> None:
        """Store the number of questions for the next start, if the index is writable."""
        with self._lock, suppress(sqlite3.Error, DamagedError), self._database.transaction() as connection:
            set_meta(connection, QUESTIONS, msgspec.msgpack.encode((count, is_searched)))

    def settle(self) -> tuple[bool, Snapshot, Delta]:
        """Do a step of deferred work (about 20 ms); also returns whether none is left."""
        with self._lock:
            is_settled = self._healing(self._settle)
            self._healing(self._trim_log)
            before = self._snapshot
            if is_settled and self._has_settled:
                self._has_settled = False
                self._show(has_changed=True)
            return is_settled, self._snapshot, find_delta(before, self._snapshot)

    def _trim_log(self) -> None:
        """Empty a long write-ahead log, which grows without end while views are open."""
        if self._opened is None or not self._opened.has_long_log or monotonic() < self._trim_after:
            return
        self._trim_after = monotonic() + _TRIM_SECONDS
        self._opened.empty_log()
        # The newest view may need the log: opened again it is at its end, and once more it does without.
        for _ in range(2):
            if self._opened.has_long_log:
                self._show(has_changed=True)
                self._opened.empty_log()

    def _settle(self) -> bool:
        from core.index.texts import settle_texts  # imports numpy, which few commands need

        before = self._database.writer.total_changes
        with self._database.transaction() as connection:
            is_settled = settle_texts(Reader(connection, self._database.decoded))
        self._has_settled |= self._database.writer.total_changes != before
        return is_settled

    # Search

    def search(
        self,
        words: SearchWords,
        filters: SearchFilters,
        limit: int | None,
        *,
        go_on: Callable[[], bool],
        snapshot: Snapshot,
    ) -> SearchResult:
        """Search the task memory, in any thread; see `search.search`.

        Does not wait for changes of the index. If it cannot be used, all files are read until `go_on` returns False.
        """
        from core.index.search import TaskView, search

        find = partial(search, self._paths, words, filters, limit, go_on=go_on, snapshot=snapshot)
        database = self._opened if self._snapshot.complete else None
        if database is not None:
            try:
                with closing(TaskView(database.read(), self._paths)) as view:
                    return find(view=view)
            except (OSError, sqlite3.Error, DamagedError, msgspec.MsgspecError, ValueError) as error:
                self._has_damaged_words |= is_damage(error)
        return find()

    def fill_words(self) -> bool:
        """Index tasks for search for about 10 ms; return whether more is left to do now."""
        with self._lock:
            return self._healing(self._fill_words)

    def _fill_words(self) -> bool:
        from core.index.search import WordFiller

        if self._has_damaged_words:
            self._has_damaged_words = False
            raise DamagedError("a record of a task is damaged")
        if self._task_words is None:
            self._task_words = WordFiller(self._paths)
        if self._must_check_tasks:
            self._must_check_tasks = False
            self._task_words.check_all()
        return self._task_words.fill(self._database, _WORDS_SECONDS)

    def check_pages(self) -> None:
        """Delete the index if its pages contradict each other; checked at most daily.

        Values have checksums, but the columns by which they are found have none. Takes 0.6 s for 10,000 loops.
        """
        with self._lock:
            connection, now = self._database.writer, self._clock()
            try:
                checked_at = parse_time((get_meta(connection, PAGES_CHECKED) or b"").decode())
                if checked_at is not None and abs(now - checked_at) < _PAGES_CHECKED_EVERY:
                    return
                if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                    raise DamagedError("pages of the index contradict each other")
                with self._database.transaction():
                    set_meta(connection, PAGES_CHECKED, now.isoformat().encode())
            except (DamagedError, sqlite3.Error) as error:
                if is_damage(error):
                    self._discard(is_damaged=True)

    @property
    def database(self) -> Database:
        """Database for tables not filled from files; OSError or sqlite3.Error if none."""
        with self._lock:
            return self._database

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @property
    def _database(self) -> Database:
        if self._opened is None:
            self._opened = Database.open(self._paths.project, is_kept=self._is_kept)
        return self._opened

    def _update(self, act: Callable[[], Delta]) -> tuple[Snapshot, Delta]:
        """Call `act`; returns the newest snapshot, and what differs from the one before."""
        before = self._snapshot
        delta = self._healing(act)
        after = self._snapshot
        if isinstance(after, IndexedSnapshot) and isinstance(before, IndexedSnapshot) and not after.follows(before):
            delta = _everything(before, after)
        return after, delta

    def _healing(self, act: Callable[[], _Result]) -> _Result:
        """Call `act`; if the index is damaged or cannot be written, again with a new one.

        Raises Unwritable if none can be made.
        """
        discarded = 0
        while True:
            try:
                if discarded:
                    self._load(None, None)
                    if self._adapted is not None:
                        self._write(_NO_FILES, adapted=self._adapted, is_complete=False)
                return act()
            except (DamagedError, msgspec.MsgspecError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if discarded == _MAX_DISCARDED:
                    raise unwritable(error) from error
                is_deleted = self._opened is not None and not self._opened.exists
                self._discard(is_damaged=is_damage(error) or is_deleted)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                # Columns have no checksum, and a value of another type or size can lead to any error.
                if discarded:
                    raise
                self._discard(is_damaged=True)
            discarded += 1
            self._is_kept = self._is_kept and discarded < _MAX_DISCARDED

    def _discard(self, *, is_damaged: bool) -> None:
        """Delete a damaged index, or replace an unwritable one by a temporary one."""
        if self._opened is not None and is_damaged:
            self._opened.remove()
        elif self._opened is not None:
            self._opened.close()
        self._is_kept = self._is_kept and is_damaged
        self._opened = None
        self._snapshot = Snapshot()

    def _load(self, progress: _Count, publish: _Take) -> Delta:
        is_first = get_meta(self._database.writer, COMPLETE) is None
        if is_first and publish is not None and (newest := newest_states(self._paths, _FIRST_PUBLISH)):
            self._write(Sweep(newest, set(), {}, paths=()), is_complete=False)
            publish(self._snapshot)
        found = self._sweep((lambda count: progress(count, 0)) if progress is not None else None)
        publish = publish if is_first else None
        return self._write(found, progress=progress, publish=publish, in_steps=is_first, checks_open=True)

    def _refresh(self, changed: Iterable[Path] | None) -> Delta:
        if changed is None:
            return self._write(self._sweep(), checks_open=True)
        names = sorted({name for path in changed if (name := self._name(path))})
        if len(names) > _SWEEP_FROM:
            return self._write(self._sweep(), checks_open=True)
        return self._write(self._find_changes(names), checks_open=False)

    def _sweep(self, progress: Callable[[int], None] | None = None) -> Sweep:
        self._sweeps += 1
        self._must_check_tasks = True  # a sweep sees only some of their files
        begun = thread_time()
        found = sweep(
            self._paths, self._database.writer, lists_all=self._sweeps % _LISTED_EVERY == 0, progress=progress
        )
        self.sweep_seconds = thread_time() - begun
        return found

    def _find_changes(self, names: Sequence[str]) -> Sweep:
        """Compare single paths with the index."""
        if any(self._paths.tasks.is_relative_to(self._paths.project / name) for name in names):
            self._must_check_tasks = True
        changed: dict[str, Stamp] = {}
        removed: set[str] = set()
        unreadable: dict[str, Problem] = {}
        known: dict[str, Stamp] = {}
        for name in names:
            stamps = scan_path(self._paths, name, unreadable)
            rows = self._known_below(name)
            known |= rows
            removed |= rows.keys() - stamps.keys()
            for path in stamps.keys() - rows.keys():
                known |= self._known_at(path)
            changed |= stamps
        differing = {path: stamp for path, stamp in changed.items() if known.get(path) != stamp}
        return Sweep(differing, removed, unreadable, paths=tuple(names))

    def _known_at(self, path: str) -> dict[str, Stamp]:
        sql = "SELECT path, inode, size, mtime, ctime FROM file WHERE path = ?"
        return {path: Stamp(*row) for path, *row in self._database.writer.execute(sql, (path,))}

    def _known_below(self, name: str) -> dict[str, Stamp]:
        """Return the indexed files that a change of a path affects."""
        found = self._known_at(name) | self._known_at(f"{loop_directory(name)}/")
        if can_contain_records(name):
            sql = "SELECT path, inode, size, mtime, ctime FROM file WHERE path >= ? AND path < ?"
            rows = self._database.writer.execute(sql, (f"{name}/", f"{name}0"))
            found |= {path: Stamp(*row) for path, *row in rows}
        return found

    def _name(self, path: Path) -> str | None:
        """Return the project-relative name of a path inside `.aiwg`."""
        try:
            name = self._paths.relative(path)
        except ValueError:
            return None
        return name if name == ".aiwg" or name.startswith(".aiwg/") else None

    def _write(
        self,
        found: Sweep,
        *,
        adapted: AdapterRecords | None = None,
        checks_open: bool = False,
        is_complete: bool = True,
        progress: _Count = None,
        publish: _Take = None,
        in_steps: bool = False,
    ) -> Delta:
        """Write what changed, in one transaction, or `in_steps` of some seconds.

        `publish` gets the view after each. Others can write between steps; an ended load goes on after the last one.
        """
        files = sorted(found.changed.items(), key=lambda item: _rank(item[0], found.changed))
        logs = [(path, stamp) for path, stamp in files if is_log(path)]
        for path, _ in files if len(files) <= _FEW_FILES else ():
            if (kind := kind_of(path)) is not None and kind.format is Format.PATTERNS:
                self._pattern_files.setdefault(path, {})
        others = [item for item in files if not is_log(item[0])]
        parsed = parse_all(str(self._paths.project), others, self._pattern_files)
        before, done, is_first, is_last = self._snapshot, 0, True, False
        scored = None
        while not is_last:
            now = self._clock()
            checks_open = checks_open or abs(now - self._checked_at) >= _LIVENESS_INTERVAL
            with self._database.transaction():
                step = Step(self._database, self._sources, now)
                if is_first:
                    step.take_sweep(found)
                if adapted is not None:
                    step.joiner.replace_adapted(adapted)
                until, is_first, is_last = monotonic() + _STEP_SECONDS, False, True
                for file in parsed:
                    step.take(file, found.changed[file.path])
                    done += 1
                    if progress is not None and (done % 100 == 0 or done == len(files) - len(logs)):
                        progress(done, len(files) - len(logs))
                    if in_steps and monotonic() > until:
                        is_last = False
                        break
                if is_last:
                    for path, stamp in logs:
                        step.take_log(path, stamp)
                step.finish(checks_open=checks_open and is_last, is_complete=is_complete and is_last)
            if checks_open and is_last:
                self._checked_at = now
            self._show(has_changed=step.has_changed)
            if publish is not None:
                publish(self._snapshot)
            scored = step.scored
        writer = self._database.writer
        if get_meta(writer, TEXTS) is None and get_meta(writer, COMPLETE) is not None:
            self._fill_texts(scored)
        return find_delta(before, self._snapshot)

    def _fill_texts(self, scored: tuple[Snapshot, Scoreboard] | None) -> None:
        """Index the texts of all records, in its own transaction: no list waits for it.

        `scored` are the records and scores of the newest snapshot, if they are in memory.
        """
        # Imported on use: they import numpy, which a list without changes does not need.
        from core.index.scores import find_board, read_records
        from core.index.texts import fill_texts

        with self._database.transaction() as connection:
            if get_meta(connection, TEXTS) is None:  # otherwise another process has just done it
                reader = Reader(connection, self._database.decoded)
                number = int(get_meta(connection, NUMBER) or b"0")
                if scored is None or number != self._snapshot.number:
                    view = IndexedSnapshot(reader, self._files)
                    scored = read_records(view), find_board(view, self._clock(), self._settings)
                fill_texts(reader, *scored)
                count_change(connection, NUMBER)
        self._show(has_changed=True)

    def _show(self, *, has_changed: bool) -> None:
        """Open a view of the index if it differs from that of the newest snapshot."""
        before = self._snapshot
        number = int(get_meta(self._database.writer, NUMBER) or b"0")
        if isinstance(before, IndexedSnapshot) and not has_changed and before.number == number:
            return
        reader = View(self._database.read(), self._database.decoded)
        after = IndexedSnapshot(reader, self._files)
        if isinstance(before, IndexedSnapshot):
            after.take_unchanged(before, find_delta(before, after))
        self._snapshot = after


def _everything(before: Snapshot, after: Snapshot) -> Delta:
    """Return all that may have changed since a view of a damaged or deleted index."""
    changed = {name: set(getattr(after, name)) for name in COLLECTIONS}
    for name, ids in changed.items():
        with suppress(DamagedError, sqlite3.Error):
            ids |= set(getattr(before, name))
    changed["team"] = set(after.team.sums)
    return Delta(**{name: frozenset(ids) for name, ids in changed.items()}, events=True, decisions=True, findings=True)


def _rank(file: str, stamps: Mapping[str, Stamp]) -> tuple[int, int, str, str]:
    """Sort key of a file; listed files of a loop follow its state, to join it early."""
    if (load_order := load_order_of(file)) == LISTED:
        state = f"{file}state.json" if file[-1] == "/" else f"{loop_directory(file)}/state.json"
        if (stamp := stamps.get(state)) is not None:
            return load_order_of(state), -stamp.mtime_ns, f"{state}/{file}", file
    return load_order, -stamps[file].mtime_ns, file, file
