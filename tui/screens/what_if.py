"""The What-if screen: the effect that other thresholds would have on all history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from core.base.settings import DEFAULTS, find_threshold
from core.base.text import plural
from core.learning import threshold_replay
from core.show.comparison import DIFFERENCE_COLUMNS, by_consequence, difference_cells, replay_summary, what_if_document
from core.show.pages.markdown import to_markdown
from tui.kit.bars import Item, ItemLine
from tui.kit.record_table import RecordTable
from tui.kit.value_field import ValueField
from tui.screens.document import draw_cells
from tui.screens.history_query import HistoryQueryScreen
from tui.screens.knobs import Knob, SettingFields

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.learning.threshold_replay import PatternDifference, Replay
    from core.records.snapshot import Delta
    from tui.kit.glyphs import Cells

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
BESIDE: Final = 118  # cells of the screen from which thresholds and result are side by side
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
    """Overlay with the thresholds on the left or above, and the changes beside or below."""

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
        self.set_class(event.size.width >= BESIDE, "-wide")
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
