"""Recording that a running loop got a context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.text import plural, visible_line

if TYPE_CHECKING:
    from core.project.project import Injected
    from core.records.loops import Loop
    from core.retrieval.injection import Injection


def loop_choices(loops: Sequence[Loop]) -> list[tuple[str, Content]]:
    """Return ID and label of the running loops, to choose from."""
    return [
        (one.id, Content.assemble(visible_line(one.task, 90) or "no task", (f"  {visible_line(one.id, 60)}", "$quiet")))
        for one in loops
    ]


def recorded_toast(new: Injected, injection: Injection, loop_id: str) -> str:
    """Return a toast about the injections recorded for a loop."""
    loop = visible_line(loop_id, 60)
    counts = (
        (len(new.patterns), len(injection.chosen), "pattern"),
        (len(new.reflections), len(injection.reflections.chosen), "reflection"),
    )
    if not any(count for count, _, _ in counts):
        known = " and ".join(plural(total, noun) for _, total, noun in counts if total)
        return f"already recorded: {known} injected into {loop}"
    added = " and ".join(plural(count, noun) for count, _, noun in counts if count)
    before = sum(total - count for count, total, _ in counts)
    known = f"; {before:,} already recorded" if before else ""
    return f"recorded: {added} injected into {loop}{known}. y copies the text"
