"""Record kinds: which files under `.aiwg` are read and how; find all with stamps.

Sweep, parser, schema checks, load order and size limits all use it; see docs/file-formats.md#record-kinds. To add a
kind, add a row and, for a new collection, its reader in `core.sources.parsed_file` and its parts in `core.index.parse`.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.files.file_reader import MAX_BYTES, MAX_PATTERN_BYTES, Problem, Stamp, stamp_row

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


class Format(StrEnum):
    """How the bytes of a file are parsed."""

    DOCUMENT = "document"  # One JSON, JSONL or YAML document.
    PATTERNS = "patterns"
    ACTION_LOG = "action-log"  # JSONL file whose lines are only counted.
    EVENT_LOG = "event-log"
    TEAM_EVIDENCE = "team-evidence"
    DECISION_LOG = "decision-log"
    CRASH_LOG = "crash-log"
    FOLDER = "folder"  # A folder; its name is the record.


class RecordKind(Struct, frozen=True, eq=False):
    """One kind of file under `.aiwg`.

    `path` is a regular expression for its path below `.aiwg/`; the path of a folder ends in `/`. `name` is unique, and
    used in `Loop.sources` for loop files. `collections` are the fields of `Snapshot` that its records belong to.
    `limit` is the maximum size in bytes. Files are read by `load_order`: registries, states of loops and heartbeats,
    patterns, then what only adds to these; lists need the files up to `LISTED`.
    """

    name: str
    path: str
    collections: tuple[str, ...] = ()
    format: Format = Format.DOCUMENT
    limit: int = MAX_BYTES
    load_order: int = 3
    shape: str = ""  # Format of its reflections (see `Reflection.shape`); "" if it contains none.
    schema: str = ""  # Key in `SCHEMAS` of each record; "" for pattern files, which have one per pattern type.
    all_documents: bool = False  # Whether all documents of a YAML file are read instead of only the first.

    def matches(self, file: str) -> bool:
        """Whether a project-relative path is a file of this kind."""
        return file.startswith(".aiwg/") and re.fullmatch(self.path, file[6:]) is not None


LOOPS: Final = "loops"
ARCHIVE: Final = "archive"
REGISTRY: Final = "registry"
CURRENT: Final = "current-loop"
EXTERNAL: Final = "external"
EXTERNAL_ARCHIVE: Final = "external-archive"
EXTERNAL_REGISTRY: Final = "external-registry"
EXTERNAL_STATE: Final = "external-state"
LAUNCHER: Final = "launcher"
HEARTBEAT: Final = "heartbeat"
CRASH_LOG: Final = "crash-log"
ANALYTICS: Final = "analytics"
BEST_OUTPUT: Final = "best-output"
DIRECTORY: Final = "directory"
DETAILS: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT, CRASH_LOG, DIRECTORY})
"""Sources that only add details to loops found in other sources."""
REGISTRIES: Final = frozenset({REGISTRY, EXTERNAL_REGISTRY})
ARCHIVES: Final = frozenset({ARCHIVE, EXTERNAL_ARCHIVE})

_HOMES: Final = {
    ".aiwg/ralph/loops": LOOPS,
    ".aiwg/ralph/archive": ARCHIVE,
    ".aiwg/ralph-external/loops": EXTERNAL,
    ".aiwg/ralph-external/archive": EXTERNAL_ARCHIVE,
}
HOME_FOLDERS: Final = frozenset(_HOMES)  # Folders that contain one subfolder per loop.

LISTED: Final = 3  # Highest load order of the files that lists of loops and patterns need.
EPISODIC: Final = "episodic"
REFLEXION: Final = "reflexion"
HOOK: Final = "hook"
MEMORY_MANAGER: Final = "memory-manager"
CROSS_TASK: Final = "cross-task"
STATE: Final = "state"
DEBUG_SESSION: Final = "debug_session"


_DATA: Final = r"[^/]+\.(?:json|ya?ml|jsonl)"
_DOCUMENT: Final = r"(?!index\.)[^/]+\.(?:json|ya?ml)"
_TREE: Final = "(?:ralph|ralph-external)"
_HOME: Final = rf"{_TREE}/(?:loops|archive)/[^/]+"
_CURATION: Final = "ralph/shared/curation"
_TASK: Final = "ralph/tasks/[^/]+"
_ATTEMPT: Final = rf"{_TASK}/attempts/[0-9]{{1,9}}"

_STATE_FILE: Final = RecordKind("", "", ("loops", "reflections"), load_order=1, shape=STATE)
_ORDERED: Final = (
    RecordKind(
        "patterns",
        rf"ralph/shared/patterns/(?!effectiveness-metrics\.){_DATA}",
        ("patterns",),
        Format.PATTERNS,
        MAX_PATTERN_BYTES,
        load_order=2,
    ),
    RecordKind("metrics", r"ralph/(?:shared/(?:patterns/)?)?effectiveness-metrics\.json", schema="metrics_file"),
    RecordKind(
        "ledger", rf"{_CURATION}/ledger\.jsonl", ("decisions",), Format.DECISION_LOG, MAX_PATTERN_BYTES, load_order=0
    ),
    RecordKind("events", rf"{_CURATION}/events\.jsonl", ("events",), Format.EVENT_LOG, MAX_PATTERN_BYTES),
    RecordKind(
        "team-evidence", r"ralph/shared/team/evidence\.jsonl", ("team",), Format.TEAM_EVIDENCE, MAX_PATTERN_BYTES
    ),
    RecordKind("escalation", rf"{_CURATION}/escalations/[^/]+\.json", ("escalations",), limit=MAX_PATTERN_BYTES),
    RecordKind(
        "pattern-copies",
        rf"ralph/(?:memory|reflections|debug-memory)/patterns/{_DATA}|ralph/memory/patterns-index\.(?:json|ya?ml)",
        ("patterns",),
        Format.PATTERNS,
        MAX_PATTERN_BYTES,
        load_order=2,
    ),
    # Loops: the name of a kind is also its name in `Loop.sources`.
    replace(_STATE_FILE, name="loops", path=r"ralph/loops/[^/]+/state\.json"),
    replace(_STATE_FILE, name="archive", path=r"ralph/archive/[^/]+/state\.json"),
    replace(_STATE_FILE, name="current-loop", path=r"ralph/(?:current-loop|loop-state)\.json"),
    replace(_STATE_FILE, name="external", path=r"ralph-external/loops/[^/]+/session-state\.json"),
    replace(_STATE_FILE, name="external-archive", path=r"ralph-external/archive/[^/]+/session-state\.json"),
    replace(_STATE_FILE, name="external-state", path=r"ralph-external/session-state\.json"),
    RecordKind("registry", r"ralph/registry\.json", ("loops",), load_order=0),
    RecordKind("external-registry", r"ralph-external/registry\.json", ("loops",), load_order=0),
    RecordKind("launcher", r"ralph-external/launcher-registry\.json", ("loops",), load_order=0),
    RecordKind("heartbeat", r"ralph/heartbeats/[^/]+\.json", ("loops",), load_order=1),
    RecordKind("crash-log", rf"{_HOME}/crash\.log", ("loops",), Format.CRASH_LOG),
    RecordKind("analytics", rf"(?:{_TREE}|{_HOME})/analytics/[^/]+\.json", ("loops", "reflections"), shape="analytics"),
    RecordKind(
        "best-output",
        rf"(?:ralph/[^/]+|{_HOME})/best-output-tracking\.json",
        ("loops", "reflections"),
        shape="best-output",
    ),
    # Tasks
    RecordKind("task", rf"{_TASK}/metadata\.json", ("tasks",), load_order=4, schema="task"),
    RecordKind("trajectory", rf"{_TASK}/trajectory\.json", ("tasks", "attempts"), load_order=4, schema="trajectory"),
    RecordKind("attempt", rf"{_ATTEMPT}/attempt\.json", ("tasks", "attempts"), load_order=4, schema="attempt"),
    RecordKind("outcome", rf"{_ATTEMPT}/outcome\.json", ("tasks", "attempts"), load_order=4, schema="outcome"),
    RecordKind(
        "actions", rf"{_ATTEMPT}/actions\.jsonl", ("attempts",), Format.ACTION_LOG, MAX_PATTERN_BYTES, load_order=4
    ),
    RecordKind(
        "episodic-reflections",
        rf"{_TASK}/reflections\.jsonl",
        ("reflections",),
        load_order=4,
        shape=EPISODIC,
        schema="reflection",
    ),
    # Sessions of agents, which are private to one machine
    RecordKind("agent-sessions", r"ralph/sessions/[0-9a-f]{24}\.json", ("agent_sessions",), load_order=4),
    # Memory, reflections and debug sessions
    RecordKind("memory-index", r"ralph/memory/task-index\.json", ("memory_tasks",), load_order=4),
    RecordKind(
        "memory-task",
        r"ralph/memory/tasks/[^/]+\.json",
        ("memory_tasks", "reflections"),
        load_order=4,
        shape=CROSS_TASK,
    ),
    RecordKind(
        "debug-reflections",
        rf"{_TREE}/(?:[^/]+/debug-memory|debug-memory(?:/(?!(?:patterns|archive)/)[^/]+)?)/reflections/[^/]+\.json"
        rf"|ralph/reflections/(?:loops/)?debug-memory/{_DOCUMENT}"
        r"|ralph/memory/reflections/(?:[^/]+/)*debug-memory/(?!(?:patterns|archive)/)(?:[^/]+/)*"
        rf"(?:{_DOCUMENT}|[^/]+\.jsonl)",
        ("reflections", "debug_sessions"),
        load_order=4,
        shape=HOOK,
        schema=DEBUG_SESSION,
        all_documents=True,
    ),
    RecordKind(
        "memory-reflections",
        rf"ralph/memory/reflections/(?:[^/]+/)*(?:{_DOCUMENT}|[^/]+\.jsonl)",
        ("reflections",),
        load_order=4,
        shape=HOOK,
        all_documents=True,
    ),
    RecordKind(
        "reflections",
        rf"ralph/reflections/(?:loops/)?[^/]+/{_DOCUMENT}|ralph-external/reflections/[^/]+\.json"
        rf"|{_TREE}(?:/(?:loops|archive))?/(?!debug-memory/)[^/]+/reflections/[^/]+\.json",
        ("reflections",),
        load_order=4,
        shape=HOOK,
    ),
    RecordKind(
        "debug-sessions",
        rf"{_TREE}/(?:(?!debug-memory/)[^/]+/)*debug-memory/(?!(?:patterns|archive)/)(?:[^/]+/)*{_DATA}",
        ("debug_sessions",),
        schema=DEBUG_SESSION,
        all_documents=True,
    ),
    RecordKind(  # files without records; only checked for errors
        "unused",
        rf"{_HOME}/(?:session-)?state\.json|{_TASK}/attempts/[^/]+/(?:attempt|outcome)\.json"
        rf"|ralph/(?:memory/reflections/(?:[^/]+/)*|reflections/(?:loops/)?[^/]+/){_DATA}",
        load_order=4,
    ),
    RecordKind("directory", rf"{_HOME}/", ("loops",), Format.FOLDER),
)
"""All kinds; if several paths match a file, the first is used."""
KINDS: Final = {kind.name: kind for kind in _ORDERED}
PATTERNS: Final = KINDS["patterns"]
PATTERN_COPIES: Final = KINDS["pattern-copies"]
METRICS: Final = KINDS["metrics"]
EVENTS: Final = KINDS["events"]
ESCALATION: Final = KINDS["escalation"]
ACTIONS: Final = KINDS["actions"]
EPISODIC_REFLECTIONS: Final = KINDS["episodic-reflections"]
DEBUG_SESSIONS: Final = KINDS["debug-sessions"]
FOLDER: Final = KINDS[DIRECTORY]

_PATH: Final = lazy_regex(rf"\.aiwg/(?:{'|'.join(f'({kind.path})' for kind in _ORDERED)})")
NAMED_BY_ID: Final = frozenset({*HOME_FOLDERS, ".aiwg/ralph/tasks"})
"""Folders whose subfolders have IDs as names."""
IGNORED_FOLDERS: Final = frozenset(
    {
        *("node_modules", "iterations", "outputs", "prompts", "checkpoints"),
        *("embeddings", "results", "analysis", "overseer", ".git"),
    }
)
"""Names of folders that are not scanned, to save time; folders in `NAMED_BY_ID` may still contain such names."""


_by_file: dict[str, RecordKind | None] = {}  # loading and each sweep ask for every file, and matching takes long
_MAX_KNOWN: Final = 1 << 17


def kind_of(file: str) -> RecordKind | None:
    """Return the kind of a project-relative file; None if it is not read."""
    try:
        return _by_file[file]
    except KeyError:  # not `in`: another thread may clear it
        if len(_by_file) >= _MAX_KNOWN:
            _by_file.clear()
        kind = _by_file[file] = _find_kind(file)
        return kind


def _find_kind(file: str) -> RecordKind | None:
    match = _PATH.fullmatch(file)
    if match is None or match.lastindex is None or not is_text(file):
        return None
    parts = file.split("/")
    if parts[-1].startswith(".") or is_ignored(parts):
        return None
    return _ORDERED[match.lastindex - 1]


def load_order_of(file: str) -> int:
    """Return the load order of a project-relative file."""
    kind = kind_of(file)
    return kind.load_order if kind is not None else LISTED


def can_contain_sessions(file: str) -> bool:
    """Whether a project-relative file is of a kind that contains debug sessions."""
    kind = kind_of(file)
    return kind is not None and "debug_sessions" in kind.collections


def loop_source(file: str) -> str:
    """Return the kind of a loop file, such as `loops` or `analytics`; otherwise ""."""
    kind = kind_of(file)
    return kind.name if kind is not None and "loops" in kind.collections else ""


def loop_directory(file: str) -> str:
    """Return the loop directory that contains a project-relative path, or ""."""
    parts = file.split("/", 4)
    return "/".join(parts[:4]) if len(parts) > 3 and parts[3] and "/".join(parts[:3]) in _HOMES else ""


def loop_home(directory: str) -> str:
    """Source of a loop directory: LOOPS, ARCHIVE, EXTERNAL or EXTERNAL_ARCHIVE."""
    return _HOMES.get(directory.rpartition("/")[0], "")


def is_ignored(parts: Sequence[str]) -> bool:
    """Whether a path, split at `/`, is inside an ignored folder."""
    if IGNORED_FOLDERS.isdisjoint(parts):
        return False
    ids = (3,) if "/".join(parts[:3]) in NAMED_BY_ID else ()
    return any(part in IGNORED_FOLDERS and index not in ids for index, part in enumerate(parts))


def is_text(name: str) -> bool:
    """Whether a file name is valid UTF-8, so that records can contain it."""
    try:
        return name.isascii() or bool(name.encode())
    except UnicodeEncodeError:
        return False


_FILE_ENDINGS: Final = (".json", ".jsonl", ".yaml", ".yml", ".log", ".md", ".tmp", ".lock", ".bak")
_ROOTS: Final = ("ralph", "ralph-external")
ROOT_FOLDERS: Final = tuple(f".aiwg/{root}" for root in _ROOTS)
"""Folders below which all record files are."""
_SETTLED_NS: Final = 2_000_000_000  # age from which the times of a folder change with its content: the coarsest clock
_MAX_PARTS: Final = 7  # Maximum number of parts in a path; `.aiwg/ralph/loops/<id>/reflections/<n>.json` has 6.


StampRow = tuple[int, int, int, int]
"""Inode, size, mtime and ctime in ns, as in `Stamp`: comparing 60,000 tuples takes less time than making stamps."""


FolderRow = tuple[str, int, int, int, int, str, str]
"""Path and stamp of a folder, and the names of the folders and of the record files in it, separated by `/`.

The names are valid as long as the folder has this stamp.
"""


def can_contain_records(folder: str) -> bool:
    """Whether a project-relative path may be a folder that contains record files."""
    root, *folders = folder.split("/")
    return (
        root == ".aiwg"
        and len(folders) < _MAX_PARTS - 1
        and (not folders or folders[0] in _ROOTS)
        and not is_ignored((root, *folders))
        and (not folder.endswith(_FILE_ENDINGS) or folder.rpartition("/")[0] in NAMED_BY_ID)
    )


def scan(paths: ProjectPaths, unreadable: dict[str, Problem] | None = None) -> dict[str, Stamp]:
    """Return the stamps of all record files by project-relative path.

    `unreadable` receives the problem of each folder that cannot be listed. Links to files inside `.aiwg` are followed;
    other links and all links to folders but the roots are not.
    """
    return _walk(paths, ROOT_FOLDERS, unreadable)


def newest_states(paths: ProjectPaths, count: int) -> dict[str, Stamp]:
    """Return the `count` newest state files without a full search; {} if fewer exist."""
    found: dict[str, Stamp] = {}
    for home in HOME_FOLDERS:
        if _folder_status(paths.project / home) is None:
            continue
        name = "session-state.json" if home.startswith(".aiwg/ralph-external/") else "state.json"
        with contextlib.suppress(OSError), os.scandir(paths.project / home) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = os.lstat(f"{entry.path}/{name}") if entry.is_dir(follow_symlinks=False) else None
                    if status is not None and stat.S_ISREG(status.st_mode):
                        found[f"{home}/{entry.name}/{name}"] = Stamp.of(status)
    newest = sorted(found, key=lambda file: found[file].mtime_ns, reverse=True)[:count]
    return {file: found[file] for file in newest if kind_of(file) is not None} if len(newest) == count else {}


def scan_path(paths: ProjectPaths, relative: str, unreadable: dict[str, Problem] | None = None) -> dict[str, Stamp]:
    """Like `scan`, but only for a changed path and the loop folder that contains it."""
    found: dict[str, Stamp] = {}
    parts = relative.rstrip("/").split("/")
    if parts[0] != ".aiwg" or not {"", ".", ".."}.isdisjoint(parts):
        return found
    if len(parts) == 1:
        return scan(paths, unreadable)
    if parts[1] not in _ROOTS:
        return found
    # As in `scan`, links to folders are not followed; a parent may lead out of the project.
    for depth in range(2, len(parts)):
        folder = "/".join(parts[:depth])
        status = _folder_status(paths.project / folder)
        if status is None or is_ignored(parts[:depth]):
            return found
        if kind_of(f"{folder}/") is FOLDER:
            found[f"{folder}/"] = Stamp.of(status)
    relative = "/".join(parts)
    status = _folder_status(paths.project / relative)
    if status is None:
        if kind_of(relative) is not None and (stamp := _file_stamp(paths, relative)) is not None:
            found[relative] = stamp
    elif not is_ignored(parts):
        if kind_of(f"{relative}/") is FOLDER:
            found[f"{relative}/"] = Stamp.of(status)
        found |= _walk(paths, [relative], unreadable)
    return found


def _walk(paths: ProjectPaths, tops: Iterable[str], unreadable: dict[str, Problem] | None) -> dict[str, Stamp]:
    walk = FolderWalk(paths)
    walk.run(tops)
    if unreadable is not None:
        unreadable.update(walk.unreadable)
    return walk.changed


def _folder_status(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status if stat.S_ISDIR(status.st_mode) else None


def _file_stamp(paths: ProjectPaths, relative: str) -> Stamp | None:
    """Return the stamp of a regular file, or of the target of a link inside `.aiwg`."""
    path = paths.project / relative
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not path.resolve().is_relative_to(paths.aiwg.resolve()):
                return None
            status = path.stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return Stamp.of(status) if stat.S_ISREG(status.st_mode) else None


class FolderWalk:
    """Walks through folders and compares their files with those that are known.

    `files` are known stamps by path, `folders` known listings. `progress` is called for each folder that is listed with
    the number of files found before it. After `run`, `changed` has the files with another stamp or none, `left` the
    known ones that were not found, `unreadable` the problem of each folder that cannot be listed, `listed` the folders
    that were listed and have not changed a moment ago, and `seen` these and those with a known listing.
    """

    def __init__(
        self,
        paths: ProjectPaths,
        files: Mapping[str, StampRow] = MappingProxyType({}),
        folders: Mapping[str, FolderRow] = MappingProxyType({}),
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._paths = paths
        # Strings instead of `Path`: 60,000 objects would take longer than the stat calls.
        self._project = f"{paths.project}/"
        self._folders = folders
        self._progress = progress
        self._found = 0
        self.changed: dict[str, Stamp] = {}
        self.left = dict(files)
        self.unreadable: dict[str, Problem] = {}
        self.listed: dict[str, FolderRow] = {}
        self.seen: set[str] = set()

    def run(self, tops: Iterable[str]) -> None:
        """Walk through folders and all below; follow links only at the roots."""
        pending = list(tops)
        while pending:
            folder = pending.pop()
            try:
                path = self._project + folder
                status = os.stat(path) if folder in ROOT_FOLDERS else os.lstat(path)  # noqa: PTH116 (`Path` takes long)
                if not stat.S_ISDIR(status.st_mode):
                    continue
                folders, files = self._names_in(folder, status)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.unreadable[folder] = _unreadable_folder(error)
                continue
            if folder[: folder.rfind("/")] in HOME_FOLDERS:
                own = f"{folder}/"
                if own in self.left or kind_of(own):  # matching takes as long as ten stat calls
                    self._compare(own, stamp_row(status))
            if files:
                for name in files.split("/"):
                    self.check(f"{folder}/{name}")
            if folders:
                pending += [f"{folder}/{name}" for name in folders.split("/")]

    def list_one(self, folder: str) -> None:
        """List a folder alone; raises OSError."""
        self.listed[folder] = self._list(folder, stamp_row(os.lstat(self._project + folder)))

    def _names_in(self, folder: str, status: os.stat_result) -> tuple[str, str]:
        """Return names of folders and record files; list a folder only if it changed."""
        known, row = self._folders.get(folder), stamp_row(status)
        if known is not None and known[1:5] == row:
            self.seen.add(folder)
            return known[5:]
        if self._progress is not None:
            self._progress(self._found)
        known = self._list(folder, row)
        # A folder that has just changed may change again within the same tick of the clock.
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
            self.listed[folder] = known
            self.seen.add(folder)
        return known[5:]

    def check(self, file: str) -> None:
        """Compare one file."""
        try:
            status = os.lstat(self._project + file)
        except FileNotFoundError:
            return
        except OSError as error:
            self.unreadable[file.rpartition("/")[0]] = _unreadable_folder(error)
            return
        if stat.S_ISREG(status.st_mode):
            self._compare(file, stamp_row(status))
        elif stat.S_ISLNK(status.st_mode) and (target := _file_stamp(self._paths, file)) is not None:
            self._compare(file, (target.inode, target.size, target.mtime_ns, target.ctime_ns))

    def _compare(self, file: str, row: StampRow) -> None:
        self._found += 1
        if self.left.pop(file, None) != row:
            self.changed[file] = Stamp(*row)

    def _list(self, folder: str, row: StampRow) -> FolderRow:
        folders, files = [], []
        is_deepest, is_named_by_id = folder.count("/") + 2 > _MAX_PARTS, folder in NAMED_BY_ID
        with os.scandir(self._project + folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not is_deepest and (is_named_by_id or entry.name not in IGNORED_FOLDERS):
                        folders.append(entry.name)
                elif kind_of(f"{folder}/{entry.name}") is not None:
                    files.append(entry.name)
        return folder, *row, "/".join(folders), "/".join(files)


def _unreadable_folder(error: OSError) -> Problem:
    reason = error.strerror or type(error).__name__
    return Problem("unreadable", f"is a folder that cannot be read ({reason}); its files are missing here")
