"""The approved text of a pattern whose text has changed since."""

from __future__ import annotations

from core.curation.merge import as_read
from core.curation.text_approval import approved_text
from core.records.patterns import Pattern
from core.sources.pattern_text import id_key
from core.state.project_state import ProjectState


def approved(view: ProjectState, pattern_id: str) -> Pattern | None:
    """The pattern with the text that its pin is about; None without a pin or a stored text."""
    pattern, pin = view.pattern(pattern_id), view.assessment(pattern_id).pin
    if pin is None:
        return None
    decision = next((one for one in reversed(view.snapshot.decisions) if one.id == pin.decision_id), None)
    text = approved_text(decision, pattern) if decision is not None else {}
    return as_read({**text, id_key(text): pattern.id}, pattern.type) if text else None
