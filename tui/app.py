"""The dashboard app: screens, messages of the engine, decisions and navigation."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import logging
import os
import shlex
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.console import Console, RenderableType
from rich.text import Text
from textual import events, on
from textual.actions import ActionParseResult
from textual.app import ScreenStackError, SuspendNotSupported, SystemCommand
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.notifications import SeverityLevel
from textual.screen import Screen

from core.base.errors import RalphdeckError
from core.base.text import plural, visible, visible_line
from core.base.time_parsing import LAST_SEEN, LAST_VISIT
from core.curation.commands import Command, Redo, Undo
from core.curation.decision_text import subject_text, verb_text
from core.curation.decision_writer import Progress
from core.project.notifications import find_notifications
from core.project.project import Project
from core.records.decisions import Decision, Verb
from core.records.snapshot import Delta
from core.records.times import iso, parse_time
from core.state.project_state import ProjectState
from core.storage.watcher import WatchState
from tui.actions import ACTIONS, DECIDING, PLACES, action_id, key_name
from tui.base_app import BaseApp
from tui.embedding_worker import AFTER_SECONDS, EmbeddingWorker
from tui.engine import Engine
from tui.keymap import load_keymap
from tui.palette import Palette, PaletteCommands
from tui.present import frame
from tui.present.findings import findings_lines
from tui.present.notifications import toasts
from tui.present.palette_index import PaletteIndex
from tui.screen_registry import MODES
from tui.screens.base_screen import BaseScreen
from tui.screens.dialogs import AskLine, Confirm, FindingsDialog
from tui.screens.file_export import export_picture
from tui.screens.help import Help
from tui.screens.help_topic import topic_of
from tui.screens.list_screen import ListScreen
from tui.screens.view_list import ViewList
from tui.services import Services
from tui.state.back_stack import FollowedLink
from tui.state.jump_guard import JumpGuard
from tui.state.key_queue import KeyQueue
from tui.state.saved_views import SavedView
from tui.state.user_state import UserState
from tui.terminal.driver import ResilientDriver
from tui.themes import DEFAULT_THEME, STYLES, load_themes
from tui.widgets.bars import Item, TopBar
from tui.widgets.record_table import RecordTable

log = logging.getLogger("ralphdeck")

MOST_TYPED: Final = 40_000
"""Bytes of an edited text that are read back."""
LEAVE: Final = "ctrl+c"
SEEN_SECONDS: Final = 60.0
"""How often the time of this session is saved."""
SWITCH_SECONDS: Final = 0.001
"""Longest time that the busy engine thread keeps the screen waiting."""
WRITING_RECORDS: Final = frozenset({Verb.EXTRACT, Verb.MERGE, Verb.ARCHIVE, Verb.IMPORT})
"""Decisions that add or remove whole records: their toast names the undo key."""


class RalphdeckApp(BaseApp, inherit_bindings=False):
    """The dashboard on one open project.

    Args:
        deck: The project; not loaded yet.
        user_state: Settings of this user, already loaded.
        keymap_file: The user's key bindings.
        looks_further: Whether idle time is used to find more questions for Review.
        extracts: Whether to extract from loops when they end, if the settings allow it.
        clock: Monotonic seconds, for the jump guard and the key queue.
        theme: Name of the first theme; by default the last one used.
    """

    TITLE = "ralphdeck"
    COMMANDS = {PaletteCommands}
    COMMAND_PALETTE_BINDING = "f9"
    BINDINGS: ClassVar[list[BindingType]] = [Binding(LEAVE, "app.copy_or_quit", "quit", show=False, priority=True)]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {**MODES}

    def __init__(
        self,
        deck: Project,
        user_state: UserState,
        keymap_file: Path,
        *,
        looks_further: bool = True,
        extracts: bool = False,
        theme: str | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        themes = load_themes()
        self._own_variables = themes[DEFAULT_THEME][1].variables
        super().__init__(sorted(STYLES.glob("*.tcss")), user_state, themes, theme)
        self.project = deck
        visits = (parse_time(user_state.get_here(name)) for name in (LAST_VISIT, LAST_SEEN))
        self.last_visit = max((visit for visit in visits if visit is not None), default=None)
        """Time of the previous dashboard session on this project; None if unknown."""
        self.engine = Engine(deck, self, looks_further=looks_further, extracts=extracts)
        self._vectors = EmbeddingWorker(deck, self)
        self.view: ProjectState = deck.view
        self.progress: tuple[int, int] | None = (0, 0)
        self.records: frame.Records | None = None
        """Progress within one large file, while one is read."""
        self.watch_state: WatchState | None = None
        self.jumps: PaletteIndex | None = None
        """Index of the palette, for the snapshot at its last use."""
        self._trail: list[FollowedLink] = []
        """The links that led to the screen in front, the newest last."""
        self._keymap_file = keymap_file
        self._keymap_problems: tuple[str, ...] = ()
        self._mine: set[str] = set()
        self.jump_guard = JumpGuard(clock)
        self.key_queue = KeyQueue(self, lambda: bool(self._undos) or self._undoing, clock)
        self._in_hand = 0
        """Number of decisions that the engine has not answered yet."""
        self._undos: deque[Callable[[Decision], None]] = deque()
        """Undo requests that wait for these decisions, since they may be meant for one of them."""
        self._undoing = False
        """Whether an undo is on its way; keys typed after it act on its result."""
        self._keys = {action.id: action.keys for action in ACTIONS}

    # Start and end

    async def run_async(self, **how: Any) -> None:
        """Run; a signal ends the app in order, even before the first frame."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, partial(self.exit, return_code=128 + number))
        await super().run_async(**how)

    def get_driver_class(self) -> type[Driver]:
        """Use a terminal driver that survives invalid bytes and a closed terminal."""
        found = super().get_driver_class()
        return ResilientDriver if found is LinuxDriver else found

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pasted texts, except ctrl+c; make control characters of pasted texts visible."""
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
        place = self.user_state.get_here("place", "loops")
        self.switch_mode(place if place in PLACES else "loops")
        self._keymap_problems = tuple(problems)
        if problems:
            more = f" (and {len(problems) - 1} more: {self.shown_key('findings')})" if len(problems) > 1 else ""
            self.say(f"{problems[0]}{more}", severity="error")
        self.set_interval(1.0, self._tick)
        self.set_interval(SEEN_SECONDS, self._keep_seen)
        self.call_after_refresh(self._start_engine)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Default values of ralphdeck's own variables until a theme sets them."""
        return self._own_variables

    def _keep_seen(self) -> None:
        """Save the time of this session for other dashboards, and in case this one is killed.

        The time of the previous visit stays: the command line reports changes since then.
        """
        if self.last_visit is not None:
            self.user_state.set_here(LAST_VISIT, iso(self.last_visit) or "")
        self.user_state.set_here(LAST_SEEN, iso(self.project.now()) or "")
        self.user_state.save()

    def _start_engine(self) -> None:
        gc.freeze()  # exclude all objects of the start from collections
        gc.enable()
        self._keep_seen()
        self.run_worker(self.engine.run, thread=True, group="engine", exit_on_error=True)
        self.run_worker(self._vectors.run, thread=True, group="vectors", exit_on_error=True)

    def on_unmount(self) -> None:
        self.engine.stop()
        self._vectors.stop()
        self.user_state.set_here(LAST_VISIT, iso(self.project.now()) or "")
        self.user_state.save()

    def _handle_exception(self, error: Exception) -> None:
        if self._exit:  # a half-composed screen while the app ends: keep the exit code
            log.warning("while leaving: %s", visible("".join(traceback.format_exception(error))))
        else:
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self.panic()

    def panic(self, *renderables: RenderableType) -> None:
        """End after a bug with its text, made safe to print; the log file has it too.

        Args:
            renderables: What Textual would print; used only without an exception.
        """
        if sys.exc_info()[0] is None:
            plain = Console(file=io.StringIO(), width=100, color_system=None)
            with plain.capture() as capture:
                plain.print(*renderables)
            text = visible(capture.get())
        else:
            text = visible(traceback.format_exc())
        log.error("fatal: %s", text)
        self._return_code = 1
        super().panic(Text(text))

    # Messages of the engine

    @on(Engine.Progress)
    def _progressed(self, message: Engine.Progress) -> None:
        self.progress, self.records = (message.done, message.total), message.records
        if (place := self._front()) and message.records is not None:
            for table in place.query(RecordTable):
                if not table.keys:
                    table.redraw()
        self._refresh_frame()

    @on(Engine.Changed)
    def _changed(self) -> None:
        before = self.view
        self.view, delta = self.engine.take()
        loading = self.progress is not None
        if self.view.snapshot.complete:
            self.progress = None
        if self.view.snapshot.complete and loading:
            self.set_timer(AFTER_SECONDS, self._vectors.want)
        elif self.view.snapshot.complete and (delta.patterns or delta.tasks or delta.memory_tasks):
            self._vectors.want()
        if loading:
            for place in self._places():
                place.catch_up(anew=True) if place.is_current else place.changed(_everything(self.view))
        else:
            found = find_notifications(before, self.view, delta, self._mine)
            self._tell(toasts(found, self._mine))
            self._bell.note(found)
            for place in self._places():
                place.changed(delta)
        if isinstance(self.screen, AskLine):
            self.screen.follow(self.view)
        if not self._in_hand:
            self._undoing = False
            if self._undos:
                self._undo(self._undos.popleft())
            if not self._undoing:  # the next requests were not meant for another decision
                self._undos.clear()

    @on(Engine.Decision)
    def _decided(self, message: Engine.Decision) -> None:
        self._in_hand -= 1
        self._mine |= message.made
        if place := self._front():
            place.answered(decided=message.decided is not None)
        if message.decided is None:
            self.say(message.error, severity="warning")
            return
        back = f"; {self.shown_key('undo')} undoes it" if message.decided.decision.verb in WRITING_RECORDS else ""
        for warning in message.decided.warnings:
            self.say(warning, severity="warning")
        self.say(f"{message.decided.summary}{back}")  # last: a new toast replaces older ones

    @on(Engine.Extracted)
    def _extracted(self, message: Engine.Extracted) -> None:
        self._mine |= {decision.id for decision in message.decided.decisions}
        for warning in message.decided.warnings:
            self.say(warning, severity="warning")
        self.say(f"{message.decided.summary}; see Review")

    @on(Engine.Looking)
    def _looking(self) -> None:
        self._refresh_frame()

    @on(Engine.Written)
    def _written(self, message: Engine.Written) -> None:
        self.say(message.text, severity="warning" if message.refused else "information")

    @on(EmbeddingWorker.Progress)
    def _embedding(self, message: EmbeddingWorker.Progress) -> None:
        for place in self._places():
            place.embedding(message.done, message.total)

    @on(Engine.Watching)
    def _watching(self, message: Engine.Watching) -> None:
        before, self.watch_state = self.watch_state, message.state
        if message.state.mode == "polling" and (before is None or before.mode != "polling"):
            self.say(f"Watching by polling: {message.state.reason}", severity="warning")
        self._refresh_frame()

    @on(Engine.Failed)
    def _failed(self, message: Engine.Failed) -> None:
        log.error("%s\n%s", message.text, message.detail)
        self.say(message.text, severity="error")

    def _tell(self, lines: list[tuple[str, SeverityLevel]]) -> None:
        for text, severity in lines[:1]:
            more = f", and {plural(len(lines) - 1, 'more change')}" if len(lines) > 1 else ""
            self.say(f"{text}{more}", severity=severity)

    # Services of screens

    def decide(
        self,
        command: Command,
        seen: ProjectState | None = None,
        *,
        progress: Progress | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Hand a decision to the engine; see `Services.decide`."""
        self._in_hand += 1
        self.engine.decide(command, seen or self.view, progress=progress, done=done)

    def open_record(self, place: str, key: str, *, tab: str = "") -> None:
        """Go to a screen, with the cursor on a record and one tab of its details."""

        def show(screen: BaseScreen) -> None:
            screen.go_to(key)
            if isinstance(screen, ListScreen) and tab:
                screen.show_tab(screen.TABS.index(tab))

        self._lead(place, show)

    def open_filtered(self, place: str, text: str, key: str) -> None:
        """Go to a list with a temporary filter, and the cursor on a record."""

        def show(screen: BaseScreen) -> None:
            if isinstance(screen, ListScreen):
                screen.show_filter(text, key)

        self._lead(place, show)

    def _lead(self, place: str, show: Callable[[BaseScreen], None]) -> None:
        start, front = self.current_mode, self.screen
        link = None
        if start != place:
            link = FollowedLink(start, place, front.again() if isinstance(front, BaseScreen) else None)
            self._trail.append(link)
        self._show(place)
        screen = self.screen

        def follow() -> None:
            if not isinstance(screen, BaseScreen) or (link is not None and link not in self._trail):
                return  # the user has left the screen meanwhile
            if link is None:
                show(screen)
            else:
                screen.be_led(link, show)

        self.call_after_refresh(follow)

    @property
    def link(self) -> FollowedLink | None:
        """The link that led to the screen in front; None if the user went there by key."""
        return self._trail[-1] if self._trail else None

    def go_back(self) -> None:
        """Return along the last link, and restore both screens."""
        link = self._trail.pop()
        self._leave(link, back=True)
        self._show(link.start)
        if link.again is not None:
            self.push_screen(link.again())

    def _leave(self, link: FollowedLink, *, back: bool) -> None:
        stack = self._screen_stacks.get(link.place)
        if stack and isinstance(stack[0], BaseScreen):
            stack[0].leave_link(link, back=back)

    def open_view(self, view: SavedView) -> None:
        """Go to a saved view."""
        self.go(view.place)
        screen = self.screen
        if isinstance(screen, BaseScreen):
            self.call_after_refresh(screen.show_view, view)

    def now(self) -> datetime:
        return self.project.now()

    def preview_loop(self, loop_id: str) -> None:
        """Show in Context what a loop would get."""
        self._preview(self.view.loop(loop_id).task)

    def preview_pattern(self, pattern_id: str) -> None:
        """Show in Context a task that this pattern is about, with the cursor on the pattern."""
        pattern = self.view.pattern(pattern_id)
        self._preview(visible_line(f"{pattern.title} {' '.join(pattern.tags)}", 200), pattern_id)

    def _preview(self, task: str, pattern_id: str = "") -> None:
        from tui.screens.context import ContextScreen

        def show(screen: BaseScreen) -> None:
            if isinstance(screen, ContextScreen):
                screen.preview(task, pattern_id)

        self._lead("context", show)

    def edit_file(self, relative: str) -> None:
        """Open a project file in $EDITOR, with the terminal handed over."""
        try:
            path = self.project.project.inside(relative)
        except RalphdeckError as error:
            self.say(f"Cannot open {relative}: {error}", severity="error")
        else:
            self._edit(path, relative)

    def edit_text(self, text: str) -> str | None:
        """Let the user edit a text in $EDITOR; None if that failed.

        The temporary file lies outside the project, is private to the user, and is removed.
        """
        try:
            with TemporaryDirectory(prefix="ralphdeck-") as folder:
                path = Path(folder) / "text.md"
                path.write_bytes(text.encode("utf-8", "replace"))
                if not self._edit(path, "the text"):
                    return None
                with path.open("rb") as file:
                    return file.read(MOST_TYPED).decode("utf-8", "replace").strip()
        except OSError as error:
            self.say(f"Cannot edit the text: {error}", severity="error")
            return None

    def _edit(self, path: Path, name: str) -> bool:
        """Suspend the dashboard for $EDITOR; returns whether the editor succeeded."""
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        if not command:
            self.say("Set $EDITOR to open files", severity="warning")
            return False
        try:
            with self.suspend():
                done = subprocess.run([*command, str(path)], check=False)  # argv list, never a shell
        except (OSError, SuspendNotSupported) as error:
            self.say(f"Cannot open {name}: {error}", severity="error")
            return False
        return done.returncode == 0

    def keys_of(self, action: str) -> str:
        """The keys of an action with the keymap applied; comma-separated Textual names."""
        return self._keys[action]

    def shown_key(self, action: str) -> str:
        """The first key of an action, as people write it."""
        return key_name(self._keys[action].split(",")[0])

    def _last_decision(self) -> Decision | None:
        """The decision that the undo key would undo."""
        undoable = self.view.snapshot.curation.undoable
        decisions = reversed(self.view.snapshot.decisions)
        return next((decision for decision in decisions if decision.id == undoable[-1]), None) if undoable else None

    @property
    def may_undo(self) -> bool:
        """Whether there is a decision to undo, or one is being written."""
        return bool(self._in_hand or self.view.snapshot.curation.undoable)

    @property
    def is_deciding(self) -> bool:
        """Whether the engine has decisions left to write."""
        return self._in_hand > 0

    def undo_hint(self) -> str:
        """The label of the undo key; "" if the newest decision is another person's, which needs a question first."""
        last = self._last_decision()
        return f"undo {verb_text(last)}" if last is not None and last.by == self.project.by else ""

    def top_items(self, place: str) -> tuple[list[Item], list[Item]]:
        """The items of the top bar, left and right."""
        name = self.project.project.project.name
        left, right = list[Item](), list[Item]()
        for fit in frame.FITS:
            places = frame.places(
                name,
                place,
                len(self.view.queue),
                fit,
                is_counting=self.engine.is_looking,
                under=self.current_mode,
            )
            pulse = frame.watch_status(
                self.view.snapshot,
                self.progress,
                self.watch_state,
                self.glyphs,
                detail=fit.detail,
                key=self.shown_key("findings"),
                is_readonly=self.project.is_readonly,
                records=self.records,
            )
            left = [Item(content, value) for content, value in frame.in_sight(places, self.size.width)]
            right = [Item(pulse, "findings")] if pulse else []
            if TopBar.cells(left + right) <= self.size.width:
                break
        return left, right

    # Actions of every screen

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action; where the screen in front cannot carry it out, say why."""
        id = action_id(action) if isinstance(action, str) else ""
        screen = self._front()
        if not id or screen is None or default_namespace not in (None, self, screen):
            return await super().run_action(action, default_namespace, namespaces)
        if (reason := screen.reason_against(id)) is not None:
            if id != "back" and not id.startswith("go_"):  # these need no explanation
                self.say(reason, severity="warning")
        elif id in DECIDING and self.jump_guard.blocks(self.key_queue.typed_at):
            key = self.shown_key(id)
            self.say(f"{key} ignored: this screen has just appeared; press it again", severity="warning")
        else:
            await super().run_action(action, default_namespace, namespaces)
            screen.refresh_frame()
        return True

    def action_go(self, place: str) -> None:
        self.go(place)

    def action_undo(self) -> None:
        """Undo the newest decision; another person's only after a question."""
        screen = self.screen
        self._undo(screen.undone if isinstance(screen, BaseScreen) else lambda decision: None)

    def _undo(self, undone: Callable[[Decision], None]) -> None:
        """Undo the newest decision, or wait until the engine has written those on their way.

        Args:
            undone: Called with the decision when its undo is on its way.
        """
        if self._in_hand:
            self._undos.append(undone)
            return
        last = self._last_decision()
        if last is None or last.by == self.project.by:
            if last is not None:
                undone(last)
            self._undoing = True
            self.decide(Undo())
            return
        seen = self.view

        def answered(yes: bool | None) -> None:
            if yes:
                undone(last)
                self._undoing = True
                self.decide(Undo(decision_id=last.act), seen)

        title = f"Undo {visible_line(last.by, 30)}'s decision?"
        what = f"{verb_text(last)} {subject_text(last)}: {visible_line(last.reason, 200)}"
        self.push_screen(Confirm(Content(title), Content(what.removesuffix(": ")), verb="undo"), answered)

    def action_redo(self) -> None:
        self.decide(Redo())

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        screen = self.screen
        if isinstance(screen, BaseScreen):
            export_picture(screen)

    def action_views(self) -> None:
        screen = self.screen
        if not isinstance(screen, BaseScreen):
            return

        def chosen(view: SavedView | None) -> None:
            if view is not None:
                self.open_view(view)

        self.push_screen(ViewList(self.user_state, screen.present_view()), chosen)

    def action_palette(self) -> None:
        self.action_command_palette()

    def action_command_palette(self) -> None:
        """Open the command palette, unless it is open."""
        if not any(isinstance(screen, Palette) for screen in self.screen_stack):
            self.push_screen(Palette(id="--command-palette"))

    def action_help(self) -> None:
        screen = self.screen
        if isinstance(screen, BaseScreen):
            self.push_screen(Help(topic_of(screen)))

    def action_past(self) -> None:
        from tui.screens.compare import CompareScreen

        if isinstance(self.screen, CompareScreen):
            self.pop_screen()
        else:
            self.push_screen(CompareScreen())

    def action_what_if(self) -> None:
        from tui.screens.what_if import WhatIfScreen

        self.push_screen(WhatIfScreen())

    def action_findings(self) -> None:
        keymap = [Content.styled(visible_line(problem, 300), "$error") for problem in self._keymap_problems]
        self.push_screen(FindingsDialog([*keymap, *findings_lines(self.view)]))

    async def action_quit(self) -> None:
        """Leave the screen that lies over another one, else the dashboard."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.exit()

    def get_system_commands(self, screen: Screen[Any]) -> list[SystemCommand]:
        """No commands of Textual's own: the registry has them all."""
        return []

    def go(self, place: str) -> None:
        """Switch to a screen and remember it; close overlays and forget the links that were followed."""
        while self._trail:
            self._leave(self._trail.pop(), back=False)
        self._show(place)

    def _show(self, place: str) -> None:
        before = self.screen
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.user_state.set_here("place", place)
        self.switch_mode(place)
        if self.screen is not before:
            self.jump_guard.arm()
            self.call_after_refresh(self.jump_guard.arm)  # the user can react only to what is drawn

    # Plumbing

    def _front(self) -> BaseScreen | None:
        """The screen in front, once it is composed; None while a dialog is open or the app starts or ends."""
        try:
            screen = self.screen
        except ScreenStackError:
            return None
        return screen if isinstance(screen, BaseScreen) and screen.whole else None

    def _refresh_frame(self) -> None:
        if place := self._front():
            place.refresh_frame()

    def _tick(self) -> None:
        if isinstance(self._driver, ResilientDriver) and self._driver.is_gone:
            self.exit(return_code=128 + signal.SIGHUP)
        self._bell.call_if_due()
        if place := self._front():
            place.tick()


if TYPE_CHECKING:  # the app has to offer everything that screens use
    _SERVICES: type[Services] = RalphdeckApp


def _everything(view: ProjectState) -> Delta:
    return Delta(
        frozenset(view.snapshot.patterns),
        frozenset(view.snapshot.loops),
        frozenset(view.snapshot.reflections),
        tasks=frozenset(view.snapshot.tasks),
        attempts=frozenset(view.snapshot.attempts),
        debug_sessions=frozenset(view.snapshot.debug_sessions),
        events=True,
        decisions=True,
        findings=True,
    )


def run(
    deck: Project,
    *,
    state_file: Path,
    keymap_file: Path,
    remembered_as: str,
    is_fresh: bool = False,
    theme: str | None = None,
) -> int:
    """Run the dashboard; returns the exit code of the process.

    Args:
        deck: The project; not loaded yet.
        state_file: The user state.
        keymap_file: The user's key bindings.
        remembered_as: The name under which this project's state is stored.
        is_fresh: Discard that state first: it belongs to another project of the same name.
        theme: Name of the first theme; by default the last one used.
    """
    user_state = UserState(state_file, remembered_as)
    user_state.load()
    if is_fresh:
        user_state.forget_here()
    app = RalphdeckApp(deck, user_state, keymap_file, extracts=True, theme=theme)
    sys.setswitchinterval(SWITCH_SECONDS)
    app.run()
    _let_go_of_a_lost_terminal()
    return app.return_code or 0


def _let_go_of_a_lost_terminal() -> None:
    """Keep the exit code when Python cannot flush to a terminal that is gone."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
