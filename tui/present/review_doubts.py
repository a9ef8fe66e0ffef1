"""What is in doubt about a pattern: a decision, a state that little would change, a trigger, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from textual.content import Content

from core.base.text import plural, safe_matcher, visible_line
from core.learning.explanation import Step
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from core.review.common_messages import ERRORS, TASKS
from core.state.project_state import ProjectState
from core.state.review_items import ReviewItem
from tui.present.glyphs import Glyphs, draw_state
from tui.present.layout import labelled
from tui.present.numbers import moment_text, percent

MOST_MESSAGES: Final = 2000
"""Messages of loops that a trigger is tried on."""
_EXAMPLES: Final = 6
"""Messages that are shown of those that a trigger fits, and of those that it does not."""


def standing(view: ProjectState, item: ReviewItem, glyphs: Glyphs) -> list[Content]:
    """The decision in doubt, and what the evidence says against it."""
    assessment = view.assessment(item.subject)
    pin = assessment.pin
    lines = [
        Content(visible_line(item.question, 500)),
        Content(""),
        Content.assemble(("Now: ", "$quiet"), draw_state(assessment.state, glyphs)),
        Content.assemble(("By evidence: ", "$quiet"), draw_state(assessment.computed, glyphs)),
    ]
    if pin is not None:
        since_good, since_bad = view.board.results_since_pin(item.subject)
        lines += [
            labelled("Decided", f"{moment_text(pin.at, view.now)} by {pin.by}"),
            labelled("Reason given", pin.reason or "none"),
            Content.assemble(
                ("Since then: ", "$quiet"),
                (f"{since_good} {glyphs.done}", "$success"),
                "  ",
                (f"{since_bad} {glyphs.failed}", "$error"),
            ),
        ]
    return lines


def nearness(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """How few further results would change the state, the fewest first."""
    steps = sorted(view.why(pattern.id).steps, key=lambda step: step.count)
    return [_step_line(step, pattern, glyphs) for step in steps] or [
        Content.styled("No further result of one kind alone changes its state.", "$quiet")
    ]


def _step_line(step: Step, pattern: Pattern, glyphs: Glyphs) -> Content:
    mark, style = (glyphs.done, "$success") if step.helpful else (glyphs.failed, "$error")
    word = plural(step.count, "more success", "more successes") if step.helpful else plural(step.count, "more failure")
    if pattern.type is PatternType.ANTI:
        word = plural(step.count, f"more {'right' if step.helpful else 'wrong'} warning")
    return Content.assemble(
        (f"{mark} ", style), (f"{word:<21}", "bold"), f" {glyphs.arrow} ", draw_state(step.state, glyphs)
    )


def matched(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """Which messages its triggers fit that have nothing to do with each other, and which that loops met."""
    lines: list[Content] = []
    met = list(dict.fromkeys(islice(_messages(view), MOST_MESSAGES)))
    tasks = list(dict.fromkeys(loop.task for loop in view.snapshot.loops.values() if loop.task))
    tries = (
        (pattern.error_pattern, (("everyday errors", ERRORS), ("errors that loops met here", met))),
        (pattern.task_pattern, (("everyday tasks", TASKS), ("tasks that loops had here", tasks))),
    )
    for trigger, against in tries:
        if trigger:
            lines.append(labelled("Trigger", trigger))
            for words, messages in against:
                lines += [*_fitted(messages, safe_matcher(trigger).matches, words, glyphs), Content("")]
    return lines


def _fitted(messages: Sequence[str], fits: Callable[[str], bool], words: str, glyphs: Glyphs) -> Iterator[Content]:
    """How many of some messages a trigger fits, with examples of those that it does and those that it does not."""
    hit = [text for text in messages if fits(text)]
    missed = [text for text in messages if not fits(text)]
    share = percent(len(hit) / len(messages) if messages else None)
    yield Content.assemble("fits ", (share, "bold"), f" of {words}, {len(hit):,} of {len(messages):,}")
    for mark, style, found in ((glyphs.done, "$warning", hit), (glyphs.failed, "$quiet", missed)):
        yield from (Content.assemble((f"  {mark} ", style), visible_line(text, 200)) for text in found[:_EXAMPLES])
        if len(found) > _EXAMPLES:
            yield Content.styled(f"    and {len(found) - _EXAMPLES:,} more", "$quiet")


def _messages(view: ProjectState) -> Iterator[str]:
    """What loops told of their failed iterations."""
    for loop in view.snapshot.loops.values():
        for iteration in loop.iterations:
            if iteration.outcome in (Outcome.FAILURE, Outcome.TIMEOUT) and iteration.result.strip():
                yield iteration.result


def claims(view: ProjectState, pattern: Pattern, glyphs: Glyphs) -> list[Content]:
    """The counts of the record beside those of the evidence, and in words how they differ."""
    recorded_counts, assessment = pattern.recorded_counts, view.assessment(pattern.id)
    rows = (
        ("uses", _count(recorded_counts.uses), _count(assessment.uses)),
        ("successes", _count(recorded_counts.successes), _count(assessment.successes)),
        ("failures", _count(recorded_counts.failures), _count(assessment.failures)),
        ("rate", percent(recorded_counts.rate), percent(assessment.rate)),
    )
    lines = [
        Content.styled(visible_line(pattern.title, 400), "bold"),
        Content.styled(visible_line(pattern.id, 200), "$secondary"),
        Content(""),
        Content.styled(f"  {'':<10}{'record':>10}{'evidence':>12}", "$quiet"),
    ]
    for label, said, shown in rows:
        differs = said != shown
        lines.append(
            Content.assemble(
                (f"{glyphs.differs if differs else ' '} ", "$warning"),
                (f"{label:<10}", "$quiet"),
                (f"{said:>10}", "$warning" if differs else ""),
                f"{shown:>12}",
            )
        )
    lines.append(Content(""))
    lines += [Content.styled(f"! {visible_line(found.message, 300)}", "$warning") for found in view.doubts(pattern.id)]
    return [*lines, Content(""), labelled("File", pattern.file)]


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
