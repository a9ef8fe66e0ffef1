"""The preview of an injected context as paragraphs."""

from __future__ import annotations

from textual.content import Content

from core.retrieval.ranking import Injection
from core.settings import InjectionSettings
from core.text import plural, visible, visible_line
from tui.present.marks import Glyphs
from tui.present.numbers import fraction


def profile_line(injection: Injection) -> Content:
    """What the task was understood as."""
    profile = injection.profile
    parts = [profile.category or "no category", ", ".join(profile.languages)]
    if profile.error_types:
        parts.append("likely " + ", ".join(profile.error_types))
    return Content.styled(visible_line(" · ".join(filter(None, parts)), 120), "$secondary")


def size_line(injection: Injection, settings: InjectionSettings) -> Content:
    """How much of the budget the context takes."""
    return Content.assemble(
        ("what the loop will read  ", "$quiet"),
        (f"{injection.tokens:,}", "bold"),
        (f" of {settings.max_tokens:,} tokens, {injection.bytes:,} bytes", "$quiet"),
    )


def context_lines(injection: Injection) -> list[Content]:
    """The exact text, headings set off."""
    if not injection.context:
        return [
            Content.styled("This task gets nothing injected.", "$warning"),
            Content.styled("The right side says why each pattern is left out.", "$quiet"),
        ]
    lines = []
    for line in visible(injection.context).split("\n"):
        style = "bold $accent" if line.startswith("## ") else "bold" if line.startswith("### ") else ""
        lines.append(Content.styled(line, style))
    return lines


def why_lines(injection: Injection, glyphs: Glyphs) -> list[Content]:
    """The score of each pattern part by part, and what was left out and why."""
    lines = [Content.styled("score = relevance x effectiveness x state", "$quiet"), Content("")]
    for chosen in injection.chosen:
        lines.append(
            Content.assemble(
                (f"{chosen.score:.2f} ", "bold"),
                (visible_line(chosen.pattern_id, 120), "$secondary"),
            )
        )
        lines.append(
            Content.assemble(
                f"     {fraction(chosen.relevance)} x {fraction(chosen.effectiveness)} x {chosen.multiplier:g}",
                (f"   lower bound {chosen.lower_bound:.2f}", "$quiet"),
            )
        )
        parts = "  ".join(f"{name} {fraction(value)}" for name, value in chosen.parts.items() if value)
        lines.append(Content.styled(f"     {visible_line(parts, 200)}", "$quiet"))
    if not injection.chosen:
        lines.append(Content.styled("no pattern was let in", "$quiet"))
    if injection.left_out:
        lines += [
            Content(""),
            Content.styled(plural(len(injection.left_out), "pattern") + " left out", "bold"),
        ]
        for left in injection.left_out:
            lines.append(
                Content.assemble(
                    (f"  {visible_line(left.pattern_id, 120)}", "$quiet"), f"  {visible_line(left.reason, 300)}"
                )
            )
    return lines


def knobs_line(settings: InjectionSettings, types: str) -> Content:
    """The knobs as they stand."""
    order = "lower bound" if settings.order == "lower-bound" else "documents' rule"
    return Content.assemble(
        (" + - ", "$accent"),
        ("top ", "$quiet"),
        f"{settings.top_k_patterns}",
        ("   f ", "$accent"),
        ("min rate ", "$quiet"),
        fraction(settings.min_success_rate),
        ("   v ", "$accent"),
        ("types ", "$quiet"),
        types,
        ("   b ", "$accent"),
        ("order ", "$quiet"),
        order,
    )
