"""Texts of toasts for changes that were not made in this dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final

from core.base.text import plural
from core.project.notifications import Notification, NotificationKind, ended_word
from core.records.findings import Severity

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from core.records.loops import LoopStatus

_LEVELS: Final[dict[Severity, SeverityLevel]] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "information",
}


def toasts(found: Sequence[Notification], mine: Container[str]) -> list[tuple[str, SeverityLevel]]:
    """Return text and level of each toast, the most important first.

    Toasts hide other text, so there is none for loops that start or succeed, nor for decisions in `mine`, made in
    this dashboard.
    """
    lines: list[tuple[str, SeverityLevel]] = []
    broken = [one for one in found if one.severity is Severity.ERROR]
    ended: Counter[LoopStatus] = Counter(one.status for one in broken if one.status is not None)
    for one in broken:
        if one.status is not None and one.status in ended:
            count = ended.pop(one.status)
            text = one.text if count == 1 else f"{plural(count, 'loop')} {ended_word(one.status)}"
            lines.append((text, _LEVELS[one.severity]))
    lines += [
        (one.text, "information") for one in found if one.what is NotificationKind.DECIDED and one.subject not in mine
    ]
    urgent = (NotificationKind.REFUSED, NotificationKind.ESCALATED)
    lines += [(one.text, _LEVELS[one.severity]) for one in found if one.what in urgent]
    if asked := sum(one.what is NotificationKind.ASKED and one.severity is Severity.WARNING for one in found):
        lines.append((f"{plural(asked, 'new question')} in Review", "warning"))
    return lines
