"""Dialogs that preview a decision about many patterns, extraction or delivery."""

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

from core.base.errors import RalphdeckError
from core.base.pattern_titles import pattern_title
from core.base.text import plural, visible_line
from core.decisions.commands import Extract, bulk
from core.project.forecast import BulkForecast, Forecast, forecast_bulk
from core.project.reader import find_delivery
from core.show.loops import count_offered, proposal_blocks
from core.show.pages.loops import delivery_blocks, delivery_text
from tui.kit.drawing import NewestMessage
from tui.kit.looks import Glyphs, draw_state
from tui.screens.dialogs import CONFIRM, Dialog, LongTextDialog, PreviewDialog
from tui.screens.document import bar, document_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.index.project_state import ProjectState
    from core.records.decisions import Verb, VerbInfo
    from core.records.extractions import Extraction
    from core.records.loops import Loop
    from core.sources.adapters.contract import Delivery
    from tui.screens.base_screen import BaseScreen


STEP_SECONDS: Final = 0.05  # seconds between two progress messages
LONGEST: Final = 500  # characters of a reason
MOST_TITLES: Final = 5
MAX_TITLE: Final = 70  # characters
MAX_SHORT_TITLE: Final = 28
TALL_LINES: Final = 30  # lines of the screen from which on each title has a line
MAX_REASONS: Final = 3
BAR_CELLS: Final = 40


def name_patterns(titles: Sequence[str], left_out: int, cursor: str, *, is_tall: bool) -> Content:
    """Name the first `titles`, how many are `left_out`, and `cursor` if not chosen.

    A tall screen has a line for each title; a low one has room for a paragraph of shorter ones.
    """
    limit, gap = (MAX_TITLE, "\n  ") if is_tall else (MAX_SHORT_TITLE, " · ")
    parts = [visible_line(title, limit) for title in titles]
    parts += [f"and {left_out:,} more"] * bool(left_out)
    note = f"\nNot selected, though under the cursor: {visible_line(cursor, MAX_SHORT_TITLE)}" if cursor else ""
    return Content.assemble(f"  {gap.join(parts)}", (note, "$warning"))


def preview(forecast: BulkForecast | None, glyphs: Glyphs) -> Content:
    """Return the changes: pattern states, skipped patterns and injected contexts."""
    if forecast is None:
        return Content.styled("Computing the forecast…", "$quiet")
    lines = [_turned(forecast, glyphs), *_refused(forecast)]
    if forecast.decided:
        lines.append(_contexts(forecast.effect, glyphs))
    return Content("\n").join(lines)


def _turned(forecast: BulkForecast, glyphs: Glyphs) -> Content:
    turning = sum(count for _, _, count in forecast.turned)
    parts = [f"{turning:,} of {plural(forecast.asked, 'pattern')} {'changes' if turning == 1 else 'change'} state"]
    removed = len(forecast.effect.removed)
    parts += [f"{removed:,} {'leaves' if removed == 1 else 'leave'} the registry"] * bool(removed)
    stay = forecast.decided - turning - removed
    parts += [f"{stay:,} {'keeps' if stay == 1 else 'keep'} the state"] * (stay > 0)
    turns: list[Content] = []
    for before, after, count in forecast.turned:
        states = draw_state(before, glyphs), (f" {glyphs.arrow} ", "$quiet"), draw_state(after, glyphs)
        turns.append(Content.assemble(f"\n  {count:>6,}  ", *states))
    return Content.assemble((", ".join(parts), "bold"), *turns)


def _refused(forecast: BulkForecast) -> list[Content]:
    if not forecast.refused:
        return []
    count = sum(number for _, number in forecast.refused)
    lines = [f"\n  {number:>6,}  {visible_line(why, 120)}" for why, number in forecast.refused[:MAX_REASONS]]
    more = sum(number for _, number in forecast.refused[MAX_REASONS:])
    lines += [f"\n  {more:>6,}  for other reasons"] * bool(more)
    return [Content.styled(f"{count:,} skipped{''.join(lines)}", "$warning")]


def _contexts(forecast: Forecast, glyphs: Glyphs) -> Content:
    if not (forecast.loops or forecast.paused or forecast.tasks):
        return Content.styled("No running loop and no task: no injected text to compare.", "$quiet")
    changed_loops, changed_paused = forecast.changed_of("loop"), forecast.changed_of("paused")
    loops = f"{changed_loops} of {plural(forecast.loops, 'running loop')}"
    paused = ""
    if forecast.paused:
        paused = f"\n  {changed_paused} of {plural(forecast.paused, 'paused loop')} on resume"
    tasks = f"{forecast.changed_of('task')} of the last {plural(forecast.tasks, 'task')}"
    before, after = forecast.tokens
    words = f"\n  {forecast.by_words.text}" if forecast.by_words is not None else ""
    return Content.assemble(
        (f"injected text changes for {loops} and {tasks}", "bold" if changed_loops else ""),
        (paused, "bold" if changed_paused else ""),
        (words, "$warning"),
        (f"\n  tokens in total: {before:,} {glyphs.arrow} {after:,}", "$quiet"),
    )


def draw_progress(done: int, total: int, glyphs: Glyphs) -> Content:
    """Return a progress bar with the phase: reading, patterns done, or writing."""
    text = "reading…" if not done else f"{done:,} of {total:,}" if done < total else "writing…"
    return Content.assemble((bar(done, total, BAR_CELLS, glyphs), "$accent"), f"  {text}")


class BulkDialog(Dialog[bool]):
    """Previews and makes a decision. The result is True if it was started.

    `info` has the texts of the verb; `cursor` is the pattern under the cursor, which may not be among the `subjects`.
    """

    ABOUT = "Shows the number of changes first. Each pattern gets its own entry in the log."
    VERTICAL_BREAKPOINTS = [(0, "-low"), (TALL_LINES, "-tall")]
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

    def __init__(self, verb: Verb, subjects: Sequence[str], info: VerbInfo, cursor: str | None) -> None:
        self._info = info
        self._many = plural(len(subjects), "pattern")
        title = Content(f"{info.word.capitalize()} {self._many}?")
        super().__init__(title, Content(f"{info.effect} One undo reverses it for all patterns."), verb=info.word)
        self._verb = verb
        self._subjects = tuple(subjects)
        self._cursor = cursor
        self._seen: ProjectState | None = None
        self._begun = False

    def compose_body(self) -> ComposeResult:
        yield Static(self._names(), id="bulk-names")
        yield Static(Content(""), id="bulk-preview")
        if self._info.asks:
            yield Input(placeholder=f"{self._info.asks} (required)", max_length=LONGEST)
        yield Static(Content(""), id="bulk-progress")

    def _names(self) -> Content:
        patterns = self.services.view.snapshot.patterns
        titles = [pattern_title(patterns[key]) for key in self._subjects[:MOST_TITLES] if key in patterns]
        at = self._cursor or ""
        cursor = pattern_title(patterns[at]) if at in patterns and at not in self._subjects else ""
        left_out = len(self._subjects) - len(titles)
        return name_patterns(titles, left_out, cursor, is_tall=self.app.size.height >= TALL_LINES)

    def begin(self) -> None:
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
        self.query_one("#bulk-preview", Static).update(preview(forecast, self.services.glyphs))

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
        self.query_one("#bulk-progress", Static).update(draw_progress(done, total, self.services.glyphs))

    @on(Ended)
    def _ended(self) -> None:
        if self.is_current:
            self.dismiss(True)

    def action_leave(self) -> None:
        """Close the dialog. A decision that has started continues in the background."""
        self.dismiss(self._begun)


# Patterns that can be extracted from a loop or a recurring learning


def preview_extraction(screen: BaseScreen, source_id: str) -> None:
    """Preview an extraction from a loop or recurring learning; write it if accepted."""
    engine = screen.services.engine

    def work() -> None:
        try:
            found = engine.project.extraction(source_id)
        except RalphdeckError as error:
            screen.call_later(partial(screen.services.say, str(error), severity="warning"))
        else:
            screen.call_later(_show, screen, found)

    engine.submit(work)


def _show(screen: BaseScreen, found: Extraction) -> None:
    if not screen.is_current:
        return  # the user has left the screen meanwhile
    seen = screen.view

    def answered(yes: bool) -> None:
        if yes:
            screen.services.decide(Extract(found.source_id, expected=found), seen)

    count = count_offered(found)
    why = visible_line(found.why_nothing, 400)
    title = f"{plural(count, 'lesson')} to extract" if count else f"Nothing to extract: {why}"
    text = document_lines(proposal_blocks(found), seen.now, screen.glyphs)
    screen.ask_user(PreviewDialog(Content(title), text, verb=f"extract {count}" if count else ""), answered)


# How the runner of a loop can be given a context


class DeliveryDialog(LongTextDialog[bool | None]):
    """Shows a command or a change. The result is True if the user copies it."""

    ABOUT = "A person runs the command or applies the change: ralphdeck never writes to files of a runner."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", tooltip="Copy the command or the change"),
        Binding("escape,q", "cancel", "close", tooltip="Close"),
    ]

    def action_copy(self) -> None:
        self.dismiss(True)


def show_delivery(screen: BaseScreen, loop: Loop) -> None:
    """Find in a thread how the context gets to the loop, and show it."""
    project = screen.services.project

    def find() -> tuple[Delivery | None, str] | RalphdeckError:
        try:
            return find_delivery(project, loop.id)
        except RalphdeckError as error:
            return error

    def show(found: tuple[Delivery | None, str] | RalphdeckError) -> None:
        if isinstance(found, RalphdeckError):
            screen.services.say(str(found), severity="warning")
        elif screen.is_current:
            delivery, obstacle = found
            text = document_lines(delivery_blocks(loop, delivery, obstacle), screen.view.now, screen.glyphs)
            dialog = DeliveryDialog(Content("Deliver the context"), text)
            screen.ask_user(dialog, lambda copies: screen.services.copy(delivery_text(delivery)) if copies else None)

    screen.run_in_thread("delivery", find, show)
