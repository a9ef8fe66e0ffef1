"""The Metrics screen: how well learning works, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Final

from textual import events, on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from core.metrics import DEFAULT_WEEKS
from core.metrics.dashboard import (
    RANGES,
    Dashboard,
    build_dashboard,
    list_used,
    list_week_starts,
)
from core.metrics.export import FORMATS, export_metrics, section_markdown
from core.metrics.lesson_effect import select_registered
from core.metrics.sections import Figure, Goal, Row, build_figures
from core.queries.pattern_filter import build_id_query
from core.show.table import Column
from tui.present import metrics as present
from tui.present.metrics_chart import week_chart
from tui.screens.base_screen import BaseScreen
from tui.screens.file_export import export
from tui.widgets.bars import Item, ItemLine
from tui.widgets.drawing import Drawing
from tui.widgets.record_table import GUTTER, RecordTable

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import ComposeResult

    from core.records.snapshot import Delta
    from core.records.team_status import TeamStatus
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells

TILED: Final = 160  # cells of the screen from which the other sections are tiles below the current one
TALL: Final = 32  # lines of the screen from which there is room for explanations and other sections
HEADING_LINES: Final = 3  # lines of the rows besides themselves: heading and empty text
LEAST_BAR: Final = 10  # minimum cells of a bar
COUNT_CELLS: Final = 7  # minimum cells of a number
REACH_CELLS: Final = 13  # cells of an interval and its label


class MetricsScreen(BaseScreen):
    """Lists the sections on the left, and shows the current one on the right above others."""

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
        self.set_class(event.size.width >= TILED and event.size.height >= TALL, "-tiled")
        self.set_class(event.size.height >= TALL, "-tall")
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
        weekly = present.over_weeks(figure)
        self.set_class(weekly and bool(figure.rows), "-weekly")
        keys = (self.services.shown_key("fewer_weeks"), self.services.shown_key("more_weeks"))
        self.query_one("#metrics-head", ItemLine).show(
            [Item(Content.styled(figure.title, "bold $secondary"))], [Item(present.range_note(self._weeks, keys))]
        )
        is_read = not self.view.snapshot.is_partial
        takeaway = present.takeaway(figure) if is_read else "Still opening. All figures follow when all files are read."
        self.query_one("#metrics-takeaway", Static).update(takeaway)
        self.query_one("#metrics-note", Static).update(Content.styled(figure.note, "$quiet"))
        self._show_rows(figure)
        self._draw(figure)
        self.refresh_frame()

    def _show_rows(self, figure: Figure) -> None:
        table = self.rows
        table.styles.max_height = None if present.over_weeks(figure) else len(figure.rows) + HEADING_LINES
        columns, self._bar = self._columns(figure, table.scrollable_content_region.width - GUTTER)
        table.use(columns)
        keys = [str(n) for n in range(len(figure.rows))]
        back = bool(figure.rows) and figure.rows[-1].week is not None
        table.show(keys[::-1] if back else keys)

    def _columns(self, figure: Figure, width: int) -> tuple[Sequence[Column], int]:
        """Return the columns of the rows, and the number of cells left for the bar."""
        label = Column("label", figure.about, present.label_cells(figure) + 2)
        rest = [Column("reach", figure.reach, REACH_CELLS, align="right")] if figure.reach else []
        if figure.extra:
            rest.append(Column("extra", figure.extra, COUNT_CELLS, align="right"))
        if figure.percent or len(figure.parts) > 1 or figure.reach:
            rest.append(Column("count", "n", COUNT_CELLS, align="right"))
        numbers: list[Column] = []
        left = 0
        for form in present.Title:
            titles = [present.part_title(figure, n, self.glyphs, form) for n in range(len(figure.parts))]
            sizes = [max(len(title), COUNT_CELLS) for title in titles]
            numbers = [Column(f"part{n}", titles[n], sizes[n], align="right") for n in range(len(titles))]
            left = width - sum(column.width + 1 for column in (label, *numbers, *rest))
            if left >= LEAST_BAR:
                break
        bar = max(left - 1, LEAST_BAR)
        return (label, Column("bar", "", bar), *numbers, *rest), bar

    def _draw_chart(self, figure: Figure) -> None:
        """Draw the chart of the section, with the row under the cursor highlighted."""
        glyphs, at = self.glyphs, self._row_number()
        chart = self.query_one("#metrics-chart", Drawing)
        chart.show(lambda width, height: week_chart(figure, width, height, glyphs, at))

    def _draw(self, figure: Figure) -> None:
        self._draw_chart(figure)
        glyphs = self.glyphs
        others = [other for other in self._figures.values() if other is not figure]
        arrange = present.grid if self.has_class("-tiled") else present.tiles
        self.query_one("#metrics-below", Drawing).show(lambda width, height: arrange(others, width, height, glyphs))

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
        return present.row_cells(figure, figure.rows[int(key)], self._bar, self.glyphs)

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
        if action == "back" and not self._in_rows and not self.selections:
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
        self.sections.focus()

    def action_export(self) -> None:
        found, project = self._found, self.services.project.project.project.name
        if found is not None:
            name = f"ralphdeck-metrics-{found.now:%Y-%m-%d}.md"
            export(self, "the metrics", name, tuple(FORMATS), lambda suffix: export_metrics(found, suffix, project))

    def subject(self) -> str:
        return self.figure.title if self.figure is not None else ""

    def copy_markdown(self) -> str:
        found, project = self._found, self.services.project.project.project.name
        return export_metrics(found, ".md", project).decode() if found is not None else ""

    def copy_text(self) -> str:
        return section_markdown(self.figure) if self.figure is not None else ""


def _uses_at(team: TeamStatus | None) -> datetime | None:
    return team.uses_at if team is not None else None
