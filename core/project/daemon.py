"""Unattended watching of a project: reports, extracts and archives, without a UI."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.decisions.commands import PrunePatterns
from core.decisions.record_changes import PRUNE
from core.project.notifications import NotificationKind, find_notifications
from core.project.watch_loop import WatchLoop
from core.records.decisions import Verb
from core.records.findings import Severity
from core.records.snapshot import Delta
from core.records.times import iso

if TYPE_CHECKING:
    from core.decisions.case import Decided
    from core.files.watcher import WatchState
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.team import TeamStatus


class WatchEvent(Struct, frozen=True, kw_only=True):
    """Event that `watch` prints."""

    at: datetime
    what: str  # a kind of `NotificationKind`, or `watching`, `team`, `extracted`, `pruned`, `failed`
    subject: str  # id of the record, "" for none
    text: str  # displayable text
    severity: Severity = Severity.INFO

    def to_json(self) -> dict[str, Any]:
        """Return the event as a dict with the stable keys of `watch --json`."""
        return {**asdict(self), "at": iso(self.at), "severity": self.severity.value}


class Daemon(WatchLoop):
    """Calls `report` with each event; extracts from ended loops and prunes if set."""

    def __init__(
        self, project: Project, report: Callable[[WatchEvent], None], *, extract: bool = False, prune: bool = False
    ) -> None:
        super().__init__(project, extract=extract)
        self._report = report
        self._prune = prune
        self._known: WatchState | None = None
        self._is_online: bool | None = None  # whether the team was reached last

    def prepare(self) -> None:
        """Queue the loops that ended while no process watched."""
        if self._extraction is not None:
            self._extraction.add_missed()

    def changed(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        """Report the changes; archive weak patterns if that is due."""
        for one in find_notifications(before, after, delta):
            self._emit(one.what.value, one.subject, one.text, one.severity)
        if self._prune:
            self._guarded(self._prune_due)

    def idle(self) -> None:
        """Update times and scores, and check anchors after a commit."""
        super().idle()
        self.project.check_anchors()

    def watching(self, state: WatchState) -> None:
        """Report a changed watch mode; ignores a changed number of watches."""
        known, self._known = self._known, state
        if known is None or (known.mode, known.reason) != (state.mode, state.reason):
            text = f"watching by {state.mode.value}" + (f": {state.reason}" if state.reason else "")
            severity = Severity.WARNING if state.reason else Severity.INFO
            self._emit("watching", "", visible_line(text, 300), severity)

    def extracted(self, before: ProjectState, loop_id: str, decided: Decided | None) -> None:
        """Report an extraction and the changes that it caused."""
        if decided is None:
            self._emit("extracted", loop_id, f"nothing new in {visible_line(loop_id, 80)}")
            return
        self._emit("extracted", loop_id, decided.summary)
        for warning in decided.warnings:
            self._emit("failed", loop_id, visible_line(warning, 300), Severity.WARNING)
        self._emit_effects(before)

    def team_changed(self, status: TeamStatus) -> None:
        """Report that the project is offline or online again."""
        is_known = status.since is None or status.is_online is self._is_online
        if not is_known:
            self._is_online = status.is_online
            text = f"online: team {status.space}" if status.is_online else f"offline: {status.problem}"
            severity = Severity.INFO if status.is_online else Severity.WARNING
            self.submit(lambda: self._emit("team", status.space, visible_line(text, 400), severity))

    def failed(self, error: Exception) -> None:
        """Report a problem with a file; reraise any other error, which ends the loop."""
        if not isinstance(error, RalphdeckError):
            raise error
        self._emit("failed", "", visible_line(str(error), 400), Severity.ERROR)

    def _emit_effects(self, before: ProjectState) -> None:
        """Report the changes that the daemon's own decision caused, but not the decision."""
        after = self.project.view
        changed = frozenset(after.snapshot.patterns) ^ frozenset(before.snapshot.patterns)
        for one in find_notifications(before, after, Delta(patterns=changed, decisions=True)):
            if one.what is not NotificationKind.DECIDED:
                self._emit(one.what.value, one.subject, one.text, one.severity)

    def _prune_due(self) -> None:
        policy = self.project.settings.pruning
        decisions = self.project.view.snapshot.decisions
        last = max((d.at for d in decisions if d.verb is Verb.ARCHIVE and d.subject == PRUNE), default=None)
        if last is not None and self.project.now() - last < timedelta(days=policy.prune_interval_days):
            return
        before = self.project.view
        if self.project.pruning():
            decided = self.project.decide(PrunePatterns())
            self._emit("pruned", "", decided.summary)
            self._emit_effects(before)

    def _emit(self, what: str, subject: str, text: str, severity: Severity = Severity.INFO) -> None:
        self._report(WatchEvent(at=self.project.now(), what=what, subject=subject, text=text, severity=severity))
