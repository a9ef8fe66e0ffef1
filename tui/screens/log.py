"""The Log screen: every decision, who made it, and why; undo and redo."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.errors import Refused
from core.base.text import visible_line
from core.decisions.commands import Undo
from core.decisions.undo import named_act
from core.records.decisions import TURNS
from core.show.decisions import (
    COLUMNS,
    DECISION_FIELDS,
    Entry,
    decision_cells,
    entry_blocks,
    group_decisions,
    select_decisions,
)
from core.show.pages.signs import reason_text
from tui.screens.document import draw_cells
from tui.screens.frame import log_doubt
from tui.screens.list_screen import ListScreen
from tui.screens.trust import confirm_one

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.decisions import Decision
    from core.records.snapshot import Delta
    from core.show.filter_parser import Query
    from core.show.pages.document import Block
    from tui.kit.looks import Cells


class LogScreen(ListScreen):
    """Lists the decisions, newest first. Enter opens the pattern or the loop."""

    place = "log"
    LIST = {"columns": COLUMNS}
    FIELDS = DECISION_FIELDS

    def file_note(self) -> str:
        return log_doubt(self.view, self.services.shown_key("findings"))

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, Entry] = {}  # rows by key: the ID of their newest decision
        self._unfolded: frozenset[str] = frozenset()  # IDs of decisions whose row was divided into acts

    def _decision(self, key: str | None) -> Decision | None:
        """Return the newest decision of a row."""
        return self._entries[key].decisions[0] if key in self._entries else None

    def is_affected_by(self, delta: Delta) -> bool:
        return delta.decisions

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        known = {decision.id: decision for decision in view.snapshot.decisions}
        matching = [known[id] for id in select_decisions(view.snapshot.decisions, query)[::-1]]
        entries = group_decisions(matching, view.snapshot.curation.undone, self._unfolded)
        self._entries = {entry.key: entry for entry in entries}
        return list(self._entries)

    def matching(self, shown: int) -> int:
        return sum(len(entry.decisions) for entry in self._entries.values())

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.decisions)

    def go_to(self, key: str) -> None:
        """Move the cursor to the row of a decision."""
        if key not in self._entries:
            rows = (row for row, entry in self._entries.items() if any(one.id == key for one in entry.decisions))
            key = next(rows, key)
        super().go_to(key)

    def cells(self, key: str) -> Cells:
        if (entry := self._entries.get(key)) is None:
            return {}
        return draw_cells(decision_cells(entry, self.view.snapshot), self.view.now, self.glyphs)

    def below(self, key: str) -> Content:
        decision = self._decision(key)
        return Content.styled(visible_line(reason_text(decision), 400), "$quiet") if decision else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        entry = self._entries.get(key)
        return entry_blocks(entry, self.view) if entry is not None else ()

    @property
    def _folded(self) -> Entry | None:
        """The row under the cursor if it has several acts."""
        entry = self._entries.get(self.table.cursor_key or "")
        return entry if entry is not None and entry.is_several_acts else None

    def why_not(self, action: str) -> str | None:
        if action == "open" and self._folded is None and self._subject() is None:
            return "The record of this decision no longer exists"
        if action == "undo_this" and self._folded is not None:
            return "Press enter to list these decisions, then undo one of them"
        if action not in ("undo_this", "confirm_decision"):
            return super().why_not(action)
        decision = self._decision(self.table.cursor_key)
        if decision is None:
            return "There is no decision under the cursor"
        if action == "confirm_decision":
            curation = self.view.snapshot.curation
            if decision.id in curation.pending_claims:
                return None
            return "It was undone elsewhere" if decision.id in curation.claims else "It was made or confirmed here"
        try:
            named_act(decision.act, self.view.snapshot.curation, self.view.snapshot.decisions)
        except Refused as error:
            return str(error)
        return None

    def label_for(self, action: str) -> str | None:
        if action == "open" and self._folded is not None:
            return f"list {len(self._folded.decisions)}"
        subject = self._subject()
        return f"show {subject[0].removesuffix('s')}" if action == "open" and subject else None

    def _subject(self) -> tuple[str, str] | None:
        """Return the screen and ID of the first record of a decision that still exists."""
        decision = self._decision(self.table.cursor_key)
        known = {one.id: one for one in self.view.snapshot.decisions}
        while decision is not None and decision.verb in TURNS:
            decision = known.get(decision.subject)
        if decision is None:
            return None
        snapshot = self.view.snapshot
        if decision.subject in snapshot.loops:
            return "loops", decision.subject
        several = decision.after.get("patterns")
        for id in (decision.subject, *(several if isinstance(several, list) else ())):
            if id in snapshot.patterns:
                return "patterns", id
        return None

    def action_undo_this(self) -> None:
        """Undo the decision under the cursor, and all decisions made together with it."""
        if decision := self._decision(self.table.cursor_key):
            self.services.decide(Undo(decision_id=decision.act))

    def action_confirm_decision(self) -> None:
        """Let the decision under the cursor, which was made elsewhere, count here."""
        if decision := self._decision(self.table.cursor_key):
            self.services.engine.write(partial(confirm_one, decision.id))

    def action_open(self) -> None:
        if (folded := self._folded) is not None:
            self._unfolded |= {one.id for one in folded.decisions}
            self._select(self.view)
        elif subject := self._subject():
            self.services.open_record(*subject)
