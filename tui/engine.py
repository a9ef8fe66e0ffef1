"""Workers that read and write the project, compute embeddings, and post messages."""

from __future__ import annotations

import ctypes
import gc
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.message import Message

from core.agents.plan import find_connected
from core.base.errors import RalphdeckError
from core.project.watch_loop import WatchLoop, is_wanted
from core.records.snapshot import Delta
from core.records.team import DASHBOARD
from tui.kit.drawing import NewestMessage

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from core.decisions.case import Decided
    from core.decisions.commands import Command
    from core.files.watcher import WatchState
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.team import TeamStatus


PAUSE_SECONDS: Final = 0.01  # Seconds between two steps of the background search, so that the screen runs.
PAINT_SECONDS: Final = 0.1  # Seconds after a change without a step of the background search, so that it is drawn first.
PROGRESS_SECONDS: Final = 0.1
DRAWN_SECONDS: Final = 0.3  # Seconds in which the loaded project is drawn before it is saved.
KEEP_SECONDS: Final = 60.0  # Seconds between two savings of the questions.
SEARCH_SHOWN_SECONDS: Final = 0.5  # Seconds of background search before the screen shows it; most searches end sooner.


class Engine(WatchLoop):
    """Thread worker that does all reading and writing of the project.

    Posting messages to `target` is thread-safe and never blocks. With `searches` the engine looks for more review
    questions when idle; with `extracts` it extracts patterns from loops when they end, if the settings allow it.
    """

    @dataclass(eq=False)
    class Progress(NewestMessage):
        """Progress of the first load: files read."""

        done: int
        total: int

    @dataclass(eq=False)
    class Reading(NewestMessage):
        """Progress of the first read of transcripts, in bytes; `total` is 0 at its end."""

        done: int
        total: int

    class Changed(NewestMessage):
        """A newer state is available; call `Engine.take`."""

    @dataclass(eq=False)
    class Decision(Message):
        """Result of a decision; `made` has the IDs of the decisions written."""

        decided: Decided | None
        error: str
        made: frozenset[str] = frozenset()

    @dataclass(eq=False)
    class Written(Message):
        """Result of recording events: a text for a toast."""

        text: str
        refused: bool

    @dataclass(eq=False)
    class Watching(Message):
        """The watch mode has changed."""

        state: WatchState

    class Searching(NewestMessage):
        """`Engine.is_searching` has changed."""

    class TeamChanged(NewestMessage):
        """The state of the team has changed; see `Engine.team`."""

    @dataclass(eq=False)
    class Failed(Message):
        """A step of the engine failed; the text is displayable."""

        text: str
        detail: str

    @dataclass(eq=False)
    class Extracted(Message):
        """Patterns were extracted automatically from a loop that ended."""

        decided: Decided

    def __init__(self, project: Project, target: MessagePump, *, searches: bool = True, extracts: bool = False) -> None:
        extracts = extracts and is_wanted(project.settings.extraction) and not project.is_readonly
        super().__init__(project, extract=extracts)
        self._target = target
        self._lock = threading.Lock()
        self._delta = Delta()
        self._searches_enabled = searches
        self._search_pending = searches
        self._search_started: float | None = None
        self._pause = PAUSE_SECONDS
        self._searches = False
        self._kept_at = 0.0
        self.has_searched_once = not searches
        """Whether the background search after the first load is complete."""
        self.is_searching = False
        """Whether a background search has been running for some time."""
        self.connected_agents: tuple[str, ...] = ()
        """Titles of the connected agents, for empty lists; read only if the project has no loops."""

    # Called from the app's thread.

    def decide(
        self,
        command: Command,
        seen: ProjectState,
        *,
        progress: Callable[[int, int], None] | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Queue a decision; its result is posted as `Engine.Decision`."""

        def job() -> None:
            before, start = self.project.view.snapshot.patterns, self.project.now()
            decided: Decided | None = None
            refusal = ""
            try:
                decided = self.project.decide(command, expected_state=seen, progress=progress)
            except RalphdeckError as error:
                refusal = str(error)
            except Exception:  # `_guarded` reports the cause
                self._target.post_message(self.Decision(None, "Internal error: check the log to see what was decided"))
                raise
            finally:
                if done is not None:
                    done()
            made = {d.id for d in self.project.view.snapshot.decisions if d.at >= start and d.by == self.project.by}
            self._target.post_message(self.Decision(decided, refusal, frozenset(made)))
            after = self.project.view.snapshot.patterns
            changed = {key for key, pattern in after.items() if before.get(key) is not pattern}
            self._publish(Delta(patterns=frozenset(changed | before.keys() - after.keys()), decisions=True))

        self.submit(job)

    def write(self, write: Callable[[Project], str]) -> None:
        """Queue a function that writes no decision; post its text as `Engine.Written`."""

        def job() -> None:
            before = self.project.view.snapshot
            try:
                self._target.post_message(self.Written(write(self.project), refused=False))
            except RalphdeckError as error:
                self._target.post_message(self.Written(str(error), refused=True))
            after = self.project.view.snapshot
            patterns = before.foreign.patterns ^ after.foreign.patterns
            self._publish(Delta(patterns=patterns, events=True, decisions=before.curation is not after.curation))

        self.submit(job)

    def take(self) -> tuple[ProjectState, Delta]:
        """Return the newest state, and all changes since the last call."""
        with self._lock:
            delta, self._delta = self._delta, Delta()
            return self.project.view, delta

    # The worker.

    place = DASHBOARD

    def team_changed(self, status: TeamStatus) -> None:
        self._target.post_message(self.TeamChanged())

    def reading(self, done: int, total: int) -> None:
        self._target.post_message(self.Reading(done, total))

    def prepare(self) -> None:
        """Load the project and post messages about the progress."""

        shown = self.project.view

        def publish(view: ProjectState) -> None:
            nonlocal shown
            shown = view
            self._target.post_message(self.Changed())

        last = 0.0

        def is_due() -> bool:
            nonlocal last
            if self._stopped:
                raise _StoppedWhileLoading
            if is_due := monotonic() - last > PROGRESS_SECONDS:
                last = monotonic()
            return is_due

        def progress(done: int, total: int) -> None:
            if is_due() or 0 < done == total:
                self._target.post_message(self.Progress(done, total))

        try:
            self.project.load(progress, publish)
        except _StoppedWhileLoading:
            return
        if not self.project.view.snapshot.loops:
            self.connected_agents = find_connected(self.project.project.project)
        if warnings := self.project.apply_pending():
            more = f" (and {len(warnings) - 1} similar)" if len(warnings) > 1 else ""
            self._target.post_message(self.Failed(f"{warnings[0]}{more}", "\n".join(warnings)))
        from core.index.snapshot import find_delta

        # All lists may have been shown before texts were indexed.
        self._publish(find_delta(shown.snapshot, self.project.view.snapshot))
        gc.freeze()  # else each full collection searches what was loaded, and stops the screen for 0.1 s
        self._target.post_message(self.Changed())
        self._keep_questions(DRAWN_SECONDS)

    def begin_turn(self, *, idle: bool) -> None:
        """Search in this turn if idle; request a new search after any other turn."""
        self._searches = idle and self._search_pending
        self._search_pending = self._searches_enabled
        self._pause = PAUSE_SECONDS if idle else PAINT_SECONDS

    def changed(self, before: ProjectState, after: ProjectState, delta: Delta) -> None:
        self._publish(delta)

    def idle(self) -> None:
        """Search for one more question; if there is none, update times and scores."""
        if self._searches:
            self._search()
            return
        super().idle()
        if monotonic() - self._kept_at > KEEP_SECONDS:
            self._keep_questions()
        self._target.post_message(self.Changed())  # times and scores depend on the current time

    def seconds_left(self) -> float:
        """Return the pause before the next step of a search, so that the screen runs."""
        return self._pause if self._search_pending else super().seconds_left()

    def extracted(self, before: ProjectState, loop_id: str, decided: Decided | None) -> None:
        if decided is not None:
            self._target.post_message(self.Extracted(decided))
            patterns = {effect.pattern_id for decision in decided.decisions for effect in decision.effects}
            self._publish(Delta(patterns=frozenset(patterns), decisions=True))

    def watching(self, state: WatchState) -> None:
        self._target.post_message(self.Watching(state))

    def failed(self, error: Exception) -> None:
        """Post an error to the app; the worker continues."""
        known = isinstance(error, RalphdeckError)
        text = str(error) if known else f"Internal error: {type(error).__name__}: {error}"
        detail = "" if known else "".join(traceback.format_exception(error))
        self._target.post_message(self.Failed(text, detail))

    def _keep_questions(self, pause: float = 0.0) -> None:
        """Save the questions for the next start in a thread; the process may end first."""
        self._kept_at = monotonic()
        timer = threading.Timer(pause, self.project.keep_questions)
        timer.name, timer.daemon = "ralphdeck-keep", True
        timer.start()

    def _search(self) -> None:
        found: Delta | None = None
        try:
            found = self.project.search_next()
        finally:  # do not repeat a failing search at once
            self._search_pending = found is not None
            if not (self._search_pending or self.has_searched_once):
                self.has_searched_once = True
                self._keep_questions()
                _return_freed_memory()
            now = monotonic()
            self._search_started = (self._search_started or now) if self._search_pending else None
            shown = self._search_started is not None and now - self._search_started >= SEARCH_SHOWN_SECONDS
            if self.is_searching is not shown:
                self.is_searching = shown
                self._target.post_message(self.Searching())
        if found is not None:
            self._publish(found)
        else:
            self.project.view.prepare()  # so that Context opens at once
        self._search_pending |= self.project.index.fill_words()

    def _publish(self, delta: Delta) -> None:
        if delta:
            with self._lock:
                self._delta |= delta
            self._target.post_message(self.Changed())
            if self.team is not None:
                self.team.note_change()


class _StoppedWhileLoading(Exception):
    """Raised to abort the first load because the app ends."""


def _return_freed_memory() -> None:
    """Return freed memory that glibc keeps: 40 of 490 MB at 10,000 loops, in 3 ms."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


AFTER_SECONDS: Final = 3.0  # Seconds between the first load and the first run, so that the start stays fast.
_AGAIN_SECONDS: Final = 60.0  # Seconds before a retry if another process held the lock or writing failed.


class EmbeddingWorker:
    """Embeds texts that have no embedding yet, on request, in one thread."""

    @dataclass(eq=False)
    class Progress(NewestMessage):
        """Number of embeddings done and to do in total; equal at the end."""

        done: int
        total: int

    def __init__(self, project: Project, target: MessagePump) -> None:
        self._project = project
        self._target = target
        self._wanted = threading.Event()
        self._stopped = False

    def want(self) -> None:
        """Request a run, because some patterns or tasks may have no embedding."""
        self._wanted.set()

    def stop(self) -> None:
        """Make `run` return after the current batch."""
        self._stopped = True
        self._wanted.set()

    def run(self) -> None:
        """Embed on request until stopped; runs in a thread worker."""
        again: float | None = None
        while not self._stopped:
            self._wanted.wait(again)
            self._wanted.clear()
            again = None
            try:
                if not self._stopped:
                    self._project.embed_missing(self._report, lambda: self._stopped)
            except RalphdeckError:
                again = _AGAIN_SECONDS

    def _report(self, done: int, total: int) -> None:
        if not self._stopped:
            self._target.post_message(self.Progress(done, total))
