"""What speaks for and against a pattern: its numbers, how firm they stand, and every use with its result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.learning.explanation import RuleLine
from core.records.events import Observation
from core.records.patterns import Maturity, Pattern
from core.state.project_state import ProjectState
from tui.present.glyphs import STATE_STYLES, Glyphs, result_mark
from tui.present.layout import UNBROKEN, hanging
from tui.present.numbers import moment_text
from tui.present.patterns import rate_line, state_line

MOST_USES: Final = 40
"""Uses that are listed; Patterns has them all."""
_TOLD: Final = ("rests on", "one failure", "calendar")
"""The lines of an explanation that say how firm a state is."""


def evidence(view: ProjectState, pattern: Pattern, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """State, rate with its interval, what it rests on, what will change by itself, and the uses, failures first."""
    assessment = view.assessment(pattern.id)
    return [
        state_line(assessment, view.now, glyphs),
        rate_line(pattern, assessment, glyphs),
        *firm_lines(view, pattern, width),
        *(Content.styled(f"! {visible_line(finding.message, 300)}", "$warning") for finding in view.doubts(pattern.id)),
        Content(""),
        *uses(view, pattern, glyphs),
    ]


def firm_lines(view: ProjectState, pattern: Pattern, width: int = UNBROKEN) -> list[Content]:
    """How firm the state is: on how many loops it rests, what one more failure does, what will change by itself."""
    return [line for rule in view.why(pattern.id).lines if rule.rule in _TOLD for line in _firmness(rule, width)]


def _firmness(rule: RuleLine, width: int) -> list[Content]:
    doubtful = rule.holds is False
    style = "$warning" if doubtful else STATE_STYLES.get(rule.state, "") if rule.state is Maturity.DEPRECATED else ""
    return hanging(Content.styled(f"{rule.rule:<11} ", "$quiet"), Content.styled(rule.text, style), width)


def uses(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """The uses, failures first, each with its loop and what came out; then marks that do not count."""
    seen = view.observations(pattern.id)
    ordered = sorted(seen, key=lambda one: (one.success is not False, one.success is None))
    lines = [line for one in ordered[:MOST_USES] for line in _use(view, one, glyphs)]
    if len(ordered) > MOST_USES:
        lines.append(Content.styled(f"and {plural(len(ordered) - MOST_USES, 'further use')}: see Patterns", "$quiet"))
    if not seen:
        lines.append(Content.styled("No use of this pattern is recorded anywhere yet.", "$quiet"))
    for aside in view.board.ignored_reports(pattern.id):
        why = "revoked by a decision" if aside.revoked else "held: part of a burst"
        lines.append(
            Content.assemble(
                (f"{glyphs.failed} {visible_line(aside.source, 80)}", "$quiet"),
                (f"  does not count: {why}", "$warning"),
            )
        )
    return lines


def _use(view: ProjectState, seen: Observation, glyphs: Glyphs) -> Iterator[Content]:
    count = f"{seen.count:,} x " if seen.count > 1 else ""
    where = f"iteration {seen.iteration}, " if seen.iteration is not None else ""
    yield Content.assemble(
        result_mark(seen.success, glyphs),
        f" {count}{visible_line(seen.loop_id, 80) or seen.source}",
        (f"  {where}{moment_text(seen.at, view.now)}", "$quiet"),
    )
    if came_out := what_came_out(view, seen):
        yield Content.styled(f"    {came_out}", "$quiet" if seen.success is not False else "")


def what_came_out(view: ProjectState, seen: Observation) -> str:
    """What the iteration that used a pattern came to, else the last word of its loop; "" where nothing tells."""
    loop = view.snapshot.loops.get(seen.loop_id)
    if loop is None:
        return ""
    if seen.iteration is not None:
        results = [iteration.result for iteration in loop.iterations if iteration.number == seen.iteration]
    else:
        results = [loop.last_result]
    return visible_line(results[-1], 160) if results else ""
