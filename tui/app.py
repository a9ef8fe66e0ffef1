"""The dashboard app: start and end, messages of the engine, and the top bar."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import events, on
from textual.binding import Binding, BindingType
from textual.message import Message

from core.base.errors import DamagedError
from core.base.text import plural, visible
from core.base.time_parsing import LAST_SEEN, LAST_VISIT
from core.records.times import iso, parse_time
from core.trust.projects import find_answer, is_trusted
from tui.actions import PLACES
from tui.embedding_worker import AFTER_SECONDS, EmbeddingWorker
from tui.engine import Engine
from tui.keymap import load_keymap
from tui.present.trust import arrival_text
from tui.screen_registry import MODES
from tui.screens.opening import OpeningScreen
from tui.state.key_queue import KeyQueue
from tui.state.user_state import UserState
from tui.terminal.driver import ResilientDriver, flush_output
from tui.top_bar import TopBarApp

if TYPE_CHECKING:
    from textual.screen import Screen

    from core.config.paths import ProjectPaths
    from core.project.kept_project import KeptProject
    from core.project.project import Project
    from tui.present.palette_index import PaletteIndex
    from tui.services import Services

log = logging.getLogger("ralphdeck")

LEAVE: Final = "ctrl+c"
SHOWN_EARLY: Final = frozenset({"loops", "patterns"})  # screens that need no more than a `KeptProject`
SESSION_SECONDS: Final = 60.0
DRAW_SECONDS: Final = 2.0  # Maximum seconds until the last records are drawn, before opening takes the processor.
SWITCH_SECONDS: Final = 0.001  # Maximum seconds that the engine thread runs before the screen gets a turn.


class RalphdeckApp(TopBarApp, inherit_bindings=False):
    """The dashboard of a project, which a thread opens and loads after the first frame.

    `open_project` opens the project in the folders `paths`; it imports most of the program. `open_kept` returns what to
    show until then, if anything. `searches` and `extracts` are explained in `Engine`. `theme` is the theme at the
    start, by default the last one used; `clock` returns monotonic seconds.
    """

    TITLE = "ralphdeck"
    BINDINGS: ClassVar[list[BindingType]] = [Binding(LEAVE, "app.copy_or_quit", "quit", show=False, priority=True)]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {**MODES}

    class Opened(Message):
        """The project is open."""

        def __init__(self, project: Project) -> None:
            super().__init__()
            self.project = project

    class Kept(Message):
        """The state of the last run can be shown until the project is open."""

        def __init__(self, project: KeptProject) -> None:
            super().__init__()
            self.project = project

    class NotOpened(Message):
        """The project cannot be opened."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    engine: Engine  # From the message `Opened` on; `project` and `view` from `Kept` or `Opened` on.
    _vectors: EmbeddingWorker

    def __init__(
        self,
        open_project: Callable[[], Project],
        paths: ProjectPaths,
        user_state: UserState,
        keymap_file: Path,
        *,
        open_kept: Callable[[], KeptProject | None] = lambda: None,
        searches: bool = True,
        extracts: bool = False,
        theme: str | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(user_state, theme, clock, paths)
        self.open_project = open_project
        self.open_kept = open_kept
        self._is_drawn = threading.Event()
        self.is_view_unusable = False  # whether the app ended because the index is damaged
        self.opening_error: Exception | None = None
        self._searches, self._extracts = searches, extracts
        visits = (parse_time(user_state.visit(name)) for name in (LAST_VISIT, LAST_SEEN))
        self.last_visit = max((visit for visit in visits if visit is not None), default=None)
        self.jumps: PaletteIndex | None = None
        self._keymap_file = keymap_file
        self.key_queue = KeyQueue(self, lambda: not self.is_open or bool(self._pending_undos) or self._undoing, clock)

    # Start and end

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pastes except ctrl+c; escape control characters in pastes."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if isinstance(event, events.Key) and event.key == LEAVE:
                self.key_queue.forget()
            elif not self.key_queue.has_turn(event):
                self._has_copied = False
                self.key_queue.put(event)
                return
            if isinstance(event, events.Paste):
                event.text = visible(event.text)
        await super().on_event(event)

    def on_mount(self) -> None:
        keymap, problems = load_keymap(self._keymap_file)
        self._keys |= keymap
        self.set_keymap(keymap)
        self._keymap_problems = tuple(problems)
        if problems:
            more = f" (and {len(problems) - 1} more: {self.shown_key('findings')})" if len(problems) > 1 else ""
            self.say(f"{problems[0]}{more}", severity="error")
        if self.user_state.damage:
            self.say(f"{self.user_state.damage}; settings, saved views and visits are not read", severity="error")
        self.set_interval(1.0, self._tick)
        self.set_interval(SESSION_SECONDS, self._save_session_time)

    def on_ready(self) -> None:
        """Open the project; the first frame is on the screen."""
        self.run_worker(self._open, thread=True, group="opening")

    def get_default_screen(self) -> Screen[None]:
        return OpeningScreen(self._first_place())

    def _first_place(self) -> str:
        place = self.user_state.get_here("place", "loops")
        return place if place in PLACES else "loops"

    def _open(self) -> None:
        """Open the project; runs in a thread worker."""
        try:
            kept = self.open_kept()
            if kept is not None and self._first_place() in SHOWN_EARLY:
                self.post_message(self.Kept(kept))
                self._is_drawn.wait(DRAW_SECONDS)
            project = self.open_project()
            if kept is not None:
                project.show(kept.view)
            self.post_message(self.Opened(project))
        except Exception as error:
            self.post_message(self.NotOpened(error))

    @on(NotOpened)
    def _failed_to_open(self, message: NotOpened) -> None:
        self.opening_error = message.error
        self.exit()

    @on(Kept)
    async def _show_kept(self, message: Kept) -> None:
        """Show the state of the last run; keys and clicks wait until the project is open."""
        self.project = cast("Project", message.project)
        self.view = message.project.view
        self._is_shown = True
        await self.switch_mode(self._first_place())
        self.screen.call_after_refresh(self._is_drawn.set)

    def _handle_exception(self, error: Exception) -> None:
        """End to start again if the index is damaged, which may be the reason of any error before the check."""
        is_unchecked = self._is_shown and self.view.snapshot.as_of is not None
        if not self._exit and (is_unchecked or isinstance(error, DamagedError)):
            self.is_view_unusable = True
            self._is_drawn.set()
            self.exit()
        super()._handle_exception(error)

    @on(Opened)
    def _opened(self, message: Opened) -> None:
        """Show the first screen and start the threads that load the project."""
        gc.freeze()  # exclude all objects of the start from collections
        gc.enable()
        self.project = project = message.project
        self.view = project.view
        self.engine = Engine(project, self, searches=self._searches, extracts=self._extracts)
        self._vectors = EmbeddingWorker(project, self)
        self.is_open = True
        self.is_trusted = is_trusted(project.project)
        if self._is_shown:
            for place in self._places():
                place.refresh_frame()
        else:
            self._is_shown = True
            self.switch_mode(self._first_place())
        self._save_session_time()
        self.run_worker(self.engine.run, thread=True, group="engine", exit_on_error=True)
        self.run_worker(self._vectors.run, thread=True, group="vectors", exit_on_error=True)

    def _save_session_time(self) -> None:
        """Save the time of this session regularly, in case the dashboard is killed.

        The time of the previous visit is kept: the command line reports changes since then.
        """
        if self.last_visit is not None:
            self.user_state.set_visit(LAST_VISIT, iso(self.last_visit) or "")
        self.user_state.set_visit(LAST_SEEN, iso(self.project.now()) or "")
        self.user_state.save()

    def on_unmount(self) -> None:
        if self.is_open:
            self.engine.stop()
            self._vectors.stop()
            self.user_state.set_visit(LAST_VISIT, iso(self.project.now()) or "")
            self.user_state.save()

    # Messages of the engine

    @on(Engine.Changed)
    def _changed(self) -> None:
        before = self.view
        self.view, delta = self.engine.take()
        loading = self.progress is not None
        if self.view.snapshot.complete:
            self.progress = None
            if loading:
                self.set_timer(AFTER_SECONDS, self._vectors.want)
            elif delta.patterns or delta.tasks or delta.memory_tasks:
                self._vectors.want()
        if loading:
            for place in self._places():
                place.redraw_all()
            if self.progress is None:
                self.forget_check()
                self._ask_for_trust()
        else:
            from core.project.notifications import find_notifications
            from tui.present.notifications import toasts

            if text := arrival_text(before, self.view, self.shown_key("trust")):
                self.say(text, severity="warning")

            found = find_notifications(before, self.view, delta, self._mine)
            for text, severity in (lines := toasts(found, self._mine))[:1]:
                more = f", and {plural(len(lines) - 1, 'more change')}" if len(lines) > 1 else ""
                self.say(f"{text}{more}", severity=severity)
            self._bell.note(found)
            for place in self._places():
                place.changed(delta)
        from tui.screens.dialogs import AskLine

        if isinstance(self.screen, AskLine):
            self.screen.follow(self.view)
        self._undo_waiting()

    @on(Engine.Extracted)
    def _extracted(self, message: Engine.Extracted) -> None:
        self._mine |= {decision.id for decision in message.decided.decisions}
        for warning in message.decided.warnings:
            self.say(warning, severity="warning")
        self.say(f"{message.decided.summary}; see Review")

    def _ask_for_trust(self) -> None:
        """Ask about a project that the user has not answered about, once its files are read."""
        from core.project.trust import find_arrivals

        is_open_question = not self.is_trusted and find_answer(self.project.project) is None
        if is_open_question and len(self.screen_stack) == 1 and (arrivals := find_arrivals(self.project)).has_records:
            self.ask_about(arrivals)

    @on(Engine.Written)
    def _written(self, message: Engine.Written) -> None:
        self.is_trusted = is_trusted(self.project.project)
        self.say(message.text, severity="warning" if message.refused else "information")

    @on(EmbeddingWorker.Progress)
    def _embedding(self, message: EmbeddingWorker.Progress) -> None:
        for place in self._places():
            place.embedding(message.done, message.total)

    @on(Engine.Failed)
    def _failed(self, message: Engine.Failed) -> None:
        log.error("%s\n%s", message.text, message.detail)
        self.say(message.text, severity="error")

    # Services of screens

    def now(self) -> datetime:
        return self.project.now()

    # Helpers

    def _tick(self) -> None:
        if isinstance(self._driver, ResilientDriver) and self._driver.is_closed:
            self.exit(return_code=128 + signal.SIGHUP)
        self._bell.call_if_due()
        self.update_lease()
        if place := self._front():
            place.tick()


if TYPE_CHECKING:  # mypy checks that the app implements everything that screens use
    _SERVICES: type[Services] = RalphdeckApp


def run(
    open_project: Callable[[], Project],
    paths: ProjectPaths,
    *,
    open_kept: Callable[[], KeptProject | None],
    state_file: Path,
    keymap_file: Path,
    remembered_as: str,
    is_fresh: bool = False,
    theme: str | None = None,
) -> int:
    """Run the dashboard; returns the exit code of the process. Raises what `open_project` raises.

    `remembered_as` is the name of this project's state in `state_file`. `is_fresh` discards that state first: it
    belongs to another project of the same name.
    """
    user_state = UserState(state_file, remembered_as)
    user_state.load()
    if is_fresh:
        user_state.forget_here()
    sys.setswitchinterval(SWITCH_SECONDS)
    for kept in (open_kept, lambda: None):
        app = RalphdeckApp(open_project, paths, user_state, keymap_file, open_kept=kept, extracts=True, theme=theme)
        app.run()
        if not app.is_view_unusable:
            break
        from core.index.database import delete  # imports SQLite, which the first frame does not need

        delete(paths.project)
    flush_output()
    if app.opening_error is not None:
        raise app.opening_error
    return app.return_code or int(app.is_view_unusable)
