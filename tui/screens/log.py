"""The Log screen: every decision, who made it, and why; undo and redo."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.errors import Refused
from core.base.text import visible_line
from core.curation.commands import Undo
from core.curation.undo import named_act
from core.documents.decisions import decision_document, reason_text
from core.queries.record_filters import DECISION_FIELDS, select_decisions
from tui.present import decisions as present
from tui.present.findings import log_doubt
from tui.screens.list_screen import ListScreen
from tui.screens.trust import confirm_one

if TYPE_CHECKING:
    from core.documents.document import Block
    from core.queries.filter_parser import Query
    from core.records.decisions import Decision
    from core.records.snapshot import Delta
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells


class LogScreen(ListScreen):
    """Lists the decisions, newest first. Enter opens the pattern or the loop."""

    place = "log"
    FIELDS = DECISION_FIELDS

    def file_note(self) -> str:
        return log_doubt(self.view, self.services.shown_key("findings"))

    def _decision(self, key: str | None) -> Decision | None:
        return next((d for d in self.view.snapshot.decisions if d.id == key), None)

    def is_affected_by(self, delta: Delta) -> bool:
        return delta.decisions

    def select(self, view: ProjectState, query: Query, sort: tuple[str, bool] | None) -> Sequence[str]:
        return select_decisions(view.snapshot.decisions, query)[::-1]

    def total(self, view: ProjectState) -> int:
        return len(view.snapshot.decisions)

    def cells(self, key: str) -> Cells:
        decision = self._decision(key)
        return present.decision_cells(decision, self.view, self.glyphs) if decision else {}

    def below(self, key: str) -> Content:
        decision = self._decision(key)
        return Content.styled(visible_line(reason_text(decision), 400), "$quiet") if decision else Content("")

    def blocks(self, key: str, tab: str) -> Sequence[Block]:
        decision = self._decision(key)
        return decision_document(self.view, decision).blocks if decision else ()

    def why_not(self, action: str) -> str | None:
        if action == "open" and self._subject() is None:
            return "The record of this decision no longer exists"
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
        subject = self._subject()
        return f"show {subject[0].removesuffix('s')}" if action == "open" and subject else None

    def _subject(self) -> tuple[str, str] | None:
        """Return the screen and ID of the first record of a decision that still exists."""
        decision = self._decision(self.table.cursor_key)
        while decision is not None and decision.verb.value in {"undo", "redo"}:
            decision = self._decision(decision.subject)
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
        if subject := self._subject():
            self.services.open_record(*subject)
