"""What is wrong in the files, as paragraphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.content import Content

from core.base.text import plural, visible_line
from core.ledger.decision_log import FILE as LEDGER
from core.records.findings import Finding, Severity
from core.state.project_state import ProjectState
from tui.present.numbers import moment_text

_STYLES = {Severity.ERROR: "$error", Severity.WARNING: "$warning", Severity.INFO: "$quiet"}
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)
MOST = 2000
"""Findings that are written out; a broken tree may have very many."""


def findings_lines(view: ProjectState) -> list[Content]:
    """Every finding, the worst first, by file; then the files whose last good value is shown."""
    findings, unreadable = view.findings, view.snapshot.unreadable
    if not findings and not unreadable:
        return [Content.styled("Nothing is wrong with the files.", "$success")]
    lines: list[Content] = []
    told = {finding.file for finding in findings if finding.severity is Severity.ERROR}
    for name, since in unreadable.items():
        if name in told:
            continue
        lines.append(
            Content.assemble(
                ("unreadable ", "$error"), visible_line(name, 200), (f"  since {moment_text(since, since)}", "$quiet")
            )
        )
    ordered = sorted(findings, key=lambda finding: _ORDER.index(finding.severity))
    lines += [line for finding in ordered[:MOST] for line in _finding(finding)]
    if len(ordered) > MOST:
        lines.append(Content.styled(f"and {plural(len(ordered) - MOST, 'more finding')}", "$quiet"))
    return lines


def unreadable(findings: Iterable[Finding], parts: Sequence[str], key: str) -> Content | None:
    """That there would be something to list, if its files could be read; None if none of them is in error.

    Args:
        parts: What the paths of these files contain, one of it each.
        key: What lists the findings.
    """
    files = {found.file for found in findings if found.severity is Severity.ERROR}
    count = sum(any(part in file for part in parts) for file in files)
    return Content.styled(f"{plural(count, 'file')} cannot be read: {key} tells why", "$warning") if count else None


def log_doubt(view: ProjectState, findings_key: str) -> Content:
    """Why the log of decisions cannot be trusted as it stands; empty where nothing speaks against it.

    Args:
        view: What is known.
        findings_key: The key that lists all findings.
    """
    found = [one for one in view.snapshot.findings if one.file == LEDGER and one.severity is Severity.ERROR]
    if not found:
        return Content("")
    first = f"{found[0].pointer} {found[0].message}".strip()
    more = f", and {plural(len(found) - 1, 'more place')}: {findings_key} lists them" if len(found) > 1 else ""
    return Content.assemble(
        ("The log is not as it was written: ", "$error b"), (f"{visible_line(first, 160)}{more}", "$error")
    )


def _finding(finding: Finding) -> list[Content]:
    place = f"{finding.file} {finding.pointer}".strip()
    return [
        Content.assemble((f"{finding.severity.value:<8}", _STYLES[finding.severity]), visible_line(place, 300)),
        Content.styled(f"        {visible_line(finding.message, 400)} ({visible_line(finding.code, 40)})", "$quiet"),
    ]
