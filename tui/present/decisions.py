"""Decisions as table rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from core.base.text import visible_line
from core.curation.decision_text import verb_text
from core.documents.decisions import change_text, reason_text, subject
from tui.present.numbers import moment_text

if TYPE_CHECKING:
    from core.records.decisions import Decision
    from core.state.project_state import ProjectState
    from tui.present.glyphs import Cells, Glyphs


def decision_cells(decision: Decision, view: ProjectState, glyphs: Glyphs) -> Cells:
    """Return the cells of a row; an undone decision is struck out, and one made elsewhere is marked."""
    is_undone = decision.id in view.snapshot.curation.undone
    is_claim = decision.id in view.snapshot.curation.claims
    change = visible_line(change_text(decision).replace("→", glyphs.arrow), 60)
    return {
        "at": Content.styled(moment_text(decision.at, view.now), "$quiet"),
        "verb": Content.assemble(
            (verb_text(decision), "strike $quiet" if is_undone else "" if is_claim else "bold"),
            (" elsewhere" if is_claim else "", "$warning"),
        ),
        "subject": Content.styled(visible_line(subject(view, decision), 200), "$quiet" if is_undone else "$secondary"),
        "change": Content.styled(change, "$quiet" if is_undone else ""),
        "by": Content.styled(visible_line(decision.by, 60), "$quiet"),
        "reason": Content.styled(visible_line(reason_text(decision), 300), "$quiet"),
    }
