"""The table of record kinds: every file under `.aiwg` that is read, and how.

A kind is declared once, in `KINDS`. Sweep, parser, schema checks, load order and size limits all use this table; see
docs/file-formats.md#record-kinds. To add a kind, add a row here and, for a new collection, its reader in
`core.sources.parsed_file` and its `RecordCollection` in `core.project.index`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from core.sources import loop_paths, schema
from core.sources.schema_rules import Rule
from core.storage.file_reader import MAX_BYTES, MAX_PATTERN_BYTES


class Format(StrEnum):
    """How the bytes of a file are parsed."""

    DOCUMENT = "document"
    """One JSON, JSONL or YAML document."""
    PATTERNS = "patterns"
    ACTION_LOG = "action-log"
    """JSONL of which only the lines are counted."""
    EVENT_LOG = "event-log"
    DECISION_LOG = "decision-log"
    CRASH_LOG = "crash-log"
    FOLDER = "folder"
    """A folder whose name is the record."""


class RecordKind(Struct, frozen=True, eq=False):
    """One kind of file under `.aiwg`.

    Attributes:
        name: Unique; of a loop file also its name in `Loop.sources`.
        path: Regular expression of the path below `.aiwg/`; a folder ends in `/`.
        collections: Fields of `Snapshot` that its records belong to.
        format: See `Format`.
        limit: Maximum size in bytes.
        load_order: 0 is read first; files up to `LISTED` decide what the lists show.
        shape: Name of the reflection format in it, "" if it contains none; see `Reflection.shape`.
        schema: Schema of each record; pattern files have one per pattern type instead.
        all_documents: Whether all documents of a YAML file are read, not only the first.
    """

    name: str
    path: str
    collections: tuple[str, ...] = ()
    format: Format = Format.DOCUMENT
    limit: int = MAX_BYTES
    load_order: int = 3
    shape: str = ""
    schema: Rule | None = None
    all_documents: bool = False

    def matches(self, file: str) -> bool:
        """Whether a project-relative path has this form."""
        return file.startswith(".aiwg/") and re.fullmatch(self.path, file[6:]) is not None


LISTED: Final = 3
"""Highest load order of files with loops and patterns."""
EPISODIC: Final = "episodic"
REFLEXION: Final = "reflexion"
HOOK: Final = "hook"
MEMORY_MANAGER: Final = "memory-manager"
CROSS_TASK: Final = "cross-task"
STATE: Final = "state"

_DATA: Final = r"[^/]+\.(?:json|ya?ml|jsonl)"
_DOCUMENT: Final = r"(?!index\.)[^/]+\.(?:json|ya?ml)"
_TREE: Final = "(?:ralph|ralph-external)"
_HOME: Final = f"{_TREE}/(?:loops|archive)/[^/]+"
_LOOPS: Final = ("loops",)
_LOOPS_AND_REFLECTIONS: Final = ("loops", "reflections")
_ATTEMPTS: Final = ("tasks", "attempts")
_REFLECTIONS: Final = ("reflections",)


def _state(name: str, path: str) -> RecordKind:
    return RecordKind(name, path, _LOOPS_AND_REFLECTIONS, load_order=1, shape=STATE)


def _measured(name: str, path: str) -> RecordKind:
    return RecordKind(name, path, _LOOPS_AND_REFLECTIONS, shape=name)


PATTERNS: Final = RecordKind(
    "patterns",
    rf"ralph/shared/patterns/(?!effectiveness-metrics\.){_DATA}",
    ("patterns",),
    Format.PATTERNS,
    MAX_PATTERN_BYTES,
    load_order=2,
)
PATTERN_COPIES: Final = RecordKind(
    "pattern-copies",
    rf"ralph/(?:memory|reflections|debug-memory)/patterns/{_DATA}|ralph/memory/patterns-index\.(?:json|ya?ml)",
    ("patterns",),
    Format.PATTERNS,
    MAX_PATTERN_BYTES,
    load_order=2,
)
METRICS: Final = RecordKind(
    "metrics", r"ralph/(?:shared/(?:patterns/)?)?effectiveness-metrics\.json", schema=schema.METRICS_FILE
)
LEDGER: Final = RecordKind(
    "ledger",
    r"ralph/shared/curation/ledger\.jsonl",
    ("decisions",),
    Format.DECISION_LOG,
    MAX_PATTERN_BYTES,
    load_order=0,
)
EVENTS: Final = RecordKind(
    "events", r"ralph/shared/curation/events\.jsonl", ("events",), Format.EVENT_LOG, MAX_PATTERN_BYTES
)
ESCALATION: Final = RecordKind(
    "escalation", r"ralph/shared/curation/escalations/[^/]+\.json", ("escalations",), limit=MAX_PATTERN_BYTES
)
ACTIONS: Final = RecordKind(
    "actions",
    r"ralph/tasks/[^/]+/attempts/[0-9]{1,9}/actions\.jsonl",
    ("attempts",),
    Format.ACTION_LOG,
    MAX_PATTERN_BYTES,
    load_order=4,
)
EPISODIC_REFLECTIONS: Final = RecordKind(
    "episodic-reflections",
    r"ralph/tasks/[^/]+/reflections\.jsonl",
    _REFLECTIONS,
    load_order=4,
    shape=EPISODIC,
    schema=schema.REFLECTION,
)
_MEMORY_REFLECTIONS: Final = RecordKind(
    "memory-reflections",
    rf"ralph/memory/reflections/(?:[^/]+/)*(?:{_DOCUMENT}|[^/]+\.jsonl)",
    _REFLECTIONS,
    load_order=4,
    shape=HOOK,
    all_documents=True,
)
DEBUG_SESSIONS: Final = RecordKind(
    "debug-sessions",
    rf"{_TREE}/(?:(?!debug-memory/)[^/]+/)*debug-memory/(?!(?:patterns|archive)/)(?:[^/]+/)*{_DATA}",
    ("debug_sessions",),
    schema=schema.DEBUG_SESSION,
    all_documents=True,
)
_DEBUG_REFLECTIONS: Final = RecordKind(
    "debug-reflections",
    rf"{_TREE}/(?:[^/]+/debug-memory|debug-memory(?:/(?!(?:patterns|archive)/)[^/]+)?)/reflections/[^/]+\.json"
    rf"|ralph/reflections/(?:loops/)?debug-memory/{_DOCUMENT}"
    r"|ralph/memory/reflections/(?:[^/]+/)*debug-memory/(?!(?:patterns|archive)/)(?:[^/]+/)*"
    rf"(?:{_DOCUMENT}|[^/]+\.jsonl)",
    ("reflections", "debug_sessions"),
    load_order=4,
    shape=HOOK,
    schema=schema.DEBUG_SESSION,
    all_documents=True,
)
_UNUSED: Final = RecordKind(
    "unused",
    rf"{_HOME}/(?:session-)?state\.json|ralph/tasks/[^/]+/attempts/[^/]+/(?:attempt|outcome)\.json"
    rf"|ralph/(?:memory/reflections/(?:[^/]+/)*|reflections/(?:loops/)?[^/]+/){_DATA}",
    load_order=4,
)
"""Files of no collection, which are only checked for being readable."""
FOLDER: Final = RecordKind(loop_paths.DIRECTORY, rf"{_HOME}/", _LOOPS, Format.FOLDER)

KINDS: Final = (
    PATTERNS,
    METRICS,
    LEDGER,
    EVENTS,
    ESCALATION,
    PATTERN_COPIES,
    _state(loop_paths.LOOPS, r"ralph/loops/[^/]+/state\.json"),
    _state(loop_paths.ARCHIVE, r"ralph/archive/[^/]+/state\.json"),
    _state(loop_paths.CURRENT, r"ralph/(?:current-loop|loop-state)\.json"),
    _state(loop_paths.EXTERNAL, r"ralph-external/loops/[^/]+/session-state\.json"),
    _state(loop_paths.EXTERNAL_ARCHIVE, r"ralph-external/archive/[^/]+/session-state\.json"),
    _state(loop_paths.EXTERNAL_STATE, r"ralph-external/session-state\.json"),
    RecordKind(loop_paths.REGISTRY, r"ralph/registry\.json", _LOOPS, load_order=0),
    RecordKind(loop_paths.EXTERNAL_REGISTRY, r"ralph-external/registry\.json", _LOOPS, load_order=0),
    RecordKind(loop_paths.LAUNCHER, r"ralph-external/launcher-registry\.json", _LOOPS, load_order=0),
    RecordKind(loop_paths.HEARTBEAT, r"ralph/heartbeats/[^/]+\.json", _LOOPS),
    RecordKind(loop_paths.CRASH_LOG, rf"{_HOME}/crash\.log", _LOOPS, Format.CRASH_LOG),
    _measured(loop_paths.ANALYTICS, rf"(?:{_TREE}|{_HOME})/analytics/[^/]+\.json"),
    _measured(loop_paths.BEST_OUTPUT, rf"(?:ralph/[^/]+|{_HOME})/best-output-tracking\.json"),
    RecordKind("task", r"ralph/tasks/[^/]+/metadata\.json", ("tasks",), load_order=4, schema=schema.TASK),
    RecordKind("trajectory", r"ralph/tasks/[^/]+/trajectory\.json", _ATTEMPTS, load_order=4, schema=schema.TRAJECTORY),
    RecordKind(
        "attempt",
        r"ralph/tasks/[^/]+/attempts/[0-9]{1,9}/attempt\.json",
        _ATTEMPTS,
        load_order=4,
        schema=schema.ATTEMPT,
    ),
    RecordKind(
        "outcome",
        r"ralph/tasks/[^/]+/attempts/[0-9]{1,9}/outcome\.json",
        _ATTEMPTS,
        load_order=4,
        schema=schema.OUTCOME,
    ),
    ACTIONS,
    EPISODIC_REFLECTIONS,
    RecordKind("memory-index", r"ralph/memory/task-index\.json", ("memory_tasks",), load_order=4),
    RecordKind(
        "memory-task",
        r"ralph/memory/tasks/[^/]+\.json",
        ("memory_tasks", "reflections"),
        load_order=4,
        shape=CROSS_TASK,
    ),
    _DEBUG_REFLECTIONS,
    _MEMORY_REFLECTIONS,
    RecordKind(
        "reflections",
        rf"ralph/reflections/(?:loops/)?[^/]+/{_DOCUMENT}|ralph-external/reflections/[^/]+\.json"
        rf"|{_TREE}(?:/(?:loops|archive))?/(?!debug-memory/)[^/]+/reflections/[^/]+\.json",
        _REFLECTIONS,
        load_order=4,
        shape=HOOK,
    ),
    DEBUG_SESSIONS,
    _UNUSED,
    FOLDER,
)
"""All kinds; the first whose path matches counts."""

_PATH: Final = re.compile(rf"\.aiwg/(?:{'|'.join(f'({kind.path})' for kind in KINDS)})")
NAMED_BY_ID: Final = frozenset({*loop_paths.HOME_FOLDERS, ".aiwg/ralph/tasks"})
"""Folders whose subfolders are named by IDs."""
IGNORED_FOLDERS: Final = frozenset(
    {
        *("node_modules", "iterations", "outputs", "prompts", "checkpoints"),
        *("embeddings", "results", "analysis", "overseer", ".git"),
    }
)
"""Folders without records; entering them would take most of the time of a sweep. An ID may be such a word."""


def kind_of(file: str) -> RecordKind | None:
    """The kind of a project-relative file (`.aiwg/ralph/…`, `/` as separator); None if it is not read."""
    match = _PATH.fullmatch(file)
    if match is None or match.lastindex is None or not is_text(file):
        return None
    parts = file.split("/")
    if parts[-1].startswith(".") or is_ignored(parts):
        return None
    return KINDS[match.lastindex - 1]


def can_contain_sessions(file: str) -> bool:
    """Whether a project-relative file is of a kind that contains debug sessions."""
    kind = kind_of(file)
    return kind is not None and "debug_sessions" in kind.collections


def loop_source(file: str) -> str:
    """The kind of a loop file, such as `loops` or `analytics`; "" for any other file."""
    kind = kind_of(file)
    return kind.name if kind is not None and "loops" in kind.collections else ""


def is_ignored(parts: Sequence[str]) -> bool:
    """Whether a path, split at `/`, leads into an ignored folder."""
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
