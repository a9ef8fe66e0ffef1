"""Read-only access of adapters to files, with limits; docs/adapters.md#reading.

Whatever is torn, damaged or has vanished gives the last good content and, if it lasts, a finding; nothing raises. Below
are the conversions that several adapters use: texts, times, beginnings of files.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import closing, suppress
from datetime import UTC, datetime
from fnmatch import fnmatch
from heapq import nlargest
from itertools import count, islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct

from core.base.masking import clip
from core.files.file_reader import RawFile, Stamp, decode, decode_json, open_file, read_file
from core.records.findings import Finding, Severity
from core.records.times import parse_time
from core.sources.adapters.transcripts import DAMAGE, KeptStates, read_added
from core.sources.adapters.transcripts import Fold as Fold
from core.sources.adapters.transcripts import Folded as Folded
from core.sources.normalize import Fields

if TYPE_CHECKING:
    from core.files.file_reader import Problem
    from core.sources.adapters.folders import Folders


MAX_RECENT: Final = 300  # files and folders that are checked often: those that changed last
_RACY_NS: Final = 100_000_000  # a file that changed less than this before a check may change again at the same time


class FileStamps:
    """Stamps of paths; `clock` returns nanoseconds since 1970."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._stamps: dict[Path, Stamp] = {}
        self._missing: dict[Path, set[Path]] = {}
        """Paths at which there was nothing, by their nearest folder that exists."""
        self._folder_of: dict[Path, Path] = {}
        self._parents: set[Path] = set()  # folders that are checked only for what is missing in them
        self._racy: set[Path] = set()
        self._changed: frozenset[Path] | None = None
        self._recent: list[Path] | None = None

    def start_look(self, changed: Iterable[Path] | None) -> None:
        """Take the other paths as unchanged until the next look; None checks all."""
        self._changed = None if changed is None else frozenset(changed)

    def of(self, path: Path) -> Stamp | None:
        """Return the stamp of a file or folder, None if there is none."""
        if self._changed is not None and path not in self._changed:
            if (stamp := self._stamps.get(path)) is not None:
                return stamp
            if path in self._folder_of:
                return None
        self._parents.discard(path)
        return self._check(path)

    def is_racy(self, path: Path) -> bool:
        """Return whether a path may have changed without another stamp."""
        return path in self._racy

    def find_changed(self, *, is_recent: bool = False) -> set[Path]:
        """Return the paths that have another stamp than at the last call or look.

        With `is_recent`, check only those that changed last.
        """
        checked = self._find_recent() if is_recent else [*self._stamps, *self._missing]
        changed = self._racy | {path for path in checked if self._stamps.get(path) != _stamp(path)}
        for path in changed:
            self._check(path)
        for folder in changed & self._missing.keys():
            missing = self._missing.pop(folder)
            for path in missing:
                del self._folder_of[path]
            changed |= {path for path in missing if self._check(path) is not None}
        return changed - self._parents

    def _check(self, path: Path) -> Stamp | None:
        stamp = _stamp(path)
        if stamp is None:
            self._stamps.pop(path, None)
            self._racy.discard(path)
            if path not in self._folder_of:
                self._add_missing(path)
            return None
        if (folder := self._folder_of.pop(path, None)) is not None and folder in self._missing:
            self._missing[folder].discard(path)
        if stamp != self._stamps.get(path):
            self._recent = None
            self._stamps[path] = stamp
        if abs(self._clock() - stamp.mtime_ns) < _RACY_NS:
            self._racy.add(path)
        else:
            self._racy.discard(path)
        return stamp

    def _add_missing(self, path: Path) -> None:
        folder = next((one for one in path.parents if one in self._stamps or _stamp(one) is not None), None)
        if folder is not None:
            if folder not in self._stamps:
                self._parents.add(folder)
                self._check(folder)
            self._folder_of[path] = folder
            self._missing.setdefault(folder, set()).add(path)
            self._recent = None

    def _find_recent(self) -> list[Path]:
        if self._recent is None:
            newest = nlargest(MAX_RECENT, self._stamps, key=lambda path: self._stamps[path].mtime_ns)
            folders = nlargest(MAX_RECENT, self._missing, key=lambda path: len(self._missing[path]))
            self._recent = list(dict.fromkeys((*newest, *folders)))
        return self._recent


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path.stat())
    except (OSError, ValueError):
        return None


MAX_ROWS: Final = 100_000  # of one query
MAX_QUERIES: Final = 256  # whose rows are kept, the last ones
MAX_VALUE: Final = 32 << 20  # bytes of one value; a query that meets a larger one fails
MAX_BYTES: Final = 256 << 20  # of texts in the rows of one query
MAX_STEPS: Final = 300  # of a query, of `_STEP` instructions each: a view or a damaged index can go on forever
BUSY_SECONDS: Final = 0.2  # time that a locked database gets
_STEP: Final = 1_000_000
RETRY_SECONDS: Final = 0.05  # before a file that cannot be decoded is read once more
FAILED_SECONDS: Final = 2.0  # how long a file cannot be decoded before it is reported
MAX_ENTRIES: Final = 50_000  # of one folder
MAX_FIRST_LINE: Final = 256 << 10
_RELISTED_EVERY: Final = 10  # full looks, of which one lists all folders: some network drives keep no times of folders
_PARTS_OF_PRIVATE: Final = {".config": 2, ".local": 3, ".cache": 2}  # folders below home that belong to no one agent

_State = TypeVar("_State", bound=Struct)
_Value = TypeVar("_Value")
_Rows = list[tuple[Any, ...]]
_Key = tuple[str, Path]  # the form of the content, and the file
_Entries = list[tuple[str, Path]]


class Databases:
    """Rows of databases; a query is only repeated after a change of the files."""

    def __init__(self, files: RunnerFiles) -> None:
        self._files = files
        self._rows: dict[tuple[Path, str, tuple[Any, ...]], tuple[tuple[Stamp | None, ...], _Rows]] = {}
        self._endless: dict[Path, tuple[Stamp | None, ...]] = {}  # databases of which a query was stopped

    def rows(self, path: Path, query: str, values: tuple[Any, ...]) -> _Rows:
        """Return a query's rows; the last good ones, and a finding, while unreadable."""
        names = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
        stamps = tuple(map(self._files.stamp, names))
        key = path, query, values
        before, known = self._rows.get(key, ((), []))
        if stamps[0] is None or before == stamps:
            return known if stamps[0] is not None else []
        try:
            found = self._query(names, stamps, query, values)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                self._endless[path] = stamps
            self._files.report(path, f"cannot be read: {error}", "unreadable-database")
            return known
        self._rows.pop(key, None)
        self._rows[key] = stamps, found
        if len(self._rows) > MAX_QUERIES:
            del self._rows[next(iter(self._rows))]
        return found

    def _query(
        self, names: Sequence[Path], stamps: tuple[Stamp | None, ...], query: str, values: tuple[Any, ...]
    ) -> _Rows:
        """Run a query; raises sqlite3.Error or ValueError."""
        path, (_, log, shared, journal) = names[0], stamps
        if any(stamp is not None and not name.is_file() for name, stamp in zip(names, stamps, strict=True)):
            raise ValueError("it or a file beside it is not a regular file")
        if self._endless.get(path) == stamps:
            raise ValueError("a query takes too long")
        if log is not None and log.size and shared is None:
            raise ValueError("unreadable while closed: its log has changes that only its owner reads")
        # With `readonly_shm`, the index of the log is neither written nor locked for writing.
        is_live = journal is not None or (log is not None and log.size)
        mode = "mode=ro&readonly_shm=1" if is_live else "mode=ro&immutable=1"
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.text_factory = _decode
            steps = count()
            connection.set_progress_handler(lambda: next(steps) >= MAX_STEPS, _STEP)
            found, size = [], 0
            for row in islice(connection.execute(query, values), MAX_ROWS):
                found.append(row)
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if size > MAX_BYTES:
                    raise ValueError("its rows are too large")
            return found


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


class _Good(Struct, gc=False):
    stamp: Stamp
    value: Any
    findings: list[Finding]


class _Failure(Struct, gc=False):
    """A file undecodable since a time; `findings` is empty until it is reported."""

    stamp: Stamp
    since: float
    findings: list[Finding]


class LastGood:
    """Decodes files; keeps the last good value of each while it cannot be decoded.

    `clock` returns monotonic seconds. `pause` waits before a second try; None if nothing may wait.
    """

    def __init__(self, files: RunnerFiles, clock: Callable[[], float], pause: Callable[[float], object] | None) -> None:
        self._files, self._clock, self._pause = files, clock, pause
        self._good: dict[_Key, _Good] = {}
        self._failures: dict[_Key, _Failure] = {}

    def find_failing(self) -> set[Path]:
        """Return the files that cannot be decoded and are not reported yet."""
        return {path for (_, path), failure in self._failures.items() if not failure.findings}

    def read(
        self,
        form: str,
        path: Path,
        stamp: Stamp | None,
        read: Callable[[], RawFile | Problem | None],
        convert: Callable[[bytes], Any],
    ) -> Any:
        """Return the converted content of a file; `stamp` is its version if certain."""
        key, found = (form, path), self._files.findings
        good, failure = self._good.get(key), self._failures.get(key)
        last = good.value if good is not None else None
        if failure is not None and failure.findings and failure.stamp == stamp:
            found += failure.findings
            return last
        if good is not None and failure is None and good.stamp == stamp:
            found += good.findings
            return last
        for is_last in (True,) if self._pause is None else (False, True):
            count, raw = len(found), read()
            if not isinstance(raw, RawFile):
                if raw is not None:
                    self._files.report(path, raw.message, raw.code)
                return last
            with suppress(*DAMAGE):
                value = convert(raw.data)
                self._failures.pop(key, None)
                self._good[key] = _Good(raw.stamp, value, found[count:])
                return value
            if self._pause is not None and not is_last:
                del found[count:]
                self._pause(RETRY_SECONDS)
                continue
            now = self._clock()
            failure = self._failures.setdefault(key, _Failure(raw.stamp, now, []))
            failure.stamp = raw.stamp
            if abs(now - failure.since) < FAILED_SECONDS:
                del found[count:]
                break
            if len(found) == count:
                self._files.report(path, "cannot be decoded", "undecodable")
            failure.findings = found[count:]
        return last


class RunnerFiles:
    """The files of one runner, as an adapter sees them.

    `is_behind` is set if a transcript was not read to its end at the last look, `bytes_behind` is the size of what is
    left. `findings` are those of the last look. Use it from one thread; call `start_look` before each look.
    """

    def __init__(
        self,
        folders: Folders,
        name: str,
        *,
        kept: KeptStates | None = None,
        clock: Callable[[], float] = monotonic,
        pause: Callable[[float], object] | None = None,
        stamps: FileStamps | None = None,
    ) -> None:
        """`pause` waits before a failed decoding is repeated; None if nothing may wait."""
        self.folders = folders
        self.name = name
        self.is_behind = False
        self.bytes_behind = 0
        self.findings: list[Finding] = []
        self.budget: int | None = None
        """Bytes of transcripts that a look may read, at most `MAX_BYTES_AT_ONCE` of each; None if there is no limit."""
        self.on_bytes: Callable[[int], None] | None = None
        """Called with the number of bytes of transcripts that were read; all are read to the end if it is set."""
        self.stamps = stamps or FileStamps()
        self.kept = kept or KeptStates(None, name)
        self._last_good = LastGood(self, clock, pause)
        self._databases = Databases(self)
        self._looks = 0
        self._bytes_left: int | None = None
        variables = folders.environment.items()
        self._private = [
            Path(value) for name, value in variables if name.endswith(("_HOME", "_DIR")) and value.startswith("/")
        ]
        self._folded: dict[tuple[str, Path], Folded] = {}
        self._entries: dict[Path, tuple[Stamp, _Entries]] = {}
        self._names: dict[tuple[Path, str], tuple[_Entries, list[Path]]] = {}
        self._roots: dict[Path, Path | None] = {}

    def start_look(self, changed: Iterable[Path] | None = None) -> None:
        """Begin a new look at all files, or at those in `changed` (see `find_changed`)."""
        self._looks += changed is None
        if changed is None and self._looks % _RELISTED_EVERY == 0:
            self._entries.clear()
        self.stamps.start_look(changed)
        self._bytes_left = self.budget
        self.is_behind = False
        self.bytes_behind = 0
        self.findings = []

    def find_changed(self, *, is_recent: bool = False) -> set[Path]:
        """Return paths changed since the last look; `is_recent` checks only latest ones."""
        changed = self.stamps.find_changed(is_recent=is_recent)
        return changed | self._last_good.find_failing()

    @property
    def has_failures(self) -> bool:
        """Whether a failed decoding is not reported yet; a look 2 s later reports it."""
        return bool(self._last_good.find_failing())

    def forget_unread(self) -> None:
        """Forget states of partly read transcripts: another process may have read more."""
        self._folded = {key: folded for key, folded in self._folded.items() if folded.is_complete}

    # Files

    def exists(self, path: Path) -> bool:
        """Return whether there is something at this path."""
        return self.stamp(path) is not None

    def modified_at(self, path: Path) -> datetime | None:
        """Return when a file or folder was changed last; None if there is none."""
        stamp = self.stamp(path)
        return stamp.modified_at if stamp is not None else None

    def stamp(self, path: Path) -> Stamp | None:
        """Return the version of a file or folder; None if there is none."""
        return self.stamps.of(path) if self._root(path) is not None else None

    def names(self, folder: Path, pattern: str = "*") -> list[Path]:
        """Return matching paths in a folder, sorted by name; without links that lead out."""
        entries = self._list(folder)
        known = self._names.get((folder, pattern))
        if known is None or known[0] is not entries:
            known = entries, [path for name, path in entries if fnmatch(name, pattern)][:MAX_ENTRIES]
            self._names[folder, pattern] = known
        return known[1].copy()

    def read(self, path: Path, convert: Callable[[bytes], Any], limit: int = 1 << 20) -> Any:
        """Return a converted file; the last good one if `convert` raises, None if none.

        All calls for a file must use the same conversion.
        """
        return self._read("", path, convert, limit)

    def text(self, path: Path, limit: int = 1 << 20) -> str:
        """Return a text file; while unreadable, its last good content or "" if none."""
        return str(self._read("text", path, lambda data: data.decode("utf-8", "replace"), limit) or "")

    def json(self, path: Path, limit: int = 8 << 20) -> Any:
        """Decode a JSON, JSONL (`Line` list) or YAML file by its name; None if none."""

        def decoded(data: bytes) -> Any:
            result = decode(path.name, data)
            for problem in result.problems:
                self.report(path, problem.message, problem.code, problem.place)
            if result.failed:
                raise ValueError(path.name)
            return result.value

        return self._read("json", path, decoded, limit)

    def head(self, path: Path, size: int) -> bytes:
        """Return a file's first bytes, whatever its size; b"" if it cannot be read."""
        opened = self._open(path)
        if not isinstance(opened, int):
            return b""
        try:
            return os.pread(opened, size, 0)
        except OSError:
            return b""
        finally:
            os.close(opened)

    def first_line(self, path: Path) -> bytes:
        """Return the first line; b"" if incomplete or longer than `MAX_FIRST_LINE` bytes."""
        line, newline, _ = self.head(path, MAX_FIRST_LINE).partition(b"\n")
        return line if newline else b""

    def rows(self, path: Path, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return rows of an SQLite database; the last good ones and a finding on failure.

        Neither locks a database that no other process uses, nor creates files beside it.
        """
        if not self._is_allowed(path):
            return []
        return self._databases.rows(path, query, tuple(values))

    def fold(self, path: Path, fold: Fold[_State]) -> Folded | None:
        """Read added lines of a file; its last state if it vanished, None if none was.

        At most `MAX_BYTES_AT_ONCE` at each look. The state is the same object until something was added.
        """
        key = fold.name, path
        known = self._folded.get(key)
        stamp = self.stamp(path)
        if stamp is not None and known is not None and known.is_complete and known.stamp == stamp:
            return known
        if known is None and (known := self.kept.load(fold, path)) is not None:
            self._folded[key] = known
        if stamp is None:
            return known
        if known is None or not known.is_complete or known.stamp != stamp:
            known = self._fold_added(path, fold, known, stamp)
        if known is not None and not known.is_complete:
            self.is_behind = True
            self.bytes_behind += known.stamp.size - known.seen
        return known

    # What was seen before

    def remember(self, key: str, value: _Value) -> _Value:
        """Keep a value beyond the program's end, such as the content of a vanishing file."""
        self.kept.remember(key, value)
        return value

    def remembered(self, key: str) -> Any:
        """Return a value that was kept; None if there is none."""
        return self.kept.remembered(key)

    # Findings

    def report(self, path: Path, message: str, code: str, place: str = "") -> None:
        """Report that a file could not be used."""
        self.findings.append(Finding(self.shown(path), place, Severity.WARNING, code, message))

    def shown(self, path: Path) -> str:
        """Return a path for people: relative to the project, else `~/…`, else absolute."""
        folders = self.folders
        if path.is_relative_to(folders.project):
            return path.relative_to(folders.project).as_posix()
        if folders.home is not None and path.is_relative_to(folders.home):
            return f"~/{path.relative_to(folders.home).as_posix()}"
        return path.as_posix()

    # Parts

    def _list(self, folder: Path) -> _Entries:
        stamp, known = self.stamp(folder), self._entries.get(folder)
        if stamp is not None and known is not None and known[0] == stamp and not self.stamps.is_racy(folder):
            return known[1]
        if stamp is None or not self._is_allowed(folder):
            return []
        try:
            with os.scandir(folder) as entries:
                found = sorted((one.name, Path(one.path)) for one in entries if self._is_inside(one))
        except NotADirectoryError:
            found = []
        except (OSError, ValueError) as error:
            self.report(folder, f"cannot be listed: {getattr(error, 'strerror', None) or error}", "unreadable")
            return known[1] if known is not None else []
        self._entries[folder] = stamp, found
        return found

    def _read(self, form: str, path: Path, convert: Callable[[bytes], Any], limit: int) -> Any:
        if (stamp := self.stamp(path)) is None:
            return None
        is_racy = self.stamps.is_racy(path)
        return self._last_good.read(
            form, path, None if is_racy else stamp, lambda: self._read_raw(path, limit), convert
        )

    def _read_raw(self, path: Path, limit: int) -> RawFile | Problem | None:
        root = self._allowed_root(path)
        return read_file(path, root, limit) if root is not None else None

    def _fold_added(self, path: Path, fold: Fold[_State], known: Folded | None, stamp: Stamp) -> Folded | None:
        if self._bytes_left is not None and self._bytes_left <= 0 and self.on_bytes is None:
            return known or Folded(stamp, state=fold.state())
        opened = self._open(path)
        if not isinstance(opened, int):
            if opened is not None:
                self.report(path, opened.message, opened.code)
            return known
        try:
            while True:
                found = read_added(opened, fold, known)
                advanced = found.seen - (known.seen if known is not None else 0)
                is_same, known = known is not None and found.seen == known.seen, found
                if self._bytes_left is not None:
                    self._bytes_left -= max(advanced, 0)
                if self.on_bytes is not None:
                    self.on_bytes(max(advanced, 0))
                if self.on_bytes is None or found.is_complete or is_same:
                    break
        except OSError as error:
            self.report(path, f"cannot be read: {error.strerror}", "unreadable")
            return known
        finally:
            os.close(opened)
        self._folded[fold.name, path] = known
        self.kept.note(fold, path, known)
        return known

    def _open(self, path: Path) -> int | Problem | None:
        root = self._allowed_root(path)
        return open_file(path, root) if root is not None else None

    def _root(self, path: Path) -> Path | None:
        """Return the folder a path may not leave: the project, or an agent's private one."""
        if path not in self._roots:
            self._roots[path] = self._find_root(path)
        return self._roots[path]

    def _find_root(self, path: Path) -> Path | None:
        for root in self.folders.roots:
            if path.is_relative_to(root):
                return root
        home = self.folders.home
        if home is None:
            return None
        for root in self._private:
            if path.is_relative_to(root):
                return root
        if not path.is_relative_to(home):
            return path.parent
        parts = path.relative_to(home).parts
        return home.joinpath(*parts[: _PARTS_OF_PRIVATE.get(parts[0], 1)]) if parts else home

    def _allowed_root(self, path: Path) -> Path | None:
        return self._root(path) if self._is_allowed(path) else None

    def _is_allowed(self, path: Path) -> bool:
        root = self._root(path)
        try:
            return root is not None and path.resolve().is_relative_to(root.resolve())
        except (OSError, RuntimeError, ValueError):
            return False

    def _is_inside(self, entry: os.DirEntry[str]) -> bool:
        return not entry.is_symlink() or self._is_allowed(Path(entry.path))


def utc(milliseconds: float) -> datetime | None:
    """Return a time in milliseconds since 1970 as UTC; None if it is out of range."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def columns_of(files: RunnerFiles, path: Path, table: str) -> frozenset[str]:
    """Return the columns of a table; none if it does not exist."""
    return frozenset(str(row[0]) for row in files.rows(path, "SELECT name FROM pragma_table_info(?)", (table,)))


def read_table(
    files: RunnerFiles,
    path: Path,
    table: str,
    columns: Sequence[str],
    required: Set[str] = frozenset(),
    where: tuple[str, Sequence[Any]] = ("1", ()),
) -> list[tuple[Any, ...]] | None:
    """Return a table's matching rows; None if it or a `required` column is missing.

    Other columns that are missing are None. The names and the condition are part of the query, so they must be
    constants; its values are not.
    """
    known = columns_of(files, path, table)
    if not known or not known >= required:
        return None
    wanted = ", ".join(f'"{name}"' if name in known else "NULL" for name in columns)
    return files.rows(path, f'SELECT {wanted} FROM "{table}" WHERE {where[0]}', where[1])


MAX_TEXT: Final = 4000  # characters of a task, condition or lesson
MAX_LABEL: Final = 200  # characters of a reason or title
MAX_PLANS: Final = 200  # of one folder
HEAD_BYTES: Final = 4096
_TIME_LENGTH: Final = len("2026-11-20 09:40:00")


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_Record = TypeVar("_Record", bound=_Identified)


def cut(text: Any, limit: int = MAX_TEXT) -> str:
    """Return a stripped text of at most `limit` characters; "" for any other value."""
    if not isinstance(text, str):
        return ""
    text = text.strip()
    return text if len(text) <= limit else f"{clip(text, limit - 1)}…"


def local_time(text: str) -> datetime | None:
    """Parse a time; without a time zone, it is local, as shell scripts write it."""
    time = parse_time(text)
    if time is None or len(text.strip()) > _TIME_LENGTH:
        return time
    try:
        return time.replace(tzinfo=None).astimezone(time.tzinfo)
    except (OverflowError, OSError, ValueError):
        return time


def compact_time(text: str) -> str:
    """Return letters and digits of a time for an ID, such as `20261120T094000`."""
    return re.sub(r"[^0-9A-Za-z]", "", text)[:15]


def distinct(found: Iterable[_Record]) -> Iterator[_Record]:
    """Yield the first record of each ID."""
    known: set[str] = set()
    for one in found:
        if one.id not in known:
            known.add(one.id)
            yield one


def split_front_matter(lines: Sequence[str], most: int) -> tuple[Sequence[str], int]:
    """Return the lines between `---` lines at the start, and how many the head has."""
    if lines and lines[0].strip() == "---":
        for number, line in enumerate(lines[1 : most + 1], start=1):
            if line.strip() == "---":
                return lines[1:number], number + 1
    return (), 0


def decode_quietly(data: bytes) -> Any:
    """Decode JSON without a finding; ValueError if damaged: the last version stays."""
    decoded = decode_json(data)
    if decoded.failed:
        raise ValueError("not JSON")
    return decoded.value


def fields_of(value: Any) -> Fields:
    """Return the fields of a JSON object; none if it is something else."""
    return Fields("", value if isinstance(value, dict) else {}, [])


def head_of(path: Path, root: Path) -> bytes:
    """Return a regular file's first 4 KiB; b"" if missing or a link out of `root`."""
    descriptor = open_file(path, root)
    if not isinstance(descriptor, int):
        return b""
    try:
        return os.read(descriptor, HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
