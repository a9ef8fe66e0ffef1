"""What came from elsewhere, in the top bar and in toasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from core.base.text import plural

if TYPE_CHECKING:
    from core.records.snapshot import Snapshot
    from core.state.project_state import ProjectState


def count_arrivals(snapshot: Snapshot) -> int:
    """Return the number of lessons and decisions from elsewhere that the user has not accepted."""
    return len(snapshot.curation.pending_claims) + len(snapshot.foreign.patterns)


def trust_mark(view: ProjectState, *, is_trusted: bool) -> Content:
    """Return the mark in the top bar; empty if the project is trusted and nothing came from elsewhere."""
    if not is_trusted:
        return Content.styled("not trusted  ", "$warning")
    count = count_arrivals(view.snapshot)
    return Content.styled(f"{count:,} from elsewhere  ", "$warning") if count else Content("")


def arrival_text(before: ProjectState, view: ProjectState, key: str) -> str:
    """Return a toast if more came from elsewhere than before, else ""."""
    new = count_arrivals(view.snapshot) - count_arrivals(before.snapshot)
    return (
        f"{plural(new, 'record')} came from elsewhere and {'does' if new == 1 else 'do'} not count yet: {key}"
        if new > 0
        else ""
    )
