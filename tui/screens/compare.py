"""The Compare screen: the project at a past moment, and what changed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, partialmethod
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from core.base.errors import BadInput
from core.base.time_parsing import parse_past_time
from core.history.as_of import build_past_state
from core.history.changes import LoopChange, PatternChange, QuestionChange, StateComparison, compare_states
from core.records.snapshot import Delta
from core.records.times import day_of
from core.state.project_state import ProjectState
from tui.messages import NewestMessage
from tui.present import compare as present
from tui.present.state_counts import count_lines
from tui.screens.history_query import HistoryQueryScreen
from tui.widgets.bars import Item, ItemLine
from tui.widgets.record_table import Column, RecordTable
from tui.widgets.value_field import ValueField

SINCE, UNTIL = "since", "until"
LAST_VISIT: Final = "last visit"
NOW: Final = "now"
DEFAULT_SINCE: Final = timedelta(days=7)
"""How far to compare back without a known visit."""
DAY: Final = timedelta(days=1)
TYPED: Final = frozenset("0123456789-hdw")
"""Characters of a date or a duration."""
TALL: Final = 30
"""Lines of the screen from which each state has a line and a bar of its own."""
BESIDE: Final = 70
"""Cells of the screen from which the two moments are side by side."""


class CompareScreen(HistoryQueryScreen):
    """Two moments, the patterns per state at both, and all changes between them."""

    place = "past"
    ABOUT = (
        "The project as of a past moment, with the scores of that time, and all changes since: patterns that changed "
        "state and why, new and removed patterns, questions, decisions, loops. Type a day such as 2026-11-15, or a "
        "duration: 36h, 7d, 2w. Changes with the highest impact come first. Nothing is written."
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("id", "what", 17, flex=2, keep_end=4),
        Column("change", "then, now", 18),
        Column("note", "because", 28, flex=2),
        Column("title", "", 20, flex=2, keep=0),
    )

    @dataclass(eq=False)
    class Answered(NewestMessage):
        """Two moments were compared."""

        number: int
        found: StateComparison

    def __init__(self) -> None:
        super().__init__()
        self._since: datetime | None = None
        self._until: datetime | None = None
        """None = now."""
        self._known: tuple[int, datetime, ProjectState] | None = None
        """Snapshot number, past moment, and the project as of that moment."""
        self._found: StateComparison | None = None
        self._rows: dict[str, present.Change] = {}

    def compose_content(self) -> ComposeResult:
        yield ItemLine(id="past-title")
        with Vertical(classes="past--moments"):
            visit = self.services.last_visit
            note = present.since_note(visit, self.view.now)
            yield ValueField(SINCE, Content("from"), note, self._first_choice(), typed=TYPED)
            yield ValueField(UNTIL, Content("until"), Content.styled("day", "$quiet"), NOW, typed=TYPED)
        yield Static(Content(""), id="past-counts")
        yield ItemLine(id="past-head")
        yield RecordTable(self.COLUMNS, self._cells, self._empty)
        yield ItemLine(id="past-sums")

    def _first_choice(self) -> str:
        if self.services.last_visit is not None:
            return LAST_VISIT
        return day_of(self.view.now - DEFAULT_SINCE)

    def _field(self, name: str) -> ValueField:
        return next(field for field in self.fields if field.name == name)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-wide")
        self.set_class(event.size.height >= TALL, "-tall")
        self.call_after_refresh(self._show)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Keep the result: updates would move the list that the user reads."""
        if self._found is None and not self._at_work:
            self._judge()
            self.ask()
        elif delta is None:
            self._show()

    # Queries

    @on(ValueField.Changed)
    def _typed(self, message: ValueField.Changed) -> None:
        message.stop()
        if self._judge():
            self.ask()
        self._show_head()

    def _judge(self) -> bool:
        """Parse both fields; returns whether the moments have changed."""
        now, before = self.services.now(), (self._since, self._until)
        since, until = self._field(SINCE), self._field(UNTIL)
        moments: list[datetime | None] = []
        faults = ["", ""]
        for place, field in enumerate((since, until)):
            try:
                moments.append(self._moment(field, now))
            except BadInput as error:
                faults[place] = str(error)
                moments.append(before[place])
        begin, end = moments
        if begin is not None and not any(faults) and begin >= (end or now):
            faults[0] = "must be before the other moment"
        if not any(faults):
            self._since, self._until = begin, end
        since.show_state(changed=False, fault=faults[0])
        until.show_state(changed=False, fault=faults[1])
        return (self._since, self._until) != before

    def _moment(self, field: ValueField, now: datetime) -> datetime | None:
        """The moment of a field; None for now."""
        if field.name == UNTIL:
            return None if field.text in ("", NOW) else parse_past_time(field.text, now, end_of_day=True)
        if field.text in ("", LAST_VISIT):
            return self.services.last_visit or now - DEFAULT_SINCE
        return parse_past_time(field.text, now, end_of_day=False)

    def question(self, number: int) -> Callable[[], Message]:
        """Compare the two moments."""
        assert self._since is not None, "the fields start with valid moments and keep the last valid ones"
        return partial(self._compared, number, self.view, self._since, self._until)

    def _compared(self, number: int, view: ProjectState, since: datetime, until: datetime | None) -> Answered:
        known = self._known
        if known is not None and known[:2] == (view.snapshot.number, since):
            before = known[2]
        else:
            before = build_past_state(view, since)
            self._known = view.snapshot.number, since, before
        return self.Answered(number, compare_states(before, view if until is None else build_past_state(view, until)))

    @on(Answered)
    def _show_answer(self, message: Answered) -> None:
        """Show the result, unless it is outdated."""
        if message.number == self._asked:
            self._answered, self._found = message.number, message.found
            self._rows = present.rows(message.found)
            self._show()
            if self.field is not None:
                self.table.cursor = 0

    # Display

    def _show(self) -> None:
        if not self.is_composed:
            return
        title = [Content.styled("Compare", "bold"), Content.styled("Read-only", "$quiet")]
        self.query_one("#past-title", ItemLine).show([Item(part) for part in title], [])
        self._show_head()
        if self._found is not None:
            counts = self.query_one("#past-counts", Static)
            before, after = self._found.states_before, self._found.states_after
            width, short = counts.content_size.width, not self.has_class("-tall")
            counts.update(count_lines(before, after, width, self.glyphs, short=short))
            self.query_one("#past-sums", ItemLine).show([Item(present.sums(self._found))], [])
        self.table.show(list(self._rows))
        self.refresh_frame()

    def _show_head(self) -> None:
        if not self.is_composed:
            return
        found, right = self._found, []
        if found is not None:
            waits = self._answered != self._asked
            right = [Item(Content.styled("Computing…", "$warning") if waits else present.beside(found))]
        self.query_one("#past-head", ItemLine).show([Item(present.headline(found))], right)

    def _cells(self, key: str) -> dict[str, Content]:
        return dict(present.cells(self._rows[key], self.view, self.glyphs))

    def _empty(self) -> Content:
        return Content("") if self._found is None else present.nothing_changed()

    @on(ValueField.Entered)
    def _entered(self, message: ValueField.Entered) -> None:
        message.stop()
        self.refresh_frame()

    @on(ValueField.Left)
    def _left(self, message: ValueField.Left) -> None:
        message.stop()
        if not message.field.text:
            message.field.put(NOW if message.field.name == UNTIL else self._first_choice())

    # Actions

    def why_not(self, action: str) -> str | None:
        if action in {"undo", "redo"}:
            return "No decisions on this screen"
        if action == "last_visit" and self.services.last_visit is None:
            return "This is your first visit"
        if action == "open" and self.field is None and self.table.cursor_key is None:
            return "Nothing changed"
        return None

    def label_for(self, action: str) -> str | None:
        if action == "open":
            return "go to list" if self.field is not None else "open"
        return None

    def _step(self, days: int) -> None:
        field = self.field or self._field(SINCE)
        moment = (self._until if field.name == UNTIL else self._since) or self.services.now()
        day = moment + days * DAY
        latest = field.name == UNTIL and day.date() >= self.services.now().date()
        field.put(NOW if latest else day_of(min(day, self.services.now())))

    action_day_back = partialmethod(_step, -1)
    action_day_on = partialmethod(_step, 1)

    def action_last_visit(self) -> None:
        self._field(SINCE).put(LAST_VISIT)
        self._field(UNTIL).put(NOW)

    def action_next_pane(self) -> None:
        """Cycle through both fields and the list."""
        if (field := self.field) is None:
            self._field(SINCE).enter()
        elif field.name == SINCE:
            self._field(UNTIL).enter()
        else:
            self.table.focus()

    def action_previous_pane(self) -> None:
        if (field := self.field) is None:
            self._field(UNTIL).enter()
        elif field.name == UNTIL:
            self._field(SINCE).enter()
        else:
            self.table.focus()

    def action_down(self) -> None:
        if self.field is not None:
            self.table.focus()
        else:
            self.table.move(1)

    def action_open(self) -> None:
        """Focus the list, or open the record of the change."""
        if self.field is not None:
            self.table.focus()
            return
        key = self.table.cursor_key
        change = self._rows.get(key) if key is not None else None
        if isinstance(change, PatternChange):
            if change.pattern_id in self.view.snapshot.patterns:
                self.services.open_record("patterns", change.pattern_id, tab="Why")
            else:
                self.services.say("Not in the registry any more; see: ralphdeck pattern archived")
        elif isinstance(change, LoopChange):
            self.services.open_record("loops", change.loop_id)
        elif isinstance(change, QuestionChange):
            self.services.open_record("review", change.subject)
        elif change is not None:
            self.services.open_record("log", change.id)

    def copy_text(self) -> str:
        key = "" if self.field is not None else self.table.cursor_key or ""
        return key.partition(" ")[2]
