"""The dashboard of a project: start, end, engine, decisions, team and top bar."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from core.base.errors import DamagedError, RalphdeckError
from core.base.formatting import LAST_SEEN, LAST_VISIT
from core.base.text import plural, visible, visible_line
from core.files.user_files import CONTINUED, SINCE
from core.records.decisions import Decision, Verb, is_same_user
from core.records.snapshot import UNCHECKED
from core.records.times import iso
from core.trust.projects import find_answer, is_trusted
from tui.engine import AFTER_SECONDS, EmbeddingWorker, Engine
from tui.kit.actions import DECIDING, PLACES, action_id, load_keymap
from tui.kit.bars import Item, TopBar
from tui.kit.record_table import RecordTable
from tui.kit.terminal import KeyQueue, ResilientDriver, flush_output
from tui.kit.user_state import UserState
from tui.screens import frame
from tui.screens.base_screen import MOVES, BaseScreen, OpeningScreen
from tui.screens.frame import arrival_text, top_text, trust_mark
from tui.shell import Shell

if TYPE_CHECKING:
    from textual.actions import ActionParseResult
    from textual.dom import DOMNode
    from textual.screen import Screen

    from core.base.paths import ProjectPaths
    from core.decisions.case import Progress
    from core.decisions.commands import Command
    from core.files.watcher import WatchState
    from core.index.project_state import ProjectState
    from core.project.kept_project import KeptProject
    from core.project.project import Project
    from core.project.trust import Arrivals
    from core.records.snapshot import Snapshot
    from core.records.team import Lease, TeamStatus
    from tui.palette import PaletteIndex
    from tui.screens.trust import Choice

log = logging.getLogger("ralphdeck")

LEAVE: Final = "ctrl+c"
SHOWN_EARLY: Final = frozenset({"now", "loops", "patterns"})  # screens that need no more than a `KeptProject`
SESSION_SECONDS: Final = 60.0
DRAW_SECONDS: Final = 2.0  # Maximum seconds until the last records are drawn, before opening takes the processor.
AWAY_SECONDS: Final = 600.0
"""Seconds without a key or the mouse after which an open question is free for other members."""
WRITING_RECORDS: Final = frozenset({Verb.EXTRACT, Verb.MERGE, Verb.ARCHIVE, Verb.IMPORT})
"""Verbs that add or remove whole records: their notice names the undo key."""
SWITCH_SECONDS: Final = 0.001  # Maximum seconds that the engine thread runs before the screen gets a turn.


def screen_class(name: str) -> type[BaseScreen]:
    """Import a screen class on demand: `tui.screens.loops.LoopsScreen` for `loops`."""
    found: type[BaseScreen] = getattr(import_module(f"tui.screens.{name}"), f"{name.title()}Screen")
    return found


def _make(place: str) -> BaseScreen:
    return screen_class(place)()


class RalphdeckApp(Shell, inherit_bindings=False):
    """The dashboard of a project that a thread loads after the first frame.

    `open_project` opens the project in the folders `paths`; it imports most of the program. `open_kept` returns what to
    show until then, if anything. `first_place` is the first screen. `searches` is explained in `Engine`, the others in
    `Shell`. If `unattended`, it extracts from loops that end, and notifies the user's command. `view` is the
    newest state of the project, `last_visit` the time of the previous dashboard session on it, if known.
    """

    TITLE = "ralphdeck"
    BINDINGS: ClassVar[list[BindingType]] = [Binding(LEAVE, "app.copy_or_quit", "quit", show=False, priority=True)]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {name: partial(_make, name) for name in PLACES}

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
    project: Project
    view: ProjectState
    team: TeamStatus | None = None
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
        unattended: bool = False,
        theme: str | None = None,
        first_place: str = "now",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(user_state, theme, clock)
        self._first_place = first_place
        self.open_project = open_project
        self.open_kept = open_kept
        self._paths = paths
        self.is_open = False  # Whether the project is open, with `engine` and `view`.
        self._is_shown = False  # whether there is a `view`
        self.is_trusted = True  # whether agents may get something from the project
        self._is_drawn = threading.Event()
        self.is_view_unusable = False  # whether the app ended because the index is damaged
        self.opening_error: Exception | None = None
        self._searches, self._unattended = searches, unattended
        self.last_visit: datetime | None = None
        self.jumps: PaletteIndex | None = None
        self._keymap_file = keymap_file
        self._keymap_problems: tuple[str, ...] = ()
        self.progress: tuple[int, int] | None = (0, 0)  # files read, and files, during the first load
        self.bytes_read: tuple[int, int] | None = None
        self._counted: tuple[Snapshot | None, frame.Counts] = None, frame.Counts(0, 0, 0)
        self.watch_state: WatchState | None = None
        self._question = ""  # the one that is open here, for the team
        self._acted = 0.0  # monotonic time of the last key or movement of the mouse
        self._mine: set[str] = set()
        self._pending_decisions = 0
        """Number of decisions that the engine has not answered yet."""
        self._pending_undos: deque[Callable[[Decision], None]] = deque()
        """Undo requests made before the engine answered: they may mean a pending decision."""
        self._undoing = False
        """Whether the engine is writing an undo; keys typed meanwhile wait for its result."""
        self.key_queue = KeyQueue(self, lambda: not self.is_open or bool(self._pending_undos) or self._undoing, clock)

    # Start and end

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pastes except ctrl+c; escape control characters in pastes."""
        if isinstance(event, events.InputEvent):
            self._note_return()
            self._acted = monotonic()
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

    def _note_return(self) -> None:
        """Begin a new visit after a long absence, so that Now shows what happened since."""
        away = timedelta(seconds=monotonic() - self._acted)
        if self.is_open and self._acted and away >= CONTINUED:
            self.last_visit = self.project.now() - away
            self.user_state.set_visit(SINCE, iso(self.last_visit) or "")
            for place in self._places():
                place.returned()

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
        return OpeningScreen(self._first_place)

    def _open(self) -> None:
        """Open the project; runs in a thread worker."""
        try:
            kept = self.open_kept()
            if kept is not None and self._first_place in SHOWN_EARLY:
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
        self.last_visit = self.user_state.begin_visit(self.project.now())
        self.view = message.project.view
        self._is_shown = True
        await self.switch_mode(self._first_place)
        if (place := self._front()) is not None:
            place.when_shown(self._is_drawn.set)

    def handle_error(self, error: Exception) -> None:
        """End to restart if the index is damaged, as any error before its check may mean."""
        is_unchecked = self._is_shown and self.view.snapshot.as_of is not None
        if not self.is_ending and (is_unchecked or isinstance(error, DamagedError)):
            self.is_view_unusable = True
            self._is_drawn.set()
            self.exit()
        super().handle_error(error)

    @on(Opened)
    def _opened(self, message: Opened) -> None:
        """Show the first screen and start the threads that load the project."""
        gc.freeze()  # exclude all objects of the start from collections
        gc.enable()
        self.project = project = message.project
        if not self._is_shown:
            self.last_visit = self.user_state.begin_visit(project.now())
        self.view = project.view
        self.engine = Engine(project, self, searches=self._searches, extracts=self._unattended)
        if self._unattended:
            from core.show.needs import Notifier

            self.engine.report_needs = Notifier.for_loop(project.project.project)
        self._vectors = EmbeddingWorker(project, self)
        self.is_open = True
        self.is_trusted = is_trusted(project.project)
        if self._is_shown:
            for place in self._places():
                place.refresh_frame()
        else:
            self._is_shown = True
            self.switch_mode(self._first_place)
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
        if not self.screen_stack:
            return  # the app is closing
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
            from tui.screens.frame import toasts

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
        """Ask about a project without an answer of the user, once its files are read.

        Someone who answers a card of Review is not interrupted: the top bar shows that the project is not trusted.
        """
        from core.project.trust import find_arrivals

        is_open_question = not self.is_trusted and find_answer(self.project.project) is None
        if not is_open_question or len(self.screen_stack) > 1 or self.current_mode == "review":
            return
        if (arrivals := find_arrivals(self.project)).has_records:
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

    # The top bar

    @on(Engine.Progress)
    def _progressed(self, message: Engine.Progress) -> None:
        self.progress = message.done, message.total
        if place := self._front():
            for table in place.query(RecordTable):
                if not table.keys:
                    table.redraw()
            place.refresh_top()

    @on(Engine.Reading)
    def _reading(self, message: Engine.Reading) -> None:
        before, self.bytes_read = self.bytes_read, (message.done, message.total) if message.total else None
        if before != self.bytes_read:
            self._refresh_frame()

    @on(Engine.Watching)
    def _watching(self, message: Engine.Watching) -> None:
        before, self.watch_state = self.watch_state, message.state
        if message.state.mode == "polling" and (before is None or before.mode != "polling"):
            self.say(f"Watching by polling: {message.state.reason}", severity="warning")
        self._refresh_frame()

    @on(Engine.Searching)
    def _refresh_frame(self) -> None:
        if place := self._front():
            place.refresh_frame()

    def top_items(self, place: str) -> tuple[list[Item], list[Item]]:
        name = self._paths.project.name
        view = self.view if self._is_shown else None
        if view is not None and view.snapshot is not self._counted[0]:
            self._counted = view.snapshot, frame.count_status(view.snapshot)
        left, right = list[Item](), list[Item]()
        for fit in frame.FITS:
            places = frame.places(
                name,
                place,
                view.pending_count if view is not None else 0,
                fit,
                is_counting=self._is_shown and self.is_counting,
                under=self.current_mode,
            )
            pulse = frame.watch_status(
                self._counted[1],
                self.progress,
                self.watch_state,
                self.glyphs,
                detail=fit.detail,
                key=self.shown_key("findings"),
                is_readonly=self.is_open and self.project.is_readonly,
                bytes_read=self.bytes_read,
                as_of=view.snapshot.as_of if view is not None else None,
            )
            left = [Item(content, value) for content, value in frame.fitting_items(places, self.size.width)]
            together = top_text(self.team, self.project.now(), fit.team) if self.team is not None else Content("")
            if together and pulse and fit.detail < frame.Detail.BRIEF:
                together = together.append("  ")
            doubt = (
                trust_mark(view, self.shown_key("trust"), is_trusted=self.is_trusted)
                if self.is_open and view is not None
                else Content("")
            )
            right = [Item(doubt, "trust")] * bool(doubt)
            right += [Item(together, "help")] * bool(together) + [Item(pulse, "findings")] * bool(pulse)
            if TopBar.cells(left + right) <= self.size.width:
                break
        return left, right

    @property
    def is_counting(self) -> bool:
        """Whether searches may still find review questions."""
        return self.view.is_count_open or (self.is_open and self.engine.is_searching)

    def forget_check(self) -> None:
        """Remove what says that the files are still being checked."""
        self.forget_notice(UNCHECKED)
        if self._front() is None and len(self.screen_stack) > 1:
            from tui.screens.dialogs import Help
            from tui.screens.help import topic_of

            below, screen = self.screen_stack[-2:]
            if isinstance(screen, Help) and isinstance(below, BaseScreen):
                screen.show_topic(topic_of(below))

    # The team, and the question that is open here

    @on(Engine.TeamChanged)
    def _team_changed(self) -> None:
        if (follower := self.engine.team) is None:
            return
        before, self.team = self.team, follower.status
        self.update_lease()
        known = before.problem if before is not None else ""
        if self.team.problem and self.team.problem != known:
            self.say(f"Offline: {self.team.problem}", severity="error" if self.team.needs_person else "warning")
        if place := self._front():
            place.team_changed()

    def hold_question(self, question: str) -> None:
        """Show the members of the team that a question is open here; "" for none."""
        self._question = question
        self.update_lease()

    def update_lease(self) -> None:
        """Hold the open question unless the user has been away for some time."""
        if self.is_open and self.engine.team is not None:
            is_here = monotonic() - self._acted < AWAY_SECONDS
            self.engine.team.hold(self._question if is_here else "")

    def lease_on(self, question: str) -> Lease | None:
        """Return who else has a question open, or None."""
        return self.engine.team.holder(question) if self.team is not None and self.engine.team is not None else None

    # Decisions

    def decide(
        self,
        command: Command,
        seen: ProjectState | None = None,
        *,
        progress: Progress | None = None,
        done: Callable[[], None] | None = None,
    ) -> None:
        self._pending_decisions += 1
        self.engine.decide(command, seen or self.view, progress=progress, done=done)

    @on(Engine.Decision)
    def _decided(self, message: Engine.Decision) -> None:
        self._pending_decisions -= 1
        self._mine |= message.made
        if place := self._front():
            place.answered(decided=message.decided is not None)
        if message.decided is None:
            self.say(message.error, severity="warning")
            return
        back = f"; {self.shown_key('undo')} undoes it" if message.decided.decision.verb in WRITING_RECORDS else ""
        for warning in message.decided.warnings:
            self.say(warning, severity="warning")
        self.say(f"{message.decided.summary}{back}")

    def _undo_waiting(self) -> None:
        """Run the next waiting undo if the engine has answered all decisions."""
        if not self._pending_decisions:
            self._undoing = False
            if self._pending_undos:
                self._undo(self._pending_undos.popleft())
            if not self._undoing:  # the next requests were not meant for another decision
                self._pending_undos.clear()

    def _last_decision(self) -> Decision | None:
        from core.decisions.undo import newest_undoable

        snapshot = self.view.snapshot
        return newest_undoable(snapshot.curation, snapshot.decisions) if snapshot.curation.undoable else None

    @property
    def may_undo(self) -> bool:
        """Whether there is a decision to undo, including one that is being written."""
        return bool(self._pending_decisions or self.view.snapshot.curation.undoable)

    @property
    def is_deciding(self) -> bool:
        return self._pending_decisions > 0

    def undo_hint(self) -> str:
        """Return the label of the undo key; "" if the newest decision is another user's."""
        from core.decisions.case import verb_text

        last = self._last_decision()
        return f"undo {verb_text(last)}" if last is not None and is_same_user(last.by, self.project.by) else ""

    def action_undo(self) -> None:
        """Undo the newest decision; ask first if another person made it."""
        screen = self.screen
        self._undo(screen.undone if isinstance(screen, BaseScreen) else lambda decision: None)

    def _undo(self, undone: Callable[[Decision], None]) -> None:
        """Call `undone` and undo the newest decision, once all decisions are written."""
        from core.decisions import commands
        from core.decisions.case import subject_text, verb_text
        from tui.screens.dialogs import Confirm

        if self._pending_decisions:
            self._pending_undos.append(undone)
            return
        last = self._last_decision()
        if last is None or is_same_user(last.by, self.project.by):
            if last is not None:
                undone(last)
            self._undoing = True
            self.decide(commands.Undo())
            return
        seen = self.view

        def answered(yes: bool | None) -> None:
            if yes:
                undone(last)
                self._undoing = True
                self.decide(commands.Undo(decision_id=last.act), seen)

        title = f"Undo {visible_line(last.by, 30)}'s decision?"
        what = f"{verb_text(last)} {subject_text(last)}: {visible_line(last.reason, 200)}"
        self.push_screen(Confirm(Content(title), Content(what.removesuffix(": ")), verb="undo"), answered)

    def action_redo(self) -> None:
        from core.decisions.commands import Redo

        self.decide(Redo())

    # Actions

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, or show the reason why this is not possible now."""
        id = action_id(action) if isinstance(action, str) else ""
        screen = self._front()
        if not id or screen is None or default_namespace not in (None, self, screen):
            return await super().run_action(action, default_namespace, namespaces)
        if not self.is_open:
            return True  # a click; keys wait
        if (reason := screen.reason_against(id)) is not None:
            if id != "back" and not id.startswith("go_") and id not in MOVES:  # these need no explanation
                self.say(reason, severity="warning")
        elif id in DECIDING and self.jump_guard.blocks(self.key_queue.typed_at):
            key = self.shown_key(id)
            self.say(f"{key} ignored: this screen has just appeared; press it again", severity="warning")
        else:
            await super().run_action(action, default_namespace, namespaces)
            screen.refresh_frame()
        return True

    def action_trust(self) -> None:
        """Show what the project brings from elsewhere, and carry out the user's choice."""
        from core.project.trust import find_arrivals

        if arrivals := find_arrivals(self.project):
            self.ask_about(arrivals)
        else:
            self.say("This project is trusted, and nothing has come from elsewhere since")

    def ask_about(self, arrivals: Arrivals) -> None:
        """Ask whether agents may get what came from elsewhere."""
        from tui.screens.trust import TrustDialog, answer

        if self.project.is_readonly:
            self.say("Read-only: nothing can be decided", severity="warning")

        def carry_out(choice: Choice | None) -> None:
            if choice is not None:
                self.engine.write(partial(answer, arrivals, choice))

        self.push_screen(TrustDialog(arrivals, self.view), carry_out)

    def action_findings(self) -> None:
        from tui.screens.dialogs import FindingsDialog
        from tui.screens.document import heading
        from tui.screens.frame import findings_lines

        keymap = [Content.styled(visible_line(problem, 300), "$error") for problem in self._keymap_problems]
        past = [Content(notice.text) for notice in reversed(self.past_notices)]
        notices = [*heading("Newest notices of this session"), *past] if past else []
        self.push_screen(FindingsDialog([*keymap, *findings_lines(self.view), *notices]))

    def edit_file(self, relative: str) -> None:
        """Open a project file in $EDITOR, with the terminal handed over."""
        try:
            path = self.project.project.inside(relative)
        except RalphdeckError as error:
            self.say(f"Cannot open {relative}: {error}", severity="error")
        else:
            self.edit_path(path, relative)

    def preview_loop(self, loop_id: str) -> None:
        """Show the context that a loop would get, on the Context screen."""
        self._preview(self.view.loop(loop_id).task)

    def preview_pattern(self, pattern_id: str) -> None:
        """Show the context of a task that a pattern is about, on the Context screen."""
        pattern = self.view.pattern(pattern_id)
        self._preview(visible_line(f"{pattern.title} {' '.join(pattern.tags)}", 200), pattern_id)

    def _preview(self, task: str, pattern_id: str = "") -> None:
        from tui.screens.context import ContextScreen

        def show(screen: BaseScreen) -> None:
            if isinstance(screen, ContextScreen):
                screen.preview(task, pattern_id)

        self._lead("context", show)

    def now(self) -> datetime:
        return self.project.now()

    def _tick(self) -> None:
        if isinstance(self.terminal, ResilientDriver) and self.terminal.is_closed:
            self.exit(return_code=128 + signal.SIGHUP)
        self._bell.call_if_due()
        self.update_lease()
        if place := self._front():
            place.tick()


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
    """Run the dashboard; return the exit code. Raises what `open_project` raises.

    `remembered_as` is the name of this project's state in `state_file`. `is_fresh` discards that state first: it
    belongs to another project of the same name.
    """
    user_state = UserState(state_file, remembered_as)
    user_state.load()
    if is_fresh:
        user_state.forget_here()
    sys.setswitchinterval(SWITCH_SECONDS)
    for kept in (open_kept, lambda: None):
        app = RalphdeckApp(
            open_project, paths, user_state, keymap_file, open_kept=kept, unattended=not is_fresh, theme=theme
        )
        app.run()
        if not app.is_view_unusable:
            break
        from core.index.database import delete  # imports SQLite, which the first frame does not need

        delete(paths.project)
    flush_output()
    if app.opening_error is not None:
        raise app.opening_error
    return app.return_code or int(app.is_view_unusable)
