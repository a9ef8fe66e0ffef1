"""Lists and warnings of problems in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from textual.content import Content

from core.base.text import plural, visible_line
from core.index.findings import all_findings
from core.records.findings import Finding, Severity
from core.sources.ledger import FILE as LEDGER
from tui.screens.numbers import moment_text

if TYPE_CHECKING:
    from core.index.project_state import ProjectState

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
