"""A burst of harmful marks: whom it blames, and what is known of who gave it."""

from __future__ import annotations

from textual.content import Content

from core.base.text import plural, visible_line
from core.learning.bursts import Burst, known_time
from core.state.project_state import ProjectState
from tui.present.glyphs import Glyphs, draw_state
from tui.present.layout import labelled
from tui.present.numbers import moment_text, percent


def blamed(view: ProjectState, burst: Burst, glyphs: Glyphs) -> list[Content]:
    """The patterns that a burst blames, with the state that they have while its marks are held."""
    lines: list[Content] = []
    for id in burst.patterns:
        known = view.snapshot.patterns.get(id)
        if known is None:
            lines.append(Content.assemble((visible_line(id, 120), "$secondary"), ("  not in the registry", "$warning")))
            continue
        assessment = view.assessment(id)
        lines += [
            Content.assemble(draw_state(assessment.state, glyphs), f"  {visible_line(known.title, 200)}"),
            Content.assemble(
                (f"  {visible_line(id, 120)}", "$secondary"),
                (
                    f"  {percent(assessment.rate)} of {plural(assessment.successes + assessment.failures, 'use')}",
                    "$quiet",
                ),
            ),
        ]
    return lines


def suspicion(view: ProjectState, burst: Burst) -> list[Content]:
    """What is known of who gives the marks."""
    loop = view.snapshot.loops.get(burst.source)
    first, last = known_time(burst.first), known_time(burst.last)
    when = f"{moment_text(first, view.now)} to {moment_text(last, view.now)}" if first and last else "not dated"
    lines = [
        *([Content.styled(visible_line(loop.task, 400), "bold")] if loop and loop.task else []),
        Content.styled(visible_line(burst.source, 200), "$secondary"),
        Content(""),
        labelled("Marks", f"{plural(len(burst.patterns), 'pattern')}, {when}"),
        labelled("Never had", f"{burst.never_applied:,} of them, as far as anything tells"),
    ]
    if loop is not None:
        lines.append(labelled("The loop", loop.status.value))
    if (found := view.outcome(burst.source)) is not None:
        lines.append(labelled("Came out", found[1].reasoning))
    lines += [
        Content(""),
        Content.styled(
            "One source rarely knows that much harm of that many patterns at once. Until you decide, "
            "none of these marks counts.",
            "$quiet",
        ),
    ]
    return lines
