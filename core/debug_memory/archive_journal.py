"""The journal of files moved to and from the archive: `shared/curation/debug-memory.jsonl`.

Each move is recorded before and after it, so that a move interrupted by a kill can be completed in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.config.paths import ProjectPaths
from core.records.times import iso, parse_time
from core.storage.append_log import AppendLog
from core.storage.json_reader import decode_jsonl

JOURNAL: Final = "debug-memory.jsonl"
ARCHIVED: Final = "archived"
RESTORED: Final = "restored"
_NOT_MOVED: Final = "stayed"
_BEFORE: Final = "moving"
_AFTER: Final = "moved"
"""The keys of a line before a move, and of the one after it."""


class FileMove(Struct, frozen=True, kw_only=True):
    """One file that is moved, by project-relative names, with the IDs of its sessions."""

    source: str
    target: str
    sessions: tuple[str, ...]


class ArchiveJournal:
    """The journal of one project.

    Args:
        by: The actor that new lines name.
    """

    def __init__(self, paths: ProjectPaths, *, by: str = "") -> None:
        self._project = paths.project
        self._by = by
        self._log = AppendLog(paths.curation / JOURNAL)
        self.locked = self._log.locked

    def record_planned(self, kind: str, moves: Sequence[FileMove], now: datetime) -> None:
        """Record moves before they are made.

        Args:
            kind: `ARCHIVED` or `RESTORED`.
        """
        self._append(_BEFORE, kind, moves, now)

    def record_done(self, kind: str, done: Sequence[FileMove], failed: Sequence[FileMove], now: datetime) -> None:
        """Record which of the planned moves were made and which were not."""
        self._append(_AFTER, kind, done, now)
        self._append(_AFTER, _NOT_MOVED, failed, now)

    def complete_interrupted(self) -> None:
        """Append the missing second line of moves that a kill interrupted."""
        if interrupted := self._read()[1]:
            self._log.append([msgspec.json.encode(self._outcome(line)) for line in interrupted])

    def restored_at(self) -> dict[str, datetime]:
        """When files were last restored, by their restored name."""
        return {
            str(line.get("to")): at
            for line in self._lines()
            if line.get(_AFTER) == RESTORED and (at := parse_time(line.get("at"))) is not None
        }

    def archived(self) -> dict[str, dict[str, Any]]:
        """The lines of archived files (`at`, `by`, `from`), by their name in the archive."""
        return {str(line.get("to")): line for line in self._lines() if line.get(_AFTER) == ARCHIVED}

    def _lines(self) -> list[dict[str, Any]]:
        """All moves, oldest first; interrupted ones last, with the outcome that the disk shows."""
        done, interrupted = self._read()
        return [*done, *map(self._outcome, interrupted)]

    def _read(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The lines written after moves, and those written before a move that have no line after it."""
        done: list[dict[str, Any]] = []
        open_moves: dict[tuple[str, str], dict[str, Any]] = {}
        for line in decode_jsonl(self._log.read()[0])[0]:
            if isinstance(line.value, dict):
                key = str(line.value.get("from")), str(line.value.get("to"))
                if line.value.get(_BEFORE) in (ARCHIVED, RESTORED):
                    open_moves[key] = line.value
                else:
                    open_moves.pop(key, None)
                    done.append(line.value)
        return done, list(open_moves.values())

    def _outcome(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line after a move, from the line before it and the files on disk."""
        source, target = (self._project / str(line.get(key)) for key in ("from", "to"))
        is_moved = os.path.lexists(target) and not os.path.lexists(source)
        fields = {key: value for key, value in line.items() if key != _BEFORE}
        return {**fields, _AFTER: line[_BEFORE] if is_moved else _NOT_MOVED}

    def _append(self, key: str, kind: str, moves: Sequence[FileMove], now: datetime) -> None:
        fields = {"at": iso(now), "by": self._by, key: kind}
        lines = [{**fields, "from": one.source, "to": one.target, "sessions": one.sessions} for one in moves]
        if lines:
            self._log.append([msgspec.json.encode(line) for line in lines])
