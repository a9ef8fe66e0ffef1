"""Base of the screens with a filtered list and tabs of details."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partialmethod
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from core.base.text import capitalized, visible_line
from core.show.filter_parser import Fields, Query, parse_query
from core.show.pages.markdown import record_markdown
from tui.kit.actions import PLACES
from tui.kit.bars import Item, ItemLine, TabLine
from tui.kit.drawing import TextPane
from tui.kit.fields import FilterLine
from tui.kit.record_table import RecordTable
from tui.kit.user_state import FollowedLink, ListState, SavedView, order_text
from tui.screens.base_screen import BaseScreen
from tui.screens.document import document_lines
from tui.screens.frame import progress_texts, unreadable

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from core.index.project_state import ProjectState
    from core.records.snapshot import Delta
    from core.show.pages.document import Block
    from tui.kit.looks import Cells

WIDE: Final = 150  # cells of the screen from which list and details are side by side
NOTE_CHARS: Final = 1500  # longest problem of a filter that is shown
END_CHARS: Final = 40  # longest end of a filter that is offered
SLOW_TICKS: Final = 10  # seconds between two redraws of a list without running clocks
YOUNG: Final = timedelta(minutes=2)  # how long after the last activity of a record its clock is redrawn every second

_ON_ROWS: Final = frozenset({"open", "copy", "copy_whole", "edit_file", "mark", "mark_all", "next_tab", "previous_tab"})
"""Actions that need a record under the cursor."""


class ListScreen(BaseScreen):
    """Base of screens with filter line, table, tabs, details, links and saved views.

    Details are rendered when the cursor stops, not for each row that it passes.
    """

    FIELDS: ClassVar[Fields] = {}
    TABS: ClassVar[tuple[str, ...]] = ("Details",)

    def __init__(self) -> None:
        super().__init__()
        self._query = Query(())
        self._sort: tuple[str, bool] | None = self.TABLE.sorts[0] if self.TABLE.sorts else None
        self._tab = self.TABS[0]
        self._ticks = 0
        self._framed: str | None = None  # the row under the cursor when the key line was drawn
        self._evidence: object = None  # what is shown; not its board, which has megabytes
        self._first = 0  # the first matching row of the filter of the last run, while files are read
        self._note = ""  # the problems that are shown above the list
        self._is_loading = True  # whether the shown records are not all, or not checked yet
        self._deciding: frozenset[str] = frozenset()
        """Keys of records whose decision is being written. The cursor does not follow them when they move."""
        self._pending_state: ListState | None = None
        """The state of the list to restore at the next visit, after a link led here."""

    # What subclasses provide

    @property
    def fields(self) -> Fields:
        """The fields of the filter."""
        return self.FIELDS

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        """Return the keys of the matching rows in display order."""
        raise NotImplementedError

    def changed_rows(self, view: ProjectState, delta: Delta) -> Collection[str] | None:
        """Return the rows whose place, cells or details may change; None if all may."""
        return None

    def select_again(self, view: ProjectState, changed: Collection[str]) -> Sequence[str]:
        """Return what `select` would, given that only these rows may have another place."""
        return self.select(view, self._query, self._sort)

    def total(self, view: ProjectState) -> int:
        raise NotImplementedError

    def matching(self, shown: int) -> int:
        """Return the number of matching records, given the number of visible rows."""
        return shown

    def cells(self, key: str) -> Cells:
        raise NotImplementedError

    def below(self, key: str) -> Content:
        """Return the second line of a row, used if rows have two lines."""
        return Content("")

    def details(self, key: str, tab: str) -> Sequence[Content]:
        """Return the lines of one tab for one record."""
        return document_lines(self.blocks(key, tab), self.view.now, self.glyphs)

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        """Return the content of a tab, for `details` and the clipboard. It may be empty."""
        return ()

    def empty_details(self) -> Sequence[Content]:
        """Return the details shown while the list is empty."""
        return ()

    def empty(self) -> Content:
        """Return the text shown in place of an empty list."""
        return Content.styled(self.TABLE.empty, "$quiet")

    def is_affected_by(self, delta: Delta) -> bool:
        """Return True if a change can affect the list or its details."""
        raise NotImplementedError

    def tabs(self, key: str | None) -> tuple[str, ...]:
        return self.TABS

    def tab_note(self, key: str | None) -> Content | None:
        return None

    def totals(self) -> Iterable[str]:
        """Return totals of the visible rows, shown after their number."""
        return ()

    def first_match(self) -> int:
        """Return the number of the first row that matches the filter."""
        return 0

    def filter_note(self) -> str:
        """Return a problem of the filter or its result; may be untrusted."""
        return next(iter(self._query.problems), "")

    def file_note(self) -> str:
        """Return a warning if records are missing because a file is unreadable, or ""."""
        return unreadable(self.view.snapshot.findings, self.TABLE.files, self.services.shown_key("findings"))

    def activity(self) -> Iterable[datetime | None]:
        """Return the last activity of the records whose age may be shown in seconds."""
        return ()

    def named(self, key: str) -> str:
        """Return the displayed, untrusted name of a record."""
        return key

    def compose_content(self) -> ComposeResult:
        yield FilterLine(self.TABLE.hint)
        yield Static(Content(""), classes="filter-note")
        with Container(classes="body"):
            yield RecordTable(self.TABLE.columns, self.cells, self._nothing, below=self.below, id=f"{self.place}-table")
            with Vertical(classes="detail"):
                yield TabLine()
                yield from self.compose_details()

    def compose_details(self) -> ComposeResult:
        yield TextPane(id=f"{self.place}-text")

    @property
    def pane(self) -> TextPane:
        return self.query_one(TextPane)

    @property
    def filter_line(self) -> FilterLine:
        return self.query_one(FilterLine)

    def on_mount(self) -> None:
        """Restore the filter and the order of the last run."""
        if not self.is_composed:
            return
        if saved := self.services.user_state.get_here(f"{self.place}-filter"):
            self._query = parse_query(saved, self.fields)
            self.filter_line.text = saved
        column, _, direction = self.services.user_state.get_here(f"{self.place}-sort").partition(" ")
        if column in dict(self.TABLE.sorts):
            self._sort = (column, direction == "down")
        super().on_mount()
        self.table.focus()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-wide")
        self.refresh_frame()

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """Select the rows again if the change can affect them."""
        changed = None if delta is None else self.changed_rows(view, delta)
        if delta is None or self.is_affected_by(delta):
            self._select(view, changed)
        else:
            self._show_notes()
        has_same_evidence = self._evidence is view.evidence
        self._evidence = view.evidence
        if changed is None or not has_same_evidence or self.table.cursor_key in changed:
            self._show_details(top=delta is None)

    def _select(self, view: ProjectState, changed: Collection[str] | None = None) -> None:
        keys = self.select(view, self._query, self._sort) if changed is None else self.select_again(view, changed)
        is_unmoved = self._is_loading and self.table.cursor in (0, self._first)
        stays = self.table.cursor_key in self._deciding or is_unmoved
        self._is_loading = not view.snapshot.complete or view.snapshot.as_of is not None
        self.table.show(keys, sorted_by=self._sort, keep_row=stays, changed=changed)
        if is_unmoved and self._query.terms:  # a filter of the last run
            self.table.cursor = self._first = self.first_match()
        self._count()

    def _count(self) -> None:
        shown, total = self.matching(len(self.table.keys)), self.total(self.view)
        parts: list[str | tuple[str, str]] = []
        self._show_notes()
        if marked := len(self.table.marked):
            parts.append((f"{marked:,} selected  ", "$accent"))
        snapshot = self.view.snapshot
        reading = " read so far" if snapshot.is_partial else ""
        parts.append((f"{shown:,} of {total:,}" if shown != total else f"{total:,}") + reading)
        parts += [f" · {total}" for total in self.totals()]
        if self._sort is not None:
            column, descending = self._sort
            title = next((known.title for known in self.TABLE.columns if known.id == column), "") or column
            parts.append(order_text(column, title, descending=descending))
        self.filter_line.count(Content.assemble(*parts))

    def _show_notes(self) -> None:
        """Show the problems of the filter and of the files above the list, if any."""
        note = "\n".join(visible_line(text, NOTE_CHARS) for text in (self.filter_note(), self.file_note()) if text)
        if note != self._note:
            self._note = note
            line = self.query_one(".filter-note", Static)
            line.update(Content(note))
            line.display = bool(note)

    def _nothing(self) -> Content:
        if (progress := self.services.progress) is not None:
            return Content.styled(progress_texts("opening", *progress)[0], "$quiet")
        if self._query.terms:
            does = "returns" if self.can_return() else "clears the filter"
            return Content.styled(f"No matches. Esc {does}.", "$quiet")
        return self.empty()

    def _show_details(self, *, top: bool = True) -> None:
        key = self.table.cursor_key
        tabs, tab = self.tabs(key), self.tab(key)
        self.query_one(TabLine).show_tabs(tabs, tabs.index(tab), self.tab_note(key))
        self.pane.show(self.details(key, tab) if key is not None else self.empty_details(), top=top)

    def tab(self, key: str | None) -> str:
        """Return the tab for a record: the last chosen one if available, or the first."""
        tabs = self.tabs(key)
        return self._tab if self._tab in tabs else tabs[0]

    def tick(self) -> None:
        """Redraw times: every second if seconds are visible, otherwise every ten seconds."""
        self._ticks += 1
        since = self.services.now() - YOUNG
        if self._ticks % SLOW_TICKS == 0 or any(at is not None and at > since for at in self.activity()):
            self.table.redraw()

    @on(FilterLine.Changed)
    def _filtered(self, message: FilterLine.Changed) -> None:
        message.stop()
        self._query = parse_query(message.text, self.fields)
        self._save_filter(message.text)
        self._select(self.view)
        if self._query.terms:
            self.table.cursor = self.first_match()  # while typing
        self.refresh_frame()

    def _put_filter(self, text: str) -> None:
        """Apply a filter without saving it."""
        with self.prevent(Input.Changed):
            self.filter_line.text = text
        self._query = parse_query(text, self.fields)
        self._select(self.view)

    def _save_filter(self, text: str) -> None:
        self.services.user_state.set_here(f"{self.place}-filter", text)

    @on(FilterLine.Left)
    def _filter_left(self, message: FilterLine.Left) -> None:
        message.stop()
        self.table.focus()

    def action_filter(self) -> None:
        self.filter_line.offer(self.fields)
        self.filter_line.focus_input()

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _typing_changed(self) -> None:
        if self.is_composed:
            self.refresh_frame()

    def _key_items(self) -> tuple[list[Item], list[Item]]:
        """Return the possible ends of the filter while typing, else the screen's keys."""
        left, right = super()._key_items()
        if not (possible := self.filter_line.completions):
            return left, right
        ends = [visible_line(text.rsplit(" ", 1)[-1], END_CHARS) for text in possible]
        first = Item(Content.assemble(("tab", "$accent bold"), " ", (ends[0], "$foreground")))
        return [first, *(Item(Content(end)) for end in ends[1:])], right

    @on(RecordTable.HeaderClicked)
    def _header_clicked(self, message: RecordTable.HeaderClicked) -> None:
        message.stop()
        if (descending := dict(self.TABLE.sorts).get(message.column)) is not None:
            is_again = self._sort is not None and self._sort[0] == message.column
            self._sort_by(message.column, not self._sort[1] if is_again and self._sort else descending)

    def action_sort(self) -> None:
        """Sort by the next visible column; after the last, by orders without a column."""
        columns = [column.id for column in self.table.columns]
        hidden = {column.id for column in self.TABLE.columns} - set(columns)
        sorts = [sort for sort in self.TABLE.sorts if sort[0] not in hidden]
        sorts.sort(key=lambda sort: columns.index(sort[0]) if sort[0] in columns else len(columns))
        sorted_by = [column for column, _ in sorts]
        following = sorted_by.index(self._sort[0]) + 1 if self._sort is not None and self._sort[0] in sorted_by else 0
        self._sort_by(*sorts[following % len(sorts)])

    def action_reverse(self) -> None:
        if self._sort is not None:
            self._sort_by(self._sort[0], not self._sort[1])

    def _sort_by(self, column: str, descending: bool) -> None:
        self._sort = (column, descending)
        self.services.user_state.set_here(f"{self.place}-sort", f"{column} {'down' if descending else 'up'}")
        self._select(self.view)

    @on(RecordTable.Highlighted)
    def _highlighted(self, message: RecordTable.Highlighted) -> None:
        message.stop()
        self._show_details()
        if self.table.cursor_key != self._framed:  # after a key it is drawn for this row already
            self.refresh_frame()

    def refresh_frame(self) -> None:
        super().refresh_frame()
        if self.is_composed:
            self._framed = self.table.cursor_key

    @on(ItemLine.Clicked, "TabLine")
    def _tab_clicked(self, message: ItemLine.Clicked) -> None:
        message.stop()
        self.show_tab(int(message.value))

    def show_tab(self, number: int) -> None:
        tabs = self.tabs(self.table.cursor_key)
        self._tab = tabs[number % len(tabs)]
        self._show_details()

    def _step_tab(self, by: int) -> None:
        key = self.table.cursor_key
        self.show_tab(self.tabs(key).index(self.tab(key)) + by)

    action_next_tab = partialmethod(_step_tab, 1)
    action_previous_tab = partialmethod(_step_tab, -1)

    def action_open(self) -> None:
        self.set_class(True, "-detail")
        self.pane.focus()

    def action_back(self) -> None:
        """Leave the first of: text selection, link, details, filter line, marks, filter."""
        if self.selections:
            self.clear_selection()
        elif self.can_return():
            self.services.go_back()
        elif self.has_class("-detail") or self.focused is self.pane:
            self.set_class(False, "-detail")
            self.table.focus()
        elif isinstance(self.focused, Input):
            self.filter_line.text = ""
            self.table.focus()
        elif self.table.marked:
            self.table.clear_marks()
            self._count()
        else:
            self.filter_line.text = ""

    def _can_go_back(self) -> bool:
        """Return True if there is anything to leave, or a link to return along."""
        typed = isinstance(self.focused, Input) or self.filter_line.text
        left = self.has_class("-detail") or self.focused is self.pane
        return bool(self.selections or typed or left or self.table.marked or self.can_return())

    def why_not(self, action: str) -> str | None:
        if action in {"sort", "reverse"} and not self.TABLE.sorts:
            return "This list has a fixed order"
        if action == "back" and not self._can_go_back():
            return "Nothing to leave"
        if action in _ON_ROWS and self.table.cursor_key is None:
            return "The list is empty"
        if action in {"next_tab", "previous_tab"} and len(self.tabs(self.table.cursor_key)) < 2:
            return "There is only one tab"
        return None

    def with_cursor(self, then: Callable[[str], None]) -> None:
        """Call `then` with the key of the record under the cursor, if there is one."""
        if key := self.table.cursor_key:
            then(key)

    def subject(self) -> str:
        key = self.table.cursor_key
        return self.named(key) if key is not None else ""

    def copy_text(self) -> str:
        return self.pane.plain if self.focused is self.pane else self.table.cursor_key or ""

    def copy_markdown(self) -> str:
        """Return the row and the visible tab of the details as Markdown."""
        key = self.table.cursor_key
        if key is None:
            return ""
        shown = self.blocks(key, self.tab(key)) or self.pane.plain
        return record_markdown(self.named(key), list(self.words(key).items()), [(self.tab(key), shown)])

    def words(self, key: str) -> dict[str, str]:
        """Return the cells of a row by heading, with glyphs replaced by words."""
        titles = {column.id: column.title or column.id for column in self.table.columns}
        return {titles[id]: cell.plain for id, cell in self.cells(key).items() if id in titles}

    # Links and saved views

    def catch_up(self, *, anew: bool = False) -> None:
        super().catch_up(anew=anew)
        if self.is_current:
            self._restore_pending()

    def list_state(self) -> ListState:
        whole, table = self.has_class("-detail"), self.table
        return ListState(self.filter_line.text, table.cursor_key, self._tab, whole=whole, marked=table.marked)

    def follow_link(self, link: FollowedLink, show: Callable[[BaseScreen], None]) -> None:
        """Show the target of a link, and save the state of the list before and after."""
        self._restore_pending()
        link.before = self.list_state()
        self.set_class(False, "-detail")
        self.table.focus()
        show(self)
        link.after = self.list_state()
        self.refresh_frame()

    def leave_link(self, link: FollowedLink, *, back: bool) -> None:
        """Restore the list from before the link if `back` or no filter was typed since."""
        if link.before is None or link.after is None:
            return
        text = self.filter_line.text if self._pending_state is None else self._pending_state.filter
        if back or text in {"", link.after.filter}:
            self._pending_state = link.before
            self._save_filter(link.before.filter)

    def _restore_pending(self) -> None:
        list_state, self._pending_state = self._pending_state, None
        if list_state is not None:
            self.restore_list(list_state)

    def restore_list(self, list_state: ListState) -> None:
        """Restore the filter, tab, cursor and focus of the list."""
        self._put_filter(list_state.filter)
        self._tab = list_state.tab
        if list_state.key is not None:
            self.table.go_to(list_state.key)
        self.set_class(list_state.whole, "-detail")
        (self.pane if list_state.whole else self.table).focus()
        self._show_details()
        self.refresh_frame()

    def can_return(self) -> bool:
        link = self.services.link
        if link is None or link.after is None or not super().can_return():
            return super().can_return()
        if self.has_class("-detail") or isinstance(self.focused, Input) or self.focused is self.pane:
            return False
        is_links_filter = self.filter_line.text in {"", link.after.filter}
        return is_links_filter and self.table.marked in (frozenset(), link.after.marked)

    def show_filter(self, text: str, key: str) -> None:
        """Apply the filter of a link without saving it, and move the cursor to a record."""
        self._put_filter(text)
        self.table.go_to(key)
        self.table.focus()

    def current_view(self) -> SavedView:
        sort = f"{self._sort[0]} {'down' if self._sort[1] else 'up'}" if self._sort is not None else ""
        tab = self.tab(self.table.cursor_key)
        return SavedView("", self.place, self.filter_line.text, sort, tab if tab != self.TABS[0] else "")

    def show_view(self, view: SavedView) -> None:
        """Apply filter, order and tab of a saved view, with the cursor on the first row."""
        column, _, direction = view.sort.partition(" ")
        if column in dict(self.TABLE.sorts):
            self._sort_by(column, direction == "down")
        self._tab = view.tab or self._tab
        self._put_filter(view.filter)
        self._save_filter(view.filter)
        self.table.cursor = self.first_match()
        self.table.focus()
        self._show_details()
        self.refresh_frame()

    def go_to(self, key: str) -> None:
        if self.table.position(key) is None:
            self._put_filter("")
            if self.services.link is None:
                self._save_filter("")
        if not self.table.go_to(key):
            place = PLACES[self.place][1]
            self.services.say(capitalized(f"{self.named(key)} is no longer in {place}"), severity="warning")
