"""The one worker that reads and writes: it owns the deck, follows the disk, and posts messages to the app."""

from __future__ import annotations

import gc
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import Final

from textual.message import Message
from textual.message_pump import MessagePump

from core.base.errors import RalphdeckError
from core.curation.curator import Decided
from core.project.auto_extraction import AutoExtraction, is_wanted
from core.project.project import Project
from core.records.snapshot import Delta
from core.state.project_state import ProjectState
from core.storage.watcher import Changes, Watcher, WatchState
from tui.present.frame import Records

REFRESH_SECONDS: Final = 10.0
"""How often loops are asked for signs of life when no file changes."""
PAUSE_SECONDS: Final = 0.01
"""Between two pieces of what is worked out unasked, for the screen to have its turn."""
BATCH_BURST: Final = 60
"""Batches of file changes that are shown without delay after a quiet time."""
BATCHES_PER_SECOND: Final = 3.0
"""Batches a second under a steady stream of changes: each costs a repaint."""
_ROUNDING: Final = 1e-6
_OLDER_GENERATIONS: Final = (5, 2)
"""Collections of one generation before the next older one: drawn lines die old, in reference cycles, and with Python's
own 10 and 10 their garbage grows for a quarter of an hour."""
PROGRESS_SECONDS: Final = 0.05
"""Between two messages of progress."""
TOLD_SECONDS: Final = 0.5
"""How long it is worked out until that is told; after most changes all is known before."""


class BatchPacer:
    """Limits how often file changes are applied: a burst at once, a steady stream at a steady rate.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left = float(BATCH_BURST)
        self._since = clock()

    def delay(self) -> float:
        """Seconds until the next batch may be applied; 0 if it may be applied now."""
        now = self._clock()
        self._left = min(self._left + (now - self._since) * BATCHES_PER_SECOND, BATCH_BURST)
        self._since = now
        missing = 1 - self._left
        return missing / BATCHES_PER_SECOND if missing > _ROUNDING else 0.0

    def count(self) -> None:
        """Note that a batch was applied."""
        self._left -= 1


class Engine:
    """Runs in one thread worker; everything that touches a file goes through it, in order.

    Args:
        deck: The open project.
        target: Where messages go; posting is thread-safe and never waits.
        looks_further: Whether idle moments are used to work out what else Review could ask.
        extracts: Whether to extract from loops when they end, as far as the settings want that.
    """

    class Progress(Message):
        """The first load: files done, files in all; while one big file is read, which one and how far."""

        def __init__(self, done: int, total: int, records: Records | None = None) -> None:
            super().__init__()
            self.done = done
            self.total = total
            self.records = records

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Engine.Progress)

    class Changed(Message):
        """There is a newer view; take it with `Engine.take`. May replace its predecessor: nothing is lost."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Engine.Changed)

    class Decision(Message):
        """A decision was made here, or refused."""

        def __init__(self, decided: Decided | None, error: str, made: frozenset[str] = frozenset()) -> None:
            super().__init__()
            self.decided = decided
            self.error = error
            self.made = made
            """Ids of the decisions that came of it."""

    class Written(Message):
        """Something that is no decision was written, or why it could not be."""

        def __init__(self, text: str, *, refused: bool) -> None:
            super().__init__()
            self.text = text
            self.refused = refused

    class Watching(Message):
        """How the disk is followed has changed."""

        def __init__(self, state: WatchState) -> None:
            super().__init__()
            self.state = state

    class Looking(Message):
        """`Engine.is_looking` has changed."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, Engine.Looking)

    class Failed(Message):
        """The engine could not go on with a job; the text is for a person."""

        def __init__(self, text: str, detail: str) -> None:
            super().__init__()
            self.text = text
            self.detail = detail

    class Extracted(Message):
        """A loop ended, and what it has learned was extracted without a person."""

        def __init__(self, decided: Decided) -> None:
            super().__init__()
            self.decided = decided

    def __init__(
        self, deck: Project, target: MessagePump, *, looks_further: bool = True, extracts: bool = False
    ) -> None:
        self.project = deck
        self._target = target
        self._condition = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._dirty: set[Path] = set()
        self._pacer = BatchPacer()
        self._sweep = False
        self._stopped = False
        self._lock = threading.Lock()
        self._delta = Delta()
        self._watch_state: WatchState | None = None
        self._extraction: AutoExtraction | None = None
        if extracts and is_wanted(deck.settings.extraction) and not deck.is_readonly:
            self._extraction = AutoExtraction(deck)
        self._looks_further = looks_further
        self._something_left = looks_further
        self._looks_since: float | None = None
        self.has_looked_once = not looks_further
        """Whether everything that Review can ask about the first load has been found."""
        self.is_looking = False
        """Whether more is known to be left that Review could ask, for some time already."""

    # Called from the app's thread.

    def decide(self, decide: Callable[[Project], Decided], seen: ProjectState) -> None:
        """Carry a decision out, in turn; its result comes as `Engine.Decision`.

        Args:
            decide: Makes the decision.
            seen: What the person looked at; see `Project.decide`.
        """

        def job() -> None:
            before, start = self.project.view.snapshot.patterns, self.project.now()
            decided: Decided | None = None
            refusal = ""
            try:
                decided = self.project.decide(decide, seen=seen)
            except RalphdeckError as error:
                refusal = str(error)
            except Exception:  # told with its cause by `_guarded`
                self._target.post_message(self.Decision(None, "it cannot be told whether this was decided"))
                raise
            made = {d.id for d in self.project.view.snapshot.decisions if d.at >= start and d.by == self.project.by}
            self._target.post_message(self.Decision(decided, refusal, frozenset(made)))
            after = self.project.view.snapshot.patterns
            changed = {key for key, pattern in after.items() if before.get(key) is not pattern}
            self._publish(Delta(patterns=frozenset(changed | before.keys() - after.keys()), decisions=True))

        self.submit(job)

    def write(self, write: Callable[[Project], str]) -> None:
        """Write events that are no decision, in turn; what `write` tells of it comes as `Engine.Written`."""

        def job() -> None:
            try:
                self._target.post_message(self.Written(write(self.project), refused=False))
            except RalphdeckError as error:
                self._target.post_message(self.Written(str(error), refused=True))
            self._publish(Delta(events=True))

        self.submit(job)

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job in the engine's thread, after those submitted before it."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify()

    def take(self) -> tuple[ProjectState, Delta]:
        """The newest view, and all that changed since the last call."""
        with self._lock:
            delta, self._delta = self._delta, Delta()
            return self.project.view, delta

    @property
    def has_looked(self) -> bool:
        """Whether nothing is left to be worked out unasked."""
        return not self._something_left

    def stop(self) -> None:
        """Let `run` return after the jobs that were submitted: what a person has decided is written."""
        with self._condition:
            self._stopped = True
            self._condition.notify()

    # The worker.

    def run(self) -> None:
        """Load, then follow the disk and carry out jobs until `stop`. Runs in a thread worker."""
        with Watcher(self.project.project, self.project.settings.watch, self._noticed) as watcher:
            self._guarded(self._load)
            while self._jobs or not self._stopped:
                self._guarded(lambda: self._turn(watcher))

    def _load(self) -> None:
        def publish(_view: ProjectState) -> None:
            self._target.post_message(self.Changed())

        last = 0.0
        files = (0, 0)

        def is_due() -> bool:
            nonlocal last
            if self._stopped:
                raise _StoppedWhileLoading
            if is_due := monotonic() - last > PROGRESS_SECONDS:
                last = monotonic()
            return is_due

        def progress(done: int, total: int) -> None:
            nonlocal files
            files = done, total
            if is_due() or done == total:
                self._target.post_message(self.Progress(done, total))

        def records(file: str, done: int, total: int) -> None:
            if is_due():
                self._target.post_message(self.Progress(*files, Records(Path(file).name, done, total)))

        self.project.library.on_records = records
        try:
            self.project.load(progress, publish)
        except _StoppedWhileLoading:
            return
        finally:
            self.project.library.on_records = None
        if warnings := self.project.settle():
            more = f" (and {len(warnings) - 1} more like this)" if len(warnings) > 1 else ""
            self._target.post_message(self.Failed(f"{warnings[0]}{more}", "\n".join(warnings)))
        gc.freeze()  # what was read lives on: a collection need not walk it, and stop the screen, each time
        gc.set_threshold(gc.get_threshold()[0], *_OLDER_GENERATIONS)
        self._target.post_message(self.Changed())

    def _noticed(self, changes: Changes) -> None:
        with self._condition:
            self._dirty |= changes.paths
            self._sweep |= changes.sweep
            self._condition.notify()

    def _turn(self, watcher: Watcher) -> None:
        with self._condition:
            if not (self._stopped or self._jobs or self._dirty or self._sweep):
                self._condition.wait(PAUSE_SECONDS if self._something_left else self._seconds_left())
            if self._dirty or self._sweep:  # jobs do not wait, nor does the end
                self._condition.wait_for(lambda: self._stopped or self._jobs, self._pacer.delay())
            jobs = list(self._jobs)
            self._jobs.clear()
            dirty, sweep = set[Path](), False
            if self._pacer.delay() == 0:
                dirty, self._dirty = self._dirty, dirty
                sweep, self._sweep = self._sweep, sweep
        if self._stopped and not jobs:
            return
        looking = self._something_left and not (jobs or dirty or sweep)
        self._something_left = self._looks_further
        for job in jobs:
            self._guarded(job)
        if sweep or dirty:
            self._pacer.count()
            delta = self._apply(None if sweep else dirty)
            if torn := self.project.library.retry_paths:
                watcher.retry(torn)
            self._publish(delta)
        elif looking:
            self._look_further()
        elif not jobs:
            view, delta = self.project.refresh()
            self._publish(delta)
            self._target.post_message(self.Changed())  # nothing new, but times and scores as of now
            view.prepare()  # while nothing else is to be done: Context then has it at the first key
        self._extract_next()
        if watcher.state != self._watch_state:
            self._watch_state = watcher.state
            self._target.post_message(self.Watching(watcher.state))

    def _apply(self, changed: Iterable[Path] | None) -> Delta:
        """Read what changed on disk, and note the loops that ended."""
        if self._extraction is None:
            return self.project.apply(changed)[1]
        before = self.project.view
        after, delta = self.project.apply(changed)
        self._extraction.add_ended(before, after, delta)
        return delta

    def _seconds_left(self) -> float:
        return self._extraction.seconds_left(REFRESH_SECONDS) if self._extraction is not None else REFRESH_SECONDS

    def _extract_next(self) -> None:
        """Extract from one loop that has ended, if one is due; the next turn takes the next one."""
        extracted = self._extraction.extract_next() if self._extraction is not None else None
        if extracted is not None and (decided := extracted[1]) is not None:
            self._target.post_message(self.Extracted(decided))
            self._publish(Delta(patterns=frozenset(_patterns_in(decided)), decisions=True))

    def _look_further(self) -> None:
        """One piece of what could be asked in Review; another one follows while there is any."""
        found: Delta | None = None
        try:
            found = self.project.look_further()
        finally:  # should this fail, it is not tried again and again
            self._something_left = found is not None
            self.has_looked_once |= found is None
            self._tell_looking()
        if found is not None:
            self._publish(found)

    def _tell_looking(self) -> None:
        now = monotonic()
        self._looks_since = (self._looks_since or now) if self._something_left else None
        looking = self._looks_since is not None and now - self._looks_since >= TOLD_SECONDS
        if self.is_looking is not looking:
            self.is_looking = looking
            self._target.post_message(self.Looking())

    def _publish(self, delta: Delta) -> None:
        if delta:
            with self._lock:
                self._delta |= delta
            self._target.post_message(self.Changed())

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except RalphdeckError as error:
            self._target.post_message(self.Failed(str(error), ""))
        except Exception as error:
            self._target.post_message(
                self.Failed(f"internal error: {type(error).__name__}: {error}", traceback.format_exc())
            )


def _patterns_in(decided: Decided) -> Iterator[str]:
    """The patterns whose records a decision changes."""
    return (effect.pattern_id for decision in decided.decisions for effect in decision.effects)


class _StoppedWhileLoading(Exception):
    """The app is closing: give the load up."""
