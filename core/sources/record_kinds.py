"""Table of record kinds: which files under `.aiwg` are read, and how.

Sweep, parser, schema checks, load order and size limits all use it; see docs/file-formats.md#record-kinds. To add a
kind, add a row to `record_kinds.yaml` and, for a new collection, its reader in `core.sources.parsed_file` and its
`RecordCollection` in `core.sources.record_collections`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import yaml
from msgspec import Struct

from core.redaction.regex_table import expand_parts
from core.sources import loop_facts
from core.sources.schema import SCHEMAS, Rule
from core.storage.file_reader import MAX_BYTES, MAX_PATTERN_BYTES


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
    schema: Rule | None = None  # Schema of each record; None for pattern files, which have one per pattern type.
    all_documents: bool = False  # Whether all documents of a YAML file are read instead of only the first.

    def matches(self, file: str) -> bool:
        """Whether a project-relative path is a file of this kind."""
        return file.startswith(".aiwg/") and re.fullmatch(self.path, file[6:]) is not None


LISTED: Final = 3  # Highest load order of the files that lists of loops and patterns need.
EPISODIC: Final = "episodic"
REFLEXION: Final = "reflexion"
HOOK: Final = "hook"
MEMORY_MANAGER: Final = "memory-manager"
CROSS_TASK: Final = "cross-task"
STATE: Final = "state"


def _read_kinds() -> Iterator[RecordKind]:
    """Read `record_kinds.yaml`; `{name}` in a path is replaced by a path part."""
    table = yaml.load(Path(__file__).with_suffix(".yaml").read_bytes(), yaml.CSafeLoader)
    parts: dict[str, str] = {}
    for name, part in table["parts"].items():
        parts[name] = expand_parts(part, parts)
    for name, row in table["kinds"].items():
        yield RecordKind(
            name,
            expand_parts(row["path"], parts),
            tuple(row.get("collections", "").split()),
            Format(row.get("format", Format.DOCUMENT)),
            MAX_PATTERN_BYTES if row.get("is_large") else MAX_BYTES,
            row.get("load_order", LISTED),
            row.get("shape", ""),
            SCHEMAS[row["schema"]] if "schema" in row else None,
            row.get("all_documents", False),
        )


KINDS: Final = {kind.name: kind for kind in _read_kinds()}
"""All kinds by name; if several paths match a file, the first is used."""
PATTERNS: Final = KINDS["patterns"]
PATTERN_COPIES: Final = KINDS["pattern-copies"]
METRICS: Final = KINDS["metrics"]
LEDGER: Final = KINDS["ledger"]
EVENTS: Final = KINDS["events"]
ESCALATION: Final = KINDS["escalation"]
ACTIONS: Final = KINDS["actions"]
EPISODIC_REFLECTIONS: Final = KINDS["episodic-reflections"]
DEBUG_SESSIONS: Final = KINDS["debug-sessions"]
FOLDER: Final = KINDS[loop_facts.DIRECTORY]

_ORDERED: Final = tuple(KINDS.values())
_PATH: Final = re.compile(rf"\.aiwg/(?:{'|'.join(f'({kind.path})' for kind in _ORDERED)})")
NAMED_BY_ID: Final = frozenset({*loop_facts.HOME_FOLDERS, ".aiwg/ralph/tasks"})
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
_NUMBERS: Final = {kind.name: number for number, kind in enumerate(_ORDERED)}


def kind_of(file: str) -> RecordKind | None:
    """Return the kind of a project-relative file; None if it is not read."""
    try:
        return _by_file[file]
    except KeyError:  # not `in`: another thread may forget it
        if len(_by_file) >= _MAX_KNOWN:
            _by_file.clear()
        kind = _by_file[file] = _find_kind(file)
        return kind


def encode_kinds(files: Iterable[str]) -> bytes:
    """Return a byte for the kind of each file; ValueError if one has none."""
    return bytes(_NUMBERS[kind.name] if (kind := kind_of(file)) is not None else -1 for file in files)


def remember_kinds(files: Collection[str], encoded: bytes) -> None:
    """Remember what `encode_kinds` found in another process; raises ValueError if it cannot be about these files."""
    if len(files) != len(encoded) or max(encoded, default=0) >= len(_ORDERED):
        raise ValueError("the kinds are not those of these files")
    _by_file.update(zip(files, map(_ORDERED.__getitem__, encoded), strict=True))


def forget_kinds() -> None:
    """Free what is known about files."""
    _by_file.clear()


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
