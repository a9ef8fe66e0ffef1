"""What happened elsewhere between two views, in words for a toast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from textual.notifications import SeverityLevel

from core.deck import View
from core.records.loops import LoopStatus
from core.snapshot import Delta
from core.text import plural, visible_line

_BAD = frozenset({LoopStatus.FAILED, LoopStatus.CRASHED, LoopStatus.LIMIT})


def happenings(before: View, after: View, delta: Delta, mine: Container[str]) -> list[tuple[str, SeverityLevel]]:
    """Loops that started, finished or broke, decisions by others, and new questions; most important first.

    Args:
        before, after: The views.
        delta: What changed between them.
        mine: Ids of the decisions made in this dashboard; they are not news.
    """
    lines: list[tuple[str, SeverityLevel]] = []
    ended: Counter[LoopStatus] = Counter()
    names: dict[LoopStatus, str] = {}
    started = 0
    for key in delta.loops:
        old, new = before.snapshot.loops.get(key), after.snapshot.loops.get(key)
        if new is None:
            continue
        if new.status.ended and (old is None or not old.status.ended):
            if old is not None:
                ended[new.status] += 1
                names[new.status] = visible_line(new.task or new.id, 50)
        elif new.status.active and old is None:
            started += 1
    for status, count in sorted(ended.items(), key=lambda item: item[0] not in _BAD):
        severity: SeverityLevel = "error" if status in _BAD else "information"
        word = {LoopStatus.LIMIT: "hit its limit"}.get(status, status.value)
        text = f"{word}: {names[status]}" if count == 1 else f"{plural(count, 'loop')} {word}"
        lines.append((text, severity))
    if started:
        lines.append((f"{plural(started, 'loop')} started", "information"))
    for decision in after.snapshot.decisions[len(before.snapshot.decisions) :]:
        if decision.id not in mine:
            verb = decision.verb.value.replace("_", " ")
            lines.append(
                (
                    f"{visible_line(decision.by, 30)}: {verb} {visible_line(decision.subject, 50)}",
                    "information",
                )
            )
    asked = {item.subject for item in before.queue}
    if new_questions := [item for item in after.queue if item.subject not in asked]:
        lines.append((f"{plural(len(new_questions), 'new question')} in Review", "warning"))
    return lines
