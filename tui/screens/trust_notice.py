"""What came from elsewhere, in the top bar and in toasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from core.base.text import plural

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.snapshot import Snapshot


def count_arrivals(snapshot: Snapshot) -> int:
    """Return the number of lessons and decisions from elsewhere that the user has not accepted."""
    return len(snapshot.curation.pending_claims) + len(snapshot.foreign.arrived)


def trust_mark(view: ProjectState, key: str, *, is_trusted: bool) -> Content:
    """Return the mark in the top bar; empty if the project is trusted and nothing came from elsewhere."""
    if not is_trusted:
        return Content.styled(f"not trusted: {key}  ", "$warning")
    count = count_arrivals(view.snapshot)
    return Content.styled(f"{count:,} from elsewhere: {key}  ", "$warning") if count else Content("")


def arrival_text(before: ProjectState, view: ProjectState, key: str) -> str:
    """Return a toast if more came from elsewhere than before, else ""."""
    count = count_arrivals(view.snapshot)
    if count <= count_arrivals(before.snapshot):
        return ""
    return f"{plural(count, 'lesson or decision', 'lessons and decisions')} from elsewhere without effect; press {key}"
