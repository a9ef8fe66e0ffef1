"""The logs of a project that are kept in memory: decisions, and what a team's server sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from core.files.file_reader import RawFile, Stamp, read_file
from core.files.hash_chain import Place
from core.records.decisions import Decision
from core.records.findings import Finding
from core.records.proposed_decisions import ProposedDecision
from core.records.team import TeamEvidence
from core.sources.record_kinds import Format, kind_of
from core.sources.team_evidence import TeamEvidenceLog

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.files.decoded import Problem
    from core.sources.ledger import DecisionLog


class LogContent(Struct, frozen=True, kw_only=True):
    """What a log says (`places`, `is_chained`: see `DecisionLog`)."""

    decisions: tuple[Decision, ...] = ()
    proposed: tuple[ProposedDecision, ...] = ()
    places: tuple[Place, ...] = ()
    is_chained: bool = False
    team: TeamEvidence | None = None
    findings: tuple[Finding, ...] = ()


class Logs:
    """Reads the logs, and parses only the new lines of those that grew."""

    def __init__(self, paths: ProjectPaths, decisions: DecisionLog) -> None:
        self._paths = paths
        self._decisions = decisions
        self._logs: dict[str, DecisionLog | TeamEvidenceLog] = {}
        self._read: dict[str, tuple[Stamp, LogContent]] = {}

    def read(self, path: str, stamp: Stamp | None = None) -> tuple[Stamp, LogContent] | Problem | None:
        """Return the content of a log and its stamp; nothing is read if that is `stamp`. None without a file."""
        known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known
        kind = kind_of(path)
        if kind is None:
            return None
        raw = read_file(self._paths.project / path, self._paths.aiwg, kind.limit)
        if not isinstance(raw, RawFile):
            self.forget(path)
            return raw
        log = self._logs.get(path)
        if log is None:
            log = self._decisions if kind.format is Format.DECISION_LOG else TeamEvidenceLog(path)
            self._logs[path] = log
        log.read(raw.data)
        self._read[path] = raw.stamp, _content_of(log)
        return self._read[path]

    def forget(self, path: str) -> None:
        self._read.pop(path, None)
        self._logs.pop(path, None)


def _content_of(log: DecisionLog | TeamEvidenceLog) -> LogContent:
    """Return what was read: the log of decisions may be parsed further by its other users."""
    if isinstance(log, TeamEvidenceLog):
        return LogContent(team=log.evidence if log.evidence.space else None, findings=log.findings)
    return LogContent(
        decisions=log.decisions,
        proposed=log.proposed,
        places=log.places,
        is_chained=log.is_chained,
        findings=log.findings,
    )
