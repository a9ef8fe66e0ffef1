"""Columns of a table, and which of them fit into its width."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from core.show.pages.document import ALWAYS
from tui.kit.drawing import cursor_line, fit, is_same, selected, shorten, to_strip, with_selection

if TYPE_CHECKING:
    from textual import events
    from textual.selection import Selection

    from core.show.pages.document import Column
    from tui.kit.looks import Cells


LEAST_FLEX: Final = 10  # minimum cells of a flexible column, even if columns that always stay do not fit


def fit_columns(columns: Sequence[Column], room: int) -> tuple[tuple[Column, int], ...]:
    """Return the columns that fit into `room` cells, each with its width."""
    fitting = list(columns)
    while len(fitting) > 1 and sum(column.width + 1 for column in fitting) - 1 > room:
        lowest = min(fitting, key=lambda column: column.keep)
        if lowest.keep >= ALWAYS:
            break
        fitting.remove(lowest)
    return tuple(zip(fitting, _widths(fitting, room), strict=True))


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """Distribute `room` cells over the columns, with a gap of one cell between them."""
    widths = [column.width for column in columns]
    left = room - (sum(widths) + len(widths) - 1)
    for n, column in enumerate(columns):
        if left < 0 and column.flex:
            widths[n] = max(column.width + left, min(column.width, LEAST_FLEX))
            left += column.width - widths[n]
        elif (more := column.best - column.width) > 0 and left > 0 and (column.flex or more <= left):
            widths[n] += min(more, left)
            left -= min(more, left)
    shares = sum(column.flex for column in columns)
    spare = max(left, 0)
    return [
        width + (spare * column.flex // shares if shares else 0) for width, column in zip(widths, columns, strict=True)
    ]


GUTTER: Final = 2  # cells before the first column: cursor bar and selection glyph
COMFORTABLE: Final = 2  # lines of a row with a second line
INDENT: Final = 4  # cells before the second line of a row
MOST_COPIED: Final = 2_000  # rows that a mouse selection can copy
KEPT_ROWS: Final = 512  # rows whose cells are kept after they were drawn: more than a screen has lines


@dataclass(frozen=True, slots=True)
class _Row:
    """Drawn content of a record, and its strips by look (cursor, selection, width)."""

    cells: Cells
    below: Content
    strips: dict[tuple[object, ...], Strip] = field(default_factory=dict)

    def has_content_of(self, other: _Row) -> bool:
        mine, others = (*self.cells.values(), self.below), (*other.cells.values(), other.below)
        return self.cells.keys() == other.cells.keys() and is_same(mine, others)


class RecordTable(ScrollView, can_focus=True, inherit_bindings=False):
    """Table of record keys; `draw` returns cells by column ID, `below` a second line.

    Both are called for visible rows only, and only lines that look different are painted again. `empty` returns the
    text of an empty table.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "record-table--header",
        "record-table--cursor",
        "record-table--hover",
        "record-table--marked",
    }
    DEFAULT_CSS = """
    RecordTable {
        height: 1fr;
        background: $background;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .record-table--header { color: $quiet; text-style: none; }
        & > .record-table--hover { background: $surface; }
        & > .record-table--marked { color: $accent; }
        & > .record-table--cursor { background: $panel; }
        &:focus > .record-table--cursor { background: $panel; text-style: bold; }
    }
    """

    cursor: reactive[int] = reactive(0, repaint=False)  # row number of the cursor
    hover: reactive[int] = reactive(-1, repaint=False)

    @dataclass(eq=False)
    class Highlighted(Message):
        """The cursor has moved to another record; `key` is None in an empty table."""

        table: RecordTable
        key: str | None

        @property
        def control(self) -> RecordTable:
            return self.table

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RecordTable.Highlighted) and message.table is self.table

    @dataclass(eq=False)
    class Chosen(Message):
        """A double click on a record."""

        key: str

    @dataclass(eq=False)
    class HeaderClicked(Message):
        """A click on a heading, to sort by it."""

        column: str

    def __init__(
        self,
        columns: Sequence[Column],
        draw: Callable[[str], Cells],
        empty: Callable[[], Content],
        *,
        below: Callable[[str], Content] = lambda key: Content(""),
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.columns = tuple(columns)
        self._draw = draw
        self._empty = empty
        self._below = below
        self._lines = 1
        self._keys: Sequence[str] = ()
        self._place: dict[str, int] = {}
        self._marked: set[str] = set()
        self._sorted: tuple[str, bool] | None = None
        self._rows: LRUCache[str, _Row] = LRUCache(KEPT_ROWS)
        self._earlier: LRUCache[str, _Row] = LRUCache(KEPT_ROWS)
        """Rows from before they were drawn again; their strips are used again if the content is the same."""
        self._painted: dict[int, Strip] = {}
        """The lines as painted last, by line of the widget."""
        self._layout: tuple[int, tuple[tuple[Column, int], ...]] = (-1, ())
        self._announced: str | None = None

    @property
    def keys(self) -> Sequence[str]:
        return self._keys

    @property
    def cursor_key(self) -> str | None:
        return self._keys[self.cursor] if 0 <= self.cursor < len(self._keys) else None

    @property
    def marked(self) -> frozenset[str]:
        return frozenset(self._marked)

    def show(
        self,
        keys: Sequence[str],
        *,
        sorted_by: tuple[str, bool] | None = None,
        keep_row: bool = False,
        changed: Collection[str] | None = None,
    ) -> None:
        """Show these rows. The cursor stays on its record, or on its row if `keep_row`.

        `keys` is not copied, so do not change it afterwards. `sorted_by` is the column id and whether descending, for
        the arrow in the heading. `changed` are the records to draw again, by default all.
        """
        key = self.cursor_key
        same = keys is self._keys or keys == self._keys
        self._keys = keys
        self._sorted = sorted_by
        if not same:
            self._place = {}
            self._marked &= set(keys)
            self._fit_lines()
            at = self.position(key) if key is not None and not keep_row else None
            row = self.cursor if key is not None else 0
            self.set_reactive(RecordTable.cursor, self.validate_cursor(row if at is None else at))
            self._keep_cursor_visible()
        self.redraw(changed)
        self._announce()

    def space(self, lines: int) -> None:
        """Set the number of lines per row: 1, or `COMFORTABLE`."""
        if lines != self._lines:
            self._lines = lines
            self._fit_lines()
            self._keep_cursor_visible()
            self.redraw()

    def _fit_lines(self) -> None:
        self.virtual_size = Size(0, len(self._keys) * self._lines + 1)

    def use(self, columns: Sequence[Column]) -> None:
        """Replace the columns. Call `show` afterwards to draw them."""
        if tuple(columns) != self.columns:
            self.columns = tuple(columns)
            self._layout = (-1, ())
            self._rows.clear()
            self._earlier.clear()

    def redraw(self, keys: Collection[str] | None = None) -> None:
        """Draw these records again, by default all."""
        if keys is None:
            self._earlier, self._rows = self._rows, LRUCache(KEPT_ROWS)
        else:
            for key in self._rows.keys() & keys:
                self._earlier[key] = self._rows[key]
                self._rows.discard(key)
        self._repaint()

    def _repaint(self) -> None:
        """Paint the visible lines that look different now."""
        width, height = self.scrollable_content_region.size
        for y in range(height):
            if self._strip(y) != self._painted.get(y):
                self.refresh(Region(0, y, width, 1))

    def position(self, key: str) -> int | None:
        if not self._place:
            self._place = {k: n for n, k in enumerate(self._keys)}
        return self._place.get(key)

    def go_to(self, key: str) -> bool:
        """Move the cursor to a record. Return False if it is not in the table."""
        at = self.position(key)
        if at is None:
            return False
        self.cursor = at
        return True

    def toggle_mark(self, keys: Iterable[str]) -> None:
        """Select these records, or deselect them if all of them are selected."""
        keys = set(keys)
        if keys <= self._marked:
            self._marked -= keys
        else:
            self._marked |= keys
        self._repaint()

    def clear_marks(self) -> None:
        self._marked.clear()
        self._repaint()

    def validate_cursor(self, row: int) -> int:
        return max(0, min(row, len(self._keys) - 1))

    def watch_cursor(self) -> None:
        self._keep_cursor_visible()
        self._repaint()
        self._announce()

    @property
    def page(self) -> int:
        """Number of rows that fit on a page."""
        return max((self.size.height - 1) // self._lines, 1)

    def move(self, rows: int) -> None:
        self.cursor += rows

    def _keep_cursor_visible(self) -> None:
        top, line = self.scroll_offset.y, self.cursor * self._lines
        over = line + self._lines - (top + max(self.size.height - 1, self._lines))
        if line < top:
            self.scroll_to(y=line, animate=False)
        elif over > 0:
            self.scroll_to(y=top + over, animate=False)

    def _announce(self) -> None:
        key = self.cursor_key
        if key != self._announced:
            self._announced = key
            self.post_message(self.Highlighted(self, key))

    def on_resize(self) -> None:
        self._keep_cursor_visible()
        self.redraw()

    def _row_at(self, y: int) -> int | None:
        row = (y - 1 + self.scroll_offset.y) // self._lines
        return row if y > 0 and 0 <= row < len(self._keys) else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        row = self._row_at(event.y)
        self.hover = -1 if row is None else row

    def on_leave(self) -> None:
        self.hover = -1

    def watch_hover(self) -> None:
        self._repaint()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor, open the record on a double click, or sort by a heading."""
        event.prevent_default()  # skip the handler of Widget: its double click selects all text of the table
        if self.text_selection is not None:
            return
        row = self._row_at(event.y)
        if event.y == 0:
            x = GUTTER
            for column, width in self._columns_at(self.scrollable_content_region.width):
                if x <= event.x < x + width:
                    self.post_message(self.HeaderClicked(column.id))
                    return
                x += width + 1
        elif row is not None:
            self.cursor = row
            if event.chain == 2:
                self.post_message(self.Chosen(self._keys[row]))

    def _columns_at(self, width: int) -> tuple[tuple[Column, int], ...]:
        """Return the columns that fit into `width` cells, each with its width."""
        if self._layout[0] == width:
            return self._layout[1]
        self._layout = (width, fit_columns(self.columns, width - GUTTER))
        return self._layout[1]

    def width_of(self, column: str) -> int:
        """Return the current width of a column in cells, or 0 if it is not shown."""
        shown = self._columns_at(self.scrollable_content_region.width)
        return next((cells for known, cells in shown if known.id == column), 0)

    def render_line(self, y: int) -> Strip:
        strip = self._painted[y] = self._strip(y)
        line = y - 1 + self.scroll_offset.y
        return strip.apply_offsets(0, line) if y and line < len(self._keys) * self._lines else strip

    def _strip(self, y: int) -> Strip:
        """Return a line of the widget: heading, line of a row, or line below all rows."""
        width = self.scrollable_content_region.width
        if y == 0:
            return self._header(width)
        line = y - 1 + self.scroll_offset.y
        number, part = divmod(line, self._lines)
        style = self.visual_style
        if number >= len(self._keys):
            lines = self._empty().wrap(max(1, width - GUTTER - 1)) if not self._keys and y > 1 else ()
            if 0 <= y - 2 < len(lines):
                return to_strip(self, Content.assemble("  ", lines[y - 2]), width, style)
            return Strip.blank(width, style.rich_style)
        key = self._keys[number]
        on_cursor, hovered, marked = number == self.cursor, number == self.hover, key in self._marked
        is_selected = self.text_selection is not None and self.text_selection.get_span(line) is not None
        # The styles of a widget change some time after the theme, so the theme alone does not identify a strip.
        look = (part, width, on_cursor, hovered, marked, self.has_focus, self.app.theme, style)
        row = self._row(key)
        if not is_selected and (known := row.strips.get(look)) is not None:
            return known
        content = self._line(number, part, width)
        if on_cursor:
            content, style = cursor_line(self, content, "record-table--cursor")
        elif hovered:
            style = self.get_visual_style("record-table--hover")
        strip = to_strip(self, with_selection(self, content, line), width, style)
        if not is_selected:
            row.strips[look] = strip
        return strip

    def _row(self, key: str) -> _Row:
        row = self._rows.get(key)
        if row is None:
            row = _Row(self._draw(key), self._below(key) if self._lines > 1 else Content(""))
            earlier = self._earlier.get(key)
            if earlier is not None and row.has_content_of(earlier):
                row = earlier
            self._rows[key] = row
        return row

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """Return the text selected by mouse, limited to the first rows of a long list."""
        width, lines = self.scrollable_content_region.width, self._lines
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else len(self._keys) * lines - 1
        last = min(last, len(self._keys) * lines - 1, first + MOST_COPIED)
        drawn = [""] * first + [self._line(*divmod(line, lines), width).plain for line in range(first, last + 1)]
        return selected(drawn, selection), "\n"

    def _line(self, row: int, part: int, width: int) -> Content:
        """Return one line of a row: its cells, or its second line."""
        key = self._keys[row]
        bar = ("▌" if row == self.cursor else " ", "$accent")
        if part:
            below = shorten(self._row(key).below, max(width - INDENT, 1))
            return Content.assemble(bar, " " * (INDENT - 1), below)
        cells = self._row(key).cells
        parts: list[Content | str | tuple[str, str]] = [bar, ("*" if key in self._marked else " ", "$accent bold")]
        for column, size in self._columns_at(width):
            parts += [fit(cells.get(column.id, Content("")), size, column.align, column.keep_end), " "]
        return Content.assemble(*parts[:-1])

    def _header(self, width: int) -> Strip:
        parts: list[Content | str] = [" " * GUTTER]
        for column, cells in self._columns_at(width):
            title = column.title
            if self._sorted and self._sorted[0] == column.id:
                arrow = "↓" if self._sorted[1] else "↑"
                title = f"{title} {arrow}".strip() if len(title) + 2 <= cells else f"{title[: cells - 1]}{arrow}"
            parts += [fit(Content(title), cells, column.align), " "]
        return to_strip(self, Content.assemble(*parts[:-1]), width, self.get_visual_style("record-table--header"))
