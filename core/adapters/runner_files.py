"""Read-only access of adapters to the files of runners, with limits (docs/adapters.md#reading).

Whatever is torn, damaged or has vanished gives the last good content and, if it lasts, a finding; nothing raises.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from core.records.findings import Finding, Severity
from core.storage.decoded import Problem
from core.storage.file_reader import RawFile, Stamp, decode, open_file, read_file

if TYPE_CHECKING:
    from core.adapters.contract import Folders

MAX_LINE_BYTES: Final = 4 << 20  # longest line of a transcript that is decoded
MAX_BYTES_AT_ONCE: Final = 2 << 20  # of one transcript, at each look
MAX_TRANSCRIPT_BYTES: Final = 1 << 40
HEAD_BYTES: Final = 1024  # hashed, to notice that another file has taken the place of a transcript
MAX_ENTRIES: Final = 50_000  # of one folder
MAX_FIRST_LINE: Final = 256 << 10
MAX_ROWS: Final = 100_000  # of one query
BUSY_SECONDS: Final = 0.2  # time that a locked database gets
_DAMAGE: Final = (msgspec.MsgspecError, RecursionError, ValueError, TypeError, KeyError, AttributeError, OverflowError)

_State = TypeVar("_State", bound=Struct)
_Value = TypeVar("_Value")


class Fold(Protocol[_State]):
    """Reads a growing file line by line into a small state, which is kept between runs of the program.

    `name` and `version` identify the code: after a change, increase the version, and files are read from the start.
    `state` is a mutable msgspec Struct that MessagePack can encode; a new one is the state of an empty file.
    """

    name: str
    version: int
    state: type[_State]

    def add(self, state: _State, line: bytes) -> None:
        """Add a complete line, which is untrusted; ValueError, TypeError or msgspec's errors if it cannot be read."""


class Folded(Struct, gc=False):
    """The state of a transcript, and how far it was read."""

    state: Any
    stamp: Stamp
    head: bytes  # hash of the first bytes
    offset: int = 0  # of the first byte that was not read
    skipped: int = 0  # lines that could not be read

    @property
    def is_complete(self) -> bool:
        """Whether all bytes of the file were read, but for a last line that is not complete."""
        return self.offset >= self.stamp.size


class RunnerFiles:
    """The files of one runner, as an adapter sees them.

    `is_behind` is set if a transcript was not read to its end at the last look. `findings` are those of the last
    look. Use it from one thread; call `start_look` before each look.
    """

    def __init__(self, folders: Folders, name: str) -> None:
        self.folders = folders
        self.name = name
        self.is_behind = False
        self.findings: list[Finding] = []
        self._folded: dict[tuple[str, Path], Folded] = {}
        self._good: dict[Path, tuple[Stamp, Any]] = {}
        self._rows: dict[tuple[Path, str, tuple[Any, ...]], tuple[Any, list[tuple[Any, ...]]]] = {}
        self._remembered: dict[str, Any] = {}

    def start_look(self) -> None:
        """Begin to look at all files again."""
        self.is_behind = False
        self.findings = []

    # Files

    def exists(self, path: Path) -> bool:
        """Return whether there is something at this path."""
        return self.modified_at(path) is not None

    def modified_at(self, path: Path) -> datetime | None:
        """Return when a file or folder was changed last; None if there is none."""
        stamp = _stamp(path)
        return stamp.modified_at if stamp is not None else None

    def names(self, folder: Path, pattern: str = "*") -> list[Path]:
        """Return the files and folders in a folder whose names match, sorted by name; without links that lead out."""
        try:
            with os.scandir(folder) as entries:
                found = [Path(one.path) for one in entries if fnmatch(one.name, pattern) and self._is_inside(one)]
        except (OSError, ValueError):
            return []
        return sorted(found)[:MAX_ENTRIES]

    def read(self, path: Path, convert: Callable[[bytes], Any], limit: int = 1 << 20) -> Any:
        """Return what `convert` makes of a file; the last good value if it raises, None if there never was one.

        All calls for a file must use the same conversion.
        """
        stamp, value = self._good.get(path, (None, None))
        try:
            if stamp is not None and Stamp.of(path.stat()) == stamp:
                return value
        except (OSError, ValueError):
            return None
        raw = read_file(path, self._root(path), limit)
        if raw is None:
            return None
        if isinstance(raw, Problem):
            self.report(path, raw.message, raw.code)
            return value
        try:
            value = convert(raw.data)
        except _DAMAGE:
            return value
        self._good[path] = raw.stamp, value
        return value

    def text(self, path: Path, limit: int = 1 << 20) -> str:
        """Return a text file; its last good content while it is unreadable, "" if there never was any."""
        return str(self.read(path, lambda data: data.decode("utf-8", "replace"), limit) or "")

    def json(self, path: Path, limit: int = 8 << 20) -> Any:
        """Return a decoded JSON, JSONL (a list of `Line`) or YAML file, by its name; None if there never was one."""

        def decoded(data: bytes) -> Any:
            result = decode(path.name, data)
            for problem in result.problems:
                self.report(path, problem.message, problem.code, problem.place)
            if result.failed:
                raise ValueError(path.name)
            return result.value

        return self.read(path, decoded, limit)

    def head(self, path: Path, size: int) -> bytes:
        """Return the first bytes of a file, however large it is; b"" if it cannot be read."""
        opened = open_file(path, self._root(path))
        if not isinstance(opened, int):
            return b""
        try:
            return os.pread(opened, size, 0)
        except OSError:
            return b""
        finally:
            os.close(opened)

    def first_line(self, path: Path) -> bytes:
        """Return the first line of a file; b"" if it is not complete, or longer than `MAX_FIRST_LINE` bytes."""
        line, newline, _ = self.head(path, MAX_FIRST_LINE).partition(b"\n")
        return line if newline else b""

    def rows(self, path: Path, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return rows of an SQLite database; the last good ones, with a finding, while it cannot be read.

        Neither locks a database that no other process uses, nor creates files beside it.
        """
        stamps = tuple(_stamp(path.with_name(path.name + suffix)) for suffix in ("", "-wal", "-shm", "-journal"))
        key = path, query, tuple(values)
        known = self._rows.get(key, (None, []))
        if stamps[0] is None or known[0] == stamps or not self._is_allowed(path) or not path.is_file():
            return known[1] if stamps[0] is not None else []
        _, log, shared, journal = stamps
        try:
            if log is not None and log.size and shared is None:
                raise sqlite3.OperationalError("its log has changes that only its own program can read")
            mode = "mode=ro" if journal is not None or (log is not None and log.size) else "mode=ro&immutable=1"
            with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE_BYTES)
                found = connection.execute(query, values).fetchmany(MAX_ROWS)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            self.report(path, f"cannot be read: {error}", "unreadable-database")
            return known[1]
        self._rows[key] = stamps, found
        return found

    def fold(self, path: Path, fold: Fold[_State]) -> Folded | None:
        """Read what was added to a file of lines; None if there is none.

        At most `MAX_BYTES_AT_ONCE` at each look. The state is the same object until something was added.
        """
        key = fold.name, path
        known = self._folded.get(key)
        try:
            stamp = Stamp.of(path.stat())
        except (OSError, ValueError):
            return known
        if known is not None and known.stamp == stamp and known.is_complete:
            return known
        if not self._is_allowed(path):
            return None
        head = self._head(path)
        is_same = known is not None and known.stamp.inode == stamp.inode and stamp.size >= known.offset
        if known is None or not is_same or not head.startswith(known.head[: len(known.head)]):
            known = Folded(fold.state(), stamp, head)
        known = self._advance(path, fold, msgspec.structs.replace(known, stamp=stamp, head=head))
        self._folded[key] = known
        self.is_behind |= not known.is_complete
        return known

    # What was seen before

    def remember(self, key: str, value: _Value) -> _Value:
        """Keep a value beyond the end of the program, such as the last content of a file that vanishes."""
        self._remembered[key] = value
        return value

    def remembered(self, key: str) -> Any:
        """Return a value that was kept; None if there is none."""
        return self._remembered.get(key)

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

    def _advance(self, path: Path, fold: Fold[Any], known: Folded) -> Folded:
        raw = read_file(path, self._root(path), MAX_TRANSCRIPT_BYTES, known.offset)
        if not isinstance(raw, RawFile):
            return known
        data = raw.data[:MAX_BYTES_AT_ONCE]
        end = data.rfind(b"\n") + 1
        skipped = known.skipped
        for line in data[:end].split(b"\n"):
            if line.strip():
                try:
                    fold.add(known.state, line)
                except _DAMAGE:
                    skipped += 1
        return msgspec.structs.replace(known, offset=known.offset + end, skipped=skipped)

    def _head(self, path: Path) -> bytes:
        raw = read_file(path, self._root(path), MAX_TRANSCRIPT_BYTES)
        return sha256(raw.data[:HEAD_BYTES]).digest() if isinstance(raw, RawFile) else b""

    def _root(self, path: Path) -> Path:
        roots = (*self.folders.roots, *((self.folders.home,) if self.folders.home else ()))
        return next((root for root in roots if path.is_relative_to(root)), path.parent)

    def _is_allowed(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self._root(path).resolve())
        except (OSError, RuntimeError, ValueError):
            return False

    def _is_inside(self, entry: os.DirEntry[str]) -> bool:
        return not entry.is_symlink() or self._is_allowed(Path(entry.path))


def _stamp(path: Path) -> Stamp | None:
    try:
        return Stamp.of(path.stat())
    except (OSError, ValueError):
        return None


def bullets(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each bullet of a Markdown text."""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip()
        if stripped[:2] in ("- ", "* ", "+ ", "• "):
            yield number, stripped[2:].strip()


def utc(milliseconds: float) -> datetime | None:
    """Return a time in milliseconds since 1970 as UTC; None if it is out of range."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None
