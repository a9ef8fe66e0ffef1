"""Table of record kinds: which files under `.aiwg` are read, and how.

Sweep, parser, schema checks, load order and size limits all use it; see docs/file-formats.md#record-kinds. To add a
kind, add a row and, for a new collection, its reader in `core.sources.parsed_file` and its parts in `core.index.parse`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.files.file_reader import MAX_BYTES, MAX_PATTERN_BYTES


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
