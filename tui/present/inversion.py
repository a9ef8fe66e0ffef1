"""A failing pattern beside the warning that it would become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from core.base.text import plural, visible_line
from core.learning.inversion_proposals import Inversion
from core.records.events import Observation
from core.records.patterns import Pattern
from core.state.project_state import ProjectState
from tui.present.glyphs import Glyphs, result_mark, standing_mark
from tui.present.layout import UNBROKEN, hanging, labelled
from tui.present.numbers import moment_text, percent
from tui.present.patterns import body, rate_line
from tui.present.review_evidence import firm_lines, what_came_out

MOST_LOOPS: Final = 20
"""Loops that are listed; Patterns has them all."""


def original(view: ProjectState, pattern: Pattern, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """The pattern as it is, then each loop in which it failed with the error, then those in which it worked."""
    assessment = view.assessment(pattern.id)
    lines = [
        Content.styled(visible_line(pattern.title, 400), "bold"),
        Content.styled(visible_line(pattern.id, 200), "$secondary"),
        standing_mark(assessment, glyphs),
        rate_line(pattern, assessment, glyphs),
        *firm_lines(view, pattern, width),
        Content(""),
    ]
    seen = view.observations(pattern.id)
    failed = [one for one in seen if one.success is False]
    worked = [one for one in seen if one.success]
    lines += [line for one in reversed(failed[-MOST_LOOPS:]) for line in _failed(view, one, glyphs, width)]
    lines += _worked(worked, glyphs)
    told = [line for line in body(pattern) if line.plain.partition(": ")[2] != visible_line(pattern.title, 400)]
    return [*lines, Content(""), *told] if told else lines


def _failed(view: ProjectState, seen: Observation, glyphs: Glyphs, width: int) -> Iterator[Content]:
    count = f"{seen.count:,} x " if seen.count > 1 else ""
    where = f"  iteration {seen.iteration}" if seen.iteration is not None else ""
    yield Content.assemble(
        result_mark(False, glyphs),
        f" {count}{visible_line(seen.loop_id, 80) or f'known from a {seen.source} alone'}",
        (f"{where}  {moment_text(seen.at, view.now)}", "$quiet"),
    )
    if error := what_came_out(view, seen):
        yield from hanging(Content("  "), Content.styled(error, "$error"), width)


def _worked(worked: Sequence[Observation], glyphs: Glyphs) -> Iterator[Content]:
    if worked:
        times = sum(one.count for one in worked)
        loops = ", ".join(dict.fromkeys(visible_line(one.loop_id, 40) for one in worked if one.loop_id))
        yield Content.assemble(
            result_mark(True, glyphs),
            f" worked {plural(times, 'time')}",
            (f"  {loops}"[:400] if loops else "", "$quiet"),
        )


def warning(
    view: ProjectState,
    inversion: Inversion,
    alternatives: Sequence[Pattern],
    keys: dict[str, str],
    glyphs: Glyphs,
    *,
    own_words: bool,
    width: int = UNBROKEN,
) -> list[Content]:
    """The anti-pattern: its text, whether that reads well, what to do instead, and what else it says.

    Args:
        alternatives: Patterns that could be named instead.
        keys: The keys of `rewrite`, `rewrite_in_editor` and `alternative`, for people.
        own_words: The text is a person's, not the proposed one.
    """
    lines = [Content.styled(visible_line(inversion.text, 2000), "bold")]
    if own_words:
        lines.append(Content.styled("in your words", "$accent"))
    if inversion.lint:
        for text in inversion.lint:
            lines += hanging(
                Content.styled("! ", "$warning"), Content.styled(visible_line(text, 300), "$warning"), width
            )
        lines.append(
            Content.styled(f"{keys['rewrite']} puts it in other words, {keys['rewrite_in_editor']} in your editor")
        )
    else:
        lines.append(Content.styled(f"{glyphs.done} the polarity reads well", "$success"))
    lines += [Content(""), *_instead(view, inversion, alternatives, keys["alternative"], glyphs), Content("")]
    return [
        *lines,
        labelled("Failure mode", inversion.failure_mode.replace("_", " ")),
        labelled("Why it fails", inversion.why_it_fails),
        labelled("New id", f"pat-anti-{inversion.slug}-, with the next free number"),
    ]


def _instead(
    view: ProjectState, inversion: Inversion, alternatives: Sequence[Pattern], key: str, glyphs: Glyphs
) -> Iterator[Content]:
    """What to do instead: the one that is named, and the others that could be."""
    if not alternatives:
        yield Content.styled("Instead: no success pattern has anything in common with it", "$quiet")
        return
    more = f"   {key} names another one, or none"
    yield Content.assemble("Instead", (more, "$quiet"))
    for pattern in alternatives:
        assessment = view.assessment(pattern.id)
        named = pattern.id == inversion.better_pattern_id
        yield Content.assemble(
            (f"  {glyphs.play if named else ' '} ", "$accent"),
            (visible_line(pattern.title, 200), "bold" if named else ""),
            (f"  {percent(assessment.rate)} of {plural(assessment.uses, 'use')}", "$quiet"),
        )
        yield Content.styled(f"    {visible_line(pattern.id, 120)}", "$secondary" if named else "$quiet")
    if not inversion.better_pattern_id:
        yield Content.styled(f"  {glyphs.play} none is named", "$accent")
