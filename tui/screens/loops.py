"""The Loops screen: every loop from every source, live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from core.base.errors import RalphdeckError
from core.documents.document import Block
from core.documents.loops import elapsed
from core.queries.filter_parser import Query
from core.queries.record_filters import LOOP_FIELDS, select_loops
from core.records.decisions import extraction_question_id
from core.records.loops import Loop, LoopDetails
from core.records.snapshot import Delta
from core.state.project_state import ProjectState
from tui.present import extraction
from tui.present import loops as present
from tui.screens.extraction_preview import ExtractionPreview
from tui.screens.filtered_list import YOUNG
from tui.screens.list_screen import ListScreen
from tui.widgets.record_table import Column, RecordTable


class LoopsScreen(ExtractionPreview, ListScreen):
    """All loops; the details of the one under the cursor are read from disk on demand."""

    place = "loops"
    ABOUT = (
        "Every loop found in files: running, paused, ended, archived, external. Filter with words and with "
        "status: source: id: tag: pattern: is:, for example  status:crashed  or  is:orphan  or  -is:archived. "
        "Patterns: 2 of 3 used = it applied 2 of 3 injected patterns; 2 extracted = 2 patterns were extracted from it; "
        "2 to extract = 2 more can be extracted, and e shows them."
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("task", "task", 39, flex=1, best=44),
        Column("status", "status", 16),
        Column("iteration", "iteration", 9, keep=8, best=15),
        Column("quality", "quality", 8, keep=1),
        Column("elapsed", "elapsed", 8, align="right", keep=4),
        Column("outcome", "outcome", 12, keep=5),
        Column("patterns", "patterns", 12, keep=3, best=25),
        Column("sign", "last activity", 10, align="right", keep=6),
    )
    FILES = ("/ralph/loops/", "/ralph/archive/", "/ralph/registry.json", "/ralph/current-loop.json", "/ralph-external/")
    FIELDS = LOOP_FIELDS
    HINT = "Filter, e.g. status:running auth -is:archived"
    TABS = present.TABS
    SORTS = (("newest", True), ("status", False), ("task", False), ("elapsed", True), ("sign", True))

    @dataclass(eq=False)
    class DetailsRead(Message):
        """The details of a loop were read."""

        loop_id: str
        story: LoopDetails

    def __init__(self) -> None:
        super().__init__()
        self._story: LoopDetails | None = None

    def touched(self, delta: Delta) -> bool:
        """Events and sessions change outcomes, decisions what there is to extract."""
        return bool(delta.loops or delta.events or delta.decisions or delta.debug_sessions)

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        loops = view.snapshot.loops
        keys = select_loops(loops, query, lambda key: view.board.loop_patterns(key).injected_ids)
        name, descending = sort or ("newest", True)
        if name == "newest":
            keys.sort(key=lambda key: _rank(loops[key]))
            return keys
        epoch = view.now

        def value(key: str) -> float | str:
            loop = loops[key]
            if name == "elapsed":
                return elapsed(loop, epoch) or 0.0
            if name == "sign":
                return -(epoch - loop.last_activity).total_seconds() if loop.last_activity else float("-inf")
            return loop.status.value if name == "status" else loop.task.lower()

        keys.sort(key=value, reverse=descending)
        return keys

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.loops)

    def cells(self, key: str) -> dict[str, Content]:
        loop = self.view.snapshot.loops.get(key)
        if loop is None:
            return {}
        found, patterns = self.view.board.outcome(key), self.view.board.loop_patterns(key)
        offer = extraction.count_offered(self.view.offers.get(key))
        outcome, table = found[1] if found else None, self.table
        return dict(
            present.loop_cells(
                loop,
                outcome,
                patterns,
                self.services.now(),
                self.glyphs,
                offer,
                with_bar=table.width_of("iteration") >= present.BAR_CELLS,
                in_full=table.width_of("patterns") >= present.PATTERNS_CELLS,
            )
        )

    def words(self, key: str) -> dict[str, str]:
        loop = self.view.snapshot.loops.get(key)
        return super().words(key) | present.unabbreviated_cells(loop) if loop is not None else {}

    def below(self, key: str) -> Content:
        loop = self.view.snapshot.loops.get(key)
        return present.second_line(loop) if loop is not None else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        """One tab; the details are read in a worker."""
        view = self.view
        loop = view.snapshot.loops.get(key)
        if loop is None:
            return ()
        story = self._story if self._story is not None and self._story.loop_id == key else None
        offers = tuple(extraction.offer_blocks(view.offers.get(key), self.services.shown_key("extract")))
        own = [r for r in view.snapshot.reflections.values() if r.loop_id == key or r.loop_id in loop.aliases]
        return present.tab_blocks(loop, tab, story, view, offers, own)

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        """A changed loop has new details."""
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

        def read() -> None:
            try:
                self.post_message(self.DetailsRead(key, project.story(key)))
            except RalphdeckError:
                return  # the loop has just been removed; the list will show it

        self.run_worker(read, thread=True, group="story", exclusive=True)

    @on(DetailsRead)
    def _show_loop(self, message: DetailsRead) -> None:
        """Show the details, if the cursor is still on the loop."""
        if message.loop_id == self.table.cursor_key:
            self._story = message.story
            self._show_details(top=False)

    def tab_note(self, key: str | None) -> Content | None:
        """The source of the loop."""
        loop = self.view.snapshot.loops.get(key) if key else None
        return Content.styled(", ".join(loop.sources), "$quiet") if loop else None

    def shows_seconds(self) -> bool:
        since = self.services.now() - YOUNG
        return any(
            loop.status.active and loop.last_activity is not None and loop.last_activity > since
            for loop in self.view.snapshot.loops.values()
        )

    def empty(self) -> Content:
        return Content.styled("No loops yet. Start one with aiwg, or try: ralphdeck demo", "$quiet")

    def why_not(self, action: str) -> str | None:
        key = self.table.cursor_key
        loop = self.view.snapshot.loops.get(key) if key else None
        if action == "in_context" and (loop is None or not loop.task):
            return "There is no loop with a task under the cursor"
        if action == "extract":
            if loop is None:
                return "There is no loop under the cursor"
            if not loop.status.ended:
                return "This loop has not ended; patterns can be extracted afterwards"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        key = self.table.cursor_key
        count = extraction.count_offered(self.view.offers.get(key)) if key else 0
        return f"extract {count}" if action == "extract" and count else None

    def action_extract(self) -> None:
        """Preview the extraction: in Review if there is a question about it, else here."""
        self.with_cursor(self._extract)

    def _extract(self, key: str) -> None:
        question = extraction_question_id(key)
        if any(item.question_key == question for item in self.view.queue):
            self.services.open_record("review", question)
        else:
            self.preview_extraction(key)

    def action_in_context(self) -> None:
        self.with_cursor(self.services.preview_loop)

    def action_edit_file(self) -> None:
        self.with_cursor(lambda key: self.services.edit_file(next(iter(self.view.snapshot.loops[key].files), "")))


def _rank(loop: Loop) -> tuple[int, float]:
    """Order: running loops, those that need attention, others; newest first."""
    if loop.status.active:
        group = 0
    elif not loop.status.ended:
        group = 1
    else:
        group = 3 if loop.archived else 2
    start = loop.started_at or loop.updated_at
    return group, -start.timestamp() if start else 0.0
