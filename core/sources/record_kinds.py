"""The table of record kinds: every file under `.aiwg` that is read, and how.

Sweep, parser, schema checks, load order and size limits all use `KINDS`; see docs/file-formats.md#record-kinds. To add
a kind, add a row here and, for a new collection, its reader in `core.sources.parsed_file` and its `RecordCollection` in
`core.sources.record_collections`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from core.sources import loop_facts
from core.sources.schema import SCHEMAS, Rule
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

    `path` is the regular expression of its path below `.aiwg/`; a folder ends in `/`. `name` is unique; of a loop file
    it is also its name in `Loop.sources`. `collections` are the fields of `Snapshot` that its records belong to.
    `limit` is in bytes. Files of `load_order` 0 are read first; those up to `LISTED` decide what the lists show.
    """

    name: str
    path: str
    collections: tuple[str, ...] = ()
    format: Format = Format.DOCUMENT
    limit: int = MAX_BYTES
    load_order: int = 3
    shape: str = ""
    """The reflection format in it, "" if it contains none; see `Reflection.shape`."""
    schema: Rule | None = None
    """Schema of each record; pattern files have one per pattern type instead."""
    all_documents: bool = False
    """Whether all documents of a YAML file are read, not only the first."""

    def matches(self, file: str) -> bool:
        """Whether a project-relative path has this form."""
        return file.startswith(".aiwg/") and re.fullmatch(self.path, file[6:]) is not None


LISTED: Final = 3
"""Highest load order of files with loops and patterns."""
_LAST: Final = 4
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
_TASK: Final = "ralph/tasks/[^/]+"
_ATTEMPT: Final = rf"{_TASK}/attempts/[0-9]{{1,9}}"


def _kind(name: str, path: str, collections: str = "", load_order: int = 3, **options: Any) -> RecordKind:
    return RecordKind(name, path, tuple(collections.split()), load_order=load_order, **options)


PATTERNS: Final = _kind(
    "patterns",
    rf"ralph/shared/patterns/(?!effectiveness-metrics\.){_DATA}",
    "patterns",
    2,
    format=Format.PATTERNS,
    limit=MAX_PATTERN_BYTES,
)
PATTERN_COPIES: Final = _kind(
    "pattern-copies",
    rf"ralph/(?:memory|reflections|debug-memory)/patterns/{_DATA}|ralph/memory/patterns-index\.(?:json|ya?ml)",
    "patterns",
    2,
    format=Format.PATTERNS,
    limit=MAX_PATTERN_BYTES,
)
METRICS: Final = _kind(
    "metrics", r"ralph/(?:shared/(?:patterns/)?)?effectiveness-metrics\.json", schema=SCHEMAS["metrics_file"]
)
_CURATION: Final = "ralph/shared/curation"
LEDGER: Final = _kind(
    "ledger", rf"{_CURATION}/ledger\.jsonl", "decisions", 0, format=Format.DECISION_LOG, limit=MAX_PATTERN_BYTES
)
EVENTS: Final = _kind(
    "events", rf"{_CURATION}/events\.jsonl", "events", format=Format.EVENT_LOG, limit=MAX_PATTERN_BYTES
)
ESCALATION: Final = _kind("escalation", rf"{_CURATION}/escalations/[^/]+\.json", "escalations", limit=MAX_PATTERN_BYTES)
ACTIONS: Final = _kind(
    "actions", rf"{_ATTEMPT}/actions\.jsonl", "attempts", _LAST, format=Format.ACTION_LOG, limit=MAX_PATTERN_BYTES
)
EPISODIC_REFLECTIONS: Final = _kind(
    "episodic-reflections",
    rf"{_TASK}/reflections\.jsonl",
    "reflections",
    _LAST,
    shape=EPISODIC,
    schema=SCHEMAS["reflection"],
)
DEBUG_SESSIONS: Final = _kind(
    "debug-sessions",
    rf"{_TREE}/(?:(?!debug-memory/)[^/]+/)*debug-memory/(?!(?:patterns|archive)/)(?:[^/]+/)*{_DATA}",
    "debug_sessions",
    schema=SCHEMAS["debug_session"],
    all_documents=True,
)
FOLDER: Final = _kind(loop_facts.DIRECTORY, rf"{_HOME}/", "loops", format=Format.FOLDER)

_STATES: Final = {
    loop_facts.LOOPS: r"ralph/loops/[^/]+/state\.json",
    loop_facts.ARCHIVE: r"ralph/archive/[^/]+/state\.json",
    loop_facts.CURRENT: r"ralph/(?:current-loop|loop-state)\.json",
    loop_facts.EXTERNAL: r"ralph-external/loops/[^/]+/session-state\.json",
    loop_facts.EXTERNAL_ARCHIVE: r"ralph-external/archive/[^/]+/session-state\.json",
    loop_facts.EXTERNAL_STATE: r"ralph-external/session-state\.json",
}
_REGISTRIES: Final = {
    loop_facts.REGISTRY: r"ralph/registry\.json",
    loop_facts.EXTERNAL_REGISTRY: r"ralph-external/registry\.json",
    loop_facts.LAUNCHER: r"ralph-external/launcher-registry\.json",
}
_MEASUREMENTS: Final = {
    loop_facts.ANALYTICS: rf"(?:{_TREE}|{_HOME})/analytics/[^/]+\.json",
    loop_facts.BEST_OUTPUT: rf"(?:ralph/[^/]+|{_HOME})/best-output-tracking\.json",
}

KINDS: Final = (
    *(PATTERNS, METRICS, LEDGER, EVENTS, ESCALATION, PATTERN_COPIES),
    *(_kind(name, path, "loops reflections", 1, shape=STATE) for name, path in _STATES.items()),
    *(_kind(name, path, "loops", 0) for name, path in _REGISTRIES.items()),
    _kind(loop_facts.HEARTBEAT, r"ralph/heartbeats/[^/]+\.json", "loops"),
    _kind(loop_facts.CRASH_LOG, rf"{_HOME}/crash\.log", "loops", format=Format.CRASH_LOG),
    *(_kind(name, path, "loops reflections", shape=name) for name, path in _MEASUREMENTS.items()),
    _kind("task", rf"{_TASK}/metadata\.json", "tasks", _LAST, schema=SCHEMAS["task"]),
    _kind("trajectory", rf"{_TASK}/trajectory\.json", "tasks attempts", _LAST, schema=SCHEMAS["trajectory"]),
    _kind("attempt", rf"{_ATTEMPT}/attempt\.json", "tasks attempts", _LAST, schema=SCHEMAS["attempt"]),
    _kind("outcome", rf"{_ATTEMPT}/outcome\.json", "tasks attempts", _LAST, schema=SCHEMAS["outcome"]),
    *(ACTIONS, EPISODIC_REFLECTIONS),
    _kind("memory-index", r"ralph/memory/task-index\.json", "memory_tasks", _LAST),
    _kind("memory-task", r"ralph/memory/tasks/[^/]+\.json", "memory_tasks reflections", _LAST, shape=CROSS_TASK),
    _kind(
        "debug-reflections",
        rf"{_TREE}/(?:[^/]+/debug-memory|debug-memory(?:/(?!(?:patterns|archive)/)[^/]+)?)/reflections/[^/]+\.json"
        rf"|ralph/reflections/(?:loops/)?debug-memory/{_DOCUMENT}"
        r"|ralph/memory/reflections/(?:[^/]+/)*debug-memory/(?!(?:patterns|archive)/)(?:[^/]+/)*"
        rf"(?:{_DOCUMENT}|[^/]+\.jsonl)",
        "reflections debug_sessions",
        _LAST,
        shape=HOOK,
        schema=SCHEMAS["debug_session"],
        all_documents=True,
    ),
    _kind(
        "memory-reflections",
        rf"ralph/memory/reflections/(?:[^/]+/)*(?:{_DOCUMENT}|[^/]+\.jsonl)",
        "reflections",
        _LAST,
        shape=HOOK,
        all_documents=True,
    ),
    _kind(
        "reflections",
        rf"ralph/reflections/(?:loops/)?[^/]+/{_DOCUMENT}|ralph-external/reflections/[^/]+\.json"
        rf"|{_TREE}(?:/(?:loops|archive))?/(?!debug-memory/)[^/]+/reflections/[^/]+\.json",
        "reflections",
        _LAST,
        shape=HOOK,
    ),
    DEBUG_SESSIONS,
    _kind(  # files of no collection, which are only checked for being readable
        "unused",
        rf"{_HOME}/(?:session-)?state\.json|{_TASK}/attempts/[^/]+/(?:attempt|outcome)\.json"
        rf"|ralph/(?:memory/reflections/(?:[^/]+/)*|reflections/(?:loops/)?[^/]+/){_DATA}",
        load_order=_LAST,
    ),
    FOLDER,
)
"""All kinds; the first whose path matches counts."""

_PATH: Final = re.compile(rf"\.aiwg/(?:{'|'.join(f'({kind.path})' for kind in KINDS)})")
NAMED_BY_ID: Final = frozenset({*loop_facts.HOME_FOLDERS, ".aiwg/ralph/tasks"})
"""Folders whose subfolders are named by IDs."""
IGNORED_FOLDERS: Final = frozenset(
    {
        *("node_modules", "iterations", "outputs", "prompts", "checkpoints"),
        *("embeddings", "results", "analysis", "overseer", ".git"),
    }
)
"""Folders without records; entering them would take most of the time of a sweep. An ID may be such a word."""


def kind_of(file: str) -> RecordKind | None:
    """The kind of a project-relative file; None if it is not read."""
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
