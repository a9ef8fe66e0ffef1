"""Part of the app that sends decisions to the engine: decide, undo and redo."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual import on
from textual.content import Content

from core.base.text import visible_line
from core.records.decisions import Decision, Verb
from tui.engine import Engine
from tui.navigation import NavigationApp
from tui.screens.base_screen import BaseScreen

if TYPE_CHECKING:
    from core.curation.commands import Command
    from core.curation.decision_writer import Progress
    from core.project.project import Project
    from core.state.project_state import ProjectState
    from tui.state.user_state import UserState

WRITING_RECORDS: Final = frozenset({Verb.EXTRACT, Verb.MERGE, Verb.ARCHIVE, Verb.IMPORT})
"""Verbs that add or remove whole records: their toast names the undo key."""


class DecisionApp(NavigationApp, inherit_bindings=False):
    project: Project
    engine: Engine

    def __init__(self, user_state: UserState, theme: str | None) -> None:
        super().__init__(user_state, theme)
        self._mine: set[str] = set()
        self._pending_decisions = 0
        """Number of decisions that the engine has not answered yet."""
        self._pending_undos: deque[Callable[[Decision], None]] = deque()
        """Undo requests made before the engine answered: they may mean a pending decision."""
        self._undoing = False
        """Whether the engine is writing an undo; keys typed meanwhile wait for its result."""

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
        self.say(f"{message.decided.summary}{back}")  # last: a new toast replaces older ones

    def _undo_waiting(self) -> None:
        """Run the next waiting undo if the engine has answered all decisions."""
        if not self._pending_decisions:
            self._undoing = False
            if self._pending_undos:
                self._undo(self._pending_undos.popleft())
            if not self._undoing:  # the next requests were not meant for another decision
                self._pending_undos.clear()

    def _last_decision(self) -> Decision | None:
        from core.curation.undo import newest_undoable

        snapshot = self.view.snapshot
        return newest_undoable(snapshot.curation, snapshot.decisions) if snapshot.curation.undoable else None

    @property
    def may_undo(self) -> bool:
        return bool(self._pending_decisions or self.view.snapshot.curation.undoable)

    @property
    def is_deciding(self) -> bool:
        return self._pending_decisions > 0

    def undo_hint(self) -> str:
        from core.curation.decision_text import verb_text

        last = self._last_decision()
        return f"undo {verb_text(last)}" if last is not None and last.by == self.project.by else ""

    def action_undo(self) -> None:
        """Undo the newest decision; ask first if another person made it."""
        screen = self.screen
        self._undo(screen.undone if isinstance(screen, BaseScreen) else lambda decision: None)

    def _undo(self, undone: Callable[[Decision], None]) -> None:
        """Call `undone` and undo the newest decision, once all decisions are written."""
        from core.curation import commands
        from core.curation.decision_text import subject_text, verb_text
        from tui.screens.dialogs import Confirm

        if self._pending_decisions:
            self._pending_undos.append(undone)
            return
        last = self._last_decision()
        if last is None or last.by == self.project.by:
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
        from core.curation.commands import Redo

        self.decide(Redo())
