"""The What if screen: what other thresholds would have made of history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, partialmethod, reduce
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.base.errors import BadInput
from core.config.settings import Settings
from core.learning import threshold_replay
from core.learning.threshold_replay import PatternDifference, Replay
from core.records.snapshot import Delta
from core.state.project_state import ProjectState
from tui.messages import NewestMessage
from tui.present import what_if as present
from tui.present.knobs import Knob
from tui.present.state_counts import count_lines
from tui.screens.history_query import HistoryQueryScreen
from tui.widgets.bars import Item, ItemLine
from tui.widgets.record_table import Column, RecordTable
from tui.widgets.value_field import ValueField

BESIDE: Final = 118
"""Cells of the screen from which thresholds and result are side by side."""
TWO_COLUMNS: Final = 80
"""Cells of the screen from which the thresholds above the result are in two columns."""
TALL: Final = 30
"""Lines of the screen from which each state has a line and a bar of its own."""
BUSY_SECONDS: Final = 0.3
"""Seconds before a running query is reported."""

KNOBS: Final = {knob.name: knob for knobs in present.GROUPS.values() for knob in knobs}


class WhatIfScreen(HistoryQueryScreen):
    """Thresholds on the left or above, the changes on the right or below."""

    place = "what_if"
    ABOUT = (
        "Try other thresholds: all history is replayed with them while you type. The list shows every pattern "
        "that would change its state or be inverted, highest impact first. The counts are states by rule; a "
        "pinned state stays, and Metrics counts it. Nothing is written."
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("id", "pattern", 17, flex=2, keep_end=4),
        Column("change", "today, then", 18),
        Column("note", "", 28),
        Column("title", "what", 20, flex=3, keep=0),
    )

    @dataclass(eq=False)
    class Replayed(NewestMessage):
        """History was replayed with some settings, and changed patterns were sorted."""

        number: int
        settings: Settings
        replay: Replay
        turns: Sequence[PatternDifference]

    def __init__(self) -> None:
        super().__init__()
        self._tried: dict[str, str] = {}
        """Changed thresholds with a valid value."""
        self._replay: Replay | None = None
        self._as_today = True
        self._turns: dict[str, PatternDifference] = {}
        self._last: ValueField | None = None
        """The field to return to from the patterns."""

    def compose_content(self) -> ComposeResult:
        yield ItemLine(id="what-if-title")
        with Vertical(classes="trial"):
            with Vertical(classes="trial--fields"):
                groups = list(present.GROUPS.items())
                for column in (groups[:2], groups[2:]):
                    with Vertical(classes="trial--column"):
                        for number, (heading, knobs) in enumerate(column):
                            yield _heading(heading, "" if number else "default")
                            for knob in knobs:
                                text = knob.text(self.view.settings)
                                yield ValueField(knob.name, Content(knob.label), present.default_note(knob), text)
            with Vertical(classes="trial--answer"):
                yield ItemLine(id="what-if-head")
                yield Static(Content(""), id="what-if-counts")
                yield RecordTable(self.COLUMNS, self._cells, self._empty)

    @property
    def settings(self) -> Settings:
        """The project's settings with the changed thresholds."""
        return reduce(
            lambda settings, name: KNOBS[name].put(settings, self._tried[name]), self._tried, self.view.settings
        )

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-wide")
        self.set_class(event.size.width < TWO_COLUMNS, "-narrow")
        self.set_class(event.size.height >= TALL, "-tall")
        self.call_after_refresh(self._show)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        if delta is None or delta.patterns or delta.loops or delta.events or delta.decisions:
            self.ask()

    # Queries

    @on(ValueField.Changed)
    def _typed(self, message: ValueField.Changed) -> None:
        message.stop()
        before = self.settings
        self._judge(message.field)
        if self.settings != before:
            self.ask()
        else:
            self._show_head()

    def _judge(self, field: ValueField) -> None:
        """Take the value of a field, if it is valid; else keep the last one."""
        knob, today, text = _knob(field), self.view.settings, field.text
        fault = ""
        try:
            changed = bool(text) and knob.put(today, text) != today
        except BadInput as error:
            changed, fault = field.name in self._tried, present.reason(error, knob)
        else:
            if changed:
                self._tried[knob.name] = text
            else:
                self._tried.pop(knob.name, None)
        field.show_state(changed=changed, fault=fault)

    def ask(self) -> None:
        self.set_timer(BUSY_SECONDS, self._show_head)
        super().ask()

    def question(self, number: int) -> Callable[[], Message]:
        return partial(self._replayed, number, self.view, self.settings)

    def _replayed(self, number: int, view: ProjectState, settings: Settings) -> Replayed:
        replay = threshold_replay.what_if(settings, view.board.history)
        return self.Replayed(number, settings, replay, present.by_consequence(replay, settings))

    @on(Replayed)
    def _show_replay(self, message: Replayed) -> None:
        """Show the result, unless it is outdated."""
        if message.number == self._asked:
            self._answered, self._replay = message.number, message.replay
            self._as_today = message.settings == self.view.settings
            self._turns = {turn.pattern_id: turn for turn in message.turns}
            self._show()
            if self.field is not None:
                self.table.cursor = 0  # while a value changes, show the highest impact

    # Display

    def _show(self) -> None:
        if not self.is_composed:
            return
        self._show_title()
        self._show_head()
        counts = self.query_one("#what-if-counts", Static)
        if self._replay is not None:
            width, short = counts.content_size.width, not self.has_class("-tall")
            before, after = self._replay.before, self._replay.after
            counts.update(count_lines(before, after, width, self.glyphs, short=short))
        self.table.show(list(self._turns))
        self.refresh_frame()

    def _show_title(self) -> None:
        right: list[Item] = []
        if self._last is not None:
            what, name = present.about(_knob(self._last))
            right = [*([Item(what)] if self.has_class("-wide") else []), Item(name)]
        left = [Content.styled("What if", "bold"), present.terms(wide=self.has_class("-wide"))]
        self.query_one("#what-if-title", ItemLine).show([Item(part) for part in left], right)

    def _show_head(self) -> None:
        if not self.is_composed:
            return
        replay, line = self._replay, self.query_one("#what-if-head", ItemLine)
        if replay is not None and self._answered != self._asked:
            right = [Item(Content.styled("Replaying…", "$warning"))]
        else:
            right = [Item(present.replayed(replay))] if replay is not None else []
        faulty = any(field.fault for field in self.fields)
        line.show([Item(present.headline(replay, as_today=self._as_today, faulty=faulty))], right)

    def _cells(self, key: str) -> dict[str, Content]:
        return dict(present.turn_cells(self._turns[key], self.view, self.glyphs))

    def _empty(self) -> Content:
        return Content("") if self._replay is None else present.nothing_turned(as_today=self._as_today)

    @on(ValueField.Entered)
    def _entered(self, message: ValueField.Entered) -> None:
        message.stop()
        self._last = message.field
        self._show_title()
        self.refresh_frame()

    @on(ValueField.Left)
    def _left(self, message: ValueField.Left) -> None:
        message.stop()
        if not message.field.text:
            message.field.put(_knob(message.field).text(self.view.settings))

    # Actions

    def why_not(self, action: str) -> str | None:
        if action in {"undo", "redo"}:
            return "No decisions on this screen; r restores a threshold, R all of them"
        if action in {"step_up", "step_down", "put_back"} and self.field is None:
            return "Press tab to go to the thresholds"
        if action == "open" and self.field is None and self.table.cursor_key is None:
            return "No pattern changes"
        return None

    def label_for(self, action: str) -> str | None:
        if action == "open":
            return "go to patterns" if self.field is not None else "why"
        return None

    def _step(self, steps: int) -> None:
        if field := self.field:
            field.put(_knob(field).stepped(self.settings, steps))

    action_step_up = partialmethod(_step, 1)
    action_step_down = partialmethod(_step, -1)

    def action_put_back(self) -> None:
        if field := self.field:
            self._put_back(field)

    def action_put_all_back(self) -> None:
        for field in self.fields:
            self._put_back(field)

    def _put_back(self, field: ValueField) -> None:
        field.put(_knob(field).text(self.view.settings))

    def action_first(self) -> None:
        self._move(-len(self._turns) - len(KNOBS))

    def action_last(self) -> None:
        self._move(len(self._turns) + len(KNOBS))

    def _move(self, rows: int) -> None:
        fields, field = self.fields, self.field
        if field is None:
            self.table.move(rows)
        else:
            fields[max(0, min(fields.index(field) + rows, len(fields) - 1))].enter()

    action_down = partialmethod(_move, 1)
    action_up = partialmethod(_move, -1)

    def action_next_pane(self) -> None:
        if self.field is not None:
            self.table.focus()
        else:
            (self._last or self.fields[0]).enter()

    def action_previous_pane(self) -> None:
        self.action_next_pane()

    def action_open(self) -> None:
        """Focus the patterns, or open one of them."""
        if self.field is not None:
            self.table.focus()
        elif key := self.table.cursor_key:
            self.services.open_record("patterns", key, tab="Why")

    def copy_text(self) -> str:
        return "" if self.field is not None else self.table.cursor_key or ""


def _knob(field: ValueField) -> Knob:
    return KNOBS[str(field.name)]


def _heading(text: str, note: str) -> ItemLine:
    line = ItemLine(classes="trial--heading")
    line.show([Item(Content.styled(text, "bold $secondary"))], [Item(Content.styled(note, "$quiet"))])
    return line
