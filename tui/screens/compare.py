"""The Compare screen: the project at a past moment, and what changed since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from core.base.errors import BadInput
from core.base.formatting import parse_past_time
from core.base.text import visible_line
from core.project.as_of import build_past_state
from core.records.times import day_of
from core.show.comparison import (
    COLUMNS,
    Change,
    LoopChange,
    PatternChange,
    QuestionChange,
    StateComparison,
    change_cells,
    compare_states,
    comparison_document,
    list_changes,
    pattern_summary,
    use_summary,
    work_summary,
)
from core.show.pages.markdown import to_markdown
from tui.kit.bars import Item, ItemLine
from tui.kit.record_table import RecordTable
from tui.kit.value_field import ValueField
from tui.screens.document import draw_cells, moment_text
from tui.screens.history_query import HistoryQueryScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.index.project_state import ProjectState
    from core.records.snapshot import Delta
    from tui.kit.glyphs import Cells

SINCE, UNTIL = "since", "until"
LAST_VISIT: Final = "last visit"
NOW: Final = "now"
DEFAULT_SINCE: Final = timedelta(days=7)  # how far to compare back without a known visit
TYPED: Final = frozenset("0123456789-hdw")  # characters of a date or a duration
BESIDE: Final = 70  # cells of the screen from which the two moments are side by side


def since_note(last_visit: datetime | None, now: datetime) -> Content:
    """Return the time of the last visit, or examples for the field of the first time."""
    return _quiet(f"visit {moment_text(last_visit, now)}" if last_visit else "7d, 36h, day")


def _quiet(text: str) -> Content:
    return Content.styled(visible_line(text), "$quiet")


class CompareScreen(HistoryQueryScreen):
    """Shows two moments, the patterns per state at each, and all changes between them."""

    place = "past"
    LIST = {"columns": COLUMNS}
    NO_ROWS = "Nothing changed"

    def __init__(self) -> None:
        super().__init__()
        self._since: datetime | None = None
        self._until: datetime | None = None  # None = now
        self._known: tuple[int, datetime, ProjectState] | None = None
        """Snapshot number, past moment, and the project as of that moment."""
        self._found: StateComparison | None = None
        self._rows: dict[str, Change] = {}

    def compose_content(self) -> ComposeResult:
        yield ItemLine(id="past-title")
        with Vertical(classes="past--moments"):
            note = since_note(self.services.last_visit, self.view.now)
            yield ValueField(SINCE, Content("from"), note, self._first_choice(), typed=TYPED)
            yield ValueField(UNTIL, Content("until"), Content.styled("day", "$quiet"), NOW, typed=TYPED)
        yield Static(Content(""), id="past-counts")
        yield ItemLine(id="past-head")
        yield RecordTable(self.TABLE.columns, self._cells, self._empty)
        yield ItemLine(id="past-sums")

    def _first_choice(self) -> str:
        return day_of(self.view.now - DEFAULT_SINCE) if self.services.last_visit is None else LAST_VISIT

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "-wide")

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Ignore new data after the first result, so that the list does not move."""
        if self._found is None and not self.is_asking:
            self._parse_moments()
            self.ask()
        elif delta is None:
            self.show_all()

    @on(ValueField.Changed)
    def _typed(self, message: ValueField.Changed) -> None:
        message.stop()
        if self._parse_moments():
            self.ask()
        self._show_head()

    def _parse_moments(self) -> bool:
        """Parse both fields and return True if the moments have changed."""
        now, before = self.services.now(), (self._since, self._until)
        moments, faults = list(before), ["", ""]
        for place, field in enumerate(self.fields):
            try:
                moments[place] = self._moment(field, now)
            except BadInput as error:
                faults[place] = str(error)
        since, until = moments
        if since is not None and not any(faults) and since >= (until or now):
            faults[0] = "must be before the other moment"
        if not any(faults):
            self._since, self._until = since, until
        for field, fault in zip(self.fields, faults, strict=True):
            field.show_state(changed=False, fault=fault)
        return (self._since, self._until) != before

    def _moment(self, field: ValueField, now: datetime) -> datetime | None:
        """Return the moment of a field, or None for the present."""
        if field.name == UNTIL:
            return None if field.text in ("", NOW) else parse_past_time(field.text, now, end_of_day=True)
        if field.text in ("", LAST_VISIT):
            return self.services.last_visit or now - DEFAULT_SINCE
        return parse_past_time(field.text, now, end_of_day=False)

    def question(self) -> Callable[[], StateComparison]:
        view, since, until = self.view, self._since, self._until
        assert since is not None, "the fields start with valid moments and keep the last valid ones"

        def compare() -> StateComparison:
            if self._known is None or self._known[:2] != (view.snapshot.number, since):
                self._known = view.snapshot.number, since, build_past_state(view, since)
            return compare_states(self._known[2], view if until is None else build_past_state(view, until))

        return compare

    def show_result(self, result: StateComparison) -> None:
        self._found, self._rows = result, list_changes(result)

    def show_all(self) -> None:
        if not self.is_composed:
            return
        title = [Content.styled("Compare", "bold"), Content.styled("Read-only", "$quiet")]
        self.query_one("#past-title", ItemLine).show([Item(part) for part in title])
        self._show_head()
        if found := self._found:
            self.show_counts("#past-counts", found.states_before, found.states_after)
            self.query_one("#past-sums", ItemLine).show([Item(_quiet(work_summary(found)))])
        self.table.show(list(self._rows))
        self.refresh_frame()

    def _show_head(self) -> None:
        if not self.is_composed:
            return
        found, right = self._found, list[Item]()
        if found is not None:
            right = [Item(Content.styled("Computing…", "$warning") if self.is_asking else _quiet(use_summary(found)))]
        head = _quiet("loading the earlier state…") if found is None else Content.styled(pattern_summary(found), "bold")
        self.query_one("#past-head", ItemLine).show([Item(head)], right)

    def _cells(self, key: str) -> Cells:
        return draw_cells(change_cells(self._rows[key], self.view), self.view.now, self.glyphs)

    def _empty(self) -> Content:
        if self._found is None:
            return Content("")
        return _quiet("Nothing changed between these two times. Press left to go back one day.")

    @on(ValueField.Entered)
    def _entered(self, message: ValueField.Entered) -> None:
        message.stop()
        self.refresh_frame()

    @on(ValueField.Left)
    def _left(self, message: ValueField.Left) -> None:
        message.stop()
        if not message.field.text:
            message.field.put(NOW if message.field.name == UNTIL else self._first_choice())

    def own_keys(self) -> frozenset[str]:
        return frozenset({"past"})  # it closes the screen, as `back` does

    def why_not(self, action: str) -> str | None:
        if action == "last_visit" and self.services.last_visit is None:
            return "This is your first visit"
        return super().why_not(action)

    def _step(self, days: int) -> None:
        field, now = self.field or self.fields[0], self.services.now()
        moment = (self._until if field.name == UNTIL else self._since) or now
        day = moment + timedelta(days=days)
        latest = field.name == UNTIL and day.date() >= now.date()
        field.put(NOW if latest else day_of(min(day, now)))

    action_day_back = partialmethod(_step, -1)
    action_day_on = partialmethod(_step, 1)

    def action_last_visit(self) -> None:
        for field, text in zip(self.fields, (LAST_VISIT, NOW), strict=True):
            field.put(text)

    def _go_on(self, panes: int) -> None:
        """Cycle through both fields and the list."""
        stops = [field.enter for field in self.fields] + [self.table.focus]
        at = self.fields.index(self.field) if self.field is not None else len(self.fields)
        stops[(at + panes) % len(stops)]()

    action_next_pane = partialmethod(_go_on, 1)
    action_previous_pane = partialmethod(_go_on, -1)

    def action_down(self) -> None:
        if self.field is not None:
            self.table.focus()
        else:
            self.table.move(1)

    def open_row(self, key: str) -> None:
        change = self._rows[key]
        if isinstance(change, PatternChange):
            if change.pattern_id in self.view.snapshot.patterns:
                self.services.open_record("patterns", change.pattern_id, tab="Why")
            else:
                self.services.say("No longer in the registry; see: ralphdeck pattern list --archived")
        elif isinstance(change, LoopChange):
            self.services.open_record("loops", change.loop_id)
        elif isinstance(change, QuestionChange):
            self.services.open_record("review", change.subject)
        else:
            self.services.open_record("log", change.key)

    def copy_text(self) -> str:
        return super().copy_text().partition(" ")[2]

    def copy_markdown(self) -> str:
        return to_markdown(comparison_document(self._found, self.view)) if self._found is not None else ""
