"""Evidence for and against a pattern: its numbers, how robust its state is, and every use with its result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.content import Content

from core.base.text import plural
from core.documents.document import Block, Fields, Line, Moment, fields, line
from core.documents.patterns import rate_line, set_aside_reason, state_line
from core.documents.signs import result_sign
from core.records.events import Observation
from core.records.patterns import Maturity, Pattern
from core.state.findings import count_conflicts
from core.state.history import explain_pattern
from core.state.project_state import ProjectState
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs
from tui.present.layout import UNBROKEN

MAX_USES: Final = 40
_ROBUSTNESS_RULES: Final = ("rests on", "one failure", "calendar")
"""Lines of an explanation that describe how robust a state is."""


def evidence_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """Return state, rate, robustness, findings, and the uses."""
    blocks: list[Block] = [
        state_line(view.assessment(pattern.id)),
        rate_line(pattern, view.assessment(pattern.id)),
        *robustness(view, pattern),
        *(line((f"! {finding.message}", "warning")) for finding in count_conflicts(view, pattern.id)),
        line(""),
        *_uses(view, pattern),
    ]
    return document_lines(blocks, view.now, glyphs, width)


def robustness(view: ProjectState, pattern: Pattern) -> Iterable[Fields]:
    """Describe how many loops support the state, what one failure changes, and what will decay."""
    rows = []
    for rule in explain_pattern(view, pattern.id).lines:
        if rule.rule in _ROBUSTNESS_RULES:
            is_doubtful = rule.holds is False
            style = "warning" if is_doubtful else "deprecated" if rule.state is Maturity.DEPRECATED else ""
            rows.append((rule.label, (rule.text, style)))
    return fields(*rows)


def use_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Return the uses, failures first, each with its loop and result; then reports that are not counted."""
    return document_lines(_uses(view, pattern), view.now, glyphs)


def _uses(view: ProjectState, pattern: Pattern) -> Iterable[Line]:
    observations = view.observations(pattern.id)
    ordered = sorted(observations, key=lambda one: (one.success is not False, one.success is None))
    for use in ordered[:MAX_USES]:
        count = f"{use.count:,} x " if use.count > 1 else ""
        where = f"  iteration {use.iteration}" if use.iteration is not None else ""
        yield line(
            result_sign(use.success), f" {count}{use.loop_id or use.source}", (f"{where}  ", "quiet"), Moment(use.at)
        )
        if result := find_result(view, use):
            yield line((result, "quiet" if use.success is not False else ""), indent=4)
    if len(ordered) > MAX_USES:
        yield line((f"and {plural(len(ordered) - MAX_USES, 'more use')}: see Patterns", "quiet"))
    if not observations:
        yield line(("No use of this pattern is recorded.", "quiet"))
    for aside in view.board.ignored_reports(pattern.id):
        reason = f"  not counted: {set_aside_reason(aside.revoked)}"
        yield line(result_sign(False), (f" {aside.source}", "quiet"), (reason, "warning"))


def find_result(view: ProjectState, use: Observation) -> str:
    """Return the result of the iteration that used a pattern, else the last result of its loop; "" if unknown."""
    loop = view.snapshot.loops.get(use.loop_id)
    if loop is None:
        return ""
    if use.iteration is None:
        return loop.last_result
    results = [iteration.result for iteration in loop.iterations if iteration.number == use.iteration]
    return results[-1] if results else ""
