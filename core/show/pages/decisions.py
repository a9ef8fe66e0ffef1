"""A decision as one line of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.decisions.decision_text import author_text, describe_change, verb_text
from core.show.pages import document as doc
from core.show.pages.document import line

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.decisions import Decision


def decision_line(state: ProjectState, decision: Decision) -> doc.Line:
    is_undone = decision.id in state.snapshot.curation.undone
    change, text = change_text(decision), reason_text(decision)
    return line(
        doc.Moment(decision.at),
        ("  " + verb_text(decision), "strike quiet" if is_undone else "strong"),
        f"  {author_text(decision)}",
        change and f"  {change}",
        (f"  “{text}”", "quiet") if text else None,
        ("  (undone)", "warning") if is_undone else None,
    )


def change_text(decision: Decision) -> str:
    text = describe_change(decision)
    return "" if text.startswith("stays ") else text


def reason_text(decision: Decision) -> str:
    """Return the text that the author wrote: a reason, a note, or an inversion."""
    text = decision.after.get("text")
    return decision.reason or (text if isinstance(text, str) else "")
