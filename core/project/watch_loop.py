"""Watches a project with unattended extraction; `Daemon` reports without a UI."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from core.base.errors import Conflict, DamagedError, RalphdeckError, Refused, UnknownRecord, Unwritable
from core.base.text import visible_line
from core.files.user_files import team_file
from core.files.watcher import FileChanges, Watcher, WatchState
from core.records.decisions import Verb, sign_unattended
from core.records.findings import Severity
from core.records.loops import FINISHED, HOOKS, Loop
from core.records.snapshot import Delta
from core.records.times import iso
from core.sources.ledger import Ledger

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.decisions.case import Decided
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.team import TeamStatus
    from core.sources.adapters.contract import AdapterRecords
    from core.team.follow import Follower, JoinedCopy

    ReadNow = Callable[[Iterable[Path] | None], tuple[ProjectState, Delta]]

SETTLING_SECONDS: Final = 1.0  # time that a finished loop gets to write its last files
REFRESH_SECONDS: Final = 10.0  # how often the activity of loops is checked when no file changes
BATCH_BURST: Final = 60  # batches of file changes that are applied without delay after a quiet time
BATCHES_PER_SECOND: Final = 6.0  # batches a second under a steady stream of changes: each costs a repaint
_STOP_CHECK_SECONDS: Final = 0.2
_ROUNDING: Final = 1e-6


def is_wanted(settings: ExtractionSettings) -> bool:
    """Return whether the settings enable extraction when a loop ends."""
    return settings.enabled and settings.auto_extract_on_completion


def extract_unattended(project: Project, work_id: str) -> Decided | None:
    """Extract patterns from a loop or task that ended; None if it has nothing new.

    The decision has its own author, so that undo never takes it for the user's newest one.
    """
    from core.decisions.commands import Extract
    from core.questions.extraction.recorded_work import list_work_ids

    for each in list_work_ids(work_id, project.view.snapshot):
        project.learn_strategies(each)
    try:
        offer = project.extraction(work_id)
        if not offer.new and not offer.merges:
            return None
        return project.decide(
            Extract(work_id, unattended=True, reason=f"from {work_id} when it ended", by=sign_unattended(project.by))
        )
    except (Conflict, Refused, UnknownRecord):  # another process extracted or moved it
        return None


class AutoExtraction:
    """Extracts patterns once from each loop that ended, even with several processes.

    Review asks about every new pattern. Use it from one thread. `clock` returns monotonic seconds.
    """

    def __init__(self, project: Project, *, clock: Callable[[], float] = monotonic) -> None:
        self._project = project
        self._clock = clock
        self._since = project.now()
        self._due: dict[str, float] = {}
        self._unjudged: dict[str, None] = {}  # attempts that ended, in order

    def add_missed(self) -> None:
        """Queue loops ended since the last unattended extraction, and unjudged attempts."""
        from core.project.finished_work import list_unjudged

        snapshot = self._project.view.snapshot
        unattended = [one.at for one in snapshot.decisions if one.is_unattended and not one.is_proposal]
        since = max(unattended, default=None)
        self._unjudged |= dict.fromkeys(list_unjudged(self._project))
        for loop in snapshot.loops.values():
            if since and loop.status in FINISHED and loop.ended_at and loop.ended_at > since:
                self._due[loop.id] = self._clock()

    def add_ended(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        """Queue the loops that ended between two states of the project."""
        for loop_id in delta.loops:
            old, new = before.snapshot.loops.get(loop_id), after.snapshot.loops.get(loop_id)
            if new is None or new.status not in FINISHED:
                continue
            # A loop that is read for the first time may have ended long ago.
            is_recent = new.ended_at is not None and new.ended_at >= self._since
            if not old.status.ended if old is not None else is_recent:
                self._due[loop_id] = self._clock() + SETTLING_SECONDS
        for id in delta.attempts:
            was, now = before.snapshot.attempts.get(id), after.snapshot.attempts.get(id)
            if now is not None and not now.is_open and (was is None or was.is_open):
                self._unjudged[id] = None

    def seconds_left(self, most: float) -> float:
        """Return the seconds until the next queued loop is due, 0 to `most`."""
        if self._unjudged:
            return 0.0
        next_due = min(self._due.values(), default=self._clock() + most)
        return max(min(next_due - self._clock(), most), 0.0)

    def extract_next(self) -> tuple[str, Decided | None] | None:
        """Extract from one due loop: (loop, decision or None); None if no loop is due.

        Before that it is recorded whether a loop, or an attempt that ended, followed what it was given.
        """
        if self._unjudged:
            self._judge(self._unjudged.popitem()[0])
        now = self._clock()
        loop_id = next((loop_id for loop_id, due in self._due.items() if due <= now), None)
        if loop_id is None:
            return None
        del self._due[loop_id]
        loop = self._project.view.snapshot.loops.get(loop_id)
        if loop is None or loop.status not in FINISHED or HOOKS in loop.sources or self._is_done(loop):
            return loop_id, None
        self._judge(loop_id)
        return loop_id, extract_unattended(self._project, loop_id)

    def _judge(self, work_id: str) -> None:
        from core.project.finished_work import record_verdicts

        with suppress(Refused, UnknownRecord, Unwritable):
            record_verdicts(self._project, work_id)

    def _is_done(self, loop: Loop) -> bool:
        """Return whether patterns were extracted since the loop ended, even if undone."""
        names = {loop.id, *loop.aliases}
        return any(
            decision.verb is Verb.EXTRACT
            and decision.subject in names
            and (loop.ended_at is None or decision.at >= loop.ended_at)
            for decision in self._project.view.snapshot.decisions
        )


class BatchPacer:
    """Limits how often file changes are applied: a burst, then a steady rate."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left = float(BATCH_BURST)
        self._since = clock()

    def delay(self) -> float:
        """Return the seconds until the next batch may be applied; 0 if it may be now."""
        now = self._clock()
        self._left = min(self._left + (now - self._since) * BATCHES_PER_SECOND, BATCH_BURST)
        self._since = now
        missing = 1 - self._left
        return missing / BATCHES_PER_SECOND if missing > _ROUNDING else 0.0

    def count(self) -> None:
        """Count an applied batch."""
        self._left -= 1


class WatchLoop:
    """Runs jobs, reads changes and, with `extract`, extracts; subclasses report it."""

    def __init__(self, project: Project, *, extract: bool = False) -> None:
        self.project = project
        self._condition = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed_paths: set[Path] = set()
        self._sweep = False
        self._stopped = False
        self._pacer = BatchPacer()
        self._watch_state: WatchState | None = None
        self._extraction = AutoExtraction(project) if extract else None
        self._adapted: AdapterRecords | None = None  # of the feed, not taken yet
        self.report_needs: Callable[[ProjectState], object] | None = None
        """Called with each state that was read; reports what newly needs a person."""
        self.team: Follower | None = None
        """Keeps the project in sync with its team; None until it is loaded, or if it has not joined one."""

    # Hooks of subclasses, called in the thread of `run`.

    def prepare(self) -> None:
        """Prepare the first turn before files are watched; a sweep finds later changes."""

    def changed(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        """Handle a new state after files were read; the delta may be empty."""
        raise NotImplementedError

    def extracted(self, before: ProjectState, loop_id: str, decided: Decided | None) -> None:
        """Handle an extraction from a loop that ended; None if the loop had nothing new."""
        raise NotImplementedError

    def watching(self, state: WatchState) -> None:
        """Handle a change of the watch mode, for example to polling."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """Handle the error of one step; an exception that this raises ends the loop."""
        raise error

    def begin_turn(self, *, idle: bool) -> None:
        """Handle the beginning of a turn; `idle` if it has neither jobs nor changes."""

    def idle(self) -> None:
        """Do the work of an idle turn, by default updating times and scores."""
        self._read(self.project.refresh)

    def seconds_left(self) -> float:
        """Return the seconds until the next turn if nothing happens before."""
        return self._extraction.seconds_left(REFRESH_SECONDS) if self._extraction is not None else REFRESH_SECONDS

    # Called from any thread.

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job in the thread of the loop, after those submitted before it."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify()

    def stop(self) -> None:
        """Make `run` return after the submitted jobs; safe in a signal handler."""
        self._stopped = True
        with self._condition:
            self._condition.notify()

    # The loop.

    def run(self) -> None:
        # Adding watches to all folders would slow down the first load; the watcher begins with a sweep.
        self._guarded(self.prepare)
        is_record = self.project.index.is_record
        watcher = Watcher(self.project.project, self.project.settings.watch, self._noticed, is_record=is_record)
        from core.project.adapter_files import AdapterFeed  # after the first frame

        feed = AdapterFeed(
            lambda: self.project.adapters.open_collector(sleep), self._note_adapted, self.reading, self._note_failure
        )
        with watcher, feed, self._follow_team():
            while self._jobs or not self._stopped:
                self._guarded(lambda: self._turn(watcher))

    def reading(self, done: int, total: int) -> None:
        """Handle the first transcript read's bytes, `total` 0 at its end; in any thread."""

    place = "watch"
    """Name of this kind of program for the members of a team."""

    def team_changed(self, status: TeamStatus) -> None:
        """Handle a new state of the team, such as offline. In any thread."""

    def _follow_team(self) -> AbstractContextManager[object]:
        from core.project.watch_loop import open_follower

        try:
            self.team = open_follower(self.project, self.read_now, self.team_changed, self.place)
        except RalphdeckError as error:
            self._note_failure(error)
        return self.team or nullcontext()

    def read_now(self, changed: Iterable[Path] | None) -> tuple[ProjectState, Delta]:
        """Read changed files in the loop's thread and wait; call it from another one."""
        paths = None if changed is None else tuple(changed)
        result: Future[tuple[ProjectState, Delta]] = Future()

        def read() -> tuple[ProjectState, Delta]:
            result.set_result(found := self.project.apply(paths))
            return found

        def job() -> None:
            try:
                self._read(read)
            except Exception as error:
                if result.done():
                    raise
                result.set_exception(error)

        self.submit(job)
        while not (done := wait([result], _STOP_CHECK_SECONDS).done) and not self._stopped:
            pass
        if not done:
            raise Refused("the program is ending")
        return result.result()

    def _note_adapted(self, records: AdapterRecords) -> None:
        self._adapted = records
        self.submit(self._take_adapted)

    def _take_adapted(self) -> None:
        records, self._adapted = self._adapted, None
        if records is not None:
            self._read(lambda: self.project.replace_adapted(records))

    def _note_failure(self, error: Exception) -> None:
        def job() -> None:
            raise error

        self.submit(job)

    def _noticed(self, changes: FileChanges) -> None:
        with self._condition:
            self._changed_paths |= changes.paths
            self._sweep |= changes.sweep
            self._condition.notify()

    def _turn(self, watcher: Watcher) -> None:
        jobs, changed, sweep = self._next_work()
        if self._stopped and not jobs:
            return
        if (state := watcher.state) != self._watch_state:
            self._watch_state = state
            self.watching(state)
        idle = not (jobs or changed or sweep)
        self.begin_turn(idle=idle)
        for job in jobs:
            self._guarded(job)
        if changed or sweep:
            self._pacer.count()
            self._read(lambda: self.project.apply(None if sweep else changed))
            if sweep:
                watcher.swept(self.project.index.sweep_seconds)
            if unfinished := self.project.index.retry_paths:
                watcher.retry(unfinished)
        elif idle:
            self.idle()
        before = self.project.view
        if self._extraction is not None and (examined := self._extraction.extract_next()) is not None:
            self.extracted(before, *examined)

    def _next_work(self) -> tuple[Iterable[Callable[[], None]], set[Path], bool]:
        """Wait for jobs or changes; only changes are delayed by the pacer."""
        with self._condition:
            if not (self._stopped or self._jobs or self._changed_paths or self._sweep):
                self._condition.wait(self.seconds_left())
            if self._changed_paths or self._sweep:
                self._condition.wait_for(lambda: self._stopped or self._jobs, self._pacer.delay())
            jobs = list(self._jobs)
            self._jobs.clear()
            changed, sweep = set[Path](), False
            if self._pacer.delay() == 0:
                changed, self._changed_paths = self._changed_paths, changed
                sweep, self._sweep = self._sweep, sweep
            return jobs, changed, sweep

    def _read(self, read: Callable[[], tuple[ProjectState, Delta]]) -> None:
        before = self.project.view
        after, delta = read()
        if self._extraction is not None:
            self._extraction.add_ended(before, after, delta)
        self.changed(before, after, delta)
        if self.report_needs is not None:
            self.report_needs(after)
        if delta and self.team is not None:
            self.team.note_change()

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            try:
                job()
            except DamagedError:
                self._read(self.project.recover)
        except Exception as error:
            self.failed(error)


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
        from core.project.notifications import find_notifications

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
        from core.project.notifications import NotificationKind, find_notifications

        after = self.project.view
        changed = frozenset(after.snapshot.patterns) ^ frozenset(before.snapshot.patterns)
        for one in find_notifications(before, after, Delta(patterns=changed, decisions=True)):
            if one.what is not NotificationKind.DECIDED:
                self._emit(one.what.value, one.subject, one.text, one.severity)

    def _prune_due(self) -> None:
        from core.decisions.commands import PrunePatterns
        from core.decisions.record_changes import PRUNE

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


def open_follower(
    project: Project,
    read_now: ReadNow,
    changed: Callable[[TeamStatus], None],
    place: str,
) -> Follower | None:
    """Return the thread for a project; None if it is read-only or belongs to no team.

    `read_now` reads changed files into the project; the others are arguments of `Follower`.
    """
    if project.is_readonly or (open_project := find_joined(project, read_now)) is None:
        return None
    from core.team.follow import Follower

    return Follower(open_project, changed, place=place, now=project.now)


def find_joined(project: Project, read_now: ReadNow) -> Callable[[], JoinedCopy] | None:
    """Return what opens a project for its team; None if it belongs to no team."""
    if not team_file().exists():  # so that nothing of a team is imported
        return None
    from core.team import connection

    joined = connection.find_joined(project.project.project)
    if joined is None:
        return None

    def open_project() -> JoinedCopy:
        from core.team.follow import JoinedCopy

        return JoinedCopy(_WatchedProject(project, read_now), joined)

    return open_project


class _WatchedProject:
    """A project for a thread other than its loop's; the loop reads what it wrote."""

    def __init__(self, project: Project, read_now: ReadNow) -> None:
        self._project = project
        self.apply = read_now
        self.project, self.settings, self.by, self.now = project.project, project.settings, project.by, project.now
        self.ledger = Ledger(project.project)  # one object is for one thread

    @property
    def view(self) -> ProjectState:
        return self._project.view
