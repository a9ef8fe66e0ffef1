"""Following a project without a screen: tells what happens, and does what is to be done unattended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.text import visible_line
from core.curation.record_changes import PRUNE
from core.project.auto_extraction import AutoExtraction
from core.project.notifications import What, happenings
from core.project.project import Project
from core.records.decisions import Verb
from core.records.findings import Severity
from core.records.snapshot import Delta
from core.records.times import iso
from core.state.project_state import ProjectState
from core.storage.watcher import Changes, Watcher, WatchState

REFRESH_SECONDS: Final = 10.0
"""How often loops are asked for signs of life when no file changes."""


class Line(Struct, frozen=True, kw_only=True):
    """One line of what is told.

    Attributes:
        what: A kind of `core.project.notifications.What`, or `watching`, `extracted`, `pruned`, `failed`.
        subject: Id of what it is about, "" for none.
        text: For a person, displayable.
    """

    at: datetime
    what: str
    subject: str
    text: str
    severity: Severity = Severity.INFO

    def to_json(self) -> dict[str, Any]:
        """The stable shape that `watch --json` prints."""
        return {
            "at": iso(self.at),
            "what": self.what,
            "subject": self.subject,
            "text": self.text,
            "severity": self.severity.value,
        }


class Follower:
    """Follows one project until it is stopped; nothing that goes wrong with a file ends it.

    Args:
        deck: The project, loaded.
        tell: Gets each line, from the thread that `run` runs in. What it raises ends `run`.
        extract: Extract what loops have learned when they end.
        prune: Archive what the policy of (3) says when it is due.
    """

    def __init__(
        self, deck: Project, tell: Callable[[Line], None], *, extract: bool = False, prune: bool = False
    ) -> None:
        self._deck = deck
        self._tell = tell
        self._extraction = AutoExtraction(deck) if extract else None
        self._prune = prune
        self._wake = threading.Condition()
        self._dirty: set[Path] = set()
        self._sweep = False
        self._stopped = False
        self._watch_state: WatchState | None = None

    def stop(self) -> None:
        """Let `run` return soon; may be called from any thread and from a signal handler's."""
        self._stopped = True
        with self._wake:
            self._wake.notify()

    def run(self) -> None:
        """Follow until stopped."""
        if self._extraction is not None:
            self._extraction.add_missed()
        with Watcher(self._deck.project, self._deck.settings.watch, self._noticed) as watcher:
            while not self._stopped:
                try:
                    self._turn(watcher)
                except RalphdeckError as error:
                    self._say("failed", "", visible_line(str(error), 400), Severity.ERROR)

    def _noticed(self, changes: Changes) -> None:
        with self._wake:
            self._dirty |= changes.paths
            self._sweep |= changes.sweep
            self._wake.notify()

    def _turn(self, watcher: Watcher) -> None:
        with self._wake:
            if not (self._stopped or self._dirty or self._sweep):
                due = self._extraction
                self._wake.wait(due.seconds_left(REFRESH_SECONDS) if due is not None else REFRESH_SECONDS)
            dirty, self._dirty = self._dirty, set()
            sweep, self._sweep = self._sweep, False
        if self._stopped:
            return
        before = self._deck.view
        if sweep or dirty:
            after, delta = self._deck.apply(None if sweep else dirty)
            if torn := self._deck.library.retry_paths:
                watcher.retry(torn)
        else:
            after, delta = self._deck.refresh()
        self._report(before, after, delta)
        if watcher.state != self._watch_state:
            self._tell_watch(watcher.state)
        self._extract_due()
        if self._prune:
            self._prune_due()

    def _report(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        for one in happenings(before, after, delta):
            self._say(one.what.value, one.subject, one.text, one.severity)
        if self._extraction is not None:
            self._extraction.add_ended(before, after, delta)

    def _tell_watch(self, state: WatchState) -> None:
        """How the disk is followed has changed; the count of watches alone is no news."""
        known, self._watch_state = self._watch_state, state
        if known is None or (known.mode, known.reason) != (state.mode, state.reason):
            text = f"watching by {state.mode.value}" + (f": {state.reason}" if state.reason else "")
            severity = Severity.WARNING if state.reason else Severity.INFO
            self._say("watching", "", visible_line(text, 300), severity)

    def _extract_due(self) -> None:
        if self._extraction is None:
            return
        before = self._deck.view
        while (extracted := self._extraction.extract_next()) is not None:
            loop_id, decided = extracted
            if decided is None:
                self._say("extracted", loop_id, f"nothing new in {visible_line(loop_id, 80)}")
                continue
            self._say("extracted", loop_id, decided.summary)
            for warning in decided.warnings:
                self._say("failed", loop_id, visible_line(warning, 300), Severity.WARNING)
            self._tell_rest(before)
            before = self._deck.view

    def _tell_rest(self, before: ProjectState) -> None:
        """What followed from our own decision, beside the decision itself."""
        delta = Delta(patterns=frozenset(self._deck.view.snapshot.patterns) ^ frozenset(before.snapshot.patterns))
        for one in happenings(before, self._deck.view, delta | Delta(decisions=True)):
            if one.what is not What.DECIDED:
                self._say(one.what.value, one.subject, one.text, one.severity)

    def _prune_due(self) -> None:
        policy = self._deck.settings.pruning
        decisions = self._deck.view.snapshot.decisions
        last = max((d.at for d in decisions if d.verb is Verb.ARCHIVE and d.subject == PRUNE), default=None)
        if last is not None and self._deck.now() - last < timedelta(days=policy.prune_interval_days):
            return
        before = self._deck.view
        if self._deck.pruning():
            decided = self._deck.prune()
            self._say("pruned", "", decided.summary)
            self._tell_rest(before)

    def _say(self, what: str, subject: str, text: str, severity: Severity = Severity.INFO) -> None:
        self._tell(Line(at=self._deck.now(), what=what, subject=subject, text=text, severity=severity))
