"""Dialog that applies one decision to many patterns, with one preview and one undo."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from core.base.text import plural
from core.curation.commands import bulk
from core.forecast.forecast import BulkForecast, forecast_bulk
from tui.messages import NewestMessage
from tui.present import bulk as present
from tui.screens.dialogs import CONFIRM, Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.records.decisions import Verb, VerbInfo
    from core.state.project_state import ProjectState

STEP_SECONDS: Final = 0.05  # seconds between two progress messages
LONGEST: Final = 500  # characters of a reason


class BulkDialog(Dialog[bool]):
    """Previews and makes a decision. The result is True if it was started. `info` has the texts of the verb."""

    ABOUT = "Shows the number of changes first. Each pattern gets its own entry in the log."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go", CONFIRM, tooltip="Decide about all of these patterns"),
        Binding("escape", "leave", "cancel", tooltip="Close; a decision that has started continues"),
    ]

    @dataclass(eq=False)
    class Stepped(NewestMessage):
        """Progress: the decision has been made for some of the patterns."""

        done: int
        total: int

    class Ended(Message):
        """The decision was written or refused. The app reports the result."""

    def __init__(self, verb: Verb, subjects: Sequence[str], info: VerbInfo) -> None:
        self._info = info
        self._many = plural(len(subjects), "pattern")
        title = Content(f"{info.word.capitalize()} {self._many}?")
        super().__init__(title, Content(f"{info.effect} One undo reverses it for all patterns."), verb=info.word)
        self._verb = verb
        self._subjects = tuple(subjects)
        self._seen: ProjectState | None = None
        self._begun = False

    def compose_body(self) -> ComposeResult:
        yield Static(Content(""), id="bulk-preview")
        if self._info.asks:
            yield Input(placeholder=self._info.asks, max_length=LONGEST)
        yield Static(Content(""), id="bulk-progress")

    def on_mount(self) -> None:
        """Start computing the forecast. The user may decide before it is ready."""
        self._show(None)
        self._seen = self.services.view
        self.run_worker(self._forecast(), group="bulk", exclusive=True)

    async def _forecast(self) -> None:
        worker, project = get_current_worker(), self.services.project
        compute = partial(forecast_bulk, project, self._verb, self._subjects, lambda: worker.is_cancelled)
        forecast = await asyncio.to_thread(compute)
        if forecast is not None and not self._begun and self.is_current:
            self._show(forecast)

    def _show(self, forecast: BulkForecast | None) -> None:
        self.query_one("#bulk-preview", Static).update(present.preview(forecast, self.services.glyphs))

    @on(Input.Submitted)
    def action_go(self) -> None:
        """Make the decision, or ask for the reason if it is required and missing."""
        if self._begun:
            return
        reason = ""
        if self._info.asks:
            line = self.query_one(Input)
            reason = line.value.strip()
            if not reason:
                self.show_keys("Type a text first: it is stored with each decision.")
                return
            line.display = False
        self._begun = True
        self.workers.cancel_group(self, "bulk")
        self.query_one(".dialog--title", Static).update(Content(f"{self._info.word.capitalize()}: {self._many}"))
        self._show_progress(0, len(self._subjects))
        self.focus()
        keys = Content.from_markup("[$accent b]esc[/] continue in the background; a toast reports the result")
        self.query_one(".dialog--keys", Static).update(keys)
        last = monotonic()

        def progress(done: int, total: int) -> None:  # in the engine's thread
            nonlocal last
            if done == total or monotonic() - last > STEP_SECONDS:
                last = monotonic()
                self.post_message(self.Stepped(done, total))

        def done() -> None:
            self.post_message(self.Ended())

        command = bulk(self._verb, self._subjects, reason)
        self.services.decide(command, self._seen, progress=progress, done=done)

    @on(Stepped)
    def _stepped(self, message: Stepped) -> None:
        self._show_progress(message.done, message.total)

    def _show_progress(self, done: int, total: int) -> None:
        self.query_one("#bulk-progress", Static).update(present.progress(done, total, self.services.glyphs))

    @on(Ended)
    def _ended(self) -> None:
        if self.is_current:
            self.dismiss(True)

    def action_leave(self) -> None:
        """Close the dialog. A decision that has started continues in the background."""
        self.dismiss(self._begun)
