"""The Patterns screen: filtered as you type, with evidence and lineage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import ClassVar, Final

from textual.content import Content

from core.curation.commands import command_for
from core.curation.rules import why_refused
from core.documents.document import Block
from core.queries.filter_parser import Query
from core.queries.pattern_filter import PATTERN_FIELDS, PatternCatalog
from core.records.decisions import Verb
from core.records.snapshot import Delta
from core.state.project_state import ProjectState
from tui.present import patterns as present
from tui.screens.list_screen import ListScreen
from tui.screens.pattern_decisions import PatternDecisions, consequence
from tui.widgets.record_table import Column

_DECISIONS: Final = frozenset({"promote", "deprecate", "reset", "quarantine", "release", "archive"})


class PatternsScreen(ListScreen, PatternDecisions):
    place = "patterns"
    ABOUT = (
        "Every pattern of the registry. Filter with words and with type: state: uses: rate: low: score: last: "
        "age: tag: loop: id: by: is:, for example  type:error uses:>3 -flaky  or  low:<50% last:<7d  or  is:pinned "
        "by:me. Column t is the type: E error, S success, A anti-pattern, T template. The signs before it: a flag for "
        "a pinned state, ! for a pattern that is due for inversion, a dagger (in ASCII: %) for a suspect text."
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("state", "state", 7, best=13),
        Column("flags", "", 2, keep=7),
        Column("type", "t", 1, keep=8),
        Column("title", "what", 40, flex=1, best=50),
        Column("id", "id", 34, keep=0, keep_end=4),
        Column("rate", "rate", 6, align="right"),
        Column("interval", "interval", 9, keep=2, best=19),
        Column("uses", "uses", 6, align="right", keep=6),
        Column("last_used", "last used", 10, align="right", keep=1),
        Column("score", "score", 7, align="right", keep=5),
    )
    FILES = ("/shared/patterns/",)
    FIELDS = PATTERN_FIELDS
    HINT = "Filter, e.g. type:error state:candidate uses:>3 null"
    TABS = present.TABS
    SORTS = (
        ("score", True), ("uses", True), ("rate", True), ("last_used", True), ("state", False), ("type", False),
        ("id", False), ("title", False),
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._catalog: PatternCatalog | None = None

    def refresh_view(self, view: ProjectState, delta: Delta | None) -> None:
        patterns, pins = view.snapshot.patterns, view.snapshot.curation.pins
        if self._catalog is None or delta is None:
            self._catalog = PatternCatalog(patterns, view.board, pins, self.services.project.by)
        else:
            self._catalog = self._catalog.updated(patterns, view.board, delta.patterns, pins)
        super().refresh_view(view, delta)
        if not self.services.is_deciding:
            self._deciding = frozenset()

    def touched(self, delta: Delta) -> bool:
        """Loops and events are evidence."""
        return bool(delta.patterns or delta.loops or delta.events or delta.decisions)

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        if self._catalog is None:
            return ()
        name, descending = sort or ("score", True)
        return self._catalog.select(query, name, descending)

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.patterns)

    def cells(self, key: str) -> dict[str, Content]:
        view = self.view
        pattern = view.snapshot.patterns.get(key)
        if pattern is None:
            return {}
        table = self.table
        return dict(
            present.pattern_cells(
                pattern,
                view.assessment(key),
                view.now,
                self.glyphs,
                short=table.width_of("state") < present.STATE_CELLS,
                with_bar=table.width_of("interval") >= present.INTERVAL_CELLS,
            )
        )

    def words(self, key: str) -> dict[str, str]:
        view = self.view
        pattern = view.snapshot.patterns.get(key)
        return present.pattern_words(pattern, view.assessment(key), view.now) if pattern is not None else {}

    def below(self, key: str) -> Content:
        pattern = self.view.snapshot.patterns.get(key)
        return present.second_line(pattern) if pattern is not None else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        view = self.view
        pattern = view.snapshot.patterns.get(key)
        if pattern is None:
            return ()
        return present.tab_blocks(view, pattern, tab, self.services.project.by)

    def empty(self) -> Content:
        return Content.styled("No patterns yet. Loops write them to .aiwg/ralph/shared/patterns/.", "$quiet")

    # Deciding

    def subjects(self) -> Sequence[str]:
        marked = self.table.marked
        if marked:
            return [key for key in self.table.keys if key in marked]
        key = self.table.cursor_key
        return [key] if key is not None else []

    def why_not(self, action: str) -> str | None:
        about_patterns = _DECISIONS | {"note", "why", "in_context"}
        subjects = self.subjects() if action in about_patterns else None
        if subjects is not None and not subjects:
            return "There is no pattern under the cursor"
        if subjects is not None and len(subjects) == 1 and subjects[0] in self.view.snapshot.patterns:
            if action not in _DECISIONS:
                return None
            return why_refused(command_for(Verb(action), subjects[0]), self.view) or None
        if action in {"next_item", "previous_item"} and not self.view.queue:
            return "Nothing needs a decision"
        return super().why_not(action)

    def label_for(self, action: str) -> str | None:
        subjects = self.subjects()
        if len(subjects) > 1:
            return f"{action} {len(subjects)}" if action in _DECISIONS else None
        if not subjects or self.size.width < 120 or subjects[0] not in self.view.snapshot.patterns:
            return None
        return consequence(action, self.view.assessment(subjects[0]))

    def effect(self, action: str) -> str | None:
        if action not in _DECISIONS:
            return super().effect(action)
        subjects = self.subjects()
        if len(subjects) == 1 and subjects[0] in self.view.snapshot.patterns:
            return consequence(action, self.view.assessment(subjects[0]))
        return self.label_for(action)

    def begin_decision(self, keys: Sequence[str]) -> None:
        self._deciding |= set(keys)

    def decided(self) -> None:
        """Clear the selection after a decision about it."""
        self.table.clear_marks()
        self._count(self.view, len(self.table.keys))

    def action_mark(self) -> None:
        """Select the row under the cursor, and move to the next one."""
        self.with_cursor(lambda key: self.table.toggle_mark([key]))
        self.table.move(1)
        self._count(self.view, len(self.table.keys))

    def action_mark_all(self) -> None:
        self.table.toggle_mark(self.table.keys)
        self._count(self.view, len(self.table.keys))

    def action_why(self) -> None:
        self.show_tab(self.TABS.index("Why"))

    def action_in_context(self) -> None:
        if subjects := self.subjects():
            self.services.preview_pattern(subjects[0])

    def _step(self, by: int) -> None:
        waiting = {item.subject for item in self.view.queue}
        at = [n for n, key in enumerate(self.table.keys) if key in waiting]
        if not at:
            self.services.say("None of the shown patterns needs a decision", severity="warning")
            return
        cursor = self.table.cursor
        ahead = [n for n in at if (n > cursor if by > 0 else n < cursor)]
        self.table.cursor = (ahead[0] if by > 0 else ahead[-1]) if ahead else (at[0] if by > 0 else at[-1])

    action_next_item = partialmethod(_step, 1)
    action_previous_item = partialmethod(_step, -1)

    def action_edit_file(self) -> None:
        self.with_cursor(lambda key: self.services.edit_file(self.view.snapshot.patterns[key].file))
