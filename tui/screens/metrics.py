"""The Metrics screen: whether lessons help, then all other numbers by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial, partialmethod
from math import floor, log10
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from textual import events, on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from core.base.formatting import format_count, format_decimal
from core.base.text import end_with_ellipsis, visible_line
from core.records.patterns import Maturity
from core.show.filter_parser import build_id_query
from core.show.metrics import DEFAULT_WEEKS
from core.show.metrics.dashboard import (
    RANGES,
    Dashboard,
    build_dashboard,
    list_used,
    list_week_starts,
    select_registered,
)
from core.show.metrics.sections import (
    FORMATS,
    Figure,
    Goal,
    Kind,
    Row,
    build_figures,
    export_metrics,
    part_text,
    section_markdown,
    value_text,
)
from core.show.pages.document import ALWAYS, Column
from tui.kit.bars import Item, ItemLine
from tui.kit.drawing import Drawing, fit
from tui.kit.looks import ASCII, STATE_SHORT, STATE_STYLES, Cells, Glyphs
from tui.kit.record_table import GUTTER, RecordTable, fit_columns
from tui.screens.base_screen import BaseScreen

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import ComposeResult

    from core.index.project_state import ProjectState
    from core.records.snapshot import Delta
    from core.records.team import TeamStatus

TALL: Final = 32  # lines of the screen from which there is room for explanations and other sections
TILED: Final = 46  # lines of the screen from which there is room for other sections below a chart over weeks
LEAST_ROWS: Final = 3  # minimum lines of the rows: heading and the text of an empty section
LEAST_BAR: Final = 10  # minimum cells of a bar
LEAST_LABEL: Final = 20  # minimum cells of the label of a row
COUNT_CELLS: Final = 7  # minimum cells of a number
REACH_CELLS: Final = 13  # cells of an interval and its label
RANGE_NAMES: Final[Mapping[int, str]] = {4: "4 weeks", 12: "12 weeks", 52: "1 year"}

AXIS_CELLS: Final = 7  # cells of the labels on the left, their ticks and the axis
LEAST_CHART: Final = 4  # minimum lines of a chart over weeks, including the week labels
LEAST_PLOT: Final = 4  # minimum lines of the plot below a legend
LEAST_ROOM: Final = 20  # minimum cells of a plot
MAX_WEEK: Final = 9
MAX_LABEL_CELLS: Final = 34
TILE_CELLS: Final = 44  # minimum cells of a tile, if there are several side by side
TILE_LINES: Final = 9  # minimum lines of a tile: title, takeaway, legend, four lines of plot, week labels, empty line
TILE_GAP: Final = 3
_NUMBER_CELLS: Final = 6
_FILLS: Final = "█▓▒░▚◦"
_ASCII_FILLS: Final = "#=+.%:"
_STYLES: Final = {
    "worked": "$success",
    "failed": "$error",
    "unclear": "$warning",
    "not followed": "$quiet",
    **{state.value: STATE_STYLES[state] for state in Maturity},
}
"""Styles of parts; a change has the style of the new state, other parts the accent."""
_GROUP_STYLES: Final = {"best": "$success", "worst": "$error", "helps": "$success", "hurts": "$error"}


def over_weeks(figure: Figure) -> bool:
    return figure.kind is Kind.COLUMNS


def label_cells(figure: Figure) -> int:
    widest = max((cell_len(visible_line(row.label)) for row in figure.rows), default=0)
    return max(widest, len(figure.about))


def fill(figure: Figure, part: int, glyphs: Glyphs) -> str:
    """Return the fill character of a part; in ASCII that of a state is its glyph."""
    if glyphs is not ASCII:
        return _FILLS[part % len(_FILLS)]
    states = {state.value: glyphs[state.value] for state in Maturity}
    return states.get(figure.parts[part]) or _ASCII_FILLS[part % len(_ASCII_FILLS)]


def style(figure: Figure, part: int) -> str:
    return _STYLES.get(figure.parts[part].rpartition(" to ")[2], _STYLES.get(figure.parts[part], "$accent"))


class Title(Enum):
    """Length of column headings; `MARK` is a fill character that needs a legend."""

    WHOLE = 0
    SHORT = 1
    MARK = 2


def part_title(figure: Figure, part: int, glyphs: Glyphs, form: Title) -> str:
    """Return the heading of a part; with several parts also its fill character."""
    name = figure.parts[part]
    if form is Title.MARK and over_weeks(figure) and len(figure.parts) > 1:
        return fill(figure, part, glyphs)
    if form is not Title.WHOLE:
        for state in Maturity:
            name = name.replace(state.value, STATE_SHORT[state]).replace(" to ", "-")
    return f"{fill(figure, part, glyphs)} {name}" if len(figure.parts) > 1 else name


def row_columns(figure: Figure, width: int, glyphs: Glyphs) -> tuple[Column, ...]:
    """Return the columns; if space is short, the bar goes first, the interval last."""
    label = min(label_cells(figure), MAX_LABEL_CELLS)
    first = Column("label", figure.about, min(label, LEAST_LABEL) + 2, flex=1, best=label_cells(figure) + 2)
    longest = max(len(figure.group), *(len(row.group) for row in figure.rows), 0)
    last = [Column("group", figure.group, longest, keep=6)] if figure.group else []
    bar = Column("bar", "", LEAST_BAR, flex=3, keep=1)
    reach, extra = len(figure.reach), max(len(figure.extra), *(len(row.extra) for row in figure.rows), 0)
    rest = [Column("reach", figure.reach, REACH_CELLS, align="right", keep=5, best=reach)] if figure.reach else []
    if figure.extra:
        rest.append(Column("extra", figure.extra, COUNT_CELLS, align="right", keep=3, best=extra))
    if figure.has_count and any(row.values != (row.count,) for row in figure.rows):
        rest.append(Column("count", "n", COUNT_CELLS, align="right", keep=2))
    # The interval of bars is that of a difference, which says more than the value.
    keep = 4 if figure.reach and figure.kind is Kind.BARS else ALWAYS
    found: tuple[Column, ...] = ()
    for form in Title:
        titles = [part_title(figure, n, glyphs, form) for n in range(len(figure.parts))]
        least = max(COUNT_CELLS, *(len(row.score) for row in figure.rows), 0)
        numbers = [
            Column(f"part{n}", title, max(len(title), least), align="right", keep=keep)
            for n, title in enumerate(titles)
        ]
        found = (first, *last, bar, *numbers, *rest)
        if sum(column.width + 1 for column in found) <= width:
            break
    return found


def row_cells(figure: Figure, row: Row, bar_width: int, glyphs: Glyphs) -> Cells:
    """Return the cells of a row: label, group, bar, values, interval, and cases."""
    cells = {
        "label": Content(visible_line(row.label)),
        "group": Content.styled(row.group, _GROUP_STYLES.get(row.group, "$quiet")),
        "count": Content.styled(f"{row.count:,}", "$quiet"),
        "reach": Content.styled(reach_cell(figure, row), "$quiet"),
        "extra": Content(visible_line(row.extra)),
        "bar": bar_cell(figure, row, bar_width, glyphs),
    }
    for n, value in enumerate(row.values):
        cells[f"part{n}"] = Content.styled(part_text(figure, row, n), "$foreground" if value else "$quiet")
    if not row.values:
        cells["part0"] = Content.styled("too few" if figure.kind is Kind.SPANS else "no data", "$quiet")
    return cells


def reach_cell(figure: Figure, row: Row) -> str:
    """Return the interval of a row, shorter than in a report."""
    if row.low is None or row.high is None:
        return ""
    if figure.percent or over_weeks(figure):
        return f"{format_decimal(row.low)}–{format_decimal(row.high)}"
    return f"{value_text(figure, row.low)}–{value_text(figure, row.high)}"


def range_note(weeks: int, keys: tuple[str, str]) -> Content:
    """Return the time ranges, the selected one highlighted, between their two keys."""
    parts: list[Content | tuple[str, str]] = [(keys[0], "$accent"), (" ", "")]
    for number, name in RANGE_NAMES.items():
        parts += [(name, "bold $accent underline" if number == weeks else "$quiet"), (" ", "")]
    return Content.assemble(*parts, (keys[1], "$accent"))


def bar_cell(figure: Figure, row: Row, width: int, glyphs: Glyphs) -> Content:
    """Return the bar of a row, on a scale shared by all rows."""
    if figure.kind is Kind.SPANS:
        if not row.values:
            return Content("")
        top = 1.0 if figure.percent else max(max(other.high or 0.0, *other.values) for other in figure.rows) or 1.0
        return _track((row.low or 0.0) / top, row.values[0] / top, (row.high or 0.0) / top, width, glyphs)
    scale = max((sum(other.values) for other in figure.rows), default=0.0) or 1.0
    if figure.percent and over_weeks(figure):
        scale = 1.0
    sizes = _cells([value / scale * width for value in row.values])
    return Content.assemble(*((fill(figure, n, glyphs) * size, style(figure, n)) for n, size in enumerate(sizes)))


def _track(low: float, value: float, high: float, width: int, glyphs: Glyphs) -> Content:
    """Return an interval with its value on a line."""
    first, at, last = (round(share * (width - 1)) for share in (low, value, high))
    return Content.assemble(
        (glyphs.line * first, "$rule"),
        (glyphs.range * (at - first), "$accent"),
        (glyphs.point, "$accent bold"),
        (glyphs.range * (last - at), "$accent"),
        (glyphs.line * (width - 1 - last), "$rule"),
    )


def _cells(sizes: Sequence[float]) -> list[int]:
    """Round the parts of a bar to whole cells; each part above 0 gets at least one."""
    cells, done, drawn = [], 0.0, 0
    for size in sizes:
        done += size
        count = max(round(done) - drawn, 1 if size else 0)
        cells.append(count)
        drawn += count
    while drawn > max(round(done), sum(1 for size in sizes if size)):
        largest = cells.index(max(cells))
        cells[largest] -= 1
        drawn -= 1
    return cells


def legend(figure: Figure, width: int, glyphs: Glyphs) -> list[Content]:
    """Return what a bar stacks: fill character and name of each part with a value."""
    lines = [Content("")]
    for n, part in enumerate(figure.parts):
        if any(row.values and row.values[n] for row in figure.rows):
            item = Content.assemble((fill(figure, n, glyphs), style(figure, n)), f" {part}")
            if lines[-1] and lines[-1].cell_length + item.cell_length + 3 > width:
                lines.append(Content(""))
            lines[-1] = Content.assemble(lines[-1], "   " if lines[-1] else "", item)
    return lines


def week_chart(figure: Figure, width: int, height: int, glyphs: Glyphs, cursor: int | None = None) -> list[Content]:
    """Return a week chart of `height` lines: axis, labels, and a legend if it fits.

    A label at the axis belongs to the upper edge of its line, and 0 to that of the week labels, so that a bar ends at
    its value. If `width` is too small, the weeks furthest from now are dropped. The row `cursor` is marked below.
    """
    room = width - AXIS_CELLS
    if room < LEAST_ROOM or not figure.rows or height < LEAST_CHART:
        return []
    shift = max(len(figure.rows) - room, 0) if figure.rows[-1].week is not None else 0
    rows = figure.rows[shift : shift + room]
    head = legend(figure, width, glyphs) if len(figure.parts) > 1 else []
    if height - 1 - len(head) < LEAST_PLOT:
        head = []
    above = (height - 1 - len(head)) % 2  # half of an even number of lines is at an edge
    lines = height - 1 - len(head) - above
    step = min(room // len(rows), MAX_WEEK)
    top = 1.0 if figure.percent else nice_top(max(sum(row.values) for row in figure.rows))
    columns = [_column(figure, row, top, lines, step, glyphs) for row in rows]
    plot = [
        Content.assemble(_axis(figure, top, line, lines, glyphs), *(column[line] for column in columns))
        for line in range(lines)
    ]
    at = None if cursor is None else cursor - shift
    return [*head, *[Content("")] * above, *plot, _week_labels(figure, rows, step, at, glyphs)]


def _axis(figure: Figure, top: float, line: int, lines: int, glyphs: Glyphs) -> Content:
    share = {0: 1.0, lines // 2: 0.5}.get(line)
    label = ""
    if share is not None and (figure.percent or (top * share).is_integer()):
        label = value_text(figure, top * share)
        label = label if len(label) <= AXIS_CELLS - 2 else format_count(round(top * share))
    return Content.styled(f"{label:>{AXIS_CELLS - 2}}{_tick(label, glyphs)}{'|' if glyphs is ASCII else '│'}", "$quiet")


def _tick(label: str, glyphs: Glyphs) -> str:
    """Return a mark at the upper edge of a cell."""
    return " " if not label else "'" if glyphs is ASCII else "▔"


def _column(figure: Figure, row: Row, top: float, lines: int, step: int, glyphs: Glyphs) -> list[Content]:
    """Return the column of a week from the top down, `step` cells with a gap.

    Its parts are whole cells, and its end is drawn in eighths of a line, except in ASCII.
    """
    steps = 1 if glyphs is ASCII else len(glyphs.sparks)
    total = sum(row.values)
    whole, rest = divmod(max(round(total / top * lines * steps), 1 if total else 0), steps)
    # The height of the column is exact: with fewer cells than parts, the smallest parts have none.
    largest = sorted(range(len(row.values)), key=lambda part: -row.values[part])[: max(whole, 1)]
    seen = [value if part in largest else 0.0 for part, value in enumerate(row.values)]
    sizes = _cells([value / sum(seen) * whole for value in seen]) if whole else []
    wide = max(step - 1, 1)
    pad = " " * (step - wide)
    marks = [(fill(figure, n, glyphs), style(figure, n)) for n, size in enumerate(sizes) for _ in range(size)]
    if rest:
        marks.append((glyphs.sparks[rest - 1], marks[-1][1] if marks else style(figure, largest[0])))
    cells = [Content.assemble((mark * wide, colour), pad) for mark, colour in marks]
    return [Content(" " * step)] * (lines - len(cells)) + cells[::-1][-lines:]


def _week_labels(figure: Figure, rows: Sequence[Row], step: int, cursor: int | None, glyphs: Glyphs) -> Content:
    """Return the line of week labels, with the axis's 0; places the selected first."""
    width = step * len(rows)
    taken: list[tuple[int, int, Content]] = []

    def place(n: int, text: Content) -> None:
        start = min(n * step, max(width - text.cell_length, 0))
        end = start + text.cell_length
        if all(end < other or start > stop for other, stop, _ in taken):
            taken.append((start, end, text))

    if cursor is not None and 0 <= cursor < len(rows):
        mark = "^" if glyphs is ASCII else "▲"
        place(cursor, Content.styled(f"{mark} {visible_line(rows[cursor].label)}", "$accent bold"))
    last_words = [row.label.rpartition(" ")[2] for row in rows]
    years = [word if len(word) == 4 and word.isdecimal() else "" for word in last_words]
    for n, row in enumerate(rows):
        label = row.label.removesuffix(years[n]) if n and years[n] == years[n - 1] else row.label
        place(n, Content.styled(visible_line(label.rstrip()), "$quiet"))
    zero = value_text(figure, 0.0)
    line = Content.styled(f"{zero:>{AXIS_CELLS - 2}}{_tick(zero, glyphs)} ", "$quiet")
    for start, _end, text in sorted(taken, key=lambda one: one[0]):
        line = Content.assemble(line.pad_right(AXIS_CELLS + start - line.cell_length), text)
    return line


def nice_top(value: float) -> float:
    """Return the smallest round number >= `value` whose half is round too."""
    if value <= 1:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    steps = (2, 4, 6, 8, 10) if unit == 1 else (1, 2, 3, 4, 5, 6, 8, 10)
    return next(unit * step for step in steps if unit * step >= value)


def tiles(figures: Sequence[Figure], width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return equal tiles of the sections with data, and a line below for each other.

    Sections for which there is no room are left out.
    """
    drawn = [figure for figure in figures if is_drawable(figure)]
    notes = [
        Content.assemble((figure.title, "bold $secondary"), (f"  {visible_line(figure.takeaway)}", "$quiet"))
        for figure in figures
        if not is_drawable(figure)
    ]
    columns = min(max((width + TILE_GAP) // (TILE_CELLS + TILE_GAP), 1), max(len(drawn), 1))
    cells = (width - TILE_GAP * (columns - 1)) // columns
    rows = min(max(height - len(notes), 0) // TILE_LINES, -(-len(drawn) // columns))
    high = (height - len(notes)) // rows if rows else 0
    lines: list[Content] = []
    for row in range(rows):
        found = [tile(figure, cells, high - 1, glyphs) for figure in drawn[row * columns : (row + 1) * columns]]
        for parts in zip(*found, strict=True):
            lines.append(Content(" " * TILE_GAP).join(part.pad_right(cells - part.cell_length) for part in parts))
        lines.append(Content(""))
    return [*lines, *(note.truncate(width, ellipsis=True) for note in notes)][:height]


def is_drawable(figure: Figure) -> bool:
    """Whether a section has data for a chart; intervals without width are not enough."""
    return bool(figure.rows) and (
        figure.kind is not Kind.SPANS or any((row.high or 0.0) > (row.low or 0.0) for row in figure.rows)
    )


def tile(figure: Figure, width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return a section in `height` lines, `TILE_LINES` - 1 or more, with its chart."""
    picture = LEAST_CHART + LEAST_PLOT - 2 if over_weeks(figure) else 3
    lines = [
        Content.styled(figure.title, "bold $secondary"),
        *_wrapped(figure.takeaway, width, height - 1 - picture),
    ]
    room = height - len(lines)
    lines += week_chart(figure, width, room, glyphs) if over_weeks(figure) else _bars(figure, width, room, glyphs)
    return [*lines, *[Content("")] * (height - len(lines))]


def _bars(figure: Figure, width: int, height: int, glyphs: Glyphs) -> list[Content]:
    """Return the first rows with their bars, and what a bar stacks."""
    several = legend(figure, width, glyphs) if len(figure.parts) > 1 else []
    rows = figure.rows[: max(height - len(several), 1)]
    label = min(label_cells(figure), width // 3)
    numbers = [row.score or value_text(figure, sum(row.values)) if row.values else "—" for row in rows]
    number = max(_NUMBER_CELLS, *map(len, numbers))
    bars = width - label - number - 2
    lines = []
    for row, text in zip(rows, numbers, strict=True):
        drawn = bar_cell(figure, row, bars, glyphs)
        parts = fit(Content(visible_line(row.label)), label), " ", drawn.pad_right(bars - drawn.cell_length), " "
        lines.append(Content.assemble(*parts, (f"{text:>{number}}", "$quiet")))
    return [*lines, *several]


def _wrapped(text: str, width: int, most: int) -> list[Content]:
    """Wrap untrusted text to 1..`most` lines; cut text ends with an ellipsis."""
    lines = Content(visible_line(text)).wrap(width)
    most = max(most, 1)
    if len(lines) <= most:
        return list(lines)
    last = Content(lines[most - 1].plain.rstrip()).truncate(width - 1)
    return [*lines[: most - 1], Content(end_with_ellipsis(last.plain.rstrip()))]


class MetricsScreen(BaseScreen):
    """Lists the sections on the left, and the current one above others on the right."""

    place = "metrics"
    AUTO_FOCUS = "#metrics-sections"

    def __init__(self) -> None:
        super().__init__()
        self._weeks = DEFAULT_WEEKS
        self._found: Dashboard | None = None
        self._figures: dict[str, Figure] = {}
        self._bar = LEAST_BAR

    def compose_content(self) -> ComposeResult:
        with Horizontal(classes="metrics"):
            columns = [Column("title", "section", 10, flex=1)]
            yield RecordTable(
                columns, lambda key: {"title": Content(self._figures[key].title)}, self._missing, id="metrics-sections"
            )
            with Vertical(classes="metrics--figure"):
                yield ItemLine(id="metrics-head")
                yield Static(Content(""), id="metrics-takeaway")
                yield Drawing(id="metrics-chart")
                yield RecordTable((), self._row_cells, self._missing, id="metrics-rows")
                yield Static(Content(""), id="metrics-note")
                yield Drawing(id="metrics-below")

    @property
    def sections(self) -> RecordTable:
        return self.query_one("#metrics-sections", RecordTable)

    @property
    def rows(self) -> RecordTable:
        return self.query_one("#metrics-rows", RecordTable)

    @property
    def figure(self) -> Figure | None:
        return self._figures.get(self.sections.cursor_key or "")

    def on_mount(self) -> None:
        saved = self.services.user_state.get("metrics-weeks")
        self._weeks = next((weeks for weeks in RANGES if str(weeks) == saved), DEFAULT_WEEKS)
        super().on_mount()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height >= TALL, "-tall")
        self.set_class(event.size.height >= TILED, "-tiled")
        self.call_after_refresh(self._show)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Recompute the metrics if a record that they count has changed."""
        if delta is None or delta.affects_scores or delta.debug_sessions:
            self._ask()

    def team_changed(self) -> None:
        super().team_changed()
        if self._found is not None and _uses_at(self._found.team) != _uses_at(self.services.team):
            self._ask()

    def _ask(self) -> None:
        team = self.services.team
        build = partial(build_dashboard, self.view, self.services.project.by, self._weeks, team)
        self.run_in_thread("metrics", build, self._show_metrics)

    def _show_metrics(self, found: Dashboard) -> None:
        self._found = found
        self._figures = {figure.id: figure for figure in build_figures(found)}
        if list(self.sections.keys) != list(self._figures):
            self.sections.show(list(self._figures))
        self._show()

    def _show(self) -> None:
        figure = self.figure if self.is_composed else None
        if figure is None:
            return
        self.set_class(over_weeks(figure) and bool(figure.rows), "-weekly")
        keys = (self.services.shown_key("fewer_weeks"), self.services.shown_key("more_weeks"))
        self.query_one("#metrics-head", ItemLine).show(
            [Item(Content.styled(figure.title, "bold $secondary"))], [Item(range_note(self._weeks, keys))]
        )
        is_read = not self.view.snapshot.is_partial
        text = figure.takeaway if is_read else "Still opening. All figures follow when all files are read."
        takeaway = Content.styled(visible_line(text), "bold" if figure.rows else "$quiet")
        self.query_one("#metrics-takeaway", Static).update(takeaway)
        self.query_one("#metrics-note", Static).update(Content.styled(figure.note, "$quiet"))
        self._show_rows(figure)
        self._draw(figure)
        self.refresh_frame()

    def _show_rows(self, figure: Figure) -> None:
        table = self.rows
        lines = max(len(figure.rows) + 1, LEAST_ROWS)
        table.styles.max_height = None if over_weeks(figure) else lines
        table.styles.min_height = min(lines, self.size.height // 2) if self.has_class("-tall") else None
        width = table.scrollable_content_region.width - GUTTER
        columns = row_columns(figure, width, self.glyphs)
        self._bar = {column.id: cells for column, cells in fit_columns(columns, width)}.get("bar", LEAST_BAR)
        table.use(columns)
        keys = [str(n) for n in range(len(figure.rows))]
        back = bool(figure.rows) and figure.rows[-1].week is not None
        table.show(keys[::-1] if back else keys)

    def _draw_chart(self, figure: Figure) -> None:
        """Draw the chart of the section, with the row under the cursor highlighted."""
        glyphs, at = self.glyphs, self._row_number()
        chart = self.query_one("#metrics-chart", Drawing)
        chart.show(lambda width, height: week_chart(figure, width, height, glyphs, at))

    def _draw(self, figure: Figure) -> None:
        self._draw_chart(figure)
        glyphs = self.glyphs
        is_read = not self.view.snapshot.is_partial
        others = [other for other in self._figures.values() if is_read and other is not figure]
        self.query_one("#metrics-below", Drawing).show(lambda width, height: tiles(others, width, height, glyphs))

    def _row_number(self) -> int | None:
        key = self.rows.cursor_key
        return None if key is None else int(key)

    def _row(self) -> Row | None:
        figure, number = self.figure, self._row_number()
        return figure.rows[number] if figure is not None and number is not None and number < len(figure.rows) else None

    def _row_cells(self, key: str) -> Cells:
        figure = self.figure
        if figure is None or int(key) >= len(figure.rows):
            return {}
        return row_cells(figure, figure.rows[int(key)], self._bar, self.glyphs)

    def _missing(self) -> Content:
        figure = self.figure
        return Content.styled(figure.missing if figure is not None else "Computing…", "$quiet")

    @on(RecordTable.Highlighted, "#metrics-sections")
    def _other_section(self, message: RecordTable.Highlighted) -> None:
        message.stop()
        self._show()
        self.rows.cursor = 0

    @on(RecordTable.Highlighted, "#metrics-rows")
    def _other_row(self, message: RecordTable.Highlighted) -> None:
        message.stop()
        if (figure := self.figure) is not None:
            self._draw_chart(figure)
            self.refresh_frame()

    def why_not(self, action: str) -> str | None:
        if action in {"open", "copy", "copy_whole", "export"} and self._found is None:
            return "Still computing"
        row = self._row() if self._in_rows else None
        if action == "open" and not self._in_rows and not (self.figure is not None and self.figure.rows):
            return "This section has no rows"
        if action == "open" and self._in_rows and not (row and (row.goal or (row.week is not None and row.count))):
            return "There is no record behind this row"
        if action == "fewer_weeks" and self._weeks == RANGES[0]:
            return "This is the shortest time range"
        if action == "more_weeks" and self._weeks == RANGES[-1]:
            return "This is the longest time range"
        if action == "back" and not (self._in_rows or self.selections or self.can_return()):
            return "Nothing to leave"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        if action == "open":
            return "open record" if self._in_rows else "go to rows"
        return {"next_tab": "next section", "previous_tab": "previous section"}.get(action)

    @property
    def _in_rows(self) -> bool:
        return self.focused is self.rows

    def _step_section(self, by: int) -> None:
        if self._figures:
            self.sections.cursor = (self.sections.cursor + by) % len(self._figures)

    action_next_tab = partialmethod(_step_section, 1)
    action_previous_tab = partialmethod(_step_section, -1)

    def _step_range(self, by: int) -> None:
        self._weeks = RANGES[RANGES.index(self._weeks) + by]
        self.services.user_state.set("metrics-weeks", str(self._weeks))
        self._ask()

    action_more_weeks = partialmethod(_step_range, 1)
    action_fewer_weeks = partialmethod(_step_range, -1)

    def action_open(self) -> None:
        if not self._in_rows:
            self.rows.focus()
        elif row := self._row():
            self._open_row(row)

    def _open_row(self, row: Row) -> None:
        """Open the record of a row, or the patterns that were used in its week."""
        goal = row.goal
        if goal is None and row.week is not None:
            board = self.view.board
            start = list_week_starts(board.now, row.week + 1)[0]
            ids = list_used(board, select_registered(board, self.view.snapshot.patterns), start)
            goal = Goal("patterns", build_id_query(ids)[0], ids[0]) if ids else None
        if goal is None:
            self.services.say("The record of this row no longer exists", severity="warning")
        elif goal.filter:
            self.services.open_filtered(goal.place, goal.filter, goal.key)
        else:
            self.services.open_record(goal.place, goal.key)

    def action_back(self) -> None:
        if self.can_return() and not self._in_rows:
            self.services.go_back()
        else:
            self.sections.focus()

    def action_export(self) -> None:
        found, project = self._found, self.services.project.project.project.name
        if found is not None:
            name = f"ralphdeck-metrics-{found.now:%Y-%m-%d}.md"
            self.export("the metrics", name, tuple(FORMATS), lambda suffix: export_metrics(found, suffix, project))

    def subject(self) -> str:
        return self.figure.title if self.figure is not None else ""

    def copy_markdown(self) -> str:
        found, project = self._found, self.services.project.project.project.name
        return export_metrics(found, ".md", project).decode() if found is not None else ""

    def copy_text(self) -> str:
        return section_markdown(self.figure) if self.figure is not None else ""


def _uses_at(team: TeamStatus | None) -> datetime | None:
    return team.uses_at if team is not None else None
