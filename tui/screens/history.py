"""Overlays on history: What-if for other thresholds, Compare for two moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partialmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from core.base.errors import BadInput
from core.base.formatting import parse_past_time
from core.base.settings import DEFAULTS, find_threshold
from core.base.text import plural, visible_line
from core.learning import threshold_replay
from core.project.as_of import build_past_state
from core.records.patterns import Maturity
from core.records.times import day_of
from core.show.comparison import (
    COLUMNS,
    DIFFERENCE_COLUMNS,
    Change,
    LoopChange,
    PatternChange,
    QuestionChange,
    StateComparison,
    by_consequence,
    change_cells,
    compare_states,
    comparison_document,
    difference_cells,
    list_changes,
    pattern_summary,
    replay_summary,
    use_summary,
    what_if_document,
    work_summary,
)
from core.show.pages.markdown import to_markdown
from tui.kit.bars import Item, ItemLine
from tui.kit.fields import ValueField, focused_field
from tui.kit.looks import STATE_STYLES, Glyphs, draw_state
from tui.kit.record_table import RecordTable
from tui.screens.base_screen import BaseScreen
from tui.screens.document import draw_cells, moment_text
from tui.screens.knobs import Knob, SettingFields

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.learning.threshold_replay import PatternDifference, Replay
    from core.records.snapshot import Delta
    from core.show.comparison import Counts
    from tui.kit.looks import Cells

_MAX_BAR: Final = 60
PAUSE_SECONDS: Final = 0.1  # seconds without typing before the query starts
TALL: Final = 30  # lines of the screen from which each state has a line and a bar of its own
_QUERY: Final = "query"


class HistoryQueryScreen(BaseScreen):
    """Overlay that runs one query at a time and shows the result of the newest one."""

    IS_OVERLAY = True
    AUTO_FOCUS = "ValueField Input"
    NO_ROWS: ClassVar[str] = ""  # why no row can be opened
    TO_LIST, TO_RECORD = "go to list", "open"  # labels of enter in a field and in the list

    # What subclasses provide

    def question(self) -> Callable[[], Any]:
        """Return the current query as a function to run in a thread."""
        raise NotImplementedError

    def show_result(self, result: Any) -> None:
        raise NotImplementedError

    def show_all(self) -> None:
        raise NotImplementedError

    def open_row(self, key: str) -> None:
        raise NotImplementedError

    @property
    def fields(self) -> list[ValueField]:
        return list(self.query(ValueField))

    @property
    def field(self) -> ValueField | None:
        return focused_field(self)

    @property
    def is_asking(self) -> bool:
        """Whether the newest query is still running."""
        return self.is_computing(_QUERY)

    def ask(self) -> None:
        self.run_in_thread(_QUERY, self.question(), self._take_result, pause=PAUSE_SECONDS)

    def _take_result(self, result: Any) -> None:
        self.show_result(result)
        self.show_all()
        if self.field is not None:
            self.table.cursor = 0  # while a value changes, show the highest impact

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height >= TALL, "-tall")
        self.call_after_refresh(self.show_all)

    def show_counts(self, id: str, before: Counts, after: Counts) -> None:
        """Show the number of patterns per state, before and after."""
        counts = self.query_one(id, Static)
        short = not self.has_class("-tall")
        counts.update(count_lines(before, after, counts.content_size.width, self.glyphs, short=short))

    def why_not(self, action: str) -> str | None:
        return self.NO_ROWS if action == "open" and self.field is None and self.table.cursor_key is None else None

    def label_for(self, action: str) -> str | None:
        if action == "open":
            return self.TO_LIST if self.field is not None else self.TO_RECORD
        return None

    def action_open(self) -> None:
        """Focus the list, or open the record under the cursor."""
        if self.field is not None:
            self.table.focus()
        elif key := self.table.cursor_key:
            self.open_row(key)

    def copy_text(self) -> str:
        return "" if self.field is not None else self.table.cursor_key or ""


def count_lines(before: Counts, after: Counts, width: int, glyphs: Glyphs, *, short: bool) -> Content:
    """Return the patterns per state before and after; `short`: two states a line."""
    counts = [_count(state, before, after, glyphs) for state in Maturity]
    if short:
        half = width // 2
        padded = [count.pad_right(max(half - count.cell_length, 2)) for count in counts[::2]]
        rows = [Content.assemble(*pair) for pair in zip(padded, counts[1::2], strict=True)]
        return Content("\n").join(rows)
    most = max(1, *before.values(), *after.values())
    room = max(min(width - counts[0].cell_length - 2, _MAX_BAR), 0)
    return Content("\n").join(
        Content.assemble(count, "  ", _bar(state, before, after, room / most, glyphs))
        for state, count in zip(Maturity, counts, strict=True)
    )


def _count(state: Maturity, before: Counts, after: Counts, glyphs: Glyphs) -> Content:
    then, now = before[state], after[state]
    digits = max(len(f"{count:,}") for count in (*before.values(), *after.values()))
    change = f"{now - then:+,}" if now != then else ""
    name = draw_state(state, glyphs)
    return Content.assemble(
        name.pad_right(14 - name.cell_length),
        (f"{then:>{digits},} ", "$quiet"),
        (f"{glyphs.arrow} ", "$quiet"),
        (f"{now:>{digits},}", "bold" if change else "$quiet"),
        (f" {change:<{digits + 1}}", "$accent bold"),
    )


def _bar(state: Maturity, before: Counts, after: Counts, scale: float, glyphs: Glyphs) -> Content:
    then, now = before[state] * scale, after[state] * scale
    stay, gained, lost = min(then, now), max(now - then, 0), max(then - now, 0)
    return Content.assemble(
        (glyphs.full * round(stay), STATE_STYLES[state]),
        (glyphs.full * (round(stay + gained) - round(stay)), "$accent bold"),
        (glyphs.empty * (round(stay + lost) - round(stay)), "$quiet"),
    )


_NAMES: Final = {
    "Maturity": "maturity.half_life_days min_feedback min_helpful max_harmful maturity.deprecation_threshold",
    "Inversion": "min_observations failure_ratio_threshold",
    "Loop outcomes": "fast_completion_threshold_ms slow_completion_threshold_ms "
    "max_errors_for_helpful neutral_counts_as",
    "Suspicious reports": "max_marks burst_minutes",
}
GROUPS: Final[Mapping[str, tuple[Knob, ...]]] = {
    heading: tuple(Knob(find_threshold(name)) for name in names.split()) for heading, names in _NAMES.items()
}
THRESHOLDS_BESIDE: Final = 118  # cells of the screen from which thresholds and result are side by side
TWO_COLUMNS: Final = 80  # cells of the screen from which the thresholds above the result are in two columns
BUSY_SECONDS: Final = 0.3  # seconds before a running query is reported

KNOBS: Final = {knob.setting.name: knob for knobs in GROUPS.values() for knob in knobs}


def default_note(knob: Knob) -> Content:
    return Content.styled(f" {knob.unit:<4}{knob.text(DEFAULTS):>5}" if knob.unit else knob.text(DEFAULTS), "$quiet")


def threshold_help(knob: Knob) -> tuple[Content, Content]:
    """Return the help text of a threshold, and its name in the settings."""
    return Content.styled(knob.setting.help, "$quiet"), Content.styled(knob.setting.name, "$secondary")


def headline(replay: Replay | None, *, as_today: bool, faulty: bool = False) -> Content:
    """Return a summary of the changes; `as_today`: no threshold is changed."""
    if replay is None:
        return Content.styled("replaying all history…", "$quiet")
    if as_today and faulty:
        return Content.styled("The value marked ! is invalid; the current one is used.", "$warning")
    if as_today:
        return Content.assemble(("These are the current thresholds. ", "bold"), ("Change one.", "$quiet"))
    return Content.styled(replay_summary(replay), "bold" if replay.turns else "")


def scope_note(*, wide: bool) -> Content:
    """Return a note that pins are ignored, unlike in Metrics."""
    long = "Rules only, without pins. Nothing is written."
    return Content.styled(long if wide else "Rules only, without pins.", "$quiet")


def replay_size(replay: Replay) -> Content:
    return Content.styled(f"{plural(replay.events, 'result')} replayed", "$quiet")


def nothing_turned(*, as_today: bool) -> Content:
    if as_today:
        return Content.styled("Change a threshold with the left and right keys, or type another value.", "$quiet")
    return Content.styled("The recorded history leads to the same states.", "$quiet")


class Thresholds(SettingFields):
    """Fields for the thresholds, in two columns of groups."""

    def __init__(self, own: Settings) -> None:
        super().__init__(KNOBS, own, empty_is_own=True, classes="trial--fields")

    def compose(self) -> ComposeResult:
        groups = list(GROUPS.items())
        for column in (groups[:2], groups[2:]):
            with Vertical(classes="trial--column"):
                for number, (heading, knobs) in enumerate(column):
                    yield _heading(heading, "" if number else "default")
                    for knob in knobs:
                        label, text = Content(knob.setting.label), knob.text(self.own)
                        yield ValueField(knob.setting.name, label, default_note(knob), text)


class WhatIfScreen(HistoryQueryScreen):
    """Overlay with thresholds on the left or above, changes beside or below."""

    place = "what_if"
    LIST = {"columns": DIFFERENCE_COLUMNS}
    NO_ROWS = "No pattern changes"
    TO_LIST, TO_RECORD = "go to patterns", "why"

    def __init__(self) -> None:
        super().__init__()
        self._replay: Replay | None = None
        self._as_today = True
        self._turns: dict[str, PatternDifference] = {}
        self._last: ValueField | None = None  # the field to return to from the patterns

    def compose_content(self) -> ComposeResult:
        yield ItemLine(id="what-if-title")
        with Vertical(classes="trial"):
            yield Thresholds(self.view.settings)
            with Vertical(classes="trial--answer"):
                yield ItemLine(id="what-if-head")
                yield Static(Content(""), id="what-if-counts")
                yield RecordTable(self.TABLE.columns, self._cells, self._empty)

    @property
    def thresholds(self) -> Thresholds:
        return self.query_one(Thresholds)

    @property
    def settings(self) -> Settings:
        """The project's settings with the changed thresholds."""
        return self.thresholds.settings

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= THRESHOLDS_BESIDE, "-wide")
        self.set_class(event.size.width < TWO_COLUMNS, "-narrow")

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        if delta is None or delta.affects_scores:
            self.ask()

    @on(SettingFields.Turned)
    def _turned(self, message: SettingFields.Turned) -> None:
        message.stop()
        if message.has_changed:
            self.ask()
        else:
            self._show_head()

    def ask(self) -> None:
        self.set_timer(BUSY_SECONDS, self._show_head)
        super().ask()

    def question(self) -> Callable[[], tuple[Settings, Replay, Sequence[PatternDifference]]]:
        settings, history = self.settings, self.view.board.history

        def work() -> tuple[Settings, Replay, Sequence[PatternDifference]]:
            replay = threshold_replay.what_if(settings, history)
            return settings, replay, by_consequence(replay, settings)

        return work

    def show_result(self, result: tuple[Settings, Replay, Sequence[PatternDifference]]) -> None:
        settings, self._replay, turns = result
        self._as_today = settings == self.view.settings
        self._turns = {turn.pattern_id: turn for turn in turns}

    def show_all(self) -> None:
        if not self.is_composed:
            return
        self._show_title()
        self._show_head()
        if self._replay is not None:
            self.show_counts("#what-if-counts", self._replay.before, self._replay.after)
        self.table.show(list(self._turns))
        self.refresh_frame()

    def _show_title(self) -> None:
        right: list[Item] = []
        if self._last is not None:
            what, name = threshold_help(self.thresholds.knob(self._last))
            right = [*([Item(what)] if self.has_class("-wide") else []), Item(name)]
        left = [Content.styled("What-if", "bold"), scope_note(wide=self.has_class("-wide"))]
        self.query_one("#what-if-title", ItemLine).show([Item(part) for part in left], right)

    def _show_head(self) -> None:
        if not self.is_composed:
            return
        replay, right = self._replay, list[Item]()
        if replay is not None:
            busy = Content.styled("Replaying…", "$warning")
            right = [Item(busy if self.is_asking else replay_size(replay))]
        head = headline(replay, as_today=self._as_today, faulty=bool(self.thresholds.fault))
        self.query_one("#what-if-head", ItemLine).show([Item(head)], right)

    def _cells(self, key: str) -> Cells:
        return draw_cells(difference_cells(self._turns[key], self.view), self.view.now, self.glyphs)

    def _empty(self) -> Content:
        return Content("") if self._replay is None else nothing_turned(as_today=self._as_today)

    @on(SettingFields.Moved)
    def _moved(self, message: SettingFields.Moved) -> None:
        """Remember the field that was entered, to return to it."""
        message.stop()
        self._last = self.field or self._last
        self._show_title()
        self.refresh_frame()

    def why_not(self, action: str) -> str | None:
        if action in {"undo", "redo"}:
            return "No decisions on this screen; r restores a threshold, R all of them"
        if action in {"step_up", "step_down", "put_back"} and self.field is None:
            return "Press tab to go to the thresholds"
        return super().why_not(action)

    def _step(self, steps: int) -> None:
        if field := self.field:
            self.thresholds.step(str(field.name), steps)

    action_step_up = partialmethod(_step, 1)
    action_step_down = partialmethod(_step, -1)

    def action_put_back(self) -> None:
        self.thresholds.put_back(filter(None, [self.field]))

    def action_put_all_back(self) -> None:
        self.thresholds.put_back(self.fields)

    def _move(self, rows: int) -> None:
        (self.table if self.field is None else self.thresholds).move(rows)

    action_down = partialmethod(_move, 1)
    action_up = partialmethod(_move, -1)

    def action_first(self) -> None:
        self._move(-len(self._turns) - len(KNOBS))

    def action_last(self) -> None:
        self._move(len(self._turns) + len(KNOBS))

    def action_next_pane(self) -> None:
        if self.field is not None:
            self.table.focus()
        else:
            (self._last or self.fields[0]).enter()

    action_previous_pane = action_next_pane

    def open_row(self, key: str) -> None:
        self.services.open_record("patterns", key, tab="Why")

    def copy_markdown(self) -> str:
        if self._replay is None:
            return ""
        tried = [knob.setting for knob in self.thresholds.turned]
        return to_markdown(what_if_document(self._replay, tried, self.settings, self.view))


def _heading(text: str, note: str) -> ItemLine:
    line = ItemLine(classes="trial--heading")
    line.show([Item(Content.styled(text, "bold $secondary"))], [Item(Content.styled(note, "$quiet"))])
    return line


SINCE, UNTIL = "since", "until"
LAST_VISIT: Final = "last visit"
NOW: Final = "now"
DEFAULT_SINCE: Final = timedelta(days=7)  # how far to compare back without a known visit
TYPED: Final = frozenset("0123456789-hdw")  # characters of a date or a duration
MOMENTS_BESIDE: Final = 70  # cells of the screen from which the two moments are side by side


def since_note(last_visit: datetime | None, now: datetime) -> Content:
    """Return the time of the last visit, or examples for the field of the first time."""
    return _quiet(f"visit {moment_text(last_visit, now)}" if last_visit else "7d, 36h, day")


def _quiet(text: str) -> Content:
    return Content.styled(visible_line(text), "$quiet")


class CompareScreen(HistoryQueryScreen):
    """Shows two moments, patterns per state at each, and all changes between them."""

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
        self.set_class(event.size.width >= MOMENTS_BESIDE, "-wide")

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
