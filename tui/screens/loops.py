"""The Loops screen: all loops from all sources, updated live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content

from core.base.errors import RalphdeckError
from core.documents.loops import elapsed
from core.queries.record_filters import LOOP_FIELDS, select_loops
from core.records.decisions import extraction_question_id
from tui.present import extraction
from tui.present import loops as present
from tui.screens.extraction_preview import preview_extraction
from tui.screens.list_screen import ListScreen
from tui.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from core.documents.document import Block
    from core.queries.filter_parser import Query
    from core.records.loops import Loop, LoopDetails
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells


class LoopsScreen(ListScreen):
    """Lists all loops. The details of the loop under the cursor are read on demand."""

    place = "loops"
    FIELDS = LOOP_FIELDS
    TABS = present.TABS

    def __init__(self) -> None:
        super().__init__()
        self._details: LoopDetails | None = None  # the details that were read last
        self._active: tuple[Mapping[str, Loop] | None, tuple[Loop, ...]] = (None, ())  # active loops of a snapshot

    def is_affected_by(self, delta: Delta) -> bool:
        """Return True if a change can affect a loop, its outcome or its extractable patterns."""
        return bool(delta.loops or delta.events or delta.decisions or delta.debug_sessions)

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        loops = view.snapshot.loops
        keys = select_loops(loops, query, lambda key: view.board.loop_patterns(key).injected_ids)
        name, descending = sort or ("newest", True)
        if name == "newest":
            return sorted(keys, key=lambda key: _rank(loops[key]))

        def value(key: str) -> float | str:
            loop = loops[key]
            if name == "elapsed":
                return elapsed(loop, view.now) or 0.0
            if name == "sign":
                return loop.last_activity.timestamp() if loop.last_activity else float("-inf")
            return loop.status.value if name == "status" else loop.task.lower()

        return sorted(keys, key=value, reverse=descending)

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.loops)

    def _loop(self, key: str | None) -> Loop | None:
        return self.view.snapshot.loops.get(key or "")

    def cells(self, key: str) -> Cells:
        loop = self._loop(key)
        if loop is None:
            return {}
        found, table = self.view.board.outcome(key), self.table
        return present.loop_cells(
            loop,
            found[1] if found else None,
            self.view.board.loop_patterns(key),
            self.services.now(),
            self.glyphs,
            extraction.count_offered(self.view.offers.get(key)),
            with_bar=table.width_of("iteration") >= present.BAR_CELLS,
            in_full=table.width_of("patterns") >= present.PATTERNS_CELLS,
        )

    def words(self, key: str) -> dict[str, str]:
        return super().words(key) | present.unabbreviated_cells(loop) if (loop := self._loop(key)) else {}

    def below(self, key: str) -> Content:
        return present.second_line(loop) if (loop := self._loop(key)) else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        """Return the content of one tab. Details that are not loaded yet are read in a worker."""
        view, loop = self.view, self._loop(key)
        if loop is None:
            return ()
        details = self._details if self._details is not None and self._details.loop_id == key else None
        offers = tuple(extraction.offer_blocks(view.offers.get(key), self.services.shown_key("extract")))
        return present.tab_blocks(loop, tab, details, view, offers)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        super().refresh_view(view, delta)
        key = self.table.cursor_key
        if key is not None and (delta is None or key in delta.loops):
            self._read_details(key)

    @on(RecordTable.Highlighted)
    def _other_loop(self, message: RecordTable.Highlighted) -> None:
        if message.key is not None:
            self._read_details(message.key)

    def _read_details(self, key: str) -> None:
        project = self.services.project

        def read() -> LoopDetails | None:
            try:
                return project.story(key)
            except RalphdeckError:
                return None  # the loop has just been removed; the list will show it

        self.run_in_thread("details", read, self._show_loop)

    def _show_loop(self, found: LoopDetails | None) -> None:
        """Show the details if the cursor is still on the loop."""
        if found is not None and found.loop_id == self.table.cursor_key:
            self._details = found
            self._show_details(top=False)

    def tab_note(self, key: str | None) -> Content | None:
        return Content.styled(", ".join(loop.sources), "$quiet") if (loop := self._loop(key)) else None

    def activity(self) -> Iterable[datetime | None]:
        loops = self.view.snapshot.loops
        if self._active[0] is not loops:
            self._active = loops, tuple(loop for loop in loops.values() if loop.status.active)
        return (loop.last_activity for loop in self._active[1])

    def why_not(self, action: str) -> str | None:
        loop = self._loop(self.table.cursor_key)
        if action == "in_context" and (loop is None or not loop.task):
            return "There is no loop with a task under the cursor"
        if action == "extract" and loop is None:
            return "There is no loop under the cursor"
        if action == "extract" and loop is not None and not loop.status.ended:
            return "This loop has not ended; patterns can be extracted when it has"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        count = extraction.count_offered(self.view.offers.get(self.table.cursor_key or ""))
        return f"extract {count}" if action == "extract" and count else None

    def action_extract(self) -> None:
        """Preview the extraction in a dialog, or open the question about it in Review."""
        key = self.table.cursor_key or ""
        question = extraction_question_id(key)
        if any(item.question_key == question for item in self.view.queue):
            self.services.open_record("review", question)
        else:
            preview_extraction(self, key)

    def action_in_context(self) -> None:
        self.with_cursor(self.services.preview_loop)

    def action_edit_file(self) -> None:
        self.with_cursor(lambda key: self.services.edit_file(next(iter(self.view.snapshot.loops[key].files), "")))


def _rank(loop: Loop) -> tuple[bool, bool, bool, float]:
    """Return the sort key: running, needing attention, ended, archived; each newest first."""
    status, start = loop.status, loop.started_at or loop.updated_at
    newest_first = -start.timestamp() if start else 0.0
    return status.ended, not status.active, status.ended and loop.archived, newest_first
