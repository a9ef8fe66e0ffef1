"""A failing pattern beside the anti-pattern that it would become, as blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from core.base.text import plural
from core.documents.document import Block, Line, Sign, fields, line, section
from core.documents.patterns import body, rate_line
from core.documents.signs import result_sign, state_sign
from core.learning.inversion_rules import Inversion
from core.records.patterns import Pattern
from core.state.project_state import ProjectState
from tui.present.numbers import percent
from tui.present.review_evidence import find_result, pattern_name, robustness, use_line

MAX_LOOPS: Final = 20


def failing_pattern(view: ProjectState, pattern: Pattern) -> Iterable[Block]:
    """Describe the pattern, each loop in which it failed with the error, and the loops in which it succeeded."""
    assessment, observations = view.assessment(pattern.id), view.board.observations(pattern.id)
    failed = [one for one in observations if one.success is False]
    succeeded = [one for one in observations if one.success]
    yield from pattern_name(pattern)
    yield line(state_sign(assessment.shown))
    yield rate_line(pattern, assessment)
    yield from robustness(view, pattern)
    yield line("")
    for use in reversed(failed[-MAX_LOOPS:]):
        yield use_line(use, use.loop_id or f"recorded only by {use.source}")
        if error := find_result(view, use):
            yield line((error, "bad"), indent=2)
    if succeeded:
        times = plural(sum(one.count for one in succeeded), "time")
        loops = ", ".join(dict.fromkeys(one.loop_id for one in succeeded if one.loop_id))
        yield line(result_sign(True), f" succeeded {times}", (f"  {loops}", "quiet"))
    yield line("")
    yield from body(pattern, pattern.title)


def anti_pattern(
    view: ProjectState,
    inversion: Inversion,
    alternatives: Sequence[Pattern],
    keys: Mapping[str, str],
    *,
    is_edited: bool,
) -> Iterable[Block]:
    """Describe the anti-pattern: its text, the check of its words, the `alternatives` it can name, and its fields.

    `keys` has the keys of `rewrite`, `rewrite_in_editor` and `alternative`; with `is_edited` the text is the user's.
    """
    yield line((inversion.text, "strong"))
    if is_edited:
        yield line(("your text", "accent"))
    yield from (line(("! ", "warning"), (text, "warning")) for text in inversion.lint)
    if inversion.lint:
        yield line(f"{keys['rewrite']}: edit the text, {keys['rewrite_in_editor']}: edit it in your editor")
    else:
        yield line(Sign("wording check passed", "good", "done"))
    yield from _alternatives(view, inversion, alternatives, keys["alternative"])
    yield line("")
    yield from fields(
        ("Failure mode", inversion.failure_mode.replace("_", " ")),
        ("Why it fails", inversion.why_it_fails),
        ("New ID", f"pat-anti-{inversion.slug}-, with the next free number"),
    )


def _alternatives(
    view: ProjectState, inversion: Inversion, alternatives: Sequence[Pattern], key: str
) -> Iterable[Block]:
    if not alternatives:
        return [line(""), line(("Instead: no similar success pattern found", "quiet"))]
    lines: list[Line] = []
    for pattern in alternatives:
        assessment = view.assessment(pattern.id)
        is_named = pattern.id == inversion.better_pattern_id
        sign = Sign("", "accent", "play") if is_named else " "
        uses = f"  {percent(assessment.rate)} of {plural(assessment.uses, 'use')}"
        lines.append(line(sign, (f" {pattern.title}", "strong" if is_named else ""), (uses, "quiet"), indent=2))
        lines.append(line((pattern.id, "name" if is_named else "quiet"), indent=4))
    if not inversion.better_pattern_id:
        lines.append(line(Sign("none selected", "accent", "play"), indent=2))
    return section("Instead", lines, f"{key}: select another one, or none")
