"""The Now screen: what needs you, news since your last visit, effect of lessons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, partialmethod
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.cells import cell_len
from textual.content import Content

from core.agents.setup import read_setup, try_hooks
from core.base.text import capitalized, plural, visible_line
from core.show.now import (
    MOST_PROPOSED,
    PROPOSE,
    TRUST,
    Now,
    NowLine,
    NowSection,
    Setup,
    Target,
    find_offers,
    make_page,
    page_document,
)
from core.show.pages.document import Column
from core.show.pages.markdown import to_markdown
from tui.kit.drawing import fit
from tui.kit.looks import Glyphs, style_of
from tui.kit.record_table import RecordTable
from tui.screens.base_screen import BaseScreen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual import events
    from textual.app import ComposeResult

    from core.index.project_state import ProjectState
    from core.records.snapshot import Delta
    from core.show.metrics.lesson_effect import LessonEffect
    from tui.kit.looks import Cells

PAUSE_SECONDS: Final = 0.5  # between two pages of a project that changes
LINE: Final = "line"  # the only column
GAP: Final = "gap:"  # prefix of the keys of empty rows
REST: Final = ":rest"  # suffix of the keys of rows that count what is left out
LEAST_WITH_GAPS: Final = 5  # lines for each section from which on there are empty lines between sections
LEAST_WITH_REST: Final = 3  # lines of a section from which on the last one counts what is left out
MAX_TEXT: Final = 400  # characters
WIDE: Final = 100  # cells from which the word of a sign and all facts are shown
GAP_CELLS: Final = 2  # cells between a title, facts and text
TITLE_SHARE: Final = 0.36  # share of the width that titles of lines get if texts are long
REFRESH_TICKS: Final = 10  # seconds between two refreshes of ages


class Row:
    """A row: title of a section, line of it, or what is omitted after `shown` lines."""

    __slots__ = ("line", "section", "shown")

    def __init__(self, section: NowSection, line: NowLine | None = None, shown: int = 0) -> None:
        self.section, self.line, self.shown = section, line, shown


def lay_out(page: Now, height: int) -> dict[str, Row | None]:
    """Choose the rows that fit into `height` lines, by key; None is an empty row.

    Every section keeps its title. If lines are left out, the last row of the section counts them. Sections with few
    lines are whole before those with many get more.
    """
    gaps = len(page.sections) - 1
    has_gaps = height - gaps >= len(page.sections) * (1 + LEAST_WITH_GAPS)
    counts = _share_lines(page.sections, height - gaps * has_gaps)
    rows: dict[str, Row | None] = {}
    for number, (section, count) in enumerate(zip(page.sections, counts, strict=True)):
        if number and has_gaps:
            rows[f"{GAP}{section.id}"] = None
        rows[section.id] = Row(section)
        has_rest = section.total > count and (count >= LEAST_WITH_REST or count > len(section.lines))
        shown = section.lines[: count - has_rest]
        for line in shown:
            rows[_line_key(section, line, rows)] = Row(section, line)
        if has_rest:
            rows[f"{section.id}{REST}"] = Row(section, shown=len(shown))
    return rows


def _line_key(section: NowSection, line: NowLine, rows: Mapping[str, Row | None]) -> str:
    key = f"{section.id}:{line.target.key if line.target is not None else line.title}"
    return key if key not in rows else f"{key}:{len(rows)}"


def _share_lines(sections: Sequence[NowSection], height: int) -> list[int]:
    """Return how many lines each section shows: at most `height` with their titles."""
    wanted = [len(section.lines) + (section.total > len(section.lines) > 0) for section in sections]
    counts = [0] * len(sections)
    left = max(height - len(sections), 0)
    while left > 0 and (open_ones := [n for n, count in enumerate(counts) if count < wanted[n]]):
        for n in open_ones[:left]:
            counts[n] += 1
        left -= min(len(open_ones), left)
    return counts


def draw_row(row: Row, width: int, glyphs: Glyphs) -> Content:
    """Draw a row of `width` cells; in a wide one the sign of a line has its word."""
    section, line = row.section, row.line
    if line is None:
        if row.shown:
            return Content.styled(f"    {section.rest_text(row.shown)}", "$quiet")
        is_cut = cell_len(section.title) + 3 + cell_len(section.note) > width
        note = section.short_note if is_cut and section.short_note else section.note
        return Content.assemble((section.title, "bold"), "   ", (note, "$quiet"))
    style = style_of(line.sign.style)
    parts: list[Content | str | tuple[str, str]] = ["  ", (glyphs[line.sign.glyph], style), " "]
    if width >= WIDE and (words := max(len(one.sign.text) for one in section.lines)):
        parts += [(line.sign.text.ljust(words), style), "  "]
    title = Content(visible_line(line.title))
    if not line.facts and (not line.text or line.target == Target(PROPOSE)):
        return Content.assemble(*parts, title)
    facts = _fact_cells(section)
    first = 0 if width >= WIDE else max(len(facts) - 1, 0)  # a narrow one has the last fact only
    used = Content.assemble(*parts).cell_length
    parts += [fit(title, _title_cells(section, facts[first:], width - used)), "  "]
    for number, cells in enumerate(facts[first:], first):
        text = line.facts[number] if number < len(line.facts) else ""
        parts += [Content.styled(text.rjust(cells), "$quiet"), "  "]
    return Content.assemble(*parts, visible_line(line.text, MAX_TEXT))


def _title_cells(section: NowSection, facts: Sequence[int], width: int) -> int:
    """Return the cells of a section's titles: the longest, if the rest leaves room."""
    longest = max(cell_len(line.title) for line in section.lines)
    texts = max(cell_len(line.text[:MAX_TEXT]) for line in section.lines)
    room = width - GAP_CELLS - sum(facts) - GAP_CELLS * len(facts) - texts
    return max(min(longest, max(room, int(width * TITLE_SHARE))), 1)


def _fact_cells(section: NowSection) -> list[int]:
    """Return the cells of each column of facts in a section."""
    columns = zip_longest(*(line.facts for line in section.lines), fillvalue="")
    return [max(map(len, column)) for column in columns]


class SectionTable(RecordTable):
    """A list of sections; the cursor skips the empty rows between them."""

    def validate_cursor(self, row: int) -> int:
        step = 1 if row >= self.cursor else -1
        row = super().validate_cursor(row)
        while 0 <= row < len(self.keys) and self.keys[row].startswith(GAP):
            row += step
        return super().validate_cursor(row)


class NowScreen(BaseScreen):
    """Shows the page of `core.show.now`; each line opens its subject; `back` returns."""

    place = "now"

    def __init__(self) -> None:
        super().__init__()
        self._page: Now | None = None
        self._setup: Setup | None = None
        self._rows: dict[str, Row | None] = {}
        self._effect: tuple[object, bool, LessonEffect] | None = None  # with what it was measured from
        self._ticks = 0
        self._when_shown: list[Callable[[], object]] = []
        self._has_tried_hooks = False
        self._proposing: tuple[int, int] | None = None
        """Number of sessions that lessons were proposed from, and of all, while that is being done."""

    def compose_content(self) -> ComposeResult:
        yield SectionTable((Column(LINE, "", 10, flex=1),), self._cells, self._nothing, id="now-table")

    def when_shown(self, call: Callable[[], object]) -> None:
        if self._page is None:
            self._when_shown.append(call)
        else:
            super().when_shown(call)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Make the page of a newer state in a thread; many changes together make one."""
        pause = 0.0 if self._page is None else PAUSE_SECONDS
        self.run_in_thread("page", partial(self._read, view), self._show_page, pause=pause)

    def _read(self, view: ProjectState) -> tuple[Now, Setup]:
        """Read how far the project is set up, and make the page; runs in a thread."""
        services = self.services
        setup, known = read_setup(services.project.project), self._setup
        if known is not None and known.connected == setup.connected:
            setup = replace(setup, hooks=known.hooks, has_hook_problem=known.has_hook_problem)
        effect = self._measure_effect(view)
        page = make_page(
            view, services.last_visit, setup, effect, now=services.now(), is_searching=services.is_counting
        )
        return page, setup

    def _measure_effect(self, view: ProjectState) -> LessonEffect | None:
        """Return whether lessons help; measured again when the evidence has changed."""
        if view.snapshot.as_of is not None or not view.snapshot.complete:
            return None
        from core.show.metrics.lesson_effect import measure_lesson_effect  # imports NumPy

        is_running = view.experiment is not None
        if self._effect is None or self._effect[0] is not view.evidence or self._effect[1] is not is_running:
            effect = measure_lesson_effect(view.snapshot, view.board, view.settings, is_running=is_running)
            self._effect = view.evidence, is_running, effect
        return self._effect[2]

    def _show_page(self, read: tuple[Now, Setup]) -> None:
        had_lines = any(row is not None and row.line is not None for row in self._rows.values())
        self._page, self._setup = read
        self._lay_out()
        if not had_lines:
            self.table.cursor = next((n for n, row in enumerate(self._rows.values()) if row and row.line), 0)
        while self._when_shown:
            super().when_shown(self._when_shown.pop())
        self._try_hooks()
        self.refresh_frame()

    def _lay_out(self) -> None:
        """Choose the rows for the size of the screen."""
        if (page := self._page) is None:
            return
        self.table.use((Column(LINE, self._headline(page), 10, flex=1),))
        self._rows = lay_out(page, max(self.table.size.height - 1, 1))
        self.table.show([*self._rows])

    def _headline(self, page: Now) -> str:
        """Return the heading: since when things are new, and which agents are connected."""
        connected = self._setup.connected if self._setup is not None else ()
        agents = f"{', '.join(connected)} connected" if connected else "no agent connected"
        return f"{capitalized(page.span)} · {agents}"

    def on_resize(self, event: events.Resize) -> None:
        self.refresh_frame()
        self.call_after_refresh(self._lay_out)

    def returned(self) -> None:
        self.redraw_all()

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks % REFRESH_TICKS == 0:
            self.refresh_view(self.view, None)

    def _cells(self, key: str) -> Cells:
        if (row := self._rows.get(key)) is None:
            return {}
        if self._proposing is not None and row.line is not None and row.line.target == Target(PROPOSE):
            done, total = self._proposing
            text = f"Proposing lessons: {done} of {plural(total, 'session')}"
            row = Row(row.section, replace(row.line, title=text))
        return {LINE: draw_row(row, self.table.width_of(LINE), self.glyphs)}

    def _nothing(self) -> Content:
        return Content.styled("Reading the project", "$quiet")

    def _try_hooks(self) -> None:
        """Run the hooks of connected agents once if no session shows that they work."""
        setup, project = self._setup, self.services.project
        is_waiting = self.view.snapshot.complete and not self.view.snapshot.loops and not project.is_readonly
        if setup is not None and setup.connected and is_waiting and not self._has_tried_hooks:
            self._has_tried_hooks = True
            self.run_in_thread("hooks", partial(try_hooks, project.project), self._show_hooks)

    def _show_hooks(self, found: tuple[str, bool]) -> None:
        if self._setup is not None:
            self._setup = replace(self._setup, hooks=found[0], has_hook_problem=found[1])
            self.refresh_view(self.view, None)

    # Actions

    def _row(self) -> Row | None:
        return self._rows.get(self.table.cursor_key or "")

    def _target(self) -> Target | None:
        row = self._row()
        if row is None:
            return None
        return row.line.target if row.line is not None else row.section.target

    def why_not(self, action: str) -> str | None:
        match action:
            case "open" if self._target() is None:
                return "There is nothing to open here"
            case "propose" if self._proposing is not None:
                return "Lessons are being proposed"
            case "propose" if not self._can_propose():
                return "This project has lessons already; Review asks about new lessons"
        return super().why_not(action)

    def own_keys(self) -> frozenset[str]:
        return frozenset() if self._can_propose() else frozenset({"propose"})

    def _can_propose(self) -> bool:
        rows = (row for row in self._rows.values() if row is not None and row.line is not None)
        return any(row.line is not None and row.line.target == Target(PROPOSE) for row in rows)

    def label_for(self, action: str) -> str | None:
        return {"filter": "find", "next_tab": "next section"}.get(action)

    async def action_open(self) -> None:
        if (target := self._target()) is None:
            return
        if target.place in (TRUST, PROPOSE):
            await self.run_id(target.place)
        elif target.key:
            self.services.open_record(target.place, target.key, tab=target.tab)
        else:
            self.services.open_place(target.place, target.filter)

    def action_filter(self) -> None:
        self.app.action_command_palette()

    def _next_section(self, by: int) -> None:
        """Move the cursor to the title of the next section that has lines, in a cycle."""
        keys = [key for key, row in self._rows.items() if row is not None and row.line is None and not row.shown]
        at = self.table.cursor
        places = [place for key in keys if (place := self.table.position(key)) is not None]
        following = [place for place in places if place > at] if by > 0 else [place for place in places if place < at]
        if places:
            self.table.cursor = (following or places)[0 if by > 0 else -1]

    action_next_tab = partialmethod(_next_section, 1)
    action_previous_tab = partialmethod(_next_section, -1)
    action_next_pane = action_next_tab
    action_previous_pane = action_previous_tab

    def action_propose(self) -> None:
        """Extract from the best sessions, as one decision; Review asks about each."""
        from core.decisions.commands import Extract, ExtractMany

        offers = find_offers(self.view)[:MOST_PROPOSED]
        self._proposing = 0, len(offers)
        commands = tuple(Extract(item.subject, unattended=True) for item in offers)
        self.services.decide(ExtractMany(commands), progress=self._note_progress, done=self._end_progress)

    def _note_progress(self, done: int, total: int) -> None:
        """Show the progress; called in the thread of the engine."""
        self.app.call_from_thread(self._show_progress, (done, total))

    def _end_progress(self) -> None:
        self.app.call_from_thread(self._show_progress, None)

    def _show_progress(self, progress: tuple[int, int] | None) -> None:
        self._proposing = progress
        self.table.redraw()

    def subject(self) -> str:
        row = self._row()
        return "" if row is None else row.line.title if row.line is not None else row.section.title

    def copy_text(self) -> str:
        key = self.table.cursor_key
        return self._cells(key)[LINE].plain.strip() if key is not None and self._row() is not None else ""

    def copy_markdown(self) -> str:
        name = self.services.project.project.project.name
        return to_markdown(page_document(self._page, name)) if self._page is not None else ""
