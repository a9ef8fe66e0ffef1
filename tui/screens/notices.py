"""Problems in files, and toasts for changes that were not made in this dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.index.project_state import all_findings
from core.records.findings import Finding, Severity
from core.sources.ledger import FILE as LEDGER
from tui.screens.document import moment_text

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from core.index.project_state import ProjectState
    from core.project.notifications import Notification
    from core.records.loops import LoopStatus


_STYLES = {Severity.ERROR: "$error", Severity.WARNING: "$warning", Severity.INFO: "$quiet"}
"""Style by severity, the worst first."""
MAX_FINDINGS = 2000


def findings_lines(view: ProjectState) -> list[Content]:
    """List unreadable files, then all findings, errors first."""
    findings, unreadable = all_findings(view), view.snapshot.unreadable
    if not findings and not unreadable:
        return [Content.styled("No file problems.", "$success")]
    lines: list[Content] = []
    reported = {finding.file for finding in findings if finding.severity is Severity.ERROR}
    for name, since in unreadable.items():
        if name not in reported:
            since_text = f"  since {moment_text(since, since)}"
            lines.append(Content.assemble(("unreadable ", "$error"), visible_line(name, 200), (since_text, "$quiet")))
    ordered = sorted(findings, key=lambda finding: list(_STYLES).index(finding.severity))
    for one in ordered[:MAX_FINDINGS]:
        place = visible_line(f"{one.file} {one.pointer}".strip(), 300)
        what = f"        {visible_line(one.message, 400)} ({visible_line(one.code, 40)})"
        lines.append(Content.assemble((f"{one.severity.value:<8}", _STYLES[one.severity]), place))
        lines.append(Content.styled(what, "$quiet"))
    if len(ordered) > MAX_FINDINGS:
        lines.append(Content.styled(f"and {plural(len(ordered) - MAX_FINDINGS, 'more finding')}", "$quiet"))
    note = Content.styled("Other records are not affected, and ralphdeck never overwrites an invalid file.", "$quiet")
    return [*lines, Content(""), note]


def unreadable(findings: Iterable[Finding], parts: Sequence[str], key: str) -> str:
    """Return a warning if files with one of `parts` in their path are unreadable, or ""."""
    errors = {found.file for found in findings if found.severity is Severity.ERROR}
    files = [file for file in errors if any(part in file for part in parts)]
    if not files:
        return ""
    subject = visible_line(PurePath(files[0]).name, 100) if len(files) == 1 else plural(len(files), "file")
    return f"{subject} cannot be read, so records may be missing ({key}: details)"


def log_doubt(view: ProjectState, findings_key: str) -> str:
    """Return a warning if the hash chain of the decision log is broken, or ""."""
    found = [one for one in view.snapshot.findings if one.file == LEDGER and one.severity is Severity.ERROR]
    if not found:
        return ""
    first = f"{found[0].pointer} {found[0].message}".strip()
    more = f", and {plural(len(found) - 1, 'more break')} ({findings_key}: details)" if len(found) > 1 else ""
    return f"The decision log has chain breaks: {visible_line(first, 160)}{more}"


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
    from core.project.notifications import NotificationKind, ended_word  # a list does not wait for these

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
