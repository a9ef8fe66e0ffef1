"""The logs of a project, which only grow: decisions, events, and what a team's server sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.sources.parsed_file import EarlierParse, ParsedFile, parse_file
from core.sources.record_kinds import Format, kind_of
from core.storage.file_reader import RawFile, Stamp, read_file

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.ledger.decision_log import DecisionLog
    from core.storage.decoded import Problem


class Logs:
    """Reads the logs, of those that grew only the new lines; what was read stays in memory."""

    def __init__(self, paths: ProjectPaths, decisions: DecisionLog) -> None:
        self._paths = paths
        self._earlier: dict[str, EarlierParse] = {}
        self._read: dict[str, tuple[Stamp, ParsedFile]] = {}
        self._decisions = decisions

    def earlier(self, path: str) -> EarlierParse:
        """Return the last parse of a file that grows."""
        known = self._earlier.get(path)
        if known is None:
            known = self._earlier[path] = EarlierParse()
            if (kind := kind_of(path)) is not None and kind.format is Format.DECISION_LOG:
                known.decisions = self._decisions
        return known

    def read(self, path: str, stamp: Stamp | None = None) -> tuple[Stamp, ParsedFile] | Problem | None:
        """Return the content of a log and its stamp; nothing is read if that is `stamp`. None without a file."""
        known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known
        kind, earlier = kind_of(path), self.earlier(path)
        if kind is None:
            return None
        file, lines = self._paths.project / path, earlier.lines
        raw = None
        if known is not None and lines is not None and (stamp is None or known[0].inode == stamp.inode):
            raw = read_file(file, self._paths.aiwg, kind.limit, lines.resume_at)
            if not isinstance(raw, RawFile) or not lines.is_continued_by(raw.data):
                raw = None
        if raw is None:
            raw = read_file(file, self._paths.aiwg, kind.limit)
        if not isinstance(raw, RawFile):
            self.forget(path)
            return raw
        parsed = parse_file(path, kind, raw, earlier)
        if not isinstance(parsed, ParsedFile):
            return parsed
        self._read[path] = raw.stamp, parsed
        return raw.stamp, parsed

    def known(self, path: str) -> ParsedFile | None:
        """Return what was read last; None if nothing was."""
        known = self._read.get(path)
        return known[1] if known is not None else None

    def forget(self, path: str) -> None:
        self._read.pop(path, None)
        self._earlier.pop(path, None)
