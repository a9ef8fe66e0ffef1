"""Base of What-if and Compare: fields that define a query of history, and its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.content import Content
from textual.widgets import Static

from core.records.patterns import Maturity
from tui.kit.glyphs import STATE_STYLES, Glyphs, draw_state
from tui.kit.value_field import ValueField, focused_field
from tui.screens.base_screen import BaseScreen

if TYPE_CHECKING:
    from textual import events

    from core.show.comparison import Counts

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
