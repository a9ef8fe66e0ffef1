"""A failing pattern beside the anti-pattern that it would become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from textual.content import Content

from core.base.formatting import format_percent
from core.base.text import plural
from core.documents.document import Block, Line, Moment, Sign, fields, line, section
from core.documents.patterns import body, rate_line
from core.documents.signs import result_sign, state_sign
from core.learning.inversion_rules import Inversion
from core.records.events import Observation
from core.records.patterns import Pattern
from core.state.project_state import ProjectState
from tui.present.document import document_lines
from tui.present.glyphs import Glyphs
from tui.present.layout import UNBROKEN
from tui.present.review_evidence import find_result, robustness

MAX_LOOPS: Final = 20


def original_lines(view: ProjectState, pattern: Pattern, glyphs: Glyphs, width: int = UNBROKEN) -> list[Content]:
    """Return the pattern, each loop in which it failed with the error, and the loops in which it succeeded."""
    return document_lines(_original(view, pattern), view.now, glyphs, width)


def _original(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    assessment, observations = view.assessment(pattern.id), view.observations(pattern.id)
    failed = [one for one in observations if one.success is False]
    succeeded = [one for one in observations if one.success]
    yield line((pattern.title, "strong"))
    yield line((pattern.id, "name"))
    yield line(state_sign(assessment.shown))
    yield rate_line(pattern, assessment)
    yield from robustness(view, pattern)
    yield line("")
    yield from (block for one in reversed(failed[-MAX_LOOPS:]) for block in _failure(view, one))
    if succeeded:
        times = plural(sum(one.count for one in succeeded), "time")
        loops = ", ".join(dict.fromkeys(one.loop_id for one in succeeded if one.loop_id))
        yield line(result_sign(True), f" succeeded {times}", (f"  {loops}", "quiet"))
    yield line("")
    yield from body(pattern, pattern.title)


def _failure(view: ProjectState, use: Observation) -> Iterable[Line]:
    count = f"{use.count:,} x " if use.count > 1 else ""
    where = f"  iteration {use.iteration}" if use.iteration is not None else ""
    source = use.loop_id or f"recorded only by {use.source}"
    yield line(result_sign(False), f" {count}{source}", (f"{where}  ", "quiet"), Moment(use.at))
    if error := find_result(view, use):
        yield line((error, "bad"), indent=2)


def anti_pattern_lines(
    view: ProjectState,
    inversion: Inversion,
    alternatives: Sequence[Pattern],
    keys: dict[str, str],
    glyphs: Glyphs,
    *,
    is_edited: bool,
    width: int = UNBROKEN,
) -> list[Content]:
    """Return the anti-pattern: its text, the check of its words, alternatives, and its fields.

    Args:
        alternatives: Success patterns that it can refer to.
        keys: Keys of `rewrite`, `rewrite_in_editor` and `alternative`, for people.
        is_edited: Whether the user has rewritten the proposed text.
    """
    blocks: list[Block] = [line((inversion.text, "strong"))]
    blocks += [line(("your text", "accent"))] * is_edited
    blocks += [line(("! ", "warning"), (text, "warning")) for text in inversion.lint]
    if inversion.lint:
        blocks.append(line(f"{keys['rewrite']}: edit the text, {keys['rewrite_in_editor']}: edit it in your editor"))
    else:
        blocks.append(line(Sign("wording check passed", "good", "done")))
    blocks += [
        *_alternatives(view, inversion, alternatives, keys["alternative"]),
        line(""),
        *fields(
            ("Failure mode", inversion.failure_mode.replace("_", " ")),
            ("Why it fails", inversion.why_it_fails),
            ("New ID", f"pat-anti-{inversion.slug}-, with the next free number"),
        ),
    ]
    return document_lines(blocks, view.now, glyphs, width)


def _alternatives(
    view: ProjectState, inversion: Inversion, alternatives: Sequence[Pattern], key: str
) -> Iterable[Block]:
    if not alternatives:
        return [line(""), line(("Instead: no similar success pattern found", "quiet"))]
    lines: list[Line] = []
    for pattern in alternatives:
        assessment = view.assessment(pattern.id)
        is_named = pattern.id == inversion.better_pattern_id
        rate = "—" if assessment.rate is None else format_percent(assessment.rate)
        lines += [
            line(
                Sign("", "accent", "play") if is_named else " ",
                (f" {pattern.title}", "strong" if is_named else ""),
                (f"  {rate} of {plural(assessment.uses, 'use')}", "quiet"),
                indent=2,
            ),
            line((pattern.id, "name" if is_named else "quiet"), indent=4),
        ]
    if not inversion.better_pattern_id:
        lines.append(line(Sign("none selected", "accent", "play"), indent=2))
    return section("Instead", lines, f"{key}: select another one, or none")
