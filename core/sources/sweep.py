"""Which files under `.aiwg` are read for the lists, and one sweep that finds them with their stamps."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from core.config.paths import ProjectPaths
from core.storage.decoded import Problem
from core.storage.file_reader import Stamp


class Kind(StrEnum):
    """What a file is read as."""

    PATTERNS = "patterns"
    """The registry, `shared/patterns` (C1)."""
    MIRROR = "mirror"
    """Patterns elsewhere: copies, or of another shape (C4)."""
    HISTORY = "history"
    """What loops did: states, registries, heartbeats, crash logs, analytics, reflections, memory, debug sessions."""
    ACTIONS = "actions"
    """What was done in one attempt at a task; for the lists only counted."""
    DIRECTORY = "directory"
    """The folder of a loop, which makes it a row even if nothing in it can be read; ends in `/`."""
    EVENTS = "events"
    LEDGER = "ledger"
    METRICS = "metrics"
    """The metrics of pattern sharing; only checked, since they are computed anew."""
    ESCALATION = "escalation"
    """The kept context of a debug session that was given up."""


_DATA: Final = r"[^/]+\.(?:json|ya?ml|jsonl)"
_RULES: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.PATTERNS: (rf"ralph/shared/patterns/(?!effectiveness-metrics\.){_DATA}",),
    Kind.METRICS: (r"ralph/(?:shared/(?:patterns/)?)?effectiveness-metrics\.json",),
    Kind.LEDGER: (r"ralph/shared/curation/ledger\.jsonl",),
    Kind.EVENTS: (r"ralph/shared/curation/events\.jsonl",),
    Kind.ESCALATION: (r"ralph/shared/curation/escalations/[^/]+\.json",),
    Kind.MIRROR: (
        rf"ralph/(?:memory|reflections|debug-memory)/patterns/{_DATA}",
        r"ralph/memory/patterns-index\.(?:json|ya?ml)",
    ),
    Kind.HISTORY: (
        r"ralph/memory/(?:task-index|tasks/[^/]+)\.json",
        r"ralph/tasks/[^/]+/(?:reflections\.jsonl|trajectory\.json|metadata\.json)",
        r"ralph/tasks/[^/]+/attempts/[^/]+/(?:attempt|outcome)\.json",
        rf"ralph/memory/reflections/(?:[^/]+/)*{_DATA}",
        rf"ralph/reflections/(?:loops/)?[^/]+/{_DATA}",
        r"(?:ralph|ralph-external)(?:/(?:loops|archive))?/[^/]+/reflections/[^/]+\.json",
        r"ralph-external/reflections/[^/]+\.json",
        r"ralph/(?:registry|current-loop|loop-state)\.json",
        r"ralph-external/(?:registry|launcher-registry|session-state)\.json",
        r"ralph/heartbeats/[^/]+\.json",
        r"(?:ralph|ralph-external)(?:/(?:loops|archive)/[^/]+)?/analytics/[^/]+\.json",
        r"ralph/[^/]+/best-output-tracking\.json",
        r"(?:ralph|ralph-external)/(?:loops|archive)/[^/]+"
        r"/(?:(?:state|session-state|best-output-tracking)\.json|crash\.log)",
        r"(?:ralph|ralph-external)/(?:(?!debug-memory/)[^/]+/)*debug-memory/(?!(?:patterns|archive)/)"
        rf"(?:[^/]+/)*{_DATA}",
    ),
    Kind.ACTIONS: (r"ralph/tasks/[^/]+/attempts/[^/]+/actions\.jsonl",),
    Kind.DIRECTORY: (r"(?:ralph|ralph-external)/(?:loops|archive)/[^/]+/",),
}
"""What is wanted below `.aiwg/`; the first kind that fits counts."""
_GROUPS: Final = (f"(?P<{kind}>{'|'.join(rules)})" for kind, rules in _RULES.items())
_RULE: Final = re.compile(rf"\.aiwg/(?:{'|'.join(_GROUPS)})")
_KINDS: Final[dict[str | None, Kind]] = {kind.value: kind for kind in Kind}
_FILE_ENDINGS: Final = (".json", ".jsonl", ".yaml", ".yml", ".log", ".md", ".tmp", ".lock", ".bak")
_IGNORED_FOLDERS: Final = frozenset(
    {
        ".git",
        "node_modules",
        "iterations",
        "outputs",
        "prompts",
        "checkpoints",
        "embeddings",
        "results",
        "analysis",
        "overseer",
    }
)
"""Folders that hold no file that any rule wants; entering them costs most of a sweep. An id may be such a word."""
_ROOTS: Final = ("ralph", "ralph-external")
_HOMES: Final = frozenset(f".aiwg/{root}/{home}" for root in _ROOTS for home in ("loops", "archive"))
_NAMED_BY_ID: Final = _HOMES | {".aiwg/ralph/tasks"}
"""Folders whose folders are named by ids."""
_MAX_PARTS: Final = 7
"""Deepest wanted file: `.aiwg/ralph/loops/<id>/reflections/<n>.json` has 6 parts, nested copies more."""


def wanted(relative: str) -> Kind | None:
    """What a project-relative file (`.aiwg/ralph/…`, `/` as separator) is read as; None = not at all."""
    rule = _RULE.fullmatch(relative)
    if rule is None or not is_text(relative):
        return None
    parts = relative.split("/")
    if _is_ignored(parts) or parts[-1].startswith("."):
        return None
    return _KINDS[rule.lastgroup]


def can_hold(relative: str) -> bool:
    """Whether a project-relative path can be a folder that holds wanted files."""
    root, *folders = relative.split("/")
    return (
        root == ".aiwg"
        and len(folders) < _MAX_PARTS - 1
        and (not folders or folders[0] in _ROOTS)
        and not _is_ignored((root, *folders))
        and (not relative.endswith(_FILE_ENDINGS) or relative.rpartition("/")[0] in _NAMED_BY_ID)
    )


def _is_ignored(parts: Sequence[str]) -> bool:
    """Whether a path leads into an ignored folder."""
    if _IGNORED_FOLDERS.isdisjoint(parts):
        return False
    ids = (3,) if "/".join(parts[:3]) in _NAMED_BY_ID else ()
    return any(part in _IGNORED_FOLDERS and at not in ids for at, part in enumerate(parts))


def is_text(name: str) -> bool:
    """Whether a file name is valid UTF-8, so that records can carry it."""
    try:
        return name.isascii() or bool(name.encode())
    except UnicodeEncodeError:
        return False


def scan(paths: ProjectPaths, closed: dict[str, Problem] | None = None) -> dict[str, Stamp]:
    """Every wanted file with its stamp, by project-relative name; empty where there is no `.aiwg`.

    Links to folders are not followed, links to files only inside `.aiwg`; what vanishes is left out.

    Args:
        paths: The project.
        closed: Gets what is wrong with each folder that cannot be looked into.
    """
    found: dict[str, Stamp] = {}
    for root in _ROOTS:
        _scan_folder(paths, f".aiwg/{root}", found, {} if closed is None else closed)
    return found


def scan_path(paths: ProjectPaths, relative: str, closed: dict[str, Problem] | None = None) -> dict[str, Stamp]:
    """Like `scan`, for one file or folder where something happened, and for the loop's folder it lies in."""
    found: dict[str, Stamp] = {}
    parts = relative.rstrip("/").split("/")
    if parts[0] != ".aiwg" or not {"", ".", ".."}.isdisjoint(parts):
        return found
    if len(parts) == 1:
        return scan(paths, closed)
    if parts[1] not in _ROOTS:
        return found
    # A folder on the way may be a link that leads out: those are not entered, here as in a sweep.
    for depth in range(2, len(parts)):
        folder = "/".join(parts[:depth])
        status = _folder(paths.project / folder)
        if status is None or _is_ignored(parts[:depth]):
            return found
        if wanted(f"{folder}/") is Kind.DIRECTORY:
            found[f"{folder}/"] = Stamp.of(status)
    relative = "/".join(parts)
    status = _folder(paths.project / relative)
    if status is None:
        if wanted(relative) is not None and (stamp := _stamp(paths, relative)) is not None:
            found[relative] = stamp
    elif not _is_ignored(parts):
        if wanted(f"{relative}/") is Kind.DIRECTORY:
            found[f"{relative}/"] = Stamp.of(status)
        _scan_folder(paths, relative, found, {} if closed is None else closed)
    return found


def _folder(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status if stat.S_ISDIR(status.st_mode) else None


def _stamp(paths: ProjectPaths, relative: str) -> Stamp | None:
    """The stamp of a regular file, or of the file inside `.aiwg` that a link names."""
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


def _scan_folder(paths: ProjectPaths, top: str, found: dict[str, Stamp], closed: dict[str, Problem]) -> None:
    # Plain strings: 60,000 `Path` objects would cost more than the stats.
    project = f"{paths.project}/"
    pending = [top]
    while pending:
        folder = pending.pop()
        deep = folder.count("/") + 2 > _MAX_PARTS
        home, named_by_id = folder in _HOMES, folder in _NAMED_BY_ID
        try:
            with os.scandir(project + folder) as scanned:
                entries = list(scanned)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            closed[folder] = _closed(error)
            continue
        for entry in entries:
            relative = f"{folder}/{entry.name}"
            try:
                if entry.is_dir(follow_symlinks=False):
                    if deep or (entry.name in _IGNORED_FOLDERS and not named_by_id):
                        continue
                    pending.append(relative)
                    if home and wanted(f"{relative}/"):
                        found[f"{relative}/"] = Stamp.of(entry.stat(follow_symlinks=False))
                elif wanted(relative) is None:
                    continue
                elif entry.is_symlink():
                    if (stamp := _stamp(paths, relative)) is not None:
                        found[relative] = stamp
                elif entry.is_file(follow_symlinks=False):
                    found[relative] = Stamp.of(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except OSError as error:
                closed[folder] = _closed(error)


def _closed(error: OSError) -> Problem:
    reason = error.strerror or type(error).__name__
    return Problem("unreadable", f"is a folder that cannot be read: {reason}; what lies in it is not known")
